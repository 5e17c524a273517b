//! From a packet to its flow key.
//!
//! Lengths that a packet claims are checked before anything is read by them; where one lies, the fields behind it stay
//! zero and so are matched as zero: a flow that was made for such a packet is never wider than what was read.

use net_packet::Packet;
use net_packet::header::{
    Arp, Ethernet, Icmp, Igmp, Ipv4, Ipv6, Ipv6Extension, LlcSnap, Mpls, Nd, Sctp, Tcp, Udp, Vlan,
    eth_type, ip_proto,
};

use crate::key::{FlowKey, bits};
use crate::slot::{self, Slot};
use crate::types::{FRAG_ANY, FRAG_LATER, VLAN_CFI, icmpv6_type};

/// VLAN tags that a key has room for.
pub const MAX_VLANS: u8 = 2;
/// MPLS labels that a key has room for.
const MAX_LABELS: usize = 3;

/// Words of the key that do not come from the packet's bytes: bit `n` stands for word `n`.
const METADATA: u128 = {
    let mut map = (1 << slot::ETH_DST.word) - 1;
    let mut word = slot::CT_NW_SRC.word;
    while word <= slot::CT_TP_SRC.word {
        map |= 1 << word;
        word += 1;
    }
    word = slot::TUN_METADATA_PRESENT.word;
    while (word as usize) < crate::key::KEY_WORDS {
        map |= 1 << word;
        word += 1;
    }
    map
};

/// The part of a key that does not come from the packet's bytes: ports, marks, the tunnel, connection tracking,
/// registers.  It stays when a packet is looked at again after its bytes have changed.
pub fn metadata(key: &FlowKey) -> FlowKey {
    let mut kept = FlowKey::new();
    for word in bits(key.map() & METADATA) {
        kept.set_word(word, key.word(word));
    }
    kept
}

/// Puts the fields of `packet` into `key`, whose metadata is there already and in which the packet's fields are
/// zero; notes in the packet where its layers begin.  At most `max_vlans` tags are read (and never more than
/// [`MAX_VLANS`]): what follows them is then the Ethernet type.
pub fn extract(packet: &mut Packet, key: &mut FlowKey, max_vlans: u8) {
    packet.layers = net_packet::Layers::default();
    let packet_type = key.get(slot::PACKET_TYPE) as u32;
    let mut walk = Walk {
        frame: packet.data(),
        at: 0,
        layers: packet.layers,
        key,
    };
    walk.frame(packet_type, max_vlans);
    packet.layers = walk.layers;
}

/// A packet half read.
struct Walk<'a> {
    /// The frame, without padding once that is known.
    frame: &'a [u8],
    /// How far it was read.
    at: usize,
    layers: net_packet::Layers,
    key: &'a mut FlowKey,
}

/// The first word of a slot.
const fn word(slot: Slot) -> usize {
    slot.word as usize
}

/// Ethernet types as a packet type has them (ONF TS-025 section 7.2.3.1).
const NAMESPACE_ETHERTYPE: u32 = 1;

