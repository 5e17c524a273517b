//! Connections to other servers: the sources of relays and the active servers of backups.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_client::Servers;
use io::jsonrpc::{Session, SessionOptions};
use io::stream::{Net, OVSDB_PORT};
use io::{Event, Poll, Token};

use crate::remotes::RemoteOptions;
use crate::server::Server;

/// Messages that are taken from one server between two looks at the others.
const MESSAGES_PER_TURN: usize = 64;

/// Where a database's other server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Names of connections, and perhaps a cluster's id, between commas.
    pub(crate) remotes: String,
    /// How the connection behaves.
    pub(crate) options: RemoteOptions,
}

#[derive(Debug)]
struct Connection {
    source: Source,
    /// What tells it apart from others to the same server.
    epoch: u64,
    /// How many servers there are to try.
    remotes: usize,
    /// Why this one will not do, as was logged.
    told: Option<String>,
    session: Session,
    /// The connection that the server knows; it changes when the session connects anew.
    seqno: u32,
}

/// All connections to other servers, by database.
#[derive(Debug)]
pub(crate) struct Sources {
    net: Net,
    connections: BTreeMap<Arc<str>, Connection>,
    /// For tokens.
    next: u64,
}

impl Sources {
    /// No sources.  Tokens from `first_token` on are used.
    pub(crate) fn new(net: &Net, first_token: u64) -> Self {
        Self {
            net: net.clone(),
            connections: BTreeMap::new(),
            next: first_token,
        }
    }

    /// Makes the sources what `wanted` says; those that stay are not touched.
    pub(crate) fn set(
        &mut self,
        wanted: &BTreeMap<Arc<str>, (u64, Source)>,
        server: &mut Server,
        poll: &mut Poll,
    ) {
        self.connections.retain(|name, connection| {
            let stays = wanted.get(name).is_some_and(|(epoch, source)| {
                *epoch == connection.epoch && source.remotes == connection.source.remotes
            });
            if !stays {
                server.upstream_disconnected(name);
            }
            stays
        });
        for (name, (epoch, source)) in wanted {
            match self.connections.get_mut(name) {
                Some(connection) => {
                    if connection.source != *source {
                        connection.source.options = source.options.clone();
                        configure(&mut connection.session, &source.options);
                    }
                }
                None => {
                    let connection = self.connect(source, *epoch, server, poll);
                    self.connections.insert(Arc::clone(name), connection);
                }
            }
        }
    }

    fn connect(
        &mut self,
        source: &Source,
        epoch: u64,
        server: &mut Server,
        poll: &mut Poll,
    ) -> Connection {
        self.next += 1;
        let token = Token(self.next);
        let mut remotes = Servers::parse(&source.remotes).remotes;
        // Relays of one cluster should not all lean on the same server.
        server.shuffle(&mut remotes);
        let options = SessionOptions {
            retry: true,
            default_port: OVSDB_PORT,
            dscp: source.options.dscp,
        };
        let count = remotes.len();
        let mut session = Session::new(&self.net, remotes, token, options, poll.now());
        configure(&mut session, &source.options);
        poll.again(token);
        Connection {
            source: source.clone(),
            epoch,
            remotes: count,
            told: None,
            seqno: session.seqno(),
            session,
        }
    }

    /// Whether database `name` is connected to another server or will try to be.
    pub(crate) fn is_alive(&self, name: &str) -> bool {
        let connection = self.connections.get(name);
        // One that is wanted is made in the next turn.
        connection.is_none_or(|connection| connection.session.is_alive())
    }

    /// A turn of the loop: goes on connecting and takes in what has come.
    pub(crate) fn run(&mut self, events: &[Event], server: &mut Server, poll: &mut Poll) {
        let now = poll.now();
        for (name, connection) in &mut self.connections {
            let token = connection.session.token();
            let is_due = connection.session.next_deadline(now) <= now;
            if is_due || events.iter().any(|event| event.token == token) {
                connection.receive(name, server, poll);
            }
        }
    }

    /// Ends a turn: sends what the server has for other servers.
    pub(crate) fn end_turn(&mut self, server: &mut Server, poll: &mut Poll) {
        let now = poll.now();
        for (name, connection) in &mut self.connections {
            if server.take_upstream_reconnect(name) {
                connection.reconnect(true, now);
            }
            for message in server.upstream_requests(name) {
                connection.session.send(&message, now);
            }
            connection.session.watch(poll);
            if connection.note_changes(name, server) {
                poll.again(connection.session.token());
            }
        }
    }

    /// When it wants a turn.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        let connections = self.connections.values();
        connections
            .map(|c| c.session.next_deadline(now))
            .min()
            .unwrap_or(Instant::MAX)
    }
}

impl Connection {
    fn receive(&mut self, name: &str, server: &mut Server, poll: &mut Poll) {
        let now = poll.now();
        self.session.run(now);
        for count in 0.. {
            self.note_changes(name, server);
            if count == MESSAGES_PER_TURN {
                poll.again(self.session.token());
                return;
            }
            let Some(message) = self.session.recv(now) else {
                break;
            };
            let followed = server.upstream_follows(name);
            if let Err(why) = server.upstream_message(now, name, message) {
                log::info!(target: "ovsdb_cs", "{}: {why}", self.session.name());
                self.reconnect(followed, now);
                break;
            }
            if self.looks_elsewhere(name, server) {
                self.reconnect(followed, now);
                break;
            }
        }
        self.note_changes(name, server);
    }

    /// Whether the server will not do and there are others to try.  Where there are none, it
    /// will tell when that changes.
    fn looks_elsewhere(&mut self, name: &str, server: &Server) -> bool {
        let why = server.upstream_unsuitable(name);
        if why == self.told {
            return false;
        }
        self.told = why;
        let Some(why) = &self.told else {
            return false;
        };
        let others = self.remotes > 1;
        let shown = match why.strip_suffix("; trying another server") {
            Some(text) if !others => text,
            _ => why,
        };
        log::info!(target: "ovsdb_cs", "{}: {shown}", self.session.name());
        others
    }

    /// Makes the connection anew; at once if it `was_good`, else after a pause, since the
    /// next may be as bad.
    fn reconnect(&mut self, was_good: bool, now: Instant) {
        if was_good {
            // The loss of this connection counts as one.
            let tries = u32::try_from(self.remotes + 1).unwrap_or(u32::MAX);
            self.session.reconnect_mut().set_free_tries(tries);
        }
        self.session.force_reconnect(now);
        self.session.run(now);
    }

    /// Tells the server if the connection was made or lost.  True if it was.
    fn note_changes(&mut self, name: &str, server: &mut Server) -> bool {
        if self.seqno == self.session.seqno() {
            return false;
        }
        self.seqno = self.session.seqno();
        self.told = None;
        if self.session.is_connected() {
            server.upstream_connected(name);
        } else {
            server.upstream_disconnected(name);
        }
        true
    }
}

fn configure(session: &mut Session, options: &RemoteOptions) {
    let reconnect = session.reconnect_mut();
    reconnect.set_backoff(Duration::from_secs(1), options.max_backoff);
    reconnect.set_probe_interval(options.probe_interval);
}
