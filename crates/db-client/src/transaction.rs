//! Changes that are gathered, seen as if they were made, and then sent at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use db_model::{Atom, Datum, Uuid};

use crate::{ColumnId, Replica, TableId};

/// How a written column will be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    /// As a whole.
    Whole,
    /// As elements or pairs that come (pairs replacing those with the same key) and
    /// elements or keys that go.
    Partial { put: Datum, drop: Datum },
}

/// What happens to one row.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowEdit {
    pub(crate) inserted: Option<Insert>,
    pub(crate) deleted: bool,
    pub(crate) columns: BTreeMap<ColumnId, (Datum, Write)>,
    /// Columns that must hold what the replica says when the transaction is run.
    pub(crate) verified: BTreeSet<ColumnId>,
}

/// How a row comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insert {
    /// The server chooses its UUID.
    ServerChooses,
    /// It gets the UUID by which the transaction knows it.
    Persistent,
}

/// A set of changes to a replica, which shows through it before it is sent.
///
/// A transaction is built against one version of a replica; the reading methods take that
/// replica.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    pub(crate) rows: BTreeMap<TableId, HashMap<Uuid, RowEdit>>,
    /// Rows in the order in which they were first touched.
    pub(crate) order: Vec<(TableId, Uuid)>,
    /// Tables that must be empty when the transaction is run.
    pub(crate) verified_empty: BTreeSet<TableId>,
    pub(crate) comments: Vec<String>,
    pub(crate) increment: Option<(TableId, Uuid, ColumnId, bool)>,
    /// Whether the server is asked to undo everything.
    pub dry_run: bool,
}

impl Transaction {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    fn edit(&self, table: TableId, uuid: Uuid) -> Option<&RowEdit> {
        self.rows.get(&table)?.get(&uuid)
    }

    fn edit_mut(&mut self, table: TableId, uuid: Uuid) -> &mut RowEdit {
        let rows = self.rows.entry(table).or_default();
        if !rows.contains_key(&uuid) {
            self.order.push((table, uuid));
        }
        rows.entry(uuid).or_default()
    }

    /// Whether the row is there, changes of this transaction counted.
    pub fn has_row(&self, replica: &Replica, table: TableId, uuid: Uuid) -> bool {
        match self.edit(table, uuid) {
            Some(edit) if edit.deleted => false,
            Some(edit) if edit.inserted.is_some() => true,
            _ => replica.row(table, uuid).is_some(),
        }
    }

    /// The rows of a table, changes of this transaction counted, in no order.
    pub fn rows(&self, replica: &Replica, table: TableId) -> Vec<Uuid> {
        let mut rows: Vec<Uuid> = replica
            .table(table)
            .rows()
            .map(|row| row.uuid())
            .filter(|uuid| !self.edit(table, *uuid).is_some_and(|edit| edit.deleted))
            .collect();
        for (uuid, edit) in self.rows.get(&table).into_iter().flatten() {
            if edit.inserted.is_some() && !edit.deleted {
                rows.push(*uuid);
            }
        }
        rows
    }

