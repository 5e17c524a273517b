//! Actions read from text.

use std::net::IpAddr;

use net_flow::slot;
use net_packet::EthAddr;

use super::PortNames;
use super::cursor::{Cursor, parse_number};
use super::field::{self, parse_flags};
use super::parse_key::{lse, one_attribute, vlan};
use crate::action::{Action, Controller, Ct, Nat, SetField, SlowPath, UserCookie, Userspace};
use crate::attr::KeyAttr;
use crate::tunnel;

/// How deep action lists may be nested.
const MAX_DEPTH: usize = 16;

/// Reads actions as [`super::format_actions`] prints them.
///
/// # Errors
/// `syntax error at ...` with the text from the offending action on.
pub fn parse_actions(text: &str, names: &PortNames) -> Result<Vec<Action>, String> {
    if text.trim().eq_ignore_ascii_case("drop") {
        return Ok(Vec::new());
    }
    let mut cursor = Cursor(text);
    let mut actions = Vec::new();
    loop {
        cursor.skip_delimiters();
        if cursor.is_empty() {
            return Ok(actions);
        }
        let start = cursor.0;
        let action = action(&mut cursor, names, MAX_DEPTH)
            .ok_or_else(|| format!("syntax error at {start}"))?;
        actions.push(action);
    }
}

/// Reads a nested list, up to and with its parenthesis.
fn nested(cursor: &mut Cursor<'_>, names: &PortNames, depth: usize) -> Option<Vec<Action>> {
    let mut actions = Vec::new();
    if cursor.eat("drop)") {
        return Some(actions);
    }
    loop {
        cursor.skip_delimiters();
        if cursor.eat(")") {
            return Some(actions);
        }
        actions.push(action(cursor, names, depth.checked_sub(1)?)?);
    }
}

fn action(cursor: &mut Cursor<'_>, names: &PortNames, depth: usize) -> Option<Action> {
    let start = *cursor;
    let name = cursor.word();
    if !cursor.eat("(") {
        match name {
            "pop_vlan" => return Some(Action::PopVlan),
            "pop_eth" => return Some(Action::PopEth),
            "ct_clear" => return Some(Action::CtClear),
            "drop" => return Some(Action::Drop(0)),
            "ct" => return Some(Action::Ct(Box::default())),
            _ => {}
        }
        *cursor = start;
        let port = cursor.until(&[',', ')', ' ', '\t', '\n']);
        return Some(Action::Output(names.lookup(port)?));
    }
    match name {
        "userspace" => userspace(cursor, names),
        "set" => set(cursor, names),
        "push_vlan" => {
            let mut tpid = 0x8100;
            if cursor.eat("tpid=") {
                tpid = u16::try_from(cursor.number()?).ok()?;
            }
            let (tci, _) = vlan(cursor)?;
            let tci = tci as u16;
            Some(Action::PushVlan { tpid, tci })
        }
        "push_mpls" => {
            let (lse, _) = lse(cursor)?;
            cursor.expect(",eth_type=")?;
            let ethertype = u16::try_from(end_number(cursor)?).ok()?;
            let lse = lse as u32;
            Some(Action::PushMpls { ethertype, lse })
        }
        "pop_mpls" => {
            cursor.expect("eth_type=")?;
            let ethertype = u16::try_from(end_number(cursor)?).ok()?;
            Some(Action::PopMpls { ethertype })
        }
        "push_eth" => {
            cursor.expect("src=")?;
            let src = cursor.until(&[',']).parse::<EthAddr>().ok()?.to_u64();
            cursor.expect(",dst=")?;
            let dst = cursor.until(&[')']).parse::<EthAddr>().ok()?.to_u64();
            cursor.expect(")")?;
            Some(Action::PushEth { src, dst })
        }
        "recirc" => Some(Action::Recirc(small(cursor)?)),
        "hash" => {
            let algorithm = match cursor.word() {
                "l4" => 0,
                "sym_l4" => 1,
                _ => return None,
            };
            cursor.expect("(")?;
            let basis = small(cursor)?;
            cursor.expect(")")?;
            Some(Action::Hash { algorithm, basis })
        }
        "trunc" => Some(Action::Trunc(small(cursor)?)),
        "meter" => Some(Action::Meter(small(cursor)?)),
        "sample" | "clone" | "check_pkt_len" | "dec_ttl" => lists(cursor, name, names, depth),
        "ct" => ct(cursor),
        "tnl_pop" => {
            let port = names.lookup(cursor.until(&[')']))?;
            cursor.expect(")")?;
            Some(Action::TunnelPop(port))
        }
        _ => None,
    }
}

