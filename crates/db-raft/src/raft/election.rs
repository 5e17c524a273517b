//! Elections: who leads (sections 3.4, 3.6, 4.2.3, 9.6 of the dissertation).

use std::time::Duration;

use db_model::Uuid;

use super::output::Waiter;
use super::{ELECTION_RANGE, FailureTest, Raft, Role};
use crate::entry::Entry;
use crate::message::{Body, Message, Vote};
use crate::record::Kind;
use crate::short_id;

impl Raft {
    pub(super) fn reset_election_timer(&mut self) {
        let mut millis = self.election_timer + self.random_below(ELECTION_RANGE);
        if self.test == Some(FailureTest::DelayElection) {
            millis += self.election_timer;
        }
        self.election_base = self.now;
        self.election_timeout = self.now + Duration::from_millis(millis);
    }

    pub(super) const fn ping_interval(&self) -> Duration {
        Duration::from_millis(self.election_timer / 3)
    }

    pub(super) fn reset_ping_timer(&mut self) {
        self.ping_timeout = self.now + self.ping_interval();
    }

    /// The time is up: a leader sees whether it is followed, others elect.
    pub(super) fn election_is_due(&mut self) {
        if self.role == Role::Leader {
            self.see_who_follows();
        } else {
            let is_prevote = self.servers.len() > 1;
            self.start_election(is_prevote, false);
        }
        // Who is being removed cannot be elected, and must not try again at once for that.
        if self.election_timeout <= self.now {
            self.reset_election_timer();
        }
    }

    fn see_who_follows(&mut self) {
        // A leader that is cut off must let its clients go elsewhere (section 6.2).
        let replied = self.servers.values().filter(|s| s.replied).count();
        log::debug!(target: "raft", "{replied} out of {} servers replied", self.servers.len());
        if replied >= self.servers.len() / 2 {
            self.servers.values_mut().for_each(|s| s.replied = false);
            self.reset_election_timer();
        } else {
            self.become_follower();
            self.start_election(true, false);
        }
    }

    /// Goes to another term, or votes in the present one.
    fn set_term(&mut self, term: u64, vote: Uuid) {
        let kind = if vote.is_nil() {
            Kind::Term(term)
        } else {
            Kind::Vote { term, sid: vote }
        };
        let ticket = self.record(kind, true);
        self.wait_for(ticket, Waiter::Term(term, vote));
        self.term = term;
        self.vote = vote;
    }

    /// Begins an election, or asks whether it would be won.
    pub(super) fn start_election(&mut self, is_prevote: bool, leadership_transfer: bool) {
        if !self.servers.contains_key(&self.sid) || self.role == Role::Leader {
            return;
        }
        if !is_prevote {
            self.set_term(self.term + 1, self.sid);
        }
        self.leader = Uuid::nil();
        self.prevote_passed = !is_prevote;
        self.set_role(Role::Candidate);
        if is_prevote || leadership_transfer {
            // If nobody has led since the last one, this is another try.
            self.candidate_retrying = !self.had_leader;
            self.had_leader = false;
            self.election_start = Some(self.now);
            self.election_won = None;
        }
        self.votes = 0;
        self.leadership_transfer = leadership_transfer;
        if self.may_say("election", 5) {
            let (term, what) = (self.term, if is_prevote { "pre-vote" } else { "vote" });
            if self.now >= self.election_timeout {
                let since = self.now.since(self.election_base).as_millis();
                log::info!(target: "raft",
                    "term {term}: {since} ms timeout expired, starting election ({what})");
            } else {
                log::info!(target: "raft", "term {term}: starting election ({what})");
            }
        }
        self.reset_election_timer();
        let vote = Vote {
            term: self.term,
            last_log_index: self.log.last(),
            last_log_term: self.log.last_term(),
            leadership_transfer,
            is_prevote,
        };
        self.servers.values_mut().for_each(|s| s.vote = Uuid::nil());
        if self.test != Some(FailureTest::DontSendVoteRequest) {
            for peer in self.peers() {
                self.send(Message::new(peer, Body::Vote(vote.clone())));
            }
        }
        if self.accept_vote(self.sid, self.sid, is_prevote) {
            // There is nobody else.
            if is_prevote {
                self.start_election(false, false);
            } else {
                self.become_leader();
            }
        }
    }

    /// The other servers of the cluster.
    pub(super) fn peers(&self) -> Vec<Uuid> {
        let peers = self.servers.keys().filter(|sid| **sid != self.sid);
        peers.copied().collect()
    }

