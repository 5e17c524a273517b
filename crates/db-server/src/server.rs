//! The server without sockets: clients' messages in, messages out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use base::{Clock, Instant, WallTime};
use db_engine::Identity;
use db_engine::monitor::{MonitorId, Version};
use db_engine::writer::{Report, Ticket, Writer};
use db_model::{Uuid, UuidSource};
use io::jsonrpc::Message;
use json::Json;

use crate::locks::Locks;
use crate::served::{DbKey, Served, Wake};
use crate::server_db::{self, Status};
use crate::upstream::Upstream;

/// Identifies a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// What a client gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A message.
    Send(Message),
    /// The end of its connection.
    Disconnect,
}

/// An output that may have to wait until something is written.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) barrier: Option<(DbKey, Ticket)>,
    pub(crate) output: Output,
    pub(crate) otherwise: Otherwise,
}

/// What becomes of an output if what it waits for cannot be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Otherwise {
    /// Its client is disconnected, and begins anew.
    Disconnect,
    /// The answer to a transaction ends with the error.
    Refuse,
    /// It is dropped, and the monitor goes back to this position.
    Rewind(MonitorId, u64),
}

/// A monitor of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientMonitor {
    /// The id that the client gave.
    pub(crate) id: Json,
    pub(crate) db: Arc<str>,
    pub(crate) monitor: MonitorId,
    pub(crate) version: Version,
}

/// A client.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) read_only: bool,
    /// Whether it copes with databases that come and go.
    pub(crate) aware: bool,
    /// Whether it does not take what it is sent: then updates are saved up.
    pub(crate) backlogged: bool,
    pub(crate) held: VecDeque<Held>,
    /// Monitors by the text of the client's id.
    pub(crate) monitors: BTreeMap<String, ClientMonitor>,
    /// Locks that were stolen from it.
    pub(crate) locks_lost: BTreeSet<Arc<str>>,
    /// Whether it is to be disconnected: nothing more is done for it.
    pub(crate) ending: bool,
    /// The role that restricts it, if one does, and the name in its certificate.
    pub(crate) role: Option<Arc<str>>,
    pub(crate) id: Option<String>,
    /// What log lines call it.
    pub(crate) name: String,
}

impl Client {
    /// Who it is to the rules of access, if a role restricts it.
    pub(crate) fn identity(&self) -> Option<Identity<'_>> {
        let role = self.role.as_deref().filter(|role| !role.is_empty())?;
        let id = self.id.as_deref();
        Some(Identity { role, id })
    }
}

/// What is known of a client when it connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// Whether it may not change anything.
    pub read_only: bool,
    /// The role of its remote, which restricts it in databases that know roles.
    pub role: Option<Arc<str>>,
    /// What log lines call it.
    pub name: String,
}

/// What status columns say of the locks of a client: their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientLocks {
    /// Locks that it owns.
    pub held: Vec<Arc<str>>,
    /// Locks that it waits for.
    pub waiting: Vec<Arc<str>>,
    /// Locks that were stolen from it and that it has not got back.
    pub lost: Vec<Arc<str>>,
}

