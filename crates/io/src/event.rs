//! The event loop: readiness of file descriptors, deadlines, wake-ups from other threads,
//! and the virtual clock.
//!
//! A daemon's main loop is
//!
//! ```text
//! loop {
//!     poll.wait(deadline, &mut events)?;        // the earliest deadline of anything
//!     for event in events.drain(..) { /* dispatch on event.token */ }
//!     /* run what is due at poll.now() */
//! }
//! ```
//!
//! Readiness is level-triggered: what was not read yet is reported again.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Instant};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

/// Whom an event is for.  The owner of the loop gives them out as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What one waits for on a file descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Wait until it can be read (or has an error, or the peer has gone).
    pub read: bool,
    /// Wait until it can be written.
    pub write: bool,
}

impl Interest {
    /// Neither: only errors and hang-ups are reported.
    pub const NONE: Self = Self::new(false, false);
    /// Reading.
    pub const READ: Self = Self::new(true, false);
    /// Writing.
    pub const WRITE: Self = Self::new(false, true);
    /// Both.
    pub const BOTH: Self = Self::new(true, true);

    /// An interest in the given directions.
    pub const fn new(read: bool, write: bool) -> Self {
        Self { read, write }
    }

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.read);
        flags.set(epoll::EventFlags::OUT, self.write);
        flags
    }
}

/// Something that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whom it is for.
    pub token: Token,
    /// It can be read; also set on errors and hang-ups, which reading then reports, and
    /// for [`Poll::again`] and [`Waker::wake`].
    pub readable: bool,
    /// It can be written; also set on errors.
    pub writable: bool,
    /// The peer has hung up or there is an error.
    pub closed: bool,
}

/// Wakes a loop from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Makes the loop report the waker's token soon, once however often it is woken.
    pub fn wake(&self) {
        // It fails only when the counter is about to overflow: then it is awake already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Steps of the clock that `time/warp` asked for.
#[derive(Clone, Copy, Debug)]
struct Warp {
    left: Duration,
    step: Duration,
}

/// The event loop of one thread.
pub struct Poll {
    epoll: OwnedFd,
    clock: Clock,
    ready: Vec<Token>,
    buffer: Vec<epoll::Event>,
    warp: Option<Warp>,
    wakers: Vec<Waker>,
    /// When the last wait ended, in real time, and what the process had used by then.
    woke: Option<(Instant, sys::process::Usage)>,
}

impl fmt::Debug for Poll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Poll").field(&self.epoll).finish()
    }
}

/// A loop that is away from its waits for this long is reported.
const SLOW: Duration = Duration::from_secs(1);

/// How many events one wait takes at most, so that nobody is starved.
const BATCH: usize = 256;

