//! Masked writes of header fields into packets.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use net_flow::slot::{self, Slot};
use net_flow::{FlowKey, MiniKey};
use net_packet::edit::{self, ArpFields, Ipv4Fields, Ipv6Fields};
use net_packet::header::{Arp, Ethernet, Icmp, Ipv4, Ipv6, Mpls, Nd, Udp};
use net_packet::{EthAddr, Packet};

use crate::action::SetField;
use crate::attr::KeyAttr;

/// The value that `mini` has in `slot`; zero where it has no word.
fn get(mini: &MiniKey, slot: Slot) -> u128 {
    let word = |index: u8| {
        let bit = 1u128 << index;
        if mini.map() & bit == 0 {
            return 0;
        }
        let before = (mini.map() & (bit - 1)).count_ones() as usize;
        mini.words()[before]
    };
    if slot.bits > 64 {
        u128::from(word(slot.word)) << 64 | u128::from(word(slot.word + 1))
    } else {
        u128::from(word(slot.word) >> slot.shift) & slot.max()
    }
}

/// One write.
struct Write<'a>(&'a SetField);

impl Write<'_> {
    /// What `old` becomes in `slot`.
    fn over(&self, slot: Slot, old: u128) -> u128 {
        let mask = get(&self.0.mask, slot);
        (old & !mask) | (get(&self.0.key, slot) & mask)
    }

    fn u8(&self, slot: Slot, old: u8) -> u8 {
        self.over(slot, u128::from(old)) as u8
    }

    fn u16(&self, slot: Slot, old: u16) -> u16 {
        self.over(slot, u128::from(old)) as u16
    }

    fn u32(&self, slot: Slot, old: u32) -> u32 {
        self.over(slot, u128::from(old)) as u32
    }

    fn mac(&self, slot: Slot, old: EthAddr) -> EthAddr {
        EthAddr::from_u64(self.over(slot, u128::from(old.to_u64())) as u64)
    }

    fn ipv4(&self, slot: Slot, old: Ipv4Addr) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.u32(slot, old.to_bits()))
    }

    fn ipv6(&self, slot: Slot, old: Ipv6Addr) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.over(slot, old.to_bits()))
    }
}

fn at(packet: &Packet, layer: Option<u16>) -> Option<&[u8]> {
    layer.map(|offset| packet.tail_from(usize::from(offset)))
}

/// Writes fields of a packet, or of its metadata in `key`.  Fields of a header that the packet does not have are left
/// alone.
pub(crate) fn set(field: &SetField, packet: &mut Packet, key: &mut Cow<'_, FlowKey>) {
    let write = Write(field);
    match field.attr {
        KeyAttr::Priority | KeyAttr::Mark | KeyAttr::Tunnel => {
            let key = key.to_mut();
            for slot in field.attr.slots() {
                key.set(*slot, write.over(*slot, key.get(*slot)));
            }
        }
        // Network service headers are written by the tunnel code, once it is there.
        KeyAttr::Nsh => set_nsh(&write, packet),
        _ => {
            // Without this the borrow of what is read would outlive the write.
            let _ = set_header(&write, field.attr, packet, key.get(slot::NW_PROTO) as u8);
        }
    }
}

fn set_header(write: &Write<'_>, attr: KeyAttr, packet: &mut Packet, proto: u8) -> Option<()> {
    let layers = packet.layers;
    match attr {
        KeyAttr::Ethernet => {
            let eth = Ethernet::new(packet.data())?;
            let src = write.mac(slot::ETH_SRC, eth.src());
            let dst = write.mac(slot::ETH_DST, eth.dst());
            edit::set_eth(packet, src, dst);
        }
        KeyAttr::Ipv4 => {
            let ip = Ipv4::new(at(packet, layers.l3)?)?;
            let fields = Ipv4Fields {
                src: write.ipv4(slot::NW_SRC, ip.src()),
                dst: write.ipv4(slot::NW_DST, ip.dst()),
                tos: write.u8(slot::NW_TOS, ip.tos()),
                ttl: write.u8(slot::NW_TTL, ip.ttl()),
            };
            edit::set_ipv4(packet, &fields);
        }
        KeyAttr::Ipv6 => {
            let ip = Ipv6::new(at(packet, layers.l3)?)?;
            let first = ip.version_class_label();
            let fields = Ipv6Fields {
                src: write.ipv6(slot::IPV6_SRC, ip.src()),
                dst: write.ipv6(slot::IPV6_DST, ip.dst()),
                proto,
                class: write.u8(slot::NW_TOS, (first >> 20) as u8),
                label: write.u32(slot::IPV6_LABEL, first & 0xf_ffff),
                hop_limit: write.u8(slot::NW_TTL, ip.hop_limit()),
            };
            edit::set_ipv6(packet, &fields);
        }
        KeyAttr::Tcp | KeyAttr::Udp | KeyAttr::Sctp => {
            // The ports are in the same place in all three.
            let ports = Udp::new(at(packet, layers.l4)?)?;
            let src = write.u16(slot::TP_SRC, ports.src());
            let dst = write.u16(slot::TP_DST, ports.dst());
            match attr {
                KeyAttr::Tcp => edit::set_tcp_ports(packet, src, dst),
                KeyAttr::Udp => edit::set_udp_ports(packet, src, dst),
                _ => edit::set_sctp_ports(packet, src, dst),
            }
        }
        KeyAttr::Icmp | KeyAttr::Icmpv6 => {
            let icmp = Icmp::new(at(packet, layers.l4)?)?;
            let kind = write.u16(slot::TP_SRC, u16::from(icmp.kind())) as u8;
            let code = write.u16(slot::TP_DST, u16::from(icmp.code())) as u8;
            edit::set_icmp(packet, kind, code);
        }
        KeyAttr::Arp => {
            let arp = Arp::new(at(packet, layers.l3)?)?;
            let fields = ArpFields {
                op: arp_op(write, arp.op()),
                spa: write.ipv4(slot::NW_SRC, arp.spa()),
                tpa: write.ipv4(slot::NW_DST, arp.tpa()),
                sha: write.mac(slot::ARP_SHA, arp.sha()),
                tha: write.mac(slot::ARP_THA, arp.tha()),
            };
            edit::set_arp(packet, &fields);
        }
        KeyAttr::Nd => {
            let nd = Nd::new(at(packet, layers.l4)?)?;
            let target = write.ipv6(slot::ND_TARGET, nd.target());
            let source_at = nd_option(packet, 1).unwrap_or_default();
            let target_at = nd_option(packet, 2).unwrap_or_default();
            let source = write.mac(slot::ARP_SHA, source_at);
            let target_mac = write.mac(slot::ARP_THA, target_at);
            edit::set_nd(packet, target, source, target_mac);
        }
        KeyAttr::NdExtensions => {
            let icmp = Icmp::new(at(packet, layers.l4)?)?;
            let reserved = write.u32(slot::IGMP_GROUP, icmp.rest());
            edit::set_nd_reserved(packet, reserved);
            let option = *at(packet, layers.l4)?.get(Nd::LEN)?;
            let kind = write.u16(slot::TCP_FLAGS, u16::from(option)) as u8;
            edit::set_nd_option_type(packet, kind);
        }
        KeyAttr::Mpls => {
            let mpls = Mpls::new(at(packet, layers.l2_5)?)?;
            let lse = write.u32(slot::MPLS_LSE, mpls.lse());
            edit::set_mpls_lse(packet, lse);
        }
        KeyAttr::Priority | KeyAttr::Mark | KeyAttr::Tunnel | KeyAttr::Nsh => {}
    }
    Some(())
}

