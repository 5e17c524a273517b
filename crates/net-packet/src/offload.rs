//! What is still to be computed in a packet, and the virtio-net header that says so on
//! packet sockets and taps (VIRTIO 1.2 section 5.1.6).

use std::fmt;

/// The state of a packet's transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// It stands in the packet; nobody has checked it.
    #[default]
    Unknown,
    /// It stands in the packet and is right.
    Good,
    /// Only the pseudo-header is summed: the Internet checksum from `start` to the end of the
    /// packet goes to `start + offset`.
    Partial {
        /// Where the sum begins, from the start of the frame.
        start: u16,
        /// Where the result goes, from `start`.
        offset: u16,
    },
}

/// How a packet is to be cut up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP by IP fragments.
    UdpFragments,
    /// UDP, each segment a datagram.
    Udp,
}

/// A packet larger than the link carries, to be cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// What is cut.
    pub kind: GsoKind,
    /// Whether the first segment carries TCP's CWR alone.
    pub ecn: bool,
    /// Payload bytes of each segment but the last; not zero.
    pub size: u16,
    /// Length of all headers together; a hint, which may be wrong.
    pub header_len: u16,
}

/// Everything that is still to be done to a packet before it is on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The transport checksum.
    pub checksum: Checksum,
    /// Segmentation.
    pub gso: Option<Gso>,
}

impl Offload {
    /// Whether the packet can go out as it stands.
    pub fn is_done(&self) -> bool {
        self.gso.is_none() && !matches!(self.checksum, Checksum::Partial { .. })
    }

    /// Moves what lies at or after `at` by `by` bytes.
    pub(crate) fn shift(&mut self, at: usize, by: isize) {
        let moved = |offset: u16| {
            let sum = isize::try_from(usize::from(offset)).unwrap_or(0) + by;
            u16::try_from(sum).unwrap_or(0)
        };
        if let Checksum::Partial { start, .. } = &mut self.checksum
            && usize::from(*start) >= at
        {
            *start = moved(*start);
        }
        if let Some(gso) = &mut self.gso
            && usize::from(gso.header_len) >= at
        {
            gso.header_len = moved(gso.header_len);
        }
    }
}

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_UDP: u8 = 3;
const GSO_TCP6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// A virtio-net header of ten bytes, in the byte order of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioHeader(pub [u8; VirtioHeader::LEN]);

/// A virtio-net header that does not fit its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtioHeaderError {
    /// A segmentation type that is not known.
    UnknownGso(u8),
    /// Segments of zero bytes.
    ZeroGsoSize,
    /// A checksum outside the packet.
    ChecksumOutside {
        /// Where the checksum should go, from the start of the frame.
        at: usize,
        /// Length of the frame.
        len: usize,
    },
}

impl fmt::Display for VirtioHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownGso(kind) => write!(f, "unknown segmentation type {kind}"),
            Self::ZeroGsoSize => f.write_str("segments of zero bytes"),
            Self::ChecksumOutside { at, len } => {
                write!(f, "checksum at {at} in a packet of {len} bytes")
            }
        }
    }
}

impl std::error::Error for VirtioHeaderError {}

impl VirtioHeader {
    /// Length on packet sockets and taps.
    pub const LEN: usize = 10;

    fn word(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    fn set_word(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }

    /// The header for a packet with `offload`.
    pub fn encode(offload: &Offload) -> Self {
        let mut header = Self::default();
        match offload.checksum {
            Checksum::Unknown => {}
            Checksum::Good => header.0[0] = DATA_VALID,
            Checksum::Partial { start, offset } => {
                header.0[0] = NEEDS_CHECKSUM;
                header.set_word(6, start);
                header.set_word(8, offset);
            }
        }
        if let Some(gso) = offload.gso {
            let kind = match gso.kind {
                GsoKind::Tcp4 => GSO_TCP4,
                GsoKind::Tcp6 => GSO_TCP6,
                GsoKind::UdpFragments => GSO_UDP,
                GsoKind::Udp => GSO_UDP_L4,
            };
            header.0[1] = kind | if gso.ecn { GSO_ECN } else { 0 };
            header.set_word(2, gso.header_len);
            header.set_word(4, gso.size);
        }
        header
    }

    /// What the header says about a frame of `len` bytes.
    ///
    /// # Errors
    /// If it names bytes that the frame does not have, or a segmentation that is not known.
    pub fn decode(&self, len: usize) -> Result<Offload, VirtioHeaderError> {
        let mut offload = Offload::default();
        if self.0[0] & NEEDS_CHECKSUM != 0 {
            let (start, offset) = (self.word(6), self.word(8));
            let at = usize::from(start) + usize::from(offset);
            if at + 2 > len {
                return Err(VirtioHeaderError::ChecksumOutside { at, len });
            }
            offload.checksum = Checksum::Partial { start, offset };
        } else if self.0[0] & DATA_VALID != 0 {
            offload.checksum = Checksum::Good;
        }
        let kind = match self.0[1] & !GSO_ECN {
            GSO_NONE => return Ok(offload),
            GSO_TCP4 => GsoKind::Tcp4,
            GSO_TCP6 => GsoKind::Tcp6,
            GSO_UDP => GsoKind::UdpFragments,
            GSO_UDP_L4 => GsoKind::Udp,
            other => return Err(VirtioHeaderError::UnknownGso(other)),
        };
        let size = self.word(4);
        if size == 0 {
            return Err(VirtioHeaderError::ZeroGsoSize);
        }
        offload.gso = Some(Gso {
            kind,
            ecn: self.0[1] & GSO_ECN != 0,
            size,
            header_len: self.word(2),
        });
        Ok(offload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_both_ways() {
        let gso = |kind, ecn| {
            Some(Gso {
                kind,
                ecn,
                size: 1448,
                header_len: 66,
            })
        };
        let partial = Checksum::Partial {
            start: 34,
            offset: 16,
        };
        for checksum in [Checksum::Unknown, Checksum::Good, partial] {
            for gso in [
                None,
                gso(GsoKind::Tcp4, true),
                gso(GsoKind::Tcp6, false),
                gso(GsoKind::UdpFragments, false),
                gso(GsoKind::Udp, false),
            ] {
                let offload = Offload { checksum, gso };
                assert_eq!(VirtioHeader::encode(&offload).decode(52), Ok(offload));
            }
        }
    }

    #[test]
    fn a_checksum_outside_the_frame_is_refused() {
        let checksum = Checksum::Partial {
            start: 34,
            offset: 16,
        };
        let header = VirtioHeader::encode(&Offload {
            checksum,
            gso: None,
        });
        let error = VirtioHeaderError::ChecksumOutside { at: 50, len: 51 };
        assert_eq!(header.decode(51), Err(error));
    }
}
