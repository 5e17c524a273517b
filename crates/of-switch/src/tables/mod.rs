//! The owner's side of the flow tables: changes, timeouts, limits, publication.

mod evict;
mod expiry;
mod flow_mod;
mod groups;
#[cfg(test)]
mod tests;
mod undo;
mod view;

use std::sync::Arc;

use base::Instant;
use net_classifier::{Classifier, DEFAULT_PREFIXES};
use net_flow::{Match, PortNo, Slot};
use of_wire::message::{FlowMod, FlowModFlags, FlowRemovedReason};
use of_wire::{Action, Subfield};

use crate::group::GroupEntry;
use crate::rule::{Rule, RuleId, RuleSpec};
use evict::Evictor;
use expiry::Expiry;

pub use flow_mod::{FlowModRules, check_table};
pub use groups::GroupsView;
pub use view::{TableCounters, TableMiss, TableView, TablesView};

/// Tables of a bridge: 0 to 253 for controllers, 254 for the switch itself.
pub const N_TABLES: usize = 255;

/// The table of rules that the switch needs for itself.  Controllers neither see nor change it.
pub const INTERNAL_TABLE: u8 = 254;

/// How many rules a table may hold when no limit is set, as reported to controllers.
pub const MAX_ENTRIES: u32 = 1_000_000;

/// How one table is set up (the `Flow_Table` columns).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TableSettings {
    /// Its name, or the empty string.
    pub name: String,
    /// How many rules it holds at most.
    pub flow_limit: Option<u32>,
    /// A rule that expires soon makes way for a new one when the table is full.
    pub evict: bool,
    /// Rules that agree in these fields form a group; the largest group loses a rule first.
    pub groups: Vec<Subfield>,
    /// The fields whose prefixes are tracked; `None` for the default.
    pub prefixes: Option<Vec<Slot>>,
}

/// A change of the tables.
#[derive(Clone, Debug)]
pub enum Change {
    /// A rule is new.
    Added(Arc<Rule>),
    /// A rule was replaced by a new one or got other actions: the old and the new version.
    Modified(Arc<Rule>, Arc<Rule>),
    /// A rule is gone.
    Removed(Arc<Rule>, FlowRemovedReason),
    /// The group of this number is another, is new, or is gone: the old and the new one.
    Group(u32, Option<Arc<GroupEntry>>, Option<Arc<GroupEntry>>),
}

/// What a request changed, in order.
pub type Changes = Vec<Change>;

/// Which rules a request is about.
#[derive(Clone, Debug)]
pub struct RuleFilter {
    /// The table; 255 for all that controllers see.
    pub table: u8,
    /// Rules within this match.
    pub matching: Match,
    /// Only the rule of exactly this match and this priority.
    pub strict: Option<i32>,
    /// Rules whose cookie equals this under `cookie_mask`.
    pub cookie: u64,
    /// 0 for rules of any cookie.
    pub cookie_mask: u64,
    /// Rules that send to this port; `PortNo::NONE` for all.
    pub out_port: PortNo,
    /// Rules that use this group; `u32::MAX` for all.
    pub out_group: u32,
}

impl RuleFilter {
    /// Every rule that controllers see.
    pub fn all() -> Self {
        Self {
            table: u8::MAX,
            matching: Match::any(),
            strict: None,
            cookie: 0,
            cookie_mask: 0,
            out_port: PortNo::NONE,
            out_group: u32::MAX,
        }
    }

    /// Whether the filter admits a rule of its tables and its match by its cookie and outputs.
    pub fn admits(&self, rule: &Rule) -> bool {
        (rule.cookie ^ self.cookie) & self.cookie_mask == 0
            && !rule.is_hidden()
            && (self.out_port == PortNo::NONE || outputs_to(&rule.actions, self.out_port))
            && (self.out_group == u32::MAX || uses_group(&rule.actions, self.out_group))
    }

    /// The tables that it is about.
    pub fn tables(&self) -> std::ops::Range<u8> {
        match self.table {
            u8::MAX => 0..INTERNAL_TABLE,
            table => table..table + 1,
        }
    }
}