    /// Counts the vote of a server for another.  Whether that makes a majority for this one.
    fn accept_vote(&mut self, voter: Uuid, vote: Uuid, is_prevote: bool) -> bool {
        let majority = self.servers.len() / 2;
        let Some(server) = self.servers.get_mut(&voter) else {
            return false;
        };
        if server.vote == vote {
            return false;
        }
        if self.prevote_passed && is_prevote {
            let (name, term) = (&server.nickname, self.term);
            log::warn!(target: "raft", "ignoring pre-vote reply from server {name} during the \
                actual election on term {term}.");
            return false;
        }
        let before = std::mem::replace(&mut server.vote, vote);
        if !before.is_nil() {
            let name = server.nickname.clone();
            log::warn!(target: "raft", "server {name} changed its vote from {} to {}",
                self.nickname_of(before), self.nickname_of(vote));
        }
        if vote != self.sid {
            return false;
        }
        self.votes += 1;
        self.votes > majority
    }

    pub(super) fn set_role(&mut self, role: Role) {
        log::debug!(target: "raft", "role transition: {} --> {}",
            self.role.name(), role.name());
        self.role = role;
    }

    pub(super) fn become_follower(&mut self) {
        self.leader = Uuid::nil();
        if self.role == Role::Follower {
            return;
        }
        self.set_role(Role::Follower);
        self.reset_election_timer();
        // Commands go on: what was sent to others may still be committed by a new leader.  So
        // does a changed set of servers, which is in the log.
        for (sid, server) in std::mem::take(&mut self.add_servers) {
            self.say_added(sid, &server.address, false, "lost leadership");
        }
        if let Some((target, server)) = self.remove_server.take() {
            self.say_removed(target, server.requester, false, "lost leadership");
        }
    }

    pub(super) fn set_leader(&mut self, sid: Uuid) {
        self.leader = sid;
        self.ever_had_leader = true;
        self.had_leader = true;
        self.candidate_retrying = false;
    }

    fn become_leader(&mut self) {
        if self.may_say("elected", 5) {
            log::info!(target: "raft", "term {}: elected leader by {}+ of {} servers",
                self.term, self.votes, self.servers.len());
        }
        self.set_role(Role::Leader);
        self.election_won = Some(self.now);
        self.set_leader(self.sid);
        self.reset_election_timer();
        self.reset_ping_timer();
        if self.joining {
            // The leader that was adding this server lost its office after the others had
            // heard of the addition, and they voted for it.
            log::info!(target: "raft", "elected as leader while joining");
            self.joining = false;
        }
        let end = self.log.end();
        self.servers.values_mut().for_each(|s| s.begin_term(end));
        self.election_timer_new = 0;
        self.record(
            Kind::Leader {
                term: self.term,
                sid: self.sid,
            },
            false,
        );
        self.update_match_index(self.sid, self.log_synced);
        // An entry of its own term tells a leader what is committed (section 6.4).
        self.append_entry(Entry::default());
    }

    /// Takes the term of a message.  False if the message is out of date.
    pub(super) fn receive_term(&mut self, message: &Message, term: u64) -> bool {
        if term > self.term {
            self.set_term(term, Uuid::nil());
            self.become_follower();
        } else if term < self.term {
            log::info!(target: "raft",
                "rejecting term {term} < current term {} received in {} message from server {}",
                self.term, message.body.method(), self.nickname_of(message.peer));
            return false;
        }
        true
    }

    /// Whether a message asks for a vote while there is no need of an election.
    pub(super) fn is_disruptive(&mut self, message: &Message) -> bool {
        let Body::Vote(vote) = &message.body else {
            return false;
        };
        if vote.leadership_transfer {
            return false;
        }
        match self.role {
            Role::Leader => {
                if self.may_say("vote", 5) {
                    log::warn!(target: "raft", "ignoring vote request received as leader");
                }
                true
            }
            Role::Follower => {
                let least = Duration::from_millis(self.election_timer);
                let since = self.now.since(self.election_base);
                let is_early = self.now < self.election_base + least;
                if is_early && self.may_say("vote", 5) {
                    log::warn!(target: "raft", "ignoring vote request received after only {} ms \
                        (minimum election time is {} ms)", since.as_millis(), self.election_timer);
                }
                is_early
            }
            Role::Candidate => false,
        }
    }

