//! Packet buffers, batches of them, and the pool that buffers come from.

use std::fmt;

use crate::{Layers, Offload};

/// Room kept before a frame for headers that may be pushed onto it, in bytes.
pub const HEADROOM: usize = 128;

/// Size of a buffer that any packet of a socket or tap fits in: 64 KiB of IP packet, link
/// headers and [`HEADROOM`].  An odd number of cache lines, so that the first lines of
/// neighbouring buffers do not fall into one cache set.
pub const ROOM: usize = 65536 + 64 * 13;

/// Packets that are received, looked up and sent together.
pub const BATCH: usize = 32;

/// A packet: an Ethernet frame in a buffer with room before and after it.
#[derive(PartialEq, Eq)]
pub struct Packet {
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    /// The datapath's number of the port that the packet came in on.
    pub in_port: u32,
    /// What is still to be computed.
    pub offload: Offload,
    /// Where the layers begin, as far as extraction has found them.
    pub layers: Layers,
}

impl Packet {
    /// An empty packet in a buffer of `room` bytes, [`HEADROOM`] of them before it.
    pub fn with_room(room: usize) -> Self {
        let room = room.max(HEADROOM);
        Self {
            buf: vec![0; room].into_boxed_slice(),
            start: HEADROOM,
            end: HEADROOM,
            in_port: 0,
            offload: Offload::default(),
            layers: Layers::default(),
        }
    }

    /// A packet that holds a copy of `frame`.
    pub fn from_frame(frame: &[u8]) -> Self {
        let mut packet = Self::with_room(HEADROOM + frame.len());
        packet.buf[HEADROOM..].copy_from_slice(frame);
        packet.end = packet.buf.len();
        packet
    }

    /// Length of the frame.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is no frame in the buffer.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The frame.
    pub fn data(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// The frame, to be changed.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.buf[self.start..self.end]
    }

    /// The bytes from `offset` on, empty if the frame is shorter.
    pub fn tail_from(&self, offset: usize) -> &[u8] {
        self.data().get(offset..).unwrap_or_default()
    }

    /// Forgets the frame and what was known of it; the buffer stays.
    pub fn clear(&mut self) {
        self.start = HEADROOM;
        self.end = HEADROOM;
        self.in_port = 0;
        self.offload = Offload::default();
        self.layers = Layers::default();
    }

    /// The bytes of an empty packet's buffer that a frame may be received into; follow it
    /// with [`Packet::set_len`].
    pub fn room_mut(&mut self) -> &mut [u8] {
        &mut self.buf[self.start..]
    }

    /// Says how long the frame is that was put into [`Packet::room_mut`]; what is beyond the
    /// buffer's end is cut off.
    pub fn set_len(&mut self, len: usize) {
        self.end = (self.start + len).min(self.buf.len());
    }

    /// Cuts the frame to at most `len` bytes.  Work that was still to be done on the bytes
    /// that are gone is forgotten.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.end = self.start + len;
        }
    }

    /// Opens a gap of `count` zero bytes at `at`, which must not be past the end, by moving what is
    /// before it towards the front.  Offsets of layers and of pending checksums follow.
    pub fn insert(&mut self, at: usize, count: usize) -> &mut [u8] {
        let at = at.min(self.len());
        if self.start < count {
            self.grow(HEADROOM + count, 0);
        }
        let old = self.start;
        self.start -= count;
        self.buf.copy_within(old..old + at, self.start);
        let by = isize::try_from(count).unwrap_or(isize::MAX);
        self.layers.shift(at, by);
        self.offload.shift(at, by);
        let gap = &mut self.buf[self.start + at..self.start + at + count];
        gap.fill(0);
        gap
    }

    /// Takes `count` bytes out at `at`; does nothing if the frame has not that many there.
    /// Offsets of layers and of pending checksums follow.
    pub fn remove(&mut self, at: usize, count: usize) {
        if at + count > self.len() {
            return;
        }
        let old = self.start;
        self.buf.copy_within(old..old + at, old + count);
        self.start += count;
        let by = -isize::try_from(count).unwrap_or(isize::MAX);
        self.layers.shift(at + count, by);
        self.offload.shift(at + count, by);
    }

    /// Adds `bytes` at the end.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.buf.len() - self.end < bytes.len() {
            self.grow(self.start, bytes.len());
        }
        self.buf[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Adds zero bytes until the frame has `len` bytes.
    pub fn pad_to(&mut self, len: usize) {
        if let Some(missing) = len.checked_sub(self.len())
            && missing > 0
        {
            self.append(&vec![0; missing]);
        }
    }

    /// Moves the frame to a new buffer with `headroom` before and `tailroom` after it.
    fn grow(&mut self, headroom: usize, tailroom: usize) {
        let len = self.len();
        let mut buf = vec![0; headroom + len + tailroom].into_boxed_slice();
        buf[headroom..headroom + len].copy_from_slice(self.data());
        self.buf = buf;
        self.start = headroom;
        self.end = headroom + len;
    }

    /// Makes this packet a copy of `other`, in the buffer that it has if that is large enough.
    pub fn copy_from(&mut self, other: &Self) {
        if self.buf.len() < HEADROOM + other.len() {
            *self = other.clone();
            return;
        }
        self.start = HEADROOM;
        self.end = HEADROOM + other.len();
        self.data_mut().copy_from_slice(other.data());
        self.in_port = other.in_port;
        self.offload = other.offload;
        self.layers = other.layers;
    }

    /// Bytes of the buffer.
    pub fn capacity(&self) -> usize {
        self.buf.len()
    }
}