/// Whether one of `actions`, nested ones included, sends to `port`.
pub fn outputs_to(actions: &[Action], port: PortNo) -> bool {
    actions.iter().any(|action| match action {
        Action::Output(output) => output.port == port,
        Action::Enqueue(enqueue) => enqueue.port == port,
        Action::OutputTrunc(output) => output.port == port,
        Action::Controller(_) => port == PortNo::CONTROLLER,
        Action::Bundle(bundle) => bundle.members.contains(&port),
        Action::WriteActions(actions) | Action::Clone(actions) => outputs_to(actions, port),
        _ => false,
    })
}

/// Whether one of `actions`, nested ones included, hands to group `id`.
pub fn uses_group(actions: &[Action], id: u32) -> bool {
    let mut uses = false;
    for_each_group(actions, &mut |group| uses |= group == id);
    uses
}

/// Calls `each` with every group that `actions`, nested ones included, hand to.
pub(crate) fn for_each_group(actions: &[Action], each: &mut dyn FnMut(u32)) {
    for action in actions {
        match action {
            Action::Group(group) => each(*group),
            Action::WriteActions(actions) | Action::Clone(actions) => for_each_group(actions, each),
            _ => {}
        }
    }
}

/// A table with what its owner keeps of it.
#[derive(Debug, Default)]
struct Table {
    view: Arc<TableView>,
    settings: TableSettings,
    evictor: Option<Evictor>,
    /// Rules that controllers do not see.
    hidden: usize,
}

/// All tables of a bridge.
#[derive(Debug)]
pub struct Tables {
    tables: Vec<Table>,
    expiry: Expiry,
    groups: groups::Groups,
    next_id: u64,
    misses_to_controller: bool,
    published: Arc<TablesView>,
    is_changed: bool,
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

impl Tables {
    /// Empty tables.
    pub fn new() -> Self {
        let tables: Vec<Table> = (0..N_TABLES).map(|_| Table::default()).collect();
        let published = Arc::new(TablesView {
            version: 0,
            tables: std::array::from_fn(|i| Arc::clone(&tables[i].view)),
            groups: GroupsView::default(),
            misses_to_controller: false,
        });
        Self {
            tables,
            expiry: Expiry::default(),
            groups: groups::Groups::default(),
            next_id: 1,
            misses_to_controller: false,
            published,
            is_changed: false,
        }
    }

    /// The version that was published last.
    pub const fn published(&self) -> &Arc<TablesView> {
        &self.published
    }

    /// Whether something changed since then.
    pub const fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Makes all changes so far visible at once, as a new version.
    pub fn publish(&mut self) -> Arc<TablesView> {
        if self.is_changed {
            self.published = Arc::new(TablesView {
                version: self.published.version + 1,
                tables: std::array::from_fn(|i| Arc::clone(&self.tables[i].view)),
                groups: self.groups.view.clone(),
                misses_to_controller: self.misses_to_controller,
            });
            self.is_changed = false;
        }
        Arc::clone(&self.published)
    }

    /// How many rules there are, hidden ones included.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|t| t.view.len()).sum()
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One table as it is now.
    pub fn table(&self, id: u8) -> Option<&TableView> {
        self.tables.get(usize::from(id)).map(|t| &*t.view)
    }

    /// How many rules of a table controllers see.
    pub fn visible_len(&self, id: u8) -> usize {
        let table = self.tables.get(usize::from(id));
        table.map_or(0, |t| t.view.len() - t.hidden)
    }

    /// How a table is set up.
    pub fn settings(&self, id: u8) -> Option<&TableSettings> {
        self.tables.get(usize::from(id)).map(|t| &t.settings)
    }

    /// Whether packets that match nothing go to the controllers where no table-mod says
    /// otherwise.
    pub fn set_misses_to_controller(&mut self, yes: bool) {
        if self.misses_to_controller != yes {
            self.misses_to_controller = yes;
            self.is_changed = true;
        }
    }

