//! Time: a monotonic instant, the wall clock, and the one clock of a process, which
//! tests and `time/stop`, `time/warp` can freeze and step.
//!
//! Nothing but the event loop and the packet threads asks the clock; everything else
//! is handed an [`Instant`].

use std::ops::{Add, AddAssign, Sub};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

/// A point of monotonic time, in microseconds since the clock was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The earliest instant.
    pub const ZERO: Self = Self(0);
    /// An instant that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// From microseconds since the clock was made.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// From milliseconds since the clock was made.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1000)
    }

    /// Microseconds since the clock was made.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds since the clock was made, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, time: Duration) {
        *self = *self + time;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, time: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

/// Wall-clock time, in milliseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub i64);

/// How the virtual time runs against the real one.
#[derive(Debug)]
struct Warp {
    /// Virtual time at which the clock stands, when stopped.
    stopped_at: Option<Instant>,
    /// What was stepped in all, added to real time while the clock runs.
    ahead: Duration,
}

#[derive(Debug)]
struct Inner {
    origin: std::time::Instant,
    warp: Mutex<Warp>,
}

/// A process's clock.  Clones share one state.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A running clock that begins at [`Instant::ZERO`].
    pub fn new() -> Self {
        let warp = Warp {
            stopped_at: None,
            ahead: Duration::ZERO,
        };
        Self(Arc::new(Inner {
            origin: real_now(),
            warp: Mutex::new(warp),
        }))
    }

    /// A clock that stands at `at` until it is stepped: what tests use.
    pub fn stopped(at: Instant) -> Self {
        let clock = Self::new();
        clock.warp().stopped_at = Some(at);
        clock
    }

    fn warp(&self) -> std::sync::MutexGuard<'_, Warp> {
        self.0
            .warp
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Monotonic time, virtual if the clock was stopped or stepped.
    pub fn now(&self) -> Instant {
        let warp = self.warp();
        warp.stopped_at.unwrap_or_else(|| self.real() + warp.ahead)
    }

    /// Real monotonic time whatever `time/stop` says: for polling packets and
    /// measuring cycles only.
    pub fn real(&self) -> Instant {
        let elapsed = real_now().duration_since(self.0.origin);
        Instant(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))
    }

    /// Wall-clock time, moved by the same steps as [`Clock::now`].
    pub fn wall(&self) -> WallTime {
        let real = real_wall();
        let now = self.now();
        let ahead = now.as_millis() as i64 - self.real().as_millis() as i64;
        WallTime(real.0 + ahead)
    }

    /// Wall-clock time whatever `time/stop` says: for log lines.
    pub fn real_wall(&self) -> WallTime {
        real_wall()
    }

    /// Freezes the clock where it stands.
    pub fn stop(&self) {
        let now = self.now();
        self.warp().stopped_at = Some(now);
    }

    /// Whether the clock is frozen.
    pub fn is_stopped(&self) -> bool {
        self.warp().stopped_at.is_some()
    }

    /// Steps the clock forward by `time`.
    pub fn step(&self, time: Duration) {
        let mut warp = self.warp();
        match &mut warp.stopped_at {
            Some(at) => *at += time,
            None => warp.ahead += time,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock is the one place that reads real time"
)]
fn real_now() -> std::time::Instant {
    std::time::Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock is the one place that reads real time"
)]
fn real_wall() -> WallTime {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    WallTime(since_epoch.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_clock_moves_only_by_steps() {
        let clock = Clock::stopped(Instant::from_millis(5));
        let other = clock.clone();
        assert_eq!(other.now(), Instant::from_millis(5));
        clock.step(Duration::from_millis(2500));
        assert_eq!(other.now(), Instant::from_millis(2505));
    }

    #[test]
    fn a_running_clock_keeps_its_steps() {
        let clock = Clock::new();
        clock.step(Duration::from_secs(3600));
        assert!(clock.now() >= Instant::from_millis(3_600_000));
        assert!(clock.real() < Instant::from_millis(3_600_000));
    }

    #[test]
    fn instants_saturate() {
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Instant::ZERO.since(Instant::MAX), Duration::ZERO);
    }
}
