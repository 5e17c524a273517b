//! The server's side of control sockets.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use base::Dirs;
use json::{Json, Object};

use crate::event::{Event, Interest, Poll, Token, Waker};
use crate::jsonrpc::{Message, Rpc};
use crate::stream::{Listener, Net};

/// How a connection wants answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, as a JSON string.
    Text,
    /// A JSON value; a command that has only text gets it wrapped.
    Json,
}

/// A command to be carried out.
#[derive(Debug)]
pub struct Call {
    /// The command.
    pub name: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// How the answer is wanted.
    pub format: Format,
    /// Takes the answer, now or later, from any thread.
    pub responder: Responder,
}

#[derive(Debug)]
enum Body {
    Text(String),
    Json(Json),
    Error(String),
    SetFormat(Format),
}

#[derive(Debug)]
struct Answer {
    connection: u64,
    id: Json,
    body: Body,
}

/// Answers one command.  If it is dropped, the command has failed.
#[derive(Debug)]
pub struct Responder {
    connection: u64,
    id: Option<Json>,
    answers: Sender<Answer>,
    waker: Waker,
}

impl Responder {
    /// Answers with text.
    pub fn reply(mut self, text: impl Into<String>) {
        self.answer(Body::Text(text.into()));
    }

    /// Answers with a JSON value, for commands that honour [`Format::Json`].
    pub fn reply_json(mut self, value: Json) {
        self.answer(Body::Json(value));
    }

    /// Refuses.
    pub fn error(mut self, text: impl Into<String>) {
        self.answer(Body::Error(text.into()));
    }

    /// Answers with text or refuses.
    pub fn finish(self, result: Result<impl Into<String>, impl Into<String>>) {
        match result {
            Ok(text) => self.reply(text),
            Err(text) => self.error(text),
        }
    }

    pub(super) fn set_format(mut self, format: Format) {
        self.answer(Body::SetFormat(format));
    }

    fn answer(&mut self, body: Body) {
        if let Some(id) = self.id.take() {
            let connection = self.connection;
            // The server may be gone, and with it whoever waits for the answer.
            let _ = self.answers.send(Answer {
                connection,
                id,
                body,
            });
            self.waker.wake();
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.answer(Body::Error("command was abandoned".to_owned()));
    }
}

#[derive(Debug)]
struct Connection {
    rpc: Rpc,
    format: Format,
    /// A command is being carried out: the next waits.
    busy: bool,
}

/// The control socket of a daemon and its connections.
#[derive(Debug)]
pub struct ControlServer {
    listener: Listener,
    path: PathBuf,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    answers: Receiver<Answer>,
    sender: Sender<Answer>,
    waker: Waker,
    first_token: u64,
}

/// Connections whose tokens follow the server's first token at most.
const MAX_CONNECTIONS: u64 = 64;

/// The longest request: packets and flows as text are far shorter.
const MAX_REQUEST: usize = 16 << 20;

impl ControlServer {
    /// How many tokens from its first one on a server uses.
    pub const TOKENS: u64 = MAX_CONNECTIONS + 2;

    /// Listens on `socket` (relative to the run directory), by default `PROGRAM.PID.ctl`
    /// there.  The server uses [`ControlServer::TOKENS`] tokens from `token` on.
    ///
    /// # Errors
    /// It cannot listen there: a daemon then says
    /// `PATH: could not initialize control socket (REASON)`, which is the text of the error.
    pub fn new(
        net: &Net,
        dirs: &Dirs,
        program: &str,
        socket: Option<&str>,
        token: Token,
        poll: &mut Poll,
    ) -> Result<Self, String> {
        let default = format!("{program}.{}.ctl", std::process::id());
        let path = dirs.in_run(socket.unwrap_or(&default));
        Self::listen(net, &path, token, poll).map_err(|error| {
            let text = crate::error_text(&error);
            format!(
                "could not initialize control socket {} ({text})",
                path.display()
            )
        })
    }

    fn listen(net: &Net, path: &Path, token: Token, poll: &mut Poll) -> io::Result<Self> {
        let mut listener = net.listen(&format!("punix:{}", path.display()), 0, 0)?;
        listener.watch(poll, token, Interest::READ)?;
        let (sender, answers) = channel();
        Ok(Self {
            listener,
            path: path.to_owned(),
            connections: BTreeMap::new(),
            next: 0,
            answers,
            sender,
            waker: poll.waker(Token(token.0 + 1))?,
            first_token: token.0,
        })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `event` is one of the server's.
    pub fn owns(&self, event: &Event) -> bool {
        (self.first_token..self.first_token + Self::TOKENS).contains(&event.token.0)
    }

    /// With all places taken, who comes gets the place of the connection that is there longest
    /// without a command under way: clients that open connections and say nothing, or half of a
    /// request, must not lock the operator out.
    fn accept(&mut self) {
        while self.has_place() {
            match self.listener.accept() {
                Ok(stream) => {
                    if self.connections.len() as u64 >= MAX_CONNECTIONS {
                        self.drop_oldest_idle();
                    }
                    let id = self.free_id();
                    let token = self.first_token + 2 + id % MAX_CONNECTIONS;
                    let mut rpc = Rpc::new(stream, Token(token));
                    rpc.set_max_message(MAX_REQUEST);
                    let connection = Connection {
                        rpc,
                        format: Format::Text,
                        busy: false,
                    };
                    self.connections.insert(id, connection);
                }
                Err(error) => {
                    if error.kind() != ErrorKind::WouldBlock {
                        base::log_limited!(
                            Warn,
                            "unixctl",
                            (1, 5),
                            "{}: accept failed: {}",
                            self.path.display(),
                            crate::error_text(&error)
                        );
                    }
                    break;
                }
            }
        }
    }

    /// Whether one more client can be served, be it in the place of an idle one.
    fn has_place(&self) -> bool {
        (self.connections.len() as u64) < MAX_CONNECTIONS
            || self.connections.values().any(|c| !c.busy)
    }

    fn drop_oldest_idle(&mut self) {
        // Ids grow, so the first is the oldest.
        let oldest = self.connections.iter().find(|(_, c)| !c.busy);
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.connections.remove(&id);
        }
    }

