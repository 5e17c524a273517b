//! Names of hosts become addresses on a thread of their own: the system's resolver may take
//! seconds, which nobody here may wait for.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What asks the system for a host's addresses; may take its time.
pub type Resolve = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// Asks the system: its files and name servers, in the order that it is set up for.
pub(super) fn system() -> Resolve {
    Arc::new(|host| {
        let addresses = (host, 0).to_socket_addrs()?;
        let mut ips: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
        ips.dedup();
        Ok(ips)
    })
}

/// What a lookup that several wait for has found.
#[derive(Default)]
struct Found {
    answer: Option<Result<Vec<IpAddr>, String>>,
    waiting: Vec<Arc<OwnedFd>>,
}

/// Looks names up: each name on one thread at a time, however many ask for it.
pub(super) struct Resolver {
    resolve: Resolve,
    under_way: Arc<Mutex<HashMap<String, Arc<Mutex<Found>>>>>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// A lookup that somebody waits for.
pub(super) struct Lookup {
    found: Arc<Mutex<Found>>,
    /// Becomes readable when the answer is there.
    wake: Arc<OwnedFd>,
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").finish_non_exhaustive()
    }
}

impl Resolver {
    pub(super) fn new(resolve: Resolve) -> Self {
        Self {
            resolve,
            under_way: Arc::default(),
        }
    }

    /// Begins to look `host` up.
    pub(super) fn look_up(&self, host: &str) -> io::Result<Lookup> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags)?);
        let mut under_way = lock(&self.under_way);
        let known = under_way.get(host).cloned();
        let found = known.clone().unwrap_or_default();
        lock(&found).waiting.push(Arc::clone(&wake));
        if known.is_none() {
            self.start(host, &found)?;
            under_way.insert(host.to_owned(), Arc::clone(&found));
        }
        Ok(Lookup { found, wake })
    }

    fn start(&self, host: &str, found: &Arc<Mutex<Found>>) -> io::Result<()> {
        let (host, found) = (host.to_owned(), Arc::clone(found));
        let (resolve, under_way) = (Arc::clone(&self.resolve), Arc::clone(&self.under_way));
        let thread = thread::Builder::new().name("resolver".to_owned());
        thread.spawn(move || {
            let answer = match resolve(&host) {
                Ok(ips) if ips.is_empty() => Err("no address".to_owned()),
                Ok(ips) => Ok(ips),
                Err(error) => Err(base::errno_text(&error)),
            };
            // Who asks from now on is answered anew.
            lock(&under_way).remove(&host);
            let mut found = lock(&found);
            found.answer = Some(answer);
            for wake in found.waiting.drain(..) {
                // The counter cannot be full.
                let _ = rustix::io::write(&wake, &1u64.to_ne_bytes());
            }
        })?;
        Ok(())
    }
}

impl Lookup {
    /// The addresses, of which there is at least one.
    ///
    /// # Errors
    /// `WouldBlock` while there is no answer; otherwise why there is no address.
    pub(super) fn poll(&self) -> io::Result<Vec<IpAddr>> {
        match &lock(&self.found).answer {
            None => Err(io::ErrorKind::WouldBlock.into()),
            Some(Ok(ips)) => Ok(ips.clone()),
            Some(Err(text)) => Err(io::Error::new(io::ErrorKind::NotFound, text.clone())),
        }
    }
}

impl AsFd for Lookup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
