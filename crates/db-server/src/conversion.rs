//! Conversions of large databases to other schemas, beside transactions.
//!
//! A thread converts the rows that there are; what is committed meanwhile is done to both
//! databases.  Then the writer writes the new file while transactions still go to the old one, and
//! to what waits for the new one.  When it is there, the new database takes the place of the
//! old one, file and all, between two transactions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use base::{Instant, WallTime};
use db_engine::writer::{Report, Ticket};
use db_engine::{Changes, Converter, Database, Snapshot, transaction_record};
use db_model::{DatabaseSchema, Error, Result};
use io::jsonrpc::Message;
use json::Json;

use crate::served::Served;
use crate::server::{ClientId, Server};

/// A database of fewer atoms is converted at once.
const LARGE: u64 = 50_000;

/// Commits that the new database catches up with before others have their turn: so many, ...
const CATCH_UP: usize = 100;
/// ... or this part of those that there are, lest others commit faster, ...
const PART: usize = 16;
/// ... or all, if they are not more than this and the new file waits for them.
const REST: usize = 1000;

/// A commit that the new database has not seen.
#[derive(Debug)]
struct Missed {
    changes: Changes,
    wall: WallTime,
    comment: String,
}

/// How far a conversion is.
#[derive(Debug)]
enum Stage {
    /// A thread converts the rows that there were.
    Converting {
        rows: Receiver<Result<(Database, Snapshot)>>,
        missed: VecDeque<Missed>,
    },
    /// The new file is being written.
    Writing {
        db: Database,
        /// Commits that are still to be done to it.
        behind: VecDeque<Missed>,
        ticket: Ticket,
        written: Option<std::io::Result<()>>,
    },
}

/// A conversion under way.
#[derive(Debug)]
pub(crate) struct Conversion {
    client: ClientId,
    id: Json,
    converter: Arc<Converter>,
    stage: Stage,
    /// Why nothing comes of it.
    failed: Option<Error>,
}

impl Conversion {
    /// Nothing comes of it.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Takes note that the new file is there, or will not be.
    pub(crate) fn take_report(&mut self, report: Report) {
        if let Stage::Writing {
            ticket, written, ..
        } = &mut self.stage
            && report.handover == Some(*ticket)
        {
            *written = Some(report.result);
        }
    }
}

/// Frees a large thing where nobody waits for that.
fn free<T: Send + 'static>(thing: T) {
    let thread = std::thread::Builder::new().name("dbfree".to_owned());
    // Where there is no thread to be had, it is freed here.
    let _ = thread.spawn(move || drop(thing));
}

impl Served {
    /// Does a commit to the database that is to replace this one, now or later.
    pub(crate) fn mirror(&mut self, changes: &Changes, wall: WallTime, comment: &str) {
        let Some(conversion) = &mut self.conversion else {
            return;
        };
        let missed = || Missed {
            changes: changes.clone(),
            wall,
            comment: comment.to_owned(),
        };
        match &mut conversion.stage {
            Stage::Converting { missed: before, .. } => before.push_back(missed()),
            Stage::Writing { behind, .. } if !behind.is_empty() => behind.push_back(missed()),
            Stage::Writing { .. } => self.mirror_now(changes, wall, comment),
        }
    }

    fn mirror_now(&mut self, changes: &Changes, wall: WallTime, comment: &str) {
        let Some(conversion) = &mut self.conversion else {
            return;
        };
        let Stage::Writing { db, .. } = &mut conversion.stage else {
            return;
        };
        match conversion.converter.follow(db, changes) {
            Ok(changes) => {
                let schema = conversion.converter.schema();
                let record = transaction_record(schema, &changes, wall, comment, self.differences);
                if let (Some(record), Some(writer)) = (record, &mut self.writer) {
                    writer.append_to_new(&record);
                }
            }
            Err(error) => conversion.fail(error),
        }
    }

    /// Does some of the commits that are still to be done to the converted database.  True if
    /// there are more.
    fn catch_up(&mut self) -> bool {
        let stage = self.conversion.as_ref().map(|c| &c.stage);
        let Some(Stage::Writing {
            behind, written, ..
        }) = stage
        else {
            return false;
        };
        let count = match written {
            Some(_) if behind.len() <= REST => REST,
            _ => CATCH_UP.max(behind.len() / PART),
        };
        for _ in 0..count {
            let stage = self.conversion.as_mut().map(|c| &mut c.stage);
            let Some(Stage::Writing { behind, .. }) = stage else {
                return false;
            };
            let Some(missed) = behind.pop_front() else {
                return false;
            };
            self.mirror_now(&missed.changes, missed.wall, &missed.comment);
        }
        let stage = self.conversion.as_ref().map(|c| &c.stage);
        matches!(stage, Some(Stage::Writing { behind, .. }) if !behind.is_empty())
    }
}

impl Server {
    /// Whether the database is converted beside transactions.
    pub(crate) fn is_large(&self, name: &str) -> bool {
        let served = self.dbs.get(name);
        served.is_some_and(|s| s.conversion.is_some() || s.db.atoms() >= LARGE)
    }

