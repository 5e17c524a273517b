//! One server of a cluster.

mod append;
mod commands;
mod election;
mod membership;
mod output;
mod snapshot;
mod status;
mod testing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::{Instant, RateLimiter};
use db_model::{Error, Result, Uuid, UuidSource};
use json::Json;

pub use commands::{Applied, Command, Proposed};
pub use output::{Output, Ticket};
pub use status::Link;
pub use testing::FailureTest;

use crate::entry::Entry;
use crate::log::Log;
use crate::message::{Body, Message};
use crate::record::{Header, Kind, Membership, Record};
use crate::{nickname, short_id};
use commands::Pending;
use output::Waiter;

/// The election timer of a cluster that was told nothing else, in milliseconds.
pub const DEFAULT_ELECTION_TIMER: u64 = 1000;
/// By how much an election may be put off beyond the timer, so that servers do not all begin
/// at once, in milliseconds.
const ELECTION_RANGE: u64 = 1000;
/// The least and the most that an election timer may be, in milliseconds.
const ELECTION_TIMERS: std::ops::RangeInclusive<u64> = 100..=600_000;
/// How often a server that wants to join asks again.
const JOIN_INTERVAL: Duration = Duration::from_secs(1);

/// Checks an election timer, in milliseconds.
///
/// # Errors
/// It is too short or too long.
pub fn check_election_timer(millis: u64) -> Result<()> {
    if ELECTION_TIMERS.contains(&millis) {
        return Ok(());
    }
    let (least, most) = (ELECTION_TIMERS.start(), ELECTION_TIMERS.end());
    Err(Error::general(format!(
        "election timer must be between {least} and {most}, in msec."
    )))
}

/// What a server does in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It follows a leader, or waits for one.
    Follower,
    /// It wants to lead.
    Candidate,
    /// It leads.
    Leader,
}

/// How far a server's coming or going is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It neither comes nor goes.
    Stable,
    /// It is being sent the log.
    CatchUp,
    /// It has the log, and waits for earlier changes of the cluster.
    CaughtUp,
    /// That it belongs to the cluster is in the log but not committed.
    Committing,
    /// It is to be removed.
    Remove,
}

/// Another server of the cluster, or this one, as a leader or candidate sees it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    address: Arc<str>,
    nickname: String,
    /// For whom it has voted in this election.
    vote: Uuid,
    /// Index of the next entry to send to it.
    next_index: u64,
    /// Index of the last entry that it is known to have.
    match_index: u64,
    phase: Phase,
    /// Whether it answered since the leader last counted.
    replied: bool,
    /// Whether a snapshot is on its way to it.
    snapshot_sent: bool,
    /// The server that asked for its removal or addition; `None` if a control command did.
    requester: Option<Uuid>,
    last_heard: Option<Instant>,
}

impl Server {
    fn new(sid: Uuid, address: &Arc<str>, next_index: u64) -> Self {
        Self {
            address: Arc::clone(address),
            nickname: nickname(address, sid),
            vote: Uuid::nil(),
            next_index,
            match_index: 0,
            phase: Phase::Stable,
            replied: false,
            snapshot_sent: false,
            requester: None,
            last_heard: None,
        }
    }

    /// What a new leader knows of it: nothing.
    fn begin_term(&mut self, next_index: u64) {
        self.next_index = next_index;
        self.match_index = 0;
        self.phase = Phase::Stable;
        self.replied = false;
        self.snapshot_sent = false;
    }
}

/// One server of a cluster; see the [crate](crate)'s documentation.
#[derive(Debug)]
pub struct Raft {
    /// The time of what is going on.
    now: Instant,
    random: UuidSource,

    cid: Uuid,
    sid: Uuid,
    name: Arc<str>,
    address: Arc<str>,
    nickname: String,

    term: u64,
    /// The vote in this term; all zeros if there was none.
    vote: Uuid,
    synced_term: u64,
    synced_vote: Uuid,
    log: Log,
    /// Index of the last entry that is on disk.
    log_synced: u64,
    /// The servers that the log's last such entry names, committed or not.
    servers: BTreeMap<Uuid, Server>,
    /// In milliseconds.
    election_timer: u64,
    /// The timer that was proposed, 0 if none was.
    election_timer_new: u64,