/// A database server: any number of databases and clients.
pub struct Server {
    pub(crate) clock: Clock,
    pub(crate) dbs: BTreeMap<Arc<str>, Served>,
    pub(crate) clients: HashMap<ClientId, Client>,
    pub(crate) locks: Locks,
    pub(crate) uuids: UuidSource,
    pub(crate) wake: Wake,
    /// Clients that may have something to be sent.
    pub(crate) busy: HashSet<ClientId>,
    id: Uuid,
    next_key: u64,
    pub(crate) generation: u64,
    pub(crate) monitor_cond_disabled: bool,
    /// Whether clients are told ids of transactions of databases that have no other server's.
    pub(crate) transaction_ids: bool,
    /// Whether changes are recorded as differences.
    pub(crate) differences: bool,
    /// Whether clusters are told all rows after a conversion.
    pub(crate) conversions_with_data: bool,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("dbs", &self.dbs.keys())
            .field("clients", &self.clients.len())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server with no database but `_Server`.  `seed` makes its UUIDs; `wake` is called
    /// from other threads when [`Server::run`] has something to do.
    pub fn new(clock: Clock, seed: [u8; 32], wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let mut uuids = UuidSource::new(seed);
        let id = uuids.next_uuid();
        let mut this = Self {
            clock,
            dbs: BTreeMap::new(),
            clients: HashMap::new(),
            locks: Locks::default(),
            wake,
            busy: HashSet::new(),
            id,
            next_key: 0,
            generation: 0,
            monitor_cond_disabled: false,
            transaction_ids: false,
            differences: true,
            conversions_with_data: false,
            uuids,
        };
        let key = this.new_key();
        let db = server_db::new(this.uuids.fork());
        this.dbs
            .insert(server_db::NAME.into(), Served::in_memory(key, db));
        this.update_server_db(|db| {
            let schema = Some(Arc::clone(db.schema()));
            let status = Status {
                schema,
                ..Status::STANDALONE
            };
            server_db::set(db, server_db::NAME, &status)
        });
        this
    }

    pub(crate) fn new_key(&mut self) -> DbKey {
        self.next_key += 1;
        DbKey(self.next_key)
    }

