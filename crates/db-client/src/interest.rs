//! What a client wants to see of a database.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use json::Json;

use crate::{ColumnId, Layout, TableId};

/// The tables and columns that a client wants to see, and of which rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interest {
    tables: BTreeMap<TableId, Wanted>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) columns: BTreeSet<ColumnId>,
    pub(crate) condition: Option<Vec<Json>>,
}

impl Interest {
    /// Nothing at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every column of every table.
    pub fn everything(layout: &Layout) -> Self {
        let mut all = Self::new();
        for (table, columns) in layout.tables() {
            all.add_table(table);
            for (column, _) in columns.columns() {
                all.add_column(table, column);
            }
        }
        all
    }

    /// Wants all rows of a table.
    pub fn add_table(&mut self, table: TableId) {
        self.tables.entry(table).or_default().condition = None;
    }

    /// Wants the rows of a table for which `clause` (`[column, function, value]`) holds,
    /// beside those that are wanted already.
    pub fn add_rows(&mut self, table: TableId, clause: Json) {
        match self.tables.entry(table) {
            Entry::Vacant(entry) => {
                entry.insert(Wanted {
                    columns: BTreeSet::new(),
                    condition: Some(vec![clause]),
                });
            }
            Entry::Occupied(mut entry) => {
                if let Some(clauses) = &mut entry.get_mut().condition
                    && !clauses.contains(&clause)
                {
                    clauses.push(clause);
                }
            }
        }
    }

    /// Wants a column of the wanted rows; of all rows, if nothing was said of them.
    pub fn add_column(&mut self, table: TableId, column: ColumnId) {
        self.tables.entry(table).or_default().columns.insert(column);
    }

    /// Whether all rows of `table` are wanted.
    pub fn has_all_rows(&self, table: TableId) -> bool {
        let wanted = self.tables.get(&table);
        wanted.is_some_and(|wanted| wanted.condition.is_none())
    }

    /// Wants only those rows of `table` for which one of the clauses
    /// `[column, function, value]` holds; `None` for all rows.
    pub fn set_condition(&mut self, table: TableId, clauses: Option<Vec<Json>>) {
        self.tables.entry(table).or_default().condition = clauses;
    }

    /// Whether `column` is wanted.
    pub fn has_column(&self, table: TableId, column: ColumnId) -> bool {
        self.tables
            .get(&table)
            .is_some_and(|wanted| wanted.columns.contains(&column))
    }

    /// Whether the rows of `table` are wanted.
    pub fn has_table(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = (TableId, &Wanted)> {
        self.tables.iter().map(|(table, wanted)| (*table, wanted))
    }
}
