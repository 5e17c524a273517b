//! The rules that match under one mask.

use std::sync::Arc;

use net_flow::{FlowKey, FlowMask, MiniKey, Slot, slot};

use crate::hamt::{Counts, Hamt};
use crate::stage::{Hash, Stage, stages};
use crate::trie::{Found, Trie};
use crate::{MiniMatch, Rule};

/// The name of a subtable, unique for the life of a classifier and its clones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubtableId(pub u32);

/// Rules whose values have the same hash, highest priority first.
#[derive(Debug)]
pub(crate) enum Bucket<T> {
    One(Arc<T>),
    Many(Arc<Vec<Arc<T>>>),
}

impl<T> Clone for Bucket<T> {
    fn clone(&self) -> Self {
        match self {
            Self::One(rule) => Self::One(Arc::clone(rule)),
            Self::Many(rules) => Self::Many(Arc::clone(rules)),
        }
    }
}

impl<T> Bucket<T> {
    pub(crate) fn rules(&self) -> &[Arc<T>] {
        match self {
            Self::One(rule) => std::slice::from_ref(rule),
            Self::Many(rules) => rules,
        }
    }
}

/// The answer of a prefix trie for the key that is being looked up, asked for at need.
#[derive(Debug, Default)]
pub(crate) struct PrefixState {
    found: Option<Found>,
}

/// A field whose prefixes are tracked over all rules.
#[derive(Clone, Debug)]
pub(crate) struct Prefixes {
    pub(crate) slot: Slot,
    pub(crate) trie: Trie,
}

/// The value of a slot at the top of 128 bits.
pub(crate) const fn at_top(value: u128, slot: Slot) -> u128 {
    value << (128 - slot.bits)
}

/// The length of a mask that is a prefix of a field `width` bits wide, else 0.
pub(crate) const fn prefix_length(mask: u128, width: u8) -> u8 {
    let top = mask << (128 - width);
    let length = top.leading_ones() as u8;
    if length.wrapping_add(top.trailing_zeros() as u8) == 128 || top == u128::MAX {
        length
    } else {
        0
    }
}

/// The mask of the first `bits` bits of `slot`.
const fn leading(slot: Slot, bits: u8) -> u128 {
    let low = slot.bits - bits;
    if low >= 128 {
        0
    } else {
        slot.max() >> low << low
    }
}

/// Both L4 ports as one value.
const PORTS: Slot = Slot::new(slot::TP_DST.word, slot::TP_DST.shift, 32);

/// Rules under one mask.
#[derive(Debug)]
pub(crate) struct Subtable<T> {
    pub(crate) id: SubtableId,
    pub(crate) mask: Arc<MiniKey>,
    stages: Arc<[Stage]>,
    /// For each stage but the last: how often each hash of the words so far occurs.
    indices: Vec<Counts>,
    rules: Hamt<Bucket<T>>,
    pub(crate) count: usize,
    priorities: Trie,
    ports_mask: u32,
    ports: Trie,
    /// For each tracked field, the length of the prefix that the mask has in it, or 0.
    prefix_lengths: Vec<u8>,
}

impl<T> Clone for Subtable<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            mask: Arc::clone(&self.mask),
            stages: Arc::clone(&self.stages),
            indices: self.indices.clone(),
            rules: self.rules.clone(),
            count: self.count,
            priorities: self.priorities.clone(),
            ports_mask: self.ports_mask,
            ports: self.ports.clone(),
            prefix_lengths: self.prefix_lengths.clone(),
        }
    }
}

/// A priority as a value for a trie, in which larger is higher.
const fn priority_value(priority: i32) -> u128 {
    ((priority as u32 ^ 0x8000_0000) as u128) << 96
}

impl<T: Rule> Subtable<T> {
    pub(crate) fn new(id: SubtableId, mask: Arc<MiniKey>, prefixes: &[Prefixes]) -> Self {
        let stages: Arc<[Stage]> = stages(&mask).into();
        let full = mask.expand_mask();
        let mut subtable = Self {
            id,
            mask,
            indices: stages.iter().skip(1).map(|_| Counts::new()).collect(),
            stages,
            rules: Hamt::new(),
            count: 0,
            priorities: Trie::default(),
            ports_mask: full.get(PORTS) as u32,
            ports: Trie::default(),
            prefix_lengths: Vec::new(),
        };
        subtable.track(prefixes);
        subtable
    }

