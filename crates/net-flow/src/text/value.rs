//! Values of single fields in text.

use std::fmt::Write;

use super::addr;
use super::flags::{CT_STATE, TCP, TUNNEL};
use super::num::{IntError, whole_i64, wide_int};
use crate::field::{Field, Format};
use crate::names::{Names, put_name};
use crate::port::PortNo;

/// Fragment kinds: name, mask, value.  Of equal values and masks the first is printed.
const FRAGS: [(&str, u128, u128); 7] = [
    ("no", 3, 0),
    ("first", 3, 1),
    ("later", 3, 3),
    ("no", 1, 0),
    ("yes", 1, 1),
    ("not_later", 2, 0),
    ("later", 2, 2),
];

/// The port that `s` names or numbers.
pub fn parse_port(s: &str, names: &Names) -> Option<PortNo> {
    if s.starts_with('-') {
        log::warn!(target: "ofp_port", "Negative value {s} is not a valid port number.");
        return None;
    }
    let number = whole_i64(s, 10).and_then(|n| u32::try_from(n).ok());
    if let Some(number) = number {
        return port_number(number);
    }
    if let Some(port) = PortNo::from_reserved_name(s) {
        return Some(port);
    }
    let unquoted = s.strip_prefix('"').map(|t| t.strip_suffix('"'));
    match unquoted {
        None => names.ports.number(s).map(PortNo),
        Some(inner) => names.ports.number(&unescape(inner?)?).map(PortNo),
    }
}

fn port_number(number: u32) -> Option<PortNo> {
    match number {
        0..0xff00 => {}
        0xff00..0xfff8 => log::warn!(target: "ofp_port",
            "port {number} is a reserved OF1.0 port number that will be translated to {} \
             when talking to an OF1.1 or later controller", number + 0xffff_0000),
        0xfff8..=0xffff => log::warn!(target: "ofp_port",
            "referring to port {} as {number} is deprecated for compatibility with \
             OpenFlow 1.1 and later", PortNo::from_of10(number as u16)),
        0x1_0000..0xffff_ff00 => {
            log::warn!(target: "ofp_port",
                "port {number} is outside the supported range 0 through ffff or 0xffffff00 \
                 through 0xffffffff");
            return None;
        }
        _ => return Some(PortNo(number)),
    }
    Some(PortNo::from_of10(number as u16))
}

/// The text of a JSON string's inside.
fn unescape(s: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let hex: String = chars.by_ref().take(4).collect();
                char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?
            }
            c @ ('"' | '\\' | '/') => c,
            _ => return None,
        });
    }
    Some(out)
}

/// Appends a port: the reserved name, its name if there is one, or its number.
pub fn put_port(out: &mut String, port: PortNo, names: &Names) {
    if port.reserved_name().is_none()
        && let Some(name) = names.ports.name(port.0)
    {
        put_name(out, name);
    } else {
        let _ = write!(out, "{port}");
    }
}

/// The value and mask that `s` gives for `field`, in the field's own bytes.
pub fn parse(field: Field, s: &str, names: &Names) -> Result<(u128, u128), String> {
    let info = field.info();
    if s == "*" {
        return Ok((0, 0));
    }
    let full = field.full_mask();
    let (value, mask) = match info.format {
        Format::Decimal | Format::Hexadecimal => parse_integer(field, s)?,
        Format::Ethernet => {
            let parsed = addr::eth_masked(s);
            let (v, m) = parsed.ok_or_else(|| format!("{s}: invalid Ethernet address"))?;
            (u128::from(v), u128::from(m))
        }
        Format::Ipv4 => {
            let (v, m) = addr::ipv4_masked(s)?;
            (u128::from(v), u128::from(m))
        }
        Format::Ipv6 => addr::ipv6_masked(s)?,
        Format::Port10 => {
            let port = parse_port(s, names);
            let invalid = || format!("{s}: invalid or unknown port for {}", info.name);
            (u128::from(port.ok_or_else(invalid)?.to_of10()), full)
        }
        Format::Port => {
            let port = parse_port(s, names);
            let invalid = || format!("{s}: port value out of range for {}", info.name);
            (u128::from(port.ok_or_else(invalid)?.0), full)
        }
        Format::Frag => {
            let kind = FRAGS.iter().find(|(n, ..)| n.eq_ignore_ascii_case(s));
            let (_, mask, value) = kind.ok_or_else(|| {
                format!(
                    "{s}: unknown fragment type (valid types are \"no\", \"yes\", \
                     \"first\", \"later\", \"not_later\""
                )
            })?;
            (*value, mask | 0xfc)
        }
        Format::CtState => flags(CT_STATE.parse(s)?, full),
        Format::TcpFlags => flags(TCP.parse(s)?, full),
        Format::TunnelFlags => flags(TUNNEL.parse(s)?, full),
        Format::PacketType => (parse_packet_type(s)?, full),
    };
    if !field.allows_mask(mask) {
        return Err(format!("{s}: invalid mask for field {}", info.name));
    }
    Ok((value, mask))
}