    role: Role,
    commit_index: u64,
    /// Index of the last entry that the database has taken, if it has the snapshot.
    last_applied: u64,
    /// Whether the database is to take the snapshot first.
    snapshot_pending: bool,
    /// All zeros if there is none that is known.
    leader: Uuid,
    /// Since when there has been no sign of a leader.
    election_base: Instant,
    /// When to begin an election; as a leader, when to see whether there are followers.
    election_timeout: Instant,
    election_start: Option<Instant>,
    election_won: Option<Instant>,
    /// Whether the last election was wished by a leader.
    leadership_transfer: bool,
    votes: usize,
    prevote_passed: bool,
    candidate_retrying: bool,
    had_leader: bool,
    ever_had_leader: bool,

    joining: bool,
    remote_addresses: BTreeSet<Arc<str>>,
    join_timeout: Instant,
    leaving: bool,
    leave_timeout: Instant,
    left: bool,
    failed: bool,

    /// Servers to be added.
    add_servers: BTreeMap<Uuid, Server>,
    /// The server that is being removed.
    remove_server: Option<(Uuid, Server)>,
    commands: BTreeMap<Command, Pending>,
    last_command: u64,
    ping_timeout: Instant,
    /// When those who wait for a command may hear of it again.
    reassure_at: Instant,

    /// Number of connections to each server.
    links: BTreeMap<Uuid, u32>,
    disconnections: u64,

    outputs: VecDeque<Output>,
    last_ticket: Ticket,
    waiters: VecDeque<(Ticket, Waiter)>,
    test: Option<FailureTest>,
    limits: BTreeMap<&'static str, RateLimiter>,
}

impl Raft {
    /// The server whose file begins with `header`, before the rest of the file is read.
    /// `random` yields ids of entries and chance.
    pub fn new(header: Header, random: UuidSource) -> Self {
        let (joining, remote_addresses, index, snap) = match header.membership {
            Membership::Joining(remotes) => (true, remotes, 0, Entry::default()),
            Membership::Member { index, snapshot } => (false, BTreeSet::new(), index, snapshot),
        };
        let mut this = Self {
            now: Instant::ZERO,
            random,
            cid: header.cid,
            sid: header.sid,
            name: header.name,
            nickname: nickname(&header.local_address, header.sid),
            address: header.local_address,
            term: 0,
            vote: Uuid::nil(),
            synced_term: 0,
            synced_vote: Uuid::nil(),
            snapshot_pending: snap.data.is_some(),
            log: Log::new(snap, index),
            log_synced: index,
            servers: BTreeMap::new(),
            election_timer: DEFAULT_ELECTION_TIMER,
            election_timer_new: 0,
            role: Role::Follower,
            commit_index: index,
            last_applied: index,
            leader: Uuid::nil(),
            election_base: Instant::ZERO,
            election_timeout: Instant::MAX,
            election_start: None,
            election_won: None,
            leadership_transfer: false,
            votes: 0,
            prevote_passed: false,
            candidate_retrying: false,
            had_leader: false,
            ever_had_leader: false,
            joining,
            remote_addresses,
            join_timeout: Instant::MAX,
            leaving: false,
            leave_timeout: Instant::MAX,
            left: false,
            failed: false,
            add_servers: BTreeMap::new(),
            remove_server: None,
            commands: BTreeMap::new(),
            last_command: 0,
            ping_timeout: Instant::MAX,
            reassure_at: Instant::ZERO,
            links: BTreeMap::new(),
            disconnections: 0,
            outputs: VecDeque::new(),
            last_ticket: Ticket(0),
            waiters: VecDeque::new(),
            test: None,
            limits: BTreeMap::new(),
        };
        this.take_servers_from_log(log::Level::Debug);
        this.take_election_timer_from_log();
        this
    }

    /// Takes a record of the file; `number` counts them from 1.
    ///
    /// # Errors
    /// It is no record, or contradicts those before it.
    pub fn replay(&mut self, number: u64, record: &Json) -> Result<()> {
        let outcome = Record::from_json(record);
        let outcome = outcome.and_then(|record| self.replay_kind(number, record.kind));
        outcome.map_err(|error| {
            let (name, details) = (&self.name, error.details().unwrap_or_default());
            Error::general(format!(
                "error reading record {number} from {name} log: {details}"
            ))
        })
    }

