//! A long answer about rules, made piece by piece.

use std::sync::Arc;

use base::Instant;
use of_wire::Dialect;
use of_wire::message::FlowStats;

use crate::rule::Rule;
use crate::tables::{RuleFilter, TablesView};

/// Rules of one version of the tables that are still to be told.
#[derive(Debug)]
pub(crate) struct Dump {
    /// Transaction id of the request.
    pub(crate) xid: u32,
    /// How it is told.
    pub(crate) dialect: Dialect,
    view: Arc<TablesView>,
    filter: RuleFilter,
    tables: std::ops::Range<u8>,
    rules: std::vec::IntoIter<Arc<Rule>>,
}

impl Dump {
    pub(crate) fn new(
        view: Arc<TablesView>,
        filter: RuleFilter,
        xid: u32,
        dialect: Dialect,
    ) -> Self {
        Self {
            xid,
            dialect,
            view,
            tables: filter.tables(),
            filter,
            rules: Vec::new().into_iter(),
        }
    }

    /// The next rule, if there is one.
    pub(crate) fn next(&mut self) -> Option<Arc<Rule>> {
        loop {
            if let Some(rule) = self.rules.next() {
                return Some(rule);
            }
            let table = self.view.table(self.tables.next()?)?;
            if table.is_empty() {
                continue;
            }
            let within = table.classifier().within(&self.filter.matching);
            let admitted = within.filter(|rule| self.filter.admits(rule));
            let rules: Vec<Arc<Rule>> = admitted.cloned().collect();
            self.rules = rules.into_iter();
        }
    }
}

/// What controllers are told of a rule.
pub(crate) fn flow_stats(rule: &Rule, now: Instant) -> FlowStats {
    let counts = rule.counts();
    let age = now.since(rule.created);
    let secs = |since: Instant| u32::try_from(now.since(since).as_secs()).unwrap_or(u32::MAX);
    FlowStats {
        matching: rule.matching(),
        cookie: rule.cookie,
        table: rule.table,
        priority: rule.priority as u16,
        duration_sec: u32::try_from(age.as_secs()).unwrap_or(u32::MAX),
        duration_nsec: age.subsec_nanos(),
        idle_timeout: rule.idle_timeout(),
        hard_timeout: rule.hard_timeout(),
        idle_age: Some(secs(counts.used)),
        hard_age: Some(secs(rule.modified)),
        importance: rule.importance,
        packet_count: counts.packets,
        byte_count: counts.bytes,
        flags: rule.flags,
        actions: rule.actions.to_vec(),
    }
}
