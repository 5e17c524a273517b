//! Which fields a packet has, and the text of a packet's key.

use crate::key::{FlowKey, FlowMask};
use crate::matching::Match;
use crate::names::Names;
use crate::slot::{self, Slot};
use crate::text::put_match;
use crate::types::{eth_type, icmpv6_type, ip_proto};

/// Fields that say nothing when they are zero.
const CONTEXT: [Slot; 8] = [
    slot::SKB_PRIORITY,
    slot::PKT_MARK,
    slot::RECIRC_ID,
    slot::DP_HASH,
    slot::CT_STATE,
    slot::CT_ZONE,
    slot::CT_MARK,
    slot::CT_LABEL,
];

impl FlowMask {
    /// The fields that a packet with this key has, the pipeline's registers and metadata
    /// apart.
    pub fn of_packet(key: &FlowKey) -> Self {
        let mut mask = Self::new();
        tunnel(&mut mask, key);
        for slot in CONTEXT {
            mask.set_exact(slot);
        }
        // The other bits of the state mean nothing yet.
        mask.set(slot::CT_STATE, 0xff);
        mask.set_exact(slot::IN_PORT);
        mask.set_exact(slot::PACKET_TYPE);
        let packet_type = key.get(slot::PACKET_TYPE) as u32;
        let mut ethertype = packet_type as u16;
        if packet_type == 0 {
            ethertype = key.get(slot::ETH_TYPE) as u16;
            for slot in [slot::ETH_DST, slot::ETH_SRC, slot::ETH_TYPE] {
                mask.set_exact(slot);
            }
            mask.set_exact(slot::VLAN_TPID);
            mask.set_exact(slot::VLAN_TCI);
            if key.get(slot::VLAN_TCI) != 0 {
                mask.set_exact(slot::VLAN2_TPID);
                mask.set_exact(slot::VLAN2_TCI);
            }
        }
        match ethertype {
            eth_type::IPV4 => exact(&mut mask, &[slot::NW_SRC, slot::NW_DST]),
            eth_type::IPV6 => {
                exact(
                    &mut mask,
                    &[slot::IPV6_SRC, slot::IPV6_DST, slot::IPV6_LABEL],
                );
                if is_nd(key) {
                    exact(&mut mask, &[slot::ARP_SHA, slot::ARP_THA, slot::ND_TARGET]);
                }
            }
            eth_type::ARP | eth_type::RARP => {
                exact(&mut mask, &[slot::NW_SRC, slot::NW_DST, slot::NW_PROTO]);
                exact(&mut mask, &[slot::ARP_SHA, slot::ARP_THA]);
            }
            eth_type::MPLS | eth_type::MPLS_MULTICAST => mpls(&mut mask, key),
            eth_type::NSH => exact(
                &mut mask,
                &[
                    slot::NSH_FLAGS,
                    slot::NSH_TTL,
                    slot::NSH_MDTYPE,
                    slot::NSH_NP,
                    slot::NSH_SPI,
                    slot::NSH_SI,
                    slot::NSH_C1,
                    slot::NSH_C2,
                    slot::NSH_C3,
                    slot::NSH_C4,
                ],
            ),
            _ => {}
        }
        if matches!(ethertype, eth_type::IPV4 | eth_type::IPV6) {
            network(&mut mask, key, ethertype);
        }
        mask
    }
}

fn exact(mask: &mut FlowMask, slots: &[Slot]) {
    for slot in slots {
        mask.set_exact(*slot);
    }
}

fn tunnel(mask: &mut FlowMask, key: &FlowKey) {
    let is_set = key.get(slot::TUN_DST) != 0 || key.get(slot::TUN_IPV6_DST) != 0;
    if key.get(slot::TUN_ID) != 0 {
        mask.set_exact(slot::TUN_ID);
    }
    if is_set {
        for word in slot::TUN_SRC.word..=slot::TUN_GTPU_MSGTYPE.word {
            mask.set_word(usize::from(word), u64::MAX);
        }
        for word in slot::TUN_METADATA_PRESENT.word..slot::TUN_METADATA_WORD + 32 {
            if key.word(usize::from(word)) != 0 {
                mask.set_word(usize::from(word), u64::MAX);
            }
        }
    }
}

