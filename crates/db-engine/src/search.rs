//! Indexes that nobody declared: made when transactions keep looking for rows by the value of a
//! column, kept current, and dropped when they cost more than they save.
//!
//! Like the schema's indexes they hold rows as they were committed; who searches looks at the
//! rows that its transaction touched as well.

use std::sync::Arc;

use db_model::{Clause, Condition, Datum, Function, Row, Uuid};

use crate::changes::RowChange;
use crate::table::Map;

/// A table with fewer rows is searched faster than it is indexed.
const MIN_ROWS: usize = 256;

/// Indexes of one table, at most.
const MAX_INDEXES: usize = 4;

/// An index is made when searches for the column have looked at so many times the table's
/// rows: at the second search.  Making it costs little more than looking once more.
const SCANS: usize = 1;

/// It is dropped when it was changed so many times for each of its rows since it was used.
const IDLE_CHANGES: usize = 4;

/// With fewer values in a column, rows are found as well by looking.
const MIN_VALUES: usize = 16;

/// A table's rows as they are now.
type Rows = Map<Uuid, Arc<Row>>;

/// Those that the transaction at work has touched, as they were before.
type Touched = Map<Uuid, Option<Arc<Row>>>;

/// The rows that have one value, nearly always one.
#[derive(Clone, Debug)]
enum Having {
    One(Uuid),
    Many(Map<Uuid, ()>),
}

impl Having {
    fn iter(&self) -> impl Iterator<Item = Uuid> {
        let (one, many) = match self {
            Self::One(uuid) => (Some(*uuid), None),
            Self::Many(uuids) => (None, Some(uuids.keys().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

/// An index on one column.
#[derive(Clone, Debug)]
struct Index {
    column: usize,
    rows: Map<Datum, Having>,
    /// Changes since it was used.
    idle_changes: usize,
    /// When it was used last.
    used: u64,
}

impl Index {
    fn new(column: usize, table: &Rows, touched: &Touched) -> Self {
        let mut this = Self {
            column,
            rows: Map::default(),
            idle_changes: 0,
            used: 0,
        };
        this.rows.reserve(table.len());
        for (uuid, row) in table {
            if !touched.contains_key(uuid) {
                this.insert(row.get(column), *uuid);
            }
        }
        for (uuid, old) in touched {
            if let Some(old) = old {
                this.insert(old.get(column), *uuid);
            }
        }
        this
    }

    fn insert(&mut self, value: &Datum, uuid: Uuid) {
        match self.rows.get_mut(value) {
            None => {
                self.rows.insert(value.clone(), Having::One(uuid));
            }
            Some(Having::Many(uuids)) => {
                uuids.insert(uuid, ());
            }
            Some(rows @ Having::One(_)) => {
                let uuids = rows.iter().chain([uuid]).map(|uuid| (uuid, ()));
                let uuids: Map<Uuid, ()> = uuids.collect();
                *rows = Having::Many(uuids);
            }
        }
    }

    fn remove(&mut self, value: &Datum, uuid: Uuid) {
        let empty = match self.rows.get_mut(value) {
            None => return,
            Some(Having::One(one)) => *one == uuid,
            Some(Having::Many(uuids)) => {
                uuids.remove(&uuid);
                uuids.is_empty()
            }
        };
        if empty {
            self.rows.remove(value);
        }
    }

    fn change(&mut self, change: &RowChange) {
        let old = change.old.as_ref().map(|row| row.get(self.column));
        let new = change.new.as_ref().map(|row| row.get(self.column));
        if old == new {
            return;
        }
        self.idle_changes += 1;
        if let Some(old) = old {
            self.remove(old, change.uuid);
        }
        if let Some(new) = new {
            self.insert(new, change.uuid);
        }
    }
}

/// The indexes of one table, and what searches without them have cost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Searches {
    indexes: Vec<Index>,
    /// How many rows searches for a column have looked at.
    looked_at: Map<usize, usize>,
    /// Columns that had too few values when the table had so many rows.
    useless: Map<usize, usize>,
    /// Counts searches.
    clock: u64,
}

/// The columns that a condition compares with one value each.
fn wanted(condition: &Condition) -> impl Iterator<Item = (usize, &Datum)> {
    condition.clauses.iter().filter_map(|clause| match clause {
        Clause::Test {
            column,
            function: Function::Equal,
            argument,
        } => Some((*column, argument)),
        _ => None,
    })
}

impl Searches {
    /// Rows that may satisfy the condition, among which are all that do, if an index tells
    /// them.  It is made now if it is worth it.
    pub(crate) fn candidates(
        &mut self,
        table: &Rows,
        touched: &Touched,
        condition: &Condition,
    ) -> Option<Vec<Uuid>> {
        if table.len() < MIN_ROWS {
            return None;
        }
        self.clock += 1;
        for (column, value) in wanted(condition) {
            if let Some(index) = self.indexes.iter_mut().find(|i| i.column == column) {
                index.used = self.clock;
                index.idle_changes = 0;
                let rows = index.rows.get(value);
                return Some(rows.into_iter().flat_map(Having::iter).collect());
            }
        }
        let (column, value) = wanted(condition).find(|(column, _)| {
            let useless = self.useless.get(column);
            useless.is_none_or(|rows| table.len() > 2 * rows)
        })?;
        let looked_at = self.looked_at.entry(column).or_default();
        *looked_at += table.len();
        if *looked_at <= SCANS * table.len() {
            return None;
        }
        self.looked_at.remove(&column);
        let mut index = Index::new(column, table, touched);
        if index.rows.len() < MIN_VALUES {
            self.useless.insert(column, table.len());
            return None;
        }
        index.used = self.clock;
        let found = index.rows.get(value).into_iter().flat_map(Having::iter);
        let found = found.collect();
        if self.indexes.len() == MAX_INDEXES {
            let stalest = self.indexes.iter().enumerate().min_by_key(|(_, i)| i.used);
            if let Some((at, _)) = stalest {
                self.indexes.swap_remove(at);
            }
        }
        self.indexes.push(index);
        Some(found)
    }

    /// Follows committed changes of the table, which has `rows` rows now.
    pub(crate) fn follow(&mut self, changes: &[RowChange], rows: usize) {
        for index in &mut self.indexes {
            for change in changes {
                index.change(change);
            }
        }
        self.indexes
            .retain(|index| index.idle_changes <= IDLE_CHANGES * rows.max(MIN_ROWS));
    }

    /// The columns that have an index.
    pub(crate) fn columns(&self) -> Vec<usize> {
        self.indexes.iter().map(|index| index.column).collect()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
