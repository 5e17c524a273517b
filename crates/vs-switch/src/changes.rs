//! What changed between two views, and which flows depend on it.

use std::collections::BTreeSet;

use net_flow::Match;
use of_switch::{Rule, RuleChange};
use of_xlate::{BridgeId, Lookup};

use crate::megaflow::Megaflow;

/// With more changes of rules than this, looking at each costs more than it saves.
const MAX_RULES: usize = 4096;

/// A rule that came, went or changed.
#[derive(Debug)]
pub(crate) struct ChangedRule {
    pub(crate) bridge: BridgeId,
    pub(crate) table: u8,
    priority: i32,
    /// Whether it is a clause of a conjunction, which answers whatever its priority.
    pub(crate) is_clause: bool,
    pub(crate) matching: Match,
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

    /// The rules that changed, if nothing else did.
    pub(crate) fn rules_only(&self) -> Option<&[ChangedRule]> {
        (!self.everything && self.macs.is_empty()).then_some(&self.rules)
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
        flow.dependencies.lookups.iter().any(|lookup| {
            lookup.bridge == self.bridge
                && lookup.table == self.table
                && (self.is_clause
                    || self.priority >= lookup.priority && self.may_match(lookup, flow))
        })
    }

    fn may_match(&self, lookup: &Lookup, flow: &Megaflow) -> bool {
        let (key, mask) = (self.matching.key(), self.matching.mask());
        lookup.may_match(key, mask.iter(), &flow.key, &flow.mask)
    }
}
