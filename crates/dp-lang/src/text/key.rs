//! Flow keys as text.

use std::fmt::Write as _;

use net_flow::slot::{self, Slot};
use net_flow::types::{eth_type, ip_proto};
use net_flow::{FlowKey, FlowMask};

use super::PortNames;
use super::field::{self, Group, format_flags, format_flags_masked, hex};
use super::tunnel::put_tunnel;
use crate::PortNo;

/// How a flow is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowFormat {
    /// Prints what does not matter, too.
    pub verbose: bool,
    /// As flows of the kernel's datapath are shown: the kernel keeps the low eight bits of an
    /// ARP operation's mask, and the field has sixteen.
    pub kernel: bool,
}

/// Frames with a smaller type have none: the field is a length.
const ETH_TYPE_MIN: u128 = 0x600;

fn is_vlan(tpid: u128) -> bool {
    tpid == u128::from(eth_type::VLAN) || tpid == u128::from(eth_type::VLAN_8021AD)
}

/// Prints a datapath flow: `recirc_id(0),in_port(1),eth(...),...`.  Without a mask all
/// bits matter.
pub fn format_flow(
    key: &FlowKey,
    mask: Option<&FlowMask>,
    names: &PortNames,
    format: FlowFormat,
) -> String {
    let mut writer = Writer {
        key,
        mask,
        verbose: format.verbose,
        kernel: format.kernel,
        out: String::new(),
        first: true,
        has_packet_type: false,
    };
    writer.metadata(names);
    writer.packet();
    writer.out
}

struct Writer<'a> {
    key: &'a FlowKey,
    mask: Option<&'a FlowMask>,
    verbose: bool,
    kernel: bool,
    out: String,
    first: bool,
    has_packet_type: bool,
}

