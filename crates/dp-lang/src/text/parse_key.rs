//! Flow keys read from text.

use net_flow::slot::{self, Slot};
use net_flow::{FlowKey, FlowMask};

use super::PortNames;
use super::cursor::{Cursor, parse_number};
use super::field::{self, Flags, GROUPS, parse_flags};
use super::tunnel::parse_tunnel;
use crate::Ufid;

/// A flow that was read.
#[derive(Clone, Debug, Default)]
pub struct FlowText {
    /// The id, if one was given.
    pub ufid: Option<Ufid>,
    /// The values.
    pub key: FlowKey,
    /// The bits that were named, or given a mask.
    pub mask: FlowMask,
}

/// Reads a flow as [`super::format_flow`] prints it.
///
/// # Errors
/// `syntax error at ...` with the text from the offending attribute on.
pub fn parse_flow(text: &str, names: &PortNames) -> Result<FlowText, String> {
    let mut flow = FlowText::default();
    let mut cursor = Cursor(text);
    let mut tags = Tags::default();
    loop {
        cursor.skip_delimiters();
        if cursor.is_empty() {
            return Ok(flow);
        }
        let start = cursor.0;
        if start.starts_with("ufid:") {
            let id = cursor.until(&[' ', ',', '\t', '\n']);
            let ufid = parse_ufid(id).ok_or_else(|| format!("syntax error at {start}"))?;
            flow.ufid = Some(ufid);
            continue;
        }
        attribute(&mut cursor, &mut flow, names, &mut tags)
            .ok_or_else(|| format!("syntax error at {start}"))?;
    }
}

