//! A JSON-RPC connection that is kept alive.

use std::io::{self, ErrorKind};

use base::Instant;
use json::Json;

use super::{Message, Rpc};
use crate::event::{Interest, Poll, Token};
use crate::reconnect::{Action, Reconnect, State, Stats};
use crate::stream::{DEFAULT_DSCP, Listener, Net, OVSDB_PORT, Stream, is_passive};

/// How a session connects.
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// Whether it connects again after a failure.
    pub retry: bool,
    /// The port where a name gives none.
    pub default_port: u16,
    /// The DSCP of TCP and TLS packets.
    pub dscp: u8,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            retry: true,
            default_port: OVSDB_PORT,
            dscp: DEFAULT_DSCP,
        }
    }
}

/// A session with one of several remotes, or with whoever connects to a passive name.
///
/// In a turn of the loop, its owner calls [`Session::run`], takes what
/// [`Session::recv`] gives (a bounded number of times), sends, and ends with
/// [`Session::watch`].  All events of the session come under its one token, and it wants to
/// run at [`Session::next_deadline`].
#[derive(Debug)]
pub struct Session {
    net: Net,
    remotes: Vec<String>,
    /// The remote to try next.
    next: usize,
    options: SessionOptions,
    token: Token,
    fsm: Reconnect,
    listener: Option<Listener>,
    connecting: Option<Stream>,
    rpc: Option<Rpc>,
    /// What of the connection's input was reported as activity.
    received: u64,
    seqno: u32,
    last_error: Option<io::Error>,
    max_backlog: Option<(usize, usize)>,
    /// Whether nothing is received from a peer that does not take what it is sent.
    answers_first: bool,
}

impl Session {
    /// A session that tries `remotes` in turn, watched under `token`.
    pub fn new(
        net: &Net,
        remotes: Vec<String>,
        token: Token,
        options: SessionOptions,
        now: Instant,
    ) -> Self {
        let mut fsm = Reconnect::new(now);
        if let Some(first) = remotes.first() {
            fsm.set_name(first);
            fsm.set_passive(is_passive(first), now);
        }
        fsm.set_free_tries(u32::try_from(remotes.len()).unwrap_or(u32::MAX));
        if !options.retry {
            // Each remote may turn out to be the right one.
            fsm.set_tries(Some(u32::try_from(remotes.len()).unwrap_or(u32::MAX)));
        }
        fsm.enable(now);
        Self::with(net.clone(), remotes, token, options, fsm)
    }

    /// A session over a connection that a listener accepted; it ends with the connection.
    pub fn accepted(net: &Net, stream: Stream, token: Token, now: Instant) -> Self {
        let mut fsm = Reconnect::new(now);
        fsm.set_quiet(true);
        fsm.set_name(stream.name());
        fsm.set_tries(Some(0));
        fsm.connected(now);
        let name = stream.name().to_owned();
        let options = SessionOptions::default();
        let mut session = Self::with(net.clone(), vec![name], token, options, fsm);
        session.start(stream);
        session
    }

    fn with(
        net: Net,
        remotes: Vec<String>,
        token: Token,
        options: SessionOptions,
        fsm: Reconnect,
    ) -> Self {
        Self {
            net,
            remotes,
            next: 0,
            options,
            token,
            fsm,
            listener: None,
            connecting: None,
            rpc: None,
            received: 0,
            seqno: 0,
            last_error: None,
            max_backlog: None,
            answers_first: false,
        }
    }

    fn start(&mut self, stream: Stream) {
        self.rpc = Some(Rpc::new(stream, self.token));
        self.received = 0;
        self.seqno += 1;
    }

    /// The name of the current or next remote.
    pub fn name(&self) -> &str {
        self.fsm.name()
    }

    /// Its token.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The machine that keeps it alive, to configure probes and back-off.
    pub fn reconnect_mut(&mut self) -> &mut Reconnect {
        &mut self.fsm
    }

