//! The headers of a packet in keys and masks: which attributes there are follows from the key.

use net_flow::slot::{self, Slot};
use net_flow::types::{FRAG_LATER, eth_type, icmpv6_type, ip_proto};
use net_flow::{FlowKey, FlowMask};
use net_netlink::AttrWriter;

use super::fields::{self, Layout};
use super::{attr, nsh};
use crate::Features;

/// Ethernet types from here on; what is lower is a length.
const FIRST_ETHERTYPE: u128 = 0x600;

/// Places of tags in a key.
pub(super) const TAGS: [(Slot, Slot); 2] = [
    (slot::VLAN_TPID, slot::VLAN_TCI),
    (slot::VLAN2_TPID, slot::VLAN2_TCI),
];

/// Places of label stack entries in a key.
pub(super) const LABELS: [Slot; 3] = [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2];

/// In a label stack entry: the stack ends here.
const BOTTOM: u128 = 0x100;

fn is_vlan(ethertype: u128) -> bool {
    [eth_type::VLAN, eth_type::VLAN_8021AD].contains(&(ethertype as u16))
}

/// How many label stack entries a key has, as far as it has room for them.
pub(super) fn labels(key: &FlowKey) -> usize {
    let bottom = LABELS.iter().position(|slot| key.get(*slot) & BOTTOM != 0);
    bottom.map_or(LABELS.len(), |index| index + 1)
}

/// The structures of the transport header that a key has.
pub(super) fn transport(key: &FlowKey) -> &'static [&'static Layout] {
    let ethertype = key.get(slot::ETH_TYPE) as u16;
    let is_later = key.get(slot::NW_FRAG) & u128::from(FRAG_LATER) != 0;
    let is_v6 = ethertype == eth_type::IPV6;
    if is_later || !(is_v6 || ethertype == eth_type::IPV4) {
        return &[];
    }
    static TCP: [&Layout; 2] = [&fields::TCP, &fields::TCP_FLAGS];
    static UDP: [&Layout; 1] = [&fields::UDP];
    static SCTP: [&Layout; 1] = [&fields::SCTP];
    static ICMP: [&Layout; 1] = [&fields::ICMP];
    static NEIGHBOUR: [&Layout; 2] = [&fields::ICMPV6, &fields::ND];
    match key.get(slot::NW_PROTO) as u8 {
        ip_proto::TCP => &TCP,
        ip_proto::UDP => &UDP,
        ip_proto::SCTP => &SCTP,
        ip_proto::ICMP if !is_v6 => &ICMP,
        ip_proto::ICMPV6 if is_v6 && is_neighbour(key) => &NEIGHBOUR,
        ip_proto::ICMPV6 if is_v6 => &NEIGHBOUR[..1],
        _ => &[],
    }
}

/// Whether an ICMPv6 packet is one of neighbour discovery.
fn is_neighbour(key: &FlowKey) -> bool {
    let kind = key.get(slot::TP_SRC) as u8;
    let nd = [icmpv6_type::ND_SOLICIT, icmpv6_type::ND_ADVERT];
    nd.contains(&kind) && key.get(slot::TP_DST) == 0
}

/// Puts the headers of one packet, or what a mask says of them.
pub(super) struct Headers<'a> {
    pub(super) key: &'a FlowKey,
    pub(super) mask: Option<&'a FlowMask>,
    pub(super) features: &'a Features,
}

impl Headers<'_> {
    fn values(&self) -> &FlowKey {
        self.mask.map_or(self.key, FlowMask::as_key)
    }

    fn structure(&self, layout: &Layout, to: &mut AttrWriter) {
        if self.mask.is_none_or(|mask| layout.matters(mask)) {
            layout.put(self.values(), self.mask.is_some(), to);
        }
    }

    /// An Ethernet type; masks of it are all or nothing, and it always matters what comes after
    /// a tag.
    fn ethertype(&self, slot: Slot, to: &mut AttrWriter) {
        match self.mask {
            None => to.put_be16(attr::ETHERTYPE, self.key.get(slot) as u16),
            Some(_) => to.put_be16(attr::ETHERTYPE, u16::MAX),
        };
    }

    /// From the Ethernet header on.
    pub(super) fn put(&self, to: &mut AttrWriter) {
        if self.key.get(slot::PACKET_TYPE) == 0 {
            if self.mask.is_none() || self.mask.is_some_and(|m| fields::ETHERNET.matters(m)) {
                fields::ETHERNET.put(self.values(), self.mask.is_some(), to);
            }
            self.tags(0, to);
        } else {
            self.ethertype(slot::ETH_TYPE, to);
            self.network(to);
        }
    }

    fn tags(&self, depth: usize, to: &mut AttrWriter) {
        let tag = TAGS
            .get(depth)
            .filter(|_| depth < self.features.max_vlan_headers);
        let Some((tpid, tci)) = tag.filter(|(_, tci)| self.key.get(*tci) != 0) else {
            return self.payload(depth, to);
        };
        self.ethertype(*tpid, to);
        to.put_be16(attr::VLAN, self.values().get(*tci) as u16);
        let nest = to.open(attr::ENCAP);
        self.tags(depth + 1, to);
        to.close(nest);
    }

    /// What comes after `depth` tags.
    fn payload(&self, depth: usize, to: &mut AttrWriter) {
        let ethertype = self.key.get(slot::ETH_TYPE);
        if ethertype < FIRST_ETHERTYPE {
            // A frame without a type: the key has none, and the mask says that this matters.
            if self.mask.is_some() {
                to.put_be16(attr::ETHERTYPE, u16::MAX);
            }
            return;
        }
        if is_vlan(ethertype) && depth < self.features.max_vlan_headers {
            // Cut short: the kernel reads a tag with nothing in it.
            self.ethertype(slot::ETH_TYPE, to);
            to.put_be16(attr::VLAN, 0);
            let nest = to.open(attr::ENCAP);
            to.close(nest);
            return;
        }
        if self.mask.is_none_or(|m| m.get(slot::ETH_TYPE) != 0) {
            self.ethertype(slot::ETH_TYPE, to);
        }
        if !is_vlan(ethertype) {
            self.network(to);
        }
    }

    fn network(&self, to: &mut AttrWriter) {
        match self.key.get(slot::ETH_TYPE) as u16 {
            eth_type::IPV4 => self.structure(&fields::IPV4, to),
            eth_type::IPV6 => self.structure(&fields::IPV6, to),
            eth_type::ARP | eth_type::RARP => self.structure(&fields::ARP, to),
            eth_type::MPLS | eth_type::MPLS_MULTICAST => self.labels(to),
            eth_type::NSH => {
                let matters = |m: &FlowMask| m.word(56) | m.word(57) | m.word(58) != 0;
                if self.mask.is_none_or(matters) {
                    nsh::put(self.key, self.values(), to);
                }
            }
            _ => {}
        }
        for layout in transport(self.key) {
            self.structure(layout, to);
        }
    }

    fn labels(&self, to: &mut AttrWriter) {
        let count = labels(self.key).min(self.features.max_mpls_depth.max(1));
        let entries = LABELS[..count].iter();
        let bytes: Vec<u8> = entries
            .flat_map(|slot| (self.values().get(*slot) as u32).to_be_bytes())
            .collect();
        if self.mask.is_none() || bytes.iter().any(|b| *b != 0) {
            to.put(attr::MPLS, &bytes);
        }
    }
}
