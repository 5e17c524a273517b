//! This server's part in the cluster of one database.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base::{Instant, WallTime};
use db_engine::disk::FileDisk;
use db_engine::store::ClusteredFile;
use db_engine::{Changes, Disk, Snapshot, snapshot_record};
use db_model::{Error, Result, Uuid, UuidSource};
use db_raft::message::Message;
use db_raft::record::Header;
use db_raft::{Command, Raft};
use json::Json;

use super::transact::{Answered, Batch, InFlight};
use super::writer::ClusterWriter;
use super::{Standing, standing};
use crate::served::Wake;

/// What is to go out to other servers, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// A message to its `peer`.
    Message(Message),
    /// The greeting, over all connections.
    Greeting,
    /// Nothing more: the process is to end with these words.
    Crash(&'static str),
}

/// A snapshot's text and the index that it is of, or why there is none.
type SnapshotText = (String, u64);

/// When the log is compacted without being asked: the file is at least this long, ...
const COMPACT_MIN_LENGTH: u64 = 10 << 20;
/// ... has grown by this factor since it was compacted, ...
const COMPACT_GROWTH: u64 = 2;
/// ... has at least so many entries, ...
const COMPACT_MIN_ENTRIES: u64 = 100;
/// ... and was compacted this long ago; ...
const COMPACT_MIN_TIME: Duration = Duration::from_secs(600);
/// ... or so long ago, with any entries.
const COMPACT_MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// How long transactions wait that nobody takes before they are tried again.
const RETRY: Duration = Duration::from_millis(250);

/// How long to wait after a write that failed.
const RECOVER: Duration = Duration::from_secs(5);

/// What `_Server` tells: whether it is connected, whether it leads, and the cluster's id.
pub(crate) type Told = (bool, bool, Uuid);

/// Reads a server's file.  Returns where what is not its snapshot begins, too.
fn read_file(path: &Path, shown: &str, random: UuidSource) -> Result<(Raft, FileDisk, u64)> {
    let mut file = ClusteredFile::open(path, shown)?;
    let header = file.records.next_record()?.unwrap_or(Json::Null);
    let header = Header::from_json(&header)?;
    let base = file.records.good_end();
    let mut raft = Raft::new(header, random);
    // A server that has not joined knows nothing more.
    let last = if raft.is_joining() { 0 } else { u64::MAX };
    for number in 1..=last {
        match file.records.next_record() {
            Ok(Some(record)) => raft.replay(number, &record)?,
            Ok(None) => break,
            Err(error) => {
                // Most likely the process ended while it wrote that.
                log::warn!(target: "raft", "{error}");
                break;
            }
        }
    }
    Ok((raft, file.into_disk()?, base))
}

/// The part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) raft: Raft,
    pub(super) writer: ClusterWriter,
    path: PathBuf,
    shown: String,
    random: UuidSource,
    /// When to try to take part again, after a write that failed.
    recover_at: Option<Instant>,
    /// The id of the last data that the database has taken: what comes next follows it.
    pub(super) eid: Uuid,
    /// Transactions that are executed at present.
    pub(super) batch: Batch,
    /// What is on its way into the log.
    pub(super) in_flight: BTreeMap<Command, InFlight>,
    /// Answers that wait until the database has taken the log up to an index.
    pub(super) answered: Vec<Answered>,
    /// What is to go out to other servers.
    pub(crate) outbox: VecDeque<Said>,
    /// Why nothing more is taken from the log, if that is so.
    pub(super) fault: Option<Error>,
    pub(super) told: Option<Told>,
    pub(super) told_index: u64,
    snapshot: Option<Receiver<SnapshotText>>,
    snapshot_ready: Option<SnapshotText>,
    pub(super) snapshot_failed: Option<Error>,
    compacted_at: Instant,
    standing: Option<Standing>,
    /// When to try again what nobody has taken.
    pub(super) retry_at: Instant,
    /// Limits of what may wait for another server: messages and bytes.
    pub(crate) backlog: (usize, usize),
    /// Whether a failure test was set just now.
    pub(crate) tested: bool,
}

