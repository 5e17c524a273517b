//! Transactions on databases of a cluster: executed, taken back, and handed to the cluster,
//! which commits them or not.

use std::sync::Arc;

use base::Instant;
use db_engine::{Changes, Context, Database, Outcome, transaction_record};
use db_model::Uuid;
use db_raft::message::Status;
use db_raft::{Command, Data, Proposed, Raft};
use io::jsonrpc::Message;
use json::Json;

use crate::cluster::Part;
use crate::served::Waiting;
use crate::server::{Client, ClientId, Server};

/// A client that there is not: whoever has gone or does not want to wait.
const NOBODY: ClientId = ClientId(u64::MAX);

/// A request whose data are on their way into the log.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(super) eid: Uuid,
    /// The id of the data that they follow.
    prereq: Uuid,
    /// The request, to be tried again if need be.
    waiting: Waiting,
    /// Its answer, if it succeeds.
    result: Json,
    changes: Option<Changes>,
    /// The database in another schema, if that is what it is about.
    converted: Option<Database>,
}

impl InFlight {
    /// The changes, if the database is still the one that they were made for.
    pub(super) fn take_changes(&mut self, eid: Uuid) -> Option<Changes> {
        self.changes.take().filter(|_| self.prereq == eid)
    }

    /// The converted database, if the present one is still the one that it was made of.
    pub(super) fn take_converted(&mut self, eid: Uuid) -> Option<Database> {
        self.converted.take().filter(|_| self.prereq == eid)
    }
}

/// A request with the data that it puts into the log.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) data: Data,
    pub(super) waiting: Waiting,
    /// Its answer, if it succeeds.
    pub(super) result: Json,
    /// What it changes.
    pub(super) changes: Option<Changes>,
    /// The database in another schema, if that is what it is about.
    pub(super) converted: Option<Database>,
}

/// Most transactions that are proposed in a row.
const MAX_BATCH: usize = 500;

/// Transactions that are executed one upon the other and proposed in a row, before the first is
/// committed.  Nobody is answered meanwhile, and in the end all changes are taken back.
#[derive(Debug, Default)]
pub(super) struct Batch {
    changes: Vec<Changes>,
    /// The id of the last one's data.
    last: Uuid,
    /// Whether nothing more comes into it.
    closed: bool,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether another transaction may be executed now; `eid` is the id of the last data that
    /// the database has taken.
    fn is_open(&self, raft: &Raft, eid: Uuid) -> bool {
        if self.is_empty() {
            !self.closed && raft.may_follow(eid)
        } else {
            !self.closed && self.changes.len() < MAX_BATCH
        }
    }

    /// The id of the data that the next one follows.
    fn last(&self, eid: Uuid) -> Uuid {
        if self.is_empty() { eid } else { self.last }
    }

    fn add(&mut self, eid: Uuid, changes: Changes) {
        self.changes.push(changes);
        self.last = eid;
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn take(&mut self) -> Vec<Changes> {
        self.closed = false;
        std::mem::take(&mut self.changes)
    }
}

/// A request that is committed, but not applied yet.
#[derive(Debug)]
pub(crate) struct Answered {
    index: u64,
    pub(super) flight: InFlight,
}

impl Part {
    /// Whether a client's request `id` is on its way into the log.
    pub(crate) fn is_under_way(&self, client: ClientId, id: &Json) -> bool {
        let answered = self.answered.iter().map(|answered| &answered.flight);
        let mut flights = self.in_flight.values().chain(answered);
        flights.any(|flight| flight.waiting.client == client && flight.waiting.id == *id)
    }
}

impl Server {
    /// Executes a transaction on a database of a cluster.  If it must wait, it is kept.
    pub(crate) fn attempt_in_cluster(&mut self, now: Instant, name: &Arc<str>, waiting: Waiting) {
        if waiting.converts {
            self.attempt_conversion(now, name, waiting);
            return;
        }
        let client = waiting.client;
        let read_only = self.is_read_only(client, name);
        let wall = self.wall();
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(part) = &mut served.cluster else {
            return;
        };
        let mut waiting = waiting;
        waiting.until = Instant::MAX;
        if !part.batch.is_open(&part.raft, part.eid) {
            // Something comes first, and may change what it sees.
            served.waiting.push(waiting);
            return;
        }
        let locks = &self.locks;
        let identity = self.clients.get(&client).and_then(Client::identity);
        let context = Context {
            now,
            since: waiting.since,
            read_only,
            owns_lock: &|lock| locks.owns(lock, client),
            identity: identity.as_ref(),
            forwards: false,
        };
        let (mut result, committed) = match served.db.execute(&waiting.params, &context) {
            Outcome::Wait(until) => {
                waiting.until = until;
                served.waiting.push(waiting);
                return;
            }
            Outcome::Forward => return,
            Outcome::Done(result, committed) => (result, committed),
        };
        let Some(committed) = committed.filter(|committed| !committed.changes.is_empty()) else {
            if part.batch.is_empty() {
                self.send(client, None, Message::reply(result, waiting.id));
            } else {
                // What it has seen is not committed.
                part.batch.close();
                served.waiting.push(waiting);
            }
            return;
        };
        let record = transaction_record(
            served.db.schema(),
            &committed.changes,
            wall,
            &committed.comment,
            served.differences,
        );
        if let Some(fault) = &part.fault {
            served.db.apply(&committed.changes.reversed());
            if let Json::Array(results) = &mut result {
                results.push(fault.to_json());
            }
            self.send(client, None, Message::reply(result, waiting.id));
            return;
        }
        let record = record.unwrap_or_else(|| "{}".to_owned());
        let data = Data::from_text(format!("[null,{record}]"));
        let proposal = Proposal {
            data,
            waiting,
            result,
            changes: Some(committed.changes),
            converted: None,
        };
        self.propose(now, name, proposal);
    }

