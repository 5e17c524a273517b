//! A socket that the kernel sends packets to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use net_netlink::{Message, Messages};
use rustix::net::SocketFlags;
use sys::netlink::Inbox;

use crate::socket::{Protocol, grow, open, port_id};

/// The error number of "No buffer space available".
const ENOBUFS: i32 = 105;

/// A non-blocking socket for packets.
#[derive(Debug)]
pub struct PacketInbox {
    fd: OwnedFd,
    port_id: u32,
}

/// What one call of [`PacketInbox::receive`] brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Messages, of which there may be more if they filled the room.
    pub messages: usize,
    /// Messages that did not fit their room.
    pub cut: usize,
    /// The kernel lost messages since the last call.
    pub overflow: bool,
}

impl PacketInbox {
    /// Opens a socket in the network namespace of the calling thread, in which so many bytes of
    /// packets may wait; the kernel counts some 2,500 for a short one.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn open(waiting: usize) -> io::Result<Self> {
        let fd = open(Protocol::Generic, SocketFlags::NONBLOCK)?;
        grow(&fd, waiting)?;
        let port_id = port_id(&fd)?;
        Ok(Self { fd, port_id })
    }

    /// The number that the kernel sends to.
    pub const fn port_id(&self) -> u32 {
        self.port_id
    }

    /// Takes messages that wait, `most` or as many as `room` holds, and hands each to `visit`.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn receive(
        &self,
        room: &mut Inbox,
        most: usize,
        mut visit: impl FnMut(&Message<'_>),
    ) -> io::Result<Received> {
        let mut received = Received::default();
        loop {
            match room.receive(self.fd.as_fd(), most) {
                Ok(messages) => {
                    received.messages = messages;
                    break;
                }
                // The loss is told once; what was kept comes with the next call.
                Err(e) if e.raw_os_error() == Some(ENOBUFS) && !received.overflow => {
                    received.overflow = true;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(ENOBUFS) => break,
                Err(e) => return Err(e),
            }
        }
        for bytes in room.iter() {
            match bytes {
                Some(bytes) => Messages::new(bytes).for_each(|message| visit(&message)),
                None => received.cut += 1,
            }
        }
        Ok(received)
    }
}

impl AsFd for PacketInbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