impl Poll {
    /// An empty loop on `clock`.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn new(clock: &Clock) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            clock: clock.clone(),
            ready: Vec::new(),
            buffer: Vec::with_capacity(BATCH),
            warp: None,
            wakers: Vec::new(),
            woke: None,
        })
    }

    /// The clock that deadlines are of.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Begins to watch `fd`, which goes by itself when the last duplicate of it is closed.
    ///
    /// # Errors
    /// `fd` is watched already or cannot be (a regular file).
    pub fn add(&self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.0);
        Ok(epoll::add(&self.epoll, fd, data, interest.flags())?)
    }

    /// Changes what `fd` is watched for.
    ///
    /// # Errors
    /// `fd` is not watched.
    pub fn modify(&self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.0);
        Ok(epoll::modify(&self.epoll, fd, data, interest.flags())?)
    }

    /// Ends watching `fd`.
    ///
    /// # Errors
    /// `fd` is not watched.
    pub fn delete(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Makes a waker that reports `token`.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn waker(&mut self, token: Token) -> io::Result<Waker> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let waker = Waker(Arc::new(eventfd(0, flags)?));
        // Edge-triggered: each write reports anew, and nobody needs to read the counter.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(token.0);
        epoll::add(&self.epoll, &*waker.0, data, flags)?;
        self.wakers.push(waker.clone());
        Ok(waker)
    }

    /// Reports `token` as readable from the next wait, which will not block: for work that
    /// was cut short, and for data that sits in a buffer where the kernel does not see it.
    pub fn again(&mut self, token: Token) {
        self.ready.push(token);
    }

    /// Waits until something is ready or `deadline` has come, and appends what is ready to
    /// `events`.  Under `time/warp` the clock is stepped each time nothing is left to do.
    ///
    /// # Errors
    /// Those of `epoll_wait` other than interruption by a signal, which ends the wait.
    pub fn wait(&mut self, deadline: Instant, events: &mut Vec<Event>) -> io::Result<()> {
        let now = self.clock.now();
        let timeout = if !self.ready.is_empty() || deadline <= now {
            Some(Duration::ZERO)
        } else if self.warp.is_some() {
            // Threads that work for this loop need a moment to get going after a step.
            let moment = if self.wakers.is_empty() { 0 } else { 1 };
            Some(Duration::from_millis(moment))
        } else if deadline == Instant::MAX || self.clock.is_stopped() {
            None
        } else {
            // Rounded up to what the kernel counts in, so as not to wake too early and spin.
            Some(deadline.since(now) + Duration::from_micros(999))
        };
        self.watch_for_slowness();
        self.poll_once(timeout)?;
        self.woke = Some((self.clock.real(), sys::process::Usage::now()));
        for token in self.ready.drain(..) {
            events.push(Event {
                token,
                readable: true,
                writable: false,
                closed: false,
            });
        }
        for event in self.buffer.drain(..) {
            let (flags, data) = (event.flags, event.data);
            let closed = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            events.push(Event {
                token: Token(data.u64()),
                readable: closed || flags.contains(epoll::EventFlags::IN),
                writable: closed || flags.contains(epoll::EventFlags::OUT),
                closed,
            });
        }
        if events.is_empty() && deadline > self.clock.now() {
            self.step();
        }
        Ok(())
    }

    /// Logs that the loop was away for too long since its last wait.
    fn watch_for_slowness(&self) {
        let Some((woke, used)) = self.woke else {
            return;
        };
        let away = self.clock.real().since(woke);
        if away >= SLOW {
            let usage = sys::process::Usage::now();
            let user = usage.user.saturating_sub(used.user).as_millis();
            let system = usage.system.saturating_sub(used.system).as_millis();
            let away = away.as_millis();
            log::warn!(target: "timeval",
                "Unreasonably long {away}ms poll interval ({user}ms user, {system}ms system)");
        }
    }

    fn poll_once(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_millis()) * 1_000_000,
        });
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.buffer),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn step(&mut self) {
        let Some(warp) = &mut self.warp else { return };
        let step = warp.step.min(warp.left);
        if step.is_zero() {
            self.warp = None;
            return;
        }
        self.clock.step(step);
        warp.left -= step;
    }

    /// Moves the clock on by `total` in steps of `step`, from the next waits on.  Until
    /// [`Poll::is_warping`] says no, the steps or the work they made are not done.
    pub fn warp(&mut self, total: Duration, step: Duration) {
        self.warp = Some(Warp { left: total, step });
    }

    /// Whether steps of [`Poll::warp`] are under way.
    pub fn is_warping(&self) -> bool {
        self.warp.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(clock: &Clock) -> Poll {
        Poll::new(clock).unwrap()
    }

    #[test]
    fn readiness_is_level_triggered() {
        let clock = Clock::stopped(Instant::ZERO);
        let mut poll = poll(&clock);
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        poll.add(&reader, Token(7), Interest::READ).unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        for _ in 0..2 {
            let mut events = Vec::new();
            poll.wait(Instant::MAX, &mut events).unwrap();
            assert_eq!(events.len(), 1);
            assert_eq!((events[0].token, events[0].readable), (Token(7), true));
        }
        drop(writer);
        poll.modify(&reader, Token(8), Interest::NONE).unwrap();
        let mut events = Vec::new();
        poll.wait(Instant::MAX, &mut events).unwrap();
        assert!(events[0].closed && events[0].token == Token(8));
        poll.delete(&reader).unwrap();
        assert!(poll.delete(&reader).is_err());
    }

    #[test]
    fn other_threads_wake_the_loop() {
        let mut poll = poll(&Clock::new());
        let waker = poll.waker(Token(1)).unwrap();
        let thread = std::thread::spawn(move || {
            waker.wake();
            waker.wake();
        });
        let mut events = Vec::new();
        poll.wait(Instant::MAX, &mut events).unwrap();
        thread.join().unwrap();
        poll.wait(Instant::ZERO, &mut events).unwrap();
        assert!(events.iter().all(|e| e.token == Token(1)) && !events.is_empty());
        events.clear();
        poll.wait(Instant::ZERO, &mut events).unwrap();
        assert_eq!(events, []);
        poll.again(Token(5));
        poll.wait(Instant::MAX, &mut events).unwrap();
        assert_eq!(events[0].token, Token(5));
    }

    #[test]
    fn a_warp_runs_the_loop_between_steps() {
        let clock = Clock::stopped(Instant::ZERO);
        let mut poll = poll(&clock);
        poll.warp(Duration::from_millis(1050), Duration::from_millis(100));
        // A timer that comes every 300 ms.
        let mut due = Instant::from_millis(300);
        let mut fired = Vec::new();
        while poll.is_warping() {
            let mut events = Vec::new();
            poll.wait(due, &mut events).unwrap();
            if due <= poll.now() {
                fired.push(poll.now().as_millis());
                due += Duration::from_millis(300);
            }
        }
        assert_eq!(fired, [300, 600, 900]);
        assert_eq!(clock.now(), Instant::from_millis(1050));
    }
}
