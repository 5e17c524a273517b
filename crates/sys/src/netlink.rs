//! Options of netlink sockets.

use std::io;
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
