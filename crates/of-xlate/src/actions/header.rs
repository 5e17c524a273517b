//! Actions of OpenFlow 1.0 and 1.1 that write header fields.

use net_flow::types::eth_type;
use net_flow::{Slot, slot};
use of_wire::Action;

use crate::ctx::Ctx;

/// Six bytes as the low 48 bits.
fn mac(bytes: [u8; 6]) -> u128 {
    bytes.iter().fold(0, |all, b| all << 8 | u128::from(*b))
}

impl Ctx<'_> {
    pub(crate) fn set_header(&mut self, action: &Action) {
        match action {
            Action::SetEthSrc(bytes) => self.flow.write(slot::ETH_SRC, mac(*bytes), u128::MAX),
            Action::SetEthDst(bytes) => self.flow.write(slot::ETH_DST, mac(*bytes), u128::MAX),
            Action::SetIpv4Src(ip) => self.set_ipv4(slot::NW_SRC, ip.to_bits()),
            Action::SetIpv4Dst(ip) => self.set_ipv4(slot::NW_DST, ip.to_bits()),
            Action::SetIpDscp(dscp) => self.set_ip(slot::NW_TOS, *dscp, 0xfc),
            Action::SetIpEcn(ecn) => self.set_ip(slot::NW_TOS, *ecn, 3),
            Action::SetIpTtl(ttl) => self.set_ip(slot::NW_TTL, *ttl, 0xff),
            Action::SetL4SrcPort(a) => self.set_l4_port(slot::TP_SRC, a.port),
            Action::SetL4DstPort(a) => self.set_l4_port(slot::TP_DST, a.port),
            Action::SetTunnel { id, .. } => self.flow.set(slot::TUN_ID, u128::from(*id)),
            _ => {}
        }
    }

    fn set_ipv4(&mut self, slot: Slot, ip: u32) {
        if self.flow.eth_type() == eth_type::IPV4 {
            self.flow.mark(slot::NW_PROTO);
            self.flow.write(slot, u128::from(ip), u128::MAX);
        }
    }

    fn set_ip(&mut self, slot: Slot, value: u8, mask: u8) {
        if self.flow.is_ip() {
            self.flow.mark(slot::NW_PROTO);
            self.flow.write(slot, u128::from(value), u128::from(mask));
        }
    }

    fn set_l4_port(&mut self, slot: Slot, port: u16) {
        if self.flow.is_ip() && self.flow.fragment() & 2 == 0 {
            self.flow.mark(slot::NW_PROTO);
            self.flow.write(slot, u128::from(port), u128::MAX);
        }
    }
}
