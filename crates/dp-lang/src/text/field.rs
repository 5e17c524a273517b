//! Fields of attributes: where they lie and how they look.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use net_flow::slot::{self, Slot};
use net_flow::{FlowKey, FlowMask};
use net_packet::EthAddr;

use super::cursor::{Cursor, parse_number};

/// How a value is written; masks of numbers are hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Decimal,
    /// Decimal, of the low bits of a field that has more: a mask is never exact.
    LowBits,
    Hex,
    /// Hexadecimal, `0x0` for zero.
    HexZero,
    Mac,
    Ipv4,
    Ipv6,
    Fragment,
}

/// A field of an attribute.
pub(super) struct TextField {
    pub name: &'static str,
    pub slot: Slot,
    pub style: Style,
}

const fn field(name: &'static str, slot: Slot, style: Style) -> TextField {
    TextField { name, slot, style }
}

/// An attribute that is a list of fields.
pub(super) struct Group {
    pub name: &'static str,
    pub fields: &'static [TextField],
}

use Style::{Decimal, Fragment, Hex, HexZero, Ipv4, Ipv6, LowBits, Mac};

pub(super) static ETHERNET: Group = Group {
    name: "eth",
    fields: &[
        field("src", slot::ETH_SRC, Mac),
        field("dst", slot::ETH_DST, Mac),
    ],
};
pub(super) static IPV4: Group = Group {
    name: "ipv4",
    fields: &[
        field("src", slot::NW_SRC, Ipv4),
        field("dst", slot::NW_DST, Ipv4),
        field("proto", slot::NW_PROTO, Decimal),
        field("tos", slot::NW_TOS, Hex),
        field("ttl", slot::NW_TTL, Decimal),
        field("frag", slot::NW_FRAG, Fragment),
    ],
};
pub(super) static IPV6: Group = Group {
    name: "ipv6",
    fields: &[
        field("src", slot::IPV6_SRC, Ipv6),
        field("dst", slot::IPV6_DST, Ipv6),
        field("label", slot::IPV6_LABEL.part(0, 20), Hex),
        field("proto", slot::NW_PROTO, Decimal),
        field("tclass", slot::NW_TOS, Hex),
        field("hlimit", slot::NW_TTL, Decimal),
        field("frag", slot::NW_FRAG, Fragment),
    ],
};
const PORTS: &[TextField] = &[
    field("src", slot::TP_SRC, Decimal),
    field("dst", slot::TP_DST, Decimal),
];
const TYPE_AND_CODE: &[TextField] = &[
    field("type", slot::TP_SRC.part(0, 8), Decimal),
    field("code", slot::TP_DST.part(0, 8), Decimal),
];
pub(super) static TCP: Group = Group {
    name: "tcp",
    fields: PORTS,
};
pub(super) static UDP: Group = Group {
    name: "udp",
    fields: PORTS,
};
pub(super) static SCTP: Group = Group {
    name: "sctp",
    fields: PORTS,
};
pub(super) static ICMP: Group = Group {
    name: "icmp",
    fields: TYPE_AND_CODE,
};
pub(super) static ICMPV6: Group = Group {
    name: "icmpv6",
    fields: TYPE_AND_CODE,
};
const fn arp(op: Style) -> [TextField; 5] {
    [
        field("sip", slot::NW_SRC, Ipv4),
        field("tip", slot::NW_DST, Ipv4),
        field("op", slot::NW_PROTO, op),
        field("sha", slot::ARP_SHA, Mac),
        field("tha", slot::ARP_THA, Mac),
    ]
}
pub(super) static ARP: Group = Group {
    name: "arp",
    fields: &arp(Decimal),
};
/// The kernel has 16 bits for the operation, of which flows match 8.
pub(super) static ARP_OF_KERNEL: Group = Group {
    name: "arp",
    fields: &arp(LowBits),
};
pub(super) static ND: Group = Group {
    name: "nd",
    fields: &[
        field("target", slot::ND_TARGET, Ipv6),
        field("sll", slot::ARP_SHA, Mac),
        field("tll", slot::ARP_THA, Mac),
    ],
};
pub(super) static ND_EXTENSIONS: Group = Group {
    name: "nd_ext",
    fields: &[
        field("nd_reserved", slot::IGMP_GROUP, HexZero),
        field("nd_options_type", slot::TCP_FLAGS.part(0, 8), Decimal),
    ],
};
pub(super) static NSH: Group = Group {
    name: "nsh",
    fields: &[
        field("flags", slot::NSH_FLAGS, Decimal),
        field("ttl", slot::NSH_TTL, Decimal),
        field("mdtype", slot::NSH_MDTYPE, Decimal),
        field("np", slot::NSH_NP, Decimal),
        field("spi", slot::NSH_SPI, HexZero),
        field("si", slot::NSH_SI, Decimal),
        field("c1", slot::NSH_C1, HexZero),
        field("c2", slot::NSH_C2, HexZero),
        field("c3", slot::NSH_C3, HexZero),
        field("c4", slot::NSH_C4, HexZero),
    ],
};
pub(super) static CT_TUPLE4: Group = Group {
    name: "ct_tuple4",
    fields: &[
        field("src", slot::CT_NW_SRC, Ipv4),
        field("dst", slot::CT_NW_DST, Ipv4),
        field("proto", slot::CT_NW_PROTO, Decimal),
        field("tp_src", slot::CT_TP_SRC, Decimal),
        field("tp_dst", slot::CT_TP_DST, Decimal),
    ],
};
pub(super) static CT_TUPLE6: Group = Group {
    name: "ct_tuple6",
    fields: &[
        field("src", slot::CT_IPV6_SRC, Ipv6),
        field("dst", slot::CT_IPV6_DST, Ipv6),
        field("proto", slot::CT_NW_PROTO, Decimal),
        field("src_port", slot::CT_TP_SRC, Decimal),
        field("dst_port", slot::CT_TP_DST, Decimal),
    ],
};
/// The fields of `tunnel` that look like those of other attributes.
pub(super) static TUNNEL: Group = Group {
    name: "tunnel",
    fields: &[
        field("tun_id", slot::TUN_ID, Hex),
        field("src", slot::TUN_SRC, Ipv4),
        field("dst", slot::TUN_DST, Ipv4),
        field("ipv6_src", slot::TUN_IPV6_SRC, Ipv6),
        field("ipv6_dst", slot::TUN_IPV6_DST, Ipv6),
        field("tos", slot::TUN_TOS, Hex),
        field("ttl", slot::TUN_TTL, Decimal),
        field("tp_src", slot::TUN_TP_SRC, Decimal),
        field("tp_dst", slot::TUN_TP_DST, Decimal),
    ],
};
pub(super) static PACKET_TYPE: Group = Group {
    name: "packet_type",
    fields: &[
        field("ns", slot::PACKET_TYPE.part(16, 16), Decimal),
        field("id", slot::PACKET_TYPE.part(0, 16), Hex),
    ],
};

