//! Flow keys and masks: the values of all fields, and which of their bits matter.

use std::hash::{Hash, Hasher};

use crate::slot::Slot;

/// Words of a flow key.
pub const KEY_WORDS: usize = 92;

/// Words in use: bit `n` stands for word `n`.
pub type WordMap = u128;

/// The values of all fields of a packet.  A word that is not in the map is zero.
#[derive(Clone)]
pub struct FlowKey {
    map: WordMap,
    words: [u64; KEY_WORDS],
}

impl Default for FlowKey {
    fn default() -> Self {
        Self {
            map: 0,
            words: [0; KEY_WORDS],
        }
    }
}

impl FlowKey {
    /// A key in which every field is zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The words that may be other than zero.
    pub const fn map(&self) -> WordMap {
        self.map
    }

    /// One word.
    pub const fn word(&self, index: usize) -> u64 {
        self.words[index]
    }

    /// Replaces one word.
    pub const fn set_word(&mut self, index: usize, value: u64) {
        self.words[index] = value;
        if value == 0 {
            self.map &= !(1 << index);
        } else {
            self.map |= 1 << index;
        }
    }

    /// The value in `slot`.
    pub const fn get(&self, slot: Slot) -> u128 {
        let word = slot.word as usize;
        if slot.bits > 64 {
            ((self.words[word] as u128) << 64) | self.words[word + 1] as u128
        } else {
            ((self.words[word] >> slot.shift) as u128) & slot.max()
        }
    }

    /// Replaces the value in `slot`; bits above its width are dropped.
    pub const fn set(&mut self, slot: Slot, value: u128) {
        let word = slot.word as usize;
        let value = value & slot.max();
        if slot.bits > 64 {
            self.set_word(word, (value >> 64) as u64);
            self.set_word(word + 1, value as u64);
        } else {
            let mask = (slot.max() as u64) << slot.shift;
            self.set_word(
                word,
                (self.words[word] & !mask) | ((value as u64) << slot.shift),
            );
        }
    }

    /// Replaces the bits of `slot` that `mask` has.
    pub const fn set_masked(&mut self, slot: Slot, value: u128, mask: u128) {
        let old = self.get(slot);
        self.set(slot, (old & !mask) | (value & mask));
    }

    /// Iterates over the words in use, with their indices, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        bits(self.map).map(|i| (i, self.words[i]))
    }

    /// The key with every bit cleared that `mask` lacks.
    #[must_use]
    pub fn masked(&self, mask: &FlowMask) -> Self {
        let mut key = Self::default();
        for i in bits(self.map & mask.map()) {
            key.set_word(i, self.words[i] & mask.word(i));
        }
        key
    }

    /// Whether both keys agree in every bit that `mask` has.
    pub fn equal_under(&self, other: &Self, mask: &FlowMask) -> bool {
        bits(mask.map()).all(|i| (self.words[i] ^ other.words[i]) & mask.word(i) == 0)
    }
}

impl PartialEq for FlowKey {
    fn eq(&self, other: &Self) -> bool {
        self.map == other.map && bits(self.map).all(|i| self.words[i] == other.words[i])
    }
}

impl Eq for FlowKey {}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.map.hash(state);
        for (_, word) in self.iter() {
            state.write_u64(word);
        }
    }
}

impl std::fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = self.iter().map(|(i, w)| (i, format!("{w:#x}")));
        f.debug_map().entries(words).finish()
    }
}

/// Which bits of a key matter: a set bit is matched exactly.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct FlowMask(FlowKey);

impl FlowMask {
    /// A mask under which every key matches.
    pub fn new() -> Self {
        Self::default()
    }

    /// The words in which some bit matters.
    pub const fn map(&self) -> WordMap {
        self.0.map()
    }

    /// One word.
    pub const fn word(&self, index: usize) -> u64 {
        self.0.word(index)
    }

    /// Replaces one word.
    pub const fn set_word(&mut self, index: usize, value: u64) {
        self.0.set_word(index, value);
    }

    /// The mask of `slot`.
    pub const fn get(&self, slot: Slot) -> u128 {
        self.0.get(slot)
    }

    /// Replaces the mask of `slot`.
    pub const fn set(&mut self, slot: Slot, mask: u128) {
        self.0.set(slot, mask);
    }

