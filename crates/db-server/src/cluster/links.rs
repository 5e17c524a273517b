//! Connections between the servers of clusters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use db_model::Uuid;
use db_raft::message::{Body, Message};
use db_raft::{Link as Shown, nickname, passive_address, short_id};
use io::jsonrpc::{self, Session, SessionOptions};
use io::stream::{DEFAULT_DSCP, Listener, Net, OVSDB_PORT};
use io::{Event, Interest, Poll, Token};
use json::Json;

use super::part::{Part, Said};
use crate::server::Server;

/// Messages that are taken from one server between two looks at the others.
const MESSAGES_PER_TURN: usize = 50;
/// Connections that are accepted in a turn.
const ACCEPTS_PER_TURN: usize = 16;
/// How long to wait before listening is tried again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// A connection to another server.
#[derive(Debug)]
struct Link {
    session: Session,
    incoming: bool,
    /// The server at the other end, once it is known.
    peer: Option<Uuid>,
    nickname: String,
    seqno: u32,
    /// The server that the cluster's machine knows to be connected by this.
    up: Option<Uuid>,
}

/// The connections of one cluster.
#[derive(Debug, Default)]
struct Node {
    listener: Option<(Token, Listener)>,
    listen_at: Instant,
    links: BTreeMap<u64, Link>,
}

/// The connections of all clusters.
#[derive(Debug)]
pub(crate) struct Links {
    net: Net,
    nodes: BTreeMap<Arc<str>, Node>,
    /// For tokens.
    next: u64,
}

impl Links {
    /// No connections.  Tokens from `first_token` on are used.
    pub(crate) fn new(net: &Net, first_token: u64) -> Self {
        Self {
            net: net.clone(),
            nodes: BTreeMap::new(),
            next: first_token,
        }
    }

    /// Takes connections and messages of other servers.
    pub(crate) fn run(&mut self, events: &[Event], server: &mut Server, poll: &mut Poll) {
        let now = poll.now();
        self.nodes.retain(|name, _| server.cluster(name).is_some());
        for name in server.cluster_names() {
            let node = self.nodes.entry(Arc::clone(&name)).or_default();
            let Some(part) = server.cluster_mut(&name) else {
                continue;
            };
            if part.raft.is_mute() {
                continue;
            }
            if part.raft.is_over() && part.outbox.is_empty() {
                node.links.clear();
                node.listener = None;
                continue;
            }
            node.listen(part, &self.net, &mut self.next, poll);
            node.accept(events, part, &self.net, &mut self.next, now);
            let links: Vec<u64> = node.links.keys().copied().collect();
            for id in links {
                if let Some(link) = node.links.get_mut(&id) {
                    link.run(id, part, now, poll);
                }
            }
            node.close_unwanted(part, now);
            node.open_wanted(part, &self.net, &mut self.next, now, poll);
            server.run_cluster(&name, now);
        }
    }

    /// Sends what is to go out and waits for what may come.
    ///
    /// # Errors
    /// The words with which the process is to end.
    pub(crate) fn end_turn(
        &mut self,
        server: &mut Server,
        poll: &mut Poll,
    ) -> Result<(), &'static str> {
        let now = poll.now();
        let mut outcome = Ok(());
        for (name, node) in &mut self.nodes {
            let Some(part) = server.cluster_mut(name) else {
                continue;
            };
            if part.raft.is_mute() {
                part.outbox.clear();
                continue;
            }
            outcome = outcome.and(node.send(part, now));
            for link in node.links.values_mut() {
                if link.note_changes(part, now) {
                    // It greets in the next turn.
                    poll.again(link.session.token());
                }
                link.session.watch(poll);
            }
        }
        outcome
    }

    /// Sends what is to go out to the servers of a cluster that this one takes no part in any
    /// more.
    pub(crate) fn say_goodbye(&mut self, name: &str, server: &mut Server, now: Instant) {
        let (Some(node), Some(part)) = (self.nodes.get_mut(name), server.cluster_mut(name)) else {
            return;
        };
        // It is no test that ends here.
        let _ = node.send(part, now);
        for link in node.links.values_mut() {
            link.session.run(now);
        }
    }

    /// When there is something to do.
    pub(crate) fn next_deadline(&self, now: Instant) -> Instant {
        let nodes = self.nodes.values();
        let deadlines = nodes.flat_map(|node| {
            let listen = match node.listener {
                Some(_) => Instant::MAX,
                None => node.listen_at,
            };
            let links = node.links.values();
            let links = links.map(|link| link.session.next_deadline(now));
            links.chain(std::iter::once(listen))
        });
        deadlines.min().unwrap_or(Instant::MAX)
    }

    /// The connections of a cluster, as `cluster/status` shows them.
    pub(crate) fn shown(&self, name: &str) -> Vec<Shown> {
        let links = self
            .nodes
            .get(name)
            .into_iter()
            .flat_map(|n| n.links.values());
        links
            .map(|link| Shown {
                nickname: link.nickname.clone(),
                incoming: link.incoming,
                connected: link.session.is_connected(),
            })
            .collect()
    }

    /// Limits what may wait for another server of a cluster: messages and bytes.
    pub(crate) fn set_backlog(&mut self, name: &str, messages: usize, bytes: usize) {
        if let Some(node) = self.nodes.get_mut(name) {
            for link in node.links.values_mut() {
                link.session.set_max_backlog(messages, bytes);
            }
        }
    }

    /// What waits to be sent to servers of clusters, in bytes, and the number of connections.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let links = self.nodes.values().flat_map(|node| node.links.values());
        let waiting = |link: &Link| link.session.rpc().map_or(0, |rpc| rpc.backlog());
        links.fold((0, 0), |(bytes, count), link| {
            (bytes + waiting(link), count + 1)
        })
    }
}

