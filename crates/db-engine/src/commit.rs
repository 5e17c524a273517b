//! Committing: references, garbage collection, limits and indexes.

use std::sync::Arc;

use db_model::{Datum, Error, Result, Row, Uuid, VERSION_COLUMN};

use crate::changes::{Changes, RowChange, TableChanges};
use crate::table::Map;
use crate::transaction::Transaction;

fn compare_keys(a: &[Datum], b: &[Datum]) -> std::cmp::Ordering {
    let mut pairs = a.iter().zip(b);
    pairs
        .find_map(|(a, b)| Some(a.compare(b)).filter(|order| order.is_ne()))
        .unwrap_or(std::cmp::Ordering::Equal)
}

/// A change of counts, to be taken back if the commit fails.
struct StrongMove {
    table: usize,
    uuid: Uuid,
    old: Option<Arc<Row>>,
    new: Option<Arc<Row>>,
}

impl Transaction<'_> {
    /// Checks all constraints and makes the changes final.  On an error everything is as it
    /// was before the transaction.
    ///
    /// # Errors
    /// A constraint or reference would be broken.
    pub fn commit(mut self) -> Result<Changes> {
        self.drop_unchanged();
        let mut moves = Vec::new();
        let outcome = self.check_and_collect(&mut moves);
        match outcome {
            Ok(()) => {
                let changes = self.take_changes();
                self.db.settle(&changes);
                Ok(changes)
            }
            Err(error) => {
                for m in moves.iter().rev() {
                    self.db
                        .move_strong(m.table, m.uuid, m.new.as_deref(), m.old.as_deref());
                }
                Err(error)
            }
        }
    }

    fn check_and_collect(&mut self, moves: &mut Vec<StrongMove>) -> Result<()> {
        let mut candidates = self.count_references(moves);
        self.check_references()?;
        self.collect_garbage(&mut candidates, moves);
        self.clean_weak_references()?;
        self.drop_unchanged();
        self.check_max_rows()?;
        self.check_indexes()
    }

    /// Forgets rows that are what they were, so that they keep their version.
    fn drop_unchanged(&mut self) {
        let first = VERSION_COLUMN + usize::from(!self.has_versions);
        for (table, touched) in self.touched.iter_mut().enumerate() {
            let rows = &mut self.db.tables[table].rows;
            touched.retain(|uuid, old| match (old.as_ref(), rows.get_mut(uuid)) {
                (None, None) => false,
                (Some(old), Some(new)) => {
                    let own = first..;
                    let same =
                        Arc::ptr_eq(old, new) || old.fields()[own.clone()] == new.fields()[own];
                    if same {
                        *new = Arc::clone(old);
                    }
                    !same
                }
                _ => true,
            });
        }
    }

    /// Counts the strong references that come and go.  Returns the rows that may be garbage.
    fn count_references(&mut self, moves: &mut Vec<StrongMove>) -> Vec<(usize, Uuid)> {
        let mut candidates = Vec::new();
        let mut touched = Vec::new();
        for (table, rows) in self.touched.iter().enumerate() {
            for (uuid, old) in rows {
                if old.is_none() {
                    candidates.push((table, *uuid));
                }
                touched.push((table, *uuid, old.clone()));
            }
        }
        for (table, uuid, old) in touched {
            let new = self.db.tables[table].rows.get(&uuid).cloned();
            candidates.extend(
                self.db
                    .move_strong(table, uuid, old.as_deref(), new.as_deref()),
            );
            moves.push(StrongMove {
                table,
                uuid,
                old,
                new,
            });
        }
        candidates
    }

    /// Checks that strong references lead to rows, and that no row that was deleted is still
    /// referred to.
    fn check_references(&self) -> Result<()> {
        for (table, rows) in self.touched.iter().enumerate() {
            for (uuid, old) in rows {
                let this = &self.db.tables[table];
                match this.rows.get(uuid) {
                    Some(row) => self.check_targets(table, row, old.as_deref())?,
                    None => {
                        let count = this.strong_count(*uuid);
                        if count > 0 {
                            return Err(Error::reference(format!(
                                "cannot delete {} row {uuid} because of {count} remaining reference(s)",
                                this.schema.name
                            )));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn check_targets(&self, table: usize, row: &Row, old: Option<&Row>) -> Result<()> {
        let this = &self.db.tables[table];
        for column in &this.strong_columns {
            let datum = row.get(column.column);
            if old.is_some_and(|old| old.get(column.column) == datum) {
                continue;
            }
            let mut missing = None;
            column.each(datum, |target, uuid| {
                if !self.db.tables[target].rows.contains_key(&uuid) {
                    // A row that this very transaction deletes is reported as such.
                    let deleted = self.touched[target].contains_key(&uuid);
                    if missing.is_none() && !deleted {
                        missing = Some((target, uuid));
                    }
                }
            });
            if let Some((target, uuid)) = missing {
                return Err(Error::reference(format!(
                    "Table {} column {} row {} references nonexistent row {uuid} in table {}.",
                    this.schema.name,
                    this.schema.columns[column.column].name,
                    row.uuid(),
                    self.db.tables[target].schema.name
                )));
            }
        }
        Ok(())
    }

    /// Deletes rows outside the root set that nobody refers to, and what hung on them alone.
    fn collect_garbage(
        &mut self,
        candidates: &mut Vec<(usize, Uuid)>,
        moves: &mut Vec<StrongMove>,
    ) {
        while let Some((table, uuid)) = candidates.pop() {
            let this = &self.db.tables[table];
            if this.schema.is_root || this.strong_count(uuid) > 0 {
                continue;
            }
            let Some(row) = this.rows.get(&uuid).cloned() else {
                continue;
            };
            self.delete(table, uuid);
            candidates.extend(self.db.move_strong(table, uuid, Some(&row), None));
            moves.push(StrongMove {
                table,
                uuid,
                old: Some(row),
                new: None,
            });
        }
    }

    /// Takes out weak references to rows that are not there.
    fn clean_weak_references(&mut self) -> Result<()> {
        // Rows of this transaction, for what was added to them, and rows that refer to a
        // row that went.
        let mut suspects: Map<(usize, Uuid), ()> = Map::default();
        for (table, rows) in self.touched.iter().enumerate() {
            let this = &self.db.tables[table];
            for uuid in rows.keys() {
                if !this.rows.contains_key(uuid) {
                    let sources = this.weak.get(uuid).into_iter().flatten();
                    suspects.extend(sources.map(|(source, _)| (*source, ())));
                } else if !this.weak_columns.is_empty() {
                    suspects.insert((table, *uuid), ());
                }
            }
        }
        for (table, uuid) in suspects.into_keys() {
            self.clean_row(table, uuid)?;
        }
        Ok(())
    }

    fn clean_row(&mut self, table: usize, uuid: Uuid) -> Result<()> {
        let this = &self.db.tables[table];
        let Some(row) = this.rows.get(&uuid) else {
            return Ok(());
        };
        let mut cleaned = Vec::new();
        for column in &this.weak_columns {
            let datum = row.get(column.column);
            let alive =
                |target: Option<usize>, atom: &db_model::Atom| match (target, atom.as_uuid()) {
                    (Some(target), Some(uuid)) => self.db.tables[target].rows.contains_key(&uuid),
                    _ => true,
                };
            let mut dead = 0u32;
            let mut dead_nil = false;
            let mut judge = |key: &db_model::Atom, value: Option<&db_model::Atom>| {
                let lives = alive(column.key, key) && value.is_none_or(|v| alive(column.value, v));
                if !lives {
                    dead += 1;
                    dead_nil |= key.as_uuid().is_some_and(|u| u.is_nil());
                }
                lives
            };
            let kept = if datum.is_map() {
                let pairs = datum.as_map().iter().filter(|(k, v)| judge(k, Some(v)));
                Datum::from_map(pairs.cloned().collect())
            } else {
                let atoms = datum.as_set().iter().filter(|a| judge(a, None));
                Datum::from_set(atoms.cloned().collect())
            };
            if dead > 0 {
                let kept = kept.unwrap_or_default();
                self.check_not_empty(table, row, column.column, &kept, dead, dead_nil)?;
                cleaned.push((column.column, kept));
            }
        }
        if cleaned.is_empty() {
            return Ok(());
        }
        if let Some(row) = self.modify(table, uuid) {
            for (column, datum) in cleaned {
                row.set(column, datum);
            }
        }
        Ok(())
    }

    fn check_not_empty(
        &self,
        table: usize,
        row: &Row,
        column: usize,
        kept: &Datum,
        dead: u32,
        dead_nil: bool,
    ) -> Result<()> {
        let schema = &self.db.tables[table].schema;
        let column = &schema.columns[column];
        if kept.len() >= column.column_type.min as usize {
            return Ok(());
        }
        let uuid = row.uuid();
        let inserted = match self.touched[table].get(&uuid) {
            Some(None) => "(inserted within this transaction) ",
            _ => "",
        };
        let (name, table) = (&column.name, &schema.name);
        Err(Error::constraint(if dead_nil {
            format!(
                "Weak reference column \"{name}\" in \"{table}\" row {uuid} {inserted}contained all-zeros UUID (probably as the default value for this column) but deleting this value caused a constraint volation because this column is not allowed to be empty."
            )
        } else {
            format!(
                "Deletion of {dead} weak reference(s) to deleted (or never-existing) rows from column \"{name}\" in \"{table}\" row {uuid} {inserted}caused this column to become empty, but constraints on this column disallow an empty column."
            )
        }))
    }

    fn check_max_rows(&self) -> Result<()> {
        for (table, rows) in self.touched.iter().enumerate() {
            let this = &self.db.tables[table];
            let (count, max) = (this.rows.len(), this.schema.max_rows);
            if !rows.is_empty() && count > max as usize && rows.values().any(Option::is_none) {
                return Err(Error::constraint(format!(
                    "transaction causes \"{}\" table to contain {count} rows, greater than the schema-defined limit of {max} row(s)",
                    this.schema.name
                )));
            }
        }
        Ok(())
    }

    fn check_indexes(&self) -> Result<()> {
        for (table, touched) in self.touched.iter().enumerate() {
            let this = &self.db.tables[table];
            for index in 0..this.indexes.len() {
                let mut seen: Map<crate::table::IndexKey, Uuid> = Map::default();
                let order = self.order.iter().filter(|(t, _)| *t == table);
                for uuid in order.map(|(_, uuid)| uuid) {
                    let row = match this.rows.get(uuid) {
                        Some(row) if touched.contains_key(uuid) => row,
                        _ => continue,
                    };
                    let key = this.index_key(index, row);
                    let committed = this.indexes[index].get(&key).copied();
                    // A committed owner that is touched is judged by its new values.
                    let other = committed.filter(|other| !touched.contains_key(other));
                    if let Some(other) = other {
                        return Err(self.duplicate(table, index, other, *uuid));
                    }
                    if let Some(other) = seen.get(&key) {
                        // The order in which a condition finds rows is not fixed: where both
                        // were there before, their old values order them.
                        let before = |uuid: &Uuid| {
                            let old = touched.get(uuid)?.as_deref()?;
                            Some(this.index_key(index, old))
                        };
                        let (first, second) = match (before(uuid), before(other)) {
                            (Some(a), Some(b)) if compare_keys(&a, &b).is_lt() => (other, uuid),
                            _ => (uuid, other),
                        };
                        return Err(self.duplicate(table, index, *first, *second));
                    }
                    seen.insert(key, *uuid);
                }
            }
        }
        Ok(())
    }

    fn duplicate(&self, table: usize, index: usize, first: Uuid, second: Uuid) -> Error {
        let this = &self.db.tables[table];
        let columns = &this.schema.indexes[index];
        let values = |row: &Row| {
            let text = |&column: &usize| {
                db_model::text::format_datum(
                    row.get(column),
                    &this.schema.columns[column].column_type,
                )
            };
            columns.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        let names: Vec<String> = columns
            .iter()
            .map(|&column| format!("\"{}\"", this.schema.columns[column].name))
            .collect();
        let names = match names.as_slice() {
            [one] => format!("column {one}"),
            [one, two] => format!("columns {one} and {two}"),
            [head @ .., last] => format!("columns {}, and {last}", head.join(", ")),
            [] => String::new(),
        };
        let history = |uuid: Uuid| {
            match self.touched[table].get(&uuid) {
            None => "existed in the database before this transaction and was not modified by the transaction.".to_owned(),
            Some(None) => "was inserted by this transaction.".to_owned(),
            Some(Some(old)) => {
                let changed = this.rows.get(&uuid).is_some_and(|new| {
                    this.index_key(index, new) != this.index_key(index, old)
                });
                if changed {
                    format!("had the following index values before the transaction: {}.", values(old))
                } else {
                    "existed in the database before this transaction, which modified some of the row's columns but not any columns in this index.".to_owned()
                }
            }
        }
        };
        let shared = this
            .rows
            .get(&second)
            .map(|row| values(row))
            .unwrap_or_default();
        Error::constraint(format!(
            "Transaction causes multiple rows in \"{}\" table to have identical values ({shared}) for index on {names}.  First row, with UUID {first}, {}  Second row, with UUID {second}, {}",
            this.schema.name,
            history(first),
            history(second)
        ))
    }

    fn take_changes(&mut self) -> Changes {
        let mut tables = Vec::new();
        for (table, touched) in self.touched.iter_mut().enumerate() {
            let rows = &self.db.tables[table].rows;
            let mut changed: Vec<RowChange> = touched
                .drain()
                .map(|(uuid, old)| RowChange {
                    new: rows.get(&uuid).cloned(),
                    uuid,
                    old,
                })
                .collect();
            if !changed.is_empty() {
                changed.sort_unstable_by_key(|change| change.uuid);
                tables.push(TableChanges {
                    table,
                    rows: changed,
                });
            }
        }
        Changes { tables }
    }
}
