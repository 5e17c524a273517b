//! The registry of fields: names, places, code points, prerequisites, formats.
//!
//! Source: OpenFlow 1.5.1 section 7.2.3, the Nicira extensions, `ovs-fields(7)`.

use crate::key::{FlowKey, FlowMask};
use crate::slot::{self, Slot};
use crate::types::{eth_type, icmpv6_type, ip_proto};

pub use crate::registry::Field;
use crate::registry::{ALL, FIELDS};

/// How a field's values are written in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Decimal; a mask follows in hexadecimal.
    Decimal,
    /// Hexadecimal.
    Hexadecimal,
    /// Six bytes with colons.
    Ethernet,
    /// Dotted quad, with a prefix length or mask.
    Ipv4,
    /// IPv6 text (RFC 5952), with a prefix length or mask.
    Ipv6,
    /// Connection tracking state: `+trk-new` and so on.
    CtState,
    /// `no`, `yes`, `first`, `later`, `not_later`.
    Frag,
    /// Tunnel flags: `oam`.
    TunnelFlags,
    /// TCP flags: `+syn-ack` and so on.
    TcpFlags,
    /// A port number or reserved name of OpenFlow 1.0 (16 bits).
    Port10,
    /// A port number or reserved name of OpenFlow 1.1 and later (32 bits).
    Port,
    /// A packet type: `(namespace,type)`.
    PacketType,
}

/// Whether a field may be matched under an arbitrary mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maskable {
    /// Exact matches only.
    No,
    /// Any mask.
    Bitwise,
}

/// Whether actions may write a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Match and read only.
    ReadOnly,
    /// Match, read and write.
    ReadWrite,
}

/// What a packet must be for a field to exist in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prereq {
    /// Nothing.
    None,
    /// An Ethernet frame.
    Ethernet,
    /// ARP or reverse ARP.
    Arp,
    /// A VLAN tag.
    VlanVid,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// IPv4 or IPv6.
    Ip,
    /// MPLS.
    Mpls,
    /// NSH.
    Nsh,
    /// A tracked connection of the original direction.
    Ct,
    /// TCP over IPv4 or IPv6.
    Tcp,
    /// UDP over IPv4 or IPv6.
    Udp,
    /// SCTP over IPv4 or IPv6.
    Sctp,
    /// ICMP over IPv4.
    Icmpv4,
    /// ICMP over IPv6.
    Icmpv6,
    /// IPv6 neighbour discovery.
    Nd,
    /// IPv6 neighbour solicitation.
    NdSolicit,
    /// IPv6 neighbour advertisement.
    NdAdvert,
}

impl Prereq {
    /// Whether `key` under `mask` can only be a packet that has such a field.
    pub fn met_by(self, key: &FlowKey, mask: &FlowMask) -> bool {
        let exact = |slot: Slot| (mask.get(slot) == slot.max()).then(|| key.get(slot));
        let is = |slot: Slot, values: &[u128]| exact(slot).is_some_and(|v| values.contains(&v));
        let eth = |types: &[u16]| {
            let types: Vec<u128> = types.iter().map(|t| u128::from(*t)).collect();
            is(slot::ETH_TYPE, &types)
        };
        let ip = || eth(&[eth_type::IPV4, eth_type::IPV6]);
        let proto = |p: u8| is(slot::NW_PROTO, &[u128::from(p)]);
        let first_fragment = || mask.get(slot::NW_FRAG) & 2 == 0 || key.get(slot::NW_FRAG) & 2 == 0;
        let l4 = |p: u8| ip() && proto(p) && first_fragment();
        let icmpv6 = || eth(&[eth_type::IPV6]) && proto(ip_proto::ICMPV6) && first_fragment();
        let nd = |types: &[u8]| {
            let types: Vec<u128> = types.iter().map(|t| u128::from(*t)).collect();
            let code_zero = mask.get(slot::TP_DST) == 0 || key.get(slot::TP_DST) == 0;
            icmpv6() && is(slot::TP_SRC, &types) && code_zero
        };
        match self {
            Self::None => true,
            Self::Ethernet => key.get(slot::PACKET_TYPE) == 0,
            Self::Arp => eth(&[eth_type::ARP, eth_type::RARP]),
            Self::VlanVid => key.get(slot::VLAN_TCI) & mask.get(slot::VLAN_TCI) & 0x1000 != 0,
            Self::Ipv4 => eth(&[eth_type::IPV4]),
            Self::Ipv6 => eth(&[eth_type::IPV6]),
            Self::Ip => ip(),
            Self::Mpls => eth(&[eth_type::MPLS, eth_type::MPLS_MULTICAST]),
            Self::Nsh => eth(&[eth_type::NSH]),
            Self::Ct => {
                // Something that only a valid connection has, or said not to be invalid.
                let mask = mask.get(slot::CT_STATE);
                let state = key.get(slot::CT_STATE) & mask;
                let (invalid, tracked, valid) = (0x10, 0x20, 0xcf);
                state & valid != 0
                    || (state & tracked != 0 && mask & invalid != 0 && state & invalid == 0)
            }
            Self::Tcp => l4(ip_proto::TCP),
            Self::Udp => l4(ip_proto::UDP),
            Self::Sctp => l4(ip_proto::SCTP),
            Self::Icmpv4 => eth(&[eth_type::IPV4]) && proto(ip_proto::ICMP) && first_fragment(),
            Self::Icmpv6 => icmpv6(),
            Self::Nd => nd(&[icmpv6_type::ND_SOLICIT, icmpv6_type::ND_ADVERT]),
            Self::NdSolicit => nd(&[icmpv6_type::ND_SOLICIT]),
            Self::NdAdvert => nd(&[icmpv6_type::ND_ADVERT]),
        }
    }
}

