//! Edits of headers in place, with the checksums that depend on them.
//!
//! They use the layers that extraction found; an edit of a header that is not there, or that
//! is cut short, does nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;
use crate::header::{Ethernet, Icmp, Ipv4, Ipv6, Nd, Tcp, Udp, Vlan, eth_type, ip_proto};
use crate::{Checksum, EthAddr, Packet, crc32c};

/// Offset of the outermost Ethernet type.
const TYPE_AT: usize = 12;

/// The Ethernet type at the start of the frame.
pub fn outer_type(packet: &Packet) -> Option<u16> {
    Ethernet::new(packet.data()).map(Ethernet::eth_type)
}

/// The outermost VLAN tag, as (Ethernet type, tag control information).
pub fn outer_vlan(packet: &Packet) -> Option<(u16, u16)> {
    let tpid = outer_type(packet)?;
    let tag = Vlan::new(packet.tail_from(TYPE_AT + 2))?;
    eth_type::is_vlan(tpid).then(|| (tpid, tag.tci()))
}

/// Pushes a VLAN tag onto the frame.
pub fn push_vlan(packet: &mut Packet, tpid: u16, tci: u16) {
    if packet.len() < Ethernet::LEN {
        return;
    }
    let gap = packet.insert(TYPE_AT, Vlan::LEN);
    gap[..2].copy_from_slice(&tpid.to_be_bytes());
    gap[2..].copy_from_slice(&tci.to_be_bytes());
}

/// Takes the outermost VLAN tag away.
pub fn pop_vlan(packet: &mut Packet) {
    if outer_vlan(packet).is_some() {
        packet.remove(TYPE_AT, Vlan::LEN);
    }
}

/// Changes the tag control information of the outermost VLAN tag.
pub fn set_vlan_tci(packet: &mut Packet, tci: u16) {
    if outer_vlan(packet).is_some() {
        put(packet, TYPE_AT + 2, &tci.to_be_bytes());
    }
}

/// Pushes an MPLS label stack entry before the network header or the present stack, and
/// changes the Ethernet type before it.
pub fn push_mpls(packet: &mut Packet, new_type: u16, lse: u32) {
    let Some(at) = packet.layers.l2_5.or(packet.layers.l3) else {
        return;
    };
    let offset = usize::from(at);
    if offset < 2 || offset > packet.len() {
        return;
    }
    packet.insert(offset, 4).copy_from_slice(&lse.to_be_bytes());
    put(packet, offset - 2, &new_type.to_be_bytes());
    packet.layers.l2_5 = Some(at);
}

/// Takes the outermost MPLS label stack entry away and gives the frame the Ethernet type of
/// what was under it.
pub fn pop_mpls(packet: &mut Packet, new_type: u16) {
    let Some(at) = packet.layers.l2_5 else {
        return;
    };
    let offset = usize::from(at);
    if offset < 2 || packet.len() < offset + 4 {
        return;
    }
    put(packet, offset - 2, &new_type.to_be_bytes());
    packet.remove(offset, 4);
    if !eth_type::is_mpls(new_type) {
        packet.layers.l2_5 = None;
        packet.layers.l3 = Some(at);
    }
}

/// Changes the outermost MPLS label stack entry.
pub fn set_mpls_lse(packet: &mut Packet, lse: u32) {
    if let Some(at) = packet.layers.l2_5 {
        put(packet, usize::from(at), &lse.to_be_bytes());
    }
}

/// Changes the Ethernet addresses.
pub fn set_eth(packet: &mut Packet, src: EthAddr, dst: EthAddr) {
    put(packet, 0, &dst.0);
    put(packet, 6, &src.0);
}

/// Pushes an Ethernet header onto a packet that has none.
pub fn push_eth(packet: &mut Packet, src: EthAddr, dst: EthAddr, ether_type: u16) {
    let gap = packet.insert(0, Ethernet::LEN);
    gap[..6].copy_from_slice(&dst.0);
    gap[6..12].copy_from_slice(&src.0);
    gap[12..].copy_from_slice(&ether_type.to_be_bytes());
}

/// Takes everything before the network header (or the MPLS label stack) away.
pub fn pop_eth(packet: &mut Packet) {
    if let Some(at) = packet.layers.l2_5.or(packet.layers.l3) {
        packet.remove(0, usize::from(at));
    }
}

