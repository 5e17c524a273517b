//! `encap` and `decap`.

use std::fmt::Write;

use net_flow::Formats;
use net_flow::text::KeyValues;
use net_flow::text::num::{str_to_u8, str_to_u16};
use net_flow::text::value::put_alt_hex;

use super::{Action, Parser};

/// `encap(HEADER)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Encap {
    /// Packet type of the new header: namespace in the upper, type in the lower 16 bits.
    pub packet_type: u32,
    /// Properties of the new header.
    pub props: Box<[EncapProp]>,
}

/// A property of a new header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncapProp {
    /// `OFPPPC_*`: 4 is NSH.
    pub class: u16,
    /// Its kind in the class: for NSH, 1 is the metadata type, 2 a TLV.
    pub kind: u8,
    /// Its value.
    pub value: Box<[u8]>,
}

/// `decap()`, `decap(packet_type(...))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decap {
    /// Packet type of what is inside; 0xfffe when the packet itself says.
    pub packet_type: u32,
}

impl Decap {
    /// The new packet type that stands for "as the packet says".
    pub const USE_NEXT_PROTO: u32 = 0xfffe;
}

/// The property class of NSH.
pub(super) const CLASS_NSH: u16 = 4;
/// NSH property: the metadata type.
pub(super) const NSH_MD_TYPE: u8 = 1;
/// NSH property: a TLV.
pub(super) const NSH_TLV: u8 = 2;

const HEADERS: [(&str, u32); 4] = [
    ("ethernet", 0),
    ("nsh", 0x1_894f),
    ("mpls", 0x1_8847),
    ("mpls_mc", 0x1_8848),
];

pub(super) fn parse_encap(arg: &str, p: &mut Parser<'_>) -> Result<Action, String> {
    p.formats &= Formats::OF13_UP;
    let first = KeyValues::new(arg).next();
    let kv = first.ok_or_else(|| format!("Missing encap hdr: {arg}"))?;
    let header = HEADERS.iter().find(|(name, _)| *name == kv.key);
    let (_, packet_type) =
        *header.ok_or_else(|| format!("Encap hdr not supported: {}", kv.value))?;
    let mut props = Vec::new();
    for prop in KeyValues::new(kv.value) {
        props.push(parse_prop(kv.key == "nsh", prop.key, prop.value)?);
    }
    Ok(Action::Encap(Box::new(Encap {
        packet_type,
        props: props.into(),
    })))
}

fn parse_prop(nsh: bool, key: &str, value: &str) -> Result<EncapProp, String> {
    let kind = match key {
        "md_type" if nsh => NSH_MD_TYPE,
        "tlv" if nsh => NSH_TLV,
        _ => return Err(format!("Invalid property: {key}")),
    };
    if value.is_empty() {
        return Err("Value missing for encap property".to_owned());
    }
    let bytes = if kind == NSH_MD_TYPE {
        let md_type = str_to_u8(value, "md_type")?;
        if !(1..=2).contains(&md_type) {
            return Err("invalid md_type".to_owned());
        }
        vec![md_type]
    } else {
        parse_tlv(value).ok_or_else(|| format!("Invalid NSH TLV header: {value}"))?
    };
    Ok(EncapProp {
        class: CLASS_NSH,
        kind,
        value: bytes.into(),
    })
}

fn parse_tlv(value: &str) -> Option<Vec<u8>> {
    let mut parts = value.splitn(3, ',');
    let class = parts.next()?.trim().strip_prefix("0x")?;
    let class = u16::from_str_radix(class, 16).ok()?;
    let ty: u8 = parts.next()?.trim().parse().ok()?;
    let digits = parts.next()?.trim().strip_prefix("0x")?;
    let digits = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits.to_owned()
    };
    let data = super::output::parse_hex(&digits)?;
    let mut bytes = class.to_be_bytes().to_vec();
    bytes.push(ty);
    bytes.push(u8::try_from(data.len()).ok()?);
    bytes.extend(data);
    Some(bytes)
}

pub(super) fn put_encap(out: &mut String, a: &Encap) {
    let header = HEADERS.iter().find(|(_, ty)| *ty == a.packet_type);
    let name = header.map_or("UNKNOWN", |(name, _)| name);
    let _ = write!(out, "encap({name}");
    for (i, prop) in a.props.iter().enumerate() {
        out.push(if i == 0 { '(' } else { ',' });
        match (&*prop.value, prop.kind) {
            ([md_type, ..], NSH_MD_TYPE) => {
                let _ = write!(out, "md_type={md_type}");
            }
            ([c0, c1, ty, _, data @ ..], _) => {
                let class = u16::from_be_bytes([*c0, *c1]);
                let value = data.iter().skip_while(|b| **b == 0);
                let hex: String = value.map(|b| format!("{b:02x}")).collect();
                let hex = match hex.strip_prefix('0').unwrap_or(&hex) {
                    "" => "0".to_owned(),
                    digits => format!("0x{digits}"),
                };
                let _ = write!(out, "tlv(0x{class:04x},{ty},{hex})");
            }
            _ => {}
        }
    }
    out.push_str(if a.props.is_empty() { ")" } else { "))" });
}

pub(super) fn parse_decap(arg: &str) -> Result<Action, String> {
    let Some(kv) = KeyValues::new(arg).next() else {
        return Ok(Action::Decap(Decap {
            packet_type: Decap::USE_NEXT_PROTO,
        }));
    };
    if kv.key != "packet_type" {
        return Err(format!("Invalid decap argument: {}", kv.key));
    }
    let mut parts = KeyValues::new(kv.value);
    let mut attribute = |name: &str| {
        let part = parts.next().filter(|part| part.key == name);
        let part = part.ok_or_else(|| format!("Missing packet_type attribute {name}"))?;
        str_to_u16(part.value, name)
    };
    let ns = attribute("ns")?;
    if ns >= 5 {
        return Err(format!("Unsupported ns value: {ns}"));
    }
    let ty = attribute("type")?;
    Ok(Action::Decap(Decap {
        packet_type: (u32::from(ns) << 16) | u32::from(ty),
    }))
}

pub(super) fn put_decap(out: &mut String, a: Decap) {
    if a.packet_type == Decap::USE_NEXT_PROTO {
        out.push_str("decap()");
        return;
    }
    let _ = write!(out, "decap(packet_type(ns={},type=", a.packet_type >> 16);
    put_alt_hex(out, u128::from(a.packet_type & 0xffff));
    out.push_str("))");
}
