//! Printing matches, in the order of fields that `ovs-ofctl dump-flows` has.

use std::fmt::Write;

use super::addr;
use super::flags::{CT_STATE, Flags, TCP, TUNNEL};
use super::value::{put_alt_hex, put_packet_type, put_port};
use crate::key::{FlowKey, FlowMask};
use crate::matching::Match;
use crate::names::Names;
use crate::port::PortNo;
use crate::slot::{self, Slot};
use crate::types::{VLAN_CFI, VLAN_PCP_MASK, VLAN_VID_MASK, eth_type, ip_proto, tunnel_flag};

/// The priority that is not printed.
const DEFAULT_PRIORITY: i32 = 32768;

/// Appends `m`, with `priority=` in front unless `priority` is the default, 32768.
/// Empty for a match of everything.
pub fn put_match(out: &mut String, m: &Match, priority: i32, names: &Names) {
    let start = out.len();
    let mut p = Printer {
        out,
        key: m.key(),
        mask: m.mask(),
        names,
    };
    if priority != DEFAULT_PRIORITY {
        let _ = write!(p.out, "priority={priority},");
    }
    p.pipeline();
    p.conntrack();
    let eth_type = p.packet_type(m);
    let printed = p.protocol(eth_type);
    for n in 0..32 {
        let slot = slot::reg(n);
        if p.mask.get(slot) != 0 {
            p.hex(&format!("reg{n}"), slot);
        }
    }
    p.tunnel();
    p.hex("metadata", slot::METADATA);
    if p.mask.get(slot::IN_PORT) != 0 {
        p.port("in_port", slot::IN_PORT);
    }
    p.vlan("", slot::VLAN_TCI);
    if p.mask.get(slot::VLAN_TCI) != 0 {
        p.vlan("1", slot::VLAN2_TCI);
    }
    p.eth("dl_src", slot::ETH_SRC);
    p.eth("dl_dst", slot::ETH_DST);
    if !printed.eth_type && p.mask.get(slot::ETH_TYPE) != 0 {
        let _ = write!(p.out, "dl_type=0x{eth_type:04x},");
    }
    p.network(eth_type, printed.proto);
    p.mpls();
    p.frag();
    p.transport(eth_type);
    if out.len() > start && out.ends_with(',') {
        out.pop();
    }
}

/// What the protocol's name has already said.
struct Printed {
    eth_type: bool,
    proto: bool,
}

struct Printer<'a> {
    out: &'a mut String,
    key: &'a FlowKey,
    mask: &'a FlowMask,
    names: &'a Names,
}

