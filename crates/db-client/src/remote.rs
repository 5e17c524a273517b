//! A client over a connection that is kept alive.

use base::Instant;
use io::jsonrpc::{Message, Session, SessionOptions};
use io::{Net, Poll, Token};
use json::Json;

use crate::Client;

/// How many messages one turn takes in at most.
const BATCH: usize = 64;

/// A [`Client`] and the session that carries its messages.
///
/// In a turn of the event loop its owner calls [`Remote::run`], works with the client, and
/// ends with [`Remote::watch`]; it wants to run at [`Remote::next_deadline`].
#[derive(Debug)]
pub struct Remote {
    session: Session,
    client: Client,
    seqno: u32,
}

impl Remote {
    /// Connects `client` to one of `remotes` (connection names), watched under `token`.
    pub fn new(
        net: &Net,
        remotes: Vec<String>,
        token: Token,
        options: SessionOptions,
        client: Client,
        now: Instant,
    ) -> Self {
        let session = Session::new(net, remotes, token, options, now);
        Self {
            seqno: session.seqno(),
            session,
            client,
        }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The client, to commit transactions and take outcomes and changes.
    pub fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The session, to tell how it fares.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session, to change how it connects.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Goes on connecting and takes in what has come.
    pub fn run(&mut self, now: Instant) {
        self.session.run(now);
        for _ in 0..BATCH {
            self.note_connection();
            let Some(message) = self.session.recv(now) else {
                break;
            };
            if let Err(error) = self.handle(message) {
                let name = self.session.name();
                log::warn!(target: "ovsdb_cs", "{name}: {error}, reconnecting");
                self.session.force_reconnect(now);
                break;
            }
            if let Some(why) = self.client.unsuitable() {
                let name = self.session.name();
                log::info!(target: "ovsdb_cs", "{name}: {why}");
                self.session.force_reconnect(now);
                break;
            }
        }
        self.note_connection();
        self.send(now);
    }

    fn note_connection(&mut self) {
        if self.seqno != self.session.seqno() {
            self.seqno = self.session.seqno();
            if self.session.is_connected() {
                self.client.connected();
            } else {
                self.client.disconnected();
            }
        }
    }

    fn handle(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Reply { result, id } => match id.as_integer() {
                Some(id) => self.client.handle_reply(id, Ok(&result)),
                None => Ok(()),
            },
            Message::Error { error, id } => match id.as_integer() {
                Some(id) => self.client.handle_reply(id, Err(&error)),
                None => Ok(()),
            },
            Message::Notification { method, params } => {
                self.client.handle_notification(&method, &params)
            }
            Message::Request { method, .. } => {
                Err(format!("unexpected request \"{method}\" from the server"))
            }
        }
    }

    fn send(&mut self, now: Instant) {
        while let Some(request) = self.client.poll_request() {
            let params = match request.params {
                Json::Array(params) => params,
                other => vec![other],
            };
            let message = Message::request(request.method, params, request.id.into());
            self.session.send(&message, now);
        }
    }

    /// Ends a turn: sends what the client wants to send and waits in `poll`.
    pub fn watch(&mut self, poll: &mut Poll) {
        self.send(poll.now());
        self.session.watch(poll);
        self.note_connection();
    }

    /// When it wants to run without an event.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        self.session.next_deadline(now)
    }
}
