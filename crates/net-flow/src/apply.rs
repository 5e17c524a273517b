//! Fields as values: reading them from keys, requiring them in matches.
//!
//! A field's value here is the integer of its bytes in messages, which for some fields is
//! not just the bits of its slot: VLAN fields share the tag's control information, OpenFlow
//! 1.0's port numbers have 16 bits, ICMP types fill a port's place.

use crate::field::{Field, Maskable};
use crate::formats::full_mask;
use crate::key::{FlowKey, FlowMask};
use crate::matching::Match;
use crate::port::PortNo;
use crate::slot::{self, Slot};
use crate::types::{VLAN_CFI, VLAN_PCP_MASK, VLAN_VID_MASK};

/// What `dl_vlan` holds for a packet without VLAN tag (OpenFlow 1.0).
const VLAN_NONE: u128 = 0xffff;

const VID: u128 = VLAN_VID_MASK as u128;
const PCP: u128 = VLAN_PCP_MASK as u128;
const CFI: u128 = VLAN_CFI as u128;

/// The place of a field whose value is just the bits of that place.
fn plain_slot(field: Field) -> Option<Slot> {
    match field {
        Field::IcmpType | Field::Icmpv6Type => Some(slot::TP_SRC),
        Field::IcmpCode | Field::Icmpv6Code => Some(slot::TP_DST),
        Field::NdOptionsType => Some(slot::TCP_FLAGS),
        _ => field.info().slot,
    }
}

impl Field {
    /// The mask of an exact match: ones in all bytes of its values.
    pub fn full_mask(self) -> u128 {
        full_mask(self.info().bytes)
    }

    /// Whether values of the field may be matched under `mask`.
    pub fn allows_mask(self, mask: u128) -> bool {
        self.info().maskable == Maskable::Bitwise || mask == 0 || mask == self.full_mask()
    }

    /// Whether the field can have this value.
    pub fn allows_value(self, value: u128) -> bool {
        match self {
            Self::InPortOxm | Self::ActsetOutput => PortNo::from_of11(value as u32).is_some(),
            Self::IpTos => value & 3 == 0,
            Self::IpFrag => value <= 3,
            Self::ArpOp => value <= 0xff,
            Self::DlVlan => value & (CFI | PCP) == 0,
            Self::VlanVid => value & PCP == 0,
            Self::NshTtl => value <= 63,
            Self::NshMdtype => value == 1 || value == 2,
            Self::CtState => value <= 0xff,
            Self::TcpFlags => value <= 0xfff,
            Self::IpDscp
            | Self::IpEcn
            | Self::DlVlanPcp
            | Self::VlanPcp
            | Self::Ipv6Label
            | Self::MplsLabel
            | Self::MplsTc
            | Self::MplsBos
            | Self::TunFlags
            | Self::NshSpi => value >> self.info().bits == 0,
            _ => true,
        }
    }

    /// The field's value in `key`; `None` for tunnel metadata.
    pub fn value_in(self, key: &FlowKey) -> Option<u128> {
        Some(match self {
            Self::InPort => key.get(slot::IN_PORT) & 0xffff,
            Self::IpTos => key.get(slot::NW_TOS) & 0xfc,
            _ => key.get(plain_slot(self)?),
        })
    }

    /// Writes the field in a packet's key, as actions do; `None` for tunnel metadata.
    /// Writing a VLAN id or priority adds a tag.
    pub fn write(self, key: &mut FlowKey, value: u128) -> Option<()> {
        let tci = key.get(slot::VLAN_TCI);
        match self {
            Self::InPort => {
                let port = PortNo::from_of10(value as u16);
                key.set(slot::IN_PORT, u128::from(port.0));
            }
            Self::DlVlan if value == VLAN_NONE => key.set(slot::VLAN_TCI, 0),
            Self::DlVlan => key.set(slot::VLAN_TCI, (tci & !VID) | (value & VID) | CFI),
            Self::VlanVid => key.set(slot::VLAN_TCI, (tci & PCP) | (value & (VID | CFI))),
            Self::DlVlanPcp | Self::VlanPcp => {
                key.set(slot::VLAN_TCI, (tci & !PCP) | ((value << 13) & PCP) | CFI);
            }
            Self::IpTos => key.set_masked(slot::NW_TOS, value, 0xfc),
            _ => key.set(plain_slot(self)?, value),
        }
        Some(())
    }

    /// Whether `mask` leaves the field open.
    pub fn is_wild_in(self, mask: &FlowMask) -> bool {
        match self {
            Self::DlVlan => mask.get(slot::VLAN_TCI) & VID == 0,
            Self::VlanVid => mask.get(slot::VLAN_TCI) & (VID | CFI) == 0,
            Self::DlVlanPcp | Self::VlanPcp => mask.get(slot::VLAN_TCI) & PCP == 0,
            Self::IpTos => mask.get(slot::NW_TOS) & 0xfc == 0,
            _ => plain_slot(self).is_none_or(|s| mask.get(s) == 0),
        }
    }
}

