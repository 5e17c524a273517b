//! A socket for requests.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use net_netlink::msg::nl;
use net_netlink::{Builder, Message, Messages};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use sys::netlink::{NetlinkOption, set_option};

/// Bytes of answers that are read at once; the kernel's dumps fit in.
const BUFFER: usize = 64 << 10;

/// Times that a dump is repeated when the table changes meanwhile.
const DUMP_TRIES: u32 = 8;

/// Which part of the kernel is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Links, addresses, routes.
    Route,
    /// Generic netlink families.
    Generic,
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
    };
    let family = AddressFamily::NETLINK;
    let flags = flags | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::RAW, flags, protocol)?;
    rustix::net::bind(&fd, &SocketAddrNetlink::new(0, 0))?;
    Ok(fd)
}

impl Socket {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn open(protocol: Protocol) -> io::Result<Self> {
        let fd = open(protocol, SocketFlags::empty())?;
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
            let seq = self.send(request)?;
            let mut found = Vec::new();
            if self.read_dump(seq, &mut |message| found.extend(parse(message)))? {
                return Ok(found);
            }
        }
        Err(io::Error::other("netlink table changes during every dump"))
    }

    /// Reads the answers of a dump; false if it was interrupted.
    fn read_dump(&mut self, seq: u32, visit: &mut dyn FnMut(&Message<'_>)) -> io::Result<bool> {
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
                        return Ok(whole);
                    }
                    None => visit(&message),
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
