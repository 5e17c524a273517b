//! The compact form of a match: the words that its mask has, and a mask that rules share.

use std::sync::Arc;

use net_flow::{FlowKey, Match, MiniKey};

/// A match that keeps only the words in which it has bits; the mask may be shared by
/// all rules that have the same one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MiniMatch {
    mask: Arc<MiniKey>,
    values: Box<[u64]>,
}

impl MiniMatch {
    /// The compact form of `full`, with a mask of its own.
    pub fn new(full: &Match) -> Self {
        let mask = MiniKey::new(full.mask().as_key());
        Self::with_mask(full.key(), Arc::new(mask))
    }

    /// Matches `key` in the bits of `mask`.
    pub fn with_mask(key: &FlowKey, mask: Arc<MiniKey>) -> Self {
        let values = mask.iter().map(|(i, m)| key.word(i) & m).collect();
        Self { mask, values }
    }

    /// The bits that matter.
    pub const fn mask(&self) -> &Arc<MiniKey> {
        &self.mask
    }

    /// The values, one word for each word of the mask.
    pub const fn values(&self) -> &[u64] {
        &self.values
    }

    /// The full form.
    pub fn expand(&self) -> Match {
        let mut key = FlowKey::new();
        for ((i, _), value) in self.mask.iter().zip(&self.values) {
            key.set_word(i, *value);
        }
        Match::new(&key, self.mask.expand_mask())
    }

    /// Whether `key` matches.
    pub fn matches(&self, key: &FlowKey) -> bool {
        let words = self.mask.iter().zip(&self.values);
        words.into_iter().all(|((i, m), v)| key.word(i) & m == *v)
    }

    /// Whether every packet that matches `self` matches `other` too.
    pub fn is_within(&self, other: &Match) -> bool {
        let mine = self.mask.map();
        if other.mask().map() & !mine != 0 {
            return false;
        }
        self.words().all(|(i, m, v)| {
            let wanted = other.mask().word(i);
            wanted & !m == 0 && v & wanted == other.key().word(i)
        })
    }

    /// Whether some packet could match both.
    pub fn overlaps(&self, other: &Match) -> bool {
        self.words()
            .all(|(i, m, v)| (v ^ other.key().word(i)) & m & other.mask().word(i) == 0)
    }

    /// The words of the mask with their indices and values.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let words = self.mask.iter().zip(&self.values);
        words.map(|((i, m), v)| (i, m, *v))
    }
}

impl From<&Match> for MiniMatch {
    fn from(full: &Match) -> Self {
        Self::new(full)
    }
}
