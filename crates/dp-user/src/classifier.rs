//! Megaflow lookup: a hash table for each mask.  Megaflows do not overlap, so the first hit is the one.

use std::sync::Arc;

use hashbrown::HashTable;
use net_flow::{FlowKey, MiniKey};

use crate::flow::Megaflow;
use base::hash::hash_words;

/// Look-ups after which the tables are put in the order of their hits.
const SORT_EVERY: u32 = 4096;

#[derive(Debug)]
struct Subtable {
    mask: MiniKey,
    /// The mask's words, with their places.
    words: Box<[(u8, u64)]>,
    flows: HashTable<(u64, Arc<Megaflow>)>,
    hits: u32,
}

impl Subtable {
    fn new(mask: &MiniKey) -> Self {
        Self {
            mask: mask.clone(),
            words: mask.iter().map(|(i, word)| (i as u8, word)).collect(),
            flows: HashTable::new(),
            hits: 0,
        }
    }

    fn find(&self, seed: u64, key: &FlowKey) -> Option<&Arc<Megaflow>> {
        let masked = |(i, mask): &(u8, u64)| key.word(usize::from(*i)) & mask;
        let hash = hash_words(seed, self.words.iter().map(masked));
        let same = |(h, flow): &(u64, Arc<Megaflow>)| {
            let mut pairs = self.words.iter().zip(flow.key.words());
            *h == hash && !flow.is_dead() && pairs.all(|(word, value)| masked(word) == *value)
        };
        self.flows.find(hash, same).map(|(_, flow)| flow)
    }
}

/// The megaflows of one thread.
#[derive(Debug)]
pub(crate) struct Classifier {
    seed: u64,
    subtables: Vec<Subtable>,
    until_sort: u32,
    /// Subtables looked at in all.
    pub(crate) visited: u64,
}

