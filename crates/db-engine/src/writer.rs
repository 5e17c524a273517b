//! The writer of a log: appends records, and now and then writes the file anew.
//!
//! Records are numbered; what was written is reported by number, in order.  A record that need
//! not survive a loss of power is written at once, if nothing waits before it.  All others go
//! to a thread, which writes all that wait at once; one sync serves all of them that asked for it.
//!
//! A compaction is the work of another thread: it writes a snapshot to a new file while records
//! still go to the old one, catches up with those, and then puts the new file in its place.
//!
//! A handover is like a compaction, but that the new file holds something else, such as the same
//! rows in another schema: who orders it says what was appended meanwhile means there, and
//! puts the new file in place when both are ready for it.
//!
//! When a write fails, the records that were handed over after it are built on one that is not
//! there: they fail, too, until the one who hands them over has heard of it and says so with
//! [`Writer::resume`].

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use base::WallTime;

use crate::database::Snapshot;
use crate::disk::{Disk, Replacement};
use crate::{log_file, record};

/// Numbers what is handed to a writer, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A snapshot that is to be the new contents of the file.
struct Contents {
    snapshot: Snapshot,
    date: WallTime,
    comment: String,
}

enum Job {
    Append {
        ticket: Ticket,
        record: Vec<u8>,
        durable: bool,
    },
    Replace(Ticket, Box<Contents>),
    Compact {
        ticket: Ticket,
        contents: Box<Contents>,
        /// Whether the new file is handed over rather than put in place.
        handover: bool,
    },
    Resume(Ticket),
}

/// What became of a job, or of all jobs up to one.
#[derive(Debug)]
pub struct Report {
    /// The job; those before it are done as well.  0 if this is about a compaction that was
    /// begun before.
    pub ticket: Ticket,
    /// The file's length now.
    pub length: u64,
    /// Whether it worked.
    pub result: io::Result<()>,
    /// Whether this is about a replacement of the whole file, now or in the end.
    pub replaced: bool,
    /// If this is about a handover, which one: its new file is ready, or will not be.
    pub handover: Option<Ticket>,
}