impl Writer<'_> {
    fn bits(&self, slot: Slot) -> u128 {
        self.mask.map_or(slot.max(), |m| m.get(slot))
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
    }

    /// `name(value/mask)` in hexadecimal.
    fn scalar(&mut self, name: &str, slot: Slot) {
        let mask = self.bits(slot);
        if mask == 0 && !self.verbose {
            return;
        }
        self.comma();
        let _ = write!(self.out, "{name}({}", hex(self.key.get(slot)));
        if mask != slot.max() {
            let _ = write!(self.out, "/{}", hex(mask));
        }
        self.out.push(')');
    }

    fn group(&mut self, group: &Group) {
        if self.verbose || self.mask.is_none_or(|m| group.matters(m)) {
            self.comma();
            group.put(self.key, self.mask, self.verbose, &mut self.out);
        }
    }

    fn arp(&mut self) {
        self.group(match self.kernel {
            true => &field::ARP_OF_KERNEL,
            false => &field::ARP,
        });
    }

    fn metadata(&mut self, names: &PortNames) {
        self.scalar("recirc_id", slot::RECIRC_ID);
        self.scalar("dp_hash", slot::DP_HASH);
        self.scalar("skb_priority", slot::SKB_PRIORITY);
        self.tunnel();
        let in_port = self.bits(slot::IN_PORT);
        let port = PortNo(self.key.get(slot::IN_PORT) as u32);
        if (in_port != 0 || self.verbose) && port != PortNo::NONE {
            self.comma();
            let _ = if in_port == slot::IN_PORT.max() {
                write!(self.out, "in_port({})", names.text(port))
            } else {
                write!(self.out, "in_port({port}/{})", hex(in_port))
            };
        }
        self.scalar("skb_mark", slot::PKT_MARK);
        self.ct_state();
        self.scalar("ct_zone", slot::CT_ZONE);
        self.scalar("ct_mark", slot::CT_MARK);
        self.scalar("ct_label", slot::CT_LABEL);
        if self.key.get(slot::CT_NW_PROTO) != 0 {
            match self.key.get(slot::ETH_TYPE) as u16 {
                eth_type::IPV4 => self.group(&field::CT_TUPLE4),
                eth_type::IPV6 => self.group(&field::CT_TUPLE6),
                _ => {}
            }
        }
        self.has_packet_type = self.bits(slot::PACKET_TYPE) != 0;
        // The kernel has no word for the usual type.
        if self.has_packet_type || !self.kernel {
            self.group(&field::PACKET_TYPE);
        }
    }

    fn ct_state(&mut self) {
        let mask = self.bits(slot::CT_STATE);
        if mask == 0 && !self.verbose {
            return;
        }
        if self.verbose {
            self.scalar("ct_state", slot::CT_STATE);
            return;
        }
        self.comma();
        let value = self.key.get(slot::CT_STATE);
        let text = if self.mask.is_none() {
            format_flags(field::CT_STATE, value, '|')
        } else {
            format_flags_masked(field::CT_STATE, value, mask)
        };
        let _ = write!(self.out, "ct_state({text})");
    }

    fn tunnel(&mut self) {
        let set = |slot| self.key.get(slot) != 0;
        let is_tunnelled = set(slot::TUN_DST)
            || set(slot::TUN_IPV6_DST)
            || set(slot::TUN_SRC)
            || set(slot::TUN_IPV6_SRC);
        let matters = |m: &FlowMask| (25..34).any(|word| m.word(word) != 0);
        if is_tunnelled && (self.verbose || self.mask.is_none_or(matters)) {
            self.comma();
            put_tunnel(self.key, self.mask, self.verbose, &mut self.out);
        }
    }

    fn packet(&mut self) {
        if self.key.get(slot::PACKET_TYPE) == 0 {
            let matters = |m: &FlowMask| field::ETHERNET.matters(m);
            if self.verbose || self.mask.is_none_or(matters) {
                self.group(&field::ETHERNET);
            } else if !self.has_packet_type {
                self.comma();
                self.out += "eth()";
            }
            if self.key.get(slot::VLAN_TCI) != 0 {
                self.vlan(&[
                    (slot::VLAN_TPID, slot::VLAN_TCI),
                    (slot::VLAN2_TPID, slot::VLAN2_TCI),
                ]);
                return;
            }
        }
        self.network();
    }

    fn vlan(&mut self, tags: &[(Slot, Slot)]) {
        let Some(((tpid, tci), inner)) = tags.split_first() else {
            self.network();
            return;
        };
        if self.key.get(*tci) == 0 {
            self.network();
            return;
        }
        self.comma();
        let _ = write!(self.out, "eth_type({:#06x})", self.key.get(*tpid));
        let mask = self.bits(*tci);
        if mask != 0 || self.verbose {
            self.comma();
            self.out += "vlan(";
            put_vlan(self.key.get(*tci), mask, self.verbose, &mut self.out);
            self.out.push(')');
        }
        self.comma();
        self.out += "encap(";
        self.first = true;
        self.vlan(inner);
        self.out.push(')');
        self.first = false;
    }

    fn network(&mut self) {
        let ethertype = self.key.get(slot::ETH_TYPE);
        let mask = self.bits(slot::ETH_TYPE);
        if ethertype < ETH_TYPE_MIN {
            if self.mask.is_some() && mask != 0 {
                let _ = write!(self.out, ",eth_type(0/{mask:#06x})");
            }
            return;
        }
        if mask != 0 || self.verbose {
            self.comma();
            let _ = write!(self.out, "eth_type({ethertype:#06x}");
            if mask != slot::ETH_TYPE.max() {
                let _ = write!(self.out, "/{mask:#06x}");
            }
            self.out.push(')');
        }
        if is_vlan(ethertype) {
            return;
        }
        match ethertype as u16 {
            eth_type::IPV4 => self.group(&field::IPV4),
            eth_type::IPV6 => self.group(&field::IPV6),
            eth_type::ARP | eth_type::RARP => self.arp(),
            eth_type::MPLS | eth_type::MPLS_MULTICAST => self.mpls(),
            eth_type::NSH => self.group(&field::NSH),
            _ => {}
        }
        let is_ipv4 = ethertype as u16 == eth_type::IPV4;
        let is_ipv6 = ethertype as u16 == eth_type::IPV6;
        if (is_ipv4 || is_ipv6) && self.key.get(slot::NW_FRAG) & 2 == 0 {
            self.transport(is_ipv6);
        }
    }

    fn transport(&mut self, is_ipv6: bool) {
        match self.key.get(slot::NW_PROTO) as u8 {
            ip_proto::TCP => {
                self.group(&field::TCP);
                self.tcp_flags();
            }
            ip_proto::UDP => self.group(&field::UDP),
            ip_proto::SCTP => self.group(&field::SCTP),
            ip_proto::ICMP if !is_ipv6 => self.group(&field::ICMP),
            ip_proto::ICMPV6 if is_ipv6 => {
                self.group(&field::ICMPV6);
                if matches!(self.key.get(slot::TP_SRC), 135 | 136) {
                    self.group(&field::ND);
                    let has_extensions =
                        self.bits(slot::IGMP_GROUP) != 0 || self.bits(slot::TCP_FLAGS) != 0;
                    if self.mask.is_some() && has_extensions {
                        self.group(&field::ND_EXTENSIONS);
                    }
                }
            }
            _ => {}
        }
    }

    fn tcp_flags(&mut self) {
        const ALL: u128 = 0xfff;
        let mask = self.bits(slot::TCP_FLAGS) & ALL;
        let value = self.key.get(slot::TCP_FLAGS);
        if mask == 0 && !(self.verbose && value != 0) {
            return;
        }
        self.comma();
        let text = if mask == ALL {
            format_flags(field::TCP_FLAGS, value, '|')
        } else {
            format_flags_masked(field::TCP_FLAGS, value, mask)
        };
        let _ = write!(self.out, "tcp_flags({text})");
    }

    fn mpls(&mut self) {
        let entries = [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2];
        // A stack goes on until the bottom; what is below was not looked at.
        let mut count = 0;
        for entry in entries {
            count += 1;
            if self.key.get(entry) & 0x100 != 0 {
                break;
            }
        }
        let stack = &entries[..count];
        if stack.iter().all(|e| self.bits(*e) == 0) && !self.verbose {
            return;
        }
        self.comma();
        self.out += "mpls(";
        let exact = stack.iter().all(|e| self.bits(*e) == e.max());
        for (i, entry) in stack.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            let (value, mask) = (self.key.get(*entry) as u32, self.bits(*entry) as u32);
            put_lse(value, (!exact).then_some(mask), &mut self.out);
        }
        self.out.push(')');
    }
}