/// Fields of an IPv4 header that may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Fields {
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
    /// Type of service.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
}

/// Sets fields of the IPv4 header, with its checksum and the transport's.
pub fn set_ipv4(packet: &mut Packet, fields: &Ipv4Fields) {
    let Some((l3, header)) = ipv4(packet) else {
        return;
    };
    let old = *header.bytes();
    let proto = header.proto();
    let upper = upper_checksum(packet, proto);
    let addresses = [fields.src.octets(), fields.dst.octets()].concat();
    let mut new = old;
    new[1] = fields.tos;
    new[8] = fields.ttl;
    new[12..20].copy_from_slice(&addresses);
    let sum = Sum::of_checksum(header.checksum()).replace(&old[..10], &new[..10]);
    let sum = sum.replace(&old[12..], &new[12..]);
    if old == new {
        return;
    }
    new[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    put(packet, l3, &new);
    if old[12..] != new[12..]
        && let Some(at) = upper
    {
        update_upper(packet, proto, at, &old[12..], &new[12..]);
    }
}

/// Fields of an IPv6 header that may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Fields {
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
    /// Protocol of the transport header, as extraction found it.
    pub proto: u8,
    /// Traffic class.
    pub class: u8,
    /// Flow label, 20 bits.
    pub label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

/// Sets fields of the IPv6 header, with the checksum of the transport.
pub fn set_ipv6(packet: &mut Packet, fields: &Ipv6Fields) {
    let Some((l3, header)) = ipv6(packet) else {
        return;
    };
    let old = *header.bytes();
    let mut new = old;
    let version = header.version_class_label() >> 28;
    let first = version << 28 | u32::from(fields.class) << 20 | fields.label & 0xf_ffff;
    new[..4].copy_from_slice(&first.to_be_bytes());
    new[7] = fields.hop_limit;
    new[8..24].copy_from_slice(&fields.src.octets());
    new[24..40].copy_from_slice(&fields.dst.octets());
    // With a routing header the destination in the checksum is the last one, which stands
    // elsewhere.
    let routed = has_routing_header(packet, l3);
    let upper = upper_checksum(packet, fields.proto);
    put(packet, l3, &new);
    if let Some(at) = upper {
        let end = if routed { 24 } else { 40 };
        if old[8..end] != new[8..end] {
            update_upper(packet, fields.proto, at, &old[8..end], &new[8..end]);
        }
    }
}

/// Sets the ports of the TCP header.
pub fn set_tcp_ports(packet: &mut Packet, src: u16, dst: u16) {
    if let Some((l4, _)) = l4(packet, Tcp::LEN) {
        set_ports(packet, l4, Some(l4 + 16), src, dst);
    }
}

/// Sets the ports of the UDP header; a datagram without checksum stays without.
pub fn set_udp_ports(packet: &mut Packet, src: u16, dst: u16) {
    if let Some((l4, bytes)) = l4(packet, Udp::LEN) {
        let has = Udp::new(bytes).is_some_and(|udp| udp.checksum() != 0);
        set_ports(packet, l4, has.then_some(l4 + 6), src, dst);
        if has && Udp::new(packet.tail_from(l4)).is_some_and(|udp| udp.checksum() == 0) {
            put(packet, l4 + 6, &[0xff, 0xff]);
        }
    }
}

/// Sets the ports of the SCTP header.  A checksum that was wrong stays wrong by the same bits.
pub fn set_sctp_ports(packet: &mut Packet, src: u16, dst: u16) {
    let padding = usize::from(packet.layers.padding);
    let Some((l4, bytes)) = l4(packet, crate::header::Sctp::LEN) else {
        return;
    };
    let end = bytes.len().saturating_sub(padding);
    let whole = |bytes: &[u8]| {
        let mut copy = bytes.get(..end).unwrap_or(bytes).to_vec();
        copy[8..12].fill(0);
        crc32c::sctp(&copy)
    };
    let before = whole(bytes);
    let mut stored = [0; 4];
    stored.copy_from_slice(&bytes[8..12]);
    set_ports(packet, l4, None, src, dst);
    let after = whole(packet.tail_from(l4));
    let fixed: Vec<u8> = (0..4).map(|i| stored[i] ^ before[i] ^ after[i]).collect();
    put(packet, l4 + 8, &fixed);
}

/// Sets type and code of the ICMP or ICMPv6 header.
pub fn set_icmp(packet: &mut Packet, kind: u8, code: u8) {
    if let Some((l4, bytes)) = l4(packet, Icmp::LEN) {
        let old = [bytes[0], bytes[1]];
        put(packet, l4, &[kind, code]);
        update_checksum(packet, l4 + 2, &old, &[kind, code]);
    }
}

/// Fields of ARP that may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpFields {
    /// Operation.
    pub op: u16,
    /// Sender's protocol address.
    pub spa: Ipv4Addr,
    /// Target's protocol address.
    pub tpa: Ipv4Addr,
    /// Sender's hardware address.
    pub sha: EthAddr,
    /// Target's hardware address.
    pub tha: EthAddr,
}

