//! What changed between two views, and which flows depend on it.

use std::collections::BTreeSet;

use net_flow::{Match, PortNo, slot};
use of_switch::{Rule, RuleChange};
use of_xlate::BridgeId;

use crate::megaflow::Megaflow;

/// With more changes of rules than this, looking at each costs more than it saves.
const MAX_RULES: usize = 256;

/// A rule that came, went or changed.
#[derive(Debug)]
struct ChangedRule {
    bridge: BridgeId,
    table: u8,
    priority: i32,
    /// Whether it is a clause of a conjunction, which answers whatever its priority.
    is_clause: bool,
    matching: Match,
}

/// What changed since flows were checked.
#[derive(Debug, Default)]
pub(crate) struct ViewChanges {
    /// Anything may have.
    everything: bool,
    /// Stations of these bridges were learned or forgotten.
    macs: BTreeSet<BridgeId>,
    rules: Vec<ChangedRule>,
}

impl ViewChanges {
    /// Ports or settings changed: everything may be different.
    pub(crate) const fn note_everything(&mut self) {
        self.everything = true;
    }

    /// Stations of a bridge were learned or forgotten.
    pub(crate) fn note_macs(&mut self, bridge: BridgeId) {
        self.macs.insert(bridge);
    }

    /// Rules of a bridge changed.
    pub(crate) fn note_rules(&mut self, bridge: BridgeId, changes: &[RuleChange]) {
        if self.everything || self.rules.len() + changes.len() > MAX_RULES {
            self.everything = true;
            self.rules.clear();
            return;
        }
        for change in changes {
            match change {
                RuleChange::Added(rule) | RuleChange::Removed(rule, _) => {
                    self.rules.push(changed(bridge, rule));
                }
                RuleChange::Modified(old, new) => {
                    self.rules.push(changed(bridge, new));
                    if !of_switch_conjunctions(old).is_empty() {
                        self.rules.push(changed(bridge, old));
                    }
                }
            }
        }
    }

    /// Adds what else changed.
    pub(crate) fn join(&mut self, other: Self) {
        self.macs.extend(other.macs);
        if self.everything || other.everything || self.rules.len() + other.rules.len() > MAX_RULES {
            self.everything = true;
            self.rules.clear();
        } else {
            self.rules.extend(other.rules);
        }
    }

    /// Whether a flow may have to do something else now.
    pub(crate) fn affect(&self, flow: &Megaflow) -> bool {
        let depends = &flow.dependencies;
        self.everything
            || depends.mac_tables.iter().any(|b| self.macs.contains(b))
            || self.rules.iter().any(|rule| rule.affects(flow))
    }
}

fn of_switch_conjunctions(rule: &Rule) -> &[net_classifier::Conjunction] {
    net_classifier::Rule::conjunctions(rule)
}

fn changed(bridge: BridgeId, rule: &Rule) -> ChangedRule {
    ChangedRule {
        bridge,
        table: rule.table,
        priority: rule.priority,
        is_clause: !of_switch_conjunctions(rule).is_empty(),
        matching: rule.matching(),
    }
}

impl ChangedRule {
    fn affects(&self, flow: &Megaflow) -> bool {
        let mut lookups = flow.dependencies.lookups.iter().enumerate();
        lookups.any(|(index, lookup)| {
            lookup.bridge == self.bridge
                && lookup.table == self.table
                && (self.is_clause || self.priority >= lookup.priority)
                // The first lookup is of the packet as it came in.
                && (index > 0 || self.is_clause || self.overlaps(flow))
        })
    }

    /// Whether some packet of the flow, as it comes in, could match the rule.
    fn overlaps(&self, flow: &Megaflow) -> bool {
        let in_port = slot::IN_PORT;
        let (key, mask) = (self.matching.key(), self.matching.mask());
        let same_port = mask.get(in_port) == 0 || PortNo(key.get(in_port) as u32) == flow.in_port;
        same_port
            && mask.iter().all(|(index, bits)| {
                let mut common = bits & flow.mask.word(index);
                if index == usize::from(in_port.word) {
                    // The flow has the datapath's number there.
                    common &= !((in_port.max() as u64) << in_port.shift);
                }
                (key.word(index) ^ flow.key.word(index)) & common == 0
            })
    }
}
