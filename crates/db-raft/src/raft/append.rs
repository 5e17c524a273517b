//! Copying the log from the leader to the others, and what of it is committed (sections 3.5,
//! 3.6 of the dissertation).

use db_model::Uuid;

use super::output::Waiter;
use super::{FailureTest, Phase, Raft, Role};
use crate::entry::Entry;
use crate::message::{Append, AppendReply, AppendResult, Body, Message, Status};
use crate::record::Kind;

impl Raft {
    /// Puts an entry of the present term at the end of the leader's log, and sends it to the
    /// servers that have all before it.  Returns its index.
    pub(super) fn append_entry(&mut self, mut entry: Entry) -> u64 {
        entry.term = self.term;
        let index = self.write_entry(entry);
        self.wait_for(self.last_ticket, Waiter::Entry(index));
        if self.test == Some(FailureTest::CrashBeforeSendingAppendRequest) {
            self.crash("Raft test: crash before sending append_request.");
        }
        for peer in self.peers() {
            if self
                .servers
                .get(&peer)
                .is_some_and(|s| s.next_index == index)
            {
                self.send_append(peer, 1, Some("execute command"));
                if let Some(server) = self.servers.get_mut(&peer) {
                    server.next_index += 1;
                }
            }
        }
        if self.test == Some(FailureTest::CrashAfterSendingAppendRequest) {
            self.crash("Raft test: crash after sending append_request.");
        }
        if self.test == Some(FailureTest::TransferLeadershipAfterSendingAppendRequest) {
            self.test = Some(FailureTest::TransferLeadership);
        }
        self.reset_ping_timer();
        index
    }

    fn write_entry(&mut self, entry: Entry) -> u64 {
        let index = self.log.end();
        let kind = Kind::Entry { index, entry };
        self.record(kind.clone(), true);
        if let Kind::Entry { entry, .. } = kind {
            self.log.push(entry);
        }
        index
    }

    /// Sends a server the next `count` entries; none is a sign of life.
    pub(super) fn send_append(&mut self, peer: Uuid, count: u64, comment: Option<&str>) {
        let Some(server) = self
            .servers
            .get(&peer)
            .or_else(|| self.add_servers.get(&peer))
        else {
            return;
        };
        let next = server.next_index;
        let previous = next.saturating_sub(1);
        let entries = self
            .log
            .from(next)
            .take(usize::try_from(count).unwrap_or(0));
        let append = Append {
            term: self.term,
            prev_log_index: previous,
            prev_log_term: self.log.term_at(previous).unwrap_or(self.log.snap.term),
            leader_commit: self.commit_index,
            entries: entries.map(|(_, entry)| entry.clone()).collect(),
        };
        let mut message = Message::new(peer, Body::Append(append));
        message.comment = comment.map(Into::into);
        self.send(message);
    }

    pub(super) fn send_heartbeats(&mut self) {
        let mut all = self.peers();
        all.extend(self.add_servers.keys());
        for peer in all {
            self.send_append(peer, 0, Some("heartbeat"));
        }
        if self.now >= self.reassure_at {
            self.reassure();
        }
        self.reset_ping_timer();
    }

    /// Those who wait for a command hear that it is being seen to.  That is a message for each of
    /// them: not at each commit.
    fn reassure(&mut self) {
        self.reassure_at = self.now + self.ping_interval();
        let waiting = self.commands.values();
        let waiting = waiting.filter_map(|c| c.relayed_for.map(|sid| (sid, c.eid)));
        for (sid, eid) in waiting.collect::<Vec<_>>() {
            self.send_execute_reply(sid, eid, Status::Incomplete, 0);
        }
    }

    fn send_append_reply(
        &mut self,
        peer: Uuid,
        request: &Append,
        result: AppendResult,
        comment: &str,
    ) {
        let n_entries = request.entries.len() as u64;
        if result == AppendResult::Ok && request.leader_commit > self.commit_index {
            let known = request.prev_log_index + n_entries;
            self.update_commit_index(request.leader_commit.min(known));
        }
        let reply = AppendReply {
            term: self.term,
            log_end: self.log.end(),
            prev_log_index: request.prev_log_index,
            prev_log_term: request.prev_log_term,
            n_entries,
            result,
        };
        self.send(Message::new(peer, Body::AppendReply(reply)).with_comment(comment));
    }

