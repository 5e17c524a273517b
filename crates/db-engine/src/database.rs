//! A database in memory.

use std::sync::Arc;

use db_model::{DatabaseSchema, Error, Result, Row, Uuid, UuidSource};

use crate::changes::Changes;
use crate::table::Table;

/// A database: its schema and tables.
#[derive(Debug)]
pub struct Database {
    pub(crate) schema: Arc<DatabaseSchema>,
    pub(crate) tables: Vec<Table>,
    pub(crate) uuids: UuidSource,
    /// Number of atoms in all rows.
    atoms: u64,
}

/// What a database holds at one moment, to be written out while transactions go on.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The schema.
    pub schema: Arc<DatabaseSchema>,
    /// The rows of each table, in the schema's order of tables.
    pub tables: Vec<Vec<Arc<Row>>>,
}

impl Database {
    /// An empty database.  `uuids` yields the UUIDs of new rows and versions.
    pub fn new(schema: Arc<DatabaseSchema>, uuids: UuidSource) -> Self {
        let tables = (0..schema.tables.len())
            .map(|table| Table::new(&schema, table))
            .collect();
        Self {
            schema,
            tables,
            uuids,
            atoms: 0,
        }
    }

    /// The schema.
    pub const fn schema(&self) -> &Arc<DatabaseSchema> {
        &self.schema
    }

    /// A table by its index in the schema.
    pub fn table(&self, table: usize) -> &Table {
        &self.tables[table]
    }

    /// A table by its name.
    pub fn table_named(&self, name: &str) -> Option<&Table> {
        self.schema.table_index(name).map(|i| &self.tables[i])
    }

    /// A new UUID, for a transaction id or the like.
    pub fn new_uuid(&mut self) -> Uuid {
        self.uuids.next_uuid()
    }

    /// A source of UUIDs that is independent of this database's.
    pub fn fork_uuids(&mut self) -> UuidSource {
        self.uuids.fork()
    }

    /// All rows as they are now.  Costs a pointer per row.
    pub fn snapshot(&self) -> Snapshot {
        let rows = |table: &Table| table.rows.values().map(Arc::clone).collect();
        Snapshot {
            schema: Arc::clone(&self.schema),
            tables: self.tables.iter().map(rows).collect(),
        }
    }

    /// Number of cells: rows by columns, `_uuid` and `_version` among them.
    pub fn cells(&self) -> usize {
        let cells = |table: &Table| table.len() * table.schema.columns.len();
        self.tables.iter().map(cells).sum()
    }

    /// Number of atoms in all rows.
    pub const fn atoms(&self) -> u64 {
        self.atoms
    }

    /// Number of weak references.
    pub fn weak_references(&self) -> usize {
        let sources = self.tables.iter().flat_map(|table| table.weak.values());
        sources.map(|sources| sources.len()).sum()
    }

    /// Puts rows in place as `changes` says, with all that is derived from them, and checks
    /// nothing: for changes that were checked before, such as those that are taken back.
    pub fn apply(&mut self, changes: &Changes) {
        for table in &changes.tables {
            for row in &table.rows {
                let rows = &mut self.tables[table.table].rows;
                match &row.new {
                    Some(new) => rows.insert(row.uuid, Arc::clone(new)),
                    None => rows.remove(&row.uuid),
                };
            }
        }
        for table in &changes.tables {
            for row in &table.rows {
                self.move_strong(
                    table.table,
                    row.uuid,
                    row.old.as_deref(),
                    row.new.as_deref(),
                );
            }
        }
        self.settle(changes);
    }