impl Classifier {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            seed,
            subtables: Vec::new(),
            until_sort: SORT_EVERY,
            visited: 0,
        }
    }

    /// The flow that a key meets.
    pub(crate) fn find(&mut self, key: &FlowKey) -> Option<Arc<Megaflow>> {
        self.until_sort -= 1;
        if self.until_sort == 0 {
            self.sort();
        }
        for subtable in &mut self.subtables {
            self.visited += 1;
            let found = subtable.find(self.seed, key).cloned();
            if found.is_some() {
                subtable.hits = subtable.hits.saturating_add(1);
                return found;
            }
        }
        None
    }

    /// Puts the tables that are hit most to the front; older hits count half at each time.
    fn sort(&mut self) {
        self.until_sort = SORT_EVERY;
        self.subtables.sort_by_key(|t| std::cmp::Reverse(t.hits));
        for subtable in &mut self.subtables {
            subtable.hits /= 2;
        }
    }

    fn hash(&self, flow: &Megaflow) -> u64 {
        hash_words(self.seed, flow.key.words().iter().copied())
    }

    /// Adds a flow; its key has the shape of its mask.
    pub(crate) fn insert(&mut self, flow: Arc<Megaflow>) {
        let hash = self.hash(&flow);
        let at = self.subtables.iter().position(|t| t.mask == flow.mask);
        let at = at.unwrap_or_else(|| {
            self.subtables.push(Subtable::new(&flow.mask));
            self.subtables.len() - 1
        });
        let flows = &mut self.subtables[at].flows;
        flows.insert_unique(hash, (hash, flow), |(hash, _)| *hash);
    }

    /// All flows, those that were removed and not yet taken out included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Megaflow>> {
        let tables = self.subtables.iter();
        tables.flat_map(|t| t.flows.iter().map(|(_, flow)| flow))
    }

    /// Takes a flow out.
    pub(crate) fn remove(&mut self, flow: &Arc<Megaflow>) {
        let hash = self.hash(flow);
        let Some(at) = self.subtables.iter().position(|t| t.mask == flow.mask) else {
            return;
        };
        let flows = &mut self.subtables[at].flows;
        if let Ok(entry) = flows.find_entry(hash, |(_, f)| Arc::ptr_eq(f, flow)) {
            entry.remove();
        }
        if flows.is_empty() {
            self.subtables.remove(at);
        }
    }

    /// Takes all flows out that were removed.
    pub(crate) fn sweep(&mut self) {
        for subtable in &mut self.subtables {
            subtable.flows.retain(|(_, flow)| !flow.is_dead());
        }
        self.subtables.retain(|t| !t.flows.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use dp_lang::Ufid;
    use net_flow::{FlowMask, slot};
    use proptest::prelude::*;

    use super::*;
    use crate::cache::Cache;
    use crate::flow::Matching;

    const SLOTS: [slot::Slot; 4] = [slot::IN_PORT, slot::NW_SRC, slot::TP_DST, slot::IPV6_DST];

    fn key(values: [u8; 4]) -> FlowKey {
        let mut key = FlowKey::new();
        for (slot, value) in SLOTS.into_iter().zip(values) {
            key.set(slot, u128::from(value));
        }
        key
    }

    fn mask(values: [u8; 4]) -> FlowMask {
        let mut mask = FlowMask::new();
        for (slot, value) in SLOTS.into_iter().zip(values) {
            mask.set(slot, u128::from(value));
        }
        mask
    }

    fn flow(k: [u8; 4], m: [u8; 4]) -> Arc<Megaflow> {
        let matching = Matching::new(&key(k), &mask(m));
        let ufid = Ufid::of(&matching.key, &matching.mask);
        Arc::new(Megaflow::new(ufid, matching, Arc::new([])))
    }

    /// All flows in a list.
    fn slow(flows: &[Arc<Megaflow>], key: &FlowKey) -> Vec<Ufid> {
        let live = flows.iter().filter(|f| !f.is_dead());
        let hits = live.filter(|f| {
            let mask = f.mask.expand_mask();
            MiniKey::under(key, &mask) == f.key
        });
        hits.map(|f| f.ufid).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_its_slow_twin(
            flows in proptest::collection::vec((any::<[u8; 4]>(), 0u8..16, any::<bool>()), 0..40),
            keys in proptest::collection::vec(any::<[u8; 4]>(), 1..40),
        ) {
            let mut classifier = Classifier::new(7);
            let mut cache = Cache::default();
            let mut all: Vec<Arc<Megaflow>> = Vec::new();
            for (k, bits, _) in &flows {
                let m = [0, 1, 2, 3].map(|i| if bits >> i & 1 != 0 { 0x1c } else { 0 });
                let flow = flow(*k, m);
                if all.iter().all(|f| f.ufid != flow.ufid) {
                    classifier.insert(flow.clone());
                    all.push(flow);
                }
            }
            let mut check = |classifier: &mut Classifier, all: &[Arc<Megaflow>]| {
                for k in &keys {
                    let key = key(*k);
                    let expected = slow(all, &key);
                    let found = classifier.find(&key);
                    assert_eq!(found.is_some(), !expected.is_empty());
                    let hash = hash_words(9, key.iter().map(|(_, w)| w));
                    let cached = cache.find(&key, hash).map(|f| f.ufid);
                    for ufid in found.iter().map(|f| f.ufid).chain(cached) {
                        assert!(expected.contains(&ufid));
                    }
                    if let Some(found) = found {
                        cache.insert(&key, hash, &found);
                    }
                }
            };
            check(&mut classifier, &all);
            let mut sweeps = false;
            for ((_, _, remove), flow) in flows.iter().zip(&all) {
                if *remove {
                    flow.kill();
                    classifier.remove(flow);
                } else if sweeps {
                    flow.kill();
                }
                sweeps = !sweeps;
            }
            check(&mut classifier, &all);
            classifier.sweep();
            check(&mut classifier, &all);
        }
    }

    #[test]
    fn tables_that_are_hit_come_first() {
        let mut classifier = Classifier::new(1);
        for bits in 1..=8 {
            classifier.insert(flow([bits; 4], [bits, 0, 0, 0]));
        }
        let wanted = key([8, 0, 0, 0]);
        for _ in 0..=SORT_EVERY {
            assert!(classifier.find(&wanted).is_some());
        }
        let before = classifier.visited;
        classifier.find(&wanted);
        assert_eq!(classifier.visited - before, 1);
    }
}
