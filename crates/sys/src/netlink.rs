//! Netlink sockets: options, and many messages received by one call.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::check;

/// An option of a netlink socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetlinkOption {
    /// Joins a multicast group.
    Join(u32),
    /// Errors come with the kernel's explanation.
    ExtendedAck,
    /// Errors do not repeat the request.
    CapAck,
}

/// Sets an option.
///
/// # Errors
/// As the kernel gives them.
pub fn set_option(fd: BorrowedFd<'_>, option: NetlinkOption) -> io::Result<()> {
    let (name, value) = match option {
        NetlinkOption::Join(group) => (libc::NETLINK_ADD_MEMBERSHIP, group),
        NetlinkOption::ExtendedAck => (libc::NETLINK_EXT_ACK, 1),
        NetlinkOption::CapAck => (libc::NETLINK_CAP_ACK, 1),
    };
    let len = size_of_val(&value) as libc::socklen_t;
    let value = ptr::from_ref(&value).cast();
    // SAFETY: `value` is readable for `len` bytes and the kernel only reads it.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_NETLINK, name, value, len) })?;
    Ok(())
}

/// Messages received by one call at most.
pub const MAX_MESSAGES: usize = 64;

/// Room for messages that are received together.
#[derive(Debug)]
pub struct Inbox {
    arena: Vec<u8>,
    room: usize,
    /// Length of each message that came, and whether it is whole.
    came: Vec<(usize, bool)>,
}

impl Inbox {
    /// Room for `count` messages (at most [`MAX_MESSAGES`]) of `room` bytes each.  Memory is used
    /// only as far as messages fill it.
    pub fn new(count: usize, room: usize) -> Self {
        let count = count.clamp(1, MAX_MESSAGES);
        Self {
            arena: vec![0; count * room],
            room,
            came: Vec::with_capacity(count),
        }
    }

    /// Takes the messages that wait in a socket, `most` or as many as there is room for; never
    /// blocks.  Returns how many came; those of the last call are gone.
    ///
    /// # Errors
    /// As the kernel gives them: errno 105 (no buffer space) once after it lost messages.
    pub fn receive(&mut self, fd: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        self.came.clear();
        let mut vectors: [MaybeUninit<libc::iovec>; MAX_MESSAGES] =
            [MaybeUninit::uninit(); MAX_MESSAGES];
        let mut messages: [MaybeUninit<libc::mmsghdr>; MAX_MESSAGES] =
            [MaybeUninit::uninit(); MAX_MESSAGES];
        let mut count = 0;
        for (slot, room) in self
            .arena
            .chunks_exact_mut(self.room)
            .take(most)
            .enumerate()
        {
            let vector = vectors[slot].write(libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: room.len(),
            });
            // SAFETY: all-zero is a valid value of this plain C structure.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            messages[slot].write(message);
            count += 1;
        }
        // SAFETY: the first `count` messages are initialised; their vectors point to distinct parts of the arena, which
        // is borrowed exclusively.
        let received = check(unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                count,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        });
        let received = match received {
            Ok(received) => received.unsigned_abs() as usize,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Err(e) => return Err(e),
        };
        for message in messages.iter().take(received) {
            // SAFETY: this message was initialised above and completed by the kernel.
            let message = unsafe { message.assume_init_ref() };
            let is_whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
            let len = (message.msg_len as usize).min(self.room);
            self.came.push((len, is_whole));
        }
        Ok(received)
    }

    /// The messages that came, in order; one that did not fit is nothing.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let rooms = self.arena.chunks_exact(self.room);
        let message = |((len, is_whole), room): (&(usize, bool), _)| -> Option<&[u8]> {
            let room: &[u8] = room;
            is_whole.then(|| &room[..*len])
        };
        self.came.iter().zip(rooms).map(message)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn messages_come_together() {
        let (one, other) = UnixDatagram::pair().unwrap();
        let mut inbox = Inbox::new(3, 8);
        assert_eq!(inbox.receive(other.as_fd(), 9).unwrap(), 0);
        for message in [&b"first"[..], b"too long for it", b"third", b"fourth"] {
            one.send(message).unwrap();
        }
        assert_eq!(inbox.receive(other.as_fd(), 9).unwrap(), 3);
        let came: Vec<_> = inbox.iter().collect();
        assert_eq!(came, [Some(&b"first"[..]), None, Some(b"third")]);
        one.send(b"fifth").unwrap();
        assert_eq!(inbox.receive(other.as_fd(), 1).unwrap(), 1);
        assert_eq!(inbox.iter().collect::<Vec<_>>(), [Some(&b"fourth"[..])]);
    }
}