impl Part {
    /// Reads a file and begins to take part.
    pub(super) fn open(
        now: Instant,
        path: &Path,
        shown: &str,
        random: UuidSource,
        wake: &Wake,
    ) -> Result<Self> {
        let mut random = random;
        let (mut raft, disk, base) = read_file(path, shown, random.fork())?;
        raft.start(now)?;
        let wake = Arc::clone(wake);
        let writer = ClusterWriter::start(Box::new(disk), base, move || wake())
            .map_err(|error| Error::io(&error, "cannot start writer"))?;
        Ok(Self {
            raft,
            writer,
            path: path.to_owned(),
            shown: shown.to_owned(),
            random,
            recover_at: None,
            eid: Uuid::nil(),
            batch: Batch::default(),
            in_flight: BTreeMap::new(),
            answered: Vec::new(),
            outbox: VecDeque::new(),
            fault: None,
            told: None,
            told_index: 0,
            snapshot: None,
            snapshot_ready: None,
            snapshot_failed: None,
            compacted_at: now,
            standing: None,
            retry_at: Instant::MAX,
            backlog: (500, u32::MAX as usize),
            tested: false,
        })
    }

    /// Takes part again after a write that failed, if it is time to try.
    pub(super) fn recover(&mut self, now: Instant, wake: &Wake) {
        let at = *self.recover_at.get_or_insert(now + RECOVER);
        if now < at {
            return;
        }
        // The file is this server's until the writer ends.
        self.writer = ClusterWriter::closed();
        match self.reopen(now, wake) {
            Ok(()) => {
                log::info!(target: "raft", "{}: taking part in the cluster again after a failed \
                    write", self.shown);
                self.recover_at = None;
            }
            Err(error) => {
                base::log_limited!(
                    Warn,
                    "raft",
                    (1, 1),
                    "{}: still no part of the cluster: \
                    {error}",
                    self.shown
                );
                self.recover_at = Some(now + RECOVER);
            }
        }
    }

    fn reopen(&mut self, now: Instant, wake: &Wake) -> Result<()> {
        let (mut raft, mut disk, base) = read_file(&self.path, &self.shown, self.random.fork())?;
        // What could not be synced may look as if it had been: all is written once more.
        let failed =
            |error: &std::io::Error| Error::io(error, format!("{}: write failed", self.shown));
        let length = usize::try_from(disk.len()).unwrap_or(usize::MAX);
        let mut contents = std::fs::read(&self.path).map_err(|error| failed(&error))?;
        contents.truncate(length);
        disk.replace(&contents).map_err(|error| failed(&error))?;
        raft.resume_from(self.raft.applied_index());
        raft.start(now)?;
        let wake = Arc::clone(wake);
        self.writer = ClusterWriter::start(Box::new(disk), base, move || wake())
            .map_err(|error| Error::io(&error, "cannot start writer"))?;
        self.raft = raft;
        self.outbox.clear();
        Ok(())
    }

    /// What `_Server` tells.
    pub(crate) fn status(&self) -> Told {
        let connected = self.raft.is_connected() && self.fault.is_none();
        (connected, self.raft.is_leader(), self.raft.cid())
    }

    /// The state of the file, as `ovsdb-server/get-db-storage-status` has it.
    pub(crate) fn storage_status(&self) -> String {
        match &self.fault {
            Some(fault) => fault.to_string(),
            None if self.raft.has_failed() => {
                format!("I/O error: {}: write failed, to be tried again", self.shown)
            }
            None => "ok".to_owned(),
        }
    }

    /// This server's own data of an id, on their way into the log or waiting to be applied.
    fn flight(&mut self, eid: Uuid) -> Option<&mut InFlight> {
        let flying = self.in_flight.values_mut();
        let answered = self
            .answered
            .iter_mut()
            .map(|answered| &mut answered.flight);
        flying.chain(answered).find(|flight| flight.eid == eid)
    }

