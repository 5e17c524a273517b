//! Which thread serves which port.
//!
//! All ports begin on the first thread: a reply that arrives while its request is being sent is then served
//! without another thread waking up.  A thread that is busy hands ports to one that is not, and takes them back
//! once everything has been quiet for a while.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Instant;

/// The thread that all ports begin on.
pub(crate) const FIRST: usize = 1;

/// How long load is measured before it is judged.
const WINDOW: Duration = Duration::from_millis(100);
/// A thread that did not report for so long has nothing to do.
const STALE: Duration = Duration::from_millis(300);
/// Windows in a row that must be quiet before ports go back.
const QUIET_WINDOWS: u32 = 10;

/// Loads are in parts of a thousand of a processor.
const BUSY: u64 = 700;
const QUIET: u64 = 200;
/// What a move must improve at least.
const GAIN: u64 = 100;

/// The last load that a thread reported; others read.
#[derive(Debug, Default)]
pub(crate) struct Report(AtomicU64);

impl Report {
    fn set(&self, load: u64, now: Instant) {
        self.0
            .store(now.as_millis() << 16 | load.min(1000), Ordering::Relaxed);
    }

    /// The load, if it was reported lately.
    pub(crate) fn get(&self, now: Instant) -> u64 {
        let value = self.0.load(Ordering::Relaxed);
        let is_stale = now.as_millis() > (value >> 16) + STALE.as_millis() as u64;
        if is_stale { 0 } else { value & 0xffff }
    }
}

/// What a thread should do with its ports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    Keep,
    /// The ports at these places go to that thread.
    Move {
        places: Vec<usize>,
        to: usize,
    },
    /// All ports go to the first thread.
    Return,
}

/// A thread's time, by what it was spent on.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    since: Option<Instant>,
    /// By the port's place.
    ports: Vec<Duration>,
    quiet: u32,
}

impl Meter {
    /// The port at `place` took so long.
    pub(crate) fn note(&mut self, place: usize, took: Duration) {
        if self.ports.len() <= place {
            self.ports.resize(place + 1, Duration::ZERO);
        }
        self.ports[place] += took;
    }

    /// Ends a window if it is time to, and says what to do then.  `others` gives the load of each thread by its
    /// number, the main loop's and one's own included.
    pub(crate) fn judge(
        &mut self,
        own: usize,
        now: Instant,
        report: &Report,
        others: impl FnOnce() -> Vec<u64>,
    ) -> Advice {
        let since = *self.since.get_or_insert(now);
        let window = now.since(since);
        if window < WINDOW {
            return Advice::Keep;
        }
        let share = |time: Duration| (time.as_micros() * 1000 / window.as_micros()) as u64;
        let ports: Vec<u64> = self.ports.iter().map(|time| share(*time)).collect();
        let load = ports.iter().sum::<u64>();
        report.set(load, now);
        self.since = Some(now);
        self.ports.clear();
        self.advise(own, load, &ports, others)
    }

    fn advise(
        &mut self,
        own: usize,
        load: u64,
        ports: &[u64],
        others: impl FnOnce() -> Vec<u64>,
    ) -> Advice {
        if load >= BUSY {
            self.quiet = 0;
            return relief(own, load, ports, &others());
        }
        if own == FIRST || load >= QUIET {
            self.quiet = 0;
            return Advice::Keep;
        }
        self.quiet += 1;
        if self.quiet < QUIET_WINDOWS || others().get(FIRST).is_none_or(|l| *l >= QUIET) {
            return Advice::Keep;
        }
        self.quiet = 0;
        Advice::Return
    }
}