/// Sets the fields of ARP.
pub fn set_arp(packet: &mut Packet, fields: &ArpFields) {
    let Some(l3) = packet.layers.l3.map(usize::from) else {
        return;
    };
    if packet.tail_from(l3).len() < crate::header::Arp::LEN {
        return;
    }
    put(packet, l3 + 6, &fields.op.to_be_bytes());
    put(packet, l3 + 8, &fields.sha.0);
    put(packet, l3 + 14, &fields.spa.octets());
    put(packet, l3 + 18, &fields.tha.0);
    put(packet, l3 + 24, &fields.tpa.octets());
}

/// Sets the target and, where the packet has them, the link-layer address options of a neighbour solicitation
/// or advertisement (RFC 4861 section 4.6.1).
pub fn set_nd(packet: &mut Packet, target: Ipv6Addr, sll: EthAddr, tll: EthAddr) {
    let padding = usize::from(packet.layers.padding);
    let Some((l4, bytes)) = l4(packet, Nd::LEN) else {
        return;
    };
    let end = bytes.len().saturating_sub(padding);
    set_checked(packet, l4 + 2, l4 + 8, &target.octets());
    let mut at = Nd::LEN;
    while at + 8 <= end {
        let option = packet.tail_from(l4 + at);
        let (kind, len) = (option[0], usize::from(option[1]) * 8);
        if len == 0 || at + len > end {
            return;
        }
        let address = match (kind, len) {
            (1, 8) => Some(sll),
            (2, 8) => Some(tll),
            _ => None,
        };
        if let Some(address) = address {
            set_checked(packet, l4 + 2, l4 + at + 2, &address.0);
            return;
        }
        at += len;
    }
}

/// Sets the reserved word of a neighbour solicitation or the flags word of an advertisement.
pub fn set_nd_reserved(packet: &mut Packet, word: u32) {
    if let Some((l4, _)) = l4(packet, Icmp::LEN) {
        set_checked(packet, l4 + 2, l4 + 4, &word.to_be_bytes());
    }
}

/// Changes the type of a neighbour option at the start of the options (`old` to `new`).
pub fn set_nd_option_type(packet: &mut Packet, new: u8) {
    if let Some((l4, bytes)) = l4(packet, Nd::LEN + 8) {
        let len = bytes[Nd::LEN + 1];
        set_checked(packet, l4 + 2, l4 + Nd::LEN, &[new, len]);
    }
}

/// The IPv4 header at the network layer.  Its version is not looked at: the Ethernet type alone
/// says what it is, to a flow and to whoever changes what that flow matched.
fn ipv4(packet: &Packet) -> Option<(usize, Ipv4<'_>)> {
    let l3 = usize::from(packet.layers.l3?);
    let header = Ipv4::new(packet.tail_from(l3))?;
    Some((l3, header))
}

fn ipv6(packet: &Packet) -> Option<(usize, Ipv6<'_>)> {
    let l3 = usize::from(packet.layers.l3?);
    let header = Ipv6::new(packet.tail_from(l3))?;
    Some((l3, header))
}

/// The transport layer with the padding behind it, if at least `len` bytes of it are there
/// before the padding: what runs into that is no header.
fn l4(packet: &Packet, len: usize) -> Option<(usize, &[u8])> {
    let l4 = usize::from(packet.layers.l4?);
    let bytes = packet.tail_from(l4);
    let own = bytes
        .len()
        .saturating_sub(usize::from(packet.layers.padding));
    (own >= len).then_some((l4, bytes))
}

/// Type, code and checksum: of ICMPv6 no more need be there for addresses to be followed.
const ICMPV6_CHECKED: usize = 4;

