//! Masks.

use net_flow::types::{eth_type, icmpv6_type, ip_proto};
use net_flow::{FlowKey, FlowMask, slot};
use net_netlink::{AttrWriter, Attrs};

use super::fields;
use super::header::{Headers, LABELS, TAGS, labels, transport};
use super::key::{layout, put_metadata};
use super::{Error, attr, malformed, nsh, tunnel};
use crate::Features;

/// The mask that the kernel will use for a flow with this key: never wider than `mask`.
///
/// It wants to know what a packet is before it looks at its fields: matching the fields of a
/// header needs an exact match of what says that the header is there.
pub fn tighten(key: &FlowKey, mask: &FlowMask) -> FlowMask {
    let mut tight = mask.clone();
    let ethertype = key.get(slot::ETH_TYPE) as u16;
    let network: &[&fields::Layout] = match ethertype {
        eth_type::IPV4 => &[&fields::IPV4, &fields::CT_TUPLE4],
        eth_type::IPV6 => &[&fields::IPV6, &fields::CT_TUPLE6],
        eth_type::ARP | eth_type::RARP => &[&fields::ARP],
        _ => &[],
    };
    let is_mpls = [eth_type::MPLS, eth_type::MPLS_MULTICAST].contains(&ethertype);
    let transport = transport(key);
    if transport.iter().any(|l| l.matters(&tight)) {
        tight.set_exact(slot::NW_PROTO);
        tight.set_exact(slot::NW_FRAG);
    }
    let is_neighbour = transport.iter().any(|l| l.kind == attr::ND);
    if is_neighbour && fields::ND.matters(&tight) {
        tight.set_exact(slot::TP_SRC);
        tight.set_exact(slot::TP_DST);
    }
    let matters = network.iter().any(|l| l.matters(&tight))
        || (is_mpls && LABELS.iter().any(|slot| tight.get(*slot) != 0))
        || (ethertype == eth_type::NSH && (56..59).any(|word| tight.word(word) != 0));
    if matters {
        tight.set_exact(slot::ETH_TYPE);
    }
    tight
}

/// Whether `mask` has bits of packets like that with `key` which the kernel cannot match: a flow
/// with this mask would be wider than it should, and its packets must be looked at one by one.
pub fn unmatchable(key: &FlowKey, mask: &FlowMask, features: &Features) -> bool {
    let any = |slots: &[slot::Slot]| slots.iter().any(|slot| mask.get(*slot) != 0);
    let ethertype = key.get(slot::ETH_TYPE) as u16;
    match ethertype {
        eth_type::MPLS | eth_type::MPLS_MULTICAST => {
            let depth = features.max_mpls_depth.min(LABELS.len());
            let there = labels(key);
            return there > depth && any(&LABELS[depth..there]);
        }
        eth_type::IPV4 | eth_type::IPV6 => {}
        _ => return false,
    }
    match key.get(slot::NW_PROTO) as u8 {
        ip_proto::IGMP if ethertype == eth_type::IPV4 => {
            any(&[slot::TP_SRC, slot::TP_DST, slot::IGMP_GROUP])
        }
        ip_proto::ICMPV6 if ethertype == eth_type::IPV6 => {
            let kind = key.get(slot::TP_SRC) as u8;
            let nd = [icmpv6_type::ND_SOLICIT, icmpv6_type::ND_ADVERT];
            nd.contains(&kind)
                && !features.nd_extensions
                && any(&[slot::IGMP_GROUP, slot::TCP_FLAGS])
        }
        _ => false,
    }
}

/// Puts what `mask` says of packets like that with `key`; both are taken as the kernel's module
/// has them ([`tighten`]).
pub fn encode_mask(key: &FlowKey, mask: &FlowMask, features: &Features, to: &mut AttrWriter) {
    let mask = tighten(key, mask);
    put_metadata(key, Some(&mask), features, to);
    let headers = Headers {
        key,
        mask: Some(&mask),
        features,
    };
    headers.put(to);
}

/// The mask of a flow with `key`.  Attributes that are not known are passed over.
///
/// # Errors
/// An attribute is too short.
pub fn decode_mask(attrs: Attrs<'_>, key: &FlowKey) -> Result<FlowMask, Error> {
    let mut mask = FlowMask::new();
    read_level(attrs, 0, key, &mut mask)?;
    Ok(mask)
}

fn read_level(
    attrs: Attrs<'_>,
    depth: usize,
    key: &FlowKey,
    mask: &mut FlowMask,
) -> Result<(), Error> {
    let tag = TAGS.get(depth).filter(|(_, tci)| key.get(*tci) != 0);
    for attr in attrs {
        match (attr.kind, tag) {
            (attr::ETHERTYPE, tag) => {
                let bits = attr.be16().ok_or_else(|| malformed("eth_type"))?;
                let slot = tag.map_or(slot::ETH_TYPE, |(tpid, _)| *tpid);
                mask.set(slot, u128::from(bits));
            }
            (attr::VLAN, Some((_, tci))) => {
                let bits = attr.be16().ok_or_else(|| malformed("vlan"))?;
                mask.set(*tci, u128::from(bits));
            }
            (attr::ENCAP, Some(_)) => read_level(attr.nested(), depth + 1, key, mask)?,
            (attr::TUNNEL, _) => tunnel::read_mask(attr.nested(), key, mask)?,
            (attr::NSH, _) => nsh::read(attr.nested(), 0, |slot, bits| mask.set(slot, bits))?,
            (attr::MPLS, _) => {
                for (slot, bytes) in LABELS.iter().zip(attr.value.as_chunks::<4>().0) {
                    mask.set(*slot, u128::from(u32::from_be_bytes(*bytes)));
                }
            }
            (kind, _) => {
                if let Some(layout) = layout(kind) {
                    // What two headers share is or-ed: ND repeats no field of ICMPv6.
                    layout.read(attr.value, true, |slot, bits| mask.add(slot, bits))?;
                }
            }
        }
    }
    Ok(())
}
