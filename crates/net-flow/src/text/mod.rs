//! The text syntax of fields and matches (`ovs-fields(7)`).

pub mod addr;
mod exact;
pub mod flags;
pub mod num;
mod print;
pub mod subfield;
pub mod value;

use std::ops::Range;

pub use exact::exact_flow;
pub use print::put_match;

use crate::field::{Field, Prereq};
use crate::formats::{Formats, full_mask, usable_for};
use crate::matching::Match;
use crate::names::Names;
use crate::slot;
use crate::types::{eth_type, ip_proto};
use num::wide_int;

/// Shorthands of protocols: name, Ethernet type, IP protocol or 0.
const PROTOCOLS: [(&str, u16, u8); 17] = [
    ("ip", eth_type::IPV4, 0),
    ("ipv4", eth_type::IPV4, 0),
    ("ip4", eth_type::IPV4, 0),
    ("arp", eth_type::ARP, 0),
    ("icmp", eth_type::IPV4, ip_proto::ICMP),
    ("tcp", eth_type::IPV4, ip_proto::TCP),
    ("udp", eth_type::IPV4, ip_proto::UDP),
    ("sctp", eth_type::IPV4, ip_proto::SCTP),
    ("ipv6", eth_type::IPV6, 0),
    ("ip6", eth_type::IPV6, 0),
    ("icmp6", eth_type::IPV6, ip_proto::ICMPV6),
    ("tcp6", eth_type::IPV6, ip_proto::TCP),
    ("udp6", eth_type::IPV6, ip_proto::UDP),
    ("sctp6", eth_type::IPV6, ip_proto::SCTP),
    ("rarp", eth_type::RARP, 0),
    ("mpls", eth_type::MPLS, 0),
    ("mplsm", eth_type::MPLS_MULTICAST, 0),
];

/// The names of protocols that stand for themselves in a match.
pub fn protocol_names() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|(name, ..)| *name)
}

/// A key, and its value if it has one, in a list such as `a=1,b(2),c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue<'a> {
    /// The key.
    pub key: &'a str,
    /// The value, or the empty string.
    pub value: &'a str,
    /// Where key and value lie in the list.
    pub span: Range<usize>,
    /// The character after the key: `:`, `=`, `(`, `,`, a space, or 0 at the end.
    pub delimiter: u8,
}

/// Iterates over the keys and values of a list.
#[derive(Clone, Debug)]
pub struct KeyValues<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> KeyValues<'a> {
    /// Over the list `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}

/// How far a value at the beginning of `s` goes: to one of `delimiters` outside of parentheses.
fn value_len(s: &[u8], delimiters: &[u8]) -> usize {
    let mut n = 0;
    while n < s.len() && !delimiters.contains(&s[n]) {
        if s[n] != b'(' {
            n += 1;
            continue;
        }
        let mut level = 0;
        loop {
            match s.get(n) {
                None => return n,
                Some(b'(') => level += 1,
                Some(b')') => level -= 1,
                _ => {}
            }
            n += 1;
            if level == 0 {
                break;
            }
        }
    }
    n
}

const SPACE_OR_COMMA: &[u8] = b", \t\r\n";

impl<'a> Iterator for KeyValues<'a> {
    type Item = KeyValue<'a>;

    fn next(&mut self) -> Option<KeyValue<'a>> {
        let bytes = self.text.as_bytes();
        while bytes
            .get(self.at)
            .is_some_and(|b| SPACE_OR_COMMA.contains(b))
        {
            self.at += 1;
        }
        let start = self.at;
        if start >= bytes.len() {
            return None;
        }
        let ends_key = |b: &u8| b":=(".contains(b) || SPACE_OR_COMMA.contains(b);
        let len = bytes[start..].iter().position(ends_key);
        let key_end = start + len.unwrap_or(bytes.len() - start);
        let delimiter = bytes.get(key_end).copied().unwrap_or(0);
        let delimiters: &[u8] = match delimiter {
            b':' | b'=' => SPACE_OR_COMMA,
            b'(' => b")",
            _ => {
                self.at = (key_end + 1).min(bytes.len());
                return Some(KeyValue {
                    key: &self.text[start..key_end],
                    value: "",
                    span: start..key_end,
                    delimiter,
                });
            }
        };
        let value_start = key_end + 1;
        let mut end = value_start + value_len(&bytes[value_start..], delimiters);
        if delimiter == b'(' && bytes[end..].starts_with(b")->") {
            end += value_len(&bytes[end..], SPACE_OR_COMMA);
        }
        self.at = (end + 1).min(bytes.len());
        Some(KeyValue {
            key: &self.text[start..key_end],
            value: &self.text[value_start..end],
            span: start..end,
            delimiter,
        })
    }
}

/// Requires of `m` what `key`, with its `value`, says: a protocol's shorthand, a field, or a
/// part of a field.  `None` if `key` is none of these.  Narrows `formats` to those that
/// can say it.
pub fn apply_key(
    m: &mut Match,
    key: &str,
    value: &str,
    names: &Names,
    formats: &mut Formats,
) -> Option<Result<(), String>> {
    if let Some((_, eth_type, proto)) = PROTOCOLS.iter().find(|(name, ..)| *name == key) {
        m.set(slot::ETH_TYPE, u128::from(*eth_type));
        if *proto != 0 {
            m.set(slot::NW_PROTO, u128::from(*proto));
        }
        m.set_default_packet_type();
        return Some(Ok(()));
    }
    if key == "eth" {
        m.set(slot::PACKET_TYPE, 0);
        return Some(Ok(()));
    }
    if let Some(field) = Field::by_name(key) {
        return Some(apply_field(m, field, value, names, formats));
    }
    key.contains('[')
        .then(|| apply_subfield(m, key, value, formats))
}

