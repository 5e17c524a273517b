//! Finds the flows that a change of a rule could concern without looking at the others.
//!
//! Flows are grouped by mask.  A rule can only concern those whose key agrees with it in the
//! bits that both match; so a group is hashed by these bits, for each of the last few masks
//! of rules that were asked for.

use std::collections::HashMap;
use std::sync::Arc;

use dp_lang::Ufid;
use net_flow::{FlowMask, Match, MiniKey, slot};
use of_xlate::{BridgeId, Dependencies};

/// In a group of this many flows or fewer, all are looked at.
const SMALL_GROUP: usize = 8;
/// Hashes that are kept for a group.
const MAX_HASHES: usize = 4;

/// Flows by the bits that they share with rules.
#[derive(Debug, Default)]
pub(crate) struct FlowIndex {
    groups: HashMap<Arc<MiniKey>, Group>,
    /// How many flows were looked up in a table otherwise than as they came in.
    later: HashMap<(BridgeId, u8), usize>,
}

/// The flows of one mask.
#[derive(Debug, Default)]
struct Group {
    flows: HashMap<Ufid, Arc<MiniKey>>,
    hashes: Vec<Hashed>,
}

/// The flows of a group by the bits of `common`.
#[derive(Debug)]
struct Hashed {
    common: FlowMask,
    flows: HashMap<Box<[u64]>, Vec<Ufid>>,
}

/// The bits of a key that `mask` has.
fn words(key: impl Fn(usize) -> u64, mask: &FlowMask) -> Box<[u64]> {
    mask.iter().map(|(index, m)| key(index) & m).collect()
}

impl Hashed {
    fn add(&mut self, ufid: Ufid, key: &MiniKey) {
        let words = words(|index| key.word(index), &self.common);
        self.flows.entry(words).or_default().push(ufid);
    }

    fn remove(&mut self, ufid: Ufid, key: &MiniKey) {
        let words = words(|index| key.word(index), &self.common);
        if let Some(flows) = self.flows.get_mut(&words) {
            flows.retain(|f| *f != ufid);
            if flows.is_empty() {
                self.flows.remove(&words);
            }
        }
    }
}

impl Group {
    fn add(&mut self, ufid: Ufid, key: &Arc<MiniKey>) {
        if self.flows.insert(ufid, Arc::clone(key)).is_none() {
            for hashed in &mut self.hashes {
                hashed.add(ufid, key);
            }
        }
    }

    fn remove(&mut self, ufid: Ufid) {
        if let Some(key) = self.flows.remove(&ufid) {
            for hashed in &mut self.hashes {
                hashed.remove(ufid, &key);
            }
        }
    }

    /// The flows by the bits of `common`, which are hashed now if they were not.
    fn hashed(&mut self, common: FlowMask) -> &Hashed {
        let known = self.hashes.iter().position(|h| h.common == common);
        let hashed = match known {
            Some(at) => self.hashes.remove(at),
            None => {
                let flows = HashMap::new();
                let mut hashed = Hashed { common, flows };
                for (ufid, key) in &self.flows {
                    hashed.add(*ufid, key);
                }
                hashed
            }
        };
        if self.hashes.len() == MAX_HASHES {
            self.hashes.remove(0);
        }
        self.hashes.push(hashed);
        &self.hashes[self.hashes.len() - 1]
    }
}

/// The bits that a rule and the flows of a mask both match in packets as they come in.
fn common_bits(rule: &FlowMask, flows: &MiniKey) -> FlowMask {
    let mut common = FlowMask::new();
    for (index, bits) in rule.iter() {
        common.set_word(index, bits & flows.word(index));
    }
    // Flows have the datapath's number there.
    common.set(slot::IN_PORT, 0);
    common
}

impl FlowIndex {
    /// Adds a flow.
    pub(crate) fn add(
        &mut self,
        ufid: Ufid,
        (key, mask): (&Arc<MiniKey>, &Arc<MiniKey>),
        depends: &Dependencies,
    ) {
        let group = self.groups.entry(Arc::clone(mask)).or_default();
        group.add(ufid, key);
        self.add_lookups(depends);
    }

    /// Removes a flow of that mask.
    pub(crate) fn remove(&mut self, ufid: Ufid, mask: &Arc<MiniKey>, depends: &Dependencies) {
        if let Some(group) = self.groups.get_mut(mask) {
            group.remove(ufid);
            if group.flows.is_empty() {
                self.groups.remove(mask);
            }
        }
        self.remove_lookups(depends);
    }

    /// The mask, shared with other flows if there are any.
    pub(crate) fn share_mask(&self, mask: &Arc<MiniKey>) -> Arc<MiniKey> {
        let shared = self.groups.get_key_value(mask).map(|(shared, _)| shared);
        Arc::clone(shared.unwrap_or(mask))
    }