/// Attributes that are lists of fields, where reading needs no more than that.
pub(super) static GROUPS: &[&Group] = &[
    &ETHERNET,
    &IPV4,
    &IPV6,
    &TCP,
    &UDP,
    &SCTP,
    &ICMP,
    &ICMPV6,
    &ARP,
    &ND,
    &ND_EXTENSIONS,
    &NSH,
    &CT_TUPLE4,
    &CT_TUPLE6,
    &PACKET_TYPE,
];

/// Hexadecimal as C's `%#x` writes it: zero has no prefix.
pub(super) fn hex(value: u128) -> String {
    if value == 0 {
        "0".to_owned()
    } else {
        format!("{value:#x}")
    }
}

impl Style {
    fn value(self, value: u128) -> String {
        match self {
            Decimal | LowBits => value.to_string(),
            Hex => hex(value),
            HexZero => format!("{value:#x}"),
            Mac => EthAddr::from_u64(value as u64).to_string(),
            Ipv4 => Ipv4Addr::from(value as u32).to_string(),
            Ipv6 => Ipv6Addr::from(value).to_string(),
            Fragment => match value & 3 {
                0 | 2 => "no".to_owned(),
                1 => "first".to_owned(),
                _ => "later".to_owned(),
            },
        }
    }

    fn mask(self, mask: u128) -> String {
        match self {
            Decimal | LowBits | Hex => hex(mask),
            other => other.value(mask),
        }
    }

    pub(super) fn parse(self, text: &str) -> Option<u128> {
        match self {
            Decimal | LowBits | Hex | HexZero => parse_number(text),
            Mac => Some(u128::from(text.parse::<EthAddr>().ok()?.to_u64())),
            Ipv4 => Some(u128::from(text.parse::<Ipv4Addr>().ok()?.to_bits())),
            Ipv6 => Some(text.parse::<Ipv6Addr>().ok()?.to_bits()),
            Fragment => match text.to_ascii_lowercase().as_str() {
                "no" => Some(0),
                "first" => Some(1),
                "later" => Some(3),
                _ => None,
            },
        }
    }
}

impl TextField {
    fn full(&self) -> u128 {
        match self.style {
            Fragment => 3,
            _ => self.slot.max(),
        }
    }

    /// Writes `name=value/mask,` unless nothing of it matters.
    fn put(&self, key: &FlowKey, mask: Option<&FlowMask>, verbose: bool, out: &mut String) {
        let full = self.full();
        let is_whole = mask.is_none();
        let mask = mask.map_or(full, |m| m.get(self.slot) & full);
        let exact = match self.style {
            // Fragment bits matter all together or not at all.
            Fragment => true,
            LowBits => is_whole,
            _ => mask == full,
        };
        if mask == 0 && (!verbose || self.style == Fragment) {
            return;
        }
        let value = self.style.value(key.get(self.slot));
        let _ = write!(out, "{}={value}", self.name);
        if !exact {
            let _ = write!(out, "/{}", self.style.mask(mask));
        }
        out.push(',');
    }
}