/// A label stack entry as `label=...,tc=...,ttl=...,bos=...`.
pub(super) fn put_lse(value: u32, mask: Option<u32>, out: &mut String) {
    let parts = |lse: u32| (lse >> 12, lse >> 9 & 7, lse & 0xff, lse >> 8 & 1);
    let (label, tc, ttl, bos) = parts(value);
    let _ = match mask.map(parts) {
        None => write!(out, "label={label},tc={tc},ttl={ttl},bos={bos}"),
        Some((l, c, t, b)) => write!(
            out,
            "label={label}/{l:#x},tc={tc}/{c:x},ttl={ttl}/{t:#x},bos={bos}/{b:x}"
        ),
    };
}

/// A tag's control information as `vid=...,pcp=...`.
pub(super) fn put_vlan(tci: u128, mask: u128, verbose: bool, out: &mut String) {
    let (vid, pcp) = (tci & 0xfff, tci >> 13 & 7);
    let (vid_mask, pcp_mask) = (mask & 0xfff, mask >> 13 & 7);
    if verbose || vid != 0 || vid_mask != 0 {
        let _ = write!(out, "vid={vid}");
        if vid_mask != 0xfff {
            let _ = write!(out, "/{vid_mask:#x}");
        }
        out.push(',');
    }
    if verbose || pcp != 0 || pcp_mask != 0 {
        let _ = write!(out, "pcp={pcp}");
        if pcp_mask != 7 {
            let _ = write!(out, "/{pcp_mask:#x}");
        }
        out.push(',');
    }
    if tci & 0x1000 == 0 {
        *out += "cfi=0";
    }
    if out.ends_with(',') {
        out.pop();
    }
}
