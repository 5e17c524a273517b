//! When the statistics of which interfaces are written.  With many of them a round is cut into slices, so that
//! neither the switch nor the database is busy with one for long.

use std::collections::VecDeque;
use std::time::Duration;

use base::Instant;

/// Interfaces of one slice.
const SLICE: usize = 250;

/// Time between two slices.
const PAUSE: Duration = Duration::from_millis(50);

/// A bridge, and an interface of it.
pub(crate) type Name = (String, String);

/// Rounds through all interfaces.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Those of the round that are still to be written.
    waiting: VecDeque<Name>,
    next_round: Instant,
    next_slice: Instant,
}

impl Rounds {
    /// When there is something to do next.
    pub(crate) fn next_deadline(&self) -> Instant {
        if self.waiting.is_empty() {
            self.next_round.max(self.next_slice)
        } else {
            self.next_slice
        }
    }

    /// Whether a new round is to begin.
    pub(crate) fn is_round_due(&self, now: Instant) -> bool {
        self.waiting.is_empty() && now >= self.next_deadline()
    }

    /// Begins a round; the next is to come after `interval`.
    pub(crate) fn begin(
        &mut self,
        names: impl Iterator<Item = Name>,
        interval: Duration,
        now: Instant,
    ) {
        self.waiting.extend(names);
        self.next_round = now + interval;
        self.next_slice = now;
    }

    /// The interfaces whose statistics are to be written now.
    pub(crate) fn slice(&mut self, now: Instant) -> Vec<Name> {
        if now < self.next_slice {
            return Vec::new();
        }
        self.next_slice = now + PAUSE;
        let count = self.waiting.len().min(SLICE);
        self.waiting.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is written when, in milliseconds.
    fn run(count: usize, until: u64) -> Vec<(u64, usize)> {
        let mut rounds = Rounds::default();
        let names = || (0..count).map(|n| ("br0".to_owned(), format!("p{n}")));
        let mut written = Vec::new();
        let mut seen: Vec<usize> = vec![0; count];
        let mut round = 0;
        while rounds.next_deadline() < Instant::from_millis(until) {
            let now = rounds.next_deadline();
            if rounds.is_round_due(now) {
                assert!(seen.iter().all(|n| *n == round));
                round += 1;
                rounds.begin(names(), Duration::from_secs(5), now);
            }
            let slice = rounds.slice(now);
            for (_, name) in &slice {
                seen[name[1..].parse::<usize>().unwrap()] += 1;
            }
            written.push((now.as_millis(), slice.len()));
        }
        written
    }

    #[test]
    fn few_are_written_at_once_and_many_in_slices() {
        assert_eq!(run(200, 12_000), [(0, 200), (5000, 200), (10_000, 200)]);
        let expected = [(0, 250), (50, 250), (100, 100), (5000, 250), (5050, 250)];
        assert_eq!(run(600, 5100), expected);
        assert_eq!(run(0, 6000), [(0, 0), (5000, 0)]);
        // A round that takes longer than the pause between two is finished first.
        let long = run(50_000, 20_000);
        assert_eq!(long.iter().map(|(_, n)| n).sum::<usize>(), 100_000);
    }

    #[test]
    fn an_early_call_brings_nothing() {
        let mut rounds = Rounds::default();
        let names = (0..300).map(|n| ("br0".to_owned(), n.to_string()));
        let at = Instant::from_millis;
        rounds.begin(names, Duration::from_secs(5), at(7));
        assert_eq!(rounds.slice(at(7)).len(), 250);
        assert_eq!(rounds.slice(at(8)).len(), 0);
        assert_eq!(rounds.slice(at(57)).len(), 50);
        assert_eq!(rounds.next_deadline(), at(5007));
    }
}