    /// Hands data to the cluster.
    pub(super) fn propose(&mut self, now: Instant, name: &Arc<str>, proposal: Proposal) {
        let waiting = proposal.waiting;
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(part) = &mut served.cluster else {
            return;
        };
        let prereq = part.batch.last(part.eid);
        match part.raft.propose(now, proposal.data, prereq) {
            Proposed::Pending { command, eid } => {
                if let Some(changes) = &proposal.changes {
                    part.batch.add(eid, changes.clone());
                }
                let flight = InFlight {
                    eid,
                    prereq,
                    waiting,
                    result: proposal.result,
                    changes: proposal.changes,
                    converted: proposal.converted,
                };
                part.in_flight.insert(command, flight);
            }
            Proposed::Refused(status) => {
                log::debug!(target: "transaction", "cluster error: {}", status.name());
                if let Some(changes) = &proposal.changes {
                    served.db.apply(&changes.reversed());
                }
                part.batch.close();
                part.retry_later(now);
                served.waiting.push(waiting);
            }
        }
    }

    /// Takes back what transactions in a row have changed: it is not committed before the
    /// cluster says so.
    pub(crate) fn end_batch(&mut self, name: &str) {
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(part) = &mut served.cluster else {
            return;
        };
        for changes in part.batch.take().iter().rev() {
            served.db.apply(&changes.reversed());
        }
    }

    /// A command is over.
    pub(super) fn command_finished(
        &mut self,
        name: &Arc<str>,
        now: Instant,
        command: Command,
        status: Status,
        index: u64,
    ) {
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let Some(part) = &mut served.cluster else {
            return;
        };
        let Some(flight) = part.in_flight.remove(&command) else {
            return;
        };
        if status == Status::Success {
            part.answered.push(Answered { index, flight });
            return;
        }
        // It is tried again, unless its client has gone.
        if self.clients.contains_key(&flight.waiting.client) {
            served.waiting.push(flight.waiting);
        }
        if status == Status::NotLeader {
            part.retry_later(now);
        } else {
            served.changed = true;
        }
    }

    /// Answers requests whose data the database has taken.
    pub(super) fn answer_applied(&mut self, name: &Arc<str>) {
        let Some(part) = self.cluster_mut(name) else {
            return;
        };
        if part.answered.is_empty() {
            return;
        }
        let applied = part.raft.applied_index();
        let ready = part
            .answered
            .extract_if(.., |answered| answered.index <= applied);
        for Answered { flight, .. } in ready.collect::<Vec<_>>() {
            let reply = Message::reply(flight.result, flight.waiting.id);
            self.send(flight.waiting.client, None, reply);
        }
        if let Some(served) = self.dbs.get_mut(name) {
            served.changed = true;
        }
    }

    /// Forgets the client's request `id` that is on its way into the log: it may be committed
    /// or not.  False if there is none.
    pub(crate) fn forget_in_flight(&mut self, client: ClientId, id: &Json) -> bool {
        let is_it = |f: &InFlight| f.waiting.client == client && f.waiting.id == *id;
        for served in self.dbs.values_mut() {
            let Some(part) = &mut served.cluster else {
                continue;
            };
            let flights = part.in_flight.values_mut();
            let answered = part
                .answered
                .iter_mut()
                .map(|answered| &mut answered.flight);
            if let Some(flight) = flights.chain(answered).find(|flight| is_it(flight)) {
                // Nobody is answered under a number that no client has.
                flight.waiting.client = NOBODY;
                return true;
            }
        }
        false
    }

    /// Ends the transactions that are on their way into the log of a database that goes or
    /// becomes another, but for conversions.
    pub(super) fn cancel_in_flight(&mut self, name: &str) {
        let Some(part) = self.cluster_mut(name) else {
            return;
        };
        let mut canceled = Vec::new();
        let flights = part.in_flight.values_mut();
        let answered = part
            .answered
            .iter_mut()
            .map(|answered| &mut answered.flight);
        for flight in flights.chain(answered).filter(|f| !f.waiting.converts) {
            let client = std::mem::replace(&mut flight.waiting.client, NOBODY);
            canceled.push((client, flight.waiting.id.clone()));
        }
        for (client, id) in canceled {
            if self.clients.get(&client).is_some_and(|state| state.aware) {
                self.send(client, None, Message::error("canceled".into(), id));
            }
        }
    }
}