/// Requires that `field` has the value, maybe masked, that `text` gives.  Just that the
/// field exists, if `text` is empty.
pub fn apply_field(
    m: &mut Match,
    field: Field,
    text: &str,
    names: &Names,
    formats: &mut Formats,
) -> Result<(), String> {
    let text = if text.is_empty() { "0/0" } else { text };
    let (value, mask) = value::parse(field, text, names)?;
    // Of other narrow fields, Open vSwitch's tools drop the bits in excess, and scripts may rely
    // on that; this one its switch refuses.
    if field == Field::Ipv6Label && !field.allows_value(value) {
        let (bits, name) = (field.info().bits, field.info().name);
        return Err(format!(
            "{name}: value {value:#x} does not fit into {bits} bits"
        ));
    }
    set(m, field, value, mask, formats)
}

fn set(
    m: &mut Match,
    field: Field,
    value: u128,
    mask: u128,
    formats: &mut Formats,
) -> Result<(), String> {
    let info = field.info();
    m.set_field(field, value, mask)
        .ok_or_else(|| format!("{}: tunnel metadata is not supported yet", info.name))?;
    *formats &= usable_for(field, mask);
    if info.prereq != Prereq::None {
        m.set_default_packet_type();
    }
    Ok(())
}

fn apply_subfield(
    m: &mut Match,
    name: &str,
    text: &str,
    formats: &mut Formats,
) -> Result<(), String> {
    let (part, _) = subfield::parse_prefix(name)?;
    let info = part.field.info();
    let number = wide_int(text, info.bytes).ok();
    let number = number.and_then(|(n, rest)| rest.is_empty().then_some(n));
    let number = number.ok_or_else(|| format!("{name}: cannot parse integer value: {text}"))?;
    if number & !part.mask() != 0 {
        let mut shown = String::new();
        let full = full_mask(info.bytes);
        value::put(&mut shown, part.field, number, full, &Names::default());
        return Err(format!(
            "{name}: value {shown} does not fit into {} bits",
            part.bits
        ));
    }
    let (value, mask) = m.field(part.field).unwrap_or_default();
    let bits = part.mask() << part.offset;
    let value = (value & !bits) | (number << part.offset);
    set(m, part.field, value, mask | bits, formats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_into_keys_and_values() {
        let list: Vec<_> = KeyValues::new(" a=1, b:2(3,4),c(5,(6)) d,e(7)->f,")
            .map(|kv| (kv.key, kv.value))
            .collect();
        let want = [
            ("a", "1"),
            ("b", "2(3,4)"),
            ("c", "5,(6)"),
            ("d", ""),
            ("e", "7)->f"),
        ];
        assert_eq!(list, want);
    }

    fn reprint(text: &str) -> Result<String, String> {
        let names = Names::default();
        let mut m = Match::any();
        let mut formats = Formats::ANY;
        for kv in KeyValues::new(text) {
            apply_key(&mut m, kv.key, kv.value, &names, &mut formats)
                .unwrap_or_else(|| Err(format!("unknown keyword {}", kv.key)))?;
        }
        let mut out = String::new();
        put_match(&mut out, &m, 32768, &names);
        Ok(out)
    }

    #[test]
    fn matches_read_and_print() {
        for (text, want) in [
            (
                "tcp,nw_src=10.0.0.1,tp_dst=80",
                "tcp,nw_src=10.0.0.1,tp_dst=80",
            ),
            ("dl_type=0x800,nw_proto=17", "udp"),
            ("dl_vlan=9,vlan_pcp=3", "dl_vlan=9,dl_vlan_pcp=3"),
            ("dl_vlan=0xffff", "vlan_tci=0x0000"),
            ("vlan_tci=0x1123/0x1fff", "dl_vlan=291"),
            ("vlan_tci=0x1000/0x1000", "vlan_tci=0x1000/0x1000"),
            (
                "arp,arp_op=1,arp_spa=1.2.3.4",
                "arp,arp_spa=1.2.3.4,arp_op=1",
            ),
            (
                "in_port=LOCAL,reg0=5,metadata=1",
                "reg0=0x5,metadata=0x1,in_port=LOCAL",
            ),
            (
                "icmp6,icmpv6_type=135,nd_target=fe80::1",
                "icmp6,icmp_type=135,nd_target=fe80::1",
            ),
            ("ct_state=+trk-new,ip", "ct_state=-new+trk,ip"),
            ("reg0[0..7]=0x5", "reg0=0x5/0xff"),
            ("xreg0=0x100000002", "reg0=0x1,reg1=0x2"),
            (
                "mpls,mpls_label=5,mpls_bos=1",
                "mpls,mpls_label=5,mpls_bos=1",
            ),
            ("ipv6,ipv6_label=0x5", "ipv6,ipv6_label=0x00005"),
            ("ip,nw_frag=later", "ip,nw_frag=later"),
            ("dl_type=0x1234", "dl_type=0x1234"),
            ("tcp6,tcp_flags=+syn", "tcp6,tcp_flags=+syn"),
        ] {
            assert_eq!(reprint(text).as_deref(), Ok(want), "{text}");
        }
        assert_eq!(
            reprint("ipv6,ipv6_label=0xfffff/0x1fffff").as_deref(),
            Ok("ipv6,ipv6_label=0xfffff")
        );
        for text in ["0x100000", "0x100000/0x100000", "0x1fffff/0xfffff"] {
            let refused = reprint(&format!("ipv6,ipv6_label={text}")).unwrap_err();
            assert!(refused.contains("does not fit into 20 bits"), "{refused}");
        }
        assert_eq!(
            reprint("reg0[0..3]=16").unwrap_err(),
            "reg0[0..3]: value 0x10 does not fit into 4 bits"
        );
    }
}