    /// Sets what becomes of packets that match nothing in a table.
    pub fn set_miss(&mut self, id: u8, miss: TableMiss) {
        let Some(table) = self.tables.get_mut(usize::from(id)) else {
            return;
        };
        if table.view.miss != miss {
            Arc::make_mut(&mut table.view).miss = miss;
            self.is_changed = true;
        }
    }

    /// Sets a table up; rules beyond a new, lower limit are evicted.
    pub fn configure(&mut self, id: u8, settings: TableSettings) -> Changes {
        let mut changes = Changes::new();
        let Some(table) = self.tables.get_mut(usize::from(id)) else {
            return changes;
        };
        let prefixes = settings.prefixes.as_deref();
        let prefixes = prefixes.unwrap_or(&DEFAULT_PREFIXES);
        if !table.view.rules.prefixes().eq(prefixes.iter().copied()) {
            Arc::make_mut(&mut table.view).rules.set_prefixes(prefixes);
            self.is_changed = true;
        }
        let same_groups = table.settings.groups == settings.groups;
        if !settings.evict {
            table.evictor = None;
        } else if !same_groups || table.evictor.is_none() {
            let mut evictor = Evictor::new(&settings.groups);
            table.view.rules().for_each(|rule| evictor.add(rule));
            table.evictor = Some(evictor);
        }
        table.settings = settings;
        while self.is_over_limit(id, 0) && self.evict_one(id, &mut changes) {}
        changes
    }

    /// Whether the table is past its limit once `more` rules are added.
    fn is_over_limit(&self, id: u8, more: usize) -> bool {
        let table = &self.tables[usize::from(id)];
        let limit = table.settings.flow_limit;
        limit.is_some_and(|limit| table.view.len() + more > limit as usize)
    }

    fn evict_one(&mut self, id: u8, changes: &mut Changes) -> bool {
        let evictor = self.tables[usize::from(id)].evictor.as_mut();
        let Some(victim) = evictor.and_then(Evictor::victim) else {
            return false;
        };
        self.remove_rule(&victim, FlowRemovedReason::Eviction, changes);
        true
    }

    /// The rules that `filter` selects, hidden ones never.
    pub fn select(&self, filter: &RuleFilter) -> Vec<Arc<Rule>> {
        let tables = filter.tables();
        tables.flat_map(|id| self.select_in(id, filter)).collect()
    }

    /// The rules that `filter` selects in one of its tables.
    fn select_in(&self, id: u8, filter: &RuleFilter) -> Vec<Arc<Rule>> {
        let classifier = &self.tables[usize::from(id)].view.rules;
        let admitted = |rule: &&Arc<Rule>| filter.admits(rule);
        match filter.strict {
            _ if classifier.is_empty() => Vec::new(),
            Some(priority) => {
                let key = classifier.mini_match(&filter.matching);
                let found = classifier.find(&key, priority);
                found.into_iter().filter(admitted).cloned().collect()
            }
            None => {
                let within = classifier.within(&filter.matching);
                within.filter(admitted).cloned().collect()
            }
        }
    }

    /// Puts a rule in, in the place of the one with its match and priority if there is one.
    /// For the switch's own rules: no limit and no check applies.
    pub fn put(&mut self, spec: &RuleSpec, now: Instant, changes: &mut Changes) {
        self.insert_spec(spec, true, now, changes);
    }

    /// Takes out the rule of exactly that table, match and priority, hidden or not.
    pub fn take(&mut self, table: u8, matching: &Match, priority: i32, changes: &mut Changes) {
        let classifier = &self.tables[usize::from(table)].view.rules;
        let key = classifier.mini_match(matching);
        if let Some(rule) = classifier.find(&key, priority).cloned() {
            self.remove_rule(&rule, FlowRemovedReason::Delete, changes);
        }
    }

    /// Takes out all rules, hidden ones too but those of the internal table.
    pub fn flush(&mut self, changes: &mut Changes) {
        for id in 0..INTERNAL_TABLE {
            let rules = self.tables[usize::from(id)].view.rules().cloned().collect();
            self.remove_rules(id, rules, FlowRemovedReason::Delete, changes);
        }
    }

