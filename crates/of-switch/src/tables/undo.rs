//! Taking changes back, when a bundle fails half-way.

use std::sync::Arc;

use crate::rule::Rule;
use crate::tables::{Change, Changes, Tables};

impl Tables {
    /// Takes back the last changes that were made, all of them since some moment.
    pub fn undo(&mut self, changes: Changes) {
        for change in changes.into_iter().rev() {
            match change {
                Change::Added(rule) => self.take_out(&rule),
                Change::Modified(old, new) => {
                    self.forget(&new);
                    old.unmark_removed();
                    self.enter(&old);
                }
                Change::Removed(rule, _) => {
                    rule.unmark_removed();
                    self.tables[usize::from(rule.table)].hidden += usize::from(rule.is_hidden());
                    self.enter(&rule);
                }
                Change::Group(id, old, _) => {
                    self.groups.view.set(id, old);
                    self.is_changed = true;
                }
            }
        }
    }

    fn take_out(&mut self, rule: &Arc<Rule>) {
        let table = &mut self.tables[usize::from(rule.table)];
        let key = net_classifier::Rule::mini_match(&**rule);
        let rules = &mut Arc::make_mut(&mut table.view).rules;
        if rules.remove(key, rule.priority).is_some() {
            table.hidden -= usize::from(rule.is_hidden());
            self.is_changed = true;
            self.forget(rule);
        }
    }
}