/// The move after which the busier of two threads has the least to do.
fn relief(own: usize, load: u64, ports: &[u64], others: &[u64]) -> Advice {
    let threads = others.iter().enumerate().skip(FIRST);
    let least = threads
        .filter(|(to, _)| *to != own)
        .min_by_key(|(_, l)| **l);
    let Some((to, their_load)) = least else {
        return Advice::Keep;
    };
    let after = |moved: u64| (load - moved).max(their_load + moved);
    let mut used: Vec<(u64, usize)> = ports.iter().copied().zip(0..).collect();
    used.retain(|(port, _)| *port > 0);
    used.sort_unstable_by(|a, b| b.cmp(a));
    // The largest ports that together do not exceed what is to be moved; or one that does.
    let excess = load.saturating_sub(*their_load) / 2;
    let mut moved = 0;
    let mut places = Vec::new();
    for (port, place) in &used {
        if moved + port <= excess {
            moved += port;
            places.push(*place);
        }
    }
    if let Some((port, place)) = used.iter().min_by_key(|(port, _)| after(*port))
        && after(*port) < after(moved)
    {
        moved = *port;
        places = vec![*place];
    }
    if after(moved) + GAIN <= load {
        Advice::Move { places, to }
    } else {
        Advice::Keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One window in which the ports took these parts of a thousand.
    fn window(meter: &mut Meter, own: usize, ports: &[u64], others: &[u64]) -> Advice {
        let report = Report::default();
        let start = meter.since.unwrap_or(Instant::from_millis(5000));
        assert_eq!(
            meter.judge(own, start, &report, Vec::new),
            Advice::Keep,
            "too early"
        );
        for (place, port) in ports.iter().enumerate() {
            meter.note(place, Duration::from_micros(port * 100));
        }
        let end = start + WINDOW;
        let advice = meter.judge(own, end, &report, || others.to_vec());
        assert_eq!(report.get(end), ports.iter().sum::<u64>().min(1000));
        assert_eq!(report.get(end + Duration::from_secs(1)), 0);
        advice
    }

    #[test]
    fn a_busy_thread_gives_the_port_that_evens_out_most() {
        let mut meter = Meter::default();
        let give = |places: &[usize], to| Advice::Move {
            places: places.to_vec(),
            to,
        };
        let idle = [0, 950, 0];
        let three = window(&mut meter, 1, &[500, 400, 50], &idle);
        assert_eq!(three, give(&[1, 2], 2));
        assert_eq!(window(&mut meter, 1, &[600, 350], &idle), give(&[1], 2));
        assert_eq!(window(&mut meter, 1, &[500, 450], &idle), give(&[1], 2));
        let many = window(&mut meter, 1, &[10; 96], &idle);
        let Advice::Move { places, to: 2 } = many else {
            panic!("{many:?}");
        };
        assert_eq!(places.len(), 48);
        let to_third = window(&mut meter, 1, &[600, 300, 50], &[0, 950, 700, 100]);
        assert_eq!(to_third, give(&[1, 2], 3));
    }

    #[test]
    fn a_move_that_helps_nothing_is_not_made() {
        let mut meter = Meter::default();
        let keep = Advice::Keep;
        assert_eq!(window(&mut meter, 1, &[990], &[0, 990, 0]), keep);
        assert_eq!(window(&mut meter, 1, &[950, 40], &[0, 990, 0]), keep);
        assert_eq!(window(&mut meter, 1, &[500, 450], &[0, 950, 900]), keep);
        assert_eq!(window(&mut meter, 1, &[500, 450], &[0, 950]), keep);
        assert_eq!(window(&mut meter, 1, &[300, 300], &[0, 600, 0]), keep);
    }

    #[test]
    fn ports_go_back_after_a_quiet_second() {
        let mut meter = Meter::default();
        for _ in 1..QUIET_WINDOWS {
            assert_eq!(window(&mut meter, 2, &[50], &[0, 100, 50]), Advice::Keep);
        }
        assert_eq!(window(&mut meter, 2, &[50], &[0, 100, 50]), Advice::Return);
        for _ in 0..2 * QUIET_WINDOWS {
            assert_eq!(window(&mut meter, 2, &[50], &[0, 900, 50]), Advice::Keep);
            assert_eq!(window(&mut meter, 1, &[50], &[0, 50, 50]), Advice::Keep);
        }
    }
}
