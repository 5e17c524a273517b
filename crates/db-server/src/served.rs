//! One database that is served: its engine, monitors, log writer and waiting transactions.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Instant, WallTime};
use db_engine::monitor::Monitors;
use db_engine::writer::{Report, Ticket, Writer};
use db_engine::{Changes, Committed, Database, Disk, store, transaction_record};
use db_model::{DatabaseSchema, Error, Result, Uuid, UuidSource};
use json::Json;

use crate::cluster::Part;
use crate::conversion::Conversion;
use crate::server::ClientId;
use crate::server_db::Status;
use crate::upstream::{Relay, Upstream};

/// Identifies a served database for as long as it is served with one schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DbKey(pub(crate) u64);

/// A transaction that waits for a change.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) client: ClientId,
    pub(crate) id: Json,
    pub(crate) params: Json,
    pub(crate) since: Instant,
    pub(crate) until: Instant,
    /// Whether it is the method `convert` rather than `transact`.
    pub(crate) converts: bool,
}

/// When the log is compacted without being asked: it is at least this long, ...
const COMPACT_MIN_LENGTH: u64 = 10 << 20;
/// ... has grown by this factor since it was compacted, ...
const COMPACT_GROWTH: u64 = 2;
/// ... and that is this long ago.
const COMPACT_MIN_TIME: std::time::Duration = std::time::Duration::from_secs(600);

/// A commit that takes so long was held up by the disk (a busy processor may take a tenth of
/// it), ...
const LONG_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
/// ... which may do it again for so long.
const SLOW_DISK: std::time::Duration = std::time::Duration::from_secs(10);

/// A database that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) key: DbKey,
    pub(crate) db: Database,
    pub(crate) monitors: Monitors,
    pub(crate) writer: Option<Writer>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) waiting: Vec<Waiting>,
    /// Commits that are not written yet, to be taken back if they cannot be.
    pub(crate) unwritten: VecDeque<(Ticket, Changes)>,
    /// Up to here jobs of the writer were given up, since one of them failed.
    given_up: Ticket,
    /// Why the last write failed, if it did.
    fault: Option<Error>,
    /// Why the last compaction failed, if it did.
    pub(crate) compaction_fault: Option<Error>,
    /// Whether changes are recorded as differences.
    pub(crate) differences: bool,
    /// Whether something changed that waiting transactions may wait for.
    pub(crate) changed: bool,
    /// Whether clients are told the ids of transactions.
    pub(crate) tells_ids: bool,
    /// Tables whose changes are logged.
    pub(crate) logged: BTreeSet<usize>,
    /// Whether its schema is known; else clients can do nothing with it.
    pub(crate) available: bool,
    /// The server whose database this is, or is a copy of.
    pub(crate) upstream: Option<Upstream>,
    /// This server's part in the cluster whose database this is.
    pub(crate) cluster: Option<Box<Part>>,
    /// Whether a cluster is told all rows after a conversion, rather than to convert by itself.
    pub(crate) conversions_with_data: bool,
    /// A conversion beside transactions, if there is one.
    pub(crate) conversion: Option<Box<Conversion>>,
    /// Whether `_Server` says that it is connected.
    pub(crate) told_connected: bool,
    pub(crate) length: u64,
    /// When commits may be written by this thread again (real time).
    direct_again: Instant,
    compacted_length: u64,
    compacted_at: Instant,
    /// Compactions at work; all but the last are overtaken.
    compactions: usize,
}

/// Starts the writer of a disk.  `wake` is called when there is a report.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

impl Served {
    /// A database without a file.
    pub(crate) fn in_memory(key: DbKey, db: Database) -> Self {
        Self {
            key,
            db,
            monitors: Monitors::new(),
            writer: None,
            file: None,
            waiting: Vec::new(),
            unwritten: VecDeque::new(),
            given_up: Ticket(0),
            fault: None,
            compaction_fault: None,
            differences: true,
            changed: false,
            tells_ids: false,
            logged: BTreeSet::new(),
            available: true,
            upstream: None,
            cluster: None,
            conversions_with_data: false,
            conversion: None,
            told_connected: false,
            length: 0,
            direct_again: Instant::ZERO,
            compacted_length: 0,
            compacted_at: Instant::ZERO,
            compactions: 0,
        }
    }

    /// A database with its disk.
    pub(crate) fn with_disk(
        key: DbKey,
        db: Database,
        disk: Box<dyn Disk>,
        wake: &Wake,
        now: Instant,
    ) -> std::io::Result<Self> {
        let length = disk.len();
        let wake = Arc::clone(wake);
        let mut this = Self::in_memory(key, db);
        this.writer = Some(Writer::start(disk, move || wake())?);
        this.length = length;
        this.compacted_length = length;
        this.compacted_at = now;
        Ok(this)
    }

