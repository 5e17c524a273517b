//! Snapshots: this server's own, and those that a leader sends (section 5 of the dissertation).

use base::Instant;
use db_model::{Error, Result, Uuid};
use json::Json;

use super::output::Waiter;
use super::{FailureTest, Output, Raft, Role};
use crate::data::Data;
use crate::entry::Entry;
use crate::message::{Body, InstallSnapshot, Message};
use crate::record::{Header, Kind, Membership, Record};
use crate::short_id;

impl Raft {
    /// The records of a whole file: the snapshot and what is known beyond it.
    fn whole_file(&self) -> Vec<Json> {
        let header = Header {
            sid: self.sid,
            cid: self.cid,
            name: self.name.clone(),
            local_address: self.address.clone(),
            membership: Membership::Member {
                index: self.log.start() - 1,
                snapshot: self.log.snap.clone(),
            },
        };
        let mut records = vec![header.to_json()];
        let mut add = |kind: Kind| records.push(Record::from(kind).to_json());
        for (index, entry) in self.log.from(self.log.start()) {
            let entry = entry.clone();
            add(Kind::Entry { index, entry });
        }
        add(if self.vote.is_nil() {
            Kind::Term(self.term)
        } else {
            Kind::Vote {
                term: self.term,
                sid: self.vote,
            }
        });
        if self.commit_index >= self.log.start() {
            add(Kind::CommitIndex(self.commit_index));
        }
        records
    }

    fn replace_file(&mut self) {
        let records = self.whole_file();
        self.last_ticket.0 += 1;
        self.outputs.push_back(Output::Replace {
            ticket: self.last_ticket,
            records,
        });
    }

    /// Puts `data`, the database as of the entry at `index`, in the place of the log up to
    /// there.
    ///
    /// # Errors
    /// The server is not, or no more, part of the cluster; or there is nothing to be saved.
    pub fn store_snapshot(&mut self, now: Instant, data: Data, index: u64) -> Result<()> {
        self.now = now;
        let why_not = if self.joining {
            Some("while joining cluster")
        } else if self.leaving {
            Some("while leaving cluster")
        } else if self.left {
            Some("after leaving cluster")
        } else if self.failed {
            Some("following failure")
        } else {
            None
        };
        if let Some(why_not) = why_not {
            return Err(Error::general(format!("cannot store a snapshot {why_not}")));
        }
        let Some(term) = self
            .log
            .term_at(index)
            .filter(|_| index >= self.log.start())
        else {
            return Err(Error::general("not storing a duplicate snapshot"));
        };
        let snap = Entry {
            term,
            data: Some(data),
            eid: self.log.eid_at(index),
            servers: Some(self.log.servers_at(index)),
            election_timer: self.election_timer,
        };
        self.log.compact(snap, index + 1);
        self.replace_file();
        Ok(())
    }

    /// Whether the database may be saved as a snapshot now.
    pub fn may_snapshot(&self) -> bool {
        !self.joining && !self.leaving && !self.is_over() && self.log_length() > 0
    }

    pub(super) fn send_snapshot(&mut self, peer: Uuid, comment: Option<&str>) {
        if self.role != Role::Leader {
            return;
        }
        let (term, last_index) = (self.term, self.log.start() - 1);
        let (may_refuse, may_send) = (self.may_say("no snapshot", 5), self.may_say("snapshot", 5));
        let snap = &self.log.snap;
        let (Some(data), Some(servers)) = (snap.data.clone(), snap.servers.clone()) else {
            return;
        };
        let request = InstallSnapshot {
            term,
            last_index,
            last_term: snap.term,
            last_eid: snap.eid,
            last_servers: servers,
            election_timer: self.election_timer,
            data,
        };
        let Some(server) = self.other_server(peer) else {
            return;
        };
        let name = server.nickname.clone();
        if server.snapshot_sent {
            if may_refuse {
                log::info!(target: "raft",
                    "not sending snapshot to server {name}, already in progress");
            }
            return;
        }
        if may_send {
            log::info!(target: "raft", "sending snapshot to server {name}, {term}:{last_index}.");
        }
        let mut message = Message::new(peer, Body::InstallSnapshot(Box::new(request)));
        message.comment = comment.map(Into::into);
        let sent = self.send(message);
        if let Some(server) = self.other_server(peer) {
            server.snapshot_sent = sent;
        }
    }

    pub(super) fn handle_install_snapshot(&mut self, peer: Uuid, request: InstallSnapshot) {
        if self.test == Some(FailureTest::CrashBeforeSendingInstallSnapshotReply) {
            self.crash("Raft test: crash before sending install_snapshot_reply");
        }
        self.reset_election_timer();
        let (last_index, last_term) = (request.last_index, request.last_term);
        if last_term > request.term {
            log::error!(target: "raft", "rejecting snapshot of a term that has not begun");
            return;
        }
        let own = self.log.term_at(last_index);
        let is_known = last_index < self.log.start() || own == Some(last_term);
        if !is_known && last_index >= self.commit_index {
            self.take_snapshot(request);
        }
        let body = Body::InstallSnapshotReply {
            term: self.term,
            last_index,
            last_term,
        };
        self.send(Message::new(peer, body));
    }

    /// Gives up the whole log for a leader's snapshot.
    fn take_snapshot(&mut self, request: InstallSnapshot) {
        let index = request.last_index;
        self.log.truncate(self.log.start());
        let snap = Entry {
            term: request.last_term,
            data: Some(request.data),
            eid: request.last_eid,
            servers: Some(request.last_servers),
            election_timer: request.election_timer,
        };
        self.log.compact(snap, index + 1);
        self.cap_waiters(index);
        self.commit_index = index;
        self.last_applied = index;
        self.snapshot_pending = true;
        self.replace_file();
        self.wait_for(self.last_ticket, Waiter::Snapshot(index));
        self.take_servers_from_log(log::Level::Info);
        self.take_election_timer_from_log();
    }

    pub(super) fn handle_install_snapshot_reply(
        &mut self,
        peer: Uuid,
        last_index: u64,
        last_term: u64,
    ) {
        if self.role != Role::Leader {
            return;
        }
        let (start, snap_term) = (self.log.start(), self.log.snap.term);
        let cluster = short_id(self.cid);
        let (may_start_over, may_say) = (
            self.may_say("snapshot obsolete", 5),
            self.may_say("snapshot installed", 10),
        );
        let Some(server) = self.other_server(peer) else {
            log::info!(target: "raft", "cluster {cluster}: received install_snapshot_reply from \
                unknown server {}", short_id(peer));
            return;
        };
        server.snapshot_sent = false;
        if (last_index, last_term) != (start - 1, snap_term) {
            if may_start_over {
                log::info!(target: "raft", "cluster {cluster}: server {} installed out-of-date \
                    snapshot, starting over", server.nickname);
            }
            self.send_snapshot(peer, Some("installed obsolete snapshot"));
            return;
        }
        if may_say {
            log::info!(target: "raft", "cluster {cluster}: installed snapshot on server {}  up to \
                {last_term}:{last_index}", server.nickname);
        }
        server.next_index = start;
        let count = self.log.end() - start;
        self.send_append(peer, count, Some("snapshot installed"));
    }
}
