//! Actions of OpenFlow 1.0 and 1.1 that write header fields, and those that push, pop
//! and decrement.

use std::fmt::Write;
use std::net::Ipv4Addr;

use net_flow::Formats;
use net_flow::text::addr;
use net_flow::text::num::{str_to_u8, str_to_u16, str_to_u32};
use net_flow::types::eth_type;

use super::text::{atoi, limited_u16, masked_u8};
use super::{Action, Parser};

/// `mod_vlan_vid:VID` or `mod_vlan_pcp:PCP` (adds a tag if there is none), or their
/// OpenFlow 1.1 forms `set_vlan_vid` and `set_vlan_pcp` (which do not).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetVlan<T> {
    /// The value.
    pub value: T,
    /// Adds a tag to an untagged packet.
    pub push_if_needed: bool,
    /// The rule's match, or an action before, guarantees a tag.
    pub flow_has_vlan: bool,
}

/// `mod_tp_src:PORT`, `mod_tp_dst:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetL4Port {
    /// The port.
    pub port: u16,
    /// The IP protocol that the rule's match demands, 0 if none.
    pub ip_proto: u8,
}

pub(super) fn parse(name: &str, arg: &str, p: &mut Parser<'_>) -> Option<Result<Action, String>> {
    let vlan = |value, push_if_needed| SetVlan {
        value,
        push_if_needed,
        flow_has_vlan: false,
    };
    let pcp = |arg: &str| {
        let value = str_to_u8(arg, "VLAN PCP")?;
        if value > 7 {
            return Err(format!("{arg}: not a valid VLAN PCP"));
        }
        Ok(value)
    };
    let vid = |arg| limited_u16(arg, "VLAN VID", 0xfff);
    let l4 = |arg, what| str_to_u16(arg, what).map(|port| SetL4Port { port, ip_proto: 0 });
    Some(match name {
        "set_vlan_vid" => vid(arg).map(|v| Action::SetVlanVid(vlan_of(v, false))),
        "mod_vlan_vid" => vid(arg).map(|v| Action::SetVlanVid(vlan_of(v, true))),
        "set_vlan_pcp" => pcp(arg).map(|v| Action::SetVlanPcp(vlan(v, false))),
        "mod_vlan_pcp" => pcp(arg).map(|v| Action::SetVlanPcp(vlan(v, true))),
        "strip_vlan" => Ok(Action::StripVlan { pop: false }),
        "pop_vlan" => Ok(Action::StripVlan { pop: true }),
        "push_vlan" => {
            p.formats &= Formats::OF11_UP;
            push_vlan(arg)
        }
        "mod_dl_src" => mac(arg).map(Action::SetEthSrc),
        "mod_dl_dst" => mac(arg).map(Action::SetEthDst),
        "mod_nw_src" => ip(arg).map(Action::SetIpv4Src),
        "mod_nw_dst" => ip(arg).map(Action::SetIpv4Dst),
        "mod_nw_tos" => masked_u8(arg, "TOS", 0xfc).map(Action::SetIpDscp),
        "mod_nw_ecn" => masked_u8(arg, "ECN", 3).map(Action::SetIpEcn),
        "mod_nw_ttl" | "set_nw_ttl" => str_to_u8(arg, "TTL").map(Action::SetIpTtl),
        "mod_tp_src" => l4(arg, "source port").map(Action::SetL4SrcPort),
        "mod_tp_dst" => l4(arg, "destination port").map(Action::SetL4DstPort),
        "dec_ttl" => dec_ttl(arg),
        "set_mpls_label" => mpls_label(arg),
        "set_mpls_tc" => required(arg, "set_mpls_tc: expected tc.")
            .and_then(|arg| masked_u8(arg, "MPLS TC", 7))
            .map(Action::SetMplsTc),
        "set_mpls_ttl" => required(arg, "set_mpls_ttl: expected ttl.")
            .and_then(|arg| str_to_u8(arg, "MPLS TTL"))
            .map(Action::SetMplsTtl),
        "dec_mpls_ttl" => Ok(Action::DecMplsTtl),
        "push_mpls" => str_to_u16(arg, "push_mpls").map(Action::PushMpls),
        "pop_mpls" => str_to_u16(arg, "pop_mpls").map(Action::PopMpls),
        _ => return None,
    })
}

const fn vlan_of(value: u16, push_if_needed: bool) -> SetVlan<u16> {
    SetVlan {
        value,
        push_if_needed,
        flow_has_vlan: false,
    }
}

fn required<'a>(arg: &'a str, missing: &str) -> Result<&'a str, String> {
    if arg.is_empty() {
        return Err(missing.to_owned());
    }
    Ok(arg)
}