    /// Opens a database file.
    pub(crate) fn open(
        key: DbKey,
        path: &Path,
        shown: &str,
        uuids: UuidSource,
        wake: &Wake,
        now: Instant,
    ) -> Result<Self> {
        let (stored, disk) = store::open(path, shown, uuids)?;
        if let Some(fault) = &stored.fault {
            log::warn!(target: "ovsdb_file", "{fault}");
            log::warn!(target: "ovsdb_file",
                "{}: cut to {} bytes, after the last good of {} transaction(s)",
                shown, stored.end, stored.transactions);
        }
        let mut this = Self::with_disk(key, stored.db, Box::new(disk), wake, now)
            .map_err(|error| Error::io(&error, "cannot start writer"))?;
        this.file = Some(path.to_owned());
        Ok(this)
    }

    /// Begins with no monitors, and no memory of transactions.
    pub(crate) fn reset_monitors(&mut self) {
        self.logged.clear();
        self.monitors = Monitors::new();
        self.monitors.tell_ids(self.tells_ids);
    }

    /// Takes note of changes up to transaction `last` of another server, if that tells which
    /// transactions they are.
    pub(crate) fn passed(&mut self, last: Option<Uuid>, changes: &Changes) {
        self.changed |= !changes.is_empty();
        self.tells_ids = last.is_some();
        self.monitors.tell_ids(self.tells_ids);
        let id = last.unwrap_or_else(|| self.db.new_uuid());
        self.tell_monitors(id, changes);
    }

    /// Takes note of a commit that is in the database, for monitors and the log.
    pub(crate) fn tell_monitors(&mut self, id: Uuid, changes: &Changes) {
        if changes.is_empty() {
            self.monitors.passed(id);
        } else {
            self.monitors.committed(id, changes);
        }
        self.monitors.limit_history(self.db.atoms());
        self.log_changes(changes);
    }

    /// What is special to a relay, if it is one.
    pub(crate) fn relay(&self) -> Option<&Relay> {
        self.upstream.as_ref().and_then(Upstream::as_relay)
    }

    /// What `_Server` tells of it.
    pub(crate) fn status(&self, now: Instant) -> Status {
        let schema = self.available.then(|| self.schema());
        if let Some(part) = &self.cluster {
            let (connected, leader, cid) = part.status();
            return Status {
                model: "clustered",
                connected,
                leader,
                schema,
                ids: Some((cid, part.raft.sid())),
                index: part.raft.applied_index(),
            };
        }
        let upstream = self.upstream.as_ref();
        match upstream.filter(|upstream| upstream.as_relay().is_some()) {
            Some(upstream) => Status {
                model: "relay",
                connected: upstream.is_connected(now),
                leader: false,
                schema,
                ..Status::STANDALONE
            },
            None => Status {
                schema,
                ..Status::STANDALONE
            },
        }
    }