impl Match {
    /// Requires `value` of `field` in the bits of `mask`, and nothing of its others; `None`
    /// for tunnel metadata.  Both are in the field's own bytes.
    pub fn set_field(&mut self, field: Field, value: u128, mask: u128) -> Option<()> {
        if mask == 0 {
            return self.clear_field(field);
        }
        let tci = self.key().get(slot::VLAN_TCI);
        let tci_mask = self.mask().get(slot::VLAN_TCI);
        match field {
            Field::InPort => {
                let port = PortNo::from_of10(value as u16);
                self.set(slot::IN_PORT, u128::from(port.0));
            }
            Field::DlVlan if value == VLAN_NONE => {
                self.set(slot::VLAN_TCI, 0);
            }
            Field::DlVlan => {
                let value = (tci & !VID) | (value & VID) | CFI;
                self.set_masked(slot::VLAN_TCI, value, tci_mask | VID | CFI);
            }
            Field::VlanVid => {
                let mask = mask & (VID | CFI);
                let value = (tci & PCP) | (value & mask);
                self.set_masked(slot::VLAN_TCI, value, (tci_mask & PCP) | mask);
            }
            Field::DlVlanPcp | Field::VlanPcp => {
                let value = (tci & !PCP) | ((value << 13) & PCP) | CFI;
                self.set_masked(slot::VLAN_TCI, value, tci_mask | PCP | CFI);
            }
            Field::IpTos => {
                self.set_masked(slot::NW_TOS.part(2, 6), value >> 2, 0x3f);
            }
            Field::IcmpType
            | Field::IcmpCode
            | Field::Icmpv6Type
            | Field::Icmpv6Code
            | Field::NdOptionsType => {
                self.set(plain_slot(field)?, value & 0xff);
            }
            Field::CtState => {
                self.set_masked(slot::CT_STATE, value, mask & 0xff);
            }
            _ => {
                let slot = plain_slot(field)?;
                self.set_masked(slot, value, mask & slot.max());
            }
        }
        Some(())
    }

    fn clear_field(&mut self, field: Field) -> Option<()> {
        let tci_mask = self.mask().get(slot::VLAN_TCI);
        let cleared = match field {
            Field::DlVlan | Field::VlanVid if tci_mask & PCP != 0 => VID,
            Field::DlVlanPcp | Field::VlanPcp if tci_mask & VID != 0 => PCP,
            Field::DlVlan | Field::VlanVid | Field::DlVlanPcp | Field::VlanPcp => 0xffff,
            _ => {
                self.clear(plain_slot(field)?);
                return Some(());
            }
        };
        let tci = self.key().get(slot::VLAN_TCI);
        self.set_masked(slot::VLAN_TCI, tci & !cleared, tci_mask & !cleared);
        Some(())
    }

    /// The value and mask of `field`, in its own bytes; `None` for tunnel metadata.
    pub fn field(&self, field: Field) -> Option<(u128, u128)> {
        let value = field.value_in(self.key())?;
        let mask = match field {
            Field::InPort => self.mask().get(slot::IN_PORT) & 0xffff,
            _ => self.mask().get(plain_slot(field)?),
        };
        let slot_full = plain_slot(field)?.max();
        let mask = if mask == slot_full || mask == field.full_mask() {
            field.full_mask()
        } else {
            mask
        };
        Some((value, mask))
    }

    /// Requires an Ethernet packet, unless another packet type is required.
    pub fn set_default_packet_type(&mut self) {
        if self.mask().get(slot::PACKET_TYPE) == 0 {
            self.set(slot::PACKET_TYPE, 0);
        }
    }

    /// Whether an Ethernet packet is required.
    pub fn has_default_packet_type(&self) -> bool {
        self.mask().get(slot::PACKET_TYPE) == slot::PACKET_TYPE.max()
            && self.key().get(slot::PACKET_TYPE) == 0
    }

    /// The Ethernet type that is required, 0 if none: of the frame, or of a packet without
    /// Ethernet header.
    pub fn eth_type(&self) -> u16 {
        let packet_type = self.key().get(slot::PACKET_TYPE);
        if packet_type >> 16 == 1 {
            packet_type as u16
        } else {
            self.key().get(slot::ETH_TYPE) as u16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vlan_fields_share_the_tag() {
        let mut m = Match::any();
        m.set_field(Field::DlVlan, 5, 0xffff);
        m.set_field(Field::DlVlanPcp, 3, 0xff);
        assert_eq!(m.key().get(slot::VLAN_TCI), 0x7005);
        assert_eq!(m.mask().get(slot::VLAN_TCI), 0xffff);
        m.set_field(Field::VlanVid, 0, 0);
        assert_eq!(m.mask().get(slot::VLAN_TCI), 0xf000);
        m.set_field(Field::DlVlan, 0xffff, 0xffff);
        assert_eq!(
            (m.key().get(slot::VLAN_TCI), m.mask().get(slot::VLAN_TCI)),
            (0, 0xffff)
        );
    }

    #[test]
    fn ports_of_both_widths_are_one_field() {
        let mut m = Match::any();
        m.set_field(Field::InPort, 0xfffe, 0xffff);
        assert_eq!(m.field(Field::InPortOxm), Some((0xffff_fffe, 0xffff_ffff)));
        assert_eq!(m.field(Field::InPort), Some((0xfffe, 0xffff)));
    }

    #[test]
    fn every_field_without_layout_reads_back_what_it_wrote() {
        for field in Field::all() {
            if field.info().slot.is_none() {
                continue;
            }
            let mut key = FlowKey::new();
            field.write(&mut key, 1).unwrap();
            let want = if *field == Field::IpTos { 0 } else { 1 };
            assert_eq!(field.value_in(&key).unwrap() & 1, want, "{field:?}");
        }
    }
}