    /// Changes the remotes; the connection is kept if it is to one of the new ones.
    pub fn set_remotes(&mut self, remotes: Vec<String>, now: Instant) {
        let current = self.fsm.name();
        let kept = remotes.iter().position(|r| r == current);
        self.next = kept.map_or(0, |at| at + 1);
        self.remotes = remotes;
        if kept.is_none() {
            self.fsm.force_reconnect(now);
        }
    }

    /// Limits the messages and bytes that may wait to be sent; beyond, the session
    /// disconnects.
    pub fn set_max_backlog(&mut self, messages: usize, bytes: usize) {
        self.max_backlog = Some((messages, bytes));
    }

    /// Receives nothing more while something waits to be sent: a peer that asks and does not
    /// listen would have answers pile up without end.
    pub const fn answer_first(&mut self) {
        self.answers_first = true;
    }

    fn may_receive(&self) -> bool {
        let backlog = self.rpc.as_ref().map_or(0, Rpc::backlog);
        !self.answers_first || backlog == 0
    }

    /// Whether it is connected.
    pub fn is_connected(&self) -> bool {
        self.rpc.is_some()
    }

    /// Whether it is connected or will try to be.
    pub fn is_alive(&self) -> bool {
        self.rpc.is_some() || self.connecting.is_some() || self.fsm.is_enabled()
    }

    /// Changes with each connection made or lost: what was asked before must be asked anew.
    pub fn seqno(&self) -> u32 {
        self.seqno
    }

    /// Why the last connection or attempt ended, if it failed.
    pub fn last_error(&self) -> Option<&io::Error> {
        self.last_error.as_ref()
    }

    /// The connection, while there is one.
    pub fn rpc(&self) -> Option<&Rpc> {
        self.rpc.as_ref()
    }

    /// Figures for status columns.
    pub fn stats(&self, now: Instant) -> Stats {
        self.fsm.stats(now)
    }

    /// Drops the connection and makes it anew.
    pub fn force_reconnect(&mut self, now: Instant) {
        self.fsm.force_reconnect(now);
    }

    /// Goes on connecting, probes an idle peer, drops a dead one.
    pub fn run(&mut self, now: Instant) {
        self.run_listener(now);
        self.run_connection(now);
        match self.fsm.run(now) {
            Some(Action::Connect) => self.connect(now),
            Some(Action::Disconnect) => self.drop_connection(now, None),
            Some(Action::Probe) => {
                let probe = Message::request("echo", vec![], Json::string("echo"));
                self.queue(&probe);
            }
            None => {}
        }
    }

    fn run_listener(&mut self, now: Instant) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        match listener.accept() {
            Ok(stream) => {
                if self.rpc.take().is_some() {
                    log::info!(target: "jsonrpc",
                        "{}: new connection replacing active connection", self.fsm.name());
                    self.fsm.disconnected(now, None);
                }
                self.fsm.connected(now);
                self.start(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                self.fsm.listen_error(now, &error);
                self.listener = None;
            }
        }
    }

