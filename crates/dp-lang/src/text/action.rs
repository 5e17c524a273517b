//! Actions as text.

use std::fmt::Write as _;
use std::net::IpAddr;

use net_flow::{FlowKey, FlowMask, slot};
use net_packet::EthAddr;

use super::PortNames;
use super::field::{self, format_flags, hex};
use super::key::{put_lse, put_vlan};
use super::tunnel::put_tunnel;
use crate::action::{Action, Controller, Ct, Nat, SetField, SlowPath, UserCookie, Userspace};
use crate::attr::KeyAttr;

/// Prints an action list; an empty one is `drop`.
pub fn format_actions(actions: &[Action], names: &PortNames) -> String {
    let mut out = String::new();
    put_actions(actions, names, &mut out);
    out
}

fn put_actions(actions: &[Action], names: &PortNames, out: &mut String) {
    if actions.is_empty() {
        *out += "drop";
    }
    for (i, action) in actions.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put_action(action, names, out);
    }
}

fn put_action(action: &Action, names: &PortNames, out: &mut String) {
    let _ = match action {
        Action::Output(port) => write!(out, "{}", names.text(*port)),
        Action::Userspace(userspace) => write!(out, "{}", userspace_text(userspace, names)),
        Action::Set(set) => write!(out, "set({})", set_text(set)),
        Action::PushVlan { tpid, tci } => {
            *out += "push_vlan(";
            if *tpid != 0x8100 {
                let _ = write!(out, "tpid={tpid:#06x},");
            }
            put_vlan(u128::from(*tci), 0xffff, false, out);
            write!(out, ")")
        }
        Action::PopVlan => write!(out, "pop_vlan"),
        Action::PushMpls { ethertype, lse } => {
            *out += "push_mpls(";
            put_lse(*lse, None, out);
            write!(out, ",eth_type={ethertype:#x})")
        }
        Action::PopMpls { ethertype } => write!(out, "pop_mpls(eth_type={ethertype:#x})"),
        Action::PushEth { src, dst } => {
            let (src, dst) = (EthAddr::from_u64(*src), EthAddr::from_u64(*dst));
            write!(out, "push_eth(src={src},dst={dst})")
        }
        Action::PopEth => write!(out, "pop_eth"),
        Action::Recirc(id) => write!(out, "recirc({})", hex(u128::from(*id))),
        Action::Hash {
            algorithm: 0,
            basis,
        } => write!(out, "hash(l4({basis}))"),
        Action::Hash {
            algorithm: 1,
            basis,
        } => write!(out, "hash(sym_l4({basis}))"),
        Action::Hash { algorithm, .. } => {
            write!(out, "hash(Unknown hash algorithm({algorithm}))")
        }
        Action::Trunc(len) => write!(out, "trunc({len})"),
        Action::Sample {
            probability,
            actions,
        } => {
            let percent = 100.0 * f64::from(*probability) / f64::from(u32::MAX);
            let _ = write!(out, "sample(sample={percent:.1}%,actions(");
            put_actions(actions, names, out);
            write!(out, "))")
        }
        Action::Clone(actions) => {
            *out += "clone(";
            put_actions(actions, names, out);
            write!(out, ")")
        }
        Action::CheckPktLen {
            len,
            greater,
            less_equal,
        } => {
            let _ = write!(out, "check_pkt_len(size={len},gt(");
            put_actions(greater, names, out);
            *out += "),le(";
            put_actions(less_equal, names, out);
            write!(out, "))")
        }
        Action::Ct(ct) => write!(out, "{}", ct_text(ct)),
        Action::CtClear => write!(out, "ct_clear"),
        Action::Meter(id) => write!(out, "meter({id})"),
        Action::TunnelPop(port) => write!(out, "tnl_pop({})", names.text(*port)),
        Action::DecTtl(actions) => {
            *out += "dec_ttl(le_1(";
            put_actions(actions, names, out);
            write!(out, "))")
        }
        Action::Drop(_) => write!(out, "drop"),
        Action::Other { kind, value } => {
            let _ = write!(out, "action{kind}");
            put_bytes(value, out);
            Ok(())
        }
    };
}

/// Bytes of something unknown: `(01 02 03)`, or nothing where there are none.
fn put_bytes(bytes: &[u8], out: &mut String) {
    for (i, byte) in bytes.iter().enumerate() {
        let before = if i == 0 { '(' } else { ' ' };
        let _ = write!(out, "{before}{byte:02x}");
    }
    if !bytes.is_empty() {
        out.push(')');
    }
}

/// The bits of slow-path reasons, in the order of their names.
pub(super) fn slow_path_bits(reason: SlowPath) -> u128 {
    let flags = [
        reason.cfm,
        reason.bfd,
        reason.lacp,
        reason.stp,
        reason.lldp,
        reason.controller,
        reason.action,
        reason.match_,
    ];
    let bit = |(i, on): (usize, bool)| u128::from(on) << i;
    flags.into_iter().enumerate().map(bit).sum()
}

