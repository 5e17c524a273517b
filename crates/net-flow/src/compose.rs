//! Packets made from flow keys: frames that extraction would read the same key from.

use net_packet::checksum::{Sum, checksum, pseudo_header4, pseudo_header6};

use crate::key::FlowKey;
use crate::slot::{self, Slot};
use crate::types::{eth_type, ip_proto};

/// Bytes of payload that a composed packet has unless told otherwise.
pub const DEFAULT_PAYLOAD: usize = 64;

const ETH_LEN: usize = 14;
const CFI: u128 = 0x1000;
const BOTTOM_OF_STACK: u128 = 0x100;

/// SYN, FIN and RST: segments that carry no payload.
const TCP_CONTROL: u128 = 0x07;

/// A frame with the header fields of `key`, and `payload` bytes where its protocol carries
/// any.  Checksums are right.  What the key does not say is zero.
pub fn compose(key: &FlowKey, payload: usize) -> Vec<u8> {
    let counting: Vec<u8> = (0..payload).map(|i| i as u8).collect();
    compose_with(key, &counting)
}

/// The same with this payload.
pub fn compose_with(key: &FlowKey, payload: &[u8]) -> Vec<u8> {
    let mut frame = Frame {
        key,
        bytes: Vec::with_capacity(128 + payload.len()),
    };
    frame.ethernet(payload);
    frame.bytes
}

/// The same, with as much payload of zeros as makes a frame of `len` bytes; none if the
/// headers alone are longer.
pub fn compose_of_length(key: &FlowKey, len: usize) -> Option<Vec<u8>> {
    let bare = compose(key, 0);
    let missing = len.checked_sub(bare.len())?;
    let mut padded = bare;
    padded.resize(len, 0);
    if missing > 0 {
        correct_lengths(key, &mut padded);
    }
    Some(padded)
}

struct Frame<'a> {
    key: &'a FlowKey,
    bytes: Vec<u8>,
}

