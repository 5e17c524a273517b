//! A transaction's working set: rows are changed in place, and remembered as they were.

use std::sync::Arc;

use db_model::{Atom, Clause, Condition, Datum, Function, Row, TableSchema, Uuid, VERSION_COLUMN};

use crate::database::Database;
use crate::table::Map;

/// A transaction under way.  Dropping it without [`Transaction::commit`] takes all changes
/// back.
#[derive(Debug)]
pub struct Transaction<'a> {
    pub(crate) db: &'a mut Database,
    /// For each table: the rows that were touched, as they were before.
    pub(crate) touched: Vec<Map<Uuid, Option<Arc<Row>>>>,
    /// Table and UUID of the touched rows, in the order in which they were touched first.
    pub(crate) order: Vec<(usize, Uuid)>,
    pub(crate) comment: String,
    /// Whether rows come with their versions, so that one with another version has changed.
    pub(crate) has_versions: bool,
}

impl<'a> Transaction<'a> {
    /// Begins a transaction.
    pub fn new(db: &'a mut Database) -> Self {
        let touched = db.tables.iter().map(|_| Map::default()).collect();
        Self {
            db,
            touched,
            order: Vec::new(),
            comment: String::new(),
            has_versions: false,
        }
    }

    /// The schema of a table.
    pub fn schema(&self, table: usize) -> Arc<TableSchema> {
        Arc::clone(&self.db.tables[table].schema)
    }

    /// A row as it is now.
    pub fn get(&self, table: usize, uuid: Uuid) -> Option<&Arc<Row>> {
        self.db.tables[table].rows.get(&uuid)
    }

    /// All rows of a table as they are now, in no order.
    pub fn all(&self, table: usize) -> impl Iterator<Item = &Arc<Row>> {
        self.db.tables[table].rows.values()
    }

    /// Adds a line to the comment that goes into the log.
    pub fn add_comment(&mut self, line: &str) {
        if !self.comment.is_empty() {
            self.comment.push('\n');
        }
        self.comment.push_str(line);
    }

    /// Whether a row of that UUID is or was, before this transaction, in the table.
    pub fn is_taken(&self, table: usize, uuid: Uuid) -> bool {
        self.get(table, uuid).is_some() || self.touched[table].contains_key(&uuid)
    }

    /// Remembers a row as it was, unless it was touched before.
    fn touch(&mut self, table: usize, uuid: Uuid, old: Option<Arc<Row>>) {
        if let hashbrown::hash_map::Entry::Vacant(entry) = self.touched[table].entry(uuid) {
            entry.insert(old);
            self.order.push((table, uuid));
        }
    }

    fn new_version(&mut self) -> Datum {
        Atom::Uuid(self.db.uuids.next_uuid()).into()
    }

    /// Adds a row.
    pub fn insert(&mut self, table: usize, mut row: Row) {
        let uuid = row.uuid();
        row.set(VERSION_COLUMN, self.new_version());
        let old = self.db.tables[table].rows.insert(uuid, Arc::new(row));
        self.touch(table, uuid, old);
    }

    /// The row to be changed, with a new version.
    pub fn modify(&mut self, table: usize, uuid: Uuid) -> Option<&mut Row> {
        let version = match self.touched[table].contains_key(&uuid) {
            true => None,
            false => Some(self.new_version()),
        };
        let old = Arc::clone(self.db.tables[table].rows.get(&uuid)?);
        self.touch(table, uuid, Some(old));
        let row = Arc::make_mut(self.db.tables[table].rows.get_mut(&uuid)?);
        if let Some(version) = version {
            row.set(VERSION_COLUMN, version);
        }
        Some(row)
    }

    /// Takes a row out.
    pub fn delete(&mut self, table: usize, uuid: Uuid) {
        if let Some(old) = self.db.tables[table].rows.remove(&uuid) {
            self.touch(table, uuid, Some(old));
        }
    }

    /// The rows of a table that pass every clause, in no order.
    pub fn matching(&mut self, table: usize, condition: &Condition) -> Vec<Uuid> {
        let this = &self.db.tables[table];
        let passes = |row: &Arc<Row>| condition.matches_all(row);
        if let Some(uuid) = condition.exact_uuid() {
            let found = this.rows.get(&uuid).filter(|row| passes(row));
            return found.map(|row| row.uuid()).into_iter().collect();
        }
        if let Some((index, key)) = self.usable_index(table, condition) {
            let candidates = this.indexes[index].get(&key).copied();
            return self.passing(table, condition, candidates.into_iter().collect());
        }
        let this = &mut self.db.tables[table];
        if let Some(candidates) =
            this.searches
                .candidates(&this.rows, &self.touched[table], condition)
        {
            return self.passing(table, condition, candidates);
        }
        let this = &self.db.tables[table];
        let all = this.rows.iter().filter(|(_, row)| passes(row));
        all.map(|(uuid, _)| *uuid).collect()
    }

    /// Those of the candidates, which an index has told, and of the rows that this transaction
    /// touched that pass.
    fn passing(&self, table: usize, condition: &Condition, candidates: Vec<Uuid>) -> Vec<Uuid> {
        let (rows, touched) = (&self.db.tables[table].rows, &self.touched[table]);
        let mut found = candidates;
        found.retain(|uuid| !touched.contains_key(uuid));
        found.extend(touched.keys());
        found.retain(|uuid| {
            let row = rows.get(uuid);
            row.is_some_and(|row| condition.matches_all(row))
        });
        found
    }

    /// An index all of whose columns the condition compares for equality.
    fn usable_index(
        &self,
        table: usize,
        condition: &Condition,
    ) -> Option<(usize, crate::table::IndexKey)> {
        let wanted = |wanted: usize| {
            condition.clauses.iter().find_map(|clause| match clause {
                Clause::Test {
                    column,
                    function: Function::Equal,
                    argument,
                } if *column == wanted => Some(argument.clone()),
                _ => None,
            })
        };
        let indexes = self.db.tables[table].schema.indexes.iter().enumerate();
        indexes
            .filter_map(|(i, columns)| {
                let key: Option<crate::table::IndexKey> =
                    columns.iter().map(|&column| wanted(column)).collect();
                Some((i, key?))
            })
            .next()
    }

    /// Takes all changes back.
    pub fn abort(mut self) {
        self.roll_back();
    }

    pub(crate) fn roll_back(&mut self) {
        for (table, touched) in self.touched.iter_mut().enumerate() {
            let rows = &mut self.db.tables[table].rows;
            for (uuid, old) in touched.drain() {
                match old {
                    Some(old) => rows.insert(uuid, old),
                    None => rows.remove(&uuid),
                };
            }
        }
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.roll_back();
    }
}