impl Printer<'_> {
    fn has(&self, slot: Slot) -> bool {
        self.mask.get(slot) != 0
    }

    /// Hexadecimal, 0 without `0x`; an inexact mask follows.
    fn hex(&mut self, name: &str, slot: Slot) {
        let mask = self.mask.get(slot);
        if mask == 0 {
            return;
        }
        let _ = write!(self.out, "{name}=");
        put_alt_hex(self.out, self.key.get(slot));
        if mask != slot.max() {
            let _ = write!(self.out, "/{mask:#x}");
        }
        self.out.push(',');
    }

    /// Decimal, or `0x` value and mask if the mask is inexact, both at least `digits` long.
    fn dec_width(&mut self, name: &str, slot: Slot, digits: usize) {
        let (value, mask) = (self.key.get(slot), self.mask.get(slot));
        if mask == 0 {
            return;
        }
        let _ = if mask == slot.max() {
            write!(self.out, "{name}={value},")
        } else {
            write!(self.out, "{name}=0x{value:0digits$x}/0x{mask:0digits$x},")
        };
    }

    fn dec(&mut self, name: &str, slot: Slot) {
        self.dec_width(name, slot, 1);
    }

    /// `0x` even for 0.
    fn plain_hex(&mut self, name: &str, slot: Slot) {
        let (value, mask) = (self.key.get(slot), self.mask.get(slot));
        if mask == 0 {
            return;
        }
        let _ = if mask == slot.max() {
            write!(self.out, "{name}=0x{value:x},")
        } else {
            write!(self.out, "{name}=0x{value:x}/0x{mask:x},")
        };
    }

    fn eth(&mut self, name: &str, slot: Slot) {
        if self.has(slot) {
            let _ = write!(self.out, "{name}=");
            let (value, mask) = (self.key.get(slot), self.mask.get(slot));
            addr::put_eth_masked(self.out, value as u64, mask as u64);
            self.out.push(',');
        }
    }

    fn ipv4(&mut self, name: &str, slot: Slot) {
        if self.has(slot) {
            let _ = write!(self.out, "{name}=");
            let (value, mask) = (self.key.get(slot), self.mask.get(slot));
            addr::put_ipv4_masked(self.out, value as u32, mask as u32);
            self.out.push(',');
        }
    }

    fn ipv6(&mut self, name: &str, slot: Slot) {
        if self.has(slot) {
            let _ = write!(self.out, "{name}=");
            addr::put_ipv6_masked(self.out, self.key.get(slot), self.mask.get(slot));
            self.out.push(',');
        }
    }

    fn port(&mut self, name: &str, slot: Slot) {
        let _ = write!(self.out, "{name}=");
        put_port(self.out, PortNo(self.key.get(slot) as u32), self.names);
        self.out.push(',');
    }

    fn flags(&mut self, name: &str, slot: Slot, flags: &Flags, full: u32) {
        let _ = write!(self.out, "{name}=");
        let (value, mask) = (self.key.get(slot), self.mask.get(slot));
        flags.put_masked(self.out, value as u32, mask as u32, full);
        self.out.push(',');
    }

    fn pipeline(&mut self) {
        self.hex("pkt_mark", slot::PKT_MARK);
        self.hex("recirc_id", slot::RECIRC_ID);
        self.hex("dp_hash", slot::DP_HASH);
        self.dec("conj_id", slot::CONJ_ID);
        self.hex("skb_priority", slot::SKB_PRIORITY);
        if self.has(slot::ACTSET_OUTPUT) {
            self.port("actset_output", slot::ACTSET_OUTPUT);
        }
    }

    fn conntrack(&mut self) {
        if self.has(slot::CT_STATE) {
            self.flags("ct_state", slot::CT_STATE, &CT_STATE, 0xff);
        }
        self.dec("ct_zone", slot::CT_ZONE);
        self.hex("ct_mark", slot::CT_MARK);
        self.hex("ct_label", slot::CT_LABEL);
        self.ipv4("ct_nw_src", slot::CT_NW_SRC);
        self.ipv6("ct_ipv6_src", slot::CT_IPV6_SRC);
        self.ipv4("ct_nw_dst", slot::CT_NW_DST);
        self.ipv6("ct_ipv6_dst", slot::CT_IPV6_DST);
        if self.has(slot::CT_NW_PROTO) {
            self.dec("ct_nw_proto", slot::CT_NW_PROTO);
            self.dec("ct_tp_src", slot::CT_TP_SRC);
            self.dec("ct_tp_dst", slot::CT_TP_DST);
        }
    }

    /// Prints an unusual packet type; gives the Ethernet type to go by.
    fn packet_type(&mut self, m: &Match) -> u16 {
        let eth_type = self.key.get(slot::ETH_TYPE) as u16;
        let mask = self.mask.get(slot::PACKET_TYPE);
        let megaflow = self.has(slot::RECIRC_ID);
        if mask == 0 || (m.has_default_packet_type() && !megaflow) {
            return eth_type;
        }
        let value = self.key.get(slot::PACKET_TYPE) as u32;
        put_packet_type(self.out, value, mask as u32);
        self.out.push(',');
        if value >> 16 == 1 {
            value as u16
        } else {
            eth_type
        }
    }

    fn protocol(&mut self, eth_type: u16) -> Printed {
        let mut printed = Printed {
            eth_type: false,
            proto: false,
        };
        if !self.has(slot::ETH_TYPE) {
            return printed;
        }
        let proto = self.has(slot::NW_PROTO);
        let nw_proto = self.key.get(slot::NW_PROTO) as u8;
        let name = match (eth_type, proto.then_some(nw_proto)) {
            (eth_type::IPV4, Some(ip_proto::ICMP)) => "icmp",
            (eth_type::IPV4, Some(ip_proto::TCP)) => "tcp",
            (eth_type::IPV4, Some(ip_proto::UDP)) => "udp",
            (eth_type::IPV4, Some(ip_proto::SCTP)) => "sctp",
            (eth_type::IPV4, _) => "ip",
            (eth_type::IPV6, Some(ip_proto::ICMPV6)) => "icmp6",
            (eth_type::IPV6, Some(ip_proto::TCP)) => "tcp6",
            (eth_type::IPV6, Some(ip_proto::UDP)) => "udp6",
            (eth_type::IPV6, Some(ip_proto::SCTP)) => "sctp6",
            (eth_type::IPV6, _) => "ipv6",
            (eth_type::ARP, _) => "arp",
            (eth_type::RARP, _) => "rarp",
            (eth_type::MPLS, _) => "mpls",
            (eth_type::MPLS_MULTICAST, _) => "mplsm",
            _ => return printed,
        };
        let _ = write!(self.out, "{name},");
        printed.eth_type = true;
        printed.proto = proto && !matches!(name, "ip" | "ipv6" | "arp" | "rarp" | "mpls" | "mplsm");
        printed
    }

    fn tunnel(&mut self) {
        if self.mask.map() >> slot::TUN_ID.word & 0x1ff == 0 {
            return;
        }
        self.hex("tun_id", slot::TUN_ID);
        self.ipv4("tun_src", slot::TUN_SRC);
        self.ipv4("tun_dst", slot::TUN_DST);
        self.ipv6("tun_ipv6_src", slot::TUN_IPV6_SRC);
        self.ipv6("tun_ipv6_dst", slot::TUN_IPV6_DST);
        self.dec("tun_gbp_id", slot::TUN_GBP_ID);
        self.value_hex("tun_gbp_flags", slot::TUN_GBP_FLAGS);
        if self.has(slot::TUN_TOS) {
            let _ = write!(self.out, "tun_tos={:x},", self.key.get(slot::TUN_TOS));
        }
        self.value_dec("tun_ttl", slot::TUN_TTL);
        self.value_dec("tun_erspan_ver", slot::TUN_ERSPAN_VER);
        match self.key.get(slot::TUN_ERSPAN_VER) {
            1 => self.value_hex("tun_erspan_idx", slot::TUN_ERSPAN_IDX),
            2 => {
                self.value_dec("tun_erspan_dir", slot::TUN_ERSPAN_DIR);
                self.value_hex("tun_erspan_hwid", slot::TUN_ERSPAN_HWID);
            }
            _ => {}
        }
        self.value_hex("gtpu_flags", slot::TUN_GTPU_FLAGS);
        self.value_dec("gtpu_msgtype", slot::TUN_GTPU_MSGTYPE);
        let flags = slot::TUN_FLAGS.part(0, 4);
        if self.has(flags) {
            self.flags("tun_flags", flags, &TUNNEL, u32::from(tunnel_flag::ALL));
        }
    }

    fn value_hex(&mut self, name: &str, slot: Slot) {
        if self.has(slot) {
            let _ = write!(self.out, "{name}=");
            put_alt_hex(self.out, self.key.get(slot));
            self.out.push(',');
        }
    }

    fn value_dec(&mut self, name: &str, slot: Slot) {
        if self.has(slot) {
            let _ = write!(self.out, "{name}={},", self.key.get(slot));
        }
    }

    fn vlan(&mut self, suffix: &str, slot: Slot) {
        let (tci, mask) = (self.key.get(slot) as u16, self.mask.get(slot) as u16);
        if mask == 0 {
            return;
        }
        let (vid_mask, pcp_mask) = (mask & VLAN_VID_MASK, mask & VLAN_PCP_MASK);
        let tagged = mask & tci & VLAN_CFI != 0;
        let whole = (vid_mask == 0 || vid_mask == VLAN_VID_MASK)
            && (pcp_mask == 0 || pcp_mask == VLAN_PCP_MASK);
        if tagged && whole && (vid_mask | pcp_mask) != 0 {
            if vid_mask != 0 {
                let _ = write!(self.out, "dl_vlan{suffix}={},", tci & VLAN_VID_MASK);
            }
            if pcp_mask != 0 {
                let _ = write!(self.out, "dl_vlan_pcp{suffix}={},", tci >> 13);
            }
        } else if mask == 0xffff {
            let _ = write!(self.out, "vlan_tci{suffix}=0x{tci:04x},");
        } else {
            let _ = write!(self.out, "vlan_tci{suffix}=0x{tci:04x}/0x{mask:04x},");
        }
    }

    fn network(&mut self, eth_type: u16, proto_printed: bool) {
        let arp = eth_type == eth_type::ARP || eth_type == eth_type::RARP;
        if eth_type == eth_type::IPV6 {
            self.ipv6("ipv6_src", slot::IPV6_SRC);
            self.ipv6("ipv6_dst", slot::IPV6_DST);
            let label = slot::IPV6_LABEL.part(0, 20);
            let (value, mask) = (self.key.get(label), self.mask.get(label));
            if mask == label.max() {
                let _ = write!(self.out, "ipv6_label=0x{value:05x},");
            } else if mask != 0 {
                let _ = write!(self.out, "ipv6_label=0x{value:05x}/0x{mask:05x},");
            }
        } else if arp {
            self.ipv4("arp_spa", slot::NW_SRC);
            self.ipv4("arp_tpa", slot::NW_DST);
        } else if eth_type == eth_type::NSH {
            self.nsh();
        } else {
            self.ipv4("nw_src", slot::NW_SRC);
            self.ipv4("nw_dst", slot::NW_DST);
        }
        if !proto_printed {
            self.value_dec(if arp { "arp_op" } else { "nw_proto" }, slot::NW_PROTO);
        }
        if arp {
            self.eth("arp_sha", slot::ARP_SHA);
            self.eth("arp_tha", slot::ARP_THA);
        }
        let (tos, mask) = (self.key.get(slot::NW_TOS), self.mask.get(slot::NW_TOS));
        if mask & 0xfc != 0 {
            let _ = write!(self.out, "nw_tos={},", tos & 0xfc);
        }
        if mask & 3 != 0 {
            let _ = write!(self.out, "nw_ecn={},", tos & 3);
        }
        self.value_dec("nw_ttl", slot::NW_TTL);
    }

    fn nsh(&mut self) {
        self.dec_width("nsh_flags", slot::NSH_FLAGS, 2);
        self.dec_width("nsh_ttl", slot::NSH_TTL, 2);
        self.dec_width("nsh_mdtype", slot::NSH_MDTYPE, 2);
        self.dec_width("nsh_np", slot::NSH_NP, 2);
        self.plain_hex("nsh_spi", slot::NSH_SPI);
        self.dec_width("nsh_si", slot::NSH_SI, 2);
        let exact_type = self.mask.get(slot::NSH_MDTYPE) == 0xff;
        if exact_type && self.key.get(slot::NSH_MDTYPE) == 1 {
            self.plain_hex("nsh_c1", slot::NSH_C1);
            self.plain_hex("nsh_c2", slot::NSH_C2);
            self.plain_hex("nsh_c3", slot::NSH_C3);
            self.plain_hex("nsh_c4", slot::NSH_C4);
        }
    }

    fn mpls(&mut self) {
        self.value_dec("mpls_label", slot::MPLS_LSE.part(12, 20));
        self.value_dec("mpls_tc", slot::MPLS_LSE.part(9, 3));
        self.value_dec("mpls_ttl", slot::MPLS_LSE.part(0, 8));
        self.value_dec("mpls_bos", slot::MPLS_LSE.part(8, 1));
        self.dec_width("mpls_lse1", slot::MPLS_LSE1, 8);
        self.dec_width("mpls_lse2", slot::MPLS_LSE2, 8);
    }

    fn frag(&mut self) {
        let (value, mask) = (self.key.get(slot::NW_FRAG), self.mask.get(slot::NW_FRAG));
        let name = match (mask & 3, value & 3) {
            (0, _) => return,
            (3, 0) | (1, 0) => "no",
            (3, 1) => "first",
            (3, 3) => "later",
            (3, _) => "<error>",
            (1, _) => "yes",
            (2, 0 | 1) => "not_later",
            _ => "later",
        };
        let _ = write!(self.out, "nw_frag={name},");
    }

    fn transport(&mut self, eth_type: u16) {
        let proto = self.key.get(slot::NW_PROTO) as u8;
        let icmp6 = eth_type == eth_type::IPV6 && proto == ip_proto::ICMPV6;
        if icmp6 || (eth_type == eth_type::IPV4 && proto == ip_proto::ICMP) {
            self.dec("icmp_type", slot::TP_SRC);
            self.dec("icmp_code", slot::TP_DST);
        } else {
            self.dec("tp_src", slot::TP_SRC);
            self.dec("tp_dst", slot::TP_DST);
        }
        if icmp6 {
            self.ipv6("nd_target", slot::ND_TARGET);
            self.eth("nd_sll", slot::ARP_SHA);
            self.eth("nd_tll", slot::ARP_THA);
            self.dec_width("nd_reserved", slot::IGMP_GROUP, 8);
            self.dec("nd_options_type", slot::TCP_FLAGS);
        }
        let ip = self.key.get(slot::ETH_TYPE) as u16;
        let ip = ip == eth_type::IPV4 || ip == eth_type::IPV6;
        if ip && proto == ip_proto::TCP && self.has(slot::TCP_FLAGS) {
            self.flags("tcp_flags", slot::TCP_FLAGS.part(0, 12), &TCP, 0xfff);
        }
    }
}