    /// Makes the whole of `slot` matter.
    pub const fn set_exact(&mut self, slot: Slot) {
        self.0.set(slot, slot.max());
    }

    /// Makes the bits of `mask` matter in `slot`, and keeps those that do.
    pub const fn add(&mut self, slot: Slot, mask: u128) {
        self.0.set(slot, self.0.get(slot) | mask);
    }

    /// Makes every bit matter that `other` has.
    pub fn union(&mut self, other: &Self) {
        for (i, word) in other.0.iter() {
            self.0.set_word(i, self.0.word(i) | word);
        }
    }

    /// Whether every bit that `other` has matters here too.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.iter().all(|(i, word)| word & !self.0.word(i) == 0)
    }

    /// Whether no bit matters.
    pub const fn is_empty(&self) -> bool {
        self.0.map() == 0
    }

    /// Iterates over the words in use, with their indices, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter()
    }

    /// The mask's bits as a key, for printing values and masks alike.
    pub const fn as_key(&self) -> &FlowKey {
        &self.0
    }
}

/// A key that notes in a mask what was read of it, so that a megaflow can be no wider
/// than what its translation looked at.
#[derive(Debug)]
pub struct Tracked<'a> {
    key: &'a FlowKey,
    mask: &'a mut FlowMask,
}

impl<'a> Tracked<'a> {
    /// Reads of `key` are noted in `mask`.
    pub const fn new(key: &'a FlowKey, mask: &'a mut FlowMask) -> Self {
        Self { key, mask }
    }

    /// The value in `slot`, all of which now matters.
    pub const fn get(&mut self, slot: Slot) -> u128 {
        self.mask.set_exact(slot);
        self.key.get(slot)
    }

    /// The bits of `mask` in `slot`, which now matter.
    pub const fn get_masked(&mut self, slot: Slot, mask: u128) -> u128 {
        self.mask.add(slot, mask);
        self.key.get(slot) & mask
    }
}

/// The indices of the bits that are set, in rising order.
pub fn bits(mut map: WordMap) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if map == 0 {
            return None;
        }
        let index = map.trailing_zeros() as usize;
        map &= map - 1;
        Some(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot;

    #[test]
    fn slots_do_not_disturb_their_neighbours() {
        let mut key = FlowKey::new();
        key.set(slot::ETH_DST, 0x0102_0304_0506);
        key.set(slot::ETH_TYPE, 0x0800);
        key.set(slot::IPV6_SRC, 0xfe80_0000_0000_0000_0000_0000_0000_0001);
        assert_eq!(key.get(slot::ETH_DST), 0x0102_0304_0506);
        assert_eq!(key.get(slot::ETH_TYPE), 0x0800);
        assert_eq!(key.get(slot::IPV6_SRC) as u16, 1);
        key.set(slot::ETH_DST, 0);
        assert_eq!(key.get(slot::ETH_TYPE), 0x0800);
    }

    #[test]
    fn a_zero_word_leaves_the_map() {
        let mut key = FlowKey::new();
        key.set(slot::METADATA, 5);
        key.set(slot::METADATA, 0);
        assert_eq!(key.map(), 0);
        assert_eq!(key, FlowKey::new());
    }

    #[test]
    fn registers_overlap_as_openflow_says() {
        let mut key = FlowKey::new();
        for n in 0..4 {
            key.set(slot::reg(n), u128::from(n) + 1);
        }
        assert_eq!(key.get(slot::xreg(1)), 0x3_0000_0004);
        assert_eq!(key.get(slot::xxreg(0)), 0x1_0000_0002_0000_0003_0000_0004);
    }

    #[test]
    fn reading_through_a_tracked_key_sets_the_mask() {
        let mut key = FlowKey::new();
        key.set(slot::NW_SRC, 0x0a00_0001);
        let mut mask = FlowMask::new();
        let mut tracked = Tracked::new(&key, &mut mask);
        assert_eq!(tracked.get_masked(slot::NW_SRC, 0xff00_0000), 0x0a00_0000);
        assert_eq!(mask.get(slot::NW_SRC), 0xff00_0000);
        assert_eq!(mask.get(slot::NW_DST), 0);
    }
}
