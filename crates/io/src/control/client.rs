//! The client's side of control sockets.

use std::io;
use std::path::{Path, PathBuf};

use base::{Clock, Dirs, Instant};
use json::Json;

use crate::daemon::pidfile;
use crate::event::{Poll, Token};
use crate::jsonrpc::{Message, Rpc};
use crate::stream::Net;

/// The socket that `target` means: an absolute path is one; otherwise it is the name of a
/// daemon that has a pidfile.
///
/// # Errors
/// The text that a tool says after its name.
pub fn find_target(target: &str, dirs: &Dirs) -> Result<PathBuf, String> {
    if target.starts_with('/') {
        return Ok(target.into());
    }
    let path = dirs.in_run(format!("{target}.pid"));
    let pid = pidfile::read(&path).map_err(|error| {
        let text = crate::error_text(&error);
        format!("cannot read pidfile \"{}\" ({text})", path.display())
    })?;
    Ok(dirs.in_run(format!("{target}.{pid}.ctl")))
}

/// A connection to a daemon's control socket.
#[derive(Debug)]
pub struct ControlClient {
    rpc: Rpc,
    poll: Poll,
    deadline: Instant,
    next: i64,
}

impl ControlClient {
    /// Connects to `socket`.  After `deadline` all that waits fails with `TimedOut`.
    ///
    /// # Errors
    /// Why it cannot connect.
    pub fn connect(socket: &Path, clock: &Clock, deadline: Instant) -> io::Result<Self> {
        let net = Net::new(&Dirs::from_env());
        let result = net.connect(&format!("unix:{}", socket.display()), 0, 0);
        let stream = result.inspect_err(|_| {
            log::warn!(target: "unixctl", "failed to connect to {}", socket.display());
        })?;
        Ok(Self {
            rpc: Rpc::new(stream, Token(0)),
            poll: Poll::new(clock)?,
            deadline,
            next: 0,
        })
    }

    /// Has `command` carried out.  The inner result is the answer or the refusal.
    ///
    /// # Errors
    /// The connection failed before the answer came.
    pub fn transact(&mut self, command: &str, args: &[String]) -> io::Result<Result<Json, Json>> {
        let id = Json::Integer(self.next);
        self.next += 1;
        let params = args.iter().map(|a| Json::from(a.as_str())).collect();
        self.rpc
            .send(&Message::request(command, params, id.clone()));
        let mut events = Vec::new();
        loop {
            while let Some(message) = self.rpc.recv()? {
                match message {
                    Message::Reply { result, id: got } if got == id => return Ok(Ok(result)),
                    Message::Error { error, id: got } if got == id => return Ok(Err(error)),
                    other => log::warn!(target: "unixctl",
                        "{}: received unexpected {} message", self.rpc.name(), other.kind()),
                }
            }
            self.rpc.watch(&mut self.poll, true)?;
            events.clear();
            self.poll.wait(self.deadline, &mut events)?;
            if events.is_empty() && self.poll.now() >= self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}
