//! What a port that cannot do it leaves to software: transport checksums and segmentation.

use std::fmt;

use crate::checksum::{Sum, pseudo_header4, pseudo_header6};
use crate::header::{Ethernet, Ipv4, Mpls, Tcp, Udp, Vlan, eth_type, ip_proto, ipv6_upper};
use crate::{Checksum, GsoKind, Offload, Packet, crc32c};

/// Offset of SCTP's checksum in its header, by which a pending one is known.
const SCTP_CHECKSUM: u16 = 8;

/// Computes the checksum that is still to be computed, if any.
pub fn complete_checksum(packet: &mut Packet) {
    let Checksum::Partial { start, offset } = packet.offload.checksum else {
        return;
    };
    let at = usize::from(start) + usize::from(offset);
    let covered = packet.tail_from(usize::from(start));
    if covered.len() >= usize::from(offset) + 4 && offset == SCTP_CHECKSUM {
        let mut zeroed = covered.to_vec();
        zeroed[8..12].fill(0);
        let crc = crc32c::sctp(&zeroed);
        packet.data_mut()[at..at + 4].copy_from_slice(&crc);
    } else if covered.len() >= usize::from(offset) + 2 {
        // Zero means "none" to UDP, so the other form of zero is written (RFC 768).
        let sum = match Sum::ZERO.with(covered).checksum() {
            0 => 0xffff,
            sum => sum,
        };
        packet.data_mut()[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    packet.offload.checksum = Checksum::Good;
}

/// Takes over what a virtio-net header says about a packet that was received with it.  SCTP
/// checksums are completed at once: the kernel takes no pending one back.
///
/// # Errors
/// If the header does not fit the packet, which should then be dropped.
pub fn accept_virtio(
    packet: &mut Packet,
    header: &crate::VirtioHeader,
) -> Result<(), crate::VirtioHeaderError> {
    packet.offload = header.decode(packet.len())?;
    if let Checksum::Partial {
        offset: SCTP_CHECKSUM,
        ..
    } = packet.offload.checksum
    {
        complete_checksum(packet);
    }
    Ok(())
}

/// Why a packet cannot be cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// No IP header of the announced kind was found.
    NoHeader,
    /// The transport header is cut short.
    ShortHeader,
    /// Cutting UDP into IP fragments, which is not done here.
    UdpFragments,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHeader => "no IP header to segment under",
            Self::ShortHeader => "transport header is cut short",
            Self::UdpFragments => "fragmentation of UDP is not supported",
        })
    }
}

impl std::error::Error for SegmentError {}

/// Where IP and transport headers begin in a frame.
struct Located {
    l3: usize,
    l4: usize,
    is_v6: bool,
}

fn locate(frame: &[u8]) -> Option<Located> {
    let mut kind = Ethernet::new(frame)?.eth_type();
    let mut l3 = Ethernet::LEN;
    while eth_type::is_vlan(kind) {
        kind = Vlan::new(frame.get(l3..)?)?.eth_type();
        l3 += Vlan::LEN;
    }
    if eth_type::is_mpls(kind) {
        loop {
            let lse = Mpls::new(frame.get(l3..)?)?.lse();
            l3 += Mpls::LEN;
            if lse & 0x100 != 0 {
                break;
            }
        }
        kind = match frame.get(l3)? >> 4 {
            4 => eth_type::IPV4,
            6 => eth_type::IPV6,
            _ => return None,
        };
    }
    let rest = frame.get(l3..)?;
    match kind {
        eth_type::IPV4 => {
            let len = Ipv4::new(rest)?.header_len();
            (len >= Ipv4::LEN && len <= rest.len()).then_some(Located {
                l3,
                l4: l3 + len,
                is_v6: false,
            })
        }
        eth_type::IPV6 => Some(Located {
            l3,
            l4: l3 + ipv6_upper(rest)?.offset,
            is_v6: true,
        }),
        _ => None,
    }
}

