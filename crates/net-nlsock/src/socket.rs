//! A socket for requests.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use net_netlink::msg::nl;
use net_netlink::{Builder, Message, Messages};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use sys::netlink::{NetlinkOption, set_option};

use crate::train::{Answer, Train};

/// Bytes of answers that are read at once; the kernel's dumps fit in, and so does an answer that
/// repeats the longest request.
const BUFFER: usize = 128 << 10;

/// Bytes of answers that may wait: those to a whole train of requests do.
const WAITING: usize = 1 << 20;

/// The error number of "No buffer space available".
const ENOBUFS: i32 = 105;

/// Times that a dump is repeated when the table changes meanwhile.
const DUMP_TRIES: u32 = 8;

/// Which part of the kernel is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Links, addresses, routes.
    Route,
    /// Generic netlink families.
    Generic,
    /// Netfilter: tracked connections.
    Netfilter,
}

/// Whether a dump is all that there was at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It is.
    Whole,
    /// The table changed meanwhile: something may be missing or twice in it.
    Interrupted,
}

/// A blocking socket: one request at a time.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    seq: u32,
    buf: Vec<u8>,
}

pub(crate) fn open(protocol: Protocol, flags: SocketFlags) -> io::Result<OwnedFd> {
    let protocol = match protocol {
        // NETLINK_ROUTE is protocol 0, the default.
        Protocol::Route => None,
        Protocol::Generic => Some(rustix::net::netlink::GENERIC),
        Protocol::Netfilter => Some(rustix::net::netlink::NETFILTER),
    };
    let family = AddressFamily::NETLINK;
    let flags = flags | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::RAW, flags, protocol)?;
    rustix::net::bind(&fd, &SocketAddrNetlink::new(0, 0))?;
    Ok(fd)
}

/// Lets `bytes` wait in a socket, or as many as the system allows.
pub(crate) fn grow(fd: &OwnedFd, bytes: usize) -> io::Result<()> {
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(fd, bytes).is_err() {
        rustix::net::sockopt::set_socket_recv_buffer_size(fd, bytes)?;
    }
    Ok(())
}

/// The number that the kernel knows a socket by, for messages that it sends unasked.
///
/// # Errors
/// As the kernel gives them.
pub fn port_id(fd: impl AsFd) -> io::Result<u32> {
    let address = rustix::net::getsockname(fd)?;
    let address = SocketAddrNetlink::try_from(address)?;
    Ok(address.pid())
}

impl Socket {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn open(protocol: Protocol) -> io::Result<Self> {
        let fd = open(protocol, SocketFlags::empty())?;
        grow(&fd, WAITING)?;
        // Kernels before 4.12 have no explanations, which is no reason to fail.
        let _ = set_option(fd.as_fd(), NetlinkOption::ExtendedAck);
        let _ = set_option(fd.as_fd(), NetlinkOption::CapAck);
        Ok(Self {
            fd,
            seq: 0,
            buf: vec![0; BUFFER],
        })
    }

    fn send(&mut self, request: &mut Builder) -> io::Result<u32> {
        self.seq = self.seq.wrapping_add(1);
        let bytes = request.finish(self.seq)?;
        rustix::net::send(&self.fd, bytes, SendFlags::empty())?;
        Ok(self.seq)
    }

