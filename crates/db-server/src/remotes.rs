//! Remotes: listeners and connections, and the clients behind them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use io::jsonrpc::{Rpc, Session, SessionOptions};
use io::stream::{DEFAULT_DSCP, Listener, Net, OVSDB_PORT, Stream, is_active, is_passive};
use io::{Event, Interest, Poll, Token};

use crate::server::{ClientId, ClientInfo, Output, Server};

/// How connections of a remote behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteOptions {
    /// Longest pause between attempts to connect.
    pub(crate) max_backoff: Duration,
    /// After how long an idle peer is probed; zero means never.
    pub(crate) probe_interval: Duration,
    pub(crate) dscp: u8,
    pub(crate) read_only: bool,
    /// The role of its clients, which restricts them in databases that know roles.
    pub(crate) role: Option<Arc<str>>,
}

impl RemoteOptions {
    /// What holds for a remote of which nothing was said.
    pub(crate) fn default_for(target: &str) -> Self {
        // Who is on the same machine is either there or closed the connection.
        let local = target.starts_with("unix:") || target.starts_with("punix:");
        let memory = target.starts_with("mem:") || target.starts_with("pmem:");
        Self {
            max_backoff: Duration::from_secs(8),
            probe_interval: Duration::from_secs(if local || memory { 0 } else { 5 }),
            dscp: DEFAULT_DSCP,
            read_only: false,
            role: None,
        }
    }
}

#[derive(Debug)]
struct Remote {
    options: RemoteOptions,
    listener: Option<(Token, Listener)>,
}

#[derive(Debug)]
struct Connection {
    remote: String,
    session: Session,
    /// The connection that the server knows; it changes when the session connects anew.
    seqno: u32,
    known: bool,
    /// Whether the name in the client's certificate matters and was not looked at yet.
    unidentified: bool,
}

/// What status columns say of a remote.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteStatus {
    pub(crate) is_connected: bool,
    pub(crate) fields: BTreeMap<&'static str, String>,
}

/// Messages that are taken from one client between two looks at the others.
const MESSAGES_PER_TURN: usize = 32;
/// Connections that are accepted by one listener in a turn.
const ACCEPTS_PER_TURN: usize = 32;

/// All remotes.
#[derive(Debug)]
pub(crate) struct Remotes {
    net: Net,
    remotes: BTreeMap<String, Remote>,
    connections: BTreeMap<ClientId, Connection>,
    /// For tokens of listeners and ids of clients.
    next: u64,
}

impl Remotes {
    /// No remotes.  Tokens from `first_token` on are used.
    pub(crate) fn new(net: &Net, first_token: u64) -> Self {
        Self {
            net: net.clone(),
            remotes: BTreeMap::new(),
            connections: BTreeMap::new(),
            next: first_token,
        }
    }

    fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Number of connected clients.
    pub(crate) fn sessions(&self) -> usize {
        self.connections.values().filter(|c| c.known).count()
    }

    /// Bytes that wait to be sent to clients.
    pub(crate) fn backlog(&self) -> usize {
        let rpcs = self.connections.values().filter_map(|c| c.session.rpc());
        rpcs.map(Rpc::backlog).sum()
    }

    /// Makes the remotes what `wanted` says; those that stay are not touched.
    pub(crate) fn set(
        &mut self,
        wanted: &BTreeMap<String, RemoteOptions>,
        server: &mut Server,
        poll: &mut Poll,
    ) {
        let mut gone: Vec<String> = Vec::new();
        for (name, remote) in &self.remotes {
            match wanted.get(name) {
                None => {
                    log::info!(target: "ovsdb_jsonrpc_server", "{name}: remote deconfigured");
                    gone.push(name.clone());
                }
                // Clients that are connected must not go on as they were.
                Some(options)
                    if options.dscp != remote.options.dscp
                        || options.role != remote.options.role =>
                {
                    gone.push(name.clone());
                }
                Some(_) => {}
            }
        }
        for name in gone {
            self.remotes.remove(&name);
            self.drop_connections(&name, server);
        }
        for (name, options) in wanted {
            match self.remotes.get_mut(name) {
                Some(remote) => {
                    if remote.options != *options {
                        remote.options = options.clone();
                        self.apply_options(name, options, server, poll.now());
                    }
                    let remote = &self.remotes[name];
                    // What could not listen before may be able to now.
                    if is_passive(name) && remote.listener.is_none() {
                        self.listen(name, poll, false);
                    }
                }
                None => self.add(name, options, poll),
            }
        }
    }

    fn apply_options(
        &mut self,
        name: &str,
        options: &RemoteOptions,
        server: &mut Server,
        now: Instant,
    ) {
        let mut restart = Vec::new();
        for (client, connection) in &mut self.connections {
            if connection.remote == name {
                configure(&mut connection.session, options);
                if server.set_read_only(*client, options.read_only) {
                    restart.push(*client);
                }
            }
        }
        for client in restart {
            if let Some(connection) = self.connections.get_mut(&client) {
                connection.session.force_reconnect(now);
            }
        }
    }