/// Tells reports, and wakes who waits for them.
#[derive(Clone)]
struct Reporter {
    reports: Sender<Report>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Reporter {
    fn report(&self, report: Report) {
        // Nobody may be listening any more.
        let _ = self.reports.send(report);
        (self.wake)();
    }
}

impl Reporter {
    /// Reports that the new file of a handover is ready, or will not be.
    fn report_handover(&self, log: &Mutex<Log>, handover: Ticket, result: io::Result<()>) {
        self.report(Report {
            ticket: Ticket(0),
            length: lock(log).disk.len(),
            result,
            replaced: false,
            handover: Some(handover),
        });
    }
}

/// The handle on a log's writer.  Dropping it waits until all is written; a compaction is given
/// up.
pub struct Writer {
    log: Arc<Mutex<Log>>,
    jobs: Option<Sender<Job>>,
    reports: Receiver<Report>,
    /// A failure of this thread's own.
    failure: VecDeque<Report>,
    thread: Option<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
    wake: Arc<dyn Fn() + Send + Sync>,
    last: Ticket,
    done: Ticket,
    length: u64,
    direct: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("last", &self.last)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

/// Longer records are left to the thread.
const MAX_DIRECT: usize = 64 << 10;

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    // A panic is told when it happens; the log itself is never half changed.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    /// Starts the thread.  `wake` is called after each report that is not the caller's own.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(disk: Box<dyn Disk>, wake: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        let (jobs, job_receiver) = channel();
        let (report_sender, reports) = channel();
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(wake);
        let length = disk.len();
        let log = Arc::new(Mutex::new(Log::new(disk)));
        let ending = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            log: Arc::clone(&log),
            jobs: job_receiver,
            reporter: Reporter {
                reports: report_sender,
                wake: Arc::clone(&wake),
            },
            ending: Arc::clone(&ending),
            compaction: None,
        };
        let thread = std::thread::Builder::new()
            .name("dbwriter".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            log,
            jobs: Some(jobs),
            reports,
            failure: VecDeque::new(),
            thread: Some(thread),
            ending,
            wake,
            last: Ticket(0),
            done: Ticket(0),
            length,
            direct: true,
        })
    }

    /// Sets whether records may be written by the caller's own thread, which a slow disk would
    /// hold up.
    pub const fn set_direct(&mut self, direct: bool) {
        self.direct = direct;
    }

    fn submit(&mut self, job: impl FnOnce(Ticket) -> Job) -> Ticket {
        self.last.0 += 1;
        if let Some(jobs) = &self.jobs {
            // It fails only when the thread has panicked; then nothing is ever reported.
            let _ = jobs.send(job(self.last));
        }
        self.last
    }

    /// Writes a record's text, or has it written.  If `durable`, it is done only when it would
    /// survive a loss of power.
    pub fn append(&mut self, json_text: &str, durable: bool) -> Ticket {
        let record = log_file::frame(json_text);
        if self.direct && !durable && self.done == self.last && record.len() <= MAX_DIRECT {
            return self.append_now(&record);
        }
        self.submit(|ticket| Job::Append {
            ticket,
            record,
            durable,
        })
    }

    fn append_now(&mut self, record: &[u8]) -> Ticket {
        let mut log = lock(&self.log);
        let result = log.append(record, false);
        let length = log.disk.len();
        drop(log);
        self.last.0 += 1;
        if result.is_ok() {
            self.done = self.last;
            self.length = length;
        } else {
            self.failure.push_back(Report {
                ticket: self.last,
                length,
                result,
                replaced: false,
                handover: None,
            });
            (self.wake)();
        }
        self.last
    }

    /// Replaces the file by one with the snapshot's schema and rows only, before anything that
    /// is handed over later.  It fails if a write before it did.
    pub fn replace(&mut self, snapshot: Snapshot, date: WallTime, comment: String) -> Ticket {
        let contents = Contents {
            snapshot,
            date,
            comment,
        };
        self.submit(|ticket| Job::Replace(ticket, Box::new(contents)))
    }

    /// Begins to replace the file by one with the snapshot's schema and rows, and what is
    /// handed over later.  That does not wait for this, which takes a while: when it is over,
    /// there is a report with ticket 0.  It fails if a write before it did.
    pub fn compact(&mut self, snapshot: Snapshot, date: WallTime, comment: String) -> Ticket {
        let contents = Contents {
            snapshot,
            date,
            comment,
        };
        let contents = Box::new(contents);
        self.submit(|ticket| Job::Compact {
            ticket,
            contents,
            handover: false,
        })
    }

    /// Begins to write a new file with the snapshot's schema and rows, which takes a while; a
    /// compaction at work is overtaken.  When it is over, there is a report with ticket 0 that
    /// says whether [`hand_over`](Self::hand_over) may be called.
    pub fn begin_handover(
        &mut self,
        snapshot: Snapshot,
        date: WallTime,
        comment: String,
    ) -> Ticket {
        self.drop_handover();
        let contents = Box::new(Contents {
            snapshot,
            date,
            comment,
        });
        self.submit(|ticket| Job::Compact {
            ticket,
            contents,
            handover: true,
        })
    }

    /// Adds a record to the new file of a handover that has begun.
    pub fn append_to_new(&mut self, json_text: &str) {
        let record = log_file::frame(json_text);
        let mut log = lock(&self.log);
        log.to_new.extend_from_slice(&record);
    }

    /// Puts the new file of a handover in place; what was appended to the old one is gone.
    /// Nothing may wait to be written.
    ///
    /// # Errors
    /// The new file cannot be written; the old one is as it was.
    pub fn hand_over(&mut self) -> io::Result<()> {
        let mut log = lock(&self.log);
        let rest = std::mem::take(&mut log.to_new);
        let gone = || io::Error::other("there is no new file");
        let mut replacement = log.ready.take().ok_or_else(gone)?;
        replacement.write(&rest)?;
        replacement.sync()?;
        log.disk = replacement.put_in_place()?;
        log.cut_to = None;
        self.length = log.disk.len();
        Ok(())
    }

    /// Gives a handover up.
    pub fn drop_handover(&mut self) {
        let mut log = lock(&self.log);
        log.to_new.clear();
        log.ready = None;
        if log
            .compaction
            .as_ref()
            .is_some_and(|(_, tail)| tail.handover)
        {
            log.compaction = None;
        }
    }

    /// After a report that an append failed: what is handed over from now on is built neither on
    /// that nor on what came after it, and is tried again.
    pub fn resume(&mut self) {
        self.submit(Job::Resume);
    }

    /// The number of the last job.
    pub const fn last(&self) -> Ticket {
        self.last
    }

    /// The number up to which everything is written.
    pub const fn done(&self) -> Ticket {
        self.done
    }

    /// The file's length, as far as it is known to be written.
    pub const fn length(&self) -> u64 {
        self.length
    }

    fn take(&mut self, report: Report) -> Report {
        self.done = self.done.max(report.ticket);
        self.length = report.length;
        report
    }

    /// The next report, if there is one.
    pub fn poll(&mut self) -> Option<Report> {
        let own = self.failure.pop_front();
        let report = own.or_else(|| self.reports.try_recv().ok())?;
        Some(self.take(report))
    }

    /// Waits for the next report; `None` if there is nothing to wait for but a compaction.
    pub fn wait(&mut self) -> Option<Report> {
        if self.done == self.last {
            return None;
        }
        let own = self.failure.pop_front();
        let report = own.or_else(|| self.reports.recv().ok())?;
        Some(self.take(report))
    }

    /// Waits for the next report, be it that a compaction is over.
    pub fn wait_for_any(&mut self) -> Option<Report> {
        let own = self.failure.pop_front();
        let report = own.or_else(|| self.reports.recv().ok())?;
        Some(self.take(report))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// What was appended while the file is written anew, and is not in the new file yet.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Whether some of it must survive a loss of power.
    durable: bool,
    /// Whether the new file is handed over, so that nothing appended to the old one belongs into it.
    handover: bool,
}

