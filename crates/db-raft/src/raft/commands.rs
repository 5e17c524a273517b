//! Data that the database wants in the log, and data that it takes from there.

use base::Instant;
use db_model::Uuid;

use super::{FailureTest, Raft, Role};
use crate::data::Data;
use crate::entry::Entry;
use crate::message::{Body, Message, Status};

/// Identifies a command: data on their way into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Command(u64);

/// What a proposal comes to at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// It goes on; [`Output::Finished`](super::Output::Finished) tells how it ends.
    Pending {
        /// The command.
        command: Command,
        /// The id that the data will have.
        eid: Uuid,
    },
    /// It has failed.
    Refused(Status),
}

/// A command that is not over.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) eid: Uuid,
    /// Its index in this server's log; 0 if only the leader knows.
    index: u64,
    /// When it began, or was last heard of.
    since: Instant,
    /// The follower that passed it on.
    pub(super) relayed_for: Option<Uuid>,
}

/// Committed data for the database.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The index of the entry.
    pub index: u64,
    /// The id of the data.
    pub eid: Uuid,
    /// `[SCHEMA, TRANSACTION]`, either of which may be null.
    pub data: Data,
    /// Whether this is the whole database, and nothing of before is left.
    pub is_snapshot: bool,
}

impl Raft {
    /// The id of the last data in the log, committed or not.
    pub fn current_eid(&self) -> Uuid {
        self.log.eid_at(self.log.last())
    }

    /// Whether data that follow `prereq` have a chance now.
    pub fn may_follow(&self, prereq: Uuid) -> bool {
        // What was passed on to the leader will come before.
        let is_first = || {
            self.commands
                .values()
                .all(|c| c.index != 0 || c.eid.is_nil())
        };
        self.current_eid() == prereq && (self.role == Role::Leader || is_first())
    }

    /// Wants `data` in the log, directly after those with the id `prereq`.  A follower passes
    /// them on to the leader.
    pub fn propose(&mut self, now: Instant, data: Data, prereq: Uuid) -> Proposed {
        self.now = now;
        if self.joining || self.is_over() {
            return Proposed::Refused(Status::Shutdown);
        }
        let eid = self.random.next_uuid();
        if self.role == Role::Leader {
            let current = self.current_eid();
            if current != prereq {
                if self.may_say("prerequisite", 5) {
                    log::info!(target: "raft",
                        "current entry eid {current} does not match prerequisite {prereq}");
                }
                return Proposed::Refused(Status::BadPrereq);
            }
            let command = self.initiate(data, eid, None);
            return Proposed::Pending { command, eid };
        }
        if self.role != Role::Follower || self.leader.is_nil() {
            return Proposed::Refused(Status::NotLeader);
        }
        if self.test == Some(FailureTest::CrashBeforeSendingExecuteCommandRequest) {
            self.crash("Raft test: crash before sending execute_command_request");
        }
        let body = Body::Execute {
            data,
            prereq,
            result: eid,
        };
        if !self.send(Message::new(self.leader, body)) {
            return Proposed::Refused(Status::NotLeader);
        }
        if self.test == Some(FailureTest::CrashAfterSendingExecuteCommandRequest) {
            self.crash("Raft test: crash after sending execute_command_request");
        }
        let command = self.begin_command(eid, 0, None);
        Proposed::Pending { command, eid }
    }

    fn begin_command(&mut self, eid: Uuid, index: u64, relayed_for: Option<Uuid>) -> Command {
        self.last_command += 1;
        let command = Command(self.last_command);
        let pending = Pending {
            eid,
            index,
            since: self.now,
            relayed_for,
        };
        self.commands.insert(command, pending);
        command
    }

    /// Puts data into the leader's log.
    fn initiate(&mut self, data: Data, eid: Uuid, relayed_for: Option<Uuid>) -> Command {
        let index = self.log.end();
        let command = self.begin_command(eid, index, relayed_for);
        self.append_entry(Entry {
            data: Some(data),
            eid,
            ..Entry::default()
        });
        command
    }

    fn finish_command(&mut self, command: Command, status: Status) {
        let Some(pending) = self.commands.remove(&command) else {
            return;
        };
        log::debug!(target: "raft", "raft_command_complete eid {} status: {}",
            pending.eid, status.name());
        let index = if status == Status::Success {
            pending.index
        } else {
            0
        };
        match pending.relayed_for {
            Some(sid) => self.send_execute_reply(sid, pending.eid, status, index),
            None => self.outputs.push_back(super::Output::Finished {
                command,
                status,
                index,
            }),
        }
    }

    pub(super) fn finish_all_commands(&mut self, status: Status) {
        let all: Vec<Command> = self.commands.keys().copied().collect();
        for command in all {
            self.finish_command(command, status);
        }
    }

    /// Ends commands of which nothing was heard for long.  They have the time of an election
    /// and more: the next leader may have them in its log.
    pub(super) fn expire_commands(&mut self) {
        let limit = std::time::Duration::from_millis(self.election_timer * 2);
        let late = self.commands.iter();
        let late = late.filter(|(_, c)| self.now.since(c.since) > limit);
        let late: Vec<(Command, u64)> = late.map(|(id, c)| (*id, c.index)).collect();
        for (command, index) in late {
            if index != 0 && self.role != Role::Leader {
                self.finish_command(command, Status::LostLeadership);
            } else {
                self.finish_command(command, Status::Timeout);
            }
        }
    }

