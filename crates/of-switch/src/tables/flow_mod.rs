//! Flow-mods: how each command changes the tables.

use std::sync::Arc;

use base::Instant;
use of_wire::message::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason};
use of_wire::{Action, ErrorCode};

use crate::rule::RuleSpec;
use crate::tables::{Changes, INTERNAL_TABLE, RuleFilter, Tables};

/// What of a flow-mod's meaning depends on the OpenFlow version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowModRules {
    /// A modification that finds no rule adds one (OpenFlow 1.0 and 1.1).
    pub modify_may_add: bool,
    /// A rule that replaces another starts counting from zero (OpenFlow 1.0 and 1.1).
    pub add_resets_counts: bool,
    /// Table 255 lets the switch choose the table of a new rule (OpenFlow 1.0).
    pub may_choose_table: bool,
}

impl FlowModRules {
    /// Those of `version`.
    pub const fn of_version(version: of_wire::Version) -> Self {
        let old = matches!(version, of_wire::Version::V10 | of_wire::Version::V11);
        Self {
            modify_may_add: old,
            add_resets_counts: old,
            may_choose_table: matches!(version, of_wire::Version::V10),
        }
    }
}

impl Tables {
    /// Carries out a flow-mod, entirely or not at all.
    ///
    /// The actions must have been checked against the match.
    pub fn apply(
        &mut self,
        flow_mod: &FlowMod,
        rules: FlowModRules,
        now: Instant,
    ) -> Result<Changes, ErrorCode> {
        check_table(flow_mod, rules)?;
        if flow_mod.flags.contains(FlowModFlags::EMERG) {
            return Err(ErrorCode::OfpfmfcTableFull);
        }
        let mut changes = Changes::new();
        match flow_mod.command {
            FlowModCommand::Add => {
                self.add(flow_mod, rules, now, &mut changes)?;
            }
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
                self.modify(flow_mod, rules, now, &mut changes)?;
            }
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
                let filter = filter(flow_mod);
                for id in filter.tables() {
                    let rules = self.select_in(id, &filter);
                    self.remove_rules(id, rules, FlowRemovedReason::Delete, &mut changes);
                }
            }
        }
        Ok(changes)
    }

    fn add(
        &mut self,
        flow_mod: &FlowMod,
        rules: FlowModRules,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), ErrorCode> {
        let table = match flow_mod.table {
            u8::MAX => 0,
            table => table,
        };
        let priority = i32::from(flow_mod.priority);
        let classifier = &self.tables[usize::from(table)].view.rules;
        let key = classifier.mini_match(&flow_mod.matching);
        if classifier.find(&key, priority).is_none() {
            if flow_mod.flags.contains(FlowModFlags::CHECK_OVERLAP) {
                let mut overlapping = classifier.overlapping(&flow_mod.matching, priority);
                if overlapping.next().is_some() {
                    return Err(ErrorCode::OfpfmfcOverlap);
                }
            }
            if self.is_over_limit(table, 1) && !self.evict_one(table, changes) {
                return Err(ErrorCode::OfpfmfcTableFull);
            }
        }
        let reset = rules.add_resets_counts || flow_mod.flags.contains(FlowModFlags::RESET_COUNTS);
        self.insert_spec(&spec(flow_mod, table), reset, now, changes);
        Ok(())
    }

    fn modify(
        &mut self,
        flow_mod: &FlowMod,
        rules: FlowModRules,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), ErrorCode> {
        let selected = self.select(&filter(flow_mod));
        if selected.is_empty() {
            if rules.modify_may_add && flow_mod.cookie_mask == 0 {
                return self.add(flow_mod, rules, now, changes);
            }
            return Ok(());
        }
        let actions: Arc<[Action]> = flow_mod.actions.as_slice().into();
        for old in selected {
            self.change_rule(&old, &actions, flow_mod, now, changes);
        }
        Ok(())
    }
}

/// Whether controllers may change the table of `flow_mod` by it.
///
/// # Errors
/// Why not.
pub fn check_table(flow_mod: &FlowMod, rules: FlowModRules) -> Result<(), ErrorCode> {
    let is_delete = matches!(
        flow_mod.command,
        FlowModCommand::Delete | FlowModCommand::DeleteStrict
    );
    match flow_mod.table {
        INTERNAL_TABLE => Err(ErrorCode::OfpbrcEperm),
        u8::MAX if !is_delete && !rules.may_choose_table => Err(ErrorCode::OfpfmfcBadTableId),
        _ => Ok(()),
    }
}

/// The rule that a flow-mod adds to `table`.
fn spec(flow_mod: &FlowMod, table: u8) -> RuleSpec {
    RuleSpec {
        table,
        priority: i32::from(flow_mod.priority),
        matching: flow_mod.matching.clone(),
        cookie: flow_mod.new_cookie.unwrap_or(0),
        actions: flow_mod.actions.as_slice().into(),
        flags: flow_mod.flags,
        importance: flow_mod.importance,
        idle_timeout: flow_mod.idle_timeout,
        hard_timeout: flow_mod.hard_timeout,
    }
}

/// The rules that a flow-mod is about.
fn filter(flow_mod: &FlowMod) -> RuleFilter {
    let is_strict = matches!(
        flow_mod.command,
        FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict
    );
    let is_delete = matches!(
        flow_mod.command,
        FlowModCommand::Delete | FlowModCommand::DeleteStrict
    );
    let all = RuleFilter::all();
    RuleFilter {
        table: flow_mod.table,
        matching: flow_mod.matching.clone(),
        strict: is_strict.then_some(i32::from(flow_mod.priority)),
        cookie: flow_mod.cookie,
        cookie_mask: flow_mod.cookie_mask,
        out_port: if is_delete {
            flow_mod.out_port
        } else {
            all.out_port
        },
        out_group: if is_delete {
            flow_mod.out_group
        } else {
            all.out_group
        },
    }
}