/// A log's disk and the state that it is in.
struct Log {
    disk: Box<dyn Disk>,
    /// Whether an append failed, and what comes may be built on it.
    voided: bool,
    /// Where the file should end, if it may have more than that.
    cut_to: Option<u64>,
    /// The compaction at work, by its ticket, and what it has to catch up with.
    compaction: Option<(Ticket, Tail)>,
    /// What belongs into the new file of a handover beside its snapshot.
    to_new: Vec<u8>,
    /// The new file of a handover.
    ready: Option<Box<dyn Replacement>>,
}

/// What becomes of a job that follows one that failed.
fn voided() -> io::Error {
    io::Error::other("an earlier write failed")
}

impl Log {
    fn new(disk: Box<dyn Disk>) -> Self {
        Self {
            disk,
            voided: false,
            cut_to: None,
            compaction: None,
            to_new: Vec::new(),
            ready: None,
        }
    }

    /// Writes `bytes` whole, or as far as can be had nothing of them.
    fn append(&mut self, bytes: &[u8], durable: bool) -> io::Result<()> {
        if self.voided {
            return Err(voided());
        }
        let result = self.try_append(bytes, durable);
        if result.is_err() {
            self.voided = true;
            if let Some(length) = self.cut_to
                && self.disk.cut(length).is_ok()
            {
                self.cut_to = None;
            }
        } else if let Some((_, tail)) = &mut self.compaction
            && !tail.handover
        {
            tail.bytes.extend_from_slice(bytes);
            tail.durable |= durable;
        }
        result
    }

    fn try_append(&mut self, bytes: &[u8], durable: bool) -> io::Result<()> {
        if let Some(length) = self.cut_to {
            self.disk.cut(length)?;
        }
        self.cut_to = Some(self.disk.len());
        self.disk.append(bytes)?;
        if durable {
            self.disk.sync()?;
        }
        self.cut_to = None;
        Ok(())
    }

