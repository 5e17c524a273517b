//! Converting a database to another schema.

use std::sync::Arc;

use db_model::{DatabaseSchema, Datum, Result, Row, UuidSource};

use crate::database::Database;
use crate::transaction::Transaction;

/// A new database of schema `schema` with the rows of `old`.
///
/// Tables and columns that the new schema lacks are left out, new columns have their
/// defaults, and columns of another type are converted if their values allow it.
///
/// # Errors
/// A value does not fit the new type, or the rows break a constraint of the new schema.
pub fn convert(old: &Database, schema: Arc<DatabaseSchema>, uuids: UuidSource) -> Result<Database> {
    let mut new = Database::new(Arc::clone(&schema), uuids);
    let mut transaction = Transaction::new(&mut new);
    for (target, table) in schema.tables.iter().enumerate() {
        let Some(source) = old.table_named(&table.name) else {
            continue;
        };
        // Pairs of columns of the same name, with whether the values can be shared.
        let columns: Vec<(usize, usize, bool)> = table
            .own_columns()
            .filter_map(|(to, column)| {
                let from = source.schema().column_index(&column.name)?;
                let same = source.schema().columns[from].column_type == column.column_type;
                Some((from, to, same))
            })
            .collect();
        for row in source.iter() {
            let mut converted = Row::new(table, row.uuid());
            for &(from, to, same) in &columns {
                let datum = row.get(from);
                let datum = if same {
                    datum.clone()
                } else {
                    let old_type = &source.schema().columns[from].column_type;
                    let json = datum.to_json_of(old_type);
                    Datum::from_json(&json, &table.columns[to].column_type, None)?
                };
                converted.set(to, datum);
            }
            transaction.insert(target, converted);
        }
    }
    transaction.commit()?;
    Ok(new)
}