    /// Receives one datagram of answers.
    fn receive(&mut self) -> io::Result<usize> {
        loop {
            let flags = RecvFlags::TRUNC;
            match rustix::net::recv(&self.fd, &mut self.buf[..], flags) {
                Ok((_, len)) if len > self.buf.len() => {
                    return Err(io::Error::other("netlink answer is too long"));
                }
                Ok((_, len)) => return Ok(len),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Sends a request that the kernel acknowledges, and waits for the outcome.
    ///
    /// # Errors
    /// What the kernel answers, with its explanation if it gives one.
    pub fn execute(&mut self, request: &mut Builder) -> io::Result<()> {
        request.add_flags(nl::ACK);
        self.transact(request, |_| ())
    }

    /// Sends a request, hands each answer to `visit` and returns at the acknowledgement.
    ///
    /// # Errors
    /// What the kernel answers, with its explanation if it gives one.
    pub fn transact(
        &mut self,
        request: &mut Builder,
        mut visit: impl FnMut(&Message<'_>),
    ) -> io::Result<()> {
        request.add_flags(nl::ACK);
        let seq = self.send(request)?;
        loop {
            let len = self.receive()?;
            for message in Messages::new(&self.buf[..len]) {
                // Answers to earlier requests that were given up are passed over.
                if message.header.seq != seq {
                    continue;
                }
                match message.outcome() {
                    Some(outcome) => return Ok(outcome?),
                    None => visit(&message),
                }
            }
        }
    }

    /// Sends a dump request and gives what `parse` makes of each answer.  If the table changes meanwhile the
    /// dump is repeated.
    ///
    /// # Errors
    /// What the kernel answers, or that the table never held still.
    pub fn dump<T>(
        &mut self,
        request: &mut Builder,
        mut parse: impl FnMut(&Message<'_>) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        for _ in 0..DUMP_TRIES {
            let mut found = Vec::new();
            match self.visit(request, |message| found.extend(parse(message))) {
                Ok(Completeness::Whole) => return Ok(found),
                Ok(Completeness::Interrupted) => {}
                Err(e) if e.raw_os_error() == Some(ENOBUFS) => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::other("netlink table changes during every dump"))
    }

    /// Sends a dump request and hands each answer to `visit` as it comes, so that a long table is
    /// never held as a whole.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn visit(
        &mut self,
        request: &mut Builder,
        mut visit: impl FnMut(&Message<'_>),
    ) -> io::Result<Completeness> {
        let seq = self.send(request)?;
        let mut whole = true;
        loop {
            let len = self.receive()?;
            for message in Messages::new(&self.buf[..len]) {
                if message.header.seq != seq {
                    continue;
                }
                whole &= message.header.flags & nl::DUMP_INTERRUPTED == 0;
                match message.outcome() {
                    Some(outcome) => {
                        outcome?;
                        return Ok(if whole {
                            Completeness::Whole
                        } else {
                            Completeness::Interrupted
                        });
                    }
                    None => visit(&message),
                }
            }
        }
    }

    /// Sends many requests by as few calls as possible and hands the answers to `visit` with the
    /// number of the request in the train.  Of each request that wants an acknowledgement
    /// ([`nl::ACK`]) the outcome is in `visit`; of one that does not, only a refusal is.
    ///
    /// The kernel carries out the requests in order before the call returns.
    ///
    /// # Errors
    /// The requests could not be sent.  Answers that were lost are errno 105 to those who wanted
    /// them.
    pub fn run(
        &mut self,
        train: &mut Train,
        mut visit: impl FnMut(usize, Answer<'_>),
    ) -> io::Result<()> {
        let first = self.seq.wrapping_add(1);
        let mut done = 0;
        while done < train.requests.len() {
            let (bytes, count) = train.stretch(done, first);
            rustix::net::send(&self.fd, bytes, SendFlags::empty())?;
            self.seq = self.seq.wrapping_add(count);
            self.collect(train, first, &mut visit)?;
            done += count as usize;
        }
        for (index, request) in train.requests.iter().enumerate() {
            if request.awaited {
                let lost = io::Error::from_raw_os_error(ENOBUFS);
                visit(index, Answer::Outcome(Err(lost)));
            }
        }
        train.clear();
        Ok(())
    }

    /// Reads the answers that are there.
    fn collect(
        &mut self,
        train: &mut Train,
        first: u32,
        visit: &mut dyn FnMut(usize, Answer<'_>),
    ) -> io::Result<()> {
        loop {
            let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
            let len = match rustix::net::recv(&self.fd, &mut self.buf[..], flags) {
                Ok((_, len)) => len.min(self.buf.len()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => continue,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(e.into()),
            };
            for message in Messages::new(&self.buf[..len]) {
                let index = message.header.seq.wrapping_sub(first) as usize;
                let Some(request) = train.requests.get_mut(index) else {
                    continue;
                };
                match message.outcome() {
                    Some(outcome) => {
                        request.awaited = false;
                        let outcome = outcome.map_err(io::Error::from);
                        visit(index, Answer::Outcome(outcome));
                    }
                    None => visit(index, Answer::Message(&message)),
                }
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