    fn add(&mut self, name: &str, options: &RemoteOptions, poll: &mut Poll) {
        let remote = Remote {
            options: options.clone(),
            listener: None,
        };
        self.remotes.insert(name.to_owned(), remote);
        if is_passive(name) {
            self.listen(name, poll, true);
            return;
        }
        if !is_active(name) {
            log::warn!(target: "ovsdb_jsonrpc_server",
                "{name}: connect failed: not a name of a connection");
            return;
        }
        let id = self.next_id();
        let session_options = SessionOptions {
            retry: true,
            default_port: OVSDB_PORT,
            dscp: options.dscp,
        };
        let mut session = Session::new(
            &self.net,
            vec![name.to_owned()],
            Token(id),
            session_options,
            poll.now(),
        );
        session.answer_first();
        configure(&mut session, options);
        let connection = Connection {
            remote: name.to_owned(),
            session,
            seqno: 0,
            known: false,
            unidentified: false,
        };
        self.connections.insert(ClientId(id), connection);
        poll.again(Token(id));
    }

    fn listen(&mut self, name: &str, poll: &mut Poll, complain: bool) {
        let id = self.next_id();
        let Some(remote) = self.remotes.get_mut(name) else {
            return;
        };
        let listener = self
            .net
            .listen(name, OVSDB_PORT, remote.options.dscp)
            .and_then(|mut listener| {
                listener.watch(poll, Token(id), Interest::READ)?;
                Ok(listener)
            });
        match listener {
            Ok(listener) => remote.listener = Some((Token(id), listener)),
            Err(error) if complain => {
                log::error!(target: "ovsdb_jsonrpc_server",
                    "{name}: listen failed: {}", base::errno_text(&error));
            }
            Err(_) => {}
        }
    }

    fn drop_connections(&mut self, name: &str, server: &mut Server) {
        self.connections.retain(|client, connection| {
            let keep = connection.remote != name;
            if !keep && connection.known {
                server.disconnect(*client);
            }
            keep
        });
    }

    /// Drops all connections and makes the active ones anew.
    pub(crate) fn reconnect(&mut self, now: Instant) {
        for connection in self.connections.values_mut() {
            connection.session.force_reconnect(now);
        }
    }

    /// A turn of the loop: takes connections and messages, sends what the server says.
    pub(crate) fn run(&mut self, events: &[Event], server: &mut Server, poll: &mut Poll) {
        let now = poll.now();
        let mut active: Vec<ClientId> = Vec::new();
        for event in events {
            let client = ClientId(event.token.0);
            if self.connections.contains_key(&client) {
                active.push(client);
            } else if let Some(name) = self.listener_name(event.token) {
                active.extend(self.accept(&name, poll));
            }
        }
        let due = self.connections.iter();
        let due = due.filter(|(_, c)| c.session.next_deadline(now) <= now);
        active.extend(due.map(|(client, _)| *client));
        active.sort_unstable();
        active.dedup();
        for client in &active {
            self.receive(*client, server, now, poll);
        }
        server.run(now);
        // Who asked something is answered before others are told of it.
        let asked = active.len();
        // Sending may end backlogs, which lets saved-up updates go.
        for _ in 0..4 {
            let sent = self.send(server, now);
            if sent.is_empty() {
                break;
            }
            active.extend(sent);
        }
        let (asked, told) = active.split_at_mut(asked);
        told.sort_unstable();
        let mut turns = asked.to_vec();
        for client in told {
            if turns.last() != Some(client) && asked.binary_search(client).is_err() {
                turns.push(*client);
            }
        }
        for client in turns {
            self.end_turn(client, server, poll);
        }
    }

    fn listener_name(&self, token: Token) -> Option<String> {
        let found = self.remotes.iter().find(|(_, remote)| {
            remote
                .listener
                .as_ref()
                .is_some_and(|(known, _)| *known == token)
        });
        found.map(|(name, _)| name.clone())
    }

    fn accept(&mut self, name: &str, poll: &mut Poll) -> Vec<ClientId> {
        let mut accepted = Vec::new();
        for _ in 0..ACCEPTS_PER_TURN {
            let id = self.next_id();
            let Some(remote) = self.remotes.get_mut(name) else {
                break;
            };
            let Some((_, listener)) = &mut remote.listener else {
                break;
            };
            match listener.accept() {
                Ok(stream) => {
                    let mut session = Session::accepted(&self.net, stream, Token(id), poll.now());
                    session.answer_first();
                    configure(&mut session, &remote.options);
                    let connection = Connection {
                        remote: name.to_owned(),
                        session,
                        seqno: 0,
                        known: false,
                        unidentified: false,
                    };
                    self.connections.insert(ClientId(id), connection);
                    accepted.push(ClientId(id));
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    base::log_limited!(
                        Warn,
                        "ovsdb_jsonrpc_server",
                        (60, 5),
                        "{name}: accept failed: {}",
                        base::errno_text(&error)
                    );
                    break;
                }
            }
        }
        accepted
    }

