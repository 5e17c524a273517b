//! Rows.

use uuid::Uuid;

use crate::{Datum, TableSchema, UUID_COLUMN, VERSION_COLUMN};

/// A row of a table: a datum per column, `_uuid` and `_version` first.
///
/// Rows are immutable once they are shared (as `Arc<Row>`): a change makes a new row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    fields: Box<[Datum]>,
}

impl Row {
    /// A row whose columns all have their defaults.
    pub fn new(table: &TableSchema, uuid: Uuid) -> Self {
        let mut fields: Box<[Datum]> = table
            .columns
            .iter()
            .map(|column| Datum::default_of(&column.column_type))
            .collect();
        fields[UUID_COLUMN] = crate::Atom::Uuid(uuid).into();
        Self { fields }
    }

    /// The row's UUID.
    pub fn uuid(&self) -> Uuid {
        self.fields[UUID_COLUMN].as_uuid().unwrap_or_default()
    }

    /// The value of `_version`.
    pub fn version(&self) -> Uuid {
        self.fields[VERSION_COLUMN].as_uuid().unwrap_or_default()
    }

    /// The value of a column, by its index in the table's schema.
    pub fn get(&self, column: usize) -> &Datum {
        &self.fields[column]
    }

    /// Replaces the value of a column.
    pub fn set(&mut self, column: usize, value: Datum) {
        self.fields[column] = value;
    }

    /// All columns' values.
    pub fn fields(&self) -> &[Datum] {
        &self.fields
    }
}
