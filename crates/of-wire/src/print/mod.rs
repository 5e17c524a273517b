//! Messages in text, as `ovs-ofctl` prints them.

mod config;
mod flow;
mod group;
mod packet;
mod port;
mod table;
mod table_config;

use std::fmt::Write;

use net_flow::{Formats, Names};

use crate::codec::{Dialect, Kind, claimed_len, kind_of_beginning};
use crate::error::ErrorCode;
use crate::message::{Body, ErrorMessage, Message, PacketInFormat};
use crate::version::Version;

pub use flow::{put_duration, put_flow_mod_flags, put_flow_stats};
pub use group::put_group;
pub use packet::{put_packet_flow, put_packet_text};
pub use port::put_port_desc;
pub use table::table_features_text;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Style<'a> {
    /// Names of ports and tables to use.
    pub names: &'a Names,
    /// How much: 0 leaves counters and packets out, 1 is usual, 2 and more add dumps.
    pub verbosity: u8,
}

/// A number as C's `%#x` writes it: zero has no prefix.
fn c_hex(value: u32) -> String {
    match value {
        0 => "0".to_owned(),
        value => format!("{value:#x}"),
    }
}

/// Appends a dump of bytes in lines of 16: offset, hexadecimal, and characters if `ascii`.
pub fn put_hex_dump(out: &mut String, bytes: &[u8], ascii: bool) {
    for (line, chunk) in bytes.chunks(16).enumerate() {
        let _ = write!(out, "{:08x}  ", line * 16);
        for (i, byte) in chunk.iter().enumerate() {
            let _ = write!(out, "{byte:02x}{}", if i == 7 { '-' } else { ' ' });
        }
        if ascii {
            out.push_str(&"   ".repeat(16 - chunk.len()));
            out.push('|');
            for byte in chunk {
                let shown = (32..127).contains(byte);
                out.push(if shown { char::from(*byte) } else { '.' });
            }
            out.push_str(&" ".repeat(16 - chunk.len()));
            out.push('|');
        } else if out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }
}

/// Appends the names of bits with spaces between, `0` for none, the rest in hexadecimal.
fn put_bits(out: &mut String, bits: u32, names: &[(u32, &str)]) {
    if bits == 0 {
        out.push('0');
        return;
    }
    let mut rest = bits;
    let mut first = true;
    for (bit, name) in names {
        if bits & bit != 0 {
            if !first {
                out.push(' ');
            }
            out.push_str(name);
            rest &= !bit;
            first = false;
        }
    }
    if rest != 0 {
        let gap = if first { "" } else { " " };
        let _ = write!(out, "{gap}{rest:#x}");
    }
}

fn end_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

fn header(bytes: &[u8], kind: Kind) -> String {
    let version = match bytes[0] {
        1 => String::new(),
        v @ 2..=6 => format!(" (OF1.{})", v - 1),
        v => format!(" (OF 0x{v:02x})"),
    };
    let xid = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    format!("{kind}{version} (xid={xid:#x}):")
}

