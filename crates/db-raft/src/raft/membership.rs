//! Servers that come and go (chapter 4 of the dissertation): one at a time, each by an entry
//! of the log that names all servers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_model::Uuid;

use super::{FailureTest, Phase, Raft, Role, Server};
use crate::entry::Entry;
use crate::message::{Body, Message};
use crate::servers::Servers;
use crate::short_id;

impl Raft {
    /// Takes the servers that the log names last.
    pub(super) fn take_servers_from_log(&mut self, level: log::Level) {
        let wanted = self.log.servers_at(self.log.last());
        let end = self.log.end();
        self.servers.retain(|sid, server| {
            let stays = wanted.contains(*sid);
            if !stays {
                let name = &server.nickname;
                log::log!(target: "raft", level, "server {name} removed from configuration");
            }
            stays
        });
        for (sid, address) in wanted.iter() {
            self.servers.entry(sid).or_insert_with(|| {
                let server = Server::new(sid, address, end);
                let name = &server.nickname;
                log::log!(target: "raft", level, "server {name} added to configuration");
                server
            });
        }
    }

    pub(super) fn take_election_timer_from_log(&mut self) {
        if let Some(timer) = self.log.election_timer_at(self.commit_index) {
            self.election_timer = timer;
        }
    }

    fn has_uncommitted_servers(&self) -> bool {
        let mut uncommitted = self.log.from(self.commit_index + 1);
        uncommitted.any(|(_, entry)| entry.servers.is_some())
    }

    /// Puts the servers into the log.
    fn log_servers(&mut self) {
        let servers = self.servers.iter();
        let servers = servers.map(|(sid, server)| (*sid, Arc::clone(&server.address)));
        let servers = Servers::from_iter(servers);
        self.append_entry(Entry {
            servers: Some(servers),
            ..Entry::default()
        });
    }

    /// Goes on with additions and removals, if no change is under way.
    pub(super) fn reconfigure(&mut self) {
        if self.role != Role::Leader || self.has_uncommitted_servers() {
            return;
        }
        let added = self.servers.iter_mut();
        let added = added.filter(|(_, server)| server.phase == Phase::Committing);
        let added = added.map(|(sid, server)| {
            server.phase = Phase::Stable;
            (*sid, Arc::clone(&server.address))
        });
        for (sid, address) in added.collect::<Vec<_>>() {
            self.say_added(sid, &address, true, "completed");
        }
        if let Some((target, server)) = self.remove_server.take() {
            self.say_removed(target, server.requester, true, "completed");
        }
        let mut ready = self.add_servers.iter();
        let ready = ready.find(|(_, server)| server.phase == Phase::CaughtUp);
        if let Some(sid) = ready.map(|(sid, _)| *sid)
            && let Some(mut server) = self.add_servers.remove(&sid)
        {
            server.phase = Phase::Committing;
            self.servers.insert(sid, server);
            self.log_servers();
            return;
        }
        let mut leaving = self.servers.iter();
        let leaving = leaving.find(|(_, server)| server.phase == Phase::Remove);
        if let Some(sid) = leaving.map(|(sid, _)| *sid)
            && let Some(server) = self.servers.remove(&sid)
        {
            self.remove_server = Some((sid, server));
            self.log_servers();
        }
    }

    /// The entry at `index`, which names these servers, is committed.
    pub(super) fn servers_committed(&mut self, servers: &Servers, eid: Uuid, index: u64) {
        if self.role == Role::Leader {
            self.reconfigure();
            return;
        }
        if self.has_uncommitted_servers() {
            return;
        }
        for (sid, _) in servers.iter() {
            if let Some(server) = self.servers.get_mut(&sid)
                && server.phase == Phase::Committing
            {
                // Another leader has committed what this one began.
                server.phase = Phase::Stable;
            }
        }
        if self.joining && servers.contains(self.sid) {
            log::info!(target: "raft",
                "added to configuration without reply (eid: {eid}, commit index: {index})");
            self.joining = false;
        }
    }

    /// Tells a server that it was added, or why not.
    pub(super) fn say_added(&mut self, sid: Uuid, address: &str, success: bool, why: &str) {
        if self.may_say("adding", 10) {
            let how = if success { "succeeded" } else { "failed" };
            log::info!(target: "raft", "adding {} ({} at {address}) to cluster {} {how} ({why})",
                self.nickname_of(sid), short_id(sid), short_id(self.cid));
        }
        let others = self.servers.iter().filter(|(sid, _)| **sid != self.sid);
        let addresses = others.map(|(_, server)| Arc::clone(&server.address));
        let remote_addresses = if self.joining {
            BTreeSet::new()
        } else {
            addresses.collect()
        };
        let body = Body::AddServerReply {
            success,
            remote_addresses,
        };
        self.send(Message::new(sid, body).with_comment(why));
    }