/// Where the transport checksum that covers the addresses stands.
fn upper_checksum(packet: &Packet, proto: u8) -> Option<usize> {
    match proto {
        ip_proto::TCP => l4(packet, Tcp::LEN).map(|(l4, _)| l4 + 16),
        ip_proto::UDP => {
            let (l4, bytes) = l4(packet, Udp::LEN)?;
            let has = bytes[6..8] != [0, 0] || is_partial(packet, l4 + 6);
            has.then_some(l4 + 6)
        }
        ip_proto::ICMPV6 => l4(packet, ICMPV6_CHECKED).map(|(l4, _)| l4 + 2),
        _ => None,
    }
}

/// As [`update_checksum`], of the transport protocol `proto`: a UDP checksum of zero would say that
/// there is none (RFC 768).
fn update_upper(packet: &mut Packet, proto: u8, at: usize, old: &[u8], new: &[u8]) {
    update_checksum(packet, at, old, new);
    let is_zero = packet.data().get(at..at + 2) == Some(&[0, 0]);
    if proto == ip_proto::UDP && is_zero && !is_partial(packet, at) {
        put(packet, at, &[0xff, 0xff]);
    }
}

/// Whether the checksum at `at` is still to be computed.
fn is_partial(packet: &Packet, at: usize) -> bool {
    match packet.offload.checksum {
        Checksum::Partial { start, offset } => usize::from(start) + usize::from(offset) == at,
        _ => false,
    }
}

fn has_routing_header(packet: &Packet, l3: usize) -> bool {
    let bytes = packet.tail_from(l3);
    let Some(header) = Ipv6::new(bytes) else {
        return false;
    };
    let (mut next, mut at) = (header.next_header(), Ipv6::LEN);
    while let Some(extension) = bytes.get(at..).filter(|rest| rest.len() >= 8) {
        at += match next {
            ip_proto::ROUTING => return true,
            ip_proto::HOPOPTS | ip_proto::DSTOPTS | ip_proto::MOBILITY => {
                (usize::from(extension[1]) + 1) * 8
            }
            ip_proto::AH => (usize::from(extension[1]) + 2) * 4,
            ip_proto::FRAGMENT => 8,
            _ => return false,
        };
        next = extension[0];
    }
    false
}