/// Cuts a packet into segments with complete checksums, in order, onto the end of `out`.  A packet that needs
/// no cutting becomes one segment with its checksum completed.
///
/// # Errors
/// If the headers are not as its offload state says; then nothing is added.
pub fn segment(mut packet: Packet, out: &mut Vec<Packet>) -> Result<(), SegmentError> {
    let Some(gso) = packet.offload.gso else {
        complete_checksum(&mut packet);
        out.push(packet);
        return Ok(());
    };
    let frame = packet.data();
    let place = locate(frame).ok_or(SegmentError::NoHeader)?;
    let transport = frame.get(place.l4..).ok_or(SegmentError::ShortHeader)?;
    let (proto, header_len) = match gso.kind {
        GsoKind::Tcp4 | GsoKind::Tcp6 => {
            if place.is_v6 != (gso.kind == GsoKind::Tcp6) {
                return Err(SegmentError::NoHeader);
            }
            let tcp = Tcp::new(transport).ok_or(SegmentError::ShortHeader)?;
            (ip_proto::TCP, tcp.header_len().max(Tcp::LEN))
        }
        GsoKind::Udp => (ip_proto::UDP, Udp::LEN),
        GsoKind::UdpFragments => return Err(SegmentError::UdpFragments),
    };
    if transport.len() < header_len {
        return Err(SegmentError::ShortHeader);
    }
    let (headers, payload) = frame.split_at(place.l4 + header_len);
    let size = usize::from(gso.size).max(1);
    let count = payload.len().div_ceil(size).max(1);
    for (index, part) in (0..count).zip(payload.chunks(size).chain([&[][..]])) {
        let mut piece = Packet::with_room(crate::HEADROOM + headers.len() + part.len());
        piece.append(headers);
        piece.append(part);
        piece.in_port = packet.in_port;
        piece.layers = packet.layers;
        piece.layers.padding = 0;
        let position = Position {
            index,
            is_last: index + 1 == count,
            offset: index * size,
        };
        fix_ip(piece.data_mut(), &place, index);
        fix_transport(piece.data_mut(), &place, proto, &position);
        piece.offload = Offload {
            checksum: Checksum::Good,
            gso: None,
        };
        out.push(piece);
    }
    Ok(())
}

/// Which segment this is.
struct Position {
    index: usize,
    is_last: bool,
    /// Payload bytes before it.
    offset: usize,
}

