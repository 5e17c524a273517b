//! Deadlines of many things, of which the earliest are taken first.
//!
//! Setting, cancelling and taking one costs the logarithm of how many there are, so that
//! a million rules with timeouts cost nothing while none of them expires.

use std::collections::BTreeSet;

use base::Instant;

/// A set of keys, each with the instant at which it wants attention.
///
/// The caller remembers each key's deadline and hands it back to cancel it.
#[derive(Clone, Debug)]
pub struct Timers<K> {
    due: BTreeSet<(Instant, K)>,
}

impl<K: Ord + Copy> Default for Timers<K> {
    fn default() -> Self {
        Self {
            due: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Wants attention for `key` at `at`.  [`Instant::MAX`] is never.
    pub fn set(&mut self, at: Instant, key: K) {
        if at != Instant::MAX {
            self.due.insert((at, key));
        }
    }

    /// Takes back what [`Timers::set`] was told with the same arguments.
    pub fn cancel(&mut self, at: Instant, key: K) {
        self.due.remove(&(at, key));
    }

    /// The earliest deadline, or [`Instant::MAX`].
    pub fn next(&self) -> Instant {
        self.due.first().map_or(Instant::MAX, |(at, _)| *at)
    }

    /// Takes the earliest key whose deadline has come.
    pub fn take_due(&mut self, now: Instant) -> Option<K> {
        if self.next() > now {
            return None;
        }
        self.due.pop_first().map(|(_, key)| key)
    }

    /// How many keys have a deadline.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether no key has a deadline.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_of_their_deadlines() {
        let mut timers = Timers::default();
        timers.set(Instant::from_millis(30), 3);
        timers.set(Instant::from_millis(10), 1);
        timers.set(Instant::from_millis(20), 2);
        timers.set(Instant::MAX, 9);
        timers.cancel(Instant::from_millis(20), 2);
        assert_eq!(timers.next(), Instant::from_millis(10));
        assert_eq!(timers.take_due(Instant::from_millis(9)), None);
        assert_eq!(timers.take_due(Instant::from_millis(40)), Some(1));
        assert_eq!(timers.take_due(Instant::from_millis(40)), Some(3));
        assert_eq!(timers.take_due(Instant::from_millis(40)), None);
        assert!(timers.is_empty());
    }
}