impl Clone for Packet {
    /// A copy with the usual headroom, in a buffer no larger than it needs.
    fn clone(&self) -> Self {
        Self {
            in_port: self.in_port,
            offload: self.offload,
            layers: self.layers,
            ..Self::from_frame(self.data())
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packet({} bytes, port {}, ", self.len(), self.in_port)?;
        for byte in self.data().iter().take(64) {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// Packets that travel together, in order.
pub type Batch = Vec<Packet>;

/// A stock of [`ROOM`]-sized buffers of one thread.
#[derive(Debug, Default)]
pub struct Pool {
    free: Vec<Packet>,
}

impl Pool {
    /// Buffers kept at most.
    const KEPT: usize = 4 * BATCH;

    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty packet that any frame fits in.
    pub fn take(&mut self) -> Packet {
        self.free.pop().unwrap_or_else(|| Packet::with_room(ROOM))
    }

    /// Takes a packet that is not needed any more.
    pub fn give(&mut self, mut packet: Packet) {
        if packet.capacity() == ROOM && self.free.len() < Self::KEPT {
            packet.clear();
            self.free.push(packet);
        }
    }

    /// Takes all packets of a batch.
    pub fn give_all(&mut self, batch: &mut Batch) {
        for packet in batch.drain(..) {
            self.give(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksum;

    #[test]
    fn insert_and_remove_move_the_front_and_all_offsets() {
        let mut packet = Packet::from_frame(b"abcdefgh");
        packet.layers.l3 = Some(4);
        packet.offload.checksum = Checksum::Partial {
            start: 5,
            offset: 1,
        };
        packet.insert(4, 2).copy_from_slice(b"XY");
        assert_eq!(packet.data(), b"abcdXYefgh");
        assert_eq!(packet.layers.l3, Some(6));
        let moved = Checksum::Partial {
            start: 7,
            offset: 1,
        };
        assert_eq!(packet.offload.checksum, moved);
        packet.remove(4, 2);
        assert_eq!(packet.data(), b"abcdefgh");
        assert_eq!(packet.layers.l3, Some(4));
        packet.remove(7, 2);
        assert_eq!(packet.len(), 8);
    }

    #[test]
    fn a_packet_without_headroom_grows() {
        let mut packet = Packet::from_frame(b"ab");
        for n in 1..=100 {
            packet.insert(1, 4);
            assert_eq!(packet.len(), 2 + 4 * n);
        }
        packet.append(b"cd");
        assert!(packet.data().ends_with(b"bcd"));
    }

    #[test]
    fn the_pool_returns_what_it_got() {
        let mut pool = Pool::new();
        let mut packet = pool.take();
        packet.append(b"x");
        pool.give(packet);
        assert!(pool.take().is_empty());
        pool.give(Packet::from_frame(b"small"));
        assert!(pool.free.is_empty());
    }
}