impl Frame<'_> {
    fn put(&mut self, slot: Slot) {
        let value = self.key.get(slot).to_be_bytes();
        let len = usize::from(slot.bits).div_ceil(8);
        self.bytes.extend(&value[16 - len..]);
    }

    fn put_u16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn ethernet(&mut self, payload: &[u8]) {
        self.put(slot::ETH_DST);
        self.put(slot::ETH_SRC);
        for (tpid, tci) in [
            (slot::VLAN_TPID, slot::VLAN_TCI),
            (slot::VLAN2_TPID, slot::VLAN2_TCI),
        ] {
            let value = self.key.get(tci);
            if value & CFI != 0 {
                let protocol = match self.key.get(tpid) {
                    0 => eth_type::VLAN,
                    other => other as u16,
                };
                self.put_u16(protocol);
                self.put_u16((value & !CFI) as u16);
            }
        }
        let ethertype = self.key.get(slot::ETH_TYPE) as u16;
        if ethertype == eth_type::NONE {
            self.put_u16(ETH_LEN as u16);
            return;
        }
        self.put_u16(ethertype);
        match ethertype {
            eth_type::IPV4 => self.ipv4(payload),
            eth_type::IPV6 => self.ipv6(payload),
            eth_type::ARP | eth_type::RARP => self.arp(),
            eth_type::MPLS | eth_type::MPLS_MULTICAST => self.mpls(),
            eth_type::NSH => self.nsh(),
            _ => {}
        }
    }

    fn mpls(&mut self) {
        for entry in [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2] {
            self.put(entry);
            if self.key.get(entry) & BOTTOM_OF_STACK != 0 {
                break;
            }
        }
    }

    fn arp(&mut self) {
        self.bytes.extend([0, 1, 8, 0, 6, 4, 0]);
        self.put(slot::NW_PROTO);
        if matches!(self.key.get(slot::NW_PROTO), 1 | 2) {
            self.put(slot::ARP_SHA);
            self.put(slot::NW_SRC);
            self.put(slot::ARP_THA);
            self.put(slot::NW_DST);
        } else {
            self.bytes.extend([0; 20]);
        }
    }

    fn nsh(&mut self) {
        let has_contexts = self.key.get(slot::NSH_MDTYPE) == 1;
        let words: u16 = if has_contexts { 6 } else { 2 };
        let flags = self.key.get(slot::NSH_FLAGS) as u16 & 0x3;
        let ttl = self.key.get(slot::NSH_TTL) as u16 & 0x3f;
        self.put_u16(flags << 12 | ttl << 6 | words);
        self.put(slot::NSH_MDTYPE);
        self.put(slot::NSH_NP);
        self.put(slot::NSH_SPI);
        self.put(slot::NSH_SI);
        if has_contexts {
            for context in [slot::NSH_C1, slot::NSH_C2, slot::NSH_C3, slot::NSH_C4] {
                self.put(context);
            }
        }
    }

    fn ipv4(&mut self, payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.push(0x45);
        self.put(slot::NW_TOS);
        self.bytes.extend([0; 4]);
        let fragment = match self.key.get(slot::NW_FRAG) & 3 {
            1 => 0x2000,
            3 => 0x2064,
            _ => 0,
        };
        self.put_u16(fragment);
        self.put(slot::NW_TTL);
        self.put(slot::NW_PROTO);
        self.bytes.extend([0; 2]);
        self.put(slot::NW_SRC);
        self.put(slot::NW_DST);
        self.transport(payload);
        correct_ipv4(&mut self.bytes[start..]);
        let len = self.bytes.len() - start - 20;
        let protocol = self.key.get(slot::NW_PROTO) as u8;
        let sum = pseudo_header4(&self.bytes[start + 12..start + 20], protocol, len);
        correct_transport(self.key, &mut self.bytes[start + 20..], sum);
    }

    fn ipv6(&mut self, payload: &[u8]) {
        let start = self.bytes.len();
        let class = self.key.get(slot::NW_TOS) as u32;
        let label = self.key.get(slot::IPV6_LABEL) as u32;
        self.put_u32(6 << 28 | class << 20 | label);
        self.bytes.extend([0; 2]);
        self.put(slot::NW_PROTO);
        self.put(slot::NW_TTL);
        self.put(slot::IPV6_SRC);
        self.put(slot::IPV6_DST);
        self.transport(payload);
        let len = self.bytes.len() - start - 40;
        self.bytes[start + 4..start + 6].copy_from_slice(&(len as u16).to_be_bytes());
        let protocol = self.key.get(slot::NW_PROTO) as u8;
        let sum = pseudo_header6(&self.bytes[start + 8..start + 40], protocol, len);
        correct_transport(self.key, &mut self.bytes[start + 40..], sum);
    }

    fn transport(&mut self, payload: &[u8]) {
        if self.key.get(slot::NW_FRAG) & 2 != 0 {
            return;
        }
        match self.key.get(slot::NW_PROTO) as u8 {
            ip_proto::TCP => {
                self.put(slot::TP_SRC);
                self.put(slot::TP_DST);
                self.bytes.extend([0; 8]);
                let flags = self.key.get(slot::TCP_FLAGS);
                self.put_u16(0x5000 | (flags & 0xfff) as u16);
                self.bytes.extend([0; 6]);
                if flags & TCP_CONTROL == 0 {
                    self.bytes.extend(payload);
                }
            }
            ip_proto::UDP => {
                self.put(slot::TP_SRC);
                self.put(slot::TP_DST);
                self.put_u16((8 + payload.len()) as u16);
                self.put_u16(0);
                self.bytes.extend(payload);
            }
            ip_proto::SCTP => {
                self.put(slot::TP_SRC);
                self.put(slot::TP_DST);
                self.bytes.extend([0; 8]);
            }
            ip_proto::ICMP => {
                self.type_and_code();
                self.bytes.extend([0; 6]);
                if matches!(self.key.get(slot::TP_SRC), 0 | 8) && self.key.get(slot::TP_DST) == 0 {
                    self.bytes.extend(payload);
                }
            }
            ip_proto::IGMP => {
                self.type_and_code();
                self.put_u16(0);
                self.put(slot::IGMP_GROUP);
            }
            ip_proto::ICMPV6 => self.icmpv6(payload),
            _ => {}
        }
    }

    fn type_and_code(&mut self) {
        self.put(slot::TP_SRC.part(0, 8));
        self.put(slot::TP_DST.part(0, 8));
    }

    fn icmpv6(&mut self, payload: &[u8]) {
        self.type_and_code();
        self.put_u16(0);
        self.put(slot::IGMP_GROUP);
        let kind = self.key.get(slot::TP_SRC);
        if self.key.get(slot::TP_DST) != 0 {
            return;
        }
        match kind {
            135 | 136 => {
                self.put(slot::ND_TARGET);
                for (option, address) in [(1, slot::ARP_SHA), (2, slot::ARP_THA)] {
                    if self.key.get(address) != 0 {
                        self.bytes.extend([option, 1]);
                        self.put(address);
                    }
                }
            }
            128 | 129 => self.bytes.extend(payload),
            _ => {}
        }
    }
}

