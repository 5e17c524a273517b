//! Building a database from the records of its log.

use std::sync::Arc;

use db_model::{Atom, DatabaseSchema, Error, Result, UuidSource, VERSION_COLUMN};
use json::Json;

use crate::database::Database;
use crate::record::{Record, read_record, row_from_record};

/// A database that is being read.
#[derive(Debug)]
pub struct Loader {
    db: Database,
}

impl Loader {
    /// Begins with the schema, which is the log's first record.
    pub fn new(schema: Arc<DatabaseSchema>, uuids: UuidSource) -> Self {
        Self {
            db: Database::new(schema, uuids),
        }
    }

    /// Replays a record.  If it has an error, nothing of it is kept.
    ///
    /// # Errors
    /// The record does not fit the schema or the rows before it.
    pub fn replay(&mut self, json: &Json) -> Result<Record> {
        let schema = Arc::clone(&self.db.schema);
        let mut undo = Vec::new();
        let outcome = read_record(&schema, json, |record, table, uuid, columns| {
            let table_schema = &schema.tables[table];
            let rows = &mut self.db.tables[table].rows;
            let old = rows.get(&uuid).cloned();
            match columns {
                None if old.is_none() => {
                    return Err(Error::general(format!(
                        "transaction deletes row {uuid} that does not exist"
                    )));
                }
                None => {
                    rows.remove(&uuid);
                }
                Some(columns) => {
                    let is_difference = record.is_difference;
                    let mut row = row_from_record(
                        table_schema,
                        uuid,
                        old.as_deref(),
                        columns,
                        is_difference,
                        false,
                    )?;
                    row.set(VERSION_COLUMN, Atom::Uuid(self.db.uuids.next_uuid()).into());
                    rows.insert(uuid, Arc::new(row));
                }
            }
            undo.push((table, uuid, old));
            Ok(())
        });
        if outcome.is_err() {
            for (table, uuid, old) in undo.into_iter().rev() {
                let rows = &mut self.db.tables[table].rows;
                match old {
                    Some(old) => rows.insert(uuid, old),
                    None => rows.remove(&uuid),
                };
            }
        }
        outcome
    }

    /// The database, with all that is derived from its rows.
    ///
    /// # Errors
    /// The rows break a unique index.
    pub fn finish(mut self) -> Result<Database> {
        self.db.rebuild()?;
        Ok(self.db)
    }
}
