//! Taking records into a database that is in use: what a cluster has committed.

use db_model::{Error, Result};
use json::Json;

use crate::changes::Changes;
use crate::database::Database;
use crate::record::{read_record, row_from_record};
use crate::transaction::Transaction;

impl Database {
    /// Replays the record of a transaction.
    ///
    /// # Errors
    /// It does not fit the schema or the rows.  Nothing is changed then.
    pub fn replay(&mut self, record: &Json) -> Result<Changes> {
        self.replay_onto(record, false)
    }

    /// Makes the database what a record with all its rows says.
    ///
    /// # Errors
    /// The record does not fit the schema, or its rows do not fit each other.  Nothing is
    /// changed then.
    pub fn replay_whole(&mut self, record: &Json) -> Result<Changes> {
        self.replay_onto(record, true)
    }

    fn replay_onto(&mut self, record: &Json, whole: bool) -> Result<Changes> {
        let schema = self.schema.clone();
        let mut transaction = Transaction::new(self);
        if whole {
            drop_unnamed(&mut transaction, record);
        }
        read_record(&schema, record, |record, table, uuid, columns| {
            let old = transaction.get(table, uuid).cloned();
            match (columns, &old) {
                (None, None) => {
                    let details = format!("transaction deletes row {uuid} that does not exist");
                    return Err(Error::general(details));
                }
                (None, Some(_)) => transaction.delete(table, uuid),
                (Some(columns), _) => {
                    let table_schema = &schema.tables[table];
                    let base = old.as_deref().filter(|_| !whole);
                    let is_difference = record.is_difference;
                    let row =
                        row_from_record(table_schema, uuid, base, columns, is_difference, false)?;
                    if old.is_none() {
                        transaction.insert(table, row);
                    } else if let Some(present) = transaction.modify(table, uuid) {
                        for (column, _) in table_schema.own_columns() {
                            present.set(column, row.get(column).clone());
                        }
                    }
                }
            }
            Ok(())
        })?;
        transaction.commit()
    }
}

/// Deletes the rows that a record does not name.
fn drop_unnamed(transaction: &mut Transaction<'_>, record: &Json) {
    for table in 0..transaction.db.tables.len() {
        let schema = transaction.schema(table);
        let named = record.get(&schema.name).and_then(Json::as_object);
        let rows = transaction.db.tables[table].rows.keys();
        let gone: Vec<_> = rows
            .filter(|uuid| !named.is_some_and(|named| named.contains(&uuid.to_string())))
            .copied()
            .collect();
        for uuid in gone {
            transaction.delete(table, uuid);
        }
    }
}
