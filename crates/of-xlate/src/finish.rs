//! The end of a translation: the mask is put into the shape that a datapath can have.

use dp_lang::Action;
use net_flow::types::{eth_type, ip_proto};
use net_flow::{FlowKey, FlowMask, slot};

use crate::flow::{clear_pipeline, clear_tunnel};
use crate::vlan::CFI;

/// How many bytes of netlink attributes a datapath takes for a flow's actions.
const MAX_SIZE: usize = 65531;
/// How many outputs a datapath takes for a flow.
const MAX_OUTPUTS: usize = 8192;

/// The mask of a megaflow: of the bits that mattered, those that the packet as it came in
/// can have.
pub(crate) fn mask(mut mask: FlowMask, original: &FlowKey, last: &FlowKey) -> FlowMask {
    clear_pipeline(&mut mask);
    if original.get(slot::PACKET_TYPE) != 0 {
        mask.set(slot::ETH_SRC, 0);
        mask.set(slot::ETH_DST, 0);
    }
    if is_icmp(last) {
        // Type and code have 8 bits in a datapath's key, 16 here; the upper ones are 0.
        mask.set(slot::TP_SRC, mask.get(slot::TP_SRC) & 0xff);
        mask.set(slot::TP_DST, mask.get(slot::TP_DST) & 0xff);
    }
    if last.get(slot::NW_FRAG) & 2 != 0 {
        // A later fragment has no ports: they are always 0.
        mask.set(slot::TP_SRC, 0);
        mask.set(slot::TP_DST, 0);
    }
    let ethertype = original.get(slot::ETH_TYPE) as u16;
    if !matches!(ethertype, eth_type::MPLS | eth_type::MPLS_MULTICAST) {
        for slot in [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2] {
            mask.set(slot, 0);
        }
    }
    vlan(&mut mask, original);
    let tunnelled = [slot::TUN_DST, slot::TUN_IPV6_DST];
    if tunnelled.iter().all(|slot| original.get(*slot) == 0) {
        clear_tunnel(&mut mask);
    }
    mask
}

/// A tag matters as a whole, or not at all; and it matters that there is none.
fn vlan(mask: &mut FlowMask, original: &FlowKey) {
    for (tpid, tci) in [
        (slot::VLAN_TPID, slot::VLAN_TCI),
        (slot::VLAN2_TPID, slot::VLAN2_TCI),
    ] {
        if original.get(tci) & CFI == 0 {
            mask.set(tpid, 0);
            mask.set_exact(tci);
            // What is behind no tag is no tag either.
            break;
        }
        if mask.get(tci) != 0 {
            mask.add(tci, CFI);
        }
    }
    if original.get(slot::VLAN_TCI) & CFI == 0 {
        mask.set(slot::VLAN2_TPID, 0);
        mask.set(slot::VLAN2_TCI, 0);
    }
}

/// The mask as `ofproto/trace` prints it, without the tags that the packet does not have.
pub(crate) fn shown(mask: &FlowMask, original: &FlowKey) -> FlowMask {
    let mut mask = mask.clone();
    for (tpid, tci) in [
        (slot::VLAN_TPID, slot::VLAN_TCI),
        (slot::VLAN2_TPID, slot::VLAN2_TCI),
    ] {
        if original.get(tci) & CFI == 0 {
            mask.set(tpid, 0);
            mask.set(tci, 0);
        }
    }
    mask
}

fn is_icmp(key: &FlowKey) -> bool {
    let proto = key.get(slot::NW_PROTO) as u8;
    match key.get(slot::ETH_TYPE) as u16 {
        eth_type::IPV4 => proto == ip_proto::ICMP,
        eth_type::IPV6 => proto == ip_proto::ICMPV6,
        _ => false,
    }
}

/// Whether a datapath would not take so many actions in one flow.
pub(crate) fn is_too_long(actions: &[Action]) -> bool {
    size(actions) > MAX_SIZE
        || actions
            .iter()
            .filter(|a| matches!(a, Action::Output(_)))
            .count()
            > MAX_OUTPUTS
}

/// About how many bytes actions take as netlink attributes.
pub(crate) fn size(actions: &[Action]) -> usize {
    let one = |action: &Action| match action {
        Action::Output(_) | Action::PushVlan { .. } | Action::Trunc(_) => 8,
        Action::PopVlan => 4,
        Action::Userspace(_) => 72,
        Action::Set(set) => 12 + 16 * set.mask.words().len(),
        Action::Clone(inner) => 4 + size(inner),
        _ => 32,
    };
    actions.iter().map(one).sum()
}