impl Node {
    fn listen(&mut self, part: &Part, net: &Net, next: &mut u64, poll: &mut Poll) {
        let now = poll.now();
        if self.listener.is_some() || now < self.listen_at {
            return;
        }
        *next += 1;
        let token = Token(*next);
        let name = passive_address(part.raft.address());
        let listener = net
            .listen(&name, OVSDB_PORT, DEFAULT_DSCP)
            .and_then(|mut listener| {
                listener.watch(poll, token, Interest::READ)?;
                Ok(listener)
            });
        match listener {
            Ok(listener) => self.listener = Some((token, listener)),
            Err(error) => {
                base::log_limited!(
                    Warn,
                    "raft",
                    (1, 5),
                    "{name}: listen failed ({})",
                    base::errno_text(&error)
                );
                self.listen_at = now + LISTEN_AGAIN;
            }
        }
    }

    fn accept(&mut self, events: &[Event], part: &Part, net: &Net, next: &mut u64, now: Instant) {
        let Some((token, listener)) = &mut self.listener else {
            return;
        };
        if !events.iter().any(|event| event.token == *token) {
            return;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match listener.accept() {
                Ok(stream) => {
                    *next += 1;
                    let session = Session::accepted(net, stream, Token(*next), now);
                    self.links
                        .insert(*next, Link::new(session, None, true, part));
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    base::log_limited!(
                        Warn,
                        "raft",
                        (1, 1),
                        "{}: accept failed: {}",
                        listener.name(),
                        base::errno_text(&error)
                    );
                    return;
                }
            }
        }
    }

    /// Closes connections that are dead, or to who is no server of the cluster any more.
    fn close_unwanted(&mut self, part: &mut Part, now: Instant) {
        self.links.retain(|_, link| {
            let name = link.session.name();
            let stays =
                link.session.is_alive() && (link.incoming || part.raft.keeps_link(name, link.peer));
            if !stays {
                log::debug!(target: "raft", "closing connection to server {} ({name})",
                    link.nickname);
                if let Some(peer) = link.up.take() {
                    part.raft.link_down(now, peer);
                }
                part.raft.link_closed(now, link.peer.unwrap_or_default());
            }
            stays
        });
    }

    fn open_wanted(
        &mut self,
        part: &Part,
        net: &Net,
        next: &mut u64,
        now: Instant,
        poll: &mut Poll,
    ) {
        for (address, peer) in part.raft.wanted_links() {
            let known = self
                .links
                .values()
                .any(|link| *link.session.name() == *address);
            if known {
                continue;
            }
            *next += 1;
            let token = Token(*next);
            let options = SessionOptions::default();
            let remotes = vec![address.to_string()];
            let session = Session::new(net, remotes, token, options, now);
            self.links
                .insert(*next, Link::new(session, peer, false, part));
            poll.again(token);
        }
    }

