//! What the system-call crates do not wrap, behind safe types: packet sockets with
//! virtio-net headers, taps, network namespaces and device requests.
//!
//! This is the only crate with `unsafe` code; each block says why it is sound.

mod af_packet;
pub mod alloc;
pub mod clock;
pub mod crash;
pub mod ethtool;
pub mod netlink;
pub mod netns;
pub mod packet_socket;
pub mod probe_socket;
pub mod process;
pub mod signal;
pub mod tap;
pub mod thread;
pub mod user;

use std::io;

/// The result of a system call that returns a negative number on failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A network device's name as the kernel's requests carry it.
///
/// # Errors
/// `InvalidInput` if the name is empty, too long (over 15 bytes) or holds a zero byte.
fn device_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        let text = format!("\"{name}\" is not a network device name");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut raw = [0; libc::IFNAMSIZ];
    for (to, from) in raw.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
    Ok(raw)
}
