//! What a translation's answer depends on: the lookups that it made, and in which form the
//! packet was looked up.

use std::sync::Arc;

use net_flow::{FlowKey, MiniKey, PortNo, Slot, slot};

use crate::flow::{CONNECTION, is_pipeline_word};
use crate::view::BridgeId;

/// One lookup that a translation made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The bridge.
    pub bridge: BridgeId,
    /// The table.
    pub table: u8,
    /// Priority of the rule that was found, or `i32::MIN`: a change of rules of lower
    /// priority cannot change the answer.
    pub priority: i32,
    /// The input port that was looked up.
    pub in_port: PortNo,
    /// How the key differed from that of the packet as it came in: the bits that had
    /// changed.  None if there were none.
    pub changed: Option<Arc<MiniKey>>,
    /// Whether addresses and ports were those of the connection's first packet.
    pub by_connection: bool,
}

/// What a translation's answer depends on.
#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    /// Its lookups, in order.
    pub lookups: Vec<Lookup>,
    /// The bridges whose MAC tables were asked.
    pub mac_tables: Vec<BridgeId>,
    /// The groups that were asked for, there or not.
    pub groups: Vec<(BridgeId, u32)>,
}

impl Dependencies {
    pub(crate) fn note_macs(&mut self, bridge: BridgeId) {
        if !self.mac_tables.contains(&bridge) {
            self.mac_tables.push(bridge);
        }
    }

    pub(crate) fn note_group(&mut self, bridge: BridgeId, group: u32) {
        if !self.groups.contains(&(bridge, group)) {
            self.groups.push((bridge, group));
        }
    }

    pub(crate) fn note_lookup(&mut self, lookup: Lookup) {
        self.lookups.push(lookup);
    }

    /// How the key of the last lookup differed, to be shared if nothing changed since.
    pub(crate) fn last_changes(&self) -> Option<&Arc<MiniKey>> {
        self.lookups.last()?.changed.as_ref()
    }
}

/// The value of a word of the pipeline when a packet comes in.
const fn initial(index: usize) -> u64 {
    if index == slot::ACTSET_OUTPUT.word as usize {
        PortNo::UNSET.0 as u64
    } else {
        0
    }
}

/// Whether word `index` has a field that a lookup by connection exchanges.
fn in_connection(index: usize) -> bool {
    let covers = |slot: Slot| {
        let first = usize::from(slot.word);
        (first..=first + usize::from(slot.bits > 64)).contains(&index)
    };
    let mut pairs = CONNECTION.iter();
    pairs.any(|(own, first)| covers(*own) || covers(*first))
}

/// The bits in which `key` differs from a packet that came in as `original`, the input port
/// apart.  `last` is shared if that is the answer again.
fn differences(
    original: &FlowKey,
    key: &FlowKey,
    last: Option<&Arc<MiniKey>>,
) -> Option<Arc<MiniKey>> {
    let mut changed = FlowKey::new();
    let used = original.map() | key.map() | 1 << slot::ACTSET_OUTPUT.word;
    for index in net_flow::bits(used) {
        let before = if is_pipeline_word(index) {
            initial(index)
        } else {
            original.word(index)
        };
        let difference = key.word(index) ^ before;
        if difference != 0 {
            changed.set_word(index, difference);
        }
    }
    changed.set(slot::IN_PORT, 0);
    if changed.map() == 0 {
        return None;
    }
    let changed = MiniKey::new(&changed);
    match last {
        Some(last) if **last == changed => Some(Arc::clone(last)),
        _ => Some(Arc::new(changed)),
    }
}

impl Lookup {
    /// A lookup of `key`, where the packet came in with the key `original`.  `last` is shared
    /// if the changes are the same.
    pub(crate) fn of(original: &FlowKey, key: &FlowKey, last: Option<&Arc<MiniKey>>) -> Self {
        Self {
            bridge: BridgeId(0),
            table: 0,
            priority: i32::MIN,
            in_port: PortNo(key.get(slot::IN_PORT) as u32),
            changed: differences(original, key, last),
            by_connection: false,
        }
    }

    /// Whether the lookup of some packet of a megaflow could have met a rule that matches
    /// `rule` under `rule_mask`.  `key` and `mask` are the megaflow's, with whatever input
    /// port.
    ///
    /// What the translation wrote follows from the bits that the megaflow matches, so bits
    /// that had changed are known, as are those of the pipeline, which begin with a fixed
    /// value.
    pub fn may_match(
        &self,
        rule: &FlowKey,
        rule_mask: impl Iterator<Item = (usize, u64)>,
        key: &MiniKey,
        mask: &MiniKey,
    ) -> bool {
        for (index, bits) in rule_mask {
            let changed = self.changed.as_ref().map_or(0, |c| c.word(index));
            let (mut known, mut value) = if is_pipeline_word(index) {
                (u64::MAX, initial(index) ^ changed)
            } else {
                (mask.word(index) | changed, key.word(index) ^ changed)
            };
            if self.by_connection && in_connection(index) {
                // These were the connection's, of which the megaflow may match less than that.
                known = 0;
            }
            if index == usize::from(slot::IN_PORT.word) {
                let port = (slot::IN_PORT.max() as u64) << slot::IN_PORT.shift;
                known |= port;
                value = value & !port | u64::from(self.in_port.0) << slot::IN_PORT.shift;
            }
            if index == usize::from(slot::CONJ_ID.word) {
                // The lookup itself fills it in.
                known &= !((slot::CONJ_ID.max() as u64) << slot::CONJ_ID.shift);
            }
            if (rule.word(index) ^ value) & known & bits != 0 {
                return false;
            }
        }
        true
    }

    /// Whether the packet was looked up as it came in, registers and metadata apart.
    pub fn is_of_original(&self) -> bool {
        !self.by_connection
            && self
                .changed
                .as_ref()
                .is_none_or(|changed| changed.iter().all(|(index, _)| is_pipeline_word(index)))
    }
}
