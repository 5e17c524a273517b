//! Conjunctive matches: rules that match only together, one for each clause.

use std::sync::Arc;

use crate::Rule;

/// A rule's part in a conjunctive match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conjunction {
    /// The id by which the rule that acts matches it.
    pub id: u32,
    /// Which of the clauses this is, counted from 0.
    pub clause: u8,
    /// How many clauses must match, 2 to 64.
    pub clauses: u8,
}

/// A rule that may match as part of a conjunction, with those of the same match and lower
/// priority that stand behind it.
pub(crate) struct Soft<'a, T> {
    /// The candidates, highest priority first; never empty.
    pub(crate) rules: Vec<&'a Arc<T>>,
}

impl<T: Rule> Soft<'_, T> {
    pub(crate) fn priority(&self) -> i32 {
        self.rules.first().map_or(i32::MIN, |r| r.priority())
    }
}

/// The ids whose clauses are all among the first rules of `soft` that have `priority`,
/// in the order in which they become complete.
pub(crate) fn complete<T: Rule>(soft: &[Soft<'_, T>], priority: i32) -> Vec<u32> {
    let mut seen: Vec<(u32, u64)> = Vec::new();
    let mut ids = Vec::new();
    for part in soft.iter().filter(|s| s.priority() == priority) {
        let conjunctions = part.rules.first().map_or(&[][..], |r| r.conjunctions());
        for c in conjunctions {
            let absent = u64::MAX.checked_shl(u32::from(c.clauses)).unwrap_or(0);
            let bit = 1u64.checked_shl(u32::from(c.clause)).unwrap_or(0);
            let at = seen
                .iter()
                .position(|(id, _)| *id == c.id)
                .unwrap_or_else(|| {
                    seen.push((c.id, absent));
                    seen.len() - 1
                });
            let was = seen[at].1;
            seen[at].1 |= bit;
            if seen[at].1 == u64::MAX && was != u64::MAX {
                ids.push(c.id);
            }
        }
    }
    ids
}
