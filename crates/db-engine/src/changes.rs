//! What a transaction changed.

use std::sync::Arc;

use db_model::{Datum, Row, Uuid};

/// One row before and after.  At most one of the two is missing.
#[derive(Clone, Debug)]
pub struct RowChange {
    /// The row's UUID.
    pub uuid: Uuid,
    /// The row before; `None` if it was inserted.
    pub old: Option<Arc<Row>>,
    /// The row after; `None` if it was deleted.
    pub new: Option<Arc<Row>>,
}

/// The changed rows of one table.
#[derive(Clone, Debug)]
pub struct TableChanges {
    /// Index of the table in the schema.
    pub table: usize,
    /// Its changed rows, each once.
    pub rows: Vec<RowChange>,
}

/// All that one transaction changed, or several in a row.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The changed tables in ascending order.
    pub tables: Vec<TableChanges>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The changes of one table.
    pub fn of_table(&self, table: usize) -> &[RowChange] {
        match self.tables.binary_search_by_key(&table, |t| t.table) {
            Ok(i) => &self.tables[i].rows,
            Err(_) => &[],
        }
    }

    /// Number of atoms in the changed rows as they were before, and as they are.
    pub fn atoms(&self) -> (u64, u64) {
        let of = |row: &Option<Arc<Row>>| -> u64 {
            let fields = row.iter().flat_map(|row| row.fields());
            let atoms = |d: &Datum| d.len() as u64 * if d.is_map() { 2 } else { 1 };
            fields.map(atoms).sum()
        };
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        rows.fold((0, 0), |(old, new), row| {
            (old + of(&row.old), new + of(&row.new))
        })
    }

    /// The changes that take these back.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let reverse = |row: &RowChange| RowChange {
            uuid: row.uuid,
            old: row.new.clone(),
            new: row.old.clone(),
        };
        let tables = self.tables.iter().map(|t| TableChanges {
            table: t.table,
            rows: t.rows.iter().map(reverse).collect(),
        });
        Self {
            tables: tables.collect(),
        }
    }

    /// These changes followed by `later`, as one.
    #[must_use]
    pub fn merged(&self, later: &Self) -> Self {
        use std::collections::BTreeMap;
        let mut tables: BTreeMap<usize, BTreeMap<Uuid, RowChange>> = BTreeMap::new();
        for table in self.tables.iter().chain(&later.tables) {
            let rows = tables.entry(table.table).or_default();
            for row in &table.rows {
                rows.entry(row.uuid)
                    .and_modify(|first| first.new.clone_from(&row.new))
                    .or_insert_with(|| row.clone());
            }
        }
        let is_change = |row: &RowChange| match (&row.old, &row.new) {
            (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
            (None, None) => false,
            _ => true,
        };
        let tables = tables.into_iter().filter_map(|(table, rows)| {
            let rows: Vec<_> = rows.into_values().filter(is_change).collect();
            (!rows.is_empty()).then_some(TableChanges { table, rows })
        });
        Self {
            tables: tables.collect(),
        }
    }
}
