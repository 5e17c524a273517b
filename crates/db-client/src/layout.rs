//! Where each table and column of a schema lies: numbers instead of names.

use std::collections::HashMap;
use std::sync::Arc;

use db_model::{BaseType, ColumnType, DatabaseSchema, Datum, TableSchema};

/// A table of a [`Layout`], by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub(crate) u16);

/// A column of a table of a [`Layout`], by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub(crate) u16);

/// One column.
#[derive(Clone, Debug)]
pub struct ColumnLayout {
    /// Its name.
    pub name: Arc<str>,
    /// Its type, with constraints.
    pub column_type: ColumnType,
    /// Whether it may change after its row was inserted.
    pub mutable: bool,
    /// What it holds if nothing was given.
    pub default: Datum,
    /// Its type without constraints, for what a server sends, whose schema may allow more.
    pub(crate) wire_type: ColumnType,
}

/// One table.
#[derive(Clone, Debug)]
pub struct TableLayout {
    /// Its name.
    pub name: Arc<str>,
    /// Its columns, sorted by name, `_uuid` and `_version` apart.
    pub columns: Vec<ColumnLayout>,
    /// Whether its rows live without being referred to.
    pub is_root: bool,
    by_name: HashMap<Arc<str>, ColumnId>,
}

impl TableLayout {
    /// The number of the column called `name`.
    pub fn column(&self, name: &str) -> Option<ColumnId> {
        self.by_name.get(name).copied()
    }

    /// All columns with their numbers.
    pub fn columns(&self) -> impl Iterator<Item = (ColumnId, &ColumnLayout)> {
        (0u16..).map(ColumnId).zip(&self.columns)
    }
}

impl std::ops::Index<ColumnId> for TableLayout {
    type Output = ColumnLayout;

    fn index(&self, id: ColumnId) -> &ColumnLayout {
        &self.columns[usize::from(id.0)]
    }
}

/// The tables of a database as a client knows them, sorted by name.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The database's name.
    pub database: Arc<str>,
    tables: Vec<TableLayout>,
    by_name: HashMap<Arc<str>, TableId>,
}

impl Layout {
    /// The layout of `schema`.
    pub fn new(schema: &DatabaseSchema) -> Self {
        let tables: Vec<TableLayout> = schema.tables.iter().map(|t| table_layout(t)).collect();
        let names = tables.iter().map(|table| Arc::clone(&table.name));
        let by_name = names.zip((0u16..).map(TableId)).collect();
        Self {
            database: Arc::clone(&schema.name),
            tables,
            by_name,
        }
    }

    /// The number of the table called `name`.
    pub fn table(&self, name: &str) -> Option<TableId> {
        self.by_name.get(name).copied()
    }

    /// All tables with their numbers.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &TableLayout)> {
        (0u16..).map(TableId).zip(&self.tables)
    }

    /// How many tables there are.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there are no tables.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

impl std::ops::Index<TableId> for Layout {
    type Output = TableLayout;

    fn index(&self, id: TableId) -> &TableLayout {
        &self.tables[usize::from(id.0)]
    }
}

fn table_layout(schema: &TableSchema) -> TableLayout {
    let columns: Vec<ColumnLayout> = schema
        .own_columns()
        .map(|(_, column)| ColumnLayout {
            name: Arc::clone(&column.name),
            default: Datum::default_of(&column.column_type),
            wire_type: unconstrained(&column.column_type),
            column_type: column.column_type.clone(),
            mutable: column.mutable,
        })
        .collect();
    let names = columns.iter().map(|column| Arc::clone(&column.name));
    let by_name = names.zip((0u16..).map(ColumnId)).collect();
    TableLayout {
        name: Arc::clone(&schema.name),
        columns,
        is_root: schema.is_root,
        by_name,
    }
}

/// The same type with every value of its atoms allowed.
fn unconstrained(column_type: &ColumnType) -> ColumnType {
    ColumnType {
        key: column_type.key.unconstrained(),
        value: column_type.value.as_ref().map(BaseType::unconstrained),
        min: column_type.min,
        max: column_type.max,
    }
}
