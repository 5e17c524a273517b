//! The compact form of a key: only the words in use, on the heap.

use crate::key::{FlowKey, FlowMask, WordMap, bits};

/// A key or mask with only its words in use: what rules and cached flows keep.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct MiniKey {
    map: WordMap,
    words: Box<[u64]>,
}

impl MiniKey {
    /// The words of `key` that are in use.
    pub fn new(key: &FlowKey) -> Self {
        Self {
            map: key.map(),
            words: key.iter().map(|(_, w)| w).collect(),
        }
    }

    /// The words of `key` in which `mask` has bits, cut to those bits.  Words that
    /// become zero are kept, so that keys under one mask have one shape.
    pub fn under(key: &FlowKey, mask: &FlowMask) -> Self {
        let words = mask.iter().map(|(i, m)| key.word(i) & m).collect();
        Self {
            map: mask.map(),
            words,
        }
    }

    /// The words that this key has.
    pub const fn map(&self) -> WordMap {
        self.map
    }

    /// The values of those words, in rising order.
    pub const fn words(&self) -> &[u64] {
        &self.words
    }

    /// One word: zero if the key does not have it.
    pub const fn word(&self, index: usize) -> u64 {
        let bit = 1 << index;
        if self.map & bit == 0 {
            return 0;
        }
        self.words[(self.map & (bit - 1)).count_ones() as usize]
    }

    /// Iterates over the words with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        bits(self.map).zip(self.words.iter().copied())
    }

    /// The full form.
    pub fn expand(&self) -> FlowKey {
        let mut key = FlowKey::new();
        for (i, word) in self.iter() {
            key.set_word(i, word);
        }
        key
    }

    /// The full form, as a mask.
    pub fn expand_mask(&self) -> FlowMask {
        let mut mask = FlowMask::new();
        for (i, word) in self.iter() {
            mask.set_word(i, word);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot;

    #[test]
    fn the_compact_form_keeps_every_value() {
        let mut key = FlowKey::new();
        key.set(slot::TP_DST, 80);
        key.set(slot::NSH_C4, 7);
        let mini = MiniKey::new(&key);
        assert_eq!(mini.expand(), key);
        assert!((0..crate::KEY_WORDS).all(|i| mini.word(i) == key.word(i)));
    }

    #[test]
    fn a_key_under_a_mask_has_the_masks_shape() {
        let mut mask = FlowMask::new();
        mask.set_exact(slot::TP_DST);
        let mini = MiniKey::under(&FlowKey::new(), &mask);
        assert_eq!((mini.map(), mini.words()), (mask.map(), &[0u64][..]));
    }
}