/// A code point of the extensible match (OpenFlow 1.2 and later, and Nicira's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OxmId {
    /// The class: 0x0000 and 0x0001 are Nicira's, 0x8000 OpenFlow's basic class, 0x8001 its
    /// packet registers, 0xffff experimenters'.
    pub class: u16,
    /// The experimenter, when the class is 0xffff, else 0.
    pub experimenter: u32,
    /// The field number in the class, 7 bits.
    pub field: u8,
    /// The first OpenFlow version on the wire that has it: 1 for 1.0, 3 for 1.2, 6 for 1.5.
    pub version: u8,
}

/// What there is to know of a field.
#[derive(Debug)]
pub struct FieldInfo {
    /// Its name in text.
    pub name: &'static str,
    /// Another name that is accepted, or the empty string.
    pub alias: &'static str,
    /// Width of its values in bits, as subfield bounds and messages have it.
    pub bits: u16,
    /// Bytes of its values on the wire.
    pub bytes: u8,
    /// Where it lies in a key.  Tunnel metadata has no place of its own: its fields are
    /// laid out by the switch's option table.
    pub slot: Option<Slot>,
    /// Which masks are allowed.
    pub maskable: Maskable,
    /// What a packet must be to have it.
    pub prereq: Prereq,
    /// Whether actions may write it.
    pub access: Access,
    /// How its values are written.
    pub format: Format,
    /// Its code points, the preferred one first: Nicira's, then OpenFlow's in rising version.
    pub oxm: &'static [OxmId],
}

impl Field {
    /// What there is to know of it.
    pub fn info(self) -> &'static FieldInfo {
        &FIELDS[self as usize]
    }

    /// All fields, in the order of the registry.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// The field that is called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|f| {
            let info = f.info();
            info.name == name || (!info.alias.is_empty() && info.alias == name)
        })
    }

    /// The field with that code point; `experimenter` is 0 unless `class` is 0xffff.
    pub fn by_oxm(class: u16, experimenter: u32, field: u8) -> Option<Self> {
        let same =
            |id: &OxmId| (id.class, id.experimenter, id.field) == (class, experimenter, field);
        ALL.iter().copied().find(|f| f.info().oxm.iter().any(same))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_code_points_are_unique() {
        let mut names = std::collections::HashSet::new();
        let mut ids = std::collections::HashSet::new();
        for field in Field::all() {
            let info = field.info();
            assert!(names.insert(info.name), "{}", info.name);
            assert!(
                info.alias.is_empty() || names.insert(info.alias),
                "{}",
                info.alias
            );
            for id in info.oxm {
                assert!(
                    ids.insert((id.class, id.experimenter, id.field)),
                    "{} {id:?}",
                    info.name
                );
            }
        }
    }

    #[test]
    fn every_field_is_found_by_its_names() {
        for field in Field::all() {
            assert_eq!(Field::by_name(field.info().name), Some(*field));
        }
        assert_eq!(Field::by_name("dl_src"), Some(Field::EthSrc));
        assert_eq!(Field::by_name("no_such_field"), None);
    }

    #[test]
    fn fields_fit_their_slots() {
        for field in Field::all() {
            let info = field.info();
            assert!(u16::from(info.bytes) * 8 >= info.bits, "{}", info.name);
            if let Some(slot) = info.slot {
                assert!(
                    slot.bits > 64 || slot.shift + slot.bits <= 64,
                    "{}",
                    info.name
                );
            }
        }
    }
}