impl<'a> Walk<'a> {
    fn rest(&self) -> &'a [u8] {
        self.frame.get(self.at..).unwrap_or_default()
    }

    fn here(&self) -> Option<u16> {
        u16::try_from(self.at).ok()
    }

    fn frame(&mut self, packet_type: u32, max_vlans: u8) {
        let kind = if packet_type == 0 {
            let Some(kind) = self.ethernet(max_vlans) else {
                return;
            };
            kind
        } else if packet_type >> 16 == NAMESPACE_ETHERTYPE {
            let kind = packet_type as u16;
            self.key.set(slot::ETH_TYPE, u128::from(kind));
            kind
        } else {
            return;
        };
        if eth_type::is_mpls(kind) {
            self.layers.l2_5 = self.here();
            self.mpls();
        }
        self.layers.l3 = self.here();
        match kind {
            eth_type::IPV4 => self.ipv4(),
            eth_type::IPV6 => self.ipv6(),
            eth_type::ARP | eth_type::RARP => self.arp(),
            eth_type::NSH => self.nsh(),
            _ => {}
        }
    }

    /// Reads Ethernet addresses, VLAN tags and the Ethernet type.
    fn ethernet(&mut self, max_vlans: u8) -> Option<u16> {
        let eth = Ethernet::new(self.frame)?;
        self.at = Ethernet::LEN;
        let mut kind = eth.eth_type();
        let mut tags = 0u64;
        for n in 0..max_vlans.min(MAX_VLANS) {
            if !eth_type::is_vlan(kind) {
                break;
            }
            let Some(tag) = Vlan::new(self.rest()) else {
                break;
            };
            let pair = u64::from(kind) << 16 | u64::from(tag.tci() | VLAN_CFI);
            tags |= pair << (32 * (1 - n));
            kind = tag.eth_type();
            self.at += Vlan::LEN;
        }
        let kind = self.ether_type(kind);
        let first = eth.dst().to_u64() << 16 | u64::from(kind);
        self.key.set_word(word(slot::ETH_DST), first);
        self.key
            .set_word(word(slot::ETH_SRC), eth.src().to_u64() << 16);
        if tags != 0 {
            self.key.set_word(word(slot::VLAN_TCI), tags);
        }
        Some(kind)
    }

    /// The Ethernet type, which after a length may stand in an 802.2 SNAP header.
    fn ether_type(&mut self, kind: u16) -> u16 {
        if kind >= eth_type::MIN {
            return kind;
        }
        let Some(llc) = LlcSnap::new(self.rest()) else {
            return eth_type::NONE;
        };
        if llc.bytes()[..6] != [0xaa, 0xaa, 3, 0, 0, 0] {
            return eth_type::NONE;
        }
        self.at += LlcSnap::LEN;
        match llc.eth_type() {
            kind if kind >= eth_type::MIN => kind,
            _ => eth_type::NONE,
        }
    }

    fn mpls(&mut self) {
        const BOTTOM: u32 = 0x100;
        let mut labels = [0u32; MAX_LABELS];
        let mut count = 0;
        while let Some(mpls) = Mpls::new(self.rest()) {
            if let Some(label) = labels.get_mut(count) {
                *label = mpls.lse();
            }
            count += 1;
            self.at += Mpls::LEN;
            if mpls.lse() & BOTTOM != 0 {
                break;
            }
        }
        let [first, second, third] = labels.map(u64::from);
        self.key
            .set_word(word(slot::MPLS_LSE), first << 32 | second);
        self.key.set_word(word(slot::MPLS_LSE2), third << 32);
    }

    /// Notes the length of what follows the network packet, and forgets it.
    fn end_at(&mut self, len: usize) -> Option<()> {
        let end = self.at + len;
        let padding = u16::try_from(self.frame.len().checked_sub(end)?).ok()?;
        self.layers.padding = padding;
        self.frame = &self.frame[..end];
        Some(())
    }

    fn ipv4(&mut self) {
        let rest = self.rest();
        let Some(ip) = Ipv4::new(rest) else { return };
        let (header, total) = (ip.header_len(), usize::from(ip.total_len()));
        if header < Ipv4::LEN || header > total || self.end_at(total).is_none() {
            return;
        }
        let addresses = u64::from(ip.src().to_bits()) << 32 | u64::from(ip.dst().to_bits());
        self.key.set_word(word(slot::NW_SRC), addresses);
        let mut frag = 0;
        if ip.fragment() & 0x3fff != 0 {
            frag = FRAG_ANY;
            if ip.fragment() & 0x1fff != 0 {
                frag |= FRAG_LATER;
            }
        }
        self.at += header;
        self.network(0, frag, ip.tos(), ip.ttl(), ip.proto());
        self.transport(false, ip.proto(), frag);
    }

    fn network(&mut self, label: u32, frag: u8, tos: u8, ttl: u8, proto: u8) {
        let low = u32::from_be_bytes([frag, tos, ttl, proto]);
        let value = u64::from(label) << 32 | u64::from(low);
        self.key.set_word(word(slot::NW_PROTO), value);
        self.layers.l4 = self.here();
    }

    fn ipv6(&mut self) {
        let Some(ip) = Ipv6::new(self.rest()) else {
            return;
        };
        if self
            .end_at(Ipv6::LEN + usize::from(ip.payload_len()))
            .is_none()
        {
            return;
        }
        self.key.set(slot::IPV6_SRC, ip.src().to_bits());
        self.key.set(slot::IPV6_DST, ip.dst().to_bits());
        self.at += Ipv6::LEN;
        let Some((proto, frag)) = self.extensions(ip.next_header()) else {
            return;
        };
        let first = ip.version_class_label();
        let (tos, label) = ((first >> 20) as u8, first & 0xf_ffff);
        self.network(label, frag, tos, ip.hop_limit(), proto);
        self.transport(true, proto, frag);
    }

    /// Passes over the extension headers; the protocol and the fragment bits, or nothing if a header is cut short.
    fn extensions(&mut self, mut proto: u8) -> Option<(u8, u8)> {
        let mut frag = 0;
        loop {
            let unit = match proto {
                ip_proto::HOPOPTS | ip_proto::ROUTING | ip_proto::DSTOPTS => 8,
                ip_proto::AH => 4,
                ip_proto::FRAGMENT => 0,
                _ => return Some((proto, frag)),
            };
            let rest = self.rest();
            let extension = Ipv6Extension::new(rest)?;
            let len = match unit {
                8 => (usize::from(extension.length()) + 1) * 8,
                4 => (usize::from(extension.length()) + 2) * 4,
                _ => 8,
            };
            if len > rest.len() {
                return None;
            }
            self.at += len;
            proto = extension.next_header();
            if unit == 0 && extension.fragment() != 0 {
                frag = FRAG_ANY;
                if extension.fragment() & !7 != 0 {
                    return Some((ip_proto::FRAGMENT, FRAG_ANY | FRAG_LATER));
                }
            }
        }
    }

    fn arp(&mut self) {
        let Some(arp) = Arp::new(self.rest()) else {
            return;
        };
        if arp.bytes()[..6] != [0, 1, 8, 0, 6, 4] {
            return;
        }
        let addresses = u64::from(arp.spa().to_bits()) << 32 | u64::from(arp.tpa().to_bits());
        self.key.set_word(word(slot::NW_SRC), addresses);
        if arp.op() <= 0xff {
            self.key.set(slot::NW_PROTO, u128::from(arp.op()));
        }
        self.key.set(slot::ARP_SHA, u128::from(arp.sha().to_u64()));
        self.key.set(slot::ARP_THA, u128::from(arp.tha().to_u64()));
    }

    fn transport(&mut self, is_v6: bool, proto: u8, frag: u8) {
        if frag & FRAG_LATER != 0 {
            return;
        }
        let rest = self.rest();
        let mut ports = |src: u16, dst: u16| {
            let value = u64::from(src) << 48 | u64::from(dst) << 32;
            self.key.set_word(word(slot::TP_SRC), value);
        };
        match proto {
            ip_proto::TCP => {
                if let Some(tcp) = Tcp::new(rest)
                    && (Tcp::LEN..=rest.len()).contains(&tcp.header_len())
                {
                    ports(tcp.src(), tcp.dst());
                    self.key.set(slot::TCP_FLAGS, u128::from(tcp.flags()));
                }
            }
            ip_proto::UDP => {
                if let Some(udp) = Udp::new(rest) {
                    ports(udp.src(), udp.dst());
                }
            }
            ip_proto::SCTP => {
                if let Some(sctp) = Sctp::new(rest) {
                    ports(sctp.src(), sctp.dst());
                }
            }
            ip_proto::ICMP => {
                if let Some(icmp) = Icmp::new(rest) {
                    ports(u16::from(icmp.kind()), u16::from(icmp.code()));
                }
            }
            ip_proto::IGMP => {
                if let Some(igmp) = Igmp::new(rest) {
                    ports(u16::from(igmp.kind()), u16::from(igmp.code()));
                    let group = u128::from(igmp.group().to_bits());
                    self.key.set(slot::IGMP_GROUP, group);
                }
            }
            ip_proto::ICMPV6 => {
                if let Some(icmp) = Icmp::new(rest) {
                    ports(u16::from(icmp.kind()), u16::from(icmp.code()));
                    let nd = [icmpv6_type::ND_SOLICIT, icmpv6_type::ND_ADVERT];
                    if is_v6 && icmp.code() == 0 && nd.contains(&icmp.kind()) {
                        self.neighbour(icmp.rest());
                    }
                }
            }
            _ => {}
        }
    }

    /// Neighbour discovery: an option that comes twice makes target and addresses unusable.
    fn neighbour(&mut self, flags: u32) {
        const SOURCE: u8 = 1;
        const TARGET: u8 = 2;
        self.key.set(slot::IGMP_GROUP, u128::from(flags));
        let rest = self.rest();
        let Some(nd) = Nd::new(rest) else { return };
        let (mut source, mut target, mut first) = (0u64, 0u64, 0u8);
        let mut options = &rest[Nd::LEN..];
        while let Some([kind, units, address @ ..]) = options.first_chunk::<8>() {
            let len = usize::from(*units) * 8;
            if len == 0 || len > options.len() {
                break;
            }
            options = &options[len..];
            let place = match (*kind, len) {
                (SOURCE, 8) => &mut source,
                (TARGET, 8) => &mut target,
                _ => continue,
            };
            if *place != 0 {
                // As invalid as if it were absent.
                self.key.set(slot::TCP_FLAGS, u128::from(first));
                return;
            }
            *place = net_packet::EthAddr(*address).to_u64();
            if first == 0 {
                first = *kind;
            }
        }
        self.key.set(slot::ND_TARGET, nd.target().to_bits());
        self.key.set(slot::ARP_SHA, u128::from(source));
        self.key.set(slot::ARP_THA, u128::from(target));
        self.key.set(slot::TCP_FLAGS, u128::from(first));
    }

    /// The network service header (RFC 8300).
    fn nsh(&mut self) {
        let rest = self.rest();
        let Some([a, b, md_type, next, path @ ..]) = rest.first_chunk::<8>() else {
            return;
        };
        let first = u16::from_be_bytes([*a, *b]);
        let len = usize::from(first & 0x3f) * 4;
        let is_known = first >> 14 == 0 && (8..=rest.len()).contains(&len);
        if !is_known || (*md_type == 1 && len != 24) {
            return;
        }
        let key = &mut *self.key;
        key.set(slot::NSH_FLAGS, u128::from(first >> 12 & 3));
        key.set(slot::NSH_TTL, u128::from(first >> 6 & 0x3f));
        key.set(slot::NSH_MDTYPE, u128::from(*md_type));
        key.set(slot::NSH_NP, u128::from(*next));
        let path = u32::from_be_bytes(*path);
        key.set(slot::NSH_SPI, u128::from(path >> 8));
        key.set(slot::NSH_SI, u128::from(path & 0xff));
        if *md_type == 1 {
            let slots = [slot::NSH_C1, slot::NSH_C2, slot::NSH_C3, slot::NSH_C4];
            for (slot, bytes) in slots.iter().zip(rest[8..].as_chunks::<4>().0) {
                key.set(*slot, u128::from(u32::from_be_bytes(*bytes)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compose::compose;

    fn key_of(frame: &[u8]) -> (FlowKey, net_packet::Layers) {
        let mut key = FlowKey::new();
        let mut packet = Packet::from_frame(frame);
        extract(&mut packet, &mut key, MAX_VLANS);
        (key, packet.layers)
    }

    /// Keys of one packet of each kind, as they come out of extraction.
    fn samples() -> Vec<FlowKey> {
        let mut all = Vec::new();
        let mut base = FlowKey::new();
        base.set(slot::ETH_DST, 0x0123_4567_89ab);
        base.set(slot::ETH_SRC, 0x0200_0000_0001);
        for proto in [1u8, 2, 6, 17, 58, 132, 200] {
            for is_v6 in [false, true] {
                let mut key = base.clone();
                key.set(slot::NW_PROTO, u128::from(proto));
                key.set(slot::NW_TOS, 0xb9);
                key.set(slot::NW_TTL, 64);
                if is_v6 {
                    key.set(slot::ETH_TYPE, 0x86dd);
                    key.set(slot::IPV6_SRC, 1 << 127 | 5);
                    key.set(slot::IPV6_DST, 7);
                    key.set(slot::IPV6_LABEL, 0xabcde);
                } else {
                    key.set(slot::ETH_TYPE, 0x0800);
                    key.set(slot::NW_SRC, 0x0a00_0001);
                    key.set(slot::NW_DST, 0x0a00_0002);
                }
                if proto == 200 {
                    all.push(key);
                    continue;
                }
                key.set(slot::TP_SRC, 8);
                if matches!(proto, 6 | 17 | 132) {
                    key.set(slot::TP_DST, 0x1234);
                }
                match proto {
                    2 => key.set(slot::IGMP_GROUP, 0xe000_0001),
                    6 => key.set(slot::TCP_FLAGS, 0x012),
                    58 if is_v6 => {
                        key.set(slot::TP_SRC, 135);
                        key.set(slot::ND_TARGET, 9 << 100);
                        key.set(slot::ARP_SHA, 0x0200_0000_0007);
                        key.set(slot::TCP_FLAGS, 1);
                    }
                    _ => {}
                }
                all.push(key);
            }
        }
        let mut arp = base.clone();
        arp.set(slot::ETH_TYPE, 0x0806);
        arp.set(slot::NW_PROTO, 1);
        arp.set(slot::NW_SRC, 0x0a00_0001);
        arp.set(slot::NW_DST, 0x0a00_0002);
        arp.set(slot::ARP_SHA, 0x0200_0000_0001);
        all.push(arp);
        let mut nsh = base.clone();
        nsh.set(slot::ETH_TYPE, 0x894f);
        nsh.set(slot::NSH_TTL, 63);
        nsh.set(slot::NSH_MDTYPE, 1);
        nsh.set(slot::NSH_NP, 3);
        nsh.set(slot::NSH_SPI, 0x0a_bcde);
        nsh.set(slot::NSH_SI, 255);
        nsh.set(slot::NSH_C4, 0xdead_beef);
        all.push(nsh);
        let mut mpls = base.clone();
        mpls.set(slot::ETH_TYPE, 0x8847);
        mpls.set(slot::MPLS_LSE, 0x0001_1040);
        mpls.set(slot::MPLS_LSE1, 0x0002_2140);
        all.push(mpls);
        base.set(slot::ETH_TYPE, 0x05ff);
        all.push(base);
        all
    }

    #[test]
    fn composed_packets_have_the_key_that_they_were_made_of() {
        for key in samples() {
            for tags in 0..=2 {
                let mut key = key.clone();
                if key.get(slot::ETH_TYPE) != 0x05ff {
                    if tags > 0 {
                        key.set(slot::VLAN_TPID, 0x88a8);
                        key.set(slot::VLAN_TCI, 0x7064);
                    }
                    if tags > 1 {
                        key.set(slot::VLAN2_TPID, 0x8100);
                        key.set(slot::VLAN2_TCI, 0x1005);
                    }
                }
                let packet = Packet::from_frame(&compose(&key, 64));
                assert_eq!(key_of(packet.data()).0, key);
                let mut outer = FlowKey::new();
                extract(&mut packet.clone(), &mut outer, 1);
                if tags == 2 && key.get(slot::ETH_TYPE) != 0x05ff {
                    assert_eq!(outer.get(slot::ETH_TYPE), 0x8100);
                    assert_eq!(outer.get(slot::VLAN2_TCI), 0);
                }
            }
        }
    }

    #[test]
    fn long_padding_does_not_hide_the_transport_header() {
        for key in samples() {
            let mut frame = compose(&key, 10);
            let is_ip = matches!(key.get(slot::ETH_TYPE), 0x0800 | 0x86dd);
            frame.extend([0xee; 300]);
            let (got, layers) = key_of(&frame);
            assert_eq!(got, key);
            assert_eq!(layers.padding, if is_ip { 300 } else { 0 });
        }
    }

    #[test]
    fn lengths_that_lie_leave_what_is_behind_them_zero() {
        let mut key = samples()[4].clone();
        assert_eq!(key.get(slot::NW_PROTO), 6);
        let good = compose(&key, 0);
        let changed = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            key_of(&frame).0
        };
        // Header length below 20 and beyond the packet; total length below the header and beyond the frame.
        for (at, value) in [(14, 0x44), (14, 0x4f), (17, 19), (17, 41)] {
            let got = changed(at, value);
            let read = (got.get(slot::ETH_TYPE), got.get(slot::NW_PROTO));
            assert_eq!(read, (0x0800, 0), "{at} {value}");
        }
        // TCP data offset below 5 and beyond the segment.
        for value in [0x40, 0x60] {
            let got = changed(46, value);
            let read = (got.get(slot::NW_PROTO), got.get(slot::TP_SRC));
            assert_eq!(read, (6, 0));
            assert_eq!(got.get(slot::TCP_FLAGS), 0);
        }
        // Fragments: the first has ports, later ones have not.
        key.set(slot::NW_FRAG, u128::from(FRAG_ANY));
        assert_eq!(changed(20, 0x20), key);
        let later = changed(21, 1);
        let read = (later.get(slot::NW_FRAG), later.get(slot::TP_DST));
        assert_eq!(read, (3, 0));
        assert_eq!(later.get(slot::NW_PROTO), 6);
    }

    #[test]
    fn ipv6_fragments_and_extensions() {
        let key = &samples()[7];
        assert_eq!(
            (key.get(slot::NW_PROTO), key.get(slot::ETH_TYPE)),
            (17, 0x86dd)
        );
        let good = compose(key, 0);
        let with = |first: u8, extension: &[u8]| {
            let mut frame = good.clone();
            frame[20] = first;
            frame[19] += u8::try_from(extension.len()).unwrap();
            frame.splice(54..54, extension.iter().copied());
            key_of(&frame).0
        };
        assert_eq!(with(0, &[17, 0, 0, 0, 0, 0, 0, 0]), *key);
        assert_eq!(with(51, &[17, 0, 0, 0, 0, 0, 0, 0]), *key);
        let mut first = key.clone();
        first.set(slot::NW_FRAG, 1);
        assert_eq!(with(44, &[17, 0, 0, 1, 0, 0, 0, 0]), first);
        assert_eq!(with(44, &[17, 0, 0, 0, 0, 0, 0, 0]), *key);
        let later = with(44, &[17, 0, 0, 9, 0, 0, 0, 0]);
        assert_eq!(
            (later.get(slot::NW_PROTO), later.get(slot::NW_FRAG)),
            (44, 3)
        );
        assert_eq!(later.get(slot::TP_SRC), 0);
        // An extension that ends past the packet: nothing of the network layer but addresses.
        let cut = with(0, &[17, 200, 0, 0, 0, 0, 0, 0]);
        assert_eq!((cut.get(slot::NW_TTL), cut.get(slot::IPV6_DST)), (0, 7));
    }

    #[test]
    fn snap_has_the_type_that_it_carries() {
        let mut frame = vec![2; 12];
        frame.extend([0, 20, 0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x06]);
        assert_eq!(key_of(&frame).0.get(slot::ETH_TYPE), 0x0806);
        frame[16] = 4;
        assert_eq!(key_of(&frame).0.get(slot::ETH_TYPE), 0x05ff);
        assert_eq!(key_of(&frame[..13]).0, FlowKey::new());
    }

    #[test]
    fn an_nd_option_that_comes_twice_is_not_believed() {
        let key = samples().into_iter().find(|k| k.get(slot::ND_TARGET) != 0);
        let mut frame = compose(&key.unwrap(), 0);
        frame.extend([1, 1, 2, 2, 2, 2, 2, 2]);
        frame[19] += 8;
        let (got, _) = key_of(&frame);
        assert_eq!(got.get(slot::ND_TARGET), 0);
        assert_eq!((got.get(slot::ARP_SHA), got.get(slot::TP_SRC)), (0, 135));
    }

    #[test]
    fn metadata_survives_and_the_rest_does_not() {
        let mut key = samples()[4].clone();
        for slot in [slot::IN_PORT, slot::CT_TP_DST, slot::TUN_ID, slot::CT_LABEL] {
            key.set(slot, 77);
        }
        let kept = metadata(&key);
        assert_eq!(kept.iter().count(), 4);
        assert_eq!((kept.get(slot::IN_PORT), kept.get(slot::NW_SRC)), (77, 0));
    }

    proptest! {
        #[test]
        fn hostile_packets_do_no_harm(
            index in 0usize..18,
            hits in proptest::collection::vec((0usize..120, any::<u8>()), 0..6),
            len in 0usize..160,
        ) {
            let samples = samples();
            let key = &samples[index % samples.len()];
            let mut frame = compose(key, 40);
            for (at, value) in hits {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            frame.truncate(len);
            let (got, layers) = key_of(&frame);
            for offset in [layers.l2_5, layers.l3, layers.l4].into_iter().flatten() {
                prop_assert!(usize::from(offset) <= frame.len());
            }
            // Whatever edits follow must not touch what is not there.
            let mut packet = Packet::from_frame(&frame);
            extract(&mut packet, &mut FlowKey::new(), 2);
            net_packet::edit::set_tcp_ports(&mut packet, 1, 2);
            net_packet::edit::set_sctp_ports(&mut packet, 1, 2);
            net_packet::edit::pop_eth(&mut packet);
            prop_assert!(got.get(slot::NW_FRAG) < 4);
        }
    }
}