    /// Puts things into a random order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let random = self.uuids.next_uuid().as_u128() >> 64;
            things.swap(last, (random % (last as u128 + 1)) as usize);
        }
    }

    /// The server's id, which `get_server_id` tells.
    pub const fn id(&self) -> Uuid {
        self.id
    }

    pub(crate) fn wall(&self) -> WallTime {
        self.clock.wall()
    }

    /// A client has connected.
    pub fn connect(&mut self, client: ClientId, info: ClientInfo) {
        let state = Client {
            read_only: info.read_only,
            role: info.role,
            name: info.name,
            ..Client::default()
        };
        self.clients.insert(client, state);
    }

    /// The common name in the certificate that a client showed, if it showed one.
    pub fn identify(&mut self, client: ClientId, id: Option<String>) {
        if let Some(state) = self.clients.get_mut(&client) {
            state.id = id;
        }
    }

    /// A client has gone.
    pub fn disconnect(&mut self, client: ClientId) {
        let Some(state) = self.clients.remove(&client) else {
            return;
        };
        self.busy.remove(&client);
        for monitor in state.monitors.values() {
            if let Some(served) = self.dbs.get_mut(&monitor.db) {
                served.monitors.remove(monitor.monitor);
            }
        }
        for served in self.dbs.values_mut() {
            served.waiting.retain(|waiting| waiting.client != client);
        }
        self.forget_forwarded(client);
        for (name, owner) in self.locks.forget(client) {
            self.notify(owner, "locked", vec![name.into()]);
        }
    }

    /// The locks of a client.
    pub fn client_locks(&self, client: ClientId) -> ClientLocks {
        let (held, waiting) = self.locks.of(client);
        let lost = self.clients.get(&client).map(|c| &c.locks_lost);
        let is_lost = |name: &Arc<str>| lost.is_some_and(|lost| lost.contains(name));
        let (lost, waiting) = waiting.into_iter().partition(is_lost);
        ClientLocks {
            held,
            waiting,
            lost,
        }
    }

    /// Says whether the client's connection has a backlog: while it does, updates for it
    /// are saved up and combined.  True if there is something to be sent by this.
    pub fn set_backlogged(&mut self, client: ClientId, backlogged: bool) -> bool {
        if let Some(state) = self.clients.get_mut(&client)
            && state.backlogged != backlogged
        {
            state.backlogged = backlogged;
            if !backlogged {
                self.flush_client(client);
                return self.busy.contains(&client);
            }
        }
        false
    }

    /// Sets whether a client may change anything.  True if that is new.
    pub fn set_read_only(&mut self, client: ClientId, read_only: bool) -> bool {
        match self.clients.get_mut(&client) {
            Some(state) => std::mem::replace(&mut state.read_only, read_only) != read_only,
            None => false,
        }
    }

    /// Number of monitors of all clients.
    pub(crate) fn monitors(&self) -> usize {
        self.dbs.values().map(|served| served.monitors.len()).sum()
    }

    /// Refuses conditional monitors from now on, as servers did before they had them.
    pub const fn disable_monitor_cond(&mut self) {
        self.monitor_cond_disabled = true;
    }

    /// Grows whenever something in a database, or the list of databases, has changed.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn notify(&mut self, client: ClientId, method: &str, params: Vec<Json>) {
        self.send(client, None, Message::notification(method, params));
    }

    /// Queues a message that may leave once `barrier` is written.
    pub(crate) fn send(
        &mut self,
        client: ClientId,
        barrier: Option<(DbKey, Ticket)>,
        message: Message,
    ) {
        self.send_or(client, barrier, message, Otherwise::Disconnect);
    }

    /// The same, where more can be done than to disconnect the client if the write fails.
    pub(crate) fn send_or(
        &mut self,
        client: ClientId,
        barrier: Option<(DbKey, Ticket)>,
        message: Message,
        otherwise: Otherwise,
    ) {
        self.output_or(client, barrier, Output::Send(message), otherwise);
    }

    /// Ends a client's connection after what it was sent.
    pub(crate) fn hang_up(&mut self, client: ClientId) {
        self.output_or(client, None, Output::Disconnect, Otherwise::Disconnect);
    }

    fn output_or(
        &mut self,
        client: ClientId,
        barrier: Option<(DbKey, Ticket)>,
        output: Output,
        otherwise: Otherwise,
    ) {
        if let Some(state) = self.clients.get_mut(&client)
            && !state.ending
        {
            state.ending = output == Output::Disconnect;
            state.held.push_back(Held {
                barrier,
                output,
                otherwise,
            });
            self.busy.insert(client);
        }
    }

    /// Takes all outputs that may leave now, each client's in order.
    pub fn take_outputs(&mut self) -> Vec<(ClientId, Output)> {
        let mut outputs = Vec::new();
        for client in std::mem::take(&mut self.busy) {
            let Some(state) = self.clients.get(&client) else {
                continue;
            };
            let ready = |held: &&Held| held.barrier.is_none_or(|b| self.is_written(b));
            let count = state.held.iter().take_while(ready).count();
            if count < state.held.len() {
                // A report of a writer will let the rest go.
                self.busy.insert(client);
            }
            if let Some(state) = self.clients.get_mut(&client) {
                outputs.extend(state.held.drain(..count).map(|held| (client, held.output)));
            }
        }
        outputs
    }

    fn is_written(&self, (key, ticket): (DbKey, Ticket)) -> bool {
        // A database that is gone holds nobody up.
        let served = self.dbs.values().find(|served| served.key == key);
        served.is_none_or(|served| served.is_written(ticket))
    }

    /// Does what is due: reports of writers, transactions that waited.
    pub fn run(&mut self, now: Instant) {
        let names: Vec<Arc<str>> = self.dbs.keys().cloned().collect();
        for name in &names {
            self.take_reports(name);
        }
        for name in &names {
            self.run_cluster(name, now);
            self.run_waiting(name, now);
            self.run_conversion(now, name);
            self.settle_cluster(name, now);
            self.relay_status_changed(name);
            let wall = self.wall();
            if let Some(served) = self.dbs.get_mut(name)
                && served.wants_compaction(now)
            {
                log::info!(target: "ovsdb_file", "{name}: compacting database online");
                served.compact(now, wall, "compacting database online");
            }
        }
    }

    fn take_reports(&mut self, name: &Arc<str>) {
        while self.take_report(name, Writer::poll) {}
    }

    /// Waits until everything of a database is written, or is known not to be.
    pub(crate) fn drain_writer(&mut self, name: &Arc<str>) {
        while self.take_report(name, Writer::wait) {}
    }

    /// Takes the report that `next` has, if it has one.
    pub(crate) fn take_report(
        &mut self,
        name: &Arc<str>,
        next: fn(&mut Writer) -> Option<Report>,
    ) -> bool {
        let Some(served) = self.dbs.get_mut(name) else {
            return false;
        };
        let Some(writer) = &mut served.writer else {
            return false;
        };
        let written = writer.done();
        let Some(report) = next(writer) else {
            return false;
        };
        if let Err(failure) = served.written(report) {
            self.write_failed(name, written, &failure);
        }
        true
    }

    /// When [`Server::run`] should be called at the latest.
    pub fn next_deadline(&self) -> Instant {
        let waiting = self.dbs.values().flat_map(|served| &served.waiting);
        let upstreams = self.dbs.values().filter_map(|s| s.upstream.as_ref());
        let upstreams = upstreams.map(Upstream::next_deadline).min();
        let waiting = waiting.map(|waiting| waiting.until).min();
        let first = waiting.unwrap_or(server_db::NEVER);
        let parts = self.dbs.values().filter_map(|s| s.cluster.as_deref());
        let parts = parts.map(crate::cluster::Part::next_deadline).min();
        first
            .min(upstreams.unwrap_or(server_db::NEVER))
            .min(parts.unwrap_or(server_db::NEVER))
    }

    /// Tells a client's monitors of what they were not told yet.
    pub(crate) fn flush_client(&mut self, client: ClientId) {
        let Some(state) = self.clients.get(&client) else {
            return;
        };
        if state.backlogged || state.ending {
            return;
        }
        let mut messages = Vec::new();
        for monitor in state.monitors.values() {
            let Some(served) = self.dbs.get_mut(&monitor.db) else {
                continue;
            };
            if !served.monitors.is_pending(monitor.monitor) {
                continue;
            }
            let position = served.monitors.position(monitor.monitor);
            if let Some((updates, last)) = served.monitors.flush(&served.db, monitor.monitor) {
                let message = update_message(monitor, updates, last);
                let otherwise = position.map_or(Otherwise::Disconnect, |position| {
                    Otherwise::Rewind(monitor.monitor, position)
                });
                messages.push((served.barrier(), message, otherwise));
            }
        }
        for (barrier, message, otherwise) in messages {
            self.send_or(client, barrier, message, otherwise);
        }
    }

    /// Tells all monitors of a database what is new.
    pub(crate) fn flush_database(&mut self, name: &Arc<str>) {
        let watching: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, state)| state.monitors.values().any(|m| m.db == *name))
            .map(|(client, _)| *client)
            .collect();
        for client in watching {
            self.flush_client(client);
        }
        self.generation += 1;
    }

    /// Shows in `_Server` how it stands with a database.
    pub(crate) fn refresh_status(&mut self, name: &str) {
        let now = self.clock.now();
        let Some(served) = self.dbs.get_mut(name) else {
            return;
        };
        let status = served.status(now);
        served.told_connected = status.connected;
        self.update_server_db(|db| server_db::set(db, name, &status));
    }

    /// Changes `_Server` and tells those who watch it.
    pub(crate) fn update_server_db(
        &mut self,
        change: impl FnOnce(&mut db_engine::Database) -> db_engine::Changes,
    ) {
        let name: Arc<str> = server_db::NAME.into();
        if let Some(served) = self.dbs.get_mut(&name) {
            let changes = change(&mut served.db);
            let id = served.db.new_uuid();
            served.changed |= !changes.is_empty();
            served.monitors.committed(id, &changes);
            self.flush_database(&name);
        }
    }
}

/// The notification that tells a monitor of updates.
pub(crate) fn update_message(monitor: &ClientMonitor, updates: Arc<str>, last: Uuid) -> Message {
    let id = monitor.id.clone();
    let updates = Json::Serialized(updates);
    match monitor.version {
        Version::V1 => Message::notification("update", vec![id, updates]),
        Version::V2 => Message::notification("update2", vec![id, updates]),
        Version::V3 => Message::notification("update3", vec![id, last.to_string().into(), updates]),
    }
}
