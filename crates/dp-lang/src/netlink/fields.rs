//! Attributes that are structures of a fixed layout: which field of the key stands where.

use net_flow::slot::{self, Slot};
use net_flow::types::{FRAG_ANY, FRAG_LATER};
use net_flow::{FlowKey, FlowMask};
use net_netlink::AttrWriter;

use super::{Error, attr, malformed};

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In network order.
    Network,
    /// In this machine's order.
    Host,
    /// A fragment's place: none, the first, a later one.
    Fragment,
}

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
struct Part {
    slot: Slot,
    /// Its length in bytes.
    len: usize,
    form: Form,
    /// The bits that the kernel looks at.
    full: u128,
    /// A mask of all those bits is a mask of the whole slot: its other bits are always zero.
    whole: bool,
}

/// A structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) kind: u16,
    name: &'static str,
    parts: &'static [Part],
    /// Its length in bytes, with padding.
    len: usize,
}

const fn part(slot: Slot, len: usize, form: Form) -> Part {
    let bits = len * 8;
    let full = if bits >= 128 {
        u128::MAX
    } else {
        (1 << bits) - 1
    };
    Part {
        slot,
        len,
        form,
        full,
        whole: true,
    }
}

const fn network(slot: Slot, len: usize) -> Part {
    part(slot, len, Form::Network)
}

const fn host(slot: Slot, len: usize) -> Part {
    part(slot, len, Form::Host)
}

const FRAGMENT: Part = part(slot::NW_FRAG, 1, Form::Fragment);

macro_rules! layouts {
    ($($name:ident $kind:ident $text:literal $len:literal [$($part:expr),+];)*) => {
        $(pub(super) static $name: Layout = Layout {
            kind: attr::$kind,
            name: $text,
            parts: &[$($part),+],
            len: $len,
        };)*
    };
}

layouts! {
    PRIORITY PRIORITY "skb_priority" 4 [host(slot::SKB_PRIORITY, 4)];
    IN_PORT IN_PORT "in_port" 4 [host(slot::IN_PORT, 4)];
    SKB_MARK SKB_MARK "skb_mark" 4 [host(slot::PKT_MARK, 4)];
    DP_HASH DP_HASH "dp_hash" 4 [host(slot::DP_HASH, 4)];
    RECIRC_ID RECIRC_ID "recirc_id" 4 [host(slot::RECIRC_ID, 4)];
    CT_STATE CT_STATE "ct_state" 4 [
        Part { full: 0xff, whole: false, ..host(slot::CT_STATE, 4) }
    ];
    CT_ZONE CT_ZONE "ct_zone" 2 [host(slot::CT_ZONE, 2)];
    CT_MARK CT_MARK "ct_mark" 4 [host(slot::CT_MARK, 4)];
    CT_LABELS CT_LABELS "ct_label" 16 [host(slot::CT_LABEL, 16)];
    CT_TUPLE4 CT_ORIG_TUPLE_IPV4 "ct_tuple4" 16 [
        network(slot::CT_NW_SRC, 4),
        network(slot::CT_NW_DST, 4),
        network(slot::CT_TP_SRC, 2),
        network(slot::CT_TP_DST, 2),
        network(slot::CT_NW_PROTO, 1)
    ];
    CT_TUPLE6 CT_ORIG_TUPLE_IPV6 "ct_tuple6" 40 [
        network(slot::CT_IPV6_SRC, 16),
        network(slot::CT_IPV6_DST, 16),
        network(slot::CT_TP_SRC, 2),
        network(slot::CT_TP_DST, 2),
        network(slot::CT_NW_PROTO, 1)
    ];
    PACKET_TYPE PACKET_TYPE "packet_type" 4 [network(slot::PACKET_TYPE, 4)];
    ETHERNET ETHERNET "eth" 12 [network(slot::ETH_SRC, 6), network(slot::ETH_DST, 6)];
    IPV4 IPV4 "ipv4" 12 [
        network(slot::NW_SRC, 4),
        network(slot::NW_DST, 4),
        network(slot::NW_PROTO, 1),
        network(slot::NW_TOS, 1),
        network(slot::NW_TTL, 1),
        FRAGMENT
    ];
    IPV6 IPV6 "ipv6" 40 [
        network(slot::IPV6_SRC, 16),
        network(slot::IPV6_DST, 16),
        Part { full: 0xf_ffff, ..network(slot::IPV6_LABEL, 4) },
        network(slot::NW_PROTO, 1),
        network(slot::NW_TOS, 1),
        network(slot::NW_TTL, 1),
        FRAGMENT
    ];
    TCP TCP "tcp" 4 [network(slot::TP_SRC, 2), network(slot::TP_DST, 2)];
    UDP UDP "udp" 4 [network(slot::TP_SRC, 2), network(slot::TP_DST, 2)];
    SCTP SCTP "sctp" 4 [network(slot::TP_SRC, 2), network(slot::TP_DST, 2)];
    TCP_FLAGS TCP_FLAGS "tcp_flags" 2 [
        Part { full: 0xfff, ..network(slot::TCP_FLAGS, 2) }
    ];
    ICMP ICMP "icmp" 2 [network(slot::TP_SRC, 1), network(slot::TP_DST, 1)];
    ICMPV6 ICMPV6 "icmpv6" 2 [network(slot::TP_SRC, 1), network(slot::TP_DST, 1)];
    ARP ARP "arp" 24 [
        network(slot::NW_SRC, 4),
        network(slot::NW_DST, 4),
        network(slot::NW_PROTO, 2),
        network(slot::ARP_SHA, 6),
        network(slot::ARP_THA, 6)
    ];
    ND ND "nd" 28 [
        network(slot::ND_TARGET, 16),
        network(slot::ARP_SHA, 6),
        network(slot::ARP_THA, 6)
    ];
    ND_EXTENSIONS ND_EXTENSIONS "nd_ext" 8 [
        network(slot::IGMP_GROUP, 4),
        network(slot::TCP_FLAGS, 1)
    ];
    MPLS MPLS "mpls" 4 [network(slot::MPLS_LSE, 4)];
}

