//! Listeners.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::name::Shown;
use super::{Net, Stream, socket};
use crate::event::{Interest, Poll, Token};

/// Connections within the process that wait to be accepted.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    waiting: Arc<Mutex<VecDeque<OwnedFd>>>,
    /// Counts what waits.
    signal: Arc<OwnedFd>,
}

impl Backlog {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        Ok(Self {
            waiting: Arc::default(),
            signal: Arc::new(eventfd(0, flags)?),
        })
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<OwnedFd>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, end: OwnedFd) -> io::Result<()> {
        self.queue().push_back(end);
        rustix::io::write(&*self.signal, &1u64.to_ne_bytes())?;
        Ok(())
    }

    fn pop(&self) -> io::Result<OwnedFd> {
        rustix::io::read(&*self.signal, &mut [0; 8])?;
        let end = self.queue().pop_front();
        end.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

#[derive(Debug)]
pub(super) enum Kind {
    Unix { fd: OwnedFd, path: PathBuf },
    Tcp { fd: OwnedFd },
    Tls { fd: OwnedFd },
    Memory { name: String, backlog: Backlog },
}

/// Where connections are accepted.  A unix socket's file goes when its listener goes.
pub struct Listener {
    name: String,
    net: Net,
    kind: Kind,
    watched: Option<(Token, Interest)>,
    /// The process that made it: after a fork only one may remove the file.
    process: u32,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.name).finish()
    }
}

impl Listener {
    pub(super) fn new(name: String, net: Net, kind: Kind) -> Self {
        Self {
            name,
            net,
            kind,
            watched: None,
            process: std::process::id(),
        }
    }

    /// The name that it was opened with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The TCP port on which it listens.
    pub fn port(&self) -> Option<u16> {
        match &self.kind {
            Kind::Tcp { fd } | Kind::Tls { fd } => Some(socket::local_address(fd)?.port()),
            Kind::Unix { .. } | Kind::Memory { .. } => None,
        }
    }

    /// Takes the next connection.
    ///
    /// # Errors
    /// `WouldBlock` if none waits; otherwise what is wrong with the listener or with the
    /// TLS configuration.  With no file descriptor left, a connection that waited was ended.
    pub fn accept(&mut self) -> io::Result<Stream> {
        let numbered = |fd| {
            let name = format!("unix#{}", self.net.next_connection());
            Stream::new(name.clone(), fd, true, name)
        };
        match &self.kind {
            Kind::Unix { fd, .. } => Ok(numbered(self.net.accept(fd)?)),
            Kind::Memory { backlog, .. } => Ok(numbered(backlog.pop()?)),
            Kind::Tcp { fd } => Ok(accept_ip(&self.net, fd, "tcp")?),
            Kind::Tls { fd } => {
                let stream = accept_ip(&self.net, fd, "ssl")?;
                let session = self.net.tls().accept()?;
                Ok(stream.with_tls(session))
            }
        }
    }

    /// Watches for connections in `poll`.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn watch(&mut self, poll: &Poll, token: Token, interest: Interest) -> io::Result<()> {
        match self.watched {
            Some(watched) if watched == (token, interest) => Ok(()),
            Some(_) => poll.modify(&*self, token, interest),
            None => poll.add(&*self, token, interest),
        }?;
        self.watched = Some((token, interest));
        Ok(())
    }
}

fn accept_ip(net: &Net, fd: &OwnedFd, class: &str) -> io::Result<Stream> {
    let connection = net.accept(fd)?;
    // Small messages of requests and replies must not wait for each other.
    rustix::net::sockopt::set_tcp_nodelay(&connection, true)?;
    let peer = socket::peer_address(&connection);
    let peer = peer.map_or(String::new(), |a| Shown(a).to_string());
    Ok(Stream::new(
        format!("{class}:{peer}"),
        connection,
        true,
        peer,
    ))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Unix { fd, .. } | Kind::Tcp { fd } | Kind::Tls { fd } => fd.as_fd(),
            Kind::Memory { backlog, .. } => backlog.signal.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        match &self.kind {
            Kind::Unix { path, .. } if self.process == std::process::id() => {
                // It may have been removed by hand.
                let _ = std::fs::remove_file(path);
            }
            Kind::Memory { name, .. } => self.net.forget_memory(name),
            _ => {}
        }
    }
}
