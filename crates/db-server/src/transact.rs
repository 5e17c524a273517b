//! Transactions of clients: executed at once, or kept until what they wait for has come.

use std::sync::Arc;

use base::Instant;
use db_engine::{Committed, Context, Outcome, Transaction};
use db_model::Error;
use io::jsonrpc::Message;
use json::Json;

use crate::served::Waiting;
use crate::server::{Client, ClientId, Otherwise, Server};
use crate::upstream::{Forwarded, Upstream};

impl Server {
    /// Executes a transaction and answers it, now or later.
    pub(crate) fn transact(
        &mut self,
        now: Instant,
        client: ClientId,
        name: &Arc<str>,
        params: Json,
        id: Json,
    ) {
        if self.is_under_way(client, &id) {
            let error = Error::syntax(&params, "transact: duplicate request ID");
            self.send(client, None, Message::error(error.to_json(), id));
            return;
        }
        let waiting = Waiting {
            client,
            id,
            params,
            since: now,
            until: Instant::MAX,
            converts: false,
        };
        self.attempt(now, name, waiting);
        self.end_batch(name);
        self.run_waiting(name, now);
    }

    /// Executes a transaction.  If it must wait, it is kept.
    pub(crate) fn attempt(&mut self, now: Instant, name: &Arc<str>, mut waiting: Waiting) {
        if self.cluster(name).is_some() {
            self.attempt_in_cluster(now, name, waiting);
            return;
        }
        let client = waiting.client;
        let read_only = self.is_read_only(client, name);
        let wall = self.wall();
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let locks = &self.locks;
        let identity = self.clients.get(&client).and_then(Client::identity);
        let relay = served.upstream.as_ref().and_then(Upstream::as_relay);
        let context = Context {
            now,
            since: waiting.since,
            read_only,
            owns_lock: &|lock| locks.owns(lock, client),
            identity: identity.as_ref(),
            forwards: relay.is_some(),
        };
        match served.db.execute(&waiting.params, &context) {
            Outcome::Wait(until) => {
                waiting.until = until;
                served.waiting.push(waiting);
            }
            Outcome::Forward => self.forward(
                name,
                Forwarded {
                    client,
                    id: waiting.id,
                    params: waiting.params,
                },
            ),
            Outcome::Done(result, committed) => {
                if let Some(committed) = committed {
                    let begin = self.clock.real();
                    served.commit(&committed, wall);
                    let end = self.clock.real();
                    served.note_pause(end, end.since(begin));
                    let changed = !committed.changes.is_empty();
                    if changed {
                        self.flush_database(name);
                    }
                }
                let barrier = self.dbs.get(name).and_then(|served| served.barrier());
                let reply = Message::reply(result, waiting.id);
                self.send_or(client, barrier, reply, Otherwise::Refuse);
            }
        }
    }

    /// Executes waiting transactions again, if something has changed or their time is up.
    pub(crate) fn run_waiting(&mut self, name: &Arc<str>, now: Instant) {
        loop {
            let Some(served) = self.dbs.get_mut(name) else {
                return;
            };
            let changed = std::mem::take(&mut served.changed);
            let due = |waiting: &mut Waiting| changed || waiting.until <= now;
            let again: Vec<Waiting> = served.waiting.extract_if(.., due).collect();
            if again.is_empty() {
                return;
            }
            for waiting in again {
                self.attempt(now, name, waiting);
            }
            self.end_batch(name);
        }
    }

    /// Changes a database on the server's own behalf.  False if there is no such database
    /// or the change breaks a constraint.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Transaction<'_>)) -> bool {
        let wall = self.wall();
        let Some((name, _)) = self.dbs.get_key_value(name) else {
            return false;
        };
        let name = Arc::clone(name);
        let Some(served) = self.dbs.get_mut(&name) else {
            return false;
        };
        let mut transaction = Transaction::new(&mut served.db);
        change(&mut transaction);
        let Ok(changes) = transaction.commit() else {
            return false;
        };
        if !changes.is_empty() {
            let committed = Committed {
                changes,
                comment: String::new(),
                durable: false,
                id: served.db.new_uuid(),
            };
            served.commit(&committed, wall);
            self.flush_database(&name);
        }
        true
    }

    /// The `cancel` notification: ends a waiting transaction.
    pub(crate) fn cancel(&mut self, client: ClientId, params: &Json) {
        let Some([id]) = params.as_array() else {
            return;
        };
        for served in self.dbs.values_mut() {
            let found = served
                .waiting
                .iter()
                .position(|waiting| waiting.client == client && waiting.id == *id);
            if let Some(at) = found {
                let waiting = served.waiting.remove(at);
                self.send(client, None, Message::error("canceled".into(), waiting.id));
                return;
            }
        }
        if self.forget_in_flight(client, id) || self.take_back(client, id) {
            self.send(client, None, Message::error("canceled".into(), id.clone()));
        }
    }

    /// Ends all transactions that wait for a database that goes, and tells the clients that
    /// cope with it.
    pub(crate) fn cancel_waiting(&mut self, waiting: Vec<Waiting>) {
        for waiting in waiting {
            let state = self.clients.get(&waiting.client);
            if !state.is_some_and(|state| state.aware) {
                continue;
            }
            self.send(
                waiting.client,
                None,
                Message::error("canceled".into(), waiting.id),
            );
        }
    }
}