/// Scalars of the metadata that have an attribute of their own.
pub(super) static METADATA: [&Layout; 8] = [
    &PRIORITY, &SKB_MARK, &RECIRC_ID, &DP_HASH, &CT_STATE, &CT_ZONE, &CT_MARK, &CT_LABELS,
];

impl Part {
    fn write(&self, value: u128, is_mask: bool, to: &mut [u8]) {
        let value = match self.form {
            Form::Fragment if is_mask => {
                if value & u128::from(FRAG_ANY | FRAG_LATER) == 0 {
                    0
                } else {
                    self.full
                }
            }
            Form::Fragment if value & u128::from(FRAG_LATER) != 0 => 2,
            Form::Fragment => value & u128::from(FRAG_ANY),
            // All of the slot is all of the field, however wide either is.
            _ if is_mask && value == self.slot.max() => self.full,
            _ if is_mask => value & self.full,
            _ => value,
        };
        if self.form == Form::Host {
            let bytes = value.to_le_bytes();
            to.copy_from_slice(&bytes[..self.len]);
            if cfg!(target_endian = "big") {
                to.reverse();
            }
        } else {
            to.copy_from_slice(&value.to_be_bytes()[16 - self.len..]);
        }
    }

    fn read(&self, from: &[u8], is_mask: bool) -> u128 {
        let in_network_order = self.form != Form::Host || cfg!(target_endian = "big");
        let mut bytes = [0; 16];
        if in_network_order {
            bytes[16 - self.len..].copy_from_slice(from);
        } else {
            for (to, byte) in bytes.iter_mut().rev().zip(from) {
                *to = *byte;
            }
        }
        let value = u128::from_be_bytes(bytes);
        match self.form {
            Form::Fragment if is_mask => {
                if value == 0 {
                    0
                } else {
                    self.slot.max()
                }
            }
            Form::Fragment => match value {
                0 => 0,
                1 => u128::from(FRAG_ANY),
                _ => u128::from(FRAG_ANY | FRAG_LATER),
            },
            _ if is_mask && self.whole && value & self.full == self.full => self.slot.max(),
            _ => value & self.slot.max(),
        }
    }
}

impl Layout {
    /// Whether some bit matters that the structure has.
    pub(super) fn matters(&self, mask: &FlowMask) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|p| mask.get(p.slot) & p.slot.max() != 0)
    }

    /// The structure's bytes.
    pub(super) fn bytes(&self, values: &FlowKey, is_mask: bool) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        let mut at = 0;
        for part in self.parts {
            let to = &mut bytes[at..at + part.len];
            part.write(values.get(part.slot), is_mask, to);
            at += part.len;
        }
        bytes
    }

    /// Puts the structure as an attribute.
    pub(super) fn put(&self, values: &FlowKey, is_mask: bool, to: &mut AttrWriter) {
        to.put(self.kind, &self.bytes(values, is_mask));
    }

    /// Reads the structure.
    pub(super) fn read(
        &self,
        bytes: &[u8],
        is_mask: bool,
        mut set: impl FnMut(Slot, u128),
    ) -> Result<(), Error> {
        let bytes = bytes.get(..self.len).ok_or_else(|| malformed(self.name))?;
        let mut at = 0;
        for part in self.parts {
            set(part.slot, part.read(&bytes[at..at + part.len], is_mask));
            at += part.len;
        }
        Ok(())
    }

    /// Whether `mask` has all bits that the kernel looks at.
    pub(super) fn is_exact(&self, mask: &FlowMask) -> bool {
        let has_all = |p: &Part| {
            let full = if p.form == Form::Fragment { 3 } else { p.full };
            let wanted = full & p.slot.max();
            mask.get(p.slot) & wanted == wanted
        };
        self.parts.iter().all(has_all)
    }

    /// Its length in bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }
}
