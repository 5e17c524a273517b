//! The ways in which flows can be written on the wire, and which of them a field allows.

use crate::field::{Field, Maskable};

bitflags::bitflags! {
    /// The ways in which a flow can be written on the wire.  A flow that needs more than
    /// a format can say is not "usable" in it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Formats: u16 {
        /// OpenFlow 1.0 match.
        const OF10_STD = 1;
        /// OpenFlow 1.0 match, table id in the command field.
        const OF10_STD_TID = 1 << 1;
        /// OpenFlow 1.0 with Nicira's extensible match.
        const OF10_NXM = 1 << 2;
        /// OpenFlow 1.0 with Nicira's extensible match and table id.
        const OF10_NXM_TID = 1 << 3;
        /// OpenFlow 1.1.
        const OF11_STD = 1 << 4;
        /// OpenFlow 1.2.
        const OF12_OXM = 1 << 5;
        /// OpenFlow 1.3.
        const OF13_OXM = 1 << 6;
        /// OpenFlow 1.4.
        const OF14_OXM = 1 << 7;
        /// OpenFlow 1.5.
        const OF15_OXM = 1 << 8;

        /// OpenFlow 1.0 with its own match.
        const OF10_STD_ANY = 0x03;
        /// OpenFlow 1.0 with Nicira's match.
        const OF10_NXM_ANY = 0x0c;
        /// All of OpenFlow 1.0.
        const OF10_ANY = 0x0f;
        /// OpenFlow 1.2 and later.
        const OXM_ANY = 0x1e0;
        /// Formats with an extensible match.
        const NXM_OXM_ANY = 0x1ec;
        /// Formats with an extensible match, and OpenFlow 1.1.
        const NXM_OF11_UP = 0x1fc;
        /// OpenFlow 1.1 and later.
        const OF11_UP = 0x1f0;
        /// OpenFlow 1.2 and later.
        const OF12_UP = 0x1e0;
        /// OpenFlow 1.3 and later.
        const OF13_UP = 0x1c0;
        /// OpenFlow 1.4 and later.
        const OF14_UP = 0x180;
        /// Formats that carry a table id in each flow-mod.
        const TID_ANY = 0x1fa;
        /// All formats.
        const ANY = 0x1ff;
    }
}

/// The formats in which a match on `field` under `mask` can be written.  `mask` is in the
/// field's own bytes; nothing is matched if it is 0.
pub fn usable_for(field: Field, mask: u128) -> Formats {
    let info = field.info();
    let all = full_mask(info.bytes);
    if mask == 0 {
        return Formats::ANY;
    }
    if mask == all {
        return exact(field);
    }
    if info.maskable == Maskable::No {
        return Formats::empty();
    }
    match field {
        Field::Metadata | Field::EthSrc | Field::EthDst => Formats::NXM_OF11_UP,
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => {
            if (mask as u32).leading_ones() + (mask as u32).trailing_zeros() == 32 {
                Formats::ANY
            } else {
                Formats::NXM_OF11_UP
            }
        }
        _ => Formats::NXM_OXM_ANY,
    }
}

/// The formats in which an exact match on `field` can be written.
fn exact(field: Field) -> Formats {
    match field {
        Field::TunTtl | Field::TunTos | Field::SkbPriority => Formats::empty(),
        Field::Metadata
        | Field::InPortOxm
        | Field::MplsLabel
        | Field::MplsTc
        | Field::IpEcn
        | Field::SctpSrc
        | Field::SctpDst => Formats::NXM_OF11_UP,
        Field::InPort
        | Field::EthType
        | Field::EthSrc
        | Field::EthDst
        | Field::VlanTci
        | Field::DlVlan
        | Field::VlanVid
        | Field::DlVlanPcp
        | Field::VlanPcp
        | Field::Ipv4Src
        | Field::Ipv4Dst
        | Field::IpProto
        | Field::IpTos
        | Field::IpDscp
        | Field::ArpOp
        | Field::ArpSpa
        | Field::ArpTpa
        | Field::TcpSrc
        | Field::TcpDst
        | Field::UdpSrc
        | Field::UdpDst
        | Field::IcmpType
        | Field::IcmpCode => Formats::ANY,
        _ => Formats::NXM_OXM_ANY,
    }
}

/// Ones in as many bytes.
pub const fn full_mask(bytes: u8) -> u128 {
    if bytes >= 16 {
        u128::MAX
    } else {
        (1 << (bytes * 8)) - 1
    }
}