    /// A flow has these lookups, too.
    pub(crate) fn add_lookups(&mut self, depends: &Dependencies) {
        for lookup in depends.lookups.iter().filter(|l| !l.is_of_original()) {
            *self.later.entry((lookup.bridge, lookup.table)).or_default() += 1;
        }
    }

    /// A flow no longer has these lookups.
    pub(crate) fn remove_lookups(&mut self, depends: &Dependencies) {
        for lookup in depends.lookups.iter().filter(|l| !l.is_of_original()) {
            let at = (lookup.bridge, lookup.table);
            if let Some(count) = self.later.get_mut(&at) {
                *count -= 1;
                if *count == 0 {
                    self.later.remove(&at);
                }
            }
        }
    }

    /// Whether changed packets were looked up in a table, of which this index knows nothing.
    pub(crate) fn has_later_lookups(&self, bridge: BridgeId, table: u8) -> bool {
        self.later.contains_key(&(bridge, table))
    }

    /// The number of masks.
    pub(crate) fn masks(&self) -> usize {
        self.groups.len()
    }

    /// Adds to `found` the flows whose packets, as they come in, could match a rule; and perhaps some
    /// others.
    pub(crate) fn find(&mut self, matching: &Match, found: &mut Vec<Ufid>) {
        for (mask, group) in &mut self.groups {
            let common = common_bits(matching.mask(), mask);
            if common.is_empty() || group.flows.len() <= SMALL_GROUP {
                found.extend(group.flows.keys());
                continue;
            }
            let wanted = words(|index| matching.key().word(index), &common);
            if let Some(flows) = group.hashed(common).flows.get(&wanted) {
                found.extend(flows);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use net_flow::{FlowKey, Slot};
    use proptest::prelude::*;

    use super::*;

    const SLOTS: [Slot; 4] = [slot::ETH_DST, slot::NW_DST, slot::TP_DST, slot::IN_PORT];

    fn key_and_mask(values: &[(u8, u8)]) -> (FlowKey, FlowMask) {
        let (mut key, mut mask) = (FlowKey::new(), FlowMask::new());
        for (slot, (value, bits)) in SLOTS.into_iter().zip(values) {
            key.set(slot, u128::from(*value));
            mask.set(slot, u128::from(*bits));
        }
        (key, mask)
    }

    fn agree(rule: &(FlowKey, FlowMask), flow: &(Arc<MiniKey>, Arc<MiniKey>)) -> bool {
        let port = (slot::IN_PORT.max() as u64) << slot::IN_PORT.shift;
        rule.1.iter().all(|(index, bits)| {
            let own = if index == usize::from(slot::IN_PORT.word) {
                !port
            } else {
                u64::MAX
            };
            let common = bits & flow.1.word(index) & own;
            (rule.0.word(index) ^ flow.0.word(index)) & common == 0
        })
    }

    proptest! {
        /// What the index finds is what looking at every flow finds, or more in small groups.
        #[test]
        fn every_flow_that_agrees_is_found(
            steps in prop::collection::vec(
                (0u8..3, 0u128..60, 0usize..3, prop::collection::vec((0u8..4, 0u8..4), 4)), 1..200),
            masks in prop::collection::vec(prop::collection::vec((0u8..1, 0u8..4), 4), 3),
        ) {
            let mut index = FlowIndex::default();
            let mut flows: HashMap<Ufid, (Arc<MiniKey>, Arc<MiniKey>)> = HashMap::new();
            let none = Dependencies::default();
            for (step, id, mask, values) in steps {
                let (key, rule_mask) = key_and_mask(&values);
                let ufid = Ufid(id);
                match step {
                    0 => {
                        let mask = key_and_mask(&masks[mask]).1;
                        let mask = index.share_mask(&Arc::new(MiniKey::new(mask.as_key())));
                        let flow = (Arc::new(MiniKey::new(&key)), mask);
                        flows.entry(ufid).or_insert_with(|| {
                            index.add(ufid, (&flow.0, &flow.1), &none);
                            flow
                        });
                    }
                    1 => if let Some((_, mask)) = flows.remove(&ufid) {
                        index.remove(ufid, &mask, &none);
                    },
                    _ => {
                        let mut found = Vec::new();
                        index.find(&Match::new(&key, rule_mask.clone()), &mut found);
                        let wanted = flows.iter().filter(|(_, f)| agree(&(key.clone(), rule_mask.clone()), f));
                        for (wanted, _) in wanted {
                            prop_assert!(found.contains(wanted));
                        }
                        prop_assert!(found.iter().all(|f| flows.contains_key(f)));
                    }
                }
            }
            prop_assert_eq!(index.groups.values().map(|g| g.flows.len()).sum::<usize>(), flows.len());
        }
    }
}
