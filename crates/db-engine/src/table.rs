//! A table in memory: rows, who refers to them, and the unique indexes.

use std::sync::Arc;

use db_model::{Atom, DatabaseSchema, Datum, Row, TableSchema, Uuid};
use foldhash::fast::RandomState;

use crate::search::Searches;

/// Hash maps of the engine.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, RandomState>;

/// A column that refers to other rows.
#[derive(Clone, Debug)]
pub(crate) struct RefColumn {
    /// Index of the column.
    pub(crate) column: usize,
    /// The table that the elements or keys refer to.
    pub(crate) key: Option<usize>,
    /// The table that a map's values refer to.
    pub(crate) value: Option<usize>,
}

impl RefColumn {
    fn collect(schema: &DatabaseSchema, table: &TableSchema, strong: bool) -> Vec<Self> {
        let target = |base: Option<&db_model::BaseType>| {
            let reference = base?.reference().filter(|r| r.strong == strong)?;
            schema.table_index(&reference.table)
        };
        let own = table.own_columns().map(|(column, c)| Self {
            column,
            key: target(Some(&c.column_type.key)),
            value: target(c.column_type.value.as_ref()),
        });
        own.filter(|c| c.key.is_some() || c.value.is_some())
            .collect()
    }

    /// Calls `visit` with table and UUID of each reference in the datum.
    pub(crate) fn each(&self, datum: &Datum, mut visit: impl FnMut(usize, Uuid)) {
        let mut see = |table: Option<usize>, atom: &Atom| {
            if let (Some(table), Some(uuid)) = (table, atom.as_uuid()) {
                visit(table, uuid);
            }
        };
        datum.keys().for_each(|key| see(self.key, key));
        datum.values().for_each(|value| see(self.value, value));
    }
}

/// The key of a unique index: the values of its columns.
pub(crate) type IndexKey = Box<[Datum]>;

/// A table's rows with what is derived from them.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) rows: Map<Uuid, Arc<Row>>,
    /// How many strong references other rows make to a row (not those that it makes to
    /// itself).  Rows without are not listed.
    pub(crate) strong: Map<Uuid, u32>,
    /// Which rows (table and UUID) refer to a row weakly, and how often.
    pub(crate) weak: Map<Uuid, Map<(usize, Uuid), u32>>,
    /// For each index of the schema: the row that has these values.
    pub(crate) indexes: Vec<Map<IndexKey, Uuid>>,
    /// Indexes that searches have asked for.
    pub(crate) searches: Searches,
    pub(crate) strong_columns: Vec<RefColumn>,
    pub(crate) weak_columns: Vec<RefColumn>,
}

impl Table {
    pub(crate) fn new(schema: &DatabaseSchema, table: usize) -> Self {
        let table_schema = Arc::clone(&schema.tables[table]);
        Self {
            rows: Map::default(),
            strong: Map::default(),
            weak: Map::default(),
            indexes: vec![Map::default(); table_schema.indexes.len()],
            searches: Searches::default(),
            strong_columns: RefColumn::collect(schema, &table_schema, true),
            weak_columns: RefColumn::collect(schema, &table_schema, false),
            schema: table_schema,
        }
    }

    /// The table's schema.
    pub const fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row by its UUID.
    pub fn get(&self, uuid: Uuid) -> Option<&Arc<Row>> {
        self.rows.get(&uuid)
    }

    /// All rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.rows.values()
    }

    /// The columns, besides those of the schema's indexes, by which rows are found without
    /// looking at all of them, since transactions kept searching for them.
    pub fn searched_columns(&self) -> Vec<usize> {
        self.searches.columns()
    }

    /// The values that a row has in an index.
    pub(crate) fn index_key(&self, index: usize, row: &Row) -> IndexKey {
        self.schema.indexes[index]
            .iter()
            .map(|&column| row.get(column).clone())
            .collect()
    }

    /// Adds `by` to the count of strong references to a row.
    pub(crate) fn count_strong(&mut self, uuid: Uuid, by: i32) {
        let count = self.strong.entry(uuid).or_insert(0);
        *count = count.saturating_add_signed(by);
        if *count == 0 {
            self.strong.remove(&uuid);
        }
    }

    pub(crate) fn strong_count(&self, uuid: Uuid) -> u32 {
        self.strong.get(&uuid).copied().unwrap_or(0)
    }

    /// Notes that `source` refers (or, if `by` is negative, refers no more) weakly to a row.
    pub(crate) fn count_weak(&mut self, uuid: Uuid, source: (usize, Uuid), by: i32) {
        let sources = self.weak.entry(uuid).or_default();
        let count = sources.entry(source).or_insert(0);
        *count = count.saturating_add_signed(by);
        if *count == 0 {
            sources.remove(&source);
            if sources.is_empty() {
                self.weak.remove(&uuid);
            }
        }
    }
}