    fn replay_kind(&mut self, number: u64, kind: Kind) -> Result<()> {
        let term = kind.term();
        if term > self.term {
            self.term = term;
            self.synced_term = term;
            self.vote = Uuid::nil();
            self.synced_vote = Uuid::nil();
        }
        match kind {
            Kind::Entry { index, entry } => return self.replay_entry(number, index, entry),
            Kind::Vote { term, sid } => {
                if term < self.term {
                    return Err(Error::general(format!(
                        "record {number} votes for term {term} but current term is {}",
                        self.term
                    )));
                }
                if !self.vote.is_nil() && self.vote != sid {
                    return Err(Error::general(format!(
                        "record {number} votes for {} in term {term} but a previous record for \
                         the same term voted for {}",
                        short_id(self.vote),
                        short_id(sid)
                    )));
                }
                self.vote = sid;
                self.synced_vote = sid;
            }
            Kind::Note(note) if note == "left" => {
                return Err(Error::general(format!(
                    "record {number} indicates server has left the cluster; it cannot be added \
                     back (use \"ovsdb-tool join-cluster\" to add a new server)"
                )));
            }
            Kind::CommitIndex(index) if index < self.commit_index => {
                return Err(Error::general(format!(
                    "record {number} regresses commit index from {} to {index}",
                    self.commit_index
                )));
            }
            Kind::CommitIndex(index) if index >= self.log.end() => {
                return Err(Error::general(format!(
                    "record {number} advances commit index to {index} but last log index is {}",
                    self.log.last()
                )));
            }
            Kind::CommitIndex(index) => self.commit_index = index,
            Kind::Term(_) | Kind::Note(_) | Kind::Leader { .. } => {}
        }
        Ok(())
    }

    fn replay_entry(&mut self, number: u64, index: u64, entry: Entry) -> Result<()> {
        let end = self.log.end();
        if index <= self.commit_index {
            return Err(Error::general(format!(
                "record {number} attempts to truncate log from {end} to {index} entries, but \
                 commit index is already {}",
                self.commit_index
            )));
        }
        if index > end {
            return Err(Error::general(format!(
                "record {number} with index {index} skips past expected index {end}"
            )));
        }
        self.log.truncate(index);
        let previous = self.log.last_term();
        if entry.term < previous {
            return Err(Error::general(format!(
                "record {number} with index {index} term {} precedes previous entry's term \
                 {previous}",
                entry.term
            )));
        }
        self.log_synced = self.log.push(entry);
        Ok(())
    }

    /// Begins, once the whole file was read.
    ///
    /// # Errors
    /// The server does not belong to the cluster.
    pub fn start(&mut self, now: Instant) -> Result<()> {
        self.now = now;
        if self.joining {
            self.join_timeout = now + JOIN_INTERVAL;
        } else {
            self.take_servers_from_log(log::Level::Debug);
            self.take_election_timer_from_log();
            if !self.servers.contains_key(&self.sid) {
                let is_member = self.log.servers_at(self.commit_index).contains(self.sid);
                if self.log.ever_names(self.sid) && !is_member {
                    return Err(Error::general("server does not belong to cluster"));
                }
                // That it was removed may turn out not to be committed.
                if !is_member {
                    // It ended while it was joining, after it had the snapshot.
                    let servers = self.servers.values();
                    self.remote_addresses = servers.map(|s| Arc::clone(&s.address)).collect();
                    self.joining = true;
                    self.join_timeout = now + JOIN_INTERVAL;
                }
            } else if self.servers.len() == 1 {
                self.start_election(false, false);
            }
        }
        self.reset_ping_timer();
        self.reset_election_timer();
        log::info!(target: "raft", "local server ID is {}", short_id(self.sid));
        Ok(())
    }

    /// The database's name.
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The cluster's id; all zeros if it is not known yet.
    pub const fn cid(&self) -> Uuid {
        self.cid
    }

    /// The cluster's id, for messages to teach it.
    pub const fn cid_mut(&mut self) -> &mut Uuid {
        &mut self.cid
    }

    /// This server's id.
    pub const fn sid(&self) -> Uuid {
        self.sid
    }

    /// The address where other servers reach this one.
    pub const fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// Whether it has a healthy connection to the cluster, so that clients need not look for
    /// another server.  It has while an election goes on for the first time, too.
    pub const fn is_connected(&self) -> bool {
        !self.candidate_retrying
            && !self.joining
            && !self.leaving
            && !self.left
            && !self.failed
            && self.ever_had_leader
    }