    /// Rebuilds what is derived from the rows, after rows were put in place one by one.
    ///
    /// # Errors
    /// The rows break a unique index or refer strongly to rows that are not there.
    pub(crate) fn rebuild(&mut self) -> Result<()> {
        let all = Changes {
            tables: self
                .tables
                .iter()
                .enumerate()
                .map(|(table, t)| crate::TableChanges {
                    table,
                    rows: t
                        .rows
                        .iter()
                        .map(|(uuid, row)| crate::RowChange {
                            uuid: *uuid,
                            old: None,
                            new: Some(Arc::clone(row)),
                        })
                        .collect(),
                })
                .collect(),
        };
        for table in &mut self.tables {
            table.strong.clear();
            table.weak.clear();
            table.indexes.iter_mut().for_each(hashbrown::HashMap::clear);
            table.searches.clear();
        }
        for table in &all.tables {
            for row in &table.rows {
                self.move_strong(table.table, row.uuid, None, row.new.as_deref());
            }
        }
        self.settle(&all);
        for table in &self.tables {
            if table.indexes.iter().any(|i| i.len() != table.rows.len()) {
                let details = format!("duplicate index values in table {}", table.schema.name);
                return Err(Error::constraint(details));
            }
        }
        Ok(())
    }

    /// Moves the counts of strong references from what `old` makes to what `new` makes.
    /// Returns the rows whose count fell.
    pub(crate) fn move_strong(
        &mut self,
        table: usize,
        uuid: Uuid,
        old: Option<&Row>,
        new: Option<&Row>,
    ) -> Vec<(usize, Uuid)> {
        let mut gone = Vec::new();
        let mut come = Vec::new();
        for column in &self.tables[table].strong_columns {
            let of = |row: Option<&Row>| row.map(|row| row.get(column.column).clone());
            let (old, new) = (of(old), of(new));
            if old == new {
                continue;
            }
            if let Some(old) = &old {
                column.each(old, |t, u| gone.push((t, u)));
            }
            if let Some(new) = &new {
                column.each(new, |t, u| come.push((t, u)));
            }
        }
        for &(t, u) in come.iter().filter(|r| **r != (table, uuid)) {
            self.tables[t].count_strong(u, 1);
        }
        gone.retain(|r| *r != (table, uuid));
        for &(t, u) in &gone {
            self.tables[t].count_strong(u, -1);
        }
        gone
    }

    /// Brings weak references, indexes and the number of atoms up to date with rows that are in place.
    pub(crate) fn settle(&mut self, changes: &Changes) {
        let (old, new) = changes.atoms();
        self.atoms = (self.atoms + new).saturating_sub(old);
        for table in &changes.tables {
            for row in &table.rows {
                self.move_weak(table.table, row);
            }
            // All old values leave an index before new ones come: rows may swap values.
            let this = &mut self.tables[table.table];
            this.searches.follow(&table.rows, this.rows.len());
            for index in 0..this.indexes.len() {
                for row in &table.rows {
                    if let Some(old) = &row.old {
                        let key = this.index_key(index, old);
                        if this.indexes[index].get(&key) == Some(&row.uuid) {
                            this.indexes[index].remove(&key);
                        }
                    }
                }
                for row in &table.rows {
                    if let Some(new) = &row.new {
                        let key = this.index_key(index, new);
                        this.indexes[index].insert(key, row.uuid);
                    }
                }
            }
        }
    }

    fn move_weak(&mut self, table: usize, row: &crate::RowChange) {
        if self.tables[table].weak_columns.is_empty() {
            return;
        }
        let mut moves: Vec<(usize, Uuid, i32)> = Vec::new();
        for column in &self.tables[table].weak_columns {
            let old = row.old.as_deref().map(|r| r.get(column.column));
            let new = row.new.as_deref().map(|r| r.get(column.column));
            match (old, new) {
                (Some(old), Some(new)) if old == new => {}
                (Some(old), Some(new)) => {
                    column.each(&new.subtract(old), |t, u| moves.push((t, u, 1)));
                    column.each(&old.subtract(new), |t, u| moves.push((t, u, -1)));
                }
                (Some(old), None) => column.each(old, |t, u| moves.push((t, u, -1))),
                (None, Some(new)) => column.each(new, |t, u| moves.push((t, u, 1))),
                (None, None) => {}
            }
        }
        for (t, u, by) in moves {
            self.tables[t].count_weak(u, (table, row.uuid), by);
        }
    }
}