fn flags((value, mask): (u32, u32), full: u128) -> (u128, u128) {
    let mask = if mask == u32::MAX {
        full
    } else {
        u128::from(mask)
    };
    (u128::from(value), mask)
}

/// As [`parse`], with nothing left open.
pub fn parse_exact(field: Field, s: &str, names: &Names) -> Result<u128, String> {
    match parse(field, s, names)? {
        (value, mask) if mask == field.full_mask() => Ok(value),
        _ => Err(format!("{s}: wildcards not allowed here")),
    }
}

fn parse_integer(field: Field, s: &str) -> Result<(u128, u128), String> {
    let info = field.info();
    let fail = |error, part: &str| match error {
        IntError::TooLarge => format!(
            "{s}: {part} too large for {}-byte field {}",
            info.bytes, info.name
        ),
        IntError::Syntax => format!("{s}: bad syntax for {} {part}", info.name),
    };
    let (value, rest) = wide_int(s, info.bytes).map_err(|e| fail(e, "value"))?;
    if rest.is_empty() {
        return Ok((value, field.full_mask()));
    }
    let tail = rest.strip_prefix('/');
    let tail = tail.ok_or_else(|| fail(IntError::Syntax, "value"))?;
    let (mask, rest) = wide_int(tail, info.bytes).map_err(|e| fail(e, "mask"))?;
    if !rest.is_empty() {
        return Err(fail(IntError::Syntax, "mask"));
    }
    Ok((value, mask))
}

fn parse_packet_type(s: &str) -> Result<u128, String> {
    let fail = |s: &str, what: &str| format!("{s}: bad syntax for packet type {what}");
    let inner = s.strip_prefix('(').ok_or_else(|| fail(s, "missing '('"))?;
    let (ns, rest) = wide_int(inner, 2).map_err(|_| fail(inner, "ns"))?;
    let tail = rest.strip_prefix(',');
    let tail = tail.ok_or_else(|| fail(inner, "missing ','"))?;
    let (ty, rest) = wide_int(tail, 2).map_err(|_| fail(tail, "ns_type"))?;
    if !rest.starts_with(')') {
        return Err(fail(tail, "missing ')'"));
    }
    Ok((ns << 16) | ty)
}

