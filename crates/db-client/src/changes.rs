//! Which rows changed since somebody last asked.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use db_model::Uuid;

use crate::{ColumnId, Row, TableId};

/// A set of columns of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns(u128);

impl Columns {
    /// Every column.
    pub const ALL: Self = Self(u128::MAX);

    /// Adds a column.  Columns from number 127 on share one place.
    pub fn insert(&mut self, column: ColumnId) {
        self.0 |= 1 << column.0.min(127);
    }

    /// Whether the column is in the set.
    pub fn contains(self, column: ColumnId) -> bool {
        self.0 & (1 << column.0.min(127)) != 0
    }

    /// Whether no column is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the sets have a column in common.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The columns of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The rows of one table that changed.
#[derive(Clone, Debug, Default)]
pub struct TableChanges {
    /// Rows that are there now and were not.
    pub inserted: HashSet<Uuid>,
    /// Rows that are there now and were, with the columns that were written.
    pub modified: HashMap<Uuid, Columns>,
    /// Rows that were there and are not, as they were when they went.
    pub deleted: HashMap<Uuid, Row>,
}

impl TableChanges {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.inserted.is_empty() && self.modified.is_empty() && self.deleted.is_empty()
    }

    pub(crate) fn note_insert(&mut self, uuid: Uuid) {
        if self.deleted.remove(&uuid).is_some() {
            self.modified.insert(uuid, Columns::ALL);
        } else {
            self.inserted.insert(uuid);
        }
    }

    pub(crate) fn note_modify(&mut self, uuid: Uuid, columns: Columns) {
        if columns.is_empty() || self.inserted.contains(&uuid) {
            return;
        }
        match self.modified.entry(uuid) {
            Entry::Occupied(mut entry) => {
                let all = entry.get().union(columns);
                entry.insert(all);
            }
            Entry::Vacant(entry) => {
                entry.insert(columns);
            }
        }
    }

    pub(crate) fn note_delete(&mut self, uuid: Uuid, row: Row) {
        self.modified.remove(&uuid);
        if !self.inserted.remove(&uuid) {
            self.deleted.insert(uuid, row);
        }
    }
}

/// The rows of all tables that changed.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    tables: Vec<TableChanges>,
    none: TableChanges,
}

impl Changes {
    pub(crate) fn new(tables: Vec<TableChanges>) -> Self {
        Self {
            tables,
            none: TableChanges::default(),
        }
    }

    /// What changed in `table`.
    pub fn table(&self, table: TableId) -> &TableChanges {
        self.tables.get(usize::from(table.0)).unwrap_or(&self.none)
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(TableChanges::is_empty)
    }
}
