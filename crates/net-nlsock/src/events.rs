//! Events that the kernel multicasts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use net_netlink::{Message, Messages};
use rustix::net::{RecvFlags, SocketFlags};
use sys::netlink::{NetlinkOption, set_option};

use crate::socket::{Protocol, grow, open};

const BUFFER: usize = 64 << 10;

/// Bytes of events that may wait.
const WAITING: usize = 4 << 20;

/// Whether all events were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// All.
    Complete,
    /// Some were lost: what they are about must be read anew.
    Lost,
}

/// A non-blocking socket for the events of multicast groups.
#[derive(Debug)]
pub struct EventSocket {
    fd: OwnedFd,
    buf: Vec<u8>,
}

impl EventSocket {
    /// Opens a socket in the network namespace of the calling thread that hears of `groups`.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn open(protocol: Protocol, groups: &[u32]) -> io::Result<Self> {
        let fd = open(protocol, SocketFlags::NONBLOCK)?;
        grow(&fd, WAITING)?;
        for group in groups {
            set_option(fd.as_fd(), NetlinkOption::Join(*group))?;
        }
        Ok(Self {
            fd,
            buf: vec![0; BUFFER],
        })
    }

    /// Hands each event that is there to `visit`.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn read(&mut self, mut visit: impl FnMut(&Message<'_>)) -> io::Result<Events> {
        let mut events = Events::Complete;
        loop {
            match rustix::net::recv(&self.fd, &mut self.buf[..], RecvFlags::TRUNC) {
                Ok((_, len)) if len > self.buf.len() => events = Events::Lost,
                Ok((_, len)) => {
                    for message in Messages::new(&self.buf[..len]) {
                        visit(&message);
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(events),
                Err(rustix::io::Errno::NOBUFS) => events = Events::Lost,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl AsFd for EventSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
