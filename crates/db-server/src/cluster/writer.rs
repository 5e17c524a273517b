//! The thread that owns a cluster server's file: records are handed over, written in batches,
//! synced once for all that must survive, and reported by ticket.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use db_engine::{Disk, log_file};
use db_raft::Ticket;
use json::Json;

/// What is to be done with the file.
#[derive(Debug)]
enum Job {
    Append {
        ticket: Ticket,
        record: Json,
        durable: bool,
    },
    Replace {
        ticket: Ticket,
        records: Vec<Json>,
    },
}

/// What became of all jobs up to one.
#[derive(Debug)]
pub(crate) enum Report {
    /// They are done, and survive a loss of power.
    Written(Ticket),
    /// This one failed, and with it all after it.
    Failed(Ticket, io::Error),
    /// The file could not be replaced; it is as it was, and what comes later is appended to it.
    NotReplaced(Ticket, io::Error),
}

/// The handle on the thread.  Dropping it waits until all is written.
#[derive(Debug)]
pub(crate) struct ClusterWriter {
    jobs: Option<Sender<Job>>,
    reports: Receiver<(u64, Report)>,
    thread: Option<JoinHandle<()>>,
    /// Length of the file, as of the last report.
    pub(crate) length: u64,
    /// Its length when it was last replaced.
    pub(crate) base: u64,
    last: Ticket,
    done: Ticket,
}

impl ClusterWriter {
    /// Starts the thread.  `wake` is called from it after each report.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        disk: Box<dyn Disk>,
        base: u64,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let length = disk.len();
        let (jobs, job_receiver) = channel();
        let (report_sender, reports) = channel();
        let thread = std::thread::Builder::new()
            .name("raftwriter".to_owned())
            .spawn(move || {
                let worker = Worker {
                    disk,
                    jobs: job_receiver,
                    reports: report_sender,
                    wake: Box::new(wake),
                    failed: false,
                };
                worker.run();
            })?;
        Ok(Self {
            jobs: Some(jobs),
            reports,
            thread: Some(thread),
            length,
            base,
            last: Ticket(0),
            done: Ticket(0),
        })
    }

    /// A handle on no file: what is handed over goes nowhere.
    pub(crate) fn closed() -> Self {
        let (_, reports) = channel();
        Self {
            jobs: None,
            reports,
            thread: None,
            length: 0,
            base: 0,
            last: Ticket(0),
            done: Ticket(0),
        }
    }

    fn submit(&mut self, ticket: Ticket, job: Job) {
        self.last = ticket;
        if let Some(jobs) = &self.jobs {
            // It fails only when the thread has panicked; then nothing is ever reported.
            let _ = jobs.send(job);
        }
    }

    /// Hands over a record.
    pub(crate) fn append(&mut self, ticket: Ticket, record: Json, durable: bool) {
        let job = Job::Append {
            ticket,
            record,
            durable,
        };
        self.submit(ticket, job);
    }

    /// Puts records in the place of the whole file.
    pub(crate) fn replace(&mut self, ticket: Ticket, records: Vec<Json>) {
        self.submit(ticket, Job::Replace { ticket, records });
    }

    fn note(&mut self, (length, report): (u64, Report)) -> Report {
        let (Report::Written(ticket) | Report::Failed(ticket, _) | Report::NotReplaced(ticket, _)) =
            &report;
        self.done = self.done.max(*ticket);
        if length < self.length {
            self.base = length;
        }
        self.length = length;
        report
    }

    /// The next report, if there is one.
    pub(crate) fn poll(&mut self) -> Option<Report> {
        let report = self.reports.try_recv().ok()?;
        Some(self.note(report))
    }

    /// Waits for the next report; `None` if there is nothing to wait for.
    pub(crate) fn wait(&mut self) -> Option<Report> {
        if self.done >= self.last {
            return None;
        }
        let report = self.reports.recv().ok()?;
        Some(self.note(report))
    }
}

impl Drop for ClusterWriter {
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
    reports: Sender<(u64, Report)>,
    wake: Box<dyn Fn() + Send>,
    failed: bool,
}

/// Records that are gathered into one write, at most, in bytes.
const MAX_BATCH: usize = 4 << 20;

