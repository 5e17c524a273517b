//! What changed between two views, and which flows depend on it.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use net_flow::Match;
use of_switch::{Change, Rule};
use of_xlate::{BridgeId, Lookup};

use crate::megaflow::Megaflow;

/// With more changes of rules than this, looking at each costs more than it saves.
const MAX_RULES: usize = 4096;

/// A rule that came, went or changed.
#[derive(Debug)]
pub(crate) struct ChangedRule {
    pub(crate) bridge: BridgeId,
    rule: Arc<Rule>,
    /// Spelt out only if flows are asked about, which is not where rules change, and large.
    matching: OnceCell<Box<Match>>,
}

/// What changed since flows were checked.
#[derive(Debug, Default)]
pub(crate) struct ViewChanges {
    /// Anything may have.
    everything: bool,
    /// Stations of these bridges were learned or forgotten.
    macs: BTreeSet<BridgeId>,
    /// These groups of bridges are others now.
    groups: BTreeSet<(BridgeId, u32)>,
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

    /// Rules or groups of a bridge changed.
    pub(crate) fn note_tables(&mut self, bridge: BridgeId, changes: &[Change]) {
        if self.everything || self.rules.len() + changes.len() > MAX_RULES {
            self.everything = true;
            self.rules.clear();
            return;
        }
        for change in changes {
            match change {
                Change::Added(rule) | Change::Removed(rule, _) => {
                    self.rules.push(ChangedRule::new(bridge, rule));
                }
                Change::Modified(old, new) => {
                    self.rules.push(ChangedRule::new(bridge, new));
                    if is_clause(old) {
                        self.rules.push(ChangedRule::new(bridge, old));
                    }
                }
                Change::Group(id, ..) => {
                    self.groups.insert((bridge, *id));
                }
            }
        }
    }

    /// Adds what else changed.
    pub(crate) fn join(&mut self, other: Self) {
        self.macs.extend(other.macs);
        self.groups.extend(other.groups);
        if self.everything || other.everything || self.rules.len() + other.rules.len() > MAX_RULES {
            self.everything = true;
            self.rules.clear();
        } else {
            self.rules.extend(other.rules);
        }
    }

    /// The rules that changed, if nothing else did.
    pub(crate) fn rules_only(&self) -> Option<&[ChangedRule]> {
        let others = self.everything || !self.macs.is_empty() || !self.groups.is_empty();
        (!others).then_some(&self.rules)
    }

    /// Whether a flow may have to do something else now.
    pub(crate) fn affect(&self, flow: &Megaflow) -> bool {
        let depends = &flow.dependencies;
        self.everything
            || depends.mac_tables.iter().any(|b| self.macs.contains(b))
            || depends.groups.iter().any(|g| self.groups.contains(g))
            || self.rules.iter().any(|rule| rule.affects(flow))
    }
}

/// Thousands of them are noted between two publications.
const _: () = assert!(size_of::<ChangedRule>() <= 40);

fn is_clause(rule: &Rule) -> bool {
    !net_classifier::Rule::conjunctions(rule).is_empty()
}

impl ChangedRule {
    fn new(bridge: BridgeId, rule: &Arc<Rule>) -> Self {
        Self {
            bridge,
            rule: Arc::clone(rule),
            matching: OnceCell::new(),
        }
    }

    /// The table that it is or was in.
    pub(crate) fn table(&self) -> u8 {
        self.rule.table
    }

    /// Whether it is a clause of a conjunction, which answers whatever its priority.
    pub(crate) fn is_clause(&self) -> bool {
        is_clause(&self.rule)
    }

    /// What it matches.
    pub(crate) fn matching(&self) -> &Match {
        self.matching.get_or_init(|| Box::new(self.rule.matching()))
    }

    fn affects(&self, flow: &Megaflow) -> bool {
        flow.dependencies.lookups.iter().any(|lookup| {
            lookup.bridge == self.bridge
                && lookup.table == self.rule.table
                && (self.is_clause()
                    || self.rule.priority >= lookup.priority && self.may_match(lookup, flow))
        })
    }

    fn may_match(&self, lookup: &Lookup, flow: &Megaflow) -> bool {
        let (key, mask) = (self.matching().key(), self.matching().mask());
        lookup.may_match(key, mask.iter(), &flow.key, &flow.mask)
    }
}
