//! Entries of matches as their bytes say them: `NXM_OF_ETH_TYPE(0800), ...`.

use std::fmt::Write;

use net_flow::text::subfield::{oxm_by_name, oxm_name};

use super::{Header, pull_header};
use crate::wire::{Put, Reader};

/// The text of a match's entries; `<any>` if there is none.
pub fn match_text(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "<any>".to_owned();
    }
    let mut out = String::new();
    let mut r = Reader::new(bytes);
    while !r.is_empty() {
        let parsed = pull_header(&mut r);
        let entry = parsed.and_then(|h| Ok((h, r.sub(h.len)?)));
        let Ok((header, payload)) = entry else {
            if !out.is_empty() {
                out.push_str(", ");
            }
            let _ = write!(out, "<{} invalid bytes>", bytes.len());
            break;
        };
        if !out.is_empty() {
            out.push_str(", ");
        }
        put_name(&mut out, header);
        out.push('(');
        let width = if header.has_mask {
            header.len / 2
        } else {
            header.len
        };
        for (i, byte) in payload.rest().iter().enumerate() {
            let slash = if header.has_mask && i == width {
                "/"
            } else {
                ""
            };
            let _ = write!(out, "{slash}{byte:02x}");
        }
        out.push(')');
    }
    out
}

fn put_name(out: &mut String, h: Header) {
    let wild = if h.has_mask { "_W" } else { "" };
    let cookie = (h.class, h.field) == super::COOKIE && h.len >= 8;
    let name = oxm_name(h.class, h.experimenter, h.field).filter(|_| !cookie);
    let _ = match name {
        Some(name) => write!(out, "{name}{wild}"),
        None if cookie => write!(out, "NXM_NX_COOKIE{wild}"),
        None => {
            if h.class == 0xffff {
                let _ = write!(out, "0x{:x}:", h.experimenter);
            }
            write!(out, "{}:{}", h.class, h.field)
        }
    };
}

/// The entries that `text` says, with the code points that it names; the error is a text.
pub fn match_from_text(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    if text == "<any>" {
        return Ok(out);
    }
    let mut rest = text.trim_start_matches([',', ' ']);
    while !rest.is_empty() {
        let open = rest.find('(');
        let open = open.ok_or_else(|| format!("{text}: missing ( at end of nx_match"))?;
        let name = &rest[..open];
        let (class, experimenter, field, masked, width) =
            code_point(name).ok_or_else(|| format!("{text}: unknown field `{name}'"))?;
        let (value, tail) = hex_prefix(&rest[open + 1..]);
        if value.len() != width {
            return Err(format!(
                "expected to read {width} bytes but got {}",
                value.len()
            ));
        }
        let mut tail = tail;
        let mut mask = Vec::new();
        if masked {
            let slash = tail.trim_start_matches(' ').strip_prefix('/');
            let slash = slash.ok_or_else(|| format!("{text}: missing / in masked field {name}"))?;
            (mask, tail) = hex_prefix(slash);
            if mask.len() != width {
                return Err(format!("{:.2}: hex digits expected", tail));
            }
        }
        let close = tail.trim_start_matches(' ').strip_prefix(')');
        tail = close.ok_or_else(|| format!("{text}: missing ) following field {name}"))?;
        put_raw(&mut out, class, experimenter, field, masked, &value, &mask);
        rest = tail.trim_start_matches([',', ' ']);
    }
    Ok(out)
}

fn put_raw(
    out: &mut Vec<u8>,
    class: u16,
    experimenter: u32,
    field: u8,
    masked: bool,
    value: &[u8],
    mask: &[u8],
) {
    let exp = if class == 0xffff { 4 } else { 0 };
    let len = value.len() + mask.len() + exp;
    let has_mask = if masked { 0x100 } else { 0 };
    let word = u32::from(class) << 16 | u32::from(field) << 9 | has_mask | (len as u32 & 0xff);
    out.u32(word);
    if exp != 0 {
        out.u32(experimenter);
    }
    out.extend_from_slice(value);
    out.extend_from_slice(mask);
}

/// A name, or `CLASS:FIELD[:EXPERIMENTER]...`, as code point, whether masked, and width.
fn code_point(name: &str) -> Option<(u16, u32, u8, bool, usize)> {
    let (plain, masked) = match name.strip_suffix("_W") {
        Some(plain) => (plain, true),
        None => (name, false),
    };
    if plain == "NXM_NX_COOKIE" {
        return Some((super::COOKIE.0, 0, super::COOKIE.1, masked, 8));
    }
    if let Some((class, experimenter, field)) = oxm_by_name(plain) {
        let known = net_flow::Field::by_oxm(class, experimenter, field)?;
        let width = usize::from(known.info().bytes);
        return Some((class, experimenter, field, masked, width));
    }
    // A whole header in hexadecimal.
    let header = u64::from_str_radix(name, 16).ok()?;
    let (header, experimenter) = match name.len() {
        8 => (header as u32, 0),
        16 => ((header >> 32) as u32, header as u32),
        _ => return None,
    };
    let class = (header >> 16) as u16;
    let masked = header & 0x100 != 0;
    let mut len = (header & 0xff) as usize;
    if class == 0xffff {
        len = len.checked_sub(4)?;
    }
    let width = if masked { len / 2 } else { len };
    let field = (header >> 9 & 0x7f) as u8;
    Some((class, experimenter, field, masked, width))
}

/// Bytes in hexadecimal at the beginning of `s`, with spaces or dots between, and what follows.
fn hex_prefix(s: &str) -> (Vec<u8>, &str) {
    let mut bytes = Vec::new();
    let mut rest = s;
    loop {
        let tail = rest.trim_start_matches([' ', '.', '\t', '\r', '\n']);
        let pair = tail
            .get(..2)
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let Some(byte) = pair.filter(|_| !tail.starts_with('+')) else {
            return (bytes, rest);
        };
        bytes.push(byte);
        rest = &tail[2..];
    }
}