    /// Tells whoever asked, and the server itself, that it was removed, or why not.
    pub(super) fn say_removed(
        &mut self,
        target: Uuid,
        requester: Option<Uuid>,
        success: bool,
        why: &str,
    ) {
        if self.may_say("removing", 10) {
            let by = match requester {
                Some(sid) => format!("by {}", self.nickname_of(sid)),
                None => "via unixctl".to_owned(),
            };
            let whom = if requester == Some(target) {
                "itself".to_owned()
            } else {
                let ourselves = if target == self.sid {
                    " (ourselves)"
                } else {
                    ""
                };
                format!("{}{ourselves}", self.nickname_of(target))
            };
            let how = if success { "succeeded" } else { "failed" };
            log::info!(target: "raft", "request {by} to remove {whom} from cluster {} {how} \
                ({why})", short_id(self.cid));
        }
        if let Some(requester) = requester {
            self.send_removed(requester, target, success, why);
        }
        if requester != Some(target) {
            self.send_removed(target, target, success, why);
        }
    }

    fn send_removed(&mut self, to: Uuid, target: Uuid, success: bool, why: &str) {
        if to == self.sid {
            if success && target == self.sid {
                self.finish_leaving();
            }
            return;
        }
        let target = Some(target).filter(|target| *target != to);
        let body = Body::RemoveServerReply { success, target };
        self.send(Message::new(to, body).with_comment(why));
    }

    pub(super) fn handle_add_server(&mut self, peer: Uuid, address: &Arc<str>) {
        if self.role != Role::Leader {
            self.say_added(peer, address, false, "not leader");
            return;
        }
        if let Some(server) = self.servers.get_mut(&peer) {
            match server.phase {
                Phase::Remove => {
                    server.phase = Phase::Stable;
                    self.say_added(peer, address, false, "canceled");
                }
                Phase::Stable => self.say_added(peer, address, true, "already in cluster"),
                _ => self.say_added(peer, address, false, "in progress"),
            }
            return;
        }
        if self
            .remove_server
            .as_ref()
            .is_some_and(|(sid, _)| *sid == peer)
        {
            self.say_added(peer, address, false, "committing");
            return;
        }
        if self.add_servers.contains_key(&peer) {
            self.say_added(peer, address, false, "in progress");
            return;
        }
        if let Err(error) = crate::check_address(address) {
            log::warn!(target: "raft", "not adding server {}: {error}", short_id(peer));
            return;
        }
        let mut server = Server::new(peer, address, self.log.end());
        server.requester = Some(peer);
        server.phase = Phase::CatchUp;
        server.last_heard = Some(self.now);
        if self.may_say("starting to add", 10) {
            log::info!(target: "raft",
                "starting to add server {} ({} at {address}) to cluster {}",
                server.nickname, short_id(peer), short_id(self.cid));
        }
        self.add_servers.insert(peer, server);
        // It answers what it has: most often nothing, and it is sent the snapshot.
        self.send_append(peer, 0, Some("initialize new server"));
        if self.test == Some(FailureTest::TransferLeadershipAfterStartingToAdd) {
            self.test = Some(FailureTest::TransferLeadership);
        }
    }

    pub(super) fn handle_add_server_reply(
        &mut self,
        success: bool,
        remote_addresses: BTreeSet<Arc<str>>,
    ) {
        if !self.joining {
            if self.may_say("add_server_reply", 5) {
                log::warn!(target: "raft", "received add_server_reply even though we're already \
                    part of the cluster");
            }
            return;
        }
        if success {
            // The entry that names this server may not have come yet.
            self.joining = false;
            return;
        }
        for address in remote_addresses {
            if self.remote_addresses.insert(Arc::clone(&address)) {
                log::info!(target: "raft",
                    "{address}: learned new server address for joining cluster");
            }
        }
    }