    /// The value of a column, changes of this transaction counted; the column's default if
    /// there is no such row.
    pub fn get<'a>(
        &'a self,
        replica: &'a Replica,
        table: TableId,
        uuid: Uuid,
        column: ColumnId,
    ) -> &'a Datum {
        let edited = self
            .edit(table, uuid)
            .and_then(|edit| edit.columns.get(&column));
        if let Some((datum, _)) = edited {
            return datum;
        }
        match replica.row(table, uuid) {
            Some(row) => row.get(column),
            None => &replica.layout()[table][column].default,
        }
    }

    /// Inserts a row, which this transaction knows by `uuid`; the server chooses another
    /// one, which the outcome tells.  `uuid` may already be referred to.
    pub fn insert(&mut self, table: TableId, uuid: Uuid) {
        self.edit_mut(table, uuid).inserted = Some(Insert::ServerChooses);
    }

    /// Inserts a row with this very UUID.
    pub fn insert_persistent(&mut self, table: TableId, uuid: Uuid) {
        self.edit_mut(table, uuid).inserted = Some(Insert::Persistent);
    }

    /// Deletes a row.  Rows that live only as long as they are referred to are left to the
    /// server, which deletes them with the last reference.
    pub fn delete(&mut self, table: TableId, uuid: Uuid) {
        let edit = self.edit_mut(table, uuid);
        edit.columns.clear();
        edit.deleted = true;
    }

    /// Writes a whole column.  To write what is there already changes nothing.
    pub fn set(
        &mut self,
        replica: &Replica,
        table: TableId,
        uuid: Uuid,
        column: ColumnId,
        datum: Datum,
    ) {
        let inserted = self.is_inserted(table, uuid);
        let edited = self.edit(table, uuid);
        let written = edited.is_some_and(|edit| edit.columns.contains_key(&column));
        if !inserted && !written && *self.get(replica, table, uuid, column) == datum {
            return;
        }
        let columns = &mut self.edit_mut(table, uuid).columns;
        columns.insert(column, (datum, Write::Whole));
    }

    /// Adds elements to a set, or pairs to a map, where they replace those with the same
    /// keys.  Only these elements are sent, so that what others add meanwhile stays.
    pub fn put(
        &mut self,
        replica: &Replica,
        table: TableId,
        uuid: Uuid,
        column: ColumnId,
        elements: &Datum,
    ) {
        let old = self.get(replica, table, uuid, column).clone();
        let keys = keys_of(elements);
        let new = elements.union(&old.subtract(&keys));
        if new == old {
            return;
        }
        self.edit_partial(table, uuid, column, new, |put, drop| {
            *put = elements.union(&put.subtract(&keys));
            *drop = drop.subtract(&keys);
        });
    }

    /// Takes elements out of a set, or the pairs with these keys out of a map.  Only these
    /// are sent, so that what others add meanwhile stays.
    pub fn drop_keys(
        &mut self,
        replica: &Replica,
        table: TableId,
        uuid: Uuid,
        column: ColumnId,
        keys: &Datum,
    ) {
        let old = self.get(replica, table, uuid, column).clone();
        let new = old.subtract(keys);
        if new == old {
            return;
        }
        self.edit_partial(table, uuid, column, new, |put, drop| {
            *put = put.subtract(keys);
            *drop = drop.union(keys);
        });
    }

    fn edit_partial(
        &mut self,
        table: TableId,
        uuid: Uuid,
        column: ColumnId,
        new: Datum,
        change: impl FnOnce(&mut Datum, &mut Datum),
    ) {
        let whole = self.is_inserted(table, uuid);
        let columns = &mut self.edit_mut(table, uuid).columns;
        let mut write = match columns.remove(&column) {
            Some((_, write)) => write,
            None if whole => Write::Whole,
            None => Write::Partial {
                put: Datum::EMPTY,
                drop: Datum::EMPTY,
            },
        };
        if let Write::Partial { put, drop } = &mut write {
            change(put, drop);
        }
        columns.insert(column, (new, write));
    }

    /// Makes the transaction depend on a column's holding what the replica says: if it
    /// does not when the transaction is run, the outcome is to try again.  Has no effect
    /// after the column was written here, nor for a row inserted here.
    pub fn verify(&mut self, replica: &Replica, table: TableId, uuid: Uuid, column: ColumnId) {
        if replica.row(table, uuid).is_none() {
            return;
        }
        let edit = self.edit_mut(table, uuid);
        if edit.inserted.is_none() && !edit.deleted && !edit.columns.contains_key(&column) {
            edit.verified.insert(column);
        }
    }

    /// Makes the transaction depend on a table's having no rows.
    pub fn verify_empty(&mut self, table: TableId) {
        self.verified_empty.insert(table);
    }

    /// Adds one to an integer column; the outcome tells the new value.  Without `force`
    /// this happens only if the transaction changes something else.
    pub fn increment(&mut self, table: TableId, uuid: Uuid, column: ColumnId, force: bool) {
        self.increment = Some((table, uuid, column, force));
    }

    /// Adds a comment, which the database's log will show.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.comments.push(text.into());
    }

    /// Whether the row was inserted by this transaction.
    pub fn is_inserted(&self, table: TableId, uuid: Uuid) -> bool {
        self.edit(table, uuid)
            .is_some_and(|edit| edit.inserted.is_some())
    }

    /// Whether this transaction writes `column` of the row.
    pub fn is_written(&self, table: TableId, uuid: Uuid, column: ColumnId) -> bool {
        self.edit(table, uuid)
            .is_some_and(|edit| edit.columns.contains_key(&column))
    }

    /// The rows that this transaction inserts into `table` and does not delete again.
    pub fn inserted_rows(&self, table: TableId) -> impl Iterator<Item = Uuid> {
        self.rows
            .get(&table)
            .into_iter()
            .flatten()
            .filter(|(_, edit)| edit.inserted.is_some() && !edit.deleted)
            .map(|(uuid, _)| *uuid)
    }
}

/// The keys of a map, or the elements of a set, as a set.
fn keys_of(datum: &Datum) -> Datum {
    Datum::from_set_lossy(datum.keys().cloned().collect::<Vec<Atom>>())
}