    fn replace(&mut self, contents: &Contents) -> io::Result<()> {
        if self.voided {
            return Err(voided());
        }
        // A compaction at work would bring back what this replaces.
        self.compaction = None;
        let Contents {
            snapshot,
            date,
            comment,
        } = contents;
        self.disk.replace(&whole_file(snapshot, *date, comment))?;
        self.cut_to = None;
        Ok(())
    }

    /// The tail of the compaction with this ticket, unless it was overtaken.
    fn tail(&mut self, ticket: Ticket) -> Option<&mut Tail> {
        let compaction = self.compaction.as_mut();
        compaction.and_then(|(at_work, tail)| (*at_work == ticket).then_some(tail))
    }
}

/// Appends that are gathered into one write, at most.
const MAX_BATCH: usize = 4 << 20;

/// The thread that does the jobs.
struct Worker {
    log: Arc<Mutex<Log>>,
    jobs: Receiver<Job>,
    reporter: Reporter,
    ending: Arc<AtomicBool>,
    compaction: Option<JoinHandle<()>>,
}

impl Worker {
    fn run(mut self) {
        while let Ok(job) = self.jobs.recv() {
            let mut next = Some(job);
            while let Some(job) = next.take() {
                next = self.perform(job);
            }
        }
        self.end_compaction();
    }

    fn end_compaction(&mut self) {
        if let Some(thread) = self.compaction.take() {
            // As in `Writer::drop`.
            let _ = thread.join();
        }
    }