    /// Begins to convert database `name`, for a client whose request `id` is answered when that
    /// is over.
    ///
    /// # Errors
    /// It is being converted already, or there is no thread to be had.
    pub(crate) fn begin_conversion(
        &mut self,
        name: &Arc<str>,
        schema: Arc<DatabaseSchema>,
        client: ClientId,
        id: &Json,
    ) -> Result<()> {
        let (uuids, wake) = (self.uuids.fork(), Arc::clone(&self.wake));
        let Some(served) = self.dbs.get_mut(name) else {
            return Err(Error::bare("unknown database"));
        };
        if served.conversion.is_some() {
            let details = format!("database {name} is being converted already");
            return Err(Error::new("not allowed", details));
        }
        let converter = Arc::new(Converter::new(served.db.schema(), schema));
        let snapshot = served.db.snapshot();
        let (sender, rows) = channel();
        let of_thread = Arc::clone(&converter);
        let convert = move || {
            let converted = of_thread.convert_snapshot(&snapshot, uuids).map(|db| {
                let snapshot = db.snapshot();
                (db, snapshot)
            });
            // Nobody may want it any more.
            let _ = sender.send(converted);
            wake();
        };
        std::thread::Builder::new()
            .name("dbconvert".to_owned())
            .spawn(convert)
            .map_err(|error| Error::io(&error, format!("{name}: cannot be converted")))?;
        served.conversion = Some(Box::new(Conversion {
            client,
            id: id.clone(),
            converter,
            stage: Stage::Converting {
                rows,
                missed: VecDeque::new(),
            },
            failed: None,
        }));
        Ok(())
    }

    /// Goes on with the conversion of a database, if there is one.
    pub(crate) fn run_conversion(&mut self, now: Instant, name: &Arc<str>) {
        let wall = self.wall();
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(conversion) = &mut served.conversion else {
            return;
        };
        if let Some(error) = conversion.failed.take() {
            self.give_conversion_up(name, &error);
            return;
        }
        if served.catch_up() {
            (self.wake)();
            return;
        }
        let Some(conversion) = &mut served.conversion else {
            return;
        };
        match &mut conversion.stage {
            Stage::Converting { rows, .. } => match rows.try_recv() {
                Ok(Ok((db, snapshot))) => self.write_converted(now, name, db, snapshot, wall),
                Ok(Err(error)) => self.give_conversion_up(name, &error),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    let error = Error::general(format!("{name}: the conversion has broken off"));
                    self.give_conversion_up(name, &error);
                }
            },
            Stage::Writing { written, .. } => match written.take() {
                Some(Ok(())) => self.put_converted_in_place(now, name),
                Some(Err(error)) => {
                    let details = format!("{}: write failed", served.shown());
                    self.give_conversion_up(name, &Error::io(&error, details));
                }
                None => {}
            },
        }
    }

    /// Begins to write the file of a converted database.
    fn write_converted(
        &mut self,
        now: Instant,
        name: &Arc<str>,
        db: Database,
        snapshot: Snapshot,
        wall: WallTime,
    ) {
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(conversion) = &mut served.conversion else {
            return;
        };
        let comment = "converted by ovsdb-server".to_owned();
        let ticket = match &mut served.writer {
            Some(writer) => writer.begin_handover(snapshot, wall, comment),
            None => Ticket(0),
        };
        let written = served.writer.is_none().then_some(Ok(()));
        let behind = match &mut conversion.stage {
            Stage::Converting { missed, .. } => std::mem::take(missed),
            Stage::Writing { .. } => VecDeque::new(),
        };
        conversion.stage = Stage::Writing {
            db,
            behind,
            ticket,
            written,
        };
        self.run_conversion(now, name);
    }

    /// Puts a converted database, whose file is written, in the place of the old one.
    fn put_converted_in_place(&mut self, now: Instant, name: &Arc<str>) {
        self.drain_writer(name);
        let key = self.new_key();
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(conversion) = served.conversion.take_if(|c| c.failed.is_none()) else {
            // The last write to the old file failed, which ends this as well.
            self.run_conversion(now, name);
            return;
        };
        let Conversion {
            client, id, stage, ..
        } = *conversion;
        let Stage::Writing { db, .. } = stage else {
            return;
        };
        if let Some(Err(error)) = served.writer.as_mut().map(|writer| writer.hand_over()) {
            let error = Error::io(&error, format!("{}: write failed", served.shown()));
            free(db);
            self.send(client, None, Message::error(error.to_json(), id));
            return;
        }
        free(served.become_converted(key, db, now));
        self.tell_converted(name, client, &id);
    }

    /// Ends the conversion of a database, if there is one: the old one stays.
    pub(crate) fn give_conversion_up(&mut self, name: &str, error: &Error) {
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(conversion) = served.conversion.take() else {
            return;
        };
        if let Some(writer) = &mut served.writer {
            writer.drop_handover();
        }
        let refusal = Message::error(error.to_json(), conversion.id);
        self.send(conversion.client, None, refusal);
        free(conversion.stage);
    }

    /// Tells clients that a database has another schema now.
    pub(crate) fn tell_converted(&mut self, name: &Arc<str>, client: ClientId, id: &Json) {
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let barrier = served.barrier();
        let waiting = std::mem::take(&mut served.waiting);
        self.send(client, barrier, Message::reply(Json::object(), id.clone()));
        self.cancel_monitors(name);
        self.cancel_waiting(waiting);
        self.disconnect_unaware(&format!("committed {name} database schema conversion"));
        self.refresh_status(name);
    }
}
