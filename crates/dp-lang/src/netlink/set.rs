//! `set` actions: one attribute of a key, followed by its mask unless all of it is written.

use net_flow::{FlowKey, FlowMask, slot};
use net_netlink::{AttrWriter, Attrs};

use super::fields::{self, Layout};
use super::{Error, attr, malformed, nsh, tunnel};
use crate::action::SetField;
use crate::attr::KeyAttr;

/// The structures that can be written.
const SETTABLE: [(KeyAttr, &Layout); 14] = [
    (KeyAttr::Priority, &fields::PRIORITY),
    (KeyAttr::Mark, &fields::SKB_MARK),
    (KeyAttr::Ethernet, &fields::ETHERNET),
    (KeyAttr::Ipv4, &fields::IPV4),
    (KeyAttr::Ipv6, &fields::IPV6),
    (KeyAttr::Tcp, &fields::TCP),
    (KeyAttr::Udp, &fields::UDP),
    (KeyAttr::Sctp, &fields::SCTP),
    (KeyAttr::Icmp, &fields::ICMP),
    (KeyAttr::Icmpv6, &fields::ICMPV6),
    (KeyAttr::Arp, &fields::ARP),
    (KeyAttr::Nd, &fields::ND),
    (KeyAttr::Mpls, &fields::MPLS),
    // The switch does not write these on a kernel's packets.
    (KeyAttr::NdExtensions, &fields::ND_EXTENSIONS),
];

fn layout_of(attr: KeyAttr) -> Option<&'static Layout> {
    let found = SETTABLE.iter().find(|(a, _)| *a == attr);
    found.map(|(_, layout)| *layout)
}

/// Puts a `set` action: of the first kind if all bits are written, else of the second.
pub(super) fn put(field: &SetField, (set, set_masked): (u16, u16), to: &mut AttrWriter) {
    let (key, mask) = (field.key.expand(), field.mask.expand_mask());
    match field.attr {
        KeyAttr::Tunnel => {
            let nest = to.open(set);
            tunnel::put(&key, None, to);
            to.close(nest);
        }
        KeyAttr::Nsh => {
            let nest = to.open(set_masked);
            nsh::put_masked(&key, mask.as_key(), to);
            to.close(nest);
        }
        other => {
            let Some(layout) = layout_of(other) else {
                return;
            };
            let is_exact = layout.is_exact(&mask);
            let nest = to.open(if is_exact { set } else { set_masked });
            let mut bytes = layout.bytes(&key, false);
            if !is_exact {
                bytes.extend(layout.bytes(mask.as_key(), true));
            }
            to.put(layout.kind, &bytes);
            to.close(nest);
        }
    }
}

/// Reads a `set` action.
pub(super) fn read(mut attrs: Attrs<'_>, masked: bool) -> Result<SetField, Error> {
    let field = attrs.next().ok_or_else(|| malformed("set"))?;
    let (mut key, mut mask) = (FlowKey::new(), FlowMask::new());
    let own = match field.kind {
        attr::TUNNEL => {
            tunnel::read_key(field.nested(), &mut key)?;
            for slot in KeyAttr::Tunnel.slots() {
                mask.set_exact(*slot);
            }
            KeyAttr::Tunnel
        }
        attr::NSH => {
            nsh::read(field.nested(), 0, |slot, v| key.set(slot, v))?;
            if masked {
                nsh::read(field.nested(), 1, |slot, bits| mask.set(slot, bits))?;
            } else {
                for slot in KeyAttr::Nsh.slots() {
                    mask.set_exact(*slot);
                }
            }
            KeyAttr::Nsh
        }
        kind => {
            let found = SETTABLE.iter().find(|(_, layout)| layout.kind == kind);
            let (own, layout) = found.ok_or_else(|| malformed("set"))?;
            layout.read(field.value, false, |slot, v| key.set(slot, v))?;
            if masked {
                let bytes = field.value.get(layout.len()..);
                let bytes = bytes.ok_or_else(|| malformed("set"))?;
                layout.read(bytes, true, |slot, bits| mask.set(slot, bits))?;
            } else {
                layout.read(&vec![0xff; layout.len()], true, |slot, bits| {
                    mask.set(slot, bits);
                })?;
            }
            *own
        }
    };
    // A packet's fragment bits and protocol are not written.
    if matches!(own, KeyAttr::Ipv4 | KeyAttr::Ipv6) {
        mask.set(slot::NW_FRAG, 0);
        mask.set(slot::NW_PROTO, 0);
    }
    Ok(SetField::new(own, &key, &mask))
}
