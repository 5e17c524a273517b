//! The writer: a thread of its own that owns a log's disk.
//!
//! Records are handed over and numbered; what was written is reported by number, in order.
//! All records that wait are written at once, and one sync serves all of them that asked for
//! it.
//!
//! When a write fails, the records that were handed over after it are built on one that is not
//! there: they fail, too, until the one who hands them over has heard of it and says so with
//! [`Writer::resume`].

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use base::WallTime;

use crate::database::Snapshot;
use crate::disk::Disk;
use crate::{log_file, record};

/// Numbers what is handed to a writer, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

enum Job {
    Append {
        ticket: Ticket,
        record: Vec<u8>,
        durable: bool,
    },
    Replace {
        ticket: Ticket,
        snapshot: Box<Snapshot>,
        date: WallTime,
        comment: String,
    },
    Resume,
}

/// What became of a job, or of all jobs up to one.
#[derive(Debug)]
pub struct Report {
    /// The job; those before it are done as well.
    pub ticket: Ticket,
    /// The file's length now.
    pub length: u64,
    /// Whether it worked.
    pub result: io::Result<()>,
    /// Whether the whole file was replaced.
    pub replaced: bool,
}

/// The handle on a log's writer.  Dropping it waits until all is written.
pub struct Writer {
    jobs: Option<Sender<Job>>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    last: Ticket,
    done: Ticket,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("last", &self.last)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// Starts the thread.  `wake` is called from it after each report.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(disk: Box<dyn Disk>, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (jobs, job_receiver) = channel();
        let (report_sender, reports) = channel();
        let thread = std::thread::Builder::new()
            .name("dbwriter".to_owned())
            .spawn(move || {
                Worker {
                    disk,
                    jobs: job_receiver,
                    reports: report_sender,
                    wake: Box::new(wake),
                    voided: false,
                    cut_to: None,
                }
                .run();
            })?;
        Ok(Self {
            jobs: Some(jobs),
            reports,
            thread: Some(thread),
            last: Ticket(0),
            done: Ticket(0),
        })
    }

    fn submit(&mut self, job: impl FnOnce(Ticket) -> Job) -> Ticket {
        self.last.0 += 1;
        if let Some(jobs) = &self.jobs {
            // It fails only when the thread has panicked; then nothing is ever reported.
            let _ = jobs.send(job(self.last));
        }
        self.last
    }

    /// Hands over a record's text.  If `durable`, it is reported only when it would survive
    /// a loss of power.
    pub fn append(&mut self, json_text: &str, durable: bool) -> Ticket {
        let record = log_file::frame(json_text);
        self.submit(|ticket| Job::Append {
            ticket,
            record,
            durable,
        })
    }

    /// Replaces the file by one with the snapshot's schema and rows only.
    /// It fails if a write before it did.
    pub fn replace(&mut self, snapshot: Snapshot, date: WallTime, comment: String) -> Ticket {
        self.submit(|ticket| Job::Replace {
            ticket,
            snapshot: Box::new(snapshot),
            date,
            comment,
        })
    }

    /// After a report that an append failed: what is handed over from now on is built neither on
    /// that nor on what came after it, and is tried again.
    pub fn resume(&mut self) {
        if let Some(jobs) = &self.jobs {
            // As in `submit`.
            let _ = jobs.send(Job::Resume);
        }
    }

    /// The number of the last job.
    pub const fn last(&self) -> Ticket {
        self.last
    }

    /// The number up to which everything is written.
    pub const fn done(&self) -> Ticket {
        self.done
    }

    /// The next report, if there is one.
    pub fn poll(&mut self) -> Option<Report> {
        let report = self.reports.try_recv().ok()?;
        self.done = report.ticket;
        Some(report)
    }

    /// Waits for the next report; `None` if there is nothing to wait for.
    pub fn wait(&mut self) -> Option<Report> {
        if self.done == self.last {
            return None;
        }
        let report = self.reports.recv().ok()?;
        self.done = report.ticket;
        Some(report)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

struct Worker {
    disk: Box<dyn Disk>,
    jobs: Receiver<Job>,
    reports: Sender<Report>,
    wake: Box<dyn Fn() + Send>,
    /// Whether an append failed, and what comes may be built on it.
    voided: bool,
    /// Where the file should end, if it may have more than that.
    cut_to: Option<u64>,
}

/// What becomes of a job that follows one that failed.
fn voided() -> io::Error {
    io::Error::other("an earlier write failed")
}

/// Appends that are gathered into one write, at most.
const MAX_BATCH: usize = 4 << 20;

impl Worker {
    fn run(mut self) {
        while let Ok(job) = self.jobs.recv() {
            let mut next = Some(job);
            while let Some(job) = next.take() {
                next = self.perform(job);
            }
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
                let result = self.append(&bytes, durable);
                self.report(ticket, result, false);
                next
            }
            Job::Replace {
                ticket,
                snapshot,
                date,
                comment,
            } => {
                let result = if self.voided {
                    Err(voided())
                } else {
                    let contents = whole_file(&snapshot, date, &comment);
                    drop(snapshot);
                    self.disk.replace(&contents)
                };
                if result.is_ok() {
                    self.cut_to = None;
                }
                self.report(ticket, result, true);
                None
            }
            Job::Resume => {
                self.voided = false;
                None
            }
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

    fn report(&self, ticket: Ticket, result: io::Result<()>, replaced: bool) {
        let report = Report {
            ticket,
            length: self.disk.len(),
            result,
            replaced,
        };
        // Nobody may be listening any more.
        let _ = self.reports.send(report);
        (self.wake)();
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