    /// Takes note of the fields whose prefixes are tracked.
    pub(crate) fn track(&mut self, prefixes: &[Prefixes]) {
        let mask = self.mask.expand_mask();
        let lengths = prefixes
            .iter()
            .map(|p| prefix_length(mask.get(p.slot), p.slot.bits));
        self.prefix_lengths = lengths.collect();
    }

    pub(crate) fn prefix_lengths(&self) -> &[u8] {
        &self.prefix_lengths
    }

    /// The highest priority of a rule here.
    pub(crate) fn max_priority(&self) -> Option<i32> {
        let top = self.priorities.max()?;
        Some(((top >> 96) as u32 ^ 0x8000_0000) as i32)
    }

    /// The hashes of values at the end of each stage, the last one last.
    fn hashes(&self, values: &[u64]) -> impl Iterator<Item = u32> {
        let mut hash = Hash::START;
        self.stages.iter().map(move |stage| {
            for word in &stage.words {
                hash.add(values[usize::from(word.position)]);
            }
            hash.finish()
        })
    }

    /// How many bits of the ports count for the trie of ports.
    const fn ports_bits(&self) -> u8 {
        32 - self.ports_mask.trailing_zeros() as u8
    }

    fn ports_of(&self, rule: &MiniMatch) -> u128 {
        let value = rule.words().find(|(i, _, _)| *i == usize::from(PORTS.word));
        let word = value.map_or(0, |(_, _, v)| v);
        (u128::from(word) >> PORTS.shift & u128::from(self.ports_mask)) << 96
    }

    /// Adds a rule, and returns the one of the same match and priority that it replaces.
    pub(crate) fn insert(&mut self, rule: Arc<T>) -> Option<Arc<T>> {
        let hashes: Vec<u32> = self.hashes(rule.mini_match().values()).collect();
        let last = *hashes.last()?;
        if let Some(bucket) = self.rules.get_mut(last) {
            let same = |r: &T| {
                r.priority() == rule.priority()
                    && r.mini_match().values() == rule.mini_match().values()
            };
            let mut rules = bucket.rules().to_vec();
            if let Some(at) = rules.iter().position(|r| same(r)) {
                let old = std::mem::replace(&mut rules[at], rule);
                *bucket = match rules.pop() {
                    Some(only) if rules.is_empty() => Bucket::One(only),
                    Some(last) => {
                        rules.push(last);
                        Bucket::Many(Arc::new(rules))
                    }
                    None => return None,
                };
                return Some(old);
            }
            let at = rules.partition_point(|r| r.priority() >= rule.priority());
            rules.insert(at, Arc::clone(&rule));
            *bucket = Bucket::Many(Arc::new(rules));
        } else {
            self.rules.insert(last, Bucket::One(Arc::clone(&rule)));
        }
        for (index, hash) in self.indices.iter_mut().zip(&hashes) {
            index.add(*hash);
        }
        self.count += 1;
        self.priorities.insert(priority_value(rule.priority()), 32);
        if self.ports_mask != 0 {
            let ports = self.ports_of(rule.mini_match());
            self.ports.insert(ports, self.ports_bits());
        }
        None
    }

    /// Takes a rule out.
    pub(crate) fn remove(&mut self, values: &[u64], priority: i32) -> Option<Arc<T>> {
        let hashes: Vec<u32> = self.hashes(values).collect();
        let last = *hashes.last()?;
        let bucket = self.rules.get(last)?;
        let same = |r: &T| r.priority() == priority && r.mini_match().values() == values;
        let at = bucket.rules().iter().position(|r| same(r))?;
        let mut rules = bucket.rules().to_vec();
        let rule = rules.remove(at);
        match rules.pop() {
            None => {
                self.rules.remove(last);
            }
            Some(other) => {
                if let Some(bucket) = self.rules.get_mut(last) {
                    *bucket = if rules.is_empty() {
                        Bucket::One(other)
                    } else {
                        rules.push(other);
                        Bucket::Many(Arc::new(rules))
                    };
                }
            }
        }
        for (index, hash) in self.indices.iter_mut().zip(&hashes) {
            index.take(*hash);
        }
        self.count -= 1;
        self.priorities.remove(priority_value(priority), 32);
        if self.ports_mask != 0 {
            let ports = self.ports_of(rule.mini_match());
            self.ports.remove(ports, self.ports_bits());
        }
        Some(rule)
    }