    pub(super) fn handle_vote(&mut self, peer: Uuid, vote: &Vote) {
        let mine = (self.log.last_term(), self.log.last());
        let is_behind = mine > (vote.last_log_term, vote.last_log_index);
        if vote.is_prevote {
            // It is about the next term, in which nobody has voted.
            if !is_behind {
                self.send_vote(peer, peer, true);
            }
            return;
        }
        if self.vote.is_nil() {
            if is_behind {
                return;
            }
            self.set_term(self.term, peer);
            self.reset_election_timer();
        }
        self.send_vote(peer, self.vote, false);
    }

    fn send_vote(&mut self, peer: Uuid, vote: Uuid, is_prevote: bool) {
        let body = Body::VoteReply {
            term: self.term,
            vote,
            is_prevote,
        };
        self.send(Message::new(peer, body));
    }

    pub(super) fn handle_vote_reply(&mut self, peer: Uuid, vote: Uuid, is_prevote: bool) {
        if self.role != Role::Candidate || peer == self.sid {
            return;
        }
        if !is_prevote && !self.prevote_passed {
            // A late answer of an election that this server gave up.
            return;
        }
        if self.accept_vote(peer, vote, is_prevote) {
            if self.prevote_passed {
                self.become_leader();
            } else {
                self.start_election(false, false);
            }
        }
    }

    pub(super) fn handle_become_leader(&mut self, peer: Uuid, term: u64) {
        if self.role == Role::Follower {
            log::info!(target: "raft", "received leadership transfer from {} in term {term}",
                self.nickname_of(peer));
            self.start_election(false, true);
        }
    }

    /// Asks another server to lead, if this one does.
    fn transfer_leadership(&mut self, reason: &str) {
        if self.role != Role::Leader {
            return;
        }
        let stable = self.servers.iter();
        let stable = stable.filter(|(sid, s)| **sid != self.sid && s.phase == super::Phase::Stable);
        let mut others: Vec<(Uuid, u64)> = stable.map(|(sid, s)| (*sid, s.match_index)).collect();
        if others.is_empty() {
            return;
        }
        let start = self.random_below(others.len() as u64);
        others.rotate_left(usize::try_from(start).unwrap_or(0));
        // Those who know most come first, then whoever is not behind the majority.
        others.sort_by_key(|(_, match_index)| std::cmp::Reverse(*match_index));
        for (sid, _) in others {
            let message = Message::new(sid, Body::BecomeLeader { term: self.term });
            if self.send(message.with_comment(reason)) {
                let name = self.nickname_of(sid);
                let comment = format!("transferring leadership to {name} because {reason}");
                self.note("transfer leadership", comment);
                return;
            }
        }
    }

    /// Asks another server to lead, and leads no more.
    pub fn hand_over(&mut self, reason: &str) {
        if self.role == Role::Leader {
            log::info!(target: "raft", "Transferring leadership because {reason}.");
            self.transfer_leadership(reason);
            self.become_follower();
        }
    }

    /// The process ends: another server should lead soon.
    pub fn shut_down(&mut self, now: base::Instant) {
        self.now = now;
        if !self.is_over() {
            self.transfer_leadership("this server is shutting down");
            self.close();
        }
    }

    /// Notes who leads, if that is news.  False if this server leads itself.
    pub(super) fn learn_leader(&mut self, sid: Uuid) -> bool {
        if self.role == Role::Leader {
            log::error!(target: "raft", "this server is leader but server {} claims to be",
                self.nickname_of(sid));
            return false;
        }
        if sid != self.leader {
            let (term, name) = (self.term, self.nickname_of(sid));
            if self.leader.is_nil() {
                log::info!(target: "raft", "server {name} is leader for term {term}");
            } else {
                log::error!(target: "raft", "leader for term {term} changed from {} to {name}",
                    self.nickname_of(self.leader));
            }
            self.set_leader(sid);
            self.record(Kind::Leader { term, sid }, false);
        }
        if self.role == Role::Candidate {
            self.set_role(Role::Follower);
        }
        true
    }

    /// What a server's vote is, in words.
    pub(super) fn vote_text(&self, sid: Uuid) -> String {
        if sid == self.sid {
            "self".to_owned()
        } else if sid.is_nil() {
            "unknown".to_owned()
        } else if self.servers.contains_key(&sid) {
            self.nickname_of(sid)
        } else {
            short_id(sid)
        }
    }
}