fn mpls(mask: &mut FlowMask, key: &FlowKey) {
    for slot in [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2] {
        mask.set_exact(slot);
        if key.get(slot) & 0x100 != 0 {
            break;
        }
    }
}

fn is_nd(key: &FlowKey) -> bool {
    let kind = key.get(slot::TP_SRC) as u8;
    key.get(slot::NW_PROTO) as u8 == ip_proto::ICMPV6
        && key.get(slot::TP_DST) == 0
        && matches!(kind, icmpv6_type::ND_SOLICIT | icmpv6_type::ND_ADVERT)
}

fn network(mask: &mut FlowMask, key: &FlowKey, ethertype: u16) {
    mask.add(slot::NW_FRAG, 3);
    exact(mask, &[slot::NW_TOS, slot::NW_TTL, slot::NW_PROTO]);
    let state = key.get(slot::CT_STATE);
    // Only a valid connection has one, or it is said not to be invalid.
    let is_valid = state & 0xcf != 0 || state & 0x30 == 0x20;
    if key.get(slot::CT_NW_PROTO) != 0 && is_valid {
        exact(mask, &[slot::CT_NW_PROTO, slot::CT_TP_SRC, slot::CT_TP_DST]);
        if ethertype == eth_type::IPV4 {
            exact(mask, &[slot::CT_NW_SRC, slot::CT_NW_DST]);
        } else if !is_nd(key) {
            exact(mask, &[slot::CT_IPV6_SRC, slot::CT_IPV6_DST]);
        }
    }
    let proto = key.get(slot::NW_PROTO) as u8;
    let has_ports = matches!(
        proto,
        ip_proto::ICMP
            | ip_proto::ICMPV6
            | ip_proto::TCP
            | ip_proto::UDP
            | ip_proto::SCTP
            | ip_proto::IGMP
    );
    if has_ports && key.get(slot::NW_FRAG) & 2 == 0 {
        exact(mask, &[slot::TP_SRC, slot::TP_DST]);
        if proto == ip_proto::TCP {
            mask.set_exact(slot::TCP_FLAGS);
        } else if proto == ip_proto::IGMP {
            mask.set_exact(slot::IGMP_GROUP);
        }
    }
}

/// Appends a packet's key as text.  Fields around the packet are left out when zero.
pub fn put_packet(out: &mut String, key: &FlowKey, names: &Names) {
    let mut mask = FlowMask::of_packet(key);
    for slot in CONTEXT.into_iter().chain([slot::IN_PORT]) {
        if key.get(slot) == 0 {
            mask.set(slot, 0);
        }
    }
    for n in 0..32 {
        if key.get(slot::reg(n)) != 0 {
            mask.set_exact(slot::reg(n));
        }
    }
    if key.get(slot::METADATA) != 0 {
        mask.set_exact(slot::METADATA);
    }
    put_match(out, &Match::new(key, mask), 32768, names);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_prints_what_it_has() {
        let mut key = FlowKey::new();
        key.set(slot::IN_PORT, 1);
        key.set(slot::ETH_SRC, 0x5054_0000_0005);
        key.set(slot::ETH_DST, 0x5054_0000_0007);
        key.set(slot::ETH_TYPE, 0x0806);
        key.set(slot::NW_PROTO, 1);
        let mut text = String::new();
        put_packet(&mut text, &key, &Names::default());
        assert_eq!(
            text,
            "arp,in_port=1,vlan_tci=0x0000,dl_src=50:54:00:00:00:05,dl_dst=50:54:00:00:00:07,\
             arp_spa=0.0.0.0,arp_tpa=0.0.0.0,arp_op=1,arp_sha=00:00:00:00:00:00,\
             arp_tha=00:00:00:00:00:00"
        );
    }
}