fn userspace_text(userspace: &Userspace, names: &PortNames) -> String {
    let mut text = format!("userspace(pid={}", userspace.pid);
    match &userspace.cookie {
        None => {}
        Some(UserCookie::SlowPath(reason)) => {
            let flags = format_flags(field::SLOW_PATH, slow_path_bits(*reason), ',');
            let _ = write!(text, ",slow_path({flags})");
        }
        Some(UserCookie::Controller(c)) => text += &controller_text(c),
        Some(UserCookie::Opaque(bytes)) => {
            text += ",userdata(";
            for byte in bytes.iter() {
                let _ = write!(text, "{byte:02x}");
            }
            text.push(')');
        }
    }
    if userspace.actions {
        text += ",actions";
    }
    if let Some(port) = userspace.egress_tunnel {
        let _ = write!(text, ",tunnel_out_port={}", names.text(port));
    }
    text.push(')');
    text
}

fn controller_text(c: &Controller) -> String {
    format!(
        ",controller(reason={},dont_send={},continuation={},recirc_id={},rule_cookie={},\
         controller_id={},max_len={})",
        c.reason,
        u8::from(c.dont_send),
        u8::from(c.continuation),
        c.recirc_id,
        hex(u128::from(c.rule_cookie)),
        c.controller_id,
        c.max_len
    )
}

fn set_text(set: &SetField) -> String {
    let (key, mask) = (set.key.expand(), set.mask.expand_mask());
    let mut text = String::new();
    let group = match set.attr {
        KeyAttr::Priority => return scalar("skb_priority", slot::SKB_PRIORITY, &key, &mask),
        KeyAttr::Mark => return scalar("skb_mark", slot::PKT_MARK, &key, &mask),
        KeyAttr::Mpls => {
            let bits = mask.get(slot::MPLS_LSE) as u32;
            text += "mpls(";
            put_lse(
                key.get(slot::MPLS_LSE) as u32,
                (bits != u32::MAX).then_some(bits),
                &mut text,
            );
            text.push(')');
            return text;
        }
        KeyAttr::Tunnel => {
            put_tunnel(&key, None, false, &mut text);
            return text;
        }
        KeyAttr::Ethernet => &field::ETHERNET,
        KeyAttr::Ipv4 => &field::IPV4,
        KeyAttr::Ipv6 => &field::IPV6,
        KeyAttr::Tcp => &field::TCP,
        KeyAttr::Udp => &field::UDP,
        KeyAttr::Sctp => &field::SCTP,
        KeyAttr::Icmp => &field::ICMP,
        KeyAttr::Icmpv6 => &field::ICMPV6,
        KeyAttr::Arp => &field::ARP,
        KeyAttr::Nd => &field::ND,
        KeyAttr::NdExtensions => &field::ND_EXTENSIONS,
        KeyAttr::Nsh => &field::NSH,
    };
    group.put(&key, Some(&mask), false, &mut text);
    text
}

fn scalar(name: &str, slot: slot::Slot, key: &FlowKey, mask: &FlowMask) -> String {
    let (value, bits) = (hex(key.get(slot)), mask.get(slot));
    if bits == slot.max() {
        format!("{name}({value})")
    } else {
        format!("{name}({value}/{})", hex(bits))
    }
}

fn ct_text(ct: &Ct) -> String {
    let mut parts = Vec::new();
    if ct.commit {
        let commit = if ct.force { "force_commit" } else { "commit" };
        parts.push(commit.to_owned());
    }
    if ct.zone != 0 {
        parts.push(format!("zone={}", ct.zone));
    }
    if let Some((mark, mask)) = ct.mark {
        let (mark, mask) = (hex(u128::from(mark)), hex(u128::from(mask)));
        parts.push(format!("mark={mark}/{mask}"));
    }
    if let Some((label, mask)) = ct.label {
        let mask = match mask {
            u128::MAX => String::new(),
            bits => format!("/{bits:#x}"),
        };
        parts.push(format!("label={label:#x}{mask}"));
    }
    if let Some(helper) = &ct.helper {
        parts.push(format!("helper={helper}"));
    }
    if let Some(timeout) = &ct.timeout {
        parts.push(format!("timeout={timeout}"));
    }
    parts.extend(ct.nat.as_ref().map(nat_text));
    if parts.is_empty() {
        "ct".to_owned()
    } else {
        format!("ct({})", parts.join(","))
    }
}

fn nat_text(nat: &Nat) -> String {
    let Some(source) = nat.source else {
        return "nat".to_owned();
    };
    let mut text = format!("nat({}", if source { "src" } else { "dst" });
    if let Some((low, high)) = nat.addresses {
        let address = |address: IpAddr| match address {
            IpAddr::V6(_) if nat.ports.is_some() => format!("[{address}]"),
            _ => address.to_string(),
        };
        let _ = write!(text, "={}", address(low));
        if high != low {
            let _ = write!(text, "-{}", address(high));
        }
        if let Some((low, high)) = nat.ports {
            let _ = write!(text, ":{low}");
            if high != low {
                let _ = write!(text, "-{high}");
            }
        }
    }
    for (on, name) in [
        (nat.persistent, ",persistent"),
        (nat.hash, ",hash"),
        (nat.random, ",random"),
    ] {
        if on {
            text += name;
        }
    }
    text.push(')');
    text
}
