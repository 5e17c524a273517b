//! Which rule makes way when a table is full.
//!
//! Only rules with a timeout do.  Those that agree in the configured fields form a
//! group; the largest group loses its rule of least importance, and among those the one that
//! expires first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Instant;
use hashbrown::HashMap;
use of_wire::Subfield;

use crate::rule::{Rule, RuleId};

type Group = Box<[u128]>;

/// What orders the rules of a group; the deadline is as it was when the rule was last
/// looked at.
type Rank = (u16, Instant, RuleId);

#[derive(Debug)]
pub(crate) struct Evictor {
    fields: Vec<Subfield>,
    groups: BTreeMap<Group, BTreeMap<Rank, Arc<Rule>>>,
    by_size: BTreeSet<(usize, Group)>,
    places: HashMap<RuleId, (Group, Rank), foldhash::fast::FixedState>,
}

impl Evictor {
    pub(crate) fn new(fields: &[Subfield]) -> Self {
        Self {
            fields: fields.to_vec(),
            groups: BTreeMap::new(),
            by_size: BTreeSet::new(),
            places: HashMap::default(),
        }
    }

    fn group_of(&self, rule: &Rule) -> Group {
        let full = rule.matching();
        let values = self.fields.iter().map(|f| f.read(full.key()));
        values.map(Option::unwrap_or_default).collect()
    }

    /// Takes note of `rule`, in the place of its older version.
    pub(crate) fn add(&mut self, rule: &Arc<Rule>) {
        self.remove(rule);
        if rule.is_hidden() || rule.deadline() == Instant::MAX {
            return;
        }
        let group = self.group_of(rule);
        let rank = (rule.importance, rule.deadline(), rule.id);
        let members = self.groups.entry(group.clone()).or_default();
        self.by_size.remove(&(members.len(), group.clone()));
        members.insert(rank, Arc::clone(rule));
        self.by_size.insert((members.len(), group.clone()));
        self.places.insert(rule.id, (group, rank));
    }

    pub(crate) fn remove(&mut self, rule: &Rule) {
        let Some((group, rank)) = self.places.remove(&rule.id) else {
            return;
        };
        let Some(members) = self.groups.get_mut(&group) else {
            return;
        };
        self.by_size.remove(&(members.len(), group.clone()));
        members.remove(&rank);
        if members.is_empty() {
            self.groups.remove(&group);
        } else {
            self.by_size.insert((members.len(), group));
        }
    }

    /// The rule that should go first.
    pub(crate) fn victim(&mut self) -> Option<Arc<Rule>> {
        loop {
            let (_, group) = self.by_size.last()?;
            let ((importance, at, id), rule) = self.groups.get(group)?.first_key_value()?;
            // A rule that was used since has a later deadline: put it where it belongs.
            if (*importance, *at, *id) == (rule.importance, rule.deadline(), rule.id) {
                return Some(Arc::clone(rule));
            }
            let rule = Arc::clone(rule);
            self.add(&rule);
        }
    }
}