    /// Whether it leads.
    pub fn is_leader(&self) -> bool {
        self.role == Role::Leader
    }

    /// Whether it has not joined its cluster yet.
    pub const fn is_joining(&self) -> bool {
        self.joining
    }

    /// Whether it is about to leave its cluster.
    pub const fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Whether it has left its cluster for good.
    pub const fn has_left(&self) -> bool {
        self.left
    }

    /// Whether its file could not be written, so that it takes no part any more.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether it takes no part any more: connections are to be closed.
    pub const fn is_over(&self) -> bool {
        self.left || self.failed
    }

    /// Whether it knows who leads.
    pub fn has_leader(&self) -> bool {
        !self.leader.is_nil()
    }

    /// Number of servers that there is a connection to.
    pub fn linked_servers(&self) -> usize {
        self.links.len()
    }

    /// The present term.
    pub const fn term(&self) -> u64 {
        self.term
    }

    /// The election timer, in milliseconds.
    pub const fn election_timer(&self) -> u64 {
        self.election_timer
    }

    /// How long a connection may be idle before the other end is probed: longer than an
    /// election takes, which a server that joins does not know.
    pub fn probe_interval(&self) -> Duration {
        let timer = if self.joining {
            *ELECTION_TIMERS.end()
        } else {
            self.election_timer
        };
        Duration::from_millis(timer + ELECTION_RANGE)
    }

    /// Number of entries that a snapshot would take the place of.
    pub fn log_length(&self) -> u64 {
        (self.last_applied + 1).saturating_sub(self.log.start())
    }

    /// Number of entries in memory.
    pub fn entries(&self) -> u64 {
        self.log.end() - self.log.start()
    }

    /// Does what is due.
    pub fn run(&mut self, now: Instant) {
        self.now = now;
        if self.is_over() {
            return;
        }
        if self.test == Some(FailureTest::TransferLeadership) {
            self.test = None;
            self.hand_over("preparing to write snapshot");
        }
        if self.may_stand() && now >= self.election_timeout {
            self.election_is_due();
        }
        if self.leaving && now >= self.leave_timeout {
            self.ask_to_leave();
        }
        if self.joining && now >= self.join_timeout {
            self.join_timeout = now + JOIN_INTERVAL;
            self.outputs.push_back(Output::AskToJoin);
        }
        if now >= self.ping_timeout {
            if self.role == Role::Leader {
                self.send_heartbeats();
            }
            self.expire_commands();
            self.reset_ping_timer();
        }
    }

    /// Whether it may be elected.  Who joins may be as soon as its log names it, committed or not (section
    /// 4.1 of the dissertation): it may hold what the leader that added it has lost.
    fn may_stand(&self) -> bool {
        !self.joining || self.servers.contains_key(&self.sid)
    }

    /// When [`Raft::run`] should be called at the latest.
    pub fn next_deadline(&self) -> Instant {
        if self.is_over() {
            return Instant::MAX;
        }
        let join = if self.joining {
            self.join_timeout
        } else {
            Instant::MAX
        };
        let election = if self.may_stand() {
            self.election_timeout
        } else {
            Instant::MAX
        };
        let leave = if self.leaving {
            self.leave_timeout
        } else {
            Instant::MAX
        };
        let ping = if self.role == Role::Leader || !self.commands.is_empty() {
            self.ping_timeout
        } else {
            Instant::MAX
        };
        join.min(election).min(leave).min(ping)
    }

