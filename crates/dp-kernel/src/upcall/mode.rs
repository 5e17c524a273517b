//! How packets are spread over sockets, and when that changes.  No sockets and no clock here.
//!
//! With a socket per CPU few sockets do, a packet wakes one thread, and the packets of a flow stay
//! in order.  But ports share sockets then, and a port that floods fills those of others.  So when
//! a socket overflows each port gets one of its own, until a minute passes without.

use std::time::Duration;

use base::Instant;
use dp_api::Dispatch;

/// How long there must be no overflow before CPUs get their sockets back.
pub(crate) const QUIET: Duration = Duration::from_secs(60);

/// How packets are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A socket for each CPU.
    PerCpu,
    /// A socket for each port.
    PerPort,
}

/// What is wanted, and what that means at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    wanted: Dispatch,
    /// The kernel can do it (from 5.15 on).
    has_per_cpu: bool,
    /// When a socket last overflowed while the kernel chose by CPU, or after that.
    overflow: Option<Instant>,
}

impl Chooser {
    pub(crate) const fn new(wanted: Dispatch, has_per_cpu: bool) -> Self {
        Self {
            wanted,
            has_per_cpu,
            overflow: None,
        }
    }

    /// What an operator wants from now on.
    pub(crate) fn want(&mut self, wanted: Dispatch) {
        if self.wanted != wanted {
            self.wanted = wanted;
            self.overflow = None;
        }
    }

    /// A socket overflowed.
    pub(crate) fn overflowed(&mut self, now: Instant) {
        self.overflow = Some(self.overflow.map_or(now, |last| last.max(now)));
    }

    /// The mode that should be in force.
    pub(crate) fn mode(&self, now: Instant) -> Mode {
        match self.wanted {
            _ if !self.has_per_cpu => Mode::PerPort,
            Dispatch::PerPort => Mode::PerPort,
            Dispatch::PerCpu => Mode::PerCpu,
            Dispatch::Auto => match self.overflow {
                Some(at) if now < at + QUIET => Mode::PerPort,
                _ => Mode::PerCpu,
            },
        }
    }

    /// When [`Chooser::mode`] may say something else without anything happening.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        match self.overflow.map(|at| at + QUIET) {
            Some(end) if self.wanted == Dispatch::Auto && self.has_per_cpu && now < end => end,
            _ => Instant::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn an_overflow_gives_ports_their_own_sockets_for_a_minute() {
        let mut chooser = Chooser::new(Dispatch::Auto, true);
        assert_eq!(chooser.mode(at(0)), Mode::PerCpu);
        assert_eq!(chooser.next_deadline(at(0)), Instant::MAX);
        chooser.overflowed(at(10));
        assert_eq!(chooser.mode(at(10)), Mode::PerPort);
        assert_eq!(chooser.next_deadline(at(10)), at(70));
        // It goes on: the minute begins anew.
        chooser.overflowed(at(40));
        chooser.overflowed(at(39));
        assert_eq!(chooser.mode(at(99)), Mode::PerPort);
        assert_eq!(chooser.mode(at(100)), Mode::PerCpu);
        assert_eq!(chooser.next_deadline(at(100)), Instant::MAX);
    }

    #[test]
    fn an_operators_choice_stands() {
        let mut chooser = Chooser::new(Dispatch::PerCpu, true);
        chooser.overflowed(at(1));
        assert_eq!(chooser.mode(at(2)), Mode::PerCpu);
        chooser.want(Dispatch::PerPort);
        assert_eq!(chooser.mode(at(200)), Mode::PerPort);
        chooser.overflowed(at(201));
        chooser.want(Dispatch::Auto);
        assert_eq!(chooser.mode(at(202)), Mode::PerCpu);
        let old = Chooser::new(Dispatch::PerCpu, false);
        assert_eq!(old.mode(at(0)), Mode::PerPort);
    }
}