    fn fresh_id(&mut self) -> RuleId {
        self.next_id += 1;
        RuleId(self.next_id)
    }

    /// A new rule, or the replacement of an old one.
    fn insert_spec(
        &mut self,
        spec: &RuleSpec,
        reset_counts: bool,
        now: Instant,
        changes: &mut Changes,
    ) -> Arc<Rule> {
        let id = self.fresh_id();
        let classifier = &self.tables[usize::from(spec.table)].view.rules;
        let matching = classifier.mini_match(&spec.matching);
        let old = classifier.find(&matching, spec.priority).cloned();
        let rule = Arc::new(Rule::new(id, spec, matching, now));
        if let Some(old) = &old {
            self.forget(old);
            if !reset_counts {
                rule.continue_counts(old);
            }
        }
        self.enter(&rule);
        if old.is_none() && rule.is_hidden() {
            self.tables[usize::from(rule.table)].hidden += 1;
        }
        changes.push(match old {
            Some(old) => Change::Modified(old, Arc::clone(&rule)),
            None => Change::Added(Arc::clone(&rule)),
        });
        rule
    }

    /// Gives a rule other actions.
    fn change_rule(
        &mut self,
        old: &Arc<Rule>,
        actions: &Arc<[Action]>,
        flow_mod: &FlowMod,
        now: Instant,
        changes: &mut Changes,
    ) {
        let mut rule = old.modified(Arc::clone(actions), flow_mod.new_cookie, now);
        if flow_mod.flags.contains(FlowModFlags::RESET_COUNTS) {
            rule.start_counting(old);
        }
        let rule = Arc::new(rule);
        self.expiry.cancel(old);
        self.groups.forget_user(old);
        self.enter(&rule);
        changes.push(Change::Modified(Arc::clone(old), rule));
    }

    fn remove_rule(&mut self, rule: &Arc<Rule>, reason: FlowRemovedReason, changes: &mut Changes) {
        let table = &mut self.tables[usize::from(rule.table)];
        let view = Arc::make_mut(&mut table.view);
        let key = net_classifier::Rule::mini_match(&**rule);
        if view.rules.remove(key, rule.priority).is_some() {
            self.is_changed = true;
            table.hidden -= usize::from(rule.is_hidden());
            self.forget(rule);
            changes.push(Change::Removed(Arc::clone(rule), reason));
        }
    }

    /// Takes out rules of one table; all of them at once if they are all that is in it.
    fn remove_rules(
        &mut self,
        id: u8,
        rules: Vec<Arc<Rule>>,
        reason: FlowRemovedReason,
        changes: &mut Changes,
    ) {
        let table = &mut self.tables[usize::from(id)];
        if rules.is_empty() || rules.len() < table.view.len() {
            for rule in rules {
                self.remove_rule(&rule, reason, changes);
            }
            return;
        }
        let prefixes: Vec<Slot> = table.view.rules.prefixes().collect();
        let mut empty = Classifier::new();
        empty.set_prefixes(&prefixes);
        Arc::make_mut(&mut table.view).rules = empty;
        table.hidden = 0;
        self.is_changed = true;
        for rule in rules {
            self.forget(&rule);
            changes.push(Change::Removed(rule, reason));
        }
    }

    /// Puts a rule into its table, its timers and its eviction group.
    fn enter(&mut self, rule: &Arc<Rule>) {
        let table = &mut self.tables[usize::from(rule.table)];
        Arc::make_mut(&mut table.view)
            .rules
            .insert(Arc::clone(rule));
        if let Some(evictor) = &mut table.evictor {
            evictor.add(rule);
        }
        self.expiry.add(rule);
        self.groups.add_user(rule);
        self.is_changed = true;
    }

    /// Marks a rule as gone, and forgets its timers and its eviction group.
    fn forget(&mut self, rule: &Arc<Rule>) {
        rule.mark_removed();
        self.expiry.cancel(rule);
        self.groups.forget_user(rule);
        if let Some(evictor) = &mut self.tables[usize::from(rule.table)].evictor {
            evictor.remove(rule);
        }
    }
}
