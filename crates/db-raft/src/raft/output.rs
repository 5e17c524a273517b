//! What a server wants done, and what it holds back until its file has caught up.

use db_model::Uuid;
use json::Json;

use super::{Raft, Role};
use crate::message::{Message, Status};
use crate::raft::Command;

/// Numbers what is to be written, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What a server's owner is to do, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send a message over a connection to its `peer`; if there is none any more, drop it.
    Send(Message),
    /// Put a record at the end of the file.  If `durable`, say [`Raft::written`] once it
    /// would survive a loss of power, along with all before it.
    Write {
        /// Its number.
        ticket: Ticket,
        /// The record.
        record: Json,
        /// Whether it must survive.
        durable: bool,
    },
    /// Put these records in the place of the whole file, then say [`Raft::written`].
    Replace {
        /// The number.
        ticket: Ticket,
        /// The records.
        records: Vec<Json>,
    },
    /// Send [`Raft::greeting`] on every connection: the server still has to join.
    AskToJoin,
    /// A command is over.
    Finished {
        /// Which.
        command: Command,
        /// What became of it.
        status: Status,
        /// The index at which it was committed; 0 if it was not.
        index: u64,
    },
    /// End the process at once, as a test wants.
    Crash(&'static str),
}

/// What follows once something is on disk.
#[derive(Debug)]
pub(super) enum Waiter {
    /// The log is, up to an index.
    Entry(u64),
    /// The term and the vote are.
    Term(u64, Uuid),
    /// A message may leave.
    Message(Message),
    /// A snapshot of another server's is, with the log up to its index.
    Snapshot(u64),
}

impl Raft {
    /// The next thing to do.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// All that was to be written up to `ticket` is on disk.
    pub fn written(&mut self, now: base::Instant, ticket: Ticket) {
        self.now = now;
        while self.waiters.front().is_some_and(|(t, _)| *t <= ticket) {
            let Some((_, waiter)) = self.waiters.pop_front() else {
                return;
            };
            match waiter {
                Waiter::Entry(index) | Waiter::Snapshot(index) => {
                    self.log_synced = self.log_synced.max(index.min(self.log.last()));
                    if self.role == Role::Leader {
                        self.update_match_index(self.sid, self.log_synced);
                    }
                }
                Waiter::Term(term, vote) => {
                    self.synced_term = term;
                    self.synced_vote = vote;
                }
                Waiter::Message(message) => self.send_late(message),
            }
        }
    }

    /// What was to be written under `ticket`, or all from there on, could not be.
    pub fn write_failed(&mut self, now: base::Instant, ticket: Ticket, error: &std::io::Error) {
        self.now = now;
        let wanted =
            |(t, waiter): &(Ticket, Waiter)| *t == ticket && matches!(waiter, Waiter::Snapshot(_));
        let what = if self.waiters.iter().any(wanted) {
            "could not save snapshot"
        } else {
            "entering failure mode due to I/O error"
        };
        self.fail(&format!("{what} ({})", base::errno_text(error)));
    }

    /// The file could not be replaced by one with this server's own snapshot: it is as it was.
    pub fn replace_failed(&mut self, now: base::Instant, ticket: Ticket, error: &std::io::Error) {
        self.now = now;
        let wanted =
            |(t, waiter): &(Ticket, Waiter)| *t == ticket && matches!(waiter, Waiter::Snapshot(_));
        if self.waiters.iter().any(wanted) {
            // The log is only in memory: what would be written next could not be read again.
            self.write_failed(now, ticket, error);
        } else {
            log::warn!(target: "raft", "{}: compaction failed ({})", self.name,
                base::errno_text(error));
        }
    }

    /// Takes no part any more.
    fn fail(&mut self, why: &str) {
        if self.failed {
            return;
        }
        log::warn!(target: "raft", "{}: {why}", self.name);
        self.failed = true;
        self.close();
    }

    /// Ends all that others may see.
    pub(super) fn close(&mut self) {
        self.finish_all_commands(Status::Shutdown);
        if let Some((target, server)) = self.remove_server.take() {
            self.say_removed(target, server.requester, false, "shutdown");
        }
        self.waiters.clear();
    }

    /// Whether all that a message says is on disk.
    fn is_synced(&self, message: &Message) -> bool {
        let body = &message.body;
        body.term().unwrap_or(0) <= self.synced_term
            && body.relies_on() <= self.log_synced
            && body.cast_vote().is_none_or(|vote| vote == self.synced_vote)
    }

    /// Sends a message as soon as what it says is on disk.  False if there is no connection.
    pub(super) fn send(&mut self, message: Message) -> bool {
        if message.peer == self.sid || !self.links.contains_key(&message.peer) {
            return false;
        }
        if self.is_synced(&message) {
            self.outputs.push_back(Output::Send(message));
        } else {
            let ticket = self.last_ticket;
            self.waiters.push_back((ticket, Waiter::Message(message)));
        }
        true
    }

    /// Sends a message that was held back, unless it is out of date.
    fn send_late(&mut self, message: Message) {
        let is_old = message.body.term().is_some_and(|term| term < self.term);
        if !is_old && self.is_synced(&message) {
            self.outputs.push_back(Output::Send(message));
        }
    }

    pub(super) fn wait_for(&mut self, ticket: Ticket, waiter: Waiter) {
        self.waiters.push_back((ticket, waiter));
    }

    /// The log now ends before `end`: what was waited for beyond was something else.
    pub(super) fn cap_waiters(&mut self, end: u64) {
        self.log_synced = self.log_synced.min(end - 1);
        for (_, waiter) in &mut self.waiters {
            if let Waiter::Entry(index) = waiter {
                *index = (*index).min(end - 1);
            }
        }
    }
}