    fn find_command(&self, eid: Uuid) -> Option<Command> {
        let mut commands = self.commands.iter();
        let found = commands.find(|(_, pending)| pending.eid == eid);
        found.map(|(command, _)| *command)
    }

    /// The entry with the data `eid` is committed.
    pub(super) fn data_committed(&mut self, eid: Uuid, index: u64) {
        let Some(command) = self.find_command(eid) else {
            return;
        };
        let is_leader = self.role == Role::Leader;
        let may_say = self.may_say("completed", 5);
        let Some(pending) = self.commands.get_mut(&command) else {
            return;
        };
        let how = match (pending.index != 0, is_leader) {
            (false, true) => Some("after role change from follower to leader"),
            (false, false) => Some("without reply"),
            (true, false) => Some("after role change from leader to follower"),
            (true, true) => None,
        };
        // The follower that waits for it hears of it from the new leader.
        let is_anothers = pending.relayed_for.is_some() && !is_leader;
        pending.index = index;
        if let Some(how) = how.filter(|_| may_say) {
            log::info!(target: "raft",
                "command completed {how} (eid: {eid}, commit index: {index})");
        }
        if is_anothers {
            self.commands.remove(&command);
        } else {
            self.finish_command(command, Status::Success);
        }
    }

    pub(super) fn send_execute_reply(
        &mut self,
        sid: Uuid,
        eid: Uuid,
        status: Status,
        commit_index: u64,
    ) {
        if self.test == Some(FailureTest::CrashBeforeSendingExecuteCommandReply) {
            self.crash("Raft test: crash before sending execute_command_reply");
        }
        let body = Body::ExecuteReply {
            result: eid,
            status,
            commit_index,
        };
        self.send(Message::new(sid, body));
        if self.test == Some(FailureTest::CrashAfterSendingExecuteCommandReply) {
            self.crash("Raft test: crash after sending execute_command_reply.");
        }
    }

    pub(super) fn handle_execute(&mut self, peer: Uuid, data: Data, prereq: Uuid, eid: Uuid) {
        if self.role != Role::Leader {
            self.send_execute_reply(peer, eid, Status::NotLeader, 0);
            return;
        }
        let current = self.current_eid();
        if current != prereq {
            if self.may_say("prerequisite", 5) {
                log::info!(target: "raft", "current entry eid {current} does not match \
                    prerequisite {prereq} in execute_command_request");
            }
            self.send_execute_reply(peer, eid, Status::BadPrereq, 0);
            return;
        }
        self.initiate(data, eid, Some(peer));
    }

    pub(super) fn handle_execute_reply(
        &mut self,
        peer: Uuid,
        eid: Uuid,
        status: Status,
        commit_index: u64,
    ) {
        let Some(command) = self.find_command(eid) else {
            if self.may_say("unknown command", 5) {
                log::info!(target: "raft",
                    "{} received \"{}\" reply from {} for unknown command",
                    self.nickname, status.name(), self.nickname_of(peer));
            }
            return;
        };
        let now = self.now;
        let Some(pending) = self.commands.get_mut(&command) else {
            return;
        };
        if status == Status::Incomplete {
            pending.since = now;
            return;
        }
        pending.index = commit_index;
        self.finish_command(command, status);
    }

    /// The index up to which the database has taken the log; 0 before it has anything.
    pub fn applied_index(&self) -> u64 {
        if self.snapshot_pending {
            self.log.start().saturating_sub(2)
        } else {
            self.last_applied
        }
    }

    /// Before the start: says that the database has taken the log up to `index`, when it was
    /// another process's, and need not begin anew.
    pub fn resume_from(&mut self, index: u64) {
        if index + 1 >= self.log.start() {
            self.snapshot_pending = false;
            self.last_applied = index;
        }
    }

    /// The next committed data that the database is to take.
    pub fn next_applied(&mut self) -> Option<Applied> {
        if self.joining || self.failed {
            return None;
        }
        if self.snapshot_pending {
            self.snapshot_pending = false;
            self.last_applied = self.log.start() - 1;
            let (index, eid) = (self.last_applied, self.log.snap.eid);
            if let Some(data) = &mut self.log.snap.data {
                return Some(take(data, index, eid, true));
            }
        }
        while self.last_applied < self.commit_index {
            self.last_applied += 1;
            let index = self.last_applied;
            if let Some(entry) = self.log.get_mut(index)
                && let Some(data) = &mut entry.data
            {
                return Some(take(data, index, entry.eid, false));
            }
        }
        None
    }

    /// Whether the database is to take something.
    pub const fn has_more(&self) -> bool {
        !self.joining
            && !self.failed
            && (self.snapshot_pending || self.last_applied < self.commit_index)
    }
}

/// Hands out data; what stays is the text.
fn take(data: &mut Data, index: u64, eid: Uuid, is_snapshot: bool) -> Applied {
    let taken = data.clone();
    data.forget_parsed();
    Applied {
        index,
        eid,
        data: taken,
        is_snapshot,
    }
}