    fn receive(&mut self, client: ClientId, server: &mut Server, now: Instant, poll: &mut Poll) {
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        connection.session.run(now);
        self.notice_changes(client, server);
        for count in 0.. {
            if count == MESSAGES_PER_TURN {
                poll.again(Token(client.0));
                return;
            }
            let Some(connection) = self.connections.get_mut(&client) else {
                return;
            };
            let Some(message) = connection.session.recv(now) else {
                break;
            };
            if std::mem::take(&mut connection.unidentified) {
                // Only after the handshake is it known who the client is.
                let stream = connection.session.rpc().map(Rpc::stream);
                server.identify(client, stream.and_then(Stream::peer_common_name));
            }
            server.handle_message(now, client, message);
        }
        self.notice_changes(client, server);
    }

    /// Tells the server if a session's connection was made or lost.
    fn notice_changes(&mut self, client: ClientId, server: &mut Server) {
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        let session = &connection.session;
        let connected = session.is_connected();
        let changed = connection.seqno != session.seqno() || connection.known != connected;
        if !changed {
            return;
        }
        if connection.known {
            server.disconnect(client);
        }
        connection.seqno = session.seqno();
        connection.known = connected;
        if connected {
            let options = self.remotes.get(&connection.remote).map(|r| &r.options);
            let role = options.and_then(|options| options.role.clone());
            connection.unidentified = role.is_some();
            let info = ClientInfo {
                read_only: options.is_some_and(|options| options.read_only),
                role,
                name: session.name().to_owned(),
            };
            server.connect(client, info);
        }
    }

    /// Hands out what the server says.  Returns to whom.
    fn send(&mut self, server: &mut Server, now: Instant) -> Vec<ClientId> {
        let mut touched = Vec::new();
        for (client, output) in server.take_outputs() {
            let Some(connection) = self.connections.get_mut(&client) else {
                continue;
            };
            touched.push(client);
            match output {
                Output::Send(message) => {
                    connection.session.send(&message, now);
                }
                Output::Disconnect => {
                    // What was sent before must still arrive if it can.
                    connection.session.run(now);
                    connection.session.force_reconnect(now);
                }
            }
        }
        touched.dedup();
        touched
    }

    fn end_turn(&mut self, client: ClientId, server: &mut Server, poll: &mut Poll) {
        let now = poll.now();
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        connection.session.run(now);
        connection.session.watch(poll);
        self.notice_changes(client, server);
        let Some(connection) = self.connections.get(&client) else {
            return;
        };
        if !connection.session.is_alive() {
            self.connections.remove(&client);
            return;
        }
        let backlog = connection.session.rpc().map_or(0, |rpc| rpc.backlog());
        if server.set_backlogged(client, backlog > 0) {
            // There is something to send after all.
            poll.again(Token(client.0));
        }
    }

    /// When a connection wants a turn.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        let connections = self.connections.values();
        connections
            .map(|c| c.session.next_deadline(now))
            .min()
            .unwrap_or(Instant::MAX)
    }

    /// The status of a remote.
    pub(crate) fn status(&self, name: &str, server: &Server, now: Instant) -> RemoteStatus {
        let mut status = RemoteStatus::default();
        let Some(remote) = self.remotes.get(name) else {
            return status;
        };
        let port = remote.listener.as_ref().and_then(|(_, l)| l.port());
        if let Some(port) = port {
            status.fields.insert("bound_port", port.to_string());
        }
        let mut connections = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.remote == name);
        let Some((client, connection)) = connections.next() else {
            return status;
        };
        let session = &connection.session;
        status.is_connected = session.is_connected();
        let stats = session.stats(now);
        status.fields.insert("state", stats.state.name().to_owned());
        if let Some(error) = session.last_error() {
            status.fields.insert("last_error", base::errno_text(error));
        }
        let mut since = |name, at: Option<Instant>| {
            if let Some(at) = at {
                let seconds = now.since(at).as_secs();
                status.fields.insert(name, seconds.to_string());
            }
        };
        since("sec_since_connect", stats.last_connected);
        since("sec_since_disconnect", stats.last_disconnected);
        let locks = server.client_locks(*client);
        for (name, locks) in [
            ("locks_held", locks.held),
            ("locks_waiting", locks.waiting),
            ("locks_lost", locks.lost),
        ] {
            if !locks.is_empty() {
                status.fields.insert(name, locks.join(" "));
            }
        }
        let others = connections.count();
        if remote.listener.is_some() && others > 0 {
            let count = (others + 1).to_string();
            status.fields.insert("n_connections", count);
        }
        status
    }
}

fn configure(session: &mut Session, options: &RemoteOptions) {
    let reconnect = session.reconnect_mut();
    reconnect.set_backoff(Duration::from_secs(1), options.max_backoff);
    reconnect.set_probe_interval(options.probe_interval);
}
