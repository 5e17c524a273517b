//! The snoop socket: who connects gets a copy of what goes between the bridge and its
//! primary controllers.

use ::io::{Event, Interest, Listener, Net, Poll, Stream, Token};
use base::Instant;

use crate::conn::{ConnConfig, ConnKind};
use crate::endpoints::link::Outbox;
use crate::wire;

/// Bytes that may wait for one who snoops before further messages are left out.
const BACKLOG: usize = 1024 * 1024;
/// How many may snoop at a time.
const MAX_STREAMS: usize = 16;

#[derive(Debug)]
struct Watcher {
    token: Token,
    stream: Stream,
    outbox: Outbox,
    /// Whether it ever said anything.
    spoke: bool,
}

/// The listener with those who are connected to it.
#[derive(Debug)]
pub(super) struct Snoop {
    path: String,
    token: Token,
    listener: Listener,
    watchers: Vec<Watcher>,
}

impl Snoop {
    /// Listens on the unix socket `path`; a failure is logged.
    pub(super) fn listen(net: &Net, path: &str, token: Token, poll: &Poll) -> Option<Self> {
        let opened = net.listen(&format!("punix:{path}"), 0, 0);
        let watched = opened.and_then(|mut listener| {
            listener.watch(poll, token, Interest::READ)?;
            Ok(listener)
        });
        match watched {
            Ok(listener) => Some(Self {
                path: path.to_owned(),
                token,
                listener,
                watchers: Vec::new(),
            }),
            Err(error) => {
                log::error!(target: "connmgr", "failed to listen on {path}: {}", base::errno_text(&error));
                None
            }
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) const fn has_listeners(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Handles an event; returns whether `next`, a token that is free, is in use now.
    pub(super) fn handle_event(&mut self, event: Event, next: Token, poll: &Poll) -> bool {
        if event.token == self.token {
            return self.accept(next, poll);
        }
        let mut buffer = [0; 4096];
        self.watchers.retain_mut(|watcher| {
            if watcher.token != event.token || !event.readable {
                return true;
            }
            // What they say does not matter, but that they are there does.
            match watcher.stream.recv(&mut buffer) {
                Ok(n) => {
                    watcher.spoke = true;
                    n > 0
                }
                Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
            }
        });
        false
    }

    fn accept(&mut self, token: Token, poll: &Poll) -> bool {
        let Ok(mut stream) = self.listener.accept() else {
            return false;
        };
        if self.watchers.len() >= MAX_STREAMS {
            // Tools begin with a hello; who says nothing must not lock them out.
            let silent = self.watchers.iter().position(|watcher| !watcher.spoke);
            if let Some(silent) = silent {
                self.watchers.remove(silent);
            }
        }
        let is_full = self.watchers.len() >= MAX_STREAMS;
        if is_full || stream.watch(poll, token, Interest::READ).is_err() {
            return false;
        }
        let config = ConnConfig::new("snoop", ConnKind::Service);
        let hello = crate::conn::Conn::new(config, Instant::ZERO).hello();
        let mut outbox = Outbox::default();
        outbox.push(wire::encode(&hello));
        self.watchers.push(Watcher {
            token,
            stream,
            outbox,
            spoke: false,
        });
        true
    }

    /// Copies a message to everybody who snoops.
    pub(super) fn copy(&mut self, message: &[u8]) {
        for watcher in &mut self.watchers {
            if watcher.outbox.bytes() < BACKLOG {
                watcher.outbox.push(message.to_vec());
            }
        }
    }

    /// Sends what waits.
    pub(super) fn run(&mut self, poll: &Poll) {
        self.watchers.retain_mut(|watcher| {
            let sent = watcher.outbox.send(&mut watcher.stream);
            let interest = Interest::new(true, !watcher.outbox.is_empty());
            let watched = watcher.stream.watch(poll, watcher.token, interest);
            sent.is_ok() && watched.is_ok()
        });
    }
}