/// Puts `bytes` at `at` if the frame has room there.
fn put(packet: &mut Packet, at: usize, bytes: &[u8]) {
    if let Some(place) = packet.data_mut().get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Follows the change of `old` to `new`, both of even length and at an even offset, in the checksum at `at`: of a
/// pseudo-header's field if the sum is still to be computed there.
fn update_checksum(packet: &mut Packet, at: usize, old: &[u8], new: &[u8]) {
    let partial = is_partial(packet, at);
    let Some(field) = packet.data().get(at..at + 2) else {
        return;
    };
    let field = u16::from_be_bytes([field[0], field[1]]);
    let value = if partial {
        Sum::ZERO.with_u16(field).replace(old, new).folded()
    } else {
        Sum::of_checksum(field).replace(old, new).checksum()
    };
    put(packet, at, &value.to_be_bytes());
}

/// Puts `bytes` at `at` and follows in the transport checksum at `checksum`, which covers them
/// (so that one still to be computed does not change).
fn set_checked(packet: &mut Packet, checksum: usize, at: usize, bytes: &[u8]) {
    let Some(old) = packet.data().get(at..at + bytes.len()) else {
        return;
    };
    if old == bytes {
        return;
    }
    let old = old.to_vec();
    put(packet, at, bytes);
    if !is_partial(packet, checksum) {
        update_checksum(packet, checksum, &old, bytes);
    }
}

fn set_ports(packet: &mut Packet, l4: usize, checksum: Option<usize>, src: u16, dst: u16) {
    let ports = (u32::from(src) << 16 | u32::from(dst)).to_be_bytes();
    match checksum {
        Some(checksum) => set_checked(packet, checksum, l4, &ports),
        None => put(packet, l4, &ports),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::{pseudo_header4, pseudo_header6};
    use crate::segment::complete_checksum;

    fn tcp4() -> Packet {
        let mut frame = vec![0; 12];
        frame.extend([8, 0]);
        frame.extend([0x45, 0, 0, 44, 1, 2, 0, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([
            0, 80, 1, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
        ]);
        frame.extend([1, 2, 3, 4]);
        let mut packet = Packet::from_frame(&frame);
        packet.layers.l3 = Some(14);
        packet.layers.l4 = Some(34);
        let sum = crate::checksum::checksum(&packet.data()[14..34]);
        put(&mut packet, 24, &sum.to_be_bytes());
        packet
    }

    /// What a flow matched by its Ethernet type is changed as that flow says, odd as it may be.
    #[test]
    fn headers_of_any_version_are_changed_and_keep_it() {
        for version in 0..16u8 {
            let mut packet = tcp4();
            packet.data_mut()[14] = version << 4 | 5;
            let fields = Ipv4Fields {
                src: Ipv4Addr::new(192, 0, 2, 1),
                dst: Ipv4Addr::new(192, 0, 2, 2),
                tos: 4,
                ttl: 9,
            };
            set_ipv4(&mut packet, &fields);
            let header = Ipv4::new(&packet.data()[14..]).unwrap();
            assert_eq!(
                (header.version(), header.tos(), header.ttl()),
                (version, 4, 9)
            );
            assert_eq!((header.src(), header.dst()), (fields.src, fields.dst));

            let mut frame = vec![0; 14];
            frame.extend([version << 4 | 1, 2, 3, 4, 0, 0, 59, 64]);
            frame.extend([0; 32]);
            let mut packet = Packet::from_frame(&frame);
            packet.layers.l3 = Some(14);
            let fields = Ipv6Fields {
                src: Ipv6Addr::LOCALHOST,
                dst: Ipv6Addr::LOCALHOST,
                proto: 59,
                class: 0xab,
                label: 0xc_def0,
                hop_limit: 7,
            };
            set_ipv6(&mut packet, &fields);
            let header = Ipv6::new(&packet.data()[14..]).unwrap();
            let first = u32::from(version) << 28 | 0xabc_def0;
            assert_eq!(header.version_class_label(), first);
            assert_eq!((header.src(), header.hop_limit()), (fields.src, 7));
        }
    }

    /// Extraction sees no type in so short a message, so no flow can have meant to change it.
    #[test]
    fn a_message_of_icmp_that_is_cut_short_keeps_its_type() {
        for len in 0..12 {
            let mut packet = Packet::from_frame(&[vec![0; 34], vec![8; len]].concat());
            packet.layers.l3 = Some(14);
            packet.layers.l4 = Some(34);
            let before = packet.data().to_vec();
            set_icmp(&mut packet, 1, 2);
            assert_eq!(packet.data() == before, len < Icmp::LEN, "{len}");
        }
    }

    #[test]
    fn no_change_of_addresses_takes_the_checksum_of_udp_away() {
        let mut frame = vec![0; 14];
        frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, ip_proto::UDP, 0, 0]);
        frame.extend([0; 8]);
        frame.extend([0, 80, 0, 80, 0, 8, 0x12, 0x34]);
        let mut packet = Packet::from_frame(&frame);
        packet.layers.l3 = Some(14);
        packet.layers.l4 = Some(34);
        let mut all_ones = 0;
        for low in 0..=u16::MAX {
            let [c, d] = low.to_be_bytes();
            let fields = Ipv4Fields {
                src: Ipv4Addr::new(10, 0, 0, 1),
                dst: Ipv4Addr::new(10, 0, c, d),
                tos: 0,
                ttl: 64,
            };
            set_ipv4(&mut packet, &fields);
            let checksum = Udp::new(&packet.data()[34..]).unwrap().checksum();
            assert_ne!(checksum, 0, "{}", fields.dst);
            all_ones += u32::from(checksum == 0xffff);
        }
        assert!(all_ones > 0);
    }

    #[test]
    fn a_header_that_runs_into_the_padding_is_none() {
        for padding in 0..64 {
            let mut packet = tcp4();
            packet.layers.padding = padding;
            let before = packet.data().to_vec();
            set_tcp_ports(&mut packet, 1, 2);
            assert_eq!(packet.data() == before, padding > 4, "{padding}");
            // Nor is what would be its checksum adjusted to other addresses.
            let fields = Ipv4Fields {
                src: Ipv4Addr::new(192, 0, 2, 1),
                dst: Ipv4Addr::new(192, 0, 2, 2),
                tos: 0,
                ttl: 64,
            };
            let before = packet.data().to_vec();
            set_ipv4(&mut packet, &fields);
            let same = packet.data()[34..] == before[34..];
            assert_eq!(same, padding > 4, "{padding}");
            let mut packet = tcp4();
            packet.layers.padding = padding;
            set_sctp_ports(&mut packet, 1, 2);
            assert_eq!(packet.data() == before, padding > 12, "{padding}");
        }
    }

    fn tcp_sum(packet: &Packet) -> u16 {
        let data = packet.data();
        let pseudo = pseudo_header4(&data[26..34], 6, data.len() - 34);
        pseudo.with(&data[34..]).checksum()
    }

    fn with_sum(mut packet: Packet) -> Packet {
        let sum = tcp_sum(&packet);
        put(&mut packet, 50, &sum.to_be_bytes());
        packet
    }

    fn with_partial(mut packet: Packet) -> Packet {
        let data = packet.data();
        let sum = pseudo_header4(&data[26..34], 6, data.len() - 34).folded();
        put(&mut packet, 50, &sum.to_be_bytes());
        packet.offload.checksum = Checksum::Partial {
            start: 34,
            offset: 16,
        };
        packet
    }

    #[test]
    fn nat_keeps_checksums_right_whole_and_partial() {
        let fields = Ipv4Fields {
            src: Ipv4Addr::new(192, 168, 255, 7),
            dst: Ipv4Addr::new(1, 2, 3, 4),
            tos: 8,
            ttl: 63,
        };
        for mut packet in [with_sum(tcp4()), with_partial(tcp4())] {
            set_ipv4(&mut packet, &fields);
            set_tcp_ports(&mut packet, 1234, 4321);
            complete_checksum(&mut packet);
            assert_eq!(crate::checksum::checksum(&packet.data()[14..34]), 0);
            assert_eq!(tcp_sum(&packet), 0);
            assert_eq!(packet.data()[34..38], [0x04, 0xd2, 0x10, 0xe1]);
        }
    }

    #[test]
    fn vlan_and_mpls_come_off_as_they_went_on() {
        let original = with_partial(tcp4());
        let mut packet = original.clone();
        push_vlan(&mut packet, eth_type::VLAN, 0x6123);
        assert_eq!(outer_vlan(&packet), Some((0x8100, 0x6123)));
        push_mpls(&mut packet, eth_type::MPLS, 0x0001_1140);
        push_mpls(&mut packet, eth_type::MPLS, 0x0002_1040);
        assert_eq!(packet.layers.l2_5, Some(18));
        assert_eq!(packet.layers.l3, Some(26));
        pop_mpls(&mut packet, eth_type::MPLS);
        pop_mpls(&mut packet, eth_type::IPV4);
        pop_vlan(&mut packet);
        pop_vlan(&mut packet);
        assert_eq!(packet, original);
    }

    #[test]
    fn neighbour_options_with_bad_lengths_are_left_alone() {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 48, 58, 255]);
        frame.extend([0; 32]);
        frame.extend([135, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([0; 16]);
        frame.extend([1, 1, 1, 1, 1, 1, 1, 1]);
        frame.extend([1, 0, 1, 1, 1, 1, 1, 1]);
        frame.extend([1, 9, 1, 1, 1, 1, 1, 1]);
        let mut packet = Packet::from_frame(&frame);
        packet.layers.l3 = Some(14);
        packet.layers.l4 = Some(54);
        let all = |packet: &Packet| {
            let data = packet.data();
            let pseudo = pseudo_header6(&data[22..54], 58, data.len() - 54);
            pseudo.with(&data[54..]).checksum()
        };
        let sum = all(&packet).to_be_bytes();
        put(&mut packet, 56, &sum);
        let sll = EthAddr([2, 3, 4, 5, 6, 7]);
        set_nd(&mut packet, Ipv6Addr::LOCALHOST, sll, EthAddr::ZERO);
        assert_eq!(all(&packet), 0);
        assert_eq!(packet.data()[80..86], sll.0);
        assert_eq!(packet.data()[86..], frame[86..]);
        for len in 0..frame.len() {
            let mut short = packet.clone();
            short.truncate(len);
            set_nd(&mut short, Ipv6Addr::UNSPECIFIED, sll, sll);
            set_sctp_ports(&mut short, 1, 2);
            set_udp_ports(&mut short, 1, 2);
            pop_eth(&mut short);
        }
    }
}
