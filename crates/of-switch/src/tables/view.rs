//! The tables as readers see them: one immutable version of all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use net_classifier::Classifier;
use net_flow::{FlowKey, FlowMask};

use crate::rule::Rule;
use crate::tables::{GroupsView, N_TABLES};

/// What becomes of a packet that matches nothing in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableMiss {
    /// As the controllers' versions have it: to them up to OpenFlow 1.2, dropped later.
    #[default]
    Default,
    /// Sent to the controllers.
    Controller,
    /// Looked up in the next table.
    Continue,
    /// Dropped.
    Drop,
}

/// Lookups of one table.  They go on from one version of the table to the next.
#[derive(Debug, Default)]
pub struct TableCounters {
    matched: AtomicU64,
    missed: AtomicU64,
}

impl TableCounters {
    /// Counts `packets` that were looked up, with or without success.
    pub fn count(&self, matched: bool, packets: u64) {
        let counter = if matched { &self.matched } else { &self.missed };
        counter.fetch_add(packets, Ordering::Relaxed);
    }

    /// Packets that matched a rule.
    pub fn matched(&self) -> u64 {
        self.matched.load(Ordering::Relaxed)
    }

    /// Packets that were looked up.
    pub fn lookups(&self) -> u64 {
        self.matched() + self.missed.load(Ordering::Relaxed)
    }
}

/// One table.
#[derive(Clone, Debug, Default)]
pub struct TableView {
    pub(crate) rules: Classifier<Rule>,
    pub(crate) miss: TableMiss,
    pub(crate) counters: Arc<TableCounters>,
}

impl TableView {
    /// The rule of highest priority that matches `key`.  The bits that mattered are added
    /// to `mask`.
    pub fn lookup(&self, key: &FlowKey, mask: &mut FlowMask) -> Option<&Arc<Rule>> {
        self.rules.lookup(key, mask)
    }

    /// All rules, in no order that means anything.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }

    /// The rules by what they match.
    pub const fn classifier(&self) -> &Classifier<Rule> {
        &self.rules
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What becomes of packets that match nothing.
    pub const fn miss(&self) -> TableMiss {
        self.miss
    }

    /// Where lookups are counted.
    pub const fn counters(&self) -> &Arc<TableCounters> {
        &self.counters
    }
}

/// One version of all tables of a bridge.
#[derive(Clone, Debug)]
pub struct TablesView {
    pub(crate) version: u64,
    pub(crate) tables: [Arc<TableView>; N_TABLES],
    pub(crate) groups: GroupsView,
    pub(crate) misses_to_controller: bool,
}

impl TablesView {
    /// Counts up with each change.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Table `id`; `None` for 255, which is no table.
    pub fn table(&self, id: u8) -> Option<&Arc<TableView>> {
        self.tables.get(usize::from(id))
    }

    /// The tables with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &Arc<TableView>)> {
        (0..=u8::MAX).zip(&self.tables)
    }

    /// The rule of highest priority in table `table` that matches `key`.  The bits that
    /// mattered are added to `mask`.
    pub fn lookup(&self, table: u8, key: &FlowKey, mask: &mut FlowMask) -> Option<&Arc<Rule>> {
        self.table(table)?.lookup(key, mask)
    }

    /// The groups.
    pub const fn groups(&self) -> &GroupsView {
        &self.groups
    }

    /// What becomes of packets that match nothing in `table`, with the default resolved
    /// by what the connected controllers expect.
    pub fn miss(&self, table: u8) -> TableMiss {
        match self.table(table).map_or(TableMiss::Drop, |t| t.miss) {
            TableMiss::Default if self.misses_to_controller => TableMiss::Controller,
            TableMiss::Default => TableMiss::Drop,
            configured => configured,
        }
    }
}