    /// The rules with these values, highest priority first.
    pub(crate) fn with_values<'a, 'b>(
        &'a self,
        values: &'b [u64],
    ) -> impl Iterator<Item = &'a Arc<T>> + use<'a, 'b, T> {
        let bucket = self.hashes(values).last().and_then(|h| self.rules.get(h));
        let rules = bucket.map_or(&[][..], Bucket::rules);
        rules
            .iter()
            .filter(move |r| r.mini_match().values() == values)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.rules.iter().flat_map(|bucket| bucket.rules())
    }

    /// Whether the rules' values of the mask's words are those of `key`.
    fn same(&self, rule: &T, key: &FlowKey) -> bool {
        let words = self.mask.iter().zip(rule.mini_match().values());
        words.into_iter().all(|((i, m), v)| key.word(i) & m == *v)
    }

    /// The highest rule here that matches `key`, without a report.
    pub(crate) fn lookup_plain(&self, key: &FlowKey) -> Option<&Arc<T>> {
        let mut hash = Hash::START;
        let words = self.stages.iter().flat_map(|stage| &stage.words);
        for word in words {
            hash.add(key.word(usize::from(word.index)) & word.mask);
        }
        let bucket = self.rules.get(hash.finish())?;
        bucket.rules().iter().find(|r| self.same(r, key))
    }

    /// The highest rule here that matches `key`; the bits that mattered are added to `wc`.
    pub(crate) fn lookup(
        &self,
        key: &FlowKey,
        prefixes: &[Prefixes],
        state: &mut [PrefixState],
        wc: &mut FlowMask,
    ) -> Option<&Arc<T>> {
        let mut hash = Hash::START;
        for (n, stage) in self.stages.iter().enumerate() {
            if self.ruled_out(stage, key, prefixes, state, wc) {
                self.note(&self.stages[..n], wc);
                return None;
            }
            for word in &stage.words {
                hash.add(key.word(usize::from(word.index)) & word.mask);
            }
            if let Some(index) = self.indices.get(n)
                && !index.contains(hash.finish())
            {
                self.note(&self.stages[..=n], wc);
                return None;
            }
        }
        let bucket = self.rules.get(hash.finish());
        let rule = bucket.and_then(|b| b.rules().iter().find(|r| self.same(r, key)));
        if rule.is_none() && self.ports_mask != 0 {
            let before = wc.get(PORTS);
            self.note(&self.stages, wc);
            let mask = u128::from(self.ports_mask);
            let found = self.ports.lookup((key.get(PORTS) & mask) << 96, 32);
            wc.set(PORTS, before | mask & leading(PORTS, found.bits));
        } else {
            self.note(&self.stages, wc);
        }
        rule
    }

    /// Adds the bits of these stages to `wc`.
    fn note(&self, stages: &[Stage], wc: &mut FlowMask) {
        for word in stages.iter().flat_map(|stage| &stage.words) {
            let index = usize::from(word.index);
            wc.set_word(index, wc.word(index) | word.mask);
        }
    }

    /// Whether a prefix trie tells that no rule here can match, at no greater cost in
    /// bits than looking would have; those bits are added to `wc`.
    fn ruled_out(
        &self,
        stage: &Stage,
        key: &FlowKey,
        prefixes: &[Prefixes],
        state: &mut [PrefixState],
        wc: &mut FlowMask,
    ) -> bool {
        for ((field, state), length) in prefixes.iter().zip(state).zip(&self.prefix_lengths) {
            let slot = field.slot;
            if *length == 0 || stage.map >> slot.word & 1 == 0 {
                continue;
            }
            let found = *state
                .found
                .get_or_insert_with(|| field.trie.lookup(at_top(key.get(slot), slot), slot.bits));
            if found.has(*length) {
                continue;
            }
            let needed = leading(slot, found.bits);
            if found.bits <= *length {
                wc.add(slot, needed);
                return true;
            }
            if needed & !wc.get(slot) == 0 {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_prefixes() {
        assert_eq!(prefix_length(0xffff_ff00, 32), 24);
        assert_eq!(prefix_length(0xffff_ffff, 32), 32);
        assert_eq!(prefix_length(0, 32), 0);
        assert_eq!(prefix_length(0xff00_ff00, 32), 0);
        assert_eq!(prefix_length(0x00ff_ffff, 32), 0);
        assert_eq!(prefix_length(u128::MAX, 128), 128);
        assert_eq!(prefix_length(1 << 127, 128), 1);
        assert_eq!(leading(slot::NW_SRC, 8), 0xff00_0000);
        assert_eq!(leading(slot::IPV6_SRC, 0), 0);
    }
}
