//! A server's file, of which what was not synced may be lost.

use std::collections::VecDeque;

use db_raft::Ticket;
use json::Json;

/// What could not be written.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// An append, and all after it.
    Append(Ticket),
    /// A replacement, with what was written before it.
    Replace(Ticket, Option<Ticket>),
}

#[derive(Debug)]
enum Job {
    Append(Ticket, String),
    Replace(Ticket, Vec<String>),
}

/// The file.
#[derive(Debug)]
pub(crate) struct File {
    durable: Vec<String>,
    jobs: VecDeque<Job>,
    /// Which of the next jobs fails.
    fails_in: Option<usize>,
}

impl File {
    pub(crate) fn new(records: &[Json]) -> Self {
        Self {
            durable: records.iter().map(Json::to_string).collect(),
            jobs: VecDeque::new(),
            fails_in: None,
        }
    }

    pub(crate) fn durable(&self) -> &[String] {
        &self.durable
    }

    pub(crate) fn append(&mut self, ticket: Ticket, record: Json) {
        self.jobs.push_back(Job::Append(ticket, record.to_string()));
    }

    pub(crate) fn replace(&mut self, ticket: Ticket, records: Vec<Json>) {
        let records = records.iter().map(Json::to_string).collect();
        self.jobs.push_back(Job::Replace(ticket, records));
    }

    /// Number of jobs that are not done.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.len()
    }

    /// Lets a job fail: the one after so many others.
    pub(crate) fn break_after(&mut self, jobs: usize) {
        self.fails_in = Some(jobs);
    }

    /// Lets all jobs succeed again.
    pub(crate) fn heal(&mut self) {
        self.fails_in = None;
    }

    fn perform(&mut self, job: Job) {
        match job {
            Job::Append(_, record) => self.durable.push(record),
            Job::Replace(_, records) => self.durable = records,
        }
    }

    /// Does all jobs.  Returns the last one's ticket.
    pub(crate) fn sync(&mut self) -> Result<Option<Ticket>, Trouble> {
        let mut last = None;
        while let Some(job) = self.jobs.pop_front() {
            let fails = self.fails_in == Some(0);
            if let Some(left) = &mut self.fails_in {
                *left = left.wrapping_sub(1);
            }
            let ticket = match &job {
                Job::Append(ticket, _) | Job::Replace(ticket, _) => *ticket,
            };
            if fails {
                self.fails_in = None;
                return Err(match job {
                    Job::Append(..) => {
                        // What follows is built on it, and is not tried.
                        self.jobs.clear();
                        Trouble::Append(ticket)
                    }
                    Job::Replace(..) => Trouble::Replace(ticket, last),
                });
            }
            self.perform(job);
            last = Some(ticket);
        }
        Ok(last)
    }

    /// The process or the machine stops: of the jobs that were not done, `keep` are.
    pub(crate) fn crash(&mut self, keep: usize) {
        let jobs = std::mem::take(&mut self.jobs);
        for job in jobs.into_iter().take(keep) {
            self.perform(job);
        }
    }
}
