//! Building a database from the records of its log.

use std::io::BufRead;
use std::sync::Arc;

use db_model::{
    Atom, DatabaseSchema, Error, Result, Row, UUID_COLUMN, Uuid, UuidSource, VERSION_COLUMN,
    parse_uuid,
};
use json::{Json, Members, Object};

use crate::database::Database;
use crate::log_file::{LogReader, PIECE};
use crate::record::{Record, read_record, row_from_record};
use crate::table::Map;

/// A row and what it was before.
type Undo = (usize, Uuid, Option<Arc<Row>>);

/// Rows of a record whose end was not read yet.
#[derive(Debug, Default)]
struct Early {
    /// What was done already.
    undo: Vec<Undo>,
    /// What cannot be done before all of the record is known: by table.
    later: Vec<(usize, Uuid, Option<Object>)>,
    /// The rows of `later`.
    waiting: Map<(usize, Uuid), ()>,
}

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
        self.replay_rest(json, Early::default())
    }

    /// Reads and replays the next record.  `None` at the end of the file.
    ///
    /// # Errors
    /// The record is damaged, or does not fit the schema or the rows before it: then nothing of
    /// it is kept.
    pub fn replay_next<R: BufRead>(&mut self, reader: &mut LogReader<R>) -> Result<Option<Record>> {
        let mut early = Early::default();
        let read = reader.next_record_with(
            &mut |table, rows| self.take_early(table, rows, &mut early),
            PIECE,
        );
        match read {
            Ok(Some(json)) => self.replay_rest(&json, early).map(Some),
            Ok(None) => Ok(None),
            Err(error) => {
                self.take_back(early.undo);
                Err(error)
            }
        }
    }

    /// Inserts rows of a record that goes on.  Rows that were there before wait for its end,
    /// which may say how they are changed.
    fn take_early(&mut self, table: &str, rows: Members, early: &mut Early) -> Result<()> {
        if table.starts_with('_') {
            return Ok(());
        }
        let schema = Arc::clone(&self.db.schema);
        // As `read_record` has it.
        let index = schema.table_index(table).ok_or_else(|| {
            let rows = Json::Object(rows.iter().cloned().collect());
            Error::new("unknown table", format!("No table named {table}.")).at(&rows)
        })?;
        for (name, columns) in rows {
            let Some(uuid) = parse_uuid(&name) else {
                let details = format!("\"{name}\" is not a valid UUID");
                return Err(Error::syntax(&columns, details));
            };
            let is_new = !self.db.tables[index].rows.contains_key(&uuid)
                && !early.waiting.contains_key(&(index, uuid));
            if !is_new || columns == Json::Null {
                early.waiting.insert((index, uuid), ());
            }
            match columns {
                Json::Object(columns) if is_new => {
                    self.put(index, uuid, None, &columns, false)?;
                    early.undo.push((index, uuid, None));
                }
                Json::Object(columns) => early.later.push((index, uuid, Some(columns))),
                Json::Null => early.later.push((index, uuid, None)),
                other => return Err(Error::syntax(&other, "row must be JSON object")),
            }
        }
        Ok(())
    }

    /// Puts a row in place as a record says.
    fn put(
        &mut self,
        table: usize,
        uuid: Uuid,
        old: Option<&Row>,
        columns: &Object,
        is_difference: bool,
    ) -> Result<()> {
        let table_schema = &self.db.schema.tables[table];
        let mut row = row_from_record(table_schema, uuid, old, columns, is_difference, false)?;
        row.set(UUID_COLUMN, Atom::Uuid(uuid).into());
        let version = Atom::Uuid(self.db.uuids.next_uuid());
        row.set(VERSION_COLUMN, version.into());
        self.db.tables[table].rows.insert(uuid, Arc::new(row));
        Ok(())
    }

    /// Does what a record says of one row; returns how to take it back.
    fn apply(
        &mut self,
        record: &Record,
        table: usize,
        uuid: Uuid,
        columns: Option<&Object>,
    ) -> Result<Undo> {
        let old = self.db.tables[table].rows.get(&uuid).cloned();
        match columns {
            None if old.is_none() => {
                return Err(Error::general(format!(
                    "transaction deletes row {uuid} that does not exist"
                )));
            }
            None => {
                self.db.tables[table].rows.remove(&uuid);
            }
            Some(columns) => {
                self.put(table, uuid, old.as_deref(), columns, record.is_difference)?;
            }
        }
        Ok((table, uuid, old))
    }

    fn take_back(&mut self, undo: Vec<Undo>) {
        for (table, uuid, old) in undo.into_iter().rev() {
            let rows = &mut self.db.tables[table].rows;
            match old {
                Some(old) => rows.insert(uuid, old),
                None => rows.remove(&uuid),
            };
        }
    }

    /// Replays a record of which some rows were taken early.
    fn replay_rest(&mut self, json: &Json, early: Early) -> Result<Record> {
        let schema = Arc::clone(&self.db.schema);
        let Early {
            mut undo, later, ..
        } = early;
        let mut outcome = read_record(&schema, json, |record, table, uuid, columns| {
            undo.push(self.apply(record, table, uuid, columns)?);
            Ok(())
        });
        if let Ok(record) = &outcome {
            for (table, uuid, columns) in &later {
                match self.apply(record, *table, *uuid, columns.as_ref()) {
                    Ok(done) => undo.push(done),
                    Err(error) => {
                        outcome = Err(error);
                        break;
                    }
                }
            }
        }
        if outcome.is_err() {
            self.take_back(undo);
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