fn push_vlan(arg: &str) -> Result<Action, String> {
    let ty = str_to_u16(arg, "ethertype")?;
    if !is_vlan_type(ty) {
        return Err(format!("{arg}: not a valid VLAN ethertype"));
    }
    Ok(Action::PushVlan(ty))
}

/// Whether `ty` is the Ethernet type of a VLAN tag.
pub(super) const fn is_vlan_type(ty: u16) -> bool {
    ty == eth_type::VLAN || ty == eth_type::VLAN_8021AD
}

/// Whether `ty` is an Ethernet type of MPLS.
pub(super) const fn is_mpls_type(ty: u16) -> bool {
    ty == eth_type::MPLS || ty == eth_type::MPLS_MULTICAST
}

fn mac(arg: &str) -> Result<[u8; 6], String> {
    // What follows the address is not looked at, as in the original.
    let parsed = addr::eth_prefix(arg);
    let (value, _) = parsed.ok_or_else(|| format!("invalid mac address {arg}"))?;
    let b = value.to_be_bytes();
    Ok([b[2], b[3], b[4], b[5], b[6], b[7]])
}

fn ip(arg: &str) -> Result<Ipv4Addr, String> {
    match addr::ipv4_prefix(arg) {
        Some((ip, "")) => Ok(Ipv4Addr::from(ip)),
        _ => Err(format!("{arg}: could not convert to IP address")),
    }
}

fn dec_ttl(arg: &str) -> Result<Action, String> {
    if arg.is_empty() {
        return Ok(Action::DecTtl(Vec::new()));
    }
    let ids = arg.split([',', ' ']).filter(|s| !s.is_empty());
    let ids: Vec<u16> = ids.map(|s| atoi(s) as u16).collect();
    if ids.is_empty() {
        return Err("dec_ttl_cnt_ids: expected at least one controller id.".to_owned());
    }
    Ok(Action::DecTtl(ids))
}

fn mpls_label(arg: &str) -> Result<Action, String> {
    let arg = required(arg, "set_mpls_label: expected label.")?;
    let label = str_to_u32(arg)?;
    if label > 0xfffff {
        return Err(format!("{arg}: not a valid MPLS label"));
    }
    Ok(Action::SetMplsLabel(label))
}

/// Appends `action` if it is one of this file's.
pub(super) fn put(out: &mut String, action: &Action) -> bool {
    let mac = |out: &mut String, name: &str, m: [u8; 6]| {
        out.push_str(name);
        let value = m.iter().fold(0u64, |v, b| (v << 8) | u64::from(*b));
        addr::put_eth(out, value);
        Ok(())
    };
    let form = |push| if push { "mod" } else { "set" };
    let _ = match action {
        Action::SetVlanVid(a) => {
            write!(out, "{}_vlan_vid:{}", form(a.push_if_needed), a.value)
        }
        Action::SetVlanPcp(a) => {
            write!(out, "{}_vlan_pcp:{}", form(a.push_if_needed), a.value)
        }
        Action::StripVlan { pop } => {
            write!(out, "{}", if *pop { "pop_vlan" } else { "strip_vlan" })
        }
        Action::PushVlan(ty) => write!(out, "push_vlan:{ty:#x}"),
        Action::SetEthSrc(m) => mac(out, "mod_dl_src:", *m),
        Action::SetEthDst(m) => mac(out, "mod_dl_dst:", *m),
        Action::SetIpv4Src(ip) => write!(out, "mod_nw_src:{ip}"),
        Action::SetIpv4Dst(ip) => write!(out, "mod_nw_dst:{ip}"),
        Action::SetIpDscp(v) => write!(out, "mod_nw_tos:{v}"),
        Action::SetIpEcn(v) => write!(out, "mod_nw_ecn:{v}"),
        Action::SetIpTtl(v) => write!(out, "mod_nw_ttl:{v}"),
        Action::SetL4SrcPort(a) => write!(out, "mod_tp_src:{}", a.port),
        Action::SetL4DstPort(a) => write!(out, "mod_tp_dst:{}", a.port),
        Action::DecTtl(ids) if ids.is_empty() => write!(out, "dec_ttl"),
        Action::DecTtl(ids) => {
            let ids: Vec<String> = ids.iter().map(u16::to_string).collect();
            write!(out, "dec_ttl({})", ids.join(","))
        }
        Action::SetMplsLabel(v) => write!(out, "set_mpls_label({v})"),
        Action::SetMplsTc(v) => write!(out, "set_mpls_tc({v})"),
        Action::SetMplsTtl(v) => write!(out, "set_mpls_ttl({v})"),
        Action::DecMplsTtl => write!(out, "dec_mpls_ttl"),
        Action::PushMpls(ty) => write!(out, "push_mpls:0x{ty:04x}"),
        Action::PopMpls(ty) => write!(out, "pop_mpls:0x{ty:04x}"),
        _ => return false,
    };
    true
}