impl Group {
    /// Whether some bit of it matters.
    pub(super) fn matters(&self, mask: &FlowMask) -> bool {
        self.fields.iter().any(|f| mask.get(f.slot) & f.full() != 0)
    }

    /// Writes the fields, without the name and the parentheses.
    pub(super) fn put_fields(
        &self,
        key: &FlowKey,
        mask: Option<&FlowMask>,
        verbose: bool,
        out: &mut String,
    ) {
        for field in self.fields {
            field.put(key, mask, verbose, out);
        }
        if out.ends_with(',') {
            out.pop();
        }
    }

    /// Writes `name(fields)`.
    pub(super) fn put(
        &self,
        key: &FlowKey,
        mask: Option<&FlowMask>,
        verbose: bool,
        out: &mut String,
    ) {
        let _ = write!(out, "{}(", self.name);
        self.put_fields(key, mask, verbose, out);
        out.push(')');
    }

    /// Reads one `name=value/mask` of this group, if one comes next.
    pub(super) fn parse_field(
        &self,
        cursor: &mut Cursor<'_>,
        key: &mut FlowKey,
        mask: &mut FlowMask,
    ) -> Option<()> {
        let name = cursor.word();
        let field = self.fields.iter().find(|f| f.name == name)?;
        cursor.expect("=")?;
        let value = field.style.parse(cursor.until(&[',', ')', '/']))?;
        let full = field.full();
        if value > full {
            return None;
        }
        let bits = if cursor.eat("/") {
            field.style.parse(cursor.until(&[',', ')']))? & full
        } else {
            full
        };
        key.set(field.slot, value);
        mask.set(field.slot, bits);
        Some(())
    }

    /// Reads fields up to and with the closing parenthesis.
    pub(super) fn parse(
        &self,
        cursor: &mut Cursor<'_>,
        key: &mut FlowKey,
        mask: &mut FlowMask,
    ) -> Option<()> {
        loop {
            cursor.skip_delimiters();
            if cursor.eat(")") {
                return Some(());
            }
            self.parse_field(cursor, key, mask)?;
        }
    }
}

/// Names of bits, from the lowest on.
pub(super) type Flags = &'static [&'static str];

pub(super) const CT_STATE: Flags = &["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"];
pub(super) const TCP_FLAGS: Flags = &[
    "fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]",
];
pub(super) const TUNNEL_FLAGS: Flags = &["oam", "df", "csum", "key"];
pub(super) const SLOW_PATH: Flags = &[
    "cfm",
    "bfd",
    "lacp",
    "stp",
    "lldp",
    "controller",
    "action",
    "match",
];

/// `a|b`, or `0` for none.
pub(super) fn format_flags(names: Flags, value: u128, separator: char) -> String {
    let mut text = String::new();
    for (i, name) in names.iter().enumerate() {
        if value & (1 << i) != 0 {
            if !text.is_empty() {
                text.push(separator);
            }
            text += name;
        }
    }
    if text.is_empty() {
        text.push('0');
    }
    text
}

/// `+a-b` for the flags of `mask`, or `0/0` for none.
pub(super) fn format_flags_masked(names: Flags, value: u128, mask: u128) -> String {
    if mask == 0 {
        return "0/0".to_owned();
    }
    let mut text = String::new();
    for (i, name) in names.iter().enumerate() {
        if mask & (1 << i) != 0 {
            text.push(if value & (1 << i) != 0 { '+' } else { '-' });
            text += name;
        }
    }
    text
}

/// Reads what either function above writes, or a number with an optional mask.
pub(super) fn parse_flags(names: Flags, text: &str) -> Option<(u128, Option<u128>)> {
    let bit = |name: &str| {
        let index = names.iter().position(|n| *n == name)?;
        Some(1u128 << index)
    };
    if text.starts_with(['+', '-']) {
        let (mut value, mut mask) = (0, 0);
        let mut rest = text;
        while let Some(sign) = rest.chars().next() {
            let end = rest[1..].find(['+', '-']).map_or(rest.len(), |i| i + 1);
            let flag = bit(&rest[1..end])?;
            mask |= flag;
            if sign == '+' {
                value |= flag;
            }
            rest = &rest[end..];
        }
        return Some((value, Some(mask)));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return match text.split_once('/') {
            Some((value, mask)) => Some((parse_number(value)?, Some(parse_number(mask)?))),
            None => Some((parse_number(text)?, None)),
        };
    }
    let mut value = 0;
    for name in text.split(['|', ',']) {
        value |= bit(name.trim())?;
    }
    Some((value, None))
}