    /// Takes a message of another server.
    pub fn handle(&mut self, now: Instant, message: Message) {
        self.now = now;
        if self.is_over() {
            return;
        }
        let peer = message.peer;
        if let Some(server) = self.servers.get_mut(&peer) {
            server.last_heard = Some(now);
        }
        if self.is_disruptive(&message) {
            return;
        }
        if let Some(term) = message.body.term()
            && !self.receive_term(&message, term)
        {
            if let Body::Append(append) = &message.body {
                self.refuse_append(peer, append, "stale term");
            }
            return;
        }
        let is_heartbeat = message.is_heartbeat();
        match message.body {
            Body::Hello { .. } => {}
            Body::Append(append) => self.handle_append(peer, append, is_heartbeat),
            Body::AppendReply(reply) => self.handle_append_reply(peer, &reply),
            Body::Vote(vote) => self.handle_vote(peer, &vote),
            Body::VoteReply {
                vote, is_prevote, ..
            } => self.handle_vote_reply(peer, vote, is_prevote),
            Body::AddServer { address } => self.handle_add_server(peer, &address),
            Body::AddServerReply {
                success,
                remote_addresses,
            } => self.handle_add_server_reply(success, remote_addresses),
            Body::RemoveServer { sid } => self.handle_remove_server(Some(peer), sid),
            Body::RemoveServerReply { success, target } => {
                if success && target.is_none_or(|target| target == self.sid) {
                    self.finish_leaving();
                }
            }
            Body::InstallSnapshot(request) => self.handle_install_snapshot(peer, *request),
            Body::InstallSnapshotReply {
                last_index,
                last_term,
                ..
            } => self.handle_install_snapshot_reply(peer, last_index, last_term),
            Body::BecomeLeader { term } => self.handle_become_leader(peer, term),
            Body::Execute {
                data,
                prereq,
                result,
            } => self.handle_execute(peer, data, prereq, result),
            Body::ExecuteReply {
                result,
                status,
                commit_index,
            } => self.handle_execute_reply(peer, result, status, commit_index),
        }
    }

    /// There is one more connection to a server.
    pub fn link_up(&mut self, now: Instant, peer: Uuid) {
        self.now = now;
        *self.links.entry(peer).or_default() += 1;
        // What was on its way over another connection may be lost.
        if let Some(server) = self.servers.get_mut(&peer) {
            server.snapshot_sent = false;
        }
    }

    /// A connection to a server was lost.
    pub fn link_down(&mut self, now: Instant, peer: Uuid) {
        self.now = now;
        if let Some(count) = self.links.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.links.remove(&peer);
            }
        }
        if let Some(server) = self.servers.get_mut(&peer) {
            server.snapshot_sent = false;
        }
    }

    /// What to say first on a new connection, to a server that may not be known.
    pub fn greeting(&self, peer: Uuid) -> Message {
        if self.joining {
            let address = Arc::clone(&self.address);
            Message::new(Uuid::nil(), Body::AddServer { address })
        } else if self.leaving {
            Message::new(peer, Body::RemoveServer { sid: self.sid })
        } else {
            let address = Arc::clone(&self.address);
            Message::new(peer, Body::Hello { address })
        }
    }

    /// A random number of milliseconds below `range`.
    fn random_below(&mut self, range: u64) -> u64 {
        let word = self.random.next_uuid().as_u128();
        let word = u64::try_from(word >> 80).unwrap_or(0);
        if range == 0 { 0 } else { word % range }
    }

    /// Whether a line of this kind may be logged: `burst` at once and as many a minute.
    fn may_say(&mut self, what: &'static str, burst: u32) -> bool {
        let now = self.now;
        let limit = self.limits.entry(what);
        let limit = limit.or_insert_with(|| RateLimiter::new(burst, burst));
        limit.allow(now)
    }

    /// What a server is called in log lines.
    fn nickname_of(&self, sid: Uuid) -> String {
        if sid == self.sid {
            return self.nickname.clone();
        }
        let server = self
            .servers
            .get(&sid)
            .or_else(|| self.add_servers.get(&sid));
        server.map_or_else(|| short_id(sid), |server| server.nickname.clone())
    }

    /// A server of the cluster or one that is to become one, but not this one.
    fn other_server(&mut self, sid: Uuid) -> Option<&mut Server> {
        let known = self.servers.get_mut(&sid).filter(|_| sid != self.sid);
        known.or_else(|| self.add_servers.get_mut(&sid))
    }

    /// Puts a record at the end of the file.
    fn record(&mut self, kind: Kind, durable: bool) -> Ticket {
        self.write(&Record::from(kind), durable)
    }

    fn note(&mut self, note: &str, comment: String) {
        let record = Record {
            comment: Some(comment),
            kind: Kind::Note(note.to_owned()),
        };
        self.write(&record, false);
    }

    fn write(&mut self, record: &Record, durable: bool) -> Ticket {
        self.write_json(record.to_json(), durable)
    }

    fn write_json(&mut self, record: Json, durable: bool) -> Ticket {
        self.last_ticket.0 += 1;
        self.outputs.push_back(Output::Write {
            ticket: self.last_ticket,
            record,
            durable,
        });
        self.last_ticket
    }
}
