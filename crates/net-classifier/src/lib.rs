//! Prioritised lookup of rules that reports which bits of the key mattered.
//!
//! A [`Classifier`] is a value: a clone costs one reference count, and a change to the
//! clone copies only the path to what changed.  The owner changes its own value and
//! publishes clones; readers look up in what they hold and never wait.
//!
//! Rules that match under the same mask share a *subtable*, a hash map.  A lookup visits
//! the subtables in falling order of their highest priority and ends when none that is
//! left can win.  Three devices keep the reported mask small: a subtable is searched in
//! stages (metadata, L2, L3, L4), prefix tries tell how many bits of an address suffice
//! to rule a subtable out, and a trie of each subtable's ports does so for L4 ports.
#![forbid(unsafe_code)]

mod classifier;
mod conjunction;
mod hamt;
mod mini_match;
mod stage;
mod subtable;
#[cfg(test)]
mod tests;
mod trie;

pub use classifier::{Classifier, DEFAULT_PREFIXES, MAX_PREFIXES};
pub use conjunction::Conjunction;
pub use mini_match::MiniMatch;
pub use subtable::SubtableId;

/// What a classifier holds.
pub trait Rule {
    /// Higher wins.  Rules of OpenFlow use 0 to 65535; hidden rules may lie outside.
    fn priority(&self) -> i32;

    /// What it matches.
    fn mini_match(&self) -> &MiniMatch;

    /// The clauses of conjunctive matches that this rule is part of; none for a rule that
    /// matches by itself.
    fn conjunctions(&self) -> &[Conjunction] {
        &[]
    }
}