    /// The database's name.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.db.schema().name)
    }

    /// The schema.
    pub(crate) fn schema(&self) -> Arc<DatabaseSchema> {
        Arc::clone(self.db.schema())
    }

    /// What must be written before anything that follows from the present state may leave.
    pub(crate) fn barrier(&self) -> Option<(DbKey, Ticket)> {
        let writer = self.writer.as_ref()?;
        let last = writer.last();
        (writer.done() < last).then_some((self.key, last))
    }

    /// Whether everything up to the ticket is written.
    pub(crate) fn is_written(&self, ticket: Ticket) -> bool {
        self.writer.as_ref().is_none_or(|w| w.done() >= ticket)
    }

    /// Hands a commit to the writer and the monitors.
    pub(crate) fn commit(&mut self, committed: &Committed, wall: WallTime) {
        if committed.changes.is_empty() {
            return;
        }
        self.changed = true;
        if let Some(writer) = &mut self.writer {
            let record = transaction_record(
                self.db.schema(),
                &committed.changes,
                wall,
                &committed.comment,
                self.differences,
            );
            self.length = writer.length();
            let ticket = match record {
                Some(record) => writer.append(&record, committed.durable),
                // It may be built on what is not written yet.
                None => writer.last(),
            };
            if ticket > writer.done() {
                self.unwritten
                    .push_back((ticket, committed.changes.clone()));
            }
        }
        self.mirror(&committed.changes, wall, &committed.comment);
        self.tell_monitors(committed.id, &committed.changes);
    }

    /// Takes note of how long a commit took, in real time: a disk that makes this thread wait
    /// is left to the writer's own for a while.
    pub(crate) fn note_pause(&mut self, now: Instant, took: std::time::Duration) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        if took > LONG_PAUSE {
            writer.set_direct(false);
            self.direct_again = now + SLOW_DISK;
        } else if now >= self.direct_again {
            writer.set_direct(true);
        }
    }

    /// Begins to write the file anew, with the present rows only.
    pub(crate) fn compact(
        &mut self,
        now: Instant,
        wall: WallTime,
        comment: &str,
    ) -> Option<Ticket> {
        if self.conversion.is_some() {
            // That makes a compact file, and would not be if it were overtaken.
            return None;
        }
        let snapshot = self.db.snapshot();
        let writer = self.writer.as_mut()?;
        self.compacted_at = now;
        self.compactions += 1;
        Some(writer.compact(snapshot, wall, comment.to_owned()))
    }

    /// Puts another database in the place of this one, in the file first.  Nothing may wait to
    /// be written.
    ///
    /// # Errors
    /// The file cannot be written; it and the database are as they were.
    pub(crate) fn become_another(
        &mut self,
        key: DbKey,
        db: Database,
        now: Instant,
        wall: WallTime,
    ) -> std::io::Result<()> {
        let replace = |writer: &mut Writer| {
            writer.replace(db.snapshot(), wall, "converted by ovsdb-server".to_owned())
        };
        let ticket = self.writer.as_mut().map(replace);
        while let (Some(ticket), Some(writer)) = (ticket, &mut self.writer) {
            let gone = || std::io::Error::other("the writer has ended");
            let report = writer.wait().ok_or_else(gone)?;
            if report.ticket != ticket {
                // A compaction, which is overtaken.
                let _ = self.written(report);
                continue;
            }
            self.length = report.length;
            report.result?;
            self.compacted_length = report.length;
            self.compacted_at = now;
            break;
        }
        self.key = key;
        self.db = db;
        self.reset_monitors();
        Ok(())
    }

    /// Puts the converted database, whose file is in place, in the place of this one, which is
    /// returned.
    pub(crate) fn become_converted(&mut self, key: DbKey, db: Database, now: Instant) -> Database {
        self.length = self.writer.as_ref().map_or(0, Writer::length);
        self.compacted_length = self.length;
        self.compacted_at = now;
        self.key = key;
        self.reset_monitors();
        std::mem::replace(&mut self.db, db)
    }

    /// The name of the file, for messages.
    pub(crate) fn shown(&self) -> String {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        file.unwrap_or_else(|| self.name().to_string())
    }

    /// Whether the file is being written anew.
    pub(crate) const fn is_compacting(&self) -> bool {
        self.compactions > 0
    }

    /// Whether the log should be compacted.
    pub(crate) fn wants_compaction(&self, now: Instant) -> bool {
        !self.is_compacting()
            && self.conversion.is_none()
            && self.length >= COMPACT_MIN_LENGTH
            && self.length >= COMPACT_GROWTH * self.compacted_length
            && now >= self.compacted_at + COMPACT_MIN_TIME
    }

    /// The state of the file: why the last write failed, or `ok`.
    pub(crate) fn storage_status(&self) -> String {
        if let Some(part) = &self.cluster {
            return part.storage_status();
        }
        let fault = self.fault.as_ref();
        fault.map_or_else(|| "ok".to_owned(), Error::to_string)
    }

    /// Takes note of a report.
    ///
    /// # Errors
    /// A write failed, and commits were taken back: all those after the report before this one.
    pub(crate) fn written(&mut self, report: Report) -> std::result::Result<(), FailedWrite> {
        self.length = report.length;
        if report.handover.is_some() {
            if let Some(conversion) = &mut self.conversion {
                conversion.take_report(report);
            }
            return Ok(());
        }
        if report.replaced {
            self.compactions = self.compactions.saturating_sub(1);
            self.compaction_fault = None;
            if report.result.is_ok() {
                self.compacted_length = report.length;
            }
        }
        let Err(error) = report.result else {
            self.fault = None;
            let is_written = |(ticket, _): &mut (Ticket, Changes)| *ticket <= report.ticket;
            while self.unwritten.pop_front_if(is_written).is_some() {}
            return Ok(());
        };
        if report.replaced {
            log::warn!(target: "ovsdb_file", "{}: compaction failed ({})", self.name(),
                base::errno_text(&error));
            let details = format!("{}.compact: write failed", self.shown());
            self.compaction_fault = Some(Error::io(&error, details));
            return Ok(());
        }
        if report.ticket <= self.given_up {
            return Ok(());
        }
        let reply = Error::io(&error, format!("{}: write failed", self.shown()));
        self.fault = Some(reply.clone());
        if let Some(conversion) = &mut self.conversion {
            conversion.fail(reply.clone());
        }
        if let Some(writer) = &mut self.writer {
            self.given_up = writer.last();
            writer.resume();
        }
        let taken_back = self.unwritten.len();
        while let Some((_, changes)) = self.unwritten.pop_back() {
            self.db.apply(&changes.reversed());
        }
        self.changed = true;
        Err(FailedWrite {
            error,
            reply,
            taken_back,
        })
    }
}

/// A write that failed.
#[derive(Debug)]
pub(crate) struct FailedWrite {
    /// Why.
    pub(crate) error: std::io::Error,
    /// What clients are told.
    pub(crate) reply: Error,
    /// The number of commits that were taken back.
    pub(crate) taken_back: usize,
}
