//! `mod_vlan_vid`, `mod_vlan_pcp`, `set_vlan_vid`, `set_vlan_pcp`.

use of_wire::action::SetVlan;

use crate::ctx::Ctx;
use crate::vlan::{PCP, VID};

impl Ctx<'_> {
    pub(crate) fn set_vlan_vid(&mut self, action: SetVlan<u16>) {
        self.flow
            .write_tci(action.value, VID as u16, action.push_if_needed);
    }

    pub(crate) fn set_vlan_pcp(&mut self, action: SetVlan<u8>) {
        let value = u16::from(action.value) << 13;
        self.flow
            .write_tci(value, PCP as u16, action.push_if_needed);
    }
}