    /// Sends what is to go out.
    fn send(&mut self, part: &mut Part, now: Instant) -> Result<(), &'static str> {
        while let Some(said) = part.outbox.pop_front() {
            match said {
                Said::Message(message) => {
                    let mut links = self.links.values_mut();
                    let link = links.find(|link| link.up == Some(message.peer));
                    if let Some(link) = link {
                        link.send(&message, part, now);
                    }
                }
                Said::Greeting => {
                    for link in self.links.values_mut() {
                        if link.session.is_connected() {
                            let greeting = part.raft.greeting(link.peer.unwrap_or_default());
                            link.send(&greeting, part, now);
                        }
                    }
                }
                Said::Crash(words) => {
                    // What was sent before still leaves.
                    for link in self.links.values_mut() {
                        link.session.run(now);
                    }
                    return Err(words);
                }
            }
        }
        Ok(())
    }
}

impl Link {
    fn new(mut session: Session, peer: Option<Uuid>, incoming: bool, part: &Part) -> Self {
        let (messages, bytes) = part.backlog;
        session.set_max_backlog(messages, bytes);
        let nickname = nickname(session.name(), peer.unwrap_or_default());
        Self {
            session,
            incoming,
            peer,
            nickname,
            seqno: 0,
            up: None,
        }
    }

    fn send(&mut self, message: &Message, part: &Part, now: Instant) {
        if !message.is_heartbeat() {
            log::debug!(target: "raft", "-->{} {message}", self.nickname);
        }
        let params = message.to_params(part.raft.cid(), part.raft.sid());
        let message = jsonrpc::Message::notification(message.body.method(), params);
        self.session.send(&message, now);
    }

    /// Tells the machine if the connection was made or lost.  True if it was made.
    fn note_changes(&mut self, part: &mut Part, now: Instant) -> bool {
        let seqno = self.session.seqno();
        if self.seqno == seqno {
            return false;
        }
        if let Some(peer) = self.up.take() {
            part.raft.link_down(now, peer);
        }
        let connected = self.session.is_connected();
        if !connected {
            self.seqno = seqno;
        }
        connected
    }

    /// Greets the other server on a new connection.
    fn greet(&mut self, part: &mut Part, now: Instant) {
        self.seqno = self.session.seqno();
        self.up = self.peer;
        if let Some(peer) = self.peer {
            part.raft.link_up(now, peer);
        }
        let greeting = part.raft.greeting(self.peer.unwrap_or_default());
        self.send(&greeting, part, now);
    }

    /// Goes on connecting, and takes messages.
    fn run(&mut self, id: u64, part: &mut Part, now: Instant, poll: &mut Poll) {
        self.session
            .reconnect_mut()
            .set_probe_interval(part.raft.probe_interval());
        self.session.run(now);
        if self.note_changes(part, now) {
            self.greet(part, now);
        }
        for count in 0.. {
            if count == MESSAGES_PER_TURN {
                poll.again(Token(id));
                break;
            }
            let Some(message) = self.session.recv(now) else {
                break;
            };
            if let Err(error) = self.take(message, part, now) {
                log::info!(target: "raft", "{}: {error}", self.session.name());
                self.session.force_reconnect(now);
                break;
            }
        }
        if self.note_changes(part, now) {
            self.greet(part, now);
        }
    }

    fn take(
        &mut self,
        message: jsonrpc::Message,
        part: &mut Part,
        now: Instant,
    ) -> Result<(), String> {
        let (method, params): (Arc<str>, Json) = match message {
            jsonrpc::Message::Notification { method, params } => (method, params),
            other => {
                let kind = other.kind();
                return Err(format!(
                    "ovsdb error: expecting notify RPC but received {kind}"
                ));
            }
        };
        let sid = part.raft.sid();
        let message = Message::from_params(&method, &params, part.raft.cid_mut(), sid)
            .map_err(|error| error.to_string())?;
        match self.peer {
            None => {
                log::info!(target: "raft", "{}: learned server ID {}",
                    self.session.name(), short_id(message.peer));
                self.nickname = nickname(self.session.name(), message.peer);
                self.peer = Some(message.peer);
                self.up = self.peer;
                part.raft.link_up(now, message.peer);
            }
            Some(peer) if peer != message.peer => {
                return Err(format!(
                    "ignoring message with unexpected server ID {} (expected {})",
                    short_id(message.peer),
                    short_id(peer)
                ));
            }
            Some(_) => {}
        }
        if let Body::Hello { address } | Body::AddServer { address } = &message.body {
            let name = nickname(address, message.peer);
            if name != self.nickname {
                log::info!(target: "raft", "{}: learned remote address {address}",
                    self.session.name());
                self.nickname = name;
            }
        }
        if !message.is_heartbeat() {
            log::debug!(target: "raft", "<--{} {message}", self.nickname);
        }
        part.raft.handle(now, message);
        Ok(())
    }
}