    pub(super) fn refuse_append(&mut self, peer: Uuid, request: &Append, why: &str) {
        self.send_append_reply(peer, request, AppendResult::Inconsistency, why);
    }

    pub(super) fn handle_append(&mut self, peer: Uuid, mut request: Append, is_heartbeat: bool) {
        // The leader need not be in the servers that this one knows of: it may be about to
        // add this one.
        if !self.learn_leader(peer) {
            self.refuse_append(peer, &request, "usurped leadership");
            return;
        }
        self.reset_election_timer();
        let start = self.log.start();
        let n_entries = request.entries.len() as u64;
        let last = request.prev_log_index + n_entries;
        let mut skip = 0;
        if request.prev_log_index + 1 < start {
            // It begins with entries that the snapshot covers.
            if last + 1 < start {
                let comment = "append before log start";
                self.send_append_reply(peer, &request, AppendResult::Ok, comment);
                return;
            }
            if last + 1 == start {
                let term = request
                    .entries
                    .last()
                    .map_or(request.prev_log_term, |e| e.term);
                if term == self.log.snap.term {
                    self.send_append_reply(peer, &request, AppendResult::Ok, "no change");
                } else {
                    self.refuse_append(peer, &request, "term mismatch");
                }
                return;
            }
            skip = usize::try_from(start - 1 - request.prev_log_index).unwrap_or(0);
        }
        let (previous, previous_term) = match skip.checked_sub(1) {
            Some(before) => (start - 1, request.entries[before].term),
            None => (request.prev_log_index, request.prev_log_term),
        };
        if let Some(mismatch) = self.mismatch(previous, previous_term) {
            log::info!(target: "raft",
                "rejecting append_request because previous entry {previous_term},{previous} not \
                 in local log ({mismatch})");
            self.refuse_append(peer, &request, mismatch);
            return;
        }
        let terms = request.entries[skip..].iter().map(|entry| entry.term);
        let terms = std::iter::once(previous_term)
            .chain(terms)
            .chain([request.term]);
        if !terms.is_sorted() {
            // A log with that could not be read again.
            log::error!(target: "raft", "rejecting append_request whose terms fall");
            self.refuse_append(peer, &request, "terms fall");
            return;
        }
        let mut entries = std::mem::take(&mut request.entries).into_iter().skip(skip);
        let changed = self.take_entries(previous + 1, &mut entries);
        // The reply counts all entries that came.
        request
            .entries
            .resize_with(usize::try_from(n_entries).unwrap_or(0), Entry::default);
        let comment = match (changed, is_heartbeat) {
            (true, _) => "log updated",
            (false, true) => "heartbeat",
            (false, false) => "no change",
        };
        self.send_append_reply(peer, &request, AppendResult::Ok, comment);
    }