fn put16(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn get16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn fix_ip(frame: &mut [u8], place: &Located, index: usize) {
    let len = u16::try_from(frame.len() - place.l3).unwrap_or(u16::MAX);
    if place.is_v6 {
        put16(frame, place.l3 + 4, len.saturating_sub(40));
        return;
    }
    let id = get16(frame, place.l3 + 4).wrapping_add(index as u16);
    put16(frame, place.l3 + 2, len);
    put16(frame, place.l3 + 4, id);
    put16(frame, place.l3 + 10, 0);
    let sum = crate::checksum::checksum(&frame[place.l3..place.l4]);
    put16(frame, place.l3 + 10, sum);
}

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

fn fix_transport(frame: &mut [u8], place: &Located, proto: u8, position: &Position) {
    let l4 = place.l4;
    let len = frame.len() - l4;
    let at = if proto == ip_proto::TCP {
        let mut seq = [0; 4];
        seq.copy_from_slice(&frame[l4 + 4..l4 + 8]);
        let seq = u32::from_be_bytes(seq).wrapping_add(position.offset as u32);
        frame[l4 + 4..l4 + 8].copy_from_slice(&seq.to_be_bytes());
        if !position.is_last {
            frame[l4 + 13] &= !FIN_PSH;
        }
        if position.index > 0 {
            frame[l4 + 13] &= !CWR;
        }
        l4 + 16
    } else {
        put16(frame, l4 + 4, u16::try_from(len).unwrap_or(u16::MAX));
        l4 + 6
    };
    put16(frame, at, 0);
    let pseudo = if place.is_v6 {
        pseudo_header6(&frame[place.l3 + 8..place.l3 + 40], proto, len)
    } else {
        pseudo_header4(&frame[place.l3 + 12..place.l3 + 20], proto, len)
    };
    let sum = match pseudo.with(&frame[l4..]).checksum() {
        0 if proto == ip_proto::UDP => 0xffff,
        sum => sum,
    };
    put16(frame, at, sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gso;

    fn big(is_v6: bool, payload: usize) -> Packet {
        let mut frame = vec![0x0a; 12];
        let len = u16::try_from(20 + payload).unwrap();
        if is_v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([6, 64]);
            frame.extend((0..32).collect::<Vec<u8>>());
        } else {
            frame.extend([0x81, 0, 0, 5, 8, 0, 0x45, 0]);
            frame.extend((len + 20).to_be_bytes());
            frame.extend([0xff, 0xff, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let l4 = frame.len();
        frame.extend([0, 80, 1, 0, 0xff, 0xff, 0xff, 0xff]);
        frame.extend([0, 0, 0, 2, 0x50, 0x99, 1, 0, 0, 0, 0, 0]);
        frame.extend((0..payload).map(|i| i as u8));
        let mut packet = Packet::from_frame(&frame);
        packet.offload = Offload {
            checksum: Checksum::Partial {
                start: u16::try_from(l4).unwrap(),
                offset: 16,
            },
            gso: Some(Gso {
                kind: if is_v6 { GsoKind::Tcp6 } else { GsoKind::Tcp4 },
                ecn: false,
                size: 1000,
                header_len: 0,
            }),
        };
        packet
    }

    #[test]
    fn tcp_is_cut_into_segments_with_right_headers() {
        for is_v6 in [false, true] {
            let packet = big(is_v6, 2500);
            let l4 = if is_v6 { 54 } else { 38 };
            let mut out = Vec::new();
            segment(packet, &mut out).unwrap();
            let lens: Vec<_> = out.iter().map(|p| p.len() - l4 - 20).collect();
            assert_eq!(lens, [1000, 1000, 500]);
            let flags: Vec<_> = out.iter().map(|p| p.data()[l4 + 13]).collect();
            assert_eq!(flags, [0x90, 0x10, 0x19]);
            for (i, piece) in out.iter().enumerate() {
                let data = piece.data();
                let tcp = Tcp::new(&data[l4..]).unwrap();
                assert_eq!(tcp.seq(), u32::MAX.wrapping_add(1000 * i as u32));
                let len = data.len() - l4;
                let pseudo = if is_v6 {
                    assert_eq!(usize::from(get16(data, 18)), len);
                    pseudo_header6(&data[22..54], 6, len)
                } else {
                    assert_eq!(get16(data, 22), 0xffffu16.wrapping_add(i as u16));
                    assert_eq!(crate::checksum::checksum(&data[18..38]), 0);
                    pseudo_header4(&data[30..38], 6, len)
                };
                assert_eq!(pseudo.with(&data[l4..]).checksum(), 0);
            }
        }
    }

    #[test]
    fn lies_about_headers_are_refused() {
        for is_v6 in [false, true] {
            let whole = big(is_v6, 10);
            for len in 0..whole.len() {
                let mut packet = whole.clone();
                packet.truncate(len);
                let _ = segment(packet, &mut Vec::new());
            }
            let mut packet = whole.clone();
            if let Some(gso) = &mut packet.offload.gso {
                gso.kind = if is_v6 { GsoKind::Tcp4 } else { GsoKind::Tcp6 };
            }
            let result = segment(packet, &mut Vec::new());
            assert_eq!(result, Err(SegmentError::NoHeader));
        }
    }

    #[test]
    fn pending_sctp_checksums_are_completed_on_receipt() {
        let mut packet = Packet::from_frame(&[7; 60]);
        let offload = Offload {
            checksum: Checksum::Partial {
                start: 34,
                offset: 8,
            },
            gso: None,
        };
        let header = crate::VirtioHeader::encode(&offload);
        accept_virtio(&mut packet, &header).unwrap();
        assert_eq!(packet.offload.checksum, Checksum::Good);
        let mut covered = packet.data()[34..].to_vec();
        let stored = covered[8..12].to_vec();
        covered[8..12].fill(0);
        assert_eq!(crc32c::sctp(&covered)[..], stored[..]);
    }
}