/// Fills in the length and the checksum of an IPv4 packet.
fn correct_ipv4(packet: &mut [u8]) {
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[10..12].fill(0);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Fills in the checksum of a transport header and its payload.
fn correct_transport(key: &FlowKey, packet: &mut [u8], pseudo_header: Sum) {
    if key.get(slot::NW_FRAG) & 2 != 0 {
        return;
    }
    let (at, start) = match key.get(slot::NW_PROTO) as u8 {
        ip_proto::TCP => (16, pseudo_header),
        ip_proto::UDP => (6, pseudo_header),
        ip_proto::ICMPV6 => (2, pseudo_header),
        ip_proto::ICMP | ip_proto::IGMP => (2, Sum::ZERO),
        _ => return,
    };
    if packet.len() < at + 2 {
        return;
    }
    packet[at..at + 2].fill(0);
    let mut sum = start.with(packet).checksum();
    if sum == 0 && key.get(slot::NW_PROTO) as u8 == ip_proto::UDP {
        sum = 0xffff;
    }
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Where the payload of Ethernet begins in a composed frame.
fn network_offset(key: &FlowKey) -> usize {
    let tags = [slot::VLAN_TCI, slot::VLAN2_TCI];
    ETH_LEN + 4 * tags.iter().filter(|t| key.get(**t) & CFI != 0).count()
}

/// Brings lengths and checksums up to date after bytes were added at the end.
fn correct_lengths(key: &FlowKey, frame: &mut [u8]) {
    let start = network_offset(key);
    let whole = frame.len() as u16;
    let packet = &mut frame[start..];
    let (header, sum) = match key.get(slot::ETH_TYPE) as u16 {
        eth_type::IPV4 => {
            correct_ipv4(packet);
            let len = packet.len() - 20;
            (20, pseudo_header4(&packet[12..20], packet[9], len))
        }
        eth_type::IPV6 => {
            let len = packet.len() - 40;
            packet[4..6].copy_from_slice(&(len as u16).to_be_bytes());
            (40, pseudo_header6(&packet[8..40], packet[6], len))
        }
        eth_type::NONE => {
            frame[start - 2..start].copy_from_slice(&whole.to_be_bytes());
            return;
        }
        _ => return,
    };
    let transport = &mut packet[header..];
    let is_udp = key.get(slot::NW_PROTO) as u8 == ip_proto::UDP;
    if is_udp && key.get(slot::NW_FRAG) & 2 == 0 {
        let len = transport.len() as u16;
        transport[4..6].copy_from_slice(&len.to_be_bytes());
    }
    correct_transport(key, transport, sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fields: &[(Slot, u128)]) -> FlowKey {
        let mut key = FlowKey::new();
        for (slot, value) in fields {
            key.set(*slot, *value);
        }
        key
    }

    fn ip(protocol: u8) -> FlowKey {
        key(&[
            (slot::ETH_TYPE, 0x800),
            (slot::NW_SRC, 0x0a00_0001),
            (slot::NW_DST, 0x0a00_0002),
            (slot::NW_TTL, 64),
            (slot::NW_PROTO, u128::from(protocol)),
        ])
    }

    #[test]
    fn lengths_are_those_of_the_headers() {
        let mut tcp = ip(ip_proto::TCP);
        assert_eq!(compose(&tcp, 64).len(), 118);
        tcp.set(slot::TCP_FLAGS, 2);
        assert_eq!(compose(&tcp, 64).len(), 54);
        let mut icmp = ip(ip_proto::ICMP);
        icmp.set(slot::TP_SRC, 8);
        assert_eq!(compose(&icmp, 64).len(), 106);
        let arp = key(&[(slot::ETH_TYPE, 0x806), (slot::NW_PROTO, 1)]);
        assert_eq!(compose(&arp, 64).len(), 42);
        let none = key(&[(slot::ETH_TYPE, 0x5ff)]);
        assert_eq!(compose(&none, 64)[12..], [0, 14]);
        let tagged = key(&[(slot::ETH_TYPE, 0x806), (slot::VLAN_TCI, 0x3005)]);
        assert_eq!(compose(&tagged, 0)[12..18], [0x81, 0, 0x20, 5, 8, 6]);
    }

    #[test]
    fn checksums_are_right_with_and_without_padding() {
        let udp = ip(ip_proto::UDP);
        for frame in [compose(&udp, 64), compose_of_length(&udp, 200).unwrap()] {
            assert_eq!(checksum(&frame[14..34]), 0);
            let len = frame.len() - 34;
            assert_eq!(frame[38..40], (len as u16).to_be_bytes());
            let sum = pseudo_header4(&frame[26..34], 17, len);
            assert_eq!(sum.with(&frame[34..]).checksum(), 0);
        }
        assert_eq!(compose_of_length(&udp, 41), None);
        assert_eq!(compose_of_length(&udp, 42).unwrap().len(), 42);
    }

    #[test]
    fn neighbour_discovery_carries_its_options() {
        let nd = key(&[
            (slot::ETH_TYPE, 0x86dd),
            (slot::NW_PROTO, 58),
            (slot::TP_SRC, 135),
            (slot::ND_TARGET, 5),
            (slot::ARP_SHA, 0x0102_0304_0506),
        ]);
        let frame = compose(&nd, 64);
        assert_eq!(frame.len(), 14 + 40 + 8 + 16 + 8);
        assert_eq!(frame[78..], [1, 1, 1, 2, 3, 4, 5, 6]);
        let sum = pseudo_header6(&frame[22..54], 58, frame.len() - 54);
        assert_eq!(sum.with(&frame[54..]).checksum(), 0);
    }
}
