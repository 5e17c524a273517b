//! Tap devices with virtio-net headers.

use std::fs::OpenOptions;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::{check, device_name};

const OFFLOAD_CHECKSUM: libc::c_uint = 0x01;
const OFFLOAD_TSO4: libc::c_uint = 0x02;
const OFFLOAD_TSO6: libc::c_uint = 0x04;
const OFFLOAD_ECN: libc::c_uint = 0x08;
const OFFLOAD_USO4: libc::c_uint = 0x20;
const OFFLOAD_USO6: libc::c_uint = 0x40;

/// Length of the virtio-net header before each frame.
pub const HEADER: usize = 10;

/// One end of a tap: the device exists as long as it is open.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
}

impl Tap {
    /// Makes the tap device `name`, or takes hold of a persistent one of that name.
    ///
    /// # Errors
    /// As the kernel gives them: if `/dev/net/tun` is not there, without `CAP_NET_ADMIN`, if another device has the
    /// name, or if another process has the tap open.
    pub fn open(name: &str) -> io::Result<Self> {
        let ifr_name = device_name(name)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let fd = OwnedFd::from(file);
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let request = libc::ifreq {
            ifr_name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_flags: flags as libc::c_short,
            },
        };
        // SAFETY: `request` is a whole `ifreq`, which this request reads and writes.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw const request) })?;
        let tap = Self { fd };
        let tcp = OFFLOAD_CHECKSUM | OFFLOAD_TSO4 | OFFLOAD_TSO6 | OFFLOAD_ECN;
        tap.set_offload(tcp | OFFLOAD_USO4 | OFFLOAD_USO6)
            .or_else(|_| tap.set_offload(tcp))?;
        Ok(tap)
    }

    /// Says what the kernel may leave to be computed in frames that it hands out.
    fn set_offload(&self, flags: libc::c_uint) -> io::Result<()> {
        let flags = libc::c_ulong::from(flags);
        // SAFETY: this request takes its argument by value.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNSETOFFLOAD, flags) })?;
        Ok(())
    }

    /// Receives one frame into `frame` and its virtio-net header; `None` if none is there.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn receive(
        &self,
        header: &mut [u8; HEADER],
        frame: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let mut vectors = [IoSliceMut::new(header), IoSliceMut::new(frame)];
        match rustix::io::readv(&self.fd, &mut vectors) {
            Ok(len) => Ok(Some(len.saturating_sub(HEADER))),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Sends one frame with its virtio-net header.
    ///
    /// # Errors
    /// `WouldBlock` if the queue is full; else as the kernel gives them, for example if the device is down.
    pub fn send(&self, header: &[u8; HEADER], frame: &[u8]) -> io::Result<()> {
        rustix::io::writev(&self.fd, &[IoSlice::new(header), IoSlice::new(frame)])?;
        Ok(())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
