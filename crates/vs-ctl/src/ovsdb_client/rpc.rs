//! A connection on which one waits for answers.

use base::{Clock, Instant};
use io::jsonrpc::{Message, Rpc};
use io::stream::{DEFAULT_DSCP, OVSDB_PORT, is_passive};
use io::{Interest, Net, Poll, Stream, Token};
use json::Json;

use super::Stop;

/// The connection's token.
pub(super) const TOKEN: Token = Token(1);

/// Why a request has no result.
pub(super) enum Failure {
    TimedOut,
    /// The connection was lost.
    Lost(String),
    /// The server answered with an error.
    Refused(Json),
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) rpc: Rpc,
    next_id: i64,
}

/// An event loop.
pub(super) fn new_poll(clock: &Clock) -> Result<Poll, Stop> {
    Poll::new(clock).map_err(|error| Stop::Fatal(base::errno_text(&error)))
}

fn wait(poll: &mut Poll, deadline: Instant) -> Result<(), Stop> {
    poll.wait(deadline, &mut Vec::new())
        .map_err(|error| Stop::Fatal(base::errno_text(&error)))?;
    if poll.now() >= deadline {
        return Err(Stop::TimedOut);
    }
    Ok(())
}

/// What to say when there is no connection.
fn refused(what: &str, server: &str, error: &std::io::Error) -> Stop {
    let error = io::error_text(error);
    Stop::Fatal(format!("failed to {what} \"{server}\" ({error})"))
}

impl Client {
    /// Connects to a server, or waits until somebody connects to a passive one.
    pub(super) fn connect(
        net: &Net,
        server: &str,
        poll: &mut Poll,
        deadline: Instant,
    ) -> Result<Self, Stop> {
        let stream = if is_passive(server) {
            Self::accept(net, server, poll, deadline)?
        } else {
            let connected = Self::connect_one(net, server, poll, deadline)?;
            connected.map_err(|error| refused("connect to", server, &error))?
        };
        Ok(Self {
            rpc: Rpc::new(stream, TOKEN),
            next_id: 0,
        })
    }

    fn connect_one(
        net: &Net,
        server: &str,
        poll: &mut Poll,
        deadline: Instant,
    ) -> Result<std::io::Result<Stream>, Stop> {
        let mut stream = match net.connect(server, OVSDB_PORT, DEFAULT_DSCP) {
            Ok(stream) => stream,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            match stream.connect() {
                Ok(()) => return Ok(Ok(stream)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Ok(Err(error)),
            }
            if let Err(error) = stream.watch(poll, TOKEN, Interest::WRITE) {
                return Ok(Err(error));
            }
            wait(poll, deadline)?;
        }
    }

    fn accept(net: &Net, server: &str, poll: &mut Poll, deadline: Instant) -> Result<Stream, Stop> {
        let listener = net.listen(server, OVSDB_PORT, DEFAULT_DSCP);
        let mut listener =
            listener.map_err(|error| refused("connect or listen to", server, &error))?;
        log::info!(target: "ovsdb_client", "{server}: waiting for connection...");
        loop {
            match listener.accept() {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(refused("accept connection on", server, &error)),
                Ok(stream) => return Ok(stream),
            }
            listener
                .watch(poll, Token(2), Interest::READ)
                .map_err(|error| refused("accept connection on", server, &error))?;
            wait(poll, deadline)?;
        }
    }

    /// Queues a request; returns its id.
    pub(super) fn send_request(&mut self, method: &str, params: Vec<Json>) -> Json {
        self.next_id += 1;
        let id = Json::Integer(self.next_id);
        self.rpc.send(&Message::request(method, params, id.clone()));
        id
    }

    /// The next message that has come; probes are answered here.
    pub(super) fn try_recv(&mut self) -> std::io::Result<Option<Message>> {
        loop {
            match self.rpc.recv()? {
                Some(Message::Request { method, params, id }) if *method == *"echo" => {
                    self.rpc.send(&Message::reply(params, id));
                }
                other => return Ok(other),
            }
        }
    }

    /// Waits for the next message.
    pub(super) fn recv(&mut self, poll: &mut Poll, deadline: Instant) -> Result<Message, Failure> {
        let lost = |error: std::io::Error| Failure::Lost(io::error_text(&error));
        loop {
            if let Some(message) = self.try_recv().map_err(lost)? {
                return Ok(message);
            }
            self.rpc.watch(poll, true).map_err(lost)?;
            wait(poll, deadline).map_err(|stop| match stop {
                Stop::TimedOut => Failure::TimedOut,
                Stop::Fatal(text) => Failure::Lost(text),
            })?;
        }
    }

    /// Sends a request and waits for its result.  Notifications that come before are lost.
    pub(super) fn request(
        &mut self,
        poll: &mut Poll,
        deadline: Instant,
        method: &str,
        params: Vec<Json>,
    ) -> Result<Json, Failure> {
        let wanted = self.send_request(method, params);
        loop {
            match self.recv(poll, deadline)? {
                Message::Reply { result, id } if id == wanted => return Ok(result),
                Message::Error { error, id } if id == wanted => {
                    return Err(Failure::Refused(error));
                }
                _ => {}
            }
        }
    }

    /// Tells the server that we cope with databases that come and go.  Old servers do not
    /// know of that, which is an error only if `insists`.
    pub(super) fn set_change_aware(
        &mut self,
        poll: &mut Poll,
        deadline: Instant,
        insists: bool,
    ) -> Result<(), Stop> {
        match self.request(poll, deadline, "set_db_change_aware", vec![true.into()]) {
            Err(Failure::Refused(error)) if insists => Err(Stop::Fatal(format!(
                "{}: set_db_change_aware failed ({error})",
                self.rpc.name()
            ))),
            Ok(_) | Err(Failure::Refused(_)) => Ok(()),
            Err(Failure::TimedOut) => Err(Stop::TimedOut),
            Err(Failure::Lost(text)) => Err(Stop::Fatal(format!(
                "{}: error setting db_change_aware ({text})",
                self.rpc.name()
            ))),
        }
    }
}