/// Reads an action that holds others.
fn lists(cursor: &mut Cursor<'_>, name: &str, names: &PortNames, depth: usize) -> Option<Action> {
    match name {
        "sample" => {
            cursor.expect("sample=")?;
            let percent: f64 = cursor.until(&['%']).parse().ok()?;
            cursor.expect("%,actions(")?;
            let actions = nested(cursor, names, depth)?;
            cursor.expect(")")?;
            let share = (percent / 100.0).clamp(0.0, 1.0) * f64::from(u32::MAX);
            Some(Action::Sample {
                probability: share.round() as u32,
                actions,
            })
        }
        "clone" => Some(Action::Clone(nested(cursor, names, depth)?)),
        "check_pkt_len" => {
            cursor.expect("size=")?;
            let len = u16::try_from(cursor.number()?).ok()?;
            cursor.expect(",gt(")?;
            let greater = nested(cursor, names, depth)?;
            cursor.expect(",le(")?;
            let less_equal = nested(cursor, names, depth)?;
            cursor.expect(")")?;
            Some(Action::CheckPktLen {
                len,
                greater,
                less_equal,
            })
        }
        "dec_ttl" => {
            cursor.expect("le_1(")?;
            let actions = nested(cursor, names, depth)?;
            cursor.expect(")")?;
            Some(Action::DecTtl(actions))
        }
        _ => None,
    }
}

fn end_number(cursor: &mut Cursor<'_>) -> Option<u128> {
    let value = parse_number(cursor.until(&[')']))?;
    cursor.expect(")")?;
    Some(value)
}

fn small(cursor: &mut Cursor<'_>) -> Option<u32> {
    u32::try_from(end_number(cursor)?).ok()
}

/// Attributes that can be set, by name.
const SETTABLE: &[(&str, KeyAttr)] = &[
    ("skb_priority", KeyAttr::Priority),
    ("skb_mark", KeyAttr::Mark),
    ("tunnel", KeyAttr::Tunnel),
    ("eth", KeyAttr::Ethernet),
    ("ipv4", KeyAttr::Ipv4),
    ("ipv6", KeyAttr::Ipv6),
    ("tcp", KeyAttr::Tcp),
    ("udp", KeyAttr::Udp),
    ("sctp", KeyAttr::Sctp),
    ("icmp", KeyAttr::Icmp),
    ("icmpv6", KeyAttr::Icmpv6),
    ("arp", KeyAttr::Arp),
    ("nd", KeyAttr::Nd),
    ("nd_ext", KeyAttr::NdExtensions),
    ("mpls", KeyAttr::Mpls),
    ("nsh", KeyAttr::Nsh),
];

fn set(cursor: &mut Cursor<'_>, names: &PortNames) -> Option<Action> {
    let mut peek = *cursor;
    let name = peek.word();
    let (_, attr) = SETTABLE.iter().find(|s| s.0 == name)?;
    let flow = one_attribute(cursor, names)?;
    cursor.expect(")")?;
    let mut mask = flow.mask;
    if *attr == KeyAttr::Tunnel {
        // A tunnel's metadata is written as a whole.
        for slot in attr.slots() {
            mask.set_exact(*slot);
        }
        tunnel::exact_options(&flow.key, &mut mask);
    }
    if *attr == KeyAttr::Ipv4 || *attr == KeyAttr::Ipv6 {
        // A packet's protocol and fragment bits are named, but cannot be written.
        mask.set(slot::NW_FRAG, 0);
    }
    Some(Action::Set(SetField::new(*attr, &flow.key, &mask)))
}

fn userspace(cursor: &mut Cursor<'_>, names: &PortNames) -> Option<Action> {
    cursor.expect("pid=")?;
    let pid = u32::try_from(cursor.number()?).ok()?;
    let mut userspace = Userspace {
        pid,
        cookie: None,
        egress_tunnel: None,
        actions: false,
    };
    loop {
        if cursor.eat(")") {
            return Some(Action::Userspace(userspace));
        }
        cursor.expect(",")?;
        if cursor.eat("slow_path(") {
            let (bits, _) = parse_flags(field::SLOW_PATH, cursor.until(&[')']))?;
            cursor.expect(")")?;
            userspace.cookie = Some(UserCookie::SlowPath(slow_path(bits)));
        } else if cursor.eat("controller(") {
            userspace.cookie = Some(UserCookie::Controller(controller(cursor)?));
        } else if cursor.eat("userdata(") {
            let digits = cursor.until(&[')']);
            cursor.expect(")")?;
            let byte = |i: usize| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok();
            let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
            userspace.cookie = Some(UserCookie::Opaque(bytes?.into()));
        } else if cursor.eat("actions") {
            userspace.actions = true;
        } else if cursor.eat("tunnel_out_port=") {
            userspace.egress_tunnel = Some(names.lookup(cursor.until(&[',', ')']))?);
        } else {
            return None;
        }
    }
}