/// The operation of ARP, of which keys know those up to 255, and the others as zero.
fn arp_op(write: &Write<'_>, old: u16) -> u16 {
    let known = u8::try_from(old).unwrap_or(0);
    match u16::from(write.u8(slot::NW_PROTO, known)) {
        new if new == u16::from(known) => old,
        new => new,
    }
}

/// The address in the first link-layer address option of a kind.
fn nd_option(packet: &Packet, kind: u8) -> Option<EthAddr> {
    let l4 = at(packet, packet.layers.l4)?;
    let mut options = l4.get(Nd::LEN..)?;
    while let Some([k, units, address @ ..]) = options.first_chunk::<8>() {
        if *k == kind && *units == 1 {
            return Some(EthAddr(*address));
        }
        options = options.get(usize::from(*units).max(1) * 8..)?;
    }
    None
}

/// Writes fields of a network service header (RFC 8300), which has no checksum.
fn set_nsh(write: &Write<'_>, packet: &mut Packet) {
    let Some(l3) = packet.layers.l3.map(usize::from) else {
        return;
    };
    let Some(base) = packet.tail_from(l3).first_chunk::<8>().copied() else {
        return;
    };
    let first = u16::from_be_bytes([base[0], base[1]]);
    let flags = write.u16(slot::NSH_FLAGS, (first >> 12) & 3) & 3;
    let ttl = write.u16(slot::NSH_TTL, (first >> 6) & 0x3f) & 0x3f;
    let first = (first & 0xc03f) | (flags << 12) | (ttl << 6);
    let path = u32::from_be_bytes([base[4], base[5], base[6], base[7]]);
    let spi = write.u32(slot::NSH_SPI, path >> 8);
    let si = write.u32(slot::NSH_SI, path & 0xff);
    let data = packet.data_mut();
    data[l3..l3 + 2].copy_from_slice(&first.to_be_bytes());
    data[l3 + 4..l3 + 8].copy_from_slice(&((spi << 8) | (si & 0xff)).to_be_bytes());
    let has_contexts = base[2] == 1 && data.len() >= l3 + 24;
    let slots = [slot::NSH_C1, slot::NSH_C2, slot::NSH_C3, slot::NSH_C4];
    for (n, slot) in slots.into_iter().enumerate().filter(|_| has_contexts) {
        let place = &mut data[l3 + 8 + 4 * n..l3 + 12 + 4 * n];
        let old = u32::from_be_bytes([place[0], place[1], place[2], place[3]]);
        place.copy_from_slice(&write.u32(slot, old).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use net_flow::FlowMask;

    use super::*;

    /// Keys know operations up to 255: what a packet has beyond that goes when one is set.
    #[test]
    fn an_operation_of_arp_is_set_whole_or_not_at_all() {
        for old in [0, 1, 2, 0x100, 0x1ff, 0xffff] {
            for (mask, after) in [(0xff, 2), (0, old)] {
                let mut frame = vec![0; 12];
                frame.extend([8, 6, 0, 1, 8, 0, 6, 4]);
                frame.extend(u16::to_be_bytes(old));
                frame.extend([0; 20]);
                let mut packet = Packet::from_frame(&frame);
                let mut key = FlowKey::new();
                net_flow::extract(&mut packet, &mut key, 1);
                key.set(slot::NW_PROTO, 2);
                let mut masked = FlowMask::new();
                masked.add(slot::NW_PROTO, mask);
                masked.set_exact(slot::ARP_SHA);
                let field = SetField::new(KeyAttr::Arp, &key, &masked);
                set(&field, &mut packet, &mut Cow::Owned(key));
                let op = Arp::new(&packet.data()[14..]).unwrap().op();
                assert_eq!(op, after, "{old:#x} {mask:#x}");
            }
        }
    }
}
