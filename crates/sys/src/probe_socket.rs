//! Packet sockets for measuring: plain frames of one Ethernet type with the time at which the
//! kernel had them, so that a late reader does not spoil the figure.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use crate::{af_packet, check};

/// Frames that one call sends at most.
pub const BATCH: usize = 64;

/// Bytes of frames that may wait.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;

/// Room for the time stamp's control message.
const CONTROL: usize = 64;

/// A non-blocking packet socket of one device.
#[derive(Debug)]
pub struct ProbeSocket {
    fd: OwnedFd,
}

impl ProbeSocket {
    /// Opens a socket on the device with `ifindex` that receives frames of `ethertype`, or none
    /// if that is 0.
    ///
    /// # Errors
    /// As the kernel gives them: without `CAP_NET_RAW`, or if there is no such device.
    pub fn open(ifindex: u32, ethertype: u16) -> io::Result<Self> {
        let fd = af_packet::open()?;
        if ethertype != 0 {
            let solid = libc::SOL_SOCKET;
            af_packet::set_option(&fd, solid, libc::SO_TIMESTAMPNS, &1)?;
            af_packet::set_option(&fd, solid, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)?;
        }
        af_packet::bind(&fd, ifindex, ethertype)?;
        Ok(Self { fd })
    }

    /// Takes a frame into `buffer`, cut to it: its length and when the kernel had it, since
    /// 1970 (UTC).  `None` if none waits.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Duration)>> {
        let mut control = [0u64; CONTROL / 8];
        let mut vector = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = CONTROL;
        // SAFETY: the message points to `vector`, `buffer` and `control`, which are alive, writable and distinct.
        let length = unsafe {
            libc::recvmsg(
                self.fd.as_raw_fd(),
                &raw mut message,
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(error),
            };
        };
        let Some(time) = stamp(&message) else {
            return Err(io::Error::other("a frame without a time stamp"));
        };
        Ok(Some((length.min(buffer.len()), time)))
    }

    /// Sends up to [`BATCH`] frames; returns how many the device took.
    ///
    /// # Errors
    /// Why the first frame could not be sent: `WouldBlock` or errno 105 (no buffer space) if the
    /// device's queue is full.
    pub fn send<F: AsRef<[u8]>>(&self, frames: &[F]) -> io::Result<usize> {
        let count = frames.len().min(BATCH);
        let mut vectors: [MaybeUninit<libc::iovec>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let mut messages: [MaybeUninit<libc::mmsghdr>; BATCH] = [MaybeUninit::uninit(); BATCH];
        for (i, frame) in frames.iter().take(count).enumerate() {
            let frame = frame.as_ref();
            let vector = vectors[i].write(libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            });
            // SAFETY: all-zero is a valid value of this plain C structure.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            messages[i].write(message);
        }
        // SAFETY: the first `count` messages are initialised and point to frames that are alive; the kernel only reads
        // them.
        let sent = check(unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        })?;
        Ok(sent.unsigned_abs() as usize)
    }
}

impl AsFd for ProbeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The time stamp in a received message's control data.
fn stamp(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: the kernel filled the control buffer and its length, and `CMSG_*` stay within it.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = control.as_ref() {
            let whole = libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as usize;
            if header.cmsg_level == libc::SOL_SOCKET
                && header.cmsg_type == libc::SCM_TIMESTAMPNS
                && header.cmsg_len >= whole
            {
                let time: libc::timespec = ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                let seconds = u64::try_from(time.tv_sec).ok()?;
                return Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?));
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
    }
    None
}
