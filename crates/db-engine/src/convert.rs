//! Converting a database to another schema, at once or beside transactions.

use std::sync::Arc;

use db_model::{
    ColumnType, DatabaseSchema, Datum, Result, Row, TableSchema, UuidSource, VERSION_COLUMN,
};

use crate::changes::Changes;
use crate::database::{Database, Snapshot};
use crate::transaction::Transaction;

/// A column that both schemas have.
#[derive(Debug)]
struct SharedColumn {
    from: usize,
    to: usize,
    /// The old type, if the values must be converted.
    converted: Option<ColumnType>,
}

/// A table that both schemas have.
#[derive(Debug)]
struct SharedTable {
    /// Its index in the new schema.
    target: usize,
    schema: Arc<TableSchema>,
    columns: Vec<SharedColumn>,
}

/// Converts rows of one schema to another.
///
/// Tables and columns that the new schema lacks are left out, new columns have their
/// defaults, and columns of another type are converted if their values allow it.
#[derive(Debug)]
pub struct Converter {
    schema: Arc<DatabaseSchema>,
    /// By index in the old schema.
    tables: Vec<Option<SharedTable>>,
}

impl Converter {
    /// A converter from schema `old` to schema `new`.
    pub fn new(old: &DatabaseSchema, new: Arc<DatabaseSchema>) -> Self {
        let tables = old.tables.iter().map(|source| {
            let target = new.table_index(&source.name)?;
            let schema = Arc::clone(&new.tables[target]);
            let columns = schema.own_columns().filter_map(|(to, column)| {
                let from = source.column_index(&column.name)?;
                let old_type = &source.columns[from].column_type;
                Some(SharedColumn {
                    from,
                    to,
                    converted: (*old_type != column.column_type).then(|| old_type.clone()),
                })
            });
            let columns = columns.collect();
            Some(SharedTable {
                target,
                schema,
                columns,
            })
        });
        Self {
            tables: tables.collect(),
            schema: new,
        }
    }

    /// The new schema.
    pub const fn schema(&self) -> &Arc<DatabaseSchema> {
        &self.schema
    }

    /// A new database with the rows of `old`.
    ///
    /// # Errors
    /// A value does not fit the new type, or the rows break a constraint of the new schema.
    pub fn convert<'a, R>(
        &self,
        old: impl Iterator<Item = R>,
        uuids: UuidSource,
    ) -> Result<Database>
    where
        R: Iterator<Item = &'a Arc<Row>>,
    {
        let mut new = Database::new(Arc::clone(&self.schema), uuids);
        let mut transaction = Transaction::new(&mut new);
        for (table, rows) in self.tables.iter().zip(old) {
            let Some(table) = table else {
                continue;
            };
            for row in rows {
                transaction.insert(table.target, table.convert(row)?);
            }
        }
        transaction.commit()?;
        Ok(new)
    }

    /// The same, of a snapshot.
    ///
    /// # Errors
    /// As for [`convert`](Self::convert).
    pub fn convert_snapshot(&self, old: &Snapshot, uuids: UuidSource) -> Result<Database> {
        self.convert(old.tables.iter().map(|rows| rows.iter()), uuids)
    }

    /// Does to a converted database `new` what was done to the old one.
    ///
    /// # Errors
    /// As for [`convert`](Self::convert); nothing is changed then.
    pub fn follow(&self, new: &mut Database, changes: &Changes) -> Result<Changes> {
        let mut transaction = Transaction::new(new);
        for changed in &changes.tables {
            let Some(table) = &self.tables[changed.table] else {
                continue;
            };
            for row in &changed.rows {
                let Some(now) = &row.new else {
                    transaction.delete(table.target, row.uuid);
                    continue;
                };
                let mut converted = table.convert(now)?;
                match transaction.modify(table.target, row.uuid) {
                    Some(place) => {
                        converted.set(VERSION_COLUMN, place.get(VERSION_COLUMN).clone());
                        *place = converted;
                    }
                    None => transaction.insert(table.target, converted),
                }
            }
        }
        transaction.commit()
    }
}

impl SharedTable {
    fn convert(&self, row: &Row) -> Result<Row> {
        let mut converted = Row::new(&self.schema, row.uuid());
        for column in &self.columns {
            let datum = row.get(column.from);
            let datum = match &column.converted {
                None => datum.clone(),
                Some(old_type) => {
                    let json = datum.to_json_of(old_type);
                    let new_type = &self.schema.columns[column.to].column_type;
                    Datum::from_json(&json, new_type, None)?
                }
            };
            converted.set(column.to, datum);
        }
        Ok(converted)
    }
}

/// A new database of schema `schema` with the rows of `old`, converted as [`Converter`] says.
///
/// # Errors
/// A value does not fit the new type, or the rows break a constraint of the new schema.
pub fn convert(old: &Database, schema: Arc<DatabaseSchema>, uuids: UuidSource) -> Result<Database> {
    let converter = Converter::new(old.schema(), schema);
    converter.convert(old.tables.iter().map(crate::Table::iter), uuids)
}