    /// An id that was never used, whose token nobody uses.
    fn free_id(&mut self) -> u64 {
        loop {
            let id = self.next;
            self.next += 1;
            let taken = |other: &u64| other % MAX_CONNECTIONS == id % MAX_CONNECTIONS;
            if !self.connections.keys().any(taken) {
                return id;
            }
        }
    }

    /// Sends answers and takes the calls that came: to be called in each turn in which an
    /// event is the server's or a call was answered.
    pub fn run(&mut self, poll: &mut Poll) -> Vec<Call> {
        self.accept();
        while let Ok(answer) = self.answers.try_recv() {
            if let Some(connection) = self.connections.get_mut(&answer.connection) {
                connection.answer(answer);
            }
        }
        let mut calls = Vec::new();
        let mut gone = Vec::new();
        for (id, connection) in &mut self.connections {
            // Who does not take answers gets no more of them.
            let mut alive = connection.rpc.flush().is_ok();
            if alive && connection.is_ready() {
                match connection.next_request() {
                    Ok(Some((name, args, request))) => {
                        connection.busy = true;
                        calls.push(Call {
                            name,
                            args,
                            format: connection.format,
                            responder: Responder {
                                connection: *id,
                                id: Some(request),
                                answers: self.sender.clone(),
                                waker: self.waker.clone(),
                            },
                        });
                    }
                    Ok(None) => {}
                    Err(_) => alive = false,
                }
            }
            let read = connection.is_ready();
            if !alive || connection.rpc.watch(poll, read).is_err() {
                gone.push(*id);
            }
        }
        for id in gone {
            self.connections.remove(&id);
        }
        // With all places taken by commands under way, the listener must not keep the loop busy.
        let open = self.has_place();
        let token = Token(self.first_token);
        let interest = Interest::new(open, false);
        if let Err(error) = self.listener.watch(poll, token, interest) {
            log::error!(target: "unixctl", "{}: {error}", self.path.display());
        }
        calls
    }

    /// Sends what was answered and waits a little for it to be taken: the last act of a
    /// daemon that was told to exit.
    pub fn finish(&mut self, poll: &mut Poll) {
        let deadline = poll.clock().real() + std::time::Duration::from_millis(500);
        loop {
            drop(self.run(poll));
            let pending = |c: &Connection| c.rpc.backlog() > 0;
            if !self.connections.values().any(pending) || poll.clock().real() >= deadline {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl Connection {
    /// Whether it may ask for something.
    fn is_ready(&self) -> bool {
        !self.busy && self.rpc.backlog() == 0
    }

    fn answer(&mut self, answer: Answer) {
        self.busy = false;
        let wrap = |text: String| {
            let object = Object::new()
                .with("reply", text)
                .with("reply-format", "plain");
            Json::from(object)
        };
        let result = match answer.body {
            Body::Error(text) => {
                let text = self.line(text);
                log::debug!(target: "unixctl", "replying with error, id={}: \"{text}\"", answer.id);
                self.rpc.send(&Message::error(Json::from(text), answer.id));
                return;
            }
            Body::SetFormat(format) => {
                self.format = format;
                String::new().into()
            }
            Body::Text(text) => Json::from(self.line(text)),
            Body::Json(value) => value,
        };
        let result = match (self.format, result) {
            (Format::Json, Json::String(text)) => wrap(text.to_string()),
            (_, result) => result,
        };
        log::debug!(target: "unixctl", "replying with success, id={}: \"{result}\"", answer.id);
        self.rpc.send(&Message::reply(result, answer.id));
    }

    /// Ends text with a new-line, which tools older than 3.4 do not add themselves.
    fn line(&self, mut text: String) -> String {
        if self.format == Format::Text && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    fn next_request(&mut self) -> io::Result<Option<(String, Vec<String>, Json)>> {
        let Some(message) = self.rpc.recv()? else {
            return Ok(None);
        };
        let Message::Request { method, params, id } = message else {
            base::log_limited!(
                Warn,
                "unixctl",
                (1, 5),
                "{}: received unexpected {} message",
                self.rpc.name(),
                message.kind()
            );
            return Err(rustix::io::Errno::INVAL.into());
        };
        log::debug!(target: "unixctl", "received request {method}{params}, id={id}");
        let params = params.as_array().unwrap_or_default();
        let text = |param: &Json| match param.as_str() {
            Some(text) => text.to_owned(),
            None => param.to_string(),
        };
        let args = params.iter().map(text).collect();
        Ok(Some((method.to_string(), args, id)))
    }
}
