//! The session with the database server.

use base::Instant;
use db_client::{Client, Servers};
use io::jsonrpc::{Message, Session, SessionOptions};
use io::{Net, Poll};
use json::Json;

use super::DATABASE;

/// Messages that are taken in one round, so that a large update does not hold up packets.
const MESSAGES_PER_ROUND: usize = 50;

/// Joins a session with a client.
#[derive(Debug)]
pub(super) struct Database {
    session: Session,
    seqno: u32,
}

impl Database {
    /// Connects `client` to one of the servers that `remote` names.
    pub(super) fn new(net: &Net, remote: &str, client: &mut Client, now: Instant) -> Self {
        let Servers { remotes, cluster } = Servers::parse(remote);
        client.set_cluster(cluster);
        let options = SessionOptions::default();
        let session = Session::new(net, remotes, DATABASE, options, now);
        let seqno = session.seqno();
        Self { session, seqno }
    }

    /// Takes in what the server sent.
    pub(super) fn run(&mut self, client: &mut Client, now: Instant) {
        self.session.run(now);
        self.note_connection(client);
        for _ in 0..MESSAGES_PER_ROUND {
            let Some(message) = self.session.recv(now) else {
                break;
            };
            if let Err(error) = self.handle(client, message, now) {
                let name = self.session.name();
                log::warn!(target: "ovsdb_cs", "{name}: {error}");
                self.session.force_reconnect(now);
            } else if let Some(why) = client.unsuitable() {
                let name = self.session.name();
                log::info!(target: "ovsdb_cs", "{name}: {why}");
                self.session.force_reconnect(now);
                break;
            }
        }
        self.note_connection(client);
    }

    fn note_connection(&mut self, client: &mut Client) {
        if self.session.seqno() == self.seqno {
            return;
        }
        self.seqno = self.session.seqno();
        if self.session.is_connected() {
            client.connected();
        } else {
            client.disconnected();
        }
    }

    fn handle(
        &mut self,
        client: &mut Client,
        message: Message,
        now: Instant,
    ) -> Result<(), String> {
        match message {
            Message::Request { method, id, params } if &*method == "echo" => {
                self.session.send(&Message::reply(params, id), now);
                Ok(())
            }
            Message::Request { method, .. } => Err(format!("unexpected request \"{method}\"")),
            Message::Notification { method, params } => {
                client.handle_notification(&method, &params)
            }
            Message::Reply { result, id } => match number(&id) {
                Some(id) => client.handle_reply(id, Ok(&result)),
                None => Ok(()),
            },
            Message::Error { error, id } => match number(&id) {
                Some(id) => client.handle_reply(id, Err(&error)),
                None => Ok(()),
            },
        }
    }

    /// Sends what the client has to say.
    pub(super) fn send(&mut self, client: &mut Client, now: Instant) {
        if !self.session.is_connected() {
            return;
        }
        while let Some(request) = client.poll_request() {
            let params = match request.params {
                Json::Array(params) => params,
                other => vec![other],
            };
            let message = Message::request(request.method, params, request.id.into());
            self.session.send(&message, now);
        }
    }

    pub(super) fn watch(&mut self, poll: &mut Poll) {
        self.session.watch(poll);
    }

    pub(super) fn next_deadline(&self, now: Instant) -> Instant {
        self.session.next_deadline(now)
    }
}

/// The id of one of our requests; probes of the session have other ids.
fn number(id: &Json) -> Option<i64> {
    id.as_integer()
}