    /// The changes of this server's own data, if they are these and not committed before.
    pub(super) fn take_changes(&mut self, eid: Uuid) -> Option<Changes> {
        let present = self.eid;
        self.flight(eid)?.take_changes(present)
    }

    /// Whether it matters to waiting transactions what has changed, or it is time to try again.
    pub(super) fn note_standing(&mut self, now: Instant) -> bool {
        let standing = standing(&self.raft);
        let changed = self.standing.replace(standing) != Some(standing);
        let is_time = now >= self.retry_at;
        if is_time {
            self.retry_at = Instant::MAX;
        }
        changed || is_time
    }

    /// Transactions wait that nobody has taken.
    pub(super) fn retry_later(&mut self, now: Instant) {
        self.retry_at = self.retry_at.min(now + RETRY);
    }

    /// When there is something to do at the latest.
    pub(crate) fn next_deadline(&self) -> Instant {
        if self.tested {
            return Instant::ZERO;
        }
        let day = self.compacted_at + COMPACT_MAX_TIME;
        let recover = self.recover_at.unwrap_or(Instant::MAX);
        let first = self.raft.next_deadline().min(self.retry_at);
        first.min(recover).min(day)
    }

    /// Whether the log should be compacted.
    pub(super) fn wants_snapshot(&mut self, now: Instant) -> bool {
        if now < self.compacted_at + COMPACT_MIN_TIME
            || self.snapshot.is_some()
            || !self.raft.may_snapshot()
        {
            return false;
        }
        if now >= self.compacted_at + COMPACT_MAX_TIME {
            return true;
        }
        self.writer.length >= COMPACT_MIN_LENGTH
            && self.writer.length >= COMPACT_GROWTH * self.writer.base
            && self.raft.log_length() >= COMPACT_MIN_ENTRIES
    }

    /// Begins to make the text of a snapshot, on a thread of its own.
    pub(super) fn begin_snapshot(
        &mut self,
        now: Instant,
        snapshot: Snapshot,
        wall: WallTime,
        wake: &Wake,
    ) -> Result<()> {
        if self.snapshot.is_some() {
            return Ok(());
        }
        let index = self.raft.applied_index();
        let (sender, receiver) = channel();
        let wake = Arc::clone(wake);
        let work = move || {
            let rows = snapshot_record(&snapshot, wall, "compacting database online");
            let text = format!("[{},{rows}]", snapshot.schema.to_json());
            // Nobody may want it any more.
            let _ = sender.send((text, index));
            wake();
        };
        std::thread::Builder::new()
            .name("compaction".to_owned())
            .spawn(work)
            .map_err(|error| Error::io(&error, "cannot start compaction"))?;
        self.snapshot = Some(receiver);
        self.compacted_at = now;
        Ok(())
    }

    /// The text of a snapshot, if it is ready.
    pub(super) fn poll_snapshot(&mut self) -> Option<Result<SnapshotText>> {
        use std::sync::mpsc::TryRecvError;
        if let Some(ready) = self.snapshot_ready.take() {
            return Some(Ok(ready));
        }
        let outcome = match self.snapshot.as_ref()?.try_recv() {
            Ok(ready) => Ok(ready),
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(Error::general("compaction failed")),
        };
        self.snapshot = None;
        Some(outcome)
    }

    /// Waits for the text of a snapshot that was begun.
    pub(super) fn wait_snapshot(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            self.snapshot_ready = snapshot.recv().ok();
        }
    }

    /// The converted database of this server's own conversion, if the present one is the one
    /// that it was made of.
    pub(super) fn take_converted(&mut self, eid: Uuid) -> Option<db_engine::Database> {
        let present = self.eid;
        self.flight(eid)?.take_converted(present)
    }
}
