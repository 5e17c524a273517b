//! What sockets of the family `AF_PACKET` have in common (packet(7)).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::check;

/// A non-blocking socket for frames, which receives none until it is bound.
///
/// # Errors
/// As the kernel gives them: without `CAP_NET_RAW`.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain system call without pointers.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the descriptor was just returned and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to the device with `ifindex` for frames of `ethertype` (host byte order).
///
/// # Errors
/// As the kernel gives them: there is no such device.
pub(crate) fn bind(fd: &OwnedFd, ifindex: u32, ethertype: u16) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index(ifindex)?;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a whole socket address of `length` bytes.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), length) })?;
    Ok(())
}

/// The number of a device as the kernel takes it.
///
/// # Errors
/// There can be no such number.
pub(crate) fn index(ifindex: u32) -> io::Result<libc::c_int> {
    libc::c_int::try_from(ifindex).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Sets an option whose value is of the type that it has in C.
///
/// # Errors
/// As the kernel gives them: it does not know the option.
pub(crate) fn set_option<T: Copy>(
    fd: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let (fd, value) = (fd.as_raw_fd(), ptr::from_ref(value).cast());
    // SAFETY: `value` is readable for `length` bytes and the kernel only reads it.
    check(unsafe { libc::setsockopt(fd, level, name, value, length) })?;
    Ok(())
}
