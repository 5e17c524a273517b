//! Keys.

use net_flow::types::eth_type;
use net_flow::{FlowKey, FlowMask, slot};
use net_netlink::{AttrWriter, Attrs};

use super::fields::{self, Layout, METADATA};
use super::header::{Headers, LABELS, TAGS};
use super::{Error, attr, malformed, nsh, tunnel};
use crate::{Features, PortNo};

/// Packet types whose namespace is that of Ethernet types.
const NAMESPACE_ETHERTYPE: u128 = 1 << 16;

/// Puts the metadata that `features` has: `key`'s, or what `mask` says of it.
pub(super) fn put_metadata(
    key: &FlowKey,
    mask: Option<&FlowMask>,
    features: &Features,
    to: &mut AttrWriter,
) {
    let values = mask.map_or(key, FlowMask::as_key);
    let is_there = |layout: &Layout| match layout.kind {
        attr::RECIRC_ID | attr::DP_HASH => features.recirc,
        attr::CT_STATE => features.ct_state,
        attr::CT_ZONE => features.ct_zone,
        attr::CT_MARK => features.ct_mark,
        attr::CT_LABELS => features.ct_label,
        _ => true,
    };
    for layout in METADATA.iter().filter(|l| is_there(l)) {
        if mask.is_none_or(|m| layout.matters(m)) {
            layout.put(values, mask.is_some(), to);
        }
    }
    let tuple = match key.get(slot::ETH_TYPE) as u16 {
        eth_type::IPV4 if features.ct_orig_tuple => Some(&fields::CT_TUPLE4),
        eth_type::IPV6 if features.ct_orig_tuple6 => Some(&fields::CT_TUPLE6),
        _ => None,
    };
    if let Some(layout) = tuple
        && key.get(slot::CT_NW_PROTO) != 0
        && mask.is_none_or(|m| layout.matters(m))
    {
        layout.put(values, mask.is_some(), to);
    }
    if tunnel::is_tunnelled(key) {
        tunnel::put(key, mask, to);
    }
    let has_port = key.get(slot::IN_PORT) as u32 != PortNo::NONE.0;
    if has_port && mask.is_none_or(|m| fields::IN_PORT.matters(m)) {
        fields::IN_PORT.put(values, mask.is_some(), to);
    }
}

/// Puts the attributes of a key, as far as `features` has them.
pub fn encode_key(key: &FlowKey, features: &Features, to: &mut AttrWriter) {
    put_metadata(key, None, features, to);
    let headers = Headers {
        key,
        mask: None,
        features,
    };
    headers.put(to);
}

/// Puts what the kernel wants to know of a packet that it is handed with actions: the metadata.
pub fn encode_metadata(key: &FlowKey, features: &Features, to: &mut AttrWriter) {
    put_metadata(key, None, features, to);
    if key.get(slot::PACKET_TYPE) == 0 {
        fields::ETHERNET.put(key, false, to);
    } else {
        to.put_be16(attr::ETHERTYPE, key.get(slot::PACKET_TYPE) as u16);
    }
}

/// The structure of an attribute, if it is one.
pub(super) fn layout(kind: u16) -> Option<&'static Layout> {
    let all: [&Layout; 22] = [
        &fields::PRIORITY,
        &fields::IN_PORT,
        &fields::SKB_MARK,
        &fields::DP_HASH,
        &fields::RECIRC_ID,
        &fields::CT_STATE,
        &fields::CT_ZONE,
        &fields::CT_MARK,
        &fields::CT_LABELS,
        &fields::CT_TUPLE4,
        &fields::CT_TUPLE6,
        &fields::PACKET_TYPE,
        &fields::ETHERNET,
        &fields::IPV4,
        &fields::IPV6,
        &fields::TCP,
        &fields::UDP,
        &fields::SCTP,
        &fields::TCP_FLAGS,
        &fields::ICMP,
        &fields::ICMPV6,
        &fields::ARP,
    ];
    let nd = (kind == attr::ND).then_some(&fields::ND);
    nd.or_else(|| all.into_iter().find(|l| l.kind == kind))
}

/// A key from its attributes.  Attributes that are not known are passed over: a later kernel has
/// more.
///
/// # Errors
/// An attribute is too short.
pub fn decode_key(attrs: Attrs<'_>) -> Result<FlowKey, Error> {
    let mut key = FlowKey::new();
    key.set(slot::IN_PORT, u128::from(PortNo::NONE.0));
    let has = |kind| attrs.find(kind).is_some();
    read_level(attrs, 0, &mut key)?;
    if !has(attr::ETHERTYPE) && has(attr::ETHERNET) {
        key.set(slot::ETH_TYPE, u128::from(eth_type::NONE));
    }
    if !has(attr::ETHERNET) && !has(attr::PACKET_TYPE) && has(attr::ETHERTYPE) {
        let packet_type = NAMESPACE_ETHERTYPE | key.get(slot::ETH_TYPE);
        key.set(slot::PACKET_TYPE, packet_type);
    }
    Ok(key)
}

/// Reads what is behind `depth` tags.
fn read_level(attrs: Attrs<'_>, depth: usize, key: &mut FlowKey) -> Result<(), Error> {
    let tag = TAGS.get(depth);
    let (mut ethertype, mut vlan, mut encap) = (None, None, None);
    for attr in attrs {
        match attr.kind {
            attr::ETHERTYPE => {
                ethertype = Some(attr.be16().ok_or_else(|| malformed("eth_type"))?);
            }
            attr::VLAN => vlan = Some(attr.be16().ok_or_else(|| malformed("vlan"))?),
            attr::ENCAP => encap = Some(attr.nested()),
            attr::TUNNEL => tunnel::read_key(attr.nested(), key)?,
            attr::NSH => nsh::read(attr.nested(), 0, |slot, v| key.set(slot, v))?,
            attr::MPLS => {
                let entries = attr.value.as_chunks::<4>().0;
                if entries.is_empty() {
                    return Err(malformed("mpls"));
                }
                for (slot, bytes) in LABELS.iter().zip(entries) {
                    key.set(*slot, u128::from(u32::from_be_bytes(*bytes)));
                }
            }
            kind => {
                if let Some(layout) = layout(kind) {
                    layout.read(attr.value, false, |slot, v| key.set(slot, v))?;
                }
            }
        }
    }
    let ethertype = u128::from(ethertype.unwrap_or_default());
    match (tag, vlan, encap) {
        // A tag with nothing in it is one that was cut short.
        (Some((tpid, tci)), Some(vlan), Some(encap)) if vlan != 0 => {
            key.set(*tpid, ethertype);
            key.set(*tci, u128::from(vlan));
            key.set(slot::ETH_TYPE, 0);
            read_level(encap, depth + 1, key)?;
            if encap.find(attr::ETHERTYPE).is_none() {
                key.set(slot::ETH_TYPE, u128::from(eth_type::NONE));
            }
        }
        _ => key.set(slot::ETH_TYPE, ethertype),
    }
    Ok(())
}