/// The text of a message's bytes, whatever they are, with a newline at the end.
pub fn message_text(bytes: &[u8], style: Style<'_>) -> String {
    let mut out = String::new();
    let len = bytes.len();
    let claimed = claimed_len(bytes).unwrap_or(0);
    if bytes.is_empty() {
        return "OpenFlow message is empty\n".to_owned();
    }
    if len < 8 {
        let _ = writeln!(out, "OpenFlow packet too short (only {len} bytes):");
        put_hex_dump(&mut out, bytes, true);
        return out;
    }
    if claimed > len {
        // The kind may be readable all the same.
        let mut whole = bytes.to_vec();
        whole[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        if let Ok(kind) = kind_of_beginning(&whole) {
            let _ = writeln!(out, "{}", header(bytes, kind));
        }
        let _ = writeln!(out, "(***truncated to {len} bytes from {claimed}***)");
        put_hex_dump(&mut out, bytes, true);
        return out;
    }
    if claimed < len {
        let _ = writeln!(out, "(***only uses {claimed} bytes out of {len}***)");
        put_hex_dump(&mut out, bytes, true);
        return out;
    }
    let error = put_message(&mut out, bytes, style).err();
    if let Some(error) = error {
        let _ = writeln!(out, "***decode error: {error}***");
    }
    if style.verbosity >= 5 || error.is_some() {
        end_line(&mut out);
        put_hex_dump(&mut out, bytes, true);
    }
    end_line(&mut out);
    out
}

/// The dialect in which anything can be read: flow-mods carry a table id.
fn any_dialect(version: Version) -> Dialect {
    let mut dialect = Dialect::of(version);
    if version == Version::V10 {
        dialect.format = Formats::OF10_NXM_TID;
    }
    dialect.packet_in = PacketInFormat::Standard;
    dialect
}

fn put_message(out: &mut String, bytes: &[u8], style: Style<'_>) -> Result<(), ErrorCode> {
    let head = crate::codec::pull_info(bytes)?;
    out.push_str(&header(bytes, head.kind));
    if let Some(flags) = head.flags.filter(|flags| *flags != 0) {
        out.push_str(" flags=");
        let more = flags & 1 != 0 && (head.reply || bytes[0] >= 4);
        let rest = if more { flags & !1 } else { flags };
        if more {
            out.push_str("[more]");
        }
        if rest != 0 {
            let _ = write!(out, "[***unknown flags 0x{rest:04x}***]");
        }
    }
    let header_len = out.len();
    let version = Version::from_wire(bytes[0]).unwrap_or(Version::V10);
    let decoded = Message::decode(bytes, any_dialect(version));
    let result = decoded.and_then(|m| {
        put_body(out, &m, head.kind, bytes, style);
        match m.body {
            Body::Unsupported { .. } => Err(ErrorCode::OfpbrcBadType),
            _ => Ok(()),
        }
    });
    if result.is_err() {
        if out.len() > header_len {
            out.truncate(out.trim_end_matches(' ').len());
            end_line(out);
        } else {
            out.push(' ');
        }
    } else {
        // One space at most was put after what was last printed.
        let end = out.strip_suffix(' ').map_or(out.len(), str::len);
        out.truncate(end);
    }
    result
}

fn put_body(out: &mut String, m: &Message, kind: Kind, bytes: &[u8], style: Style<'_>) {
    match &m.body {
        Body::Error(error) => put_error(out, error, style),
        Body::FlowMod(flow) => flow::put_flow_mod(out, flow, m.version, kind, bytes, style),
        Body::FlowRemoved(m) => flow::put_flow_removed(out, m, style.names),
        Body::FlowStatsRequest(m) | Body::AggregateStatsRequest(m) => {
            flow::put_stats_request(out, m, style.names);
        }
        Body::FlowStatsReply(part) => {
            for stats in &part.entries {
                out.push_str("\n ");
                put_flow_stats(out, stats, style.names, true);
            }
        }
        Body::AggregateStatsReply(s) => {
            let _ = write!(
                out,
                " packet_count={} byte_count={} flow_count={}",
                s.packet_count, s.byte_count, s.flow_count
            );
        }
        Body::PacketIn(m) => packet::put_packet_in(out, m, style),
        Body::PacketOut(m) => packet::put_packet_out(out, m, style),
        Body::BundleAdd { id, flags, message } => {
            let _ = write!(out, "\n bundle_id={} flags=", c_hex(*id));
            put_bits(out, u32::from(*flags), config::BUNDLE_FLAGS);
            out.push('\n');
            // Kept as bytes in the outer message, behind 8 bytes of its own.
            let dialect = any_dialect(message.version);
            let inner = message.encode(dialect);
            out.push_str(&message_text(&inner, style));
        }
        Body::RequestForward(inner) => {
            out.push_str(match inner.body {
                Body::MeterMod(_) => " reason=meter_mod",
                _ => " reason=group_mod",
            });
            put_body(out, inner, kind, bytes, style);
        }
        body => {
            let _ = config::put(out, body, m.version, bytes, style)
                || port::put(out, body, style)
                || group::put(out, body, m.version, style.names)
                || table::put(out, body, m.version)
                || table_config::put(out, body, style.names);
        }
    }
}

fn put_error(out: &mut String, error: &ErrorMessage, style: Style<'_>) {
    let hello = match error.code {
        Ok(code) => {
            let _ = writeln!(out, " {code}");
            code.is_hello_failure()
        }
        Err(_) => false,
    };
    if hello {
        for byte in &error.payload {
            match byte {
                b'\\' => out.push_str("\\\\"),
                32..127 => out.push(char::from(*byte)),
                _ => {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
        }
    } else {
        let style = Style {
            verbosity: 1,
            ..style
        };
        out.push_str(&message_text(&error.payload, style));
    }
}
