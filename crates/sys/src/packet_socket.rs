//! Packet sockets that pass frames with what is still to be computed in them: each frame
//! goes with a virtio-net header, so that partial checksums and frames of up to 64 KiB pass whole.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use crate::{af_packet, check};

/// Frames handled by one call at most.
pub const BATCH: usize = 32;

/// Length of the virtio-net header before each frame.
pub const HEADER: usize = 10;

/// Bytes of frames that may wait in a socket, so that some tens of 64 KiB frames do.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// Room for one `tpacket_auxdata` control message.
const CONTROL: usize = 64;

/// The default tag type when the kernel reports a tag without one.
const TPID_8021Q: u16 = 0x8100;

/// What came with a received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Length of the frame in its buffer.
    pub len: usize,
    /// Its virtio-net header.
    pub header: [u8; HEADER],
    /// The outermost VLAN tag, which the kernel keeps apart from the frame: (type, tag
    /// control information).
    pub vlan: Option<(u16, u16)>,
    /// The frame did not fit its buffer.
    pub truncated: bool,
}

/// A non-blocking packet socket bound to one device.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket on the device with `ifindex` that receives every frame that arrives there
    /// (the device is made promiscuous as long as the socket is open) but not those that this host sends.
    ///
    /// # Errors
    /// As the kernel gives them: without `CAP_NET_RAW`, if there is no such device, or if the kernel is older than
    /// 4.20.
    pub fn open(ifindex: u32) -> io::Result<Self> {
        let socket = Self {
            fd: af_packet::open()?,
        };
        let packet = libc::SOL_PACKET;
        socket.set_option(packet, libc::PACKET_AUXDATA, &1)?;
        socket.set_option(packet, libc::PACKET_VNET_HDR, &1)?;
        socket.set_option(packet, libc::PACKET_IGNORE_OUTGOING, &1)?;
        let solid = libc::SOL_SOCKET;
        if socket
            .set_option(solid, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)
            .is_err()
        {
            socket.set_option(solid, libc::SO_RCVBUF, &RECEIVE_BUFFER)?;
        }
        socket.bind(ifindex)?;
        Ok(socket)
    }

    /// Moves the socket to the device with `ifindex`, when the one that it was bound to has gone and a new one taken
    /// its place.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn rebind(&self, ifindex: u32) -> io::Result<()> {
        self.bind(ifindex)?;
        // The end of the old device is still to be reported; it must not stop what is sent now.
        rustix::net::sockopt::socket_error(&self.fd)?.ok();
        Ok(())
    }

    fn bind(&self, ifindex: u32) -> io::Result<()> {
        af_packet::bind(&self.fd, ifindex, libc::ETH_P_ALL as u16)?;
        let membership = libc::packet_mreq {
            mr_ifindex: af_packet::index(ifindex)?,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set_option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        Ok(())
    }

    fn set_option<T: Copy>(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: &T,
    ) -> io::Result<()> {
        af_packet::set_option(&self.fd, level, name, value)
    }

    /// Frames that the kernel dropped since the last call because nobody took them in time.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn take_dropped(&self) -> io::Result<u32> {
        let mut stats = [0u32; 2];
        let mut len = size_of_val(&stats) as libc::socklen_t;
        let fd = self.fd.as_raw_fd();
        // SAFETY: `stats` is writable for `len` bytes, the size of `struct tpacket_stats`.
        check(unsafe {
            libc::getsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                stats.as_mut_ptr().cast(),
                &raw mut len,
            )
        })?;
        Ok(stats[1])
    }

    /// Receives up to [`BATCH`] frames that are there, each into the buffer that `room` gives of
    /// an element of `buffers`, in order; says what each is to `filled`.  Returns how many came: zero if none is there.
    ///
    /// # Errors
    /// As the kernel gives them: `NetworkDown` once when the device goes down.
    pub fn receive<B>(
        &self,
        buffers: &mut [B],
        room: for<'a> fn(&'a mut B) -> &'a mut [u8],
        mut filled: impl FnMut(&mut B, Received),
    ) -> io::Result<usize> {
        let count = buffers.len().min(BATCH);
        let mut headers = [[0u8; HEADER]; BATCH];
        let mut controls = [[0u64; CONTROL / 8]; BATCH];
        let mut vectors: [MaybeUninit<[libc::iovec; 2]>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let mut messages: [MaybeUninit<libc::mmsghdr>; BATCH] = [MaybeUninit::uninit(); BATCH];
        for i in 0..count {
            let frame = room(&mut buffers[i]);
            let vector = vectors[i].write([
                libc::iovec {
                    iov_base: headers[i].as_mut_ptr().cast(),
                    iov_len: HEADER,
                },
                libc::iovec {
                    iov_base: frame.as_mut_ptr().cast(),
                    iov_len: frame.len(),
                },
            ]);
            let control = (controls[i].as_mut_ptr().cast(), CONTROL);
            messages[i].write(message(vector, control));
        }
        // SAFETY: the first `count` messages are initialised and point to buffers that are alive, distinct and
        // writable: `headers`, `controls` and the frames borrowed through `buffers`.
        let received = check(unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        });
        let received = match received {
            Ok(received) => received.unsigned_abs() as usize,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(e) => return Err(e),
        };
        for i in 0..received.min(count) {
            // SAFETY: this message was initialised above and completed by the kernel.
            let message = unsafe { messages[i].assume_init_ref() };
            let what = Received {
                len: (message.msg_len as usize).saturating_sub(HEADER),
                header: headers[i],
                vlan: vlan_of(&message.msg_hdr),
                truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0
                    || (message.msg_len as usize) < HEADER,
            };
            filled(&mut buffers[i], what);
        }
        Ok(received)
    }

    /// Sends frames, each with the virtio-net header that `frame` gives with it.  Returns how many were sent;
    /// those after them were not.
    ///
    /// # Errors
    /// Why the first frame could not be sent: `WouldBlock` if the transmit queue is full.
    pub fn send<B>(
        &self,
        buffers: &[B],
        frame: for<'a> fn(&'a B) -> ([u8; HEADER], &'a [u8]),
    ) -> io::Result<usize> {
        let count = buffers.len().min(BATCH);
        let mut headers = [[0u8; HEADER]; BATCH];
        let mut vectors: [MaybeUninit<[libc::iovec; 2]>; BATCH] = [MaybeUninit::uninit(); BATCH];
        let mut messages: [MaybeUninit<libc::mmsghdr>; BATCH] = [MaybeUninit::uninit(); BATCH];
        for i in 0..count {
            let (header, data) = frame(&buffers[i]);
            headers[i] = header;
            let vector = vectors[i].write([
                libc::iovec {
                    iov_base: headers[i].as_mut_ptr().cast(),
                    iov_len: HEADER,
                },
                libc::iovec {
                    iov_base: data.as_ptr().cast_mut().cast(),
                    iov_len: data.len(),
                },
            ]);
            messages[i].write(message(vector, (ptr::null_mut(), 0)));
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` messages are initialised and point to buffers that are alive; the kernel only reads
        // what the vectors point to.
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

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn message(vector: &mut [libc::iovec; 2], control: (*mut libc::c_void, usize)) -> libc::mmsghdr {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
    message.msg_hdr.msg_iov = vector.as_mut_ptr();
    message.msg_hdr.msg_iovlen = vector.len();
    message.msg_hdr.msg_control = control.0;
    message.msg_hdr.msg_controllen = control.1;
    message
}

/// The VLAN tag in a received message's control data.
fn vlan_of(header: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: the kernel filled the control buffer and its length, and `CMSG_*` stay within it.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = control.as_ref() {
            let wanted = libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as usize;
            if message.cmsg_level == libc::SOL_PACKET
                && message.cmsg_type == libc::PACKET_AUXDATA
                && message.cmsg_len >= wanted
            {
                let aux: libc::tpacket_auxdata =
                    ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                if aux.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
                    return None;
                }
                let has_type = aux.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                let tpid = if has_type {
                    aux.tp_vlan_tpid
                } else {
                    TPID_8021Q
                };
                return Some((tpid, aux.tp_vlan_tci));
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    None
}