    /// A server, or a control command, wants `target` removed.
    pub(super) fn handle_remove_server(&mut self, requester: Option<Uuid>, target: Uuid) {
        if self.role != Role::Leader {
            self.say_removed(target, requester, false, "not leader");
            return;
        }
        if let Some(server) = self.add_servers.remove(&target) {
            self.say_added(target, &server.address, false, "canceled");
            return;
        }
        if self
            .remove_server
            .as_ref()
            .is_some_and(|(sid, _)| *sid == target)
        {
            self.say_removed(target, requester, false, "in progress");
            return;
        }
        let others = self.servers.iter();
        let others = others.filter(|(sid, s)| **sid != target && s.phase != Phase::Remove);
        let others = others.count();
        let Some(server) = self.servers.get_mut(&target) else {
            self.say_removed(target, requester, true, "already not in cluster");
            return;
        };
        let refusal = match server.phase {
            Phase::Committing => Some("committing"),
            Phase::Remove => Some("in progress"),
            _ if others == 0 => Some("empty"),
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.say_removed(target, requester, false, refusal);
            return;
        }
        server.phase = Phase::Remove;
        server.requester = requester;
        self.reconfigure();
    }

    pub(super) fn finish_leaving(&mut self) {
        if self.left {
            return;
        }
        log::info!(target: "raft", "{}: finished leaving cluster {}",
            short_id(self.sid), short_id(self.cid));
        self.note("left", "this server left the cluster".to_owned());
        self.leaving = false;
        self.left = true;
        self.finish_all_commands(crate::message::Status::Shutdown);
    }

    /// Begins to leave the cluster.
    pub fn leave(&mut self, now: Instant) {
        self.now = now;
        if self.joining || self.failed || self.leaving || self.left {
            return;
        }
        log::info!(target: "raft", "{}: starting to leave cluster {}",
            short_id(self.sid), short_id(self.cid));
        self.leaving = true;
        self.ask_to_leave();
    }

    /// Whether there is no other server.
    pub(super) fn is_alone(&self) -> bool {
        self.servers.len() == 1 && self.servers.contains_key(&self.sid)
    }

    /// Asks the others to be removed; a leader hands over first.
    pub(super) fn ask_to_leave(&mut self) {
        let mut delay = self.election_timer;
        if self.is_alone() {
            // The others have left first.
            log::warn!(target: "raft", "{}: not leaving cluster {}, of which no other server \
                would be left", short_id(self.sid), short_id(self.cid));
            self.leaving = false;
            return;
        }
        if self.role == Role::Leader {
            self.hand_over("this server is leaving the cluster");
            // Not long, but not equally long for two leaders that leave by turns.
            delay = delay / 10 + self.random_below(delay / 10);
        } else {
            if self.may_say("leave", 5) {
                log::info!(target: "raft", "sending remove request (joining={}, leaving={})",
                    self.joining, self.leaving);
            }
            // Who leads now may be unknown, even for ever if this server was removed already.
            for peer in self.peers() {
                self.send(Message::new(peer, Body::RemoveServer { sid: self.sid }));
            }
        }
        self.leave_timeout = self.now + Duration::from_millis(delay);
    }

    /// A connection was closed for good.
    pub fn link_closed(&mut self, now: Instant, peer: Uuid) {
        self.now = now;
        self.disconnections += 1;
        // A server that joins has but one connection; it will begin anew.
        if let Some(server) = self.add_servers.remove(&peer) {
            log::info!(target: "raft", "cluster {}: server {} ({}) disconnected while joining",
                short_id(self.cid), server.nickname, server.address);
        }
    }

    /// The servers that there should be a connection to: addresses and ids, if they are known.
    pub fn wanted_links(&self) -> Vec<(Arc<str>, Option<Uuid>)> {
        if self.is_over() {
            return Vec::new();
        }
        let servers = self.servers.iter();
        let servers = servers.map(|(sid, server)| (Arc::clone(&server.address), Some(*sid)));
        let mut wanted: Vec<_> = servers.collect();
        if self.joining {
            let remotes = self.remote_addresses.iter();
            wanted.extend(remotes.map(|address| (Arc::clone(address), None)));
        }
        wanted.retain(|(address, _)| *address != self.address);
        wanted
    }

    /// Whether a connection that this server made should stay.
    pub fn keeps_link(&self, address: &str, peer: Option<Uuid>) -> bool {
        if self.is_over() {
            return false;
        }
        let is_remote = self.joining && self.remote_addresses.contains(address);
        let removed = self.remove_server.as_ref().map(|(sid, _)| *sid);
        // Until the entry comes that names this server, others that it names are not known.
        is_remote
            || (removed.is_some() && removed == peer)
            || !self.servers.contains_key(&self.sid)
            || peer.is_some_and(|peer| self.servers.contains_key(&peer))
    }
}