    /// Does a job and all appends that wait behind it.  Returns what came up next.
    fn perform(&mut self, job: Job) -> Option<Job> {
        match job {
            Job::Append {
                mut ticket,
                record: mut bytes,
                mut durable,
            } => {
                let mut next = None;
                while bytes.len() < MAX_BATCH {
                    match self.jobs.try_recv() {
                        Ok(Job::Append {
                            ticket: later,
                            record,
                            durable: also,
                        }) => {
                            ticket = later;
                            bytes.extend_from_slice(&record);
                            durable |= also;
                        }
                        Ok(other) => {
                            next = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                let result = lock(&self.log).append(&bytes, durable);
                self.report(ticket, result, false);
                next
            }
            Job::Replace(ticket, contents) => {
                let result = lock(&self.log).replace(&contents);
                self.report(ticket, result, true);
                None
            }
            Job::Compact {
                ticket,
                contents,
                handover,
            } => {
                match self.compact(ticket, contents, handover) {
                    Ok(()) => self.report(ticket, Ok(()), false),
                    Err(error) if !handover => self.report(ticket, Err(error), true),
                    Err(error) => {
                        self.report(ticket, Ok(()), false);
                        self.reporter.report_handover(&self.log, ticket, Err(error));
                    }
                }
                None
            }
            Job::Resume(ticket) => {
                lock(&self.log).voided = false;
                self.report(ticket, Ok(()), false);
                None
            }
        }
    }

    /// Starts the thread of a compaction; one that is still at work is overtaken.
    fn compact(
        &mut self,
        ticket: Ticket,
        contents: Box<Contents>,
        handover: bool,
    ) -> io::Result<()> {
        let mut log = lock(&self.log);
        if log.voided {
            return Err(voided());
        }
        let replacement = log.disk.replacement()?;
        let tail = Tail {
            handover,
            ..Tail::default()
        };
        log.compaction = Some((ticket, tail));
        drop(log);
        self.end_compaction();
        let compaction = Compaction {
            log: Arc::clone(&self.log),
            ticket,
            replacement,
            handover,
            ending: Arc::clone(&self.ending),
        };
        let reporter = self.reporter.clone();
        let thread = std::thread::Builder::new()
            .name("dbcompact".to_owned())
            .spawn(move || compaction.run(*contents, &reporter))?;
        self.compaction = Some(thread);
        Ok(())
    }

    fn report(&self, ticket: Ticket, result: io::Result<()>, replaced: bool) {
        self.reporter.report(Report {
            ticket,
            length: lock(&self.log).disk.len(),
            result,
            replaced,
            handover: None,
        });
    }
}

/// How often a compaction catches up with what was appended meanwhile, at most, before it holds
/// appends up for the rest.
const CATCH_UPS: usize = 8;

/// How much of the new file is written at once.
const PIECE: usize = 1 << 20;

/// The work of the compaction's thread.
struct Compaction {
    log: Arc<Mutex<Log>>,
    ticket: Ticket,
    replacement: Box<dyn Replacement>,
    handover: bool,
    ending: Arc<AtomicBool>,
}

impl Compaction {
    fn run(self, contents: Contents, reporter: &Reporter) {
        let (log, ticket) = (Arc::clone(&self.log), self.ticket);
        if self.handover {
            let result = self.prepare(contents);
            reporter.report_handover(&log, ticket, result);
            return;
        }
        let result = self.write(contents);
        let mut log = lock(&log);
        if log.tail(ticket).is_some() {
            log.compaction = None;
        }
        let length = log.disk.len();
        drop(log);
        reporter.report(Report {
            ticket: Ticket(0),
            length,
            result,
            replaced: true,
            handover: None,
        });
    }

    /// Writes the snapshot of a handover and leaves the new file for it.
    fn prepare(mut self, contents: Contents) -> io::Result<()> {
        let unwanted = || io::Error::other("the new file is not wanted any more");
        if !self.write_snapshot(contents)? {
            return Err(unwanted());
        }
        let shared = Arc::clone(&self.log);
        let mut log = lock(&shared);
        log.tail(self.ticket).ok_or_else(unwanted)?;
        log.compaction = None;
        log.ready = Some(self.replacement);
        Ok(())
    }

    /// Whether nobody wants the new file any more.
    fn is_given_up(&self) -> bool {
        self.ending.load(Ordering::Relaxed) || lock(&self.log).tail(self.ticket).is_none()
    }

    /// Writes schema and rows.  False if nobody wants them any more.
    fn write_snapshot(&mut self, contents: Contents) -> io::Result<bool> {
        let Contents {
            snapshot,
            date,
            comment,
        } = contents;
        let schema = snapshot.schema.to_json().to_string();
        self.replacement.write(&log_file::frame(&schema))?;
        let rows = record::snapshot_record(&snapshot, date, &comment);
        drop(snapshot);
        let rows = log_file::frame(&rows);
        // In pieces, so that it can be given up.
        for piece in rows.chunks(PIECE) {
            self.replacement.write(piece)?;
            if self.is_given_up() {
                return Ok(false);
            }
        }
        drop(rows);
        self.replacement.sync()?;
        Ok(!self.is_given_up())
    }

    fn write(mut self, contents: Contents) -> io::Result<()> {
        if !self.write_snapshot(contents)? {
            return Ok(());
        }
        let shared = Arc::clone(&self.log);
        for _ in 0..CATCH_UPS {
            let mut log = lock(&shared);
            let Some(tail) = log.tail(self.ticket).map(std::mem::take) else {
                return Ok(());
            };
            if tail.bytes.is_empty() {
                return self.put_in_place(&mut log);
            }
            drop(log);
            if self.ending.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.replacement.write(&tail.bytes)?;
            self.replacement.sync()?;
        }
        let mut log = lock(&shared);
        let Some(tail) = log.tail(self.ticket).map(std::mem::take) else {
            return Ok(());
        };
        self.replacement.write(&tail.bytes)?;
        if tail.durable {
            self.replacement.sync()?;
        }
        self.put_in_place(&mut log)
    }

    fn put_in_place(self, log: &mut Log) -> io::Result<()> {
        log.disk = self.replacement.put_in_place()?;
        log.cut_to = None;
        Ok(())
    }
}

/// The contents of a file that holds a snapshot.
pub fn whole_file(snapshot: &Snapshot, date: WallTime, comment: &str) -> Vec<u8> {
    let mut contents = log_file::frame(&snapshot.schema.to_json().to_string());
    contents.extend(log_file::frame(&record::snapshot_record(
        snapshot, date, comment,
    )));
    contents
}
