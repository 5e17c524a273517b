//! How a process reaches others: what connection names mean in it.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::Dirs;

use super::listener::{Backlog, Kind};
use super::name::{self, Active, Host, Passive, Shown};
use super::resolve::{self, Resolve, Resolver};
use super::{Listener, Stream, socket};
use crate::tls::Tls;

#[derive(Debug)]
struct Inner {
    run: PathBuf,
    tls: Tls,
    resolver: Resolver,
    connections: AtomicU64,
    memory: Mutex<HashMap<String, Backlog>>,
    /// Kept for [`Net::accept`].
    spare: Mutex<Option<OwnedFd>>,
}

/// What connection names need: the run directory, the TLS configuration, and the listeners
/// within the process (`pmem:NAME`, reached by `mem:NAME`).  Clones are the same.
#[derive(Clone, Debug)]
pub struct Net(Arc<Inner>);

impl Net {
    /// With unix sockets relative to the run directory of `dirs` and no TLS configured.
    pub fn new(dirs: &Dirs) -> Self {
        Self::with_resolver(dirs, resolve::system())
    }

    /// The same, with hosts looked up by `resolve` in place of the system.
    pub fn with_resolver(dirs: &Dirs, resolve: Resolve) -> Self {
        Self(Arc::new(Inner {
            run: dirs.run.clone(),
            tls: Tls::default(),
            resolver: Resolver::new(resolve),
            connections: AtomicU64::new(0),
            memory: Mutex::default(),
            spare: Mutex::default(),
        }))
    }

    /// The TLS configuration of `ssl:` and `pssl:`.
    pub fn tls(&self) -> &Tls {
        &self.0.tls
    }

    pub(super) fn next_connection(&self) -> u64 {
        self.0.connections.fetch_add(1, Ordering::Relaxed)
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, HashMap<String, Backlog>> {
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget_memory(&self, name: &str) {
        self.memory().remove(name);
    }

    /// Takes the next connection of a listening socket.  With no file descriptor left for it, it
    /// is ended: it would keep the listener ready, and thus the event loop busy, and whoever
    /// made it waiting.
    pub(super) fn accept(&self, listener: &OwnedFd) -> io::Result<OwnedFd> {
        let error = match socket::accept(listener) {
            Err(error) if socket::is_out_of_files(&error) => error,
            outcome => return outcome,
        };
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        *spare = None;
        let ended = socket::accept(listener).map(drop);
        *spare = socket::spare().ok();
        match ended {
            // The system looks for a descriptor first, and for a connection then.
            Err(other) if other.kind() == io::ErrorKind::WouldBlock => Err(other),
            _ => Err(error),
        }
    }

    /// Sets aside what `accept` needs.
    fn keep_spare(&self) {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.is_none() {
            *spare = socket::spare().ok();
        }
    }

    /// Begins to connect to `name`, at `default_port` if it gives none.  `dscp` marks the
    /// packets of TCP and TLS.
    ///
    /// # Errors
    /// `EAFNOSUPPORT` for a name that means nothing, `ENOPROTOOPT` if TLS is not
    /// configured, or why connecting failed at once.
    pub fn connect(&self, name: &str, default_port: u16, dscp: u8) -> io::Result<Stream> {
        let inet = |host| match host {
            Host::Address(address) => {
                let (fd, connected) = socket::connect_tcp(&address, dscp)?;
                let peer = Shown(address).to_string();
                Ok::<_, io::Error>(Stream::new(name.to_owned(), fd, connected, peer))
            }
            Host::Name(host, port) => {
                let lookup = self.0.resolver.look_up(&host)?;
                Stream::resolving(name, &host, port, dscp, lookup)
            }
        };
        match name::parse_active(name, default_port, &self.0.run)? {
            Active::Unix(path) => {
                let fd = socket::connect_unix(&path)?;
                let peer = path.display().to_string();
                Ok(Stream::new(name.to_owned(), fd, true, peer))
            }
            Active::Tcp(host) => inet(host),
            Active::Tls(host) => {
                let session = match &host {
                    Host::Address(address) => self.tls().connect(address.ip().into())?,
                    Host::Name(name, _) => self.tls().connect_by_name(name)?,
                };
                Ok(inet(host)?.with_tls(session))
            }
            Active::Memory(end) => {
                let backlog = self.memory().get(&end).cloned();
                let backlog = backlog.ok_or(rustix::io::Errno::CONNREFUSED)?;
                let (ours, theirs) = socket::pair()?;
                backlog.push(theirs)?;
                Ok(Stream::new(name.to_owned(), ours, true, name.to_owned()))
            }
        }
    }

    /// Begins to listen on `name`, at `default_port` if it gives none.
    ///
    /// # Errors
    /// `EAFNOSUPPORT` for a name that means nothing, or why it cannot listen there.
    pub fn listen(&self, name: &str, default_port: u16, dscp: u8) -> io::Result<Listener> {
        let target = name.split_once(':').map_or("", |(_, rest)| rest);
        self.keep_spare();
        let kind = match name::parse_passive(name, default_port, &self.0.run)? {
            Passive::Unix(path) => Kind::Unix {
                fd: socket::listen_unix(&path)?,
                path,
            },
            Passive::Tcp(address) => Kind::Tcp {
                fd: socket::listen_tcp(&address, dscp, target)?,
            },
            // Key and certificate may be configured later; until then who connects is refused.
            Passive::Tls(address) => Kind::Tls {
                fd: socket::listen_tcp(&address, dscp, target)?,
            },
            Passive::Memory(name) => {
                let backlog = Backlog::new()?;
                self.memory().insert(name.clone(), backlog.clone());
                Kind::Memory { name, backlog }
            }
        };
        Ok(Listener::new(name.to_owned(), self.clone(), kind))
    }
}