/// Appends `value` of `field` under `mask`, both in the field's own bytes.
pub fn put(out: &mut String, field: Field, value: u128, mask: u128, names: &Names) {
    let info = field.info();
    if mask == 0 {
        out.push_str("ANY");
        return;
    }
    let full = field.full_mask();
    let exact = mask == full;
    match info.format {
        Format::Port if exact => match PortNo::from_of11(value as u32) {
            Some(port) => put_port(out, port, names),
            None => put_port(out, PortNo::from_of10(value as u16), names),
        },
        Format::Port10 if exact => put_port(out, PortNo::from_of10(value as u16), names),
        Format::Decimal | Format::Hexadecimal | Format::Port | Format::Port10 => {
            if info.format == Format::Hexadecimal {
                put_alt_hex(out, value);
            } else {
                let _ = write!(out, "{}", value as u64 as i64);
            }
            if !exact {
                out.push('/');
                put_alt_hex(out, mask);
            }
        }
        Format::Ethernet => addr::put_eth_masked(out, value as u64, mask as u64),
        Format::Ipv4 => addr::put_ipv4_masked(out, value as u32, mask as u32),
        Format::Ipv6 => addr::put_ipv6_masked(out, value, mask),
        Format::Frag => {
            let kind = FRAGS
                .iter()
                .find(|(_, m, v)| *m == mask & 3 && *v == value & mask & 3);
            out.push_str(kind.map_or("<error>", |(name, ..)| name));
        }
        Format::CtState => CT_STATE.put_masked(out, value as u32, mask as u32, 0xffff),
        Format::TcpFlags => TCP.put_masked(out, value as u32, mask as u32 & 0xfff, 0xfff),
        Format::TunnelFlags => TUNNEL.put_masked(out, value as u32, mask as u32 & 1, 1),
        Format::PacketType => put_packet_type(out, value as u32, mask as u32),
    }
}

/// Appends a number as C's `%#x` does: no `0x` before 0.
pub fn put_alt_hex(out: &mut String, value: u128) {
    let _ = if value == 0 {
        write!(out, "0")
    } else {
        write!(out, "{value:#x}")
    };
}

/// Appends a packet type: `eth`, or `packet_type=(NAMESPACE,TYPE)`.
pub fn put_packet_type(out: &mut String, value: u32, mask: u32) {
    if value == 0 && mask == u32::MAX {
        out.push_str("eth");
        return;
    }
    let half = |out: &mut String, value: u32, mask: u32| {
        if mask == 0 {
            out.push('*');
            return;
        }
        let _ = if value > 9 {
            write!(out, "{value:#x}")
        } else {
            write!(out, "{value}")
        };
        if mask != 0xffff {
            let _ = write!(out, "/{mask:#x}");
        }
    };
    out.push_str("packet_type=(");
    half(out, value >> 16, mask >> 16);
    out.push(',');
    half(out, value & 0xffff, mask & 0xffff);
    out.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(name: &str, text: &str) -> Result<String, String> {
        let field = Field::by_name(name).unwrap();
        let names = Names::default();
        let (value, mask) = parse(field, text, &names)?;
        let mut out = String::new();
        put(&mut out, field, value, mask, &names);
        Ok(out)
    }

    #[test]
    fn values_read_and_print() {
        for (name, text, want) in [
            ("metadata", "0x1234/0xff00", "0x1234/0xff00"),
            ("reg0", "10", "0xa"),
            ("dl_src", "00:11:22:33:44:55", "00:11:22:33:44:55"),
            ("nw_src", "10.1.2.3/255.255.0.0", "10.1.2.3/16"),
            ("in_port", "local", "LOCAL"),
            ("in_port_oxm", "5", "5"),
            ("ip_frag", "not_later", "not_later"),
            ("tcp_flags", "+syn-ack", "+syn-ack"),
            ("tcp_dst", "80", "80"),
            ("tcp_dst", "80/0xfff0", "80/0xfff0"),
            ("packet_type", "(1,0x800)", "packet_type=(1,0x800)"),
            ("ct_label", "0x1/0x1", "0x1/0x1"),
            ("reg0", "*", "ANY"),
        ] {
            assert_eq!(round(name, text).as_deref(), Ok(want), "{name}={text}");
        }
    }

    #[test]
    fn errors_are_those_that_scripts_know() {
        for (name, text, want) in [
            ("reg0", "x", "x: bad syntax for reg0 value"),
            ("reg0", "1/x", "1/x: bad syntax for reg0 mask"),
            (
                "nw_ttl",
                "256",
                "256: value too large for 1-byte field nw_ttl",
            ),
            ("nw_ttl", "1/2", "1/2: invalid mask for field nw_ttl"),
            ("dl_src", "x", "x: invalid Ethernet address"),
            ("in_port", "x", "x: invalid or unknown port for in_port"),
        ] {
            assert_eq!(round(name, text).unwrap_err(), want);
        }
    }
}