    /// Why the entry at an index is not the one that has this term; `None` if it is.
    fn mismatch(&self, index: u64, term: u64) -> Option<&'static str> {
        match self.log.term_at(index) {
            Some(own) if own == term => None,
            Some(_) if index + 1 == self.log.start() => Some("prev_term mismatch"),
            Some(_) => Some("term mismatch"),
            None if index < self.log.start() => Some("mismatch before start of log"),
            None => Some("mismatch past end of log"),
        }
    }

    /// Takes a leader's entries from `index` on.  What conflicts with them goes.  Whether the
    /// log has changed.
    fn take_entries(&mut self, mut index: u64, entries: &mut dyn Iterator<Item = Entry>) -> bool {
        let mut servers_changed = false;
        let mut written = false;
        for entry in entries {
            let own = self.log.get(index).map(|own| own.term);
            if own == Some(entry.term) {
                index += 1;
                continue;
            }
            if own.is_some() {
                if index <= self.commit_index {
                    // No leader does that; nothing that was committed is given up.
                    log::error!(target: "raft", "{}: leader sent another entry {index}, which \
                        is committed", self.name);
                    return written;
                }
                log::info!(target: "raft", "{} truncating {} entries from end of log",
                    self.nickname, self.log.end() - index);
                servers_changed |= self.log.truncate(index);
                self.cap_waiters(index);
            }
            if self.test == Some(FailureTest::CrashAfterReceivingAppendRequestUpdate) {
                self.crash("Raft test: crash after receiving append_request with update.");
            }
            servers_changed |= entry.servers.is_some();
            self.write_entry(entry);
            written = true;
            index += 1;
        }
        if written {
            let last = self.log.last();
            self.wait_for(self.last_ticket, Waiter::Entry(last));
        }
        if servers_changed {
            self.take_servers_from_log(log::Level::Info);
        }
        written
    }

    pub(super) fn handle_append_reply(&mut self, peer: Uuid, reply: &AppendReply) {
        if self.role != Role::Leader {
            log::info!(target: "raft", "rejected append_reply (not leader)");
            return;
        }
        let (start, end) = (self.log.start(), self.log.end());
        let Some(server) = self.other_server(peer) else {
            log::info!(target: "raft", "rejected append_reply from unknown server {}",
                crate::short_id(peer));
            return;
        };
        server.replied = true;
        if reply.result == AppendResult::Ok {
            let known = reply.prev_log_index + reply.n_entries;
            if known >= end {
                log::warn!(target: "raft", "{} claims entries that there are not",
                    server.nickname);
                return;
            }
            server.next_index = server.next_index.max(known + 1);
            self.update_match_index(peer, known);
        } else {
            // The length of its log tells how far to go back (section 4.2.1).
            server.next_index = server.next_index.saturating_sub(1).min(reply.log_end);
            if reply.result == AppendResult::IoError {
                log::info!(target: "raft", "{} reported I/O error", server.nickname);
                return;
            }
        }
        // What was committed by this may have changed the servers.
        let Some(server) = self.other_server(peer) else {
            return;
        };
        let next = server.next_index;
        let caught_up = next >= end && server.phase == Phase::CatchUp;
        if caught_up {
            server.phase = Phase::CaughtUp;
            self.reconfigure();
        } else if next < start {
            self.send_snapshot(peer, None);
        } else if next < self.log.end() && self.role == Role::Leader {
            let count = self.log.end() - next;
            self.send_append(peer, count, None);
        }
    }

    /// Notes that a server has the log up to `index`, and commits what a majority has.
    pub(super) fn update_match_index(&mut self, sid: Uuid, index: u64) {
        let known = self
            .servers
            .get_mut(&sid)
            .or_else(|| self.add_servers.get_mut(&sid));
        let Some(server) = known.filter(|server| server.match_index < index) else {
            return;
        };
        server.match_index = index;
        let mut indexes: Vec<u64> = self.servers.values().map(|s| s.match_index).collect();
        indexes.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&majority) = indexes.get(indexes.len() / 2) else {
            return;
        };
        // Entries of earlier terms are committed only along with one of this term.
        if majority > self.commit_index && self.log.term_at(majority) == Some(self.term) {
            self.update_commit_index(majority);
            self.send_heartbeats();
        }
    }

    /// The log is committed up to `index`.
    fn update_commit_index(&mut self, index: u64) {
        let index = index.min(self.log.last());
        if index <= self.commit_index {
            return;
        }
        while self.commit_index < index {
            self.commit_index += 1;
            self.entry_committed(self.commit_index);
        }
        self.record(Kind::CommitIndex(self.commit_index), false);
    }

    fn entry_committed(&mut self, index: u64) {
        let Some(entry) = self.log.get(index) else {
            return;
        };
        let (eid, timer) = (entry.eid, entry.election_timer);
        let servers = entry.servers.clone();
        if entry.data.is_some() {
            self.data_committed(eid, index);
        }
        if timer != 0 {
            log::info!(target: "raft", "Election timer changed from {} to {timer}",
                self.election_timer);
            self.election_timer = timer;
            self.election_timer_new = 0;
        }
        if let Some(servers) = servers {
            self.servers_committed(&servers, eid, index);
        }
    }
}