fn slow_path(bits: u128) -> SlowPath {
    let has = |i: u32| bits & (1 << i) != 0;
    SlowPath {
        cfm: has(0),
        bfd: has(1),
        lacp: has(2),
        stp: has(3),
        lldp: has(4),
        controller: has(5),
        action: has(6),
        match_: has(7),
    }
}

fn controller(cursor: &mut Cursor<'_>) -> Option<Controller> {
    let mut value = |name: &str| {
        cursor.skip_delimiters();
        cursor.expect(name)?;
        cursor.number()
    };
    let controller = Controller {
        reason: u8::try_from(value("reason=")?).ok()?,
        dont_send: value("dont_send=")? != 0,
        continuation: value("continuation=")? != 0,
        recirc_id: u32::try_from(value("recirc_id=")?).ok()?,
        rule_cookie: u64::try_from(value("rule_cookie=")?).ok()?,
        controller_id: u16::try_from(value("controller_id=")?).ok()?,
        max_len: u16::try_from(value("max_len=")?).ok()?,
    };
    cursor.expect(")")?;
    Some(controller)
}

fn ct(cursor: &mut Cursor<'_>) -> Option<Action> {
    let mut ct = Ct::default();
    loop {
        cursor.skip_delimiters();
        if cursor.eat(")") {
            return Some(Action::Ct(Box::new(ct)));
        }
        let name = cursor.word();
        match name {
            "commit" => ct.commit = true,
            "force_commit" => (ct.commit, ct.force) = (true, true),
            "nat" => ct.nat = Some(nat(cursor)?),
            _ => {
                cursor.expect("=")?;
                let value = cursor.until(&[',', ')']);
                ct_value(&mut ct, name, value)?;
            }
        }
    }
}

fn ct_value(ct: &mut Ct, name: &str, value: &str) -> Option<()> {
    let masked = |all: u128| match value.split_once('/') {
        Some((value, mask)) => Some((parse_number(value)?, parse_number(mask)?)),
        None => Some((parse_number(value)?, all)),
    };
    match name {
        "zone" => ct.zone = u16::try_from(parse_number(value)?).ok()?,
        "mark" => {
            let (mark, mask) = masked(u128::from(u32::MAX))?;
            ct.mark = Some((u32::try_from(mark).ok()?, u32::try_from(mask).ok()?));
        }
        "label" => ct.label = Some(masked(u128::MAX)?),
        "helper" => ct.helper = Some(value.to_owned()),
        "timeout" => ct.timeout = Some(value.to_owned()),
        _ => return None,
    }
    Some(())
}

fn nat(cursor: &mut Cursor<'_>) -> Option<Nat> {
    let mut nat = Nat::default();
    if !cursor.eat("(") {
        return Some(nat);
    }
    nat.source = Some(match cursor.word() {
        "src" => true,
        "dst" => false,
        _ => return None,
    });
    if cursor.eat("=") {
        let low = address(cursor)?;
        let high = if cursor.eat("-") {
            address(cursor)?
        } else {
            low
        };
        nat.addresses = Some((low, high));
        if cursor.eat(":") {
            let low = u16::try_from(cursor.number()?).ok()?;
            let high = if cursor.eat("-") {
                u16::try_from(cursor.number()?).ok()?
            } else {
                low
            };
            nat.ports = Some((low, high));
        }
    }
    loop {
        cursor.skip_delimiters();
        if cursor.eat(")") {
            return Some(nat);
        }
        match cursor.word() {
            "persistent" => nat.persistent = true,
            "hash" => nat.hash = true,
            "random" => nat.random = true,
            _ => return None,
        }
    }
}

