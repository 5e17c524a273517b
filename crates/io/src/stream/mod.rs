//! Byte streams and listeners behind connection names: unix sockets, TCP, TLS, and pairs
//! within the process.  Nothing here blocks.

mod listener;
mod name;
mod net;
mod resolve;
mod socket;

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{RecvFlags, SendFlags};

pub use listener::Listener;
pub use name::{DEFAULT_DSCP, OPENFLOW_PORT, OVSDB_PORT, is_active, is_passive};
pub use net::Net;
pub use resolve::Resolve;

use name::Shown;
use resolve::Lookup;

use crate::event::{Interest, Poll, Token};
use crate::tls::TlsSession;

/// A connection, perhaps still being made.
pub struct Stream {
    name: String,
    fd: OwnedFd,
    connected: bool,
    /// What is left to try of a host that is called by its name.
    dial: Option<Dial>,
    tls: Option<Box<TlsSession>>,
    watched: Option<(Token, Interest)>,
    peer: String,
}

/// A host that is being connected to by its name.
struct Dial {
    /// While its addresses are not known.
    lookup: Option<Lookup>,
    /// Addresses that were not tried, the next one last.
    rest: Vec<SocketAddr>,
    port: u16,
    dscp: u8,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.name).finish()
    }
}

impl Stream {
    pub(crate) fn new(name: String, fd: OwnedFd, connected: bool, peer: String) -> Self {
        Self {
            name,
            fd,
            connected,
            dial: None,
            tls: None,
            watched: None,
            peer,
        }
    }

    /// To a host whose addresses are being looked up.
    fn resolving(name: &str, host: &str, port: u16, dscp: u8, lookup: Lookup) -> io::Result<Self> {
        let fd = lookup.as_fd().try_clone_to_owned()?;
        let mut stream = Self::new(name.to_owned(), fd, false, format!("{host}:{port}"));
        stream.dial = Some(Dial {
            lookup: Some(lookup),
            rest: Vec::new(),
            port,
            dscp,
        });
        Ok(stream)
    }

    pub(crate) fn with_tls(mut self, tls: TlsSession) -> Self {
        self.tls = Some(Box::new(tls));
        self
    }

    /// Two ends of a connection within the process.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = socket::pair()?;
        let end = |fd| Self::new("mem".to_owned(), fd, true, "mem".to_owned());
        Ok((end(a), end(b)))
    }

    /// The name as connected to, or for an accepted connection what its peer is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The peer as status shows it: `IP:PORT`, or the path of a unix socket.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The local address and port of a TCP or TLS connection.
    pub fn local_address(&self) -> Option<SocketAddr> {
        socket::local_address(&self.fd)
    }

    /// The remote address and port of a TCP or TLS connection.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        socket::peer_address(&self.fd)
    }

    /// The common name in the certificate of a TLS peer that was verified.
    pub fn peer_common_name(&self) -> Option<String> {
        self.tls.as_ref()?.peer_common_name()
    }

    /// Goes on connecting (for TLS: and shaking hands).  `Ok` once it is done.
    ///
    /// # Errors
    /// `WouldBlock` while it lasts; otherwise why it failed.
    pub fn connect(&mut self) -> io::Result<()> {
        if !self.connected {
            self.go_on_connecting()?;
            self.connected = true;
            self.dial = None;
        }
        match &mut self.tls {
            Some(tls) => tls.handshake(&self.fd, &self.name),
            None => Ok(()),
        }
    }

    fn go_on_connecting(&mut self) -> io::Result<()> {
        if let Some(dial) = &mut self.dial
            && let Some(lookup) = &dial.lookup
        {
            let ips = lookup.poll()?.into_iter().rev();
            dial.rest = ips.map(|ip| SocketAddr::new(ip, dial.port)).collect();
            dial.lookup = None;
            self.next_address()?;
        }
        loop {
            match socket::finish_connect(&self.fd) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    if self.dial.as_ref().is_none_or(|dial| dial.rest.is_empty()) {
                        return Err(error);
                    }
                    self.next_address()?;
                }
                done => return done,
            }
        }
    }

    /// Begins to connect to the next address of a host that can be tried.
    fn next_address(&mut self) -> io::Result<()> {
        let Some(dial) = &mut self.dial else {
            return Ok(());
        };
        let mut outcome = Err(io::ErrorKind::NotConnected.into());
        while let Some(address) = dial.rest.pop() {
            outcome = socket::connect_tcp(&address, dial.dscp).map(|(fd, _)| fd);
            if outcome.is_ok() {
                self.peer = Shown(address).to_string();
                break;
            }
        }
        // Closing the old descriptor ends that it is watched.
        self.fd = outcome?;
        self.watched = None;
        Ok(())
    }

    /// Receives into `buffer`; `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there yet; otherwise why the connection failed.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.connect()?;
        match &mut self.tls {
            Some(tls) => tls.recv(&self.fd, &self.name, buffer),
            None => Ok(rustix::net::recv(&self.fd, buffer, RecvFlags::empty())?.0),
        }
    }

    /// Sends some of `buffers`; returns how many bytes were taken.
    ///
    /// # Errors
    /// `WouldBlock` if none can be taken now; otherwise why the connection failed.
    pub fn send(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.connect()?;
        match &mut self.tls {
            Some(tls) => tls.send(&self.fd, buffers),
            None => {
                let mut control = rustix::net::SendAncillaryBuffer::default();
                let flags = SendFlags::NOSIGNAL;
                Ok(rustix::net::sendmsg(
                    &self.fd,
                    buffers,
                    &mut control,
                    flags,
                )?)
            }
        }
    }

    /// Goes on with what a TLS session still has to send.
    ///
    /// # Errors
    /// Why the connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) if self.connected => tls.flush(&self.fd),
            _ => Ok(()),
        }
    }

    /// Watches the stream in `poll`, at first or with another interest; cheap if nothing
    /// changes.  While it is connecting it waits for that, whatever `interest` says.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn watch(&mut self, poll: &Poll, token: Token, interest: Interest) -> io::Result<()> {
        let mut interest = interest;
        if self.dial.as_ref().is_some_and(|dial| dial.lookup.is_some()) {
            interest = Interest::READ;
        } else if !self.connected {
            interest = Interest::WRITE;
        } else if let Some(tls) = &self.tls {
            interest = tls.interest(interest);
        }
        match self.watched {
            Some(watched) if watched == (token, interest) => Ok(()),
            Some(_) => poll.modify(&self.fd, token, interest),
            None => poll.add(&self.fd, token, interest),
        }?;
        self.watched = Some((token, interest));
        Ok(())
    }

    /// Ends watching, as before handing the stream to another loop.
    pub fn unwatch(&mut self, poll: &Poll) {
        if self.watched.take().is_some() {
            // The only error is that it is not watched.
            let _ = poll.delete(&self.fd);
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