/// Reads `ufid:` and a flow's id.
pub fn parse_ufid(text: &str) -> Option<Ufid> {
    let id = text.strip_prefix("ufid:")?;
    let lengths = [8, 4, 4, 4, 12];
    let mut value = 0;
    let mut parts = id.split('-');
    for length in lengths {
        let part = parts.next().filter(|p| p.len() == length)?;
        value = value << (4 * length) | u128::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(Ufid(value))
}

/// How many tags were read.
#[derive(Default)]
struct Tags {
    count: usize,
}

const SCALARS: &[(&str, Slot)] = &[
    ("recirc_id", slot::RECIRC_ID),
    ("dp_hash", slot::DP_HASH),
    ("skb_priority", slot::SKB_PRIORITY),
    ("skb_mark", slot::PKT_MARK),
    ("ct_zone", slot::CT_ZONE),
    ("ct_mark", slot::CT_MARK),
    ("ct_label", slot::CT_LABEL),
    ("eth_type", slot::ETH_TYPE),
];

const TAG_SLOTS: [(Slot, Slot); 2] = [
    (slot::VLAN_TPID, slot::VLAN_TCI),
    (slot::VLAN2_TPID, slot::VLAN2_TCI),
];

/// Reads one attribute, `set` actions' included.
pub(super) fn one_attribute(cursor: &mut Cursor<'_>, names: &PortNames) -> Option<FlowText> {
    let mut flow = FlowText::default();
    attribute(cursor, &mut flow, names, &mut Tags::default())?;
    Some(flow)
}

fn attribute(
    cursor: &mut Cursor<'_>,
    flow: &mut FlowText,
    names: &PortNames,
    tags: &mut Tags,
) -> Option<()> {
    let name = cursor.word();
    cursor.expect("(")?;
    let (key, mask) = (&mut flow.key, &mut flow.mask);
    if let Some(group) = GROUPS.iter().find(|g| g.name == name) {
        return group.parse(cursor, key, mask);
    }
    if let Some((_, slot)) = SCALARS.iter().find(|s| s.0 == name) {
        let (value, bits) = scalar(cursor, *slot)?;
        key.set(*slot, value);
        mask.set(*slot, bits);
        return cursor.expect(")");
    }
    match name {
        "in_port" => {
            let value = cursor.until(&[')', '/']);
            key.set(slot::IN_PORT, u128::from(names.lookup(value)?.0));
            mask.set(slot::IN_PORT, mask_after(cursor, slot::IN_PORT)?);
            cursor.expect(")")
        }
        "ct_state" => flags(
            cursor,
            field::CT_STATE,
            slot::CT_STATE,
            u128::from(u32::MAX),
            flow,
        ),
        "tcp_flags" => flags(cursor, field::TCP_FLAGS, slot::TCP_FLAGS, 0xfff, flow),
        "vlan" => {
            let (tpid, tci) = *TAG_SLOTS.get(tags.count)?;
            tags.count += 1;
            // The type before a tag is the tag's protocol.
            key.set(tpid, key.get(slot::ETH_TYPE));
            mask.set(tpid, mask.get(slot::ETH_TYPE));
            key.set(slot::ETH_TYPE, 0);
            mask.set(slot::ETH_TYPE, 0);
            let (value, bits) = vlan(cursor)?;
            key.set(tci, value);
            mask.set(tci, bits);
            Some(())
        }
        "encap" => loop {
            cursor.skip_delimiters();
            if cursor.eat(")") {
                return Some(());
            }
            attribute(cursor, flow, names, tags)?;
        },
        "mpls" => mpls(cursor, key, mask),
        "tunnel" => parse_tunnel(cursor, flow),
        _ => None,
    }
}

pub(super) fn mask_after(cursor: &mut Cursor<'_>, slot: Slot) -> Option<u128> {
    if cursor.eat("/") {
        parse_number(cursor.until(&[')', ',']))
    } else {
        Some(slot.max())
    }
}

fn scalar(cursor: &mut Cursor<'_>, slot: Slot) -> Option<(u128, u128)> {
    let value = parse_number(cursor.until(&[')', '/']))?;
    if value > slot.max() {
        return None;
    }
    Some((value, mask_after(cursor, slot)?))
}

pub(super) fn flags(
    cursor: &mut Cursor<'_>,
    names: Flags,
    slot: Slot,
    all: u128,
    flow: &mut FlowText,
) -> Option<()> {
    let (value, mask) = match cursor.until(&[')']) {
        "" => (0, None),
        text => parse_flags(names, text)?,
    };
    flow.key.set(slot, value);
    flow.mask.set(slot, mask.unwrap_or(all));
    cursor.expect(")")
}

/// Reads `vid=...,pcp=...,cfi=...` up to the parenthesis; a tag is there unless `cfi=0`.
pub(super) fn vlan(cursor: &mut Cursor<'_>) -> Option<(u128, u128)> {
    let (mut tci, mut mask) = (0x1000, 0x1000);
    loop {
        cursor.skip_delimiters();
        if cursor.eat(")") {
            return Some((tci, mask));
        }
        let name = cursor.word();
        cursor.expect("=")?;
        let value = cursor.number()?;
        let (shift, full) = match name {
            "vid" => (0, 0xfff),
            "pcp" => (13, 7),
            "cfi" => (12, 1),
            _ => return None,
        };
        if value > full {
            return None;
        }
        let bits = if cursor.eat("/") {
            cursor.number()? & full
        } else {
            full
        };
        tci = tci & !(full << shift) | value << shift;
        mask = mask & !(full << shift) | bits << shift;
    }
}

/// Reads one label stack entry's fields; true when the bottom of the stack was given.
pub(super) fn lse(cursor: &mut Cursor<'_>) -> Option<(u128, u128)> {
    let (mut value, mut mask) = (0, 0);
    for (name, shift, full) in [
        ("label", 12, 0xf_ffff),
        ("tc", 9, 7),
        ("ttl", 0, 0xff),
        ("bos", 8, 1),
    ] {
        cursor.skip_delimiters();
        cursor.expect(name)?;
        cursor.expect("=")?;
        let number = cursor.number().filter(|n| *n <= full)?;
        value |= number << shift;
        let bits = if cursor.eat("/") {
            // The original writes these masks with and without a prefix.
            let text = cursor.until(&[',', ')']);
            u128::from_str_radix(text.trim_start_matches("0x"), 16).ok()? & full
        } else {
            full
        };
        mask |= bits << shift;
    }
    Some((value, mask))
}

fn mpls(cursor: &mut Cursor<'_>, key: &mut FlowKey, mask: &mut FlowMask) -> Option<()> {
    for entry in [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2] {
        let (value, bits) = lse(cursor)?;
        key.set(entry, value);
        mask.set(entry, bits);
        cursor.skip_delimiters();
        if cursor.eat(")") {
            return Some(());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{FlowFormat, format_flow};

    const FLOWS: &[&str] = &[
        "in_port(1/0xff),eth(src=00:01:02:03:04:05/ff:ff:ff:ff:ff:f0,dst=10:11:12:13:14:15/ff:ff:ff:ff:ff:f0)",
        "in_port(1),eth(src=00:01:02:03:04:05,dst=10:11:12:13:14:15),eth_type(0x1234/0xfff0)",
        "recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth_type(0x0800),ipv4(frag=no)",
        "recirc_id(0),in_port(1),eth(),eth_type(0x0800),ipv4(src=35.8.2.41/255.255.255.0,proto=6,tos=0/0x3,ttl=64,frag=first),tcp(src=80/0xff00,dst=8080/0xff),tcp_flags(+syn-ack)",
        "in_port(1),eth(),eth_type(0x0800),ipv4(proto=6,frag=no),tcp_flags(syn|ack)",
        "in_port(1),eth(),eth_type(0x0800),ipv4(proto=17,frag=later)",
        "in_port(1),eth(),eth_type(0x0800),ipv4(proto=1,frag=no),icmp(type=1/0xf0,code=2)",
        "in_port(1),eth(),eth_type(0x86dd),ipv6(src=::1/::255,dst=::2/::255,label=0/0xf0,proto=10/0xf0,tclass=0x70/0xf0,hlimit=128/0xf0,frag=no)",
        "in_port(1),eth(),eth_type(0x86dd),ipv6(proto=58,frag=no),icmpv6(type=135,code=0),nd(target=::3/::250,sll=00:05:06:07:08:09/ff:ff:ff:ff:ff:00)",
        "in_port(1),eth(),eth_type(0x0806),arp(sip=1.2.3.4/255.255.255.250,tip=5.6.7.8/255.255.255.250,op=1/0xf0,sha=00:0f:10:11:12:13/ff:ff:ff:ff:ff:00,tha=00:14:15:16:17:18/ff:ff:ff:ff:ff:00)",
        "in_port(1),eth(),eth_type(0x8100),vlan(vid=99/0xff0,pcp=7/0x6),encap(eth_type(0x0800),ipv4(frag=no))",
        "in_port(1),eth(),eth_type(0x88a8),vlan(vid=1,pcp=0),encap(eth_type(0x8100),vlan(vid=2,pcp=3),encap(eth_type(0x1234)))",
        "in_port(1),eth(),eth_type(0x8847),mpls(label=100/0xff,tc=7/7,ttl=64/0xff,bos=1/1)",
        "in_port(1),eth(),eth_type(0x8847),mpls(label=100,tc=3,ttl=64,bos=0,label=2,tc=0,ttl=1,bos=1)",
        "tunnel(tun_id=0x7f10354/0xff,src=10.10.10.10/255.255.255.0,dst=20.20.20.20/255.255.255.0,ttl=64,vxlan(gbp(id=10/0xff,flags=0xb)),flags(-df+csum+key)),in_port(1),skb_mark(0x1234/0xfff0),ct_state(+trk),ct_zone(0x5/0xff),ct_mark(0x10305070/0xf0f0f0f0),ct_tuple4(src=10.10.10.10,dst=20.20.20.20,proto=17,tp_src=1,tp_dst=2),eth(),eth_type(0x0800),ipv4(frag=no)",
    ];

    const TUNNELS: &[&str] = &[
        "tunnel(tun_id=0x1,src=1.1.1.1,dst=2.2.2.2,ttl=64,geneve({class=0x102,type=0x80,len=4,0xa0b}{class=0xffff,type=0/0xf,len=8,0x1/0xff}),flags(+key)),in_port(1),eth()",
        "tunnel(dst=2.2.2.2,geneve({class=0,type=0,len=0}),flags(-key)),in_port(1),eth()",
        "tunnel(dst=2.2.2.2,erspan(ver=1,idx=0x3/0xfffff),flags(+key)),in_port(1),eth()",
        "tunnel(ipv6_dst=::1,erspan(ver=2,dir=1,hwid=0x4/0x7)),in_port(1),eth()",
    ];

    #[test]
    fn flows_read_back_as_they_were() {
        let names = PortNames::none();
        for text in FLOWS.iter().chain(TUNNELS) {
            let mut flow = parse_flow(text, &names).unwrap();
            // The type of a frame is always known, and hidden when it has none.
            if flow.key.get(slot::ETH_TYPE) == 0 {
                flow.mask.set(slot::ETH_TYPE, 0);
            }
            let printed = format_flow(&flow.key, Some(&flow.mask), &names, FlowFormat::default());
            assert_eq!(printed, *text);
        }
    }

    /// The kernel keeps eight bits of a mask of sixteen.
    #[test]
    fn flows_of_the_kernel_show_the_mask_of_an_arp_operation() {
        let names = PortNames::none();
        let kernel = FlowFormat {
            kernel: true,
            ..FlowFormat::default()
        };
        for (arp, shown) in [
            (
                "sip=10.0.0.1,tip=10.0.0.2,op=1",
                "sip=10.0.0.1,tip=10.0.0.2,op=1/0xff",
            ),
            ("op=1/0xf0", "op=1/0xf0"),
            ("sip=10.0.0.1", "sip=10.0.0.1"),
        ] {
            let flow = parse_flow(&format!("eth(),eth_type(0x0806),arp({arp})"), &names).unwrap();
            let print = |format| format_flow(&flow.key, Some(&flow.mask), &names, format);
            let line = |arp| format!("eth(),eth_type(0x0806),arp({arp})");
            assert!(print(kernel).ends_with(&line(shown)), "{}", print(kernel));
            let usual = print(FlowFormat::default());
            assert!(usual.ends_with(&line(arp)), "{usual}");
        }
    }

    #[test]
    fn everything_is_printed_when_asked() {
        let names = PortNames::from_iter([(crate::PortNo(1), "p1".to_owned())]);
        let text = "in_port(p1),packet_type(ns=0,id=0),eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07),eth_type(0x0800),ipv4(frag=no)";
        let mut flow = parse_flow(text, &names).unwrap();
        flow.key.set(slot::NW_PROTO, 1);
        flow.mask.set_exact(slot::RECIRC_ID);
        let verbose = FlowFormat {
            verbose: true,
            ..FlowFormat::default()
        };
        let printed = format_flow(&flow.key, Some(&flow.mask), &names, verbose);
        assert_eq!(
            printed,
            "recirc_id(0),dp_hash(0/0),skb_priority(0/0),in_port(p1),skb_mark(0/0),\
             ct_state(0/0),ct_zone(0/0),ct_mark(0/0),ct_label(0/0),packet_type(ns=0,id=0),\
             eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07),eth_type(0x0800),\
             ipv4(src=0.0.0.0/0.0.0.0,dst=0.0.0.0/0.0.0.0,proto=1/0,tos=0/0,ttl=0/0,frag=no),\
             icmp(type=0/0,code=0/0)"
        );
    }

    #[test]
    fn a_flow_that_does_not_read() {
        let names = PortNames::none();
        let error = parse_flow("in_port(1),eth(src=zz),eth_type(5)", &names).unwrap_err();
        assert_eq!(error, "syntax error at eth(src=zz),eth_type(5)");
        let id = parse_ufid("ufid:01234567-89ab-cdef-0123-456789abcdef").unwrap();
        assert_eq!(id.to_string(), "01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(parse_ufid("ufid:1"), None);
    }
}