/// Reads an address, in brackets if it is IPv6 and ports follow.
fn address(cursor: &mut Cursor<'_>) -> Option<IpAddr> {
    if cursor.eat("[") {
        let address = cursor.until(&[']']).parse().ok()?;
        cursor.expect("]")?;
        return Some(address);
    }
    let start = *cursor;
    let v4 = cursor.take_while(|c| c.is_ascii_digit() || c == '.');
    if let Ok(address) = v4.parse::<std::net::Ipv4Addr>() {
        return Some(address.into());
    }
    *cursor = start;
    let v6 = cursor.take_while(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    v6.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::format_actions;

    #[test]
    fn actions_read_back_as_they_were() {
        let texts = [
            "1,2,3",
            "userspace(pid=9765,slow_path(0))",
            "userspace(pid=9765,slow_path(cfm))",
            "userspace(pid=1234567,userdata(0102030405060708090a0b0c0d0e0f),actions)",
            "userspace(pid=1,userdata(01),actions,tunnel_out_port=10)",
            "userspace(pid=6633,controller(reason=1,dont_send=0,continuation=1,recirc_id=4444,\
             rule_cookie=0x5555,controller_id=0,max_len=65535))",
            "set(eth(src=00:01:02:03:04:05,dst=10:11:12:00:00:00/ff:ff:ff:00:00:00))",
            "set(ipv4(src=35.8.2.0/255.255.255.0,tos=0x80,ttl=128))",
            "set(tcp(src=256/0xff00,dst=8080))",
            "set(ipv6(src=::1,dst=::2))",
            "set(skb_mark(0x34/0xff)),set(skb_priority(0x5))",
            "push_vlan(vid=12,pcp=0),pop_vlan",
            "push_vlan(tpid=0x9100,vid=13,pcp=5,cfi=0)",
            "push_mpls(label=5,tc=1,ttl=64,bos=1,eth_type=0x8847),pop_mpls(eth_type=0x800)",
            "sample(sample=9.7%,actions(1,2,3,push_vlan(vid=1,pcp=2)))",
            "set(tunnel(tun_id=0xabcdef1234567890,src=1.1.1.1,dst=2.2.2.2,ttl=64,\
             flags(df|csum|key)))",
            "set(tunnel(tun_id=0x1,dst=2.2.2.2,ttl=64,\
             geneve({class=0xffff,type=0x80,len=4,0xa}{class=0,type=0x1,len=0}),flags(key)))",
            "set(tunnel(dst=2.2.2.2,ttl=64,erspan(ver=1,idx=0xf),flags(0)))",
            "set(tunnel(dst=2.2.2.2,ttl=64,erspan(ver=2,dir=1,hwid=0x7),flags(0)))",
            "dec_ttl(le_1(userspace(pid=5,slow_path(action)))),1",
            "tnl_pop(4)",
            "ct",
            "ct(commit,zone=5,mark=0xa0a0a0a0/0xfefefefe)",
            "ct(commit,label=0x1234567890abcdef1234567890abcdef/0xf1f2f3f4f5f6f7f8)",
            "ct(commit,helper=ftp,nat(src=10.1.1.240-10.1.1.255))",
            "ct(commit,nat(src=10.0.0.240-10.0.0.254:32768-65535,persistent))",
            "ct(force_commit,nat(src=[fe80::1]-[fe80::5]:255-4096,random))",
            "ct(nat)",
            "ct_clear,trunc(100),clone(clone(push_vlan(vid=12,pcp=0),2),1)",
            "check_pkt_len(size=200,gt(ct(nat)),le(drop))",
            "recirc(0x1),hash(l4(0)),hash(sym_l4(5)),meter(3)",
            "pop_eth,push_eth(src=00:01:02:03:04:05,dst=10:11:12:13:14:15)",
        ];
        let names = PortNames::none();
        for text in texts {
            let actions = parse_actions(text, &names).unwrap();
            assert_eq!(format_actions(&actions, &names), text);
        }
        assert_eq!(parse_actions("drop", &names), Ok(Vec::new()));
    }

    #[test]
    fn errors_say_where() {
        let names = PortNames::none();
        let fails = |text, rest: &str| {
            let expected = Err(format!("syntax error at {rest}"));
            assert_eq!(parse_actions(text, &names), expected);
        };
        fails("1,foo(2),3", "foo(2),3");
        fails("set(tcp(src=80)", "set(tcp(src=80)");
        fails(&"clone(".repeat(100), &"clone(".repeat(100));
    }

    #[test]
    fn ports_by_name() {
        let names = PortNames::from_iter([(crate::PortNo(1), "p1".to_owned())]);
        let actions = parse_actions("p1,2", &names).unwrap();
        assert_eq!(format_actions(&actions, &names), "p1,2");
        assert_eq!(format_actions(&actions, &PortNames::none()), "1,2");
    }
}