fn frame(record: &Json) -> Vec<u8> {
    log_file::frame_clustered(&record.to_string())
}

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
            Job::Replace { ticket, records } => {
                let contents: Vec<u8> = records.iter().flat_map(frame).collect();
                drop(records);
                match self.disk.replace(&contents) {
                    Ok(()) if !self.failed => self.report(Report::Written(ticket)),
                    Ok(()) => self.report(Report::Failed(ticket, earlier())),
                    Err(error) => self.report(Report::NotReplaced(ticket, error)),
                }
                None
            }
            Job::Append {
                ticket: first,
                record,
                durable,
            } => self.append(first, frame(&record), durable),
        }
    }

    fn append(&mut self, first: Ticket, mut bytes: Vec<u8>, mut durable: bool) -> Option<Job> {
        let mut last = first;
        let mut next = None;
        while bytes.len() < MAX_BATCH {
            match self.jobs.try_recv() {
                Ok(Job::Append {
                    ticket,
                    record,
                    durable: also,
                }) => {
                    last = ticket;
                    bytes.extend(frame(&record));
                    durable |= also;
                }
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        match self.write(&bytes, durable) {
            Ok(()) => self.report(Report::Written(last)),
            Err(error) => {
                self.failed = true;
                self.report(Report::Failed(first, error));
            }
        }
        next
    }

    fn write(&mut self, bytes: &[u8], durable: bool) -> io::Result<()> {
        if self.failed {
            return Err(earlier());
        }
        self.disk.append(bytes)?;
        if durable { self.disk.sync() } else { Ok(()) }
    }

    fn report(&self, report: Report) {
        // Nobody may be listening any more.
        let _ = self.reports.send((self.disk.len(), report));
        (self.wake)();
    }
}

/// What becomes of a job that follows one that failed.
fn earlier() -> io::Error {
    io::Error::other("an earlier write failed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use db_engine::disk::{SimDisk, SimFaults};

    fn record(number: i64) -> Json {
        json::Object::new().with("n", number).into()
    }

    fn contents(disk: &SimDisk) -> String {
        let text = String::from_utf8(disk.contents()).expect("text");
        let records = text.lines().filter(|line| line.starts_with('{'));
        records.collect::<Vec<_>>().join(" ")
    }

    fn start(disk: &SimDisk) -> ClusterWriter {
        ClusterWriter::start(Box::new(disk.clone()), 0, || {}).expect("a thread")
    }

    #[test]
    fn records_are_written_and_reported_in_order() {
        let disk = SimDisk::new(b"");
        let mut writer = start(&disk);
        for number in 1..=100 {
            writer.append(Ticket(number), record(number as i64), number % 2 == 0);
        }
        let mut last = Ticket(0);
        while let Some(report) = writer.wait() {
            match report {
                Report::Written(ticket) if ticket > last => last = ticket,
                other => panic!("{other:?} after {last:?}"),
            }
        }
        assert_eq!(last, Ticket(100));
        writer.replace(Ticket(101), vec![record(7), record(8)]);
        assert!(matches!(writer.wait(), Some(Report::Written(Ticket(101)))));
        assert_eq!(contents(&disk), r#"{"n":7} {"n":8}"#);
        assert!(writer.wait().is_none());
    }

    #[test]
    fn what_follows_a_failed_write_is_not_written() {
        let disk = SimDisk::new(b"");
        disk.set_faults(SimFaults {
            sync: true,
            ..SimFaults::default()
        });
        let mut writer = start(&disk);
        writer.append(Ticket(1), record(1), true);
        assert!(matches!(writer.wait(), Some(Report::Failed(Ticket(1), _))));
        disk.set_faults(SimFaults::default());
        writer.append(Ticket(2), record(2), true);
        assert!(matches!(writer.wait(), Some(Report::Failed(Ticket(2), _))));
        assert_eq!(contents(&disk), r#"{"n":1}"#);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_written_on() {
        let disk = SimDisk::new(b"");
        disk.set_faults(SimFaults {
            replace: true,
            ..SimFaults::default()
        });
        let mut writer = start(&disk);
        writer.append(Ticket(1), record(1), true);
        assert!(matches!(writer.wait(), Some(Report::Written(Ticket(1)))));
        writer.replace(Ticket(2), vec![record(9)]);
        assert!(matches!(
            writer.wait(),
            Some(Report::NotReplaced(Ticket(2), _))
        ));
        writer.append(Ticket(3), record(3), true);
        assert!(matches!(writer.wait(), Some(Report::Written(Ticket(3)))));
        assert_eq!(contents(&disk), r#"{"n":1} {"n":3}"#);
    }
}