    fn run_connection(&mut self, now: Instant) {
        if let Some(stream) = &mut self.connecting {
            match stream.connect() {
                Ok(()) => {
                    if let Some(stream) = self.connecting.take() {
                        self.fsm.connected(now);
                        self.start(stream);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.connecting = None;
                    self.fsm.connect_failed(now, Some(&error));
                    self.last_error = Some(error);
                }
            }
        } else if let Some(rpc) = &mut self.rpc {
            let before = rpc.drained();
            let result = rpc.flush();
            if rpc.drained() != before {
                // A peer that takes data is alive.
                self.fsm.activity(now);
            }
            if let Err(error) = result {
                self.drop_connection(now, Some(error));
            }
        }
    }

    fn connect(&mut self, now: Instant) {
        if self.remotes.is_empty() {
            self.fsm.disable(now);
            return;
        }
        let remote = self.remotes[self.next % self.remotes.len()].clone();
        self.next = self.next % self.remotes.len() + 1;
        self.fsm.set_name(&remote);
        let (port, dscp) = (self.options.default_port, self.options.dscp);
        let passive = is_passive(&remote);
        self.fsm.set_passive(passive, now);
        if passive {
            match self.net.listen(&remote, port, dscp) {
                Ok(listener) => {
                    self.listener = Some(listener);
                    self.fsm.listening(now);
                }
                Err(error) => {
                    self.fsm.connect_failed(now, Some(&error));
                    self.last_error = Some(error);
                }
            }
            return;
        }
        self.listener = None;
        match self.net.connect(&remote, port, dscp) {
            Ok(stream) => {
                self.fsm.connecting(now);
                self.connecting = Some(stream);
                self.run_connection(now);
            }
            Err(error) => {
                self.fsm.connect_failed(now, Some(&error));
                self.last_error = Some(error);
            }
        }
    }

    fn drop_connection(&mut self, now: Instant, error: Option<io::Error>) {
        self.fsm.disconnected(now, error.as_ref());
        self.last_error = error;
        self.connecting = None;
        if self.rpc.take().is_some() {
            self.seqno += 1;
        }
        if !self.fsm.is_passive() {
            self.listener = None;
        } else if self.listener.is_some() && self.fsm.state() == State::Backoff {
            self.fsm.listening(now);
        }
    }

    fn queue(&mut self, message: &Message) -> bool {
        let Some(rpc) = &mut self.rpc else {
            return false;
        };
        rpc.send(message);
        true
    }

    /// Queues `message`; `false` if there is no connection, and the message is lost.
    pub fn send(&mut self, message: &Message, now: Instant) -> bool {
        if !self.queue(message) {
            return false;
        }
        let (Some(rpc), Some((messages, bytes))) = (&self.rpc, self.max_backlog) else {
            return true;
        };
        let (queued, backlog, name) = (rpc.queued(), rpc.backlog(), rpc.name());
        if queued > messages {
            log::warn!(target: "jsonrpc",
                "sending backlog exceeded maximum number of messages ({queued} > {messages}), \
                 disconnecting, jsonrpc: {name}.");
        } else if bytes > 0 && backlog > bytes {
            log::warn!(target: "jsonrpc",
                "sending backlog exceeded maximum size ({backlog} > {bytes} bytes), \
                 disconnecting, jsonrpc: {name}.");
        } else {
            return true;
        }
        self.fsm.force_reconnect(now);
        false
    }

    /// The next message, if one has come.  Probes are answered here and not shown.
    pub fn recv(&mut self, now: Instant) -> Option<Message> {
        loop {
            if !self.may_receive() {
                self.fsm.receive_attempted(now);
                return None;
            }
            let rpc = self.rpc.as_mut()?;
            let result = rpc.recv();
            self.fsm.receive_attempted(now);
            if rpc.received() != self.received {
                self.received = rpc.received();
                self.fsm.activity(now);
            }
            match result {
                Ok(None) => return None,
                Ok(Some(Message::Request { method, params, id })) if *method == *"echo" => {
                    rpc.send(&Message::reply(params, id));
                }
                Ok(Some(Message::Reply { id, .. })) if id.as_str() == Some("echo") => {}
                Ok(Some(message)) => return Some(message),
                Err(error) => {
                    self.drop_connection(now, Some(error));
                    return None;
                }
            }
        }
    }

    /// Ends a turn: sends what can be sent and waits for the rest in `poll`.
    pub fn watch(&mut self, poll: &mut Poll) {
        let now = poll.now();
        let mut failed = None;
        if let Some(rpc) = &mut self.rpc {
            let before = rpc.drained();
            failed = rpc.flush().err();
            let read = !self.answers_first || rpc.backlog() == 0;
            if failed.is_none() {
                failed = rpc.watch(poll, read).err();
            }
            if rpc.drained() != before {
                self.fsm.activity(now);
            }
        } else if let Some(stream) = &mut self.connecting {
            failed = stream.watch(poll, self.token, Interest::WRITE).err();
        }
        if failed.is_some() {
            self.drop_connection(now, failed);
        }
        if let Some(listener) = &mut self.listener
            && let Err(error) = listener.watch(poll, self.token, Interest::READ)
        {
            self.fsm.listen_error(now, &error);
            self.listener = None;
        }
    }

    /// When it wants to run without an event.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        self.fsm.next_deadline(now)
    }
}
