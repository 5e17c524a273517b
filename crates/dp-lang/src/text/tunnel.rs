//! `tunnel(...)` as text.

use std::fmt::Write as _;

use net_flow::slot::{self, Slot};
use net_flow::types::tunnel_flag;
use net_flow::{FlowKey, FlowMask};

use super::cursor::{Cursor, parse_number};
use super::field::{self, format_flags, format_flags_masked, hex};
use super::parse_key::FlowText;
use super::parse_key::{flags, mask_after};
use crate::tunnel::{self, GeneveOption, OPTION_HEADER};

/// Prints `tunnel(...)`; without a mask, fields that are zero are left out.
pub(super) fn put_tunnel(key: &FlowKey, mask: Option<&FlowMask>, verbose: bool, out: &mut String) {
    *out += "tunnel(";
    // A field that is zero in the key is no part of it.
    let mut present = FlowMask::new();
    for entry in field::TUNNEL.fields {
        let is_key = entry.slot == slot::TUN_ID
            && key.get(slot::TUN_FLAGS) & u128::from(tunnel_flag::KEY) != 0;
        if key.get(entry.slot) != 0 || is_key || entry.slot == slot::TUN_TTL {
            let bits = mask.map_or(entry.slot.max(), |m| m.get(entry.slot));
            present.set(entry.slot, bits);
        }
    }
    field::TUNNEL.put_fields(key, Some(&present), false, out);
    if !out.ends_with('(') {
        out.push(',');
    }
    put_gbp(key, mask, out);
    put_geneve(key, mask, verbose, out);
    put_erspan(key, mask, verbose, out);
    let flags = key.get(slot::TUN_FLAGS);
    match mask.map(|m| m.get(slot::TUN_FLAGS) & u128::from(tunnel_flag::ALL)) {
        None => {
            let text = format_flags(field::TUNNEL_FLAGS, flags, '|');
            let _ = write!(out, "flags({text})");
        }
        Some(0) if !verbose => {}
        Some(bits) => {
            let text = format_flags_masked(field::TUNNEL_FLAGS, flags, bits);
            let _ = write!(out, "flags({text})");
        }
    }
    if out.ends_with(',') {
        out.pop();
    }
    out.push(')');
}

fn put_gbp(key: &FlowKey, mask: Option<&FlowMask>, out: &mut String) {
    let gbp = |slot: Slot| (key.get(slot), mask.map_or(slot.max(), |m| m.get(slot)));
    let ((id, id_mask), (flags, flags_mask)) = (gbp(slot::TUN_GBP_ID), gbp(slot::TUN_GBP_FLAGS));
    if (id != 0 || flags != 0) && (id_mask != 0 || flags_mask != 0) {
        let _ = write!(out, "vxlan(gbp(id={id}");
        if id_mask != slot::TUN_GBP_ID.max() {
            let _ = write!(out, "/{}", hex(id_mask));
        }
        let _ = write!(out, ",flags={}", hex(flags));
        if flags_mask != slot::TUN_GBP_FLAGS.max() {
            let _ = write!(out, "/{}", hex(flags_mask));
        }
        *out += ")),";
    }
}

/// A number of an option.
struct Number {
    name: &'static str,
    value: u128,
    mask: u128,
    full: u128,
    is_hex: bool,
}

impl Number {
    /// Prints `name=value/mask,` unless nothing of it matters.
    fn put(&self, verbose: bool, out: &mut String) {
        if self.mask == 0 && !verbose {
            return;
        }
        let value = if self.is_hex {
            hex(self.value)
        } else {
            self.value.to_string()
        };
        let _ = write!(out, "{}={value}", self.name);
        if self.mask != self.full {
            let _ = write!(out, "/{}", hex(self.mask));
        }
        out.push(',');
    }
}

/// Bytes as one hexadecimal number.
fn put_hex(bytes: &[u8], out: &mut String) {
    let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let digits = text.trim_start_matches('0');
    let _ = write!(out, "0x{}", if digits.is_empty() { "0" } else { digits });
}

fn put_geneve(key: &FlowKey, mask: Option<&FlowMask>, verbose: bool, out: &mut String) {
    let options = tunnel::options(key);
    if options.is_empty() {
        return;
    }
    let bits = match mask {
        Some(mask) => tunnel::options_mask(key, mask),
        None => vec![0xff; options.len()],
    };
    *out += "geneve(";
    let mut at = 0;
    for option in tunnel::iter(&options) {
        let len = OPTION_HEADER + option.data.len();
        put_option(&option, &bits[at..at + len], verbose, out);
        at += len;
    }
    let rest = options.len() - at;
    if rest > 0 && rest < OPTION_HEADER {
        let _ = write!(out, "opt len {rest} less than minimum {OPTION_HEADER}");
    } else if rest > 0 {
        let len = OPTION_HEADER + usize::from(options[at + 3] & 0x1f) * 4;
        let _ = write!(out, "opt len {len} greater than remaining {rest}");
    }
    *out += "),";
}

fn put_option(option: &GeneveOption<'_>, bits: &[u8], verbose: bool, out: &mut String) {
    let [c0, c1, kind, length, data_bits @ ..] = bits else {
        return;
    };
    let length = length & 0x1f;
    out.push('{');
    for number in [
        Number {
            name: "class",
            value: u128::from(option.class),
            mask: u128::from(u16::from_be_bytes([*c0, *c1])),
            full: 0xffff,
            is_hex: true,
        },
        Number {
            name: "type",
            value: u128::from(option.kind),
            mask: u128::from(*kind),
            full: 0xff,
            is_hex: true,
        },
        Number {
            name: "len",
            value: option.data.len() as u128,
            mask: u128::from(if length == 0x1f { 0xff } else { length }),
            full: 0xff,
            is_hex: false,
        },
    ] {
        number.put(verbose, out);
    }
    let matters = verbose || data_bits.iter().any(|b| *b != 0);
    if !option.data.is_empty() && matters {
        put_hex(option.data, out);
        if data_bits.iter().any(|b| *b != 0xff) {
            out.push('/');
            put_hex(data_bits, out);
        }
    } else if out.ends_with(',') {
        out.pop();
    }
    out.push('}');
}

fn put_erspan(key: &FlowKey, mask: Option<&FlowMask>, verbose: bool, out: &mut String) {
    let version = key.get(slot::TUN_ERSPAN_VER);
    if version == 0 {
        return;
    }
    let number = |name, slot: Slot, is_hex| Number {
        name,
        value: key.get(slot),
        mask: mask.map_or(slot.max(), |m| m.get(slot)),
        full: slot.max(),
        is_hex,
    };
    *out += "erspan(";
    number("ver", slot::TUN_ERSPAN_VER, false).put(verbose, out);
    if version == 1 {
        let index = key.get(slot::TUN_ERSPAN_IDX);
        let _ = write!(out, "idx={}", hex(index));
        if let Some(mask) = mask {
            let _ = write!(out, "/{}", hex(mask.get(slot::TUN_ERSPAN_IDX)));
        }
    } else {
        number("dir", slot::TUN_ERSPAN_DIR, false).put(verbose, out);
        number("hwid", slot::TUN_ERSPAN_HWID, true).put(verbose, out);
        if out.ends_with(',') {
            out.pop();
        }
    }
    *out += "),";
}

/// Reads what follows `tunnel(`, up to and with its parenthesis.
pub(super) fn parse_tunnel(cursor: &mut Cursor<'_>, flow: &mut FlowText) -> Option<()> {
    loop {
        cursor.skip_delimiters();
        if cursor.eat(")") {
            return Some(());
        }
        if cursor.eat("flags(") {
            flags(cursor, field::TUNNEL_FLAGS, slot::TUN_FLAGS, 0xffff, flow)?;
        } else if cursor.eat("vxlan(gbp(id=") {
            masked(cursor, slot::TUN_GBP_ID, flow)?;
            cursor.expect(",flags=")?;
            masked(cursor, slot::TUN_GBP_FLAGS, flow)?;
            cursor.expect("))")?;
        } else if cursor.eat("geneve(") {
            parse_geneve(cursor, flow)?;
        } else if cursor.eat("erspan(") {
            parse_erspan(cursor, flow)?;
        } else {
            field::TUNNEL.parse_field(cursor, &mut flow.key, &mut flow.mask)?;
        }
    }
}

fn masked(cursor: &mut Cursor<'_>, slot: Slot, flow: &mut FlowText) -> Option<()> {
    let value = parse_number(cursor.until(&[',', '/', ')']))?;
    if value > slot.max() {
        return None;
    }
    flow.key.set(slot, value);
    flow.mask.set(slot, mask_after(cursor, slot)?);
    Some(())
}

fn parse_erspan(cursor: &mut Cursor<'_>, flow: &mut FlowText) -> Option<()> {
    loop {
        cursor.skip_delimiters();
        if cursor.eat(")") {
            return Some(());
        }
        let slot = match cursor.word() {
            "ver" => slot::TUN_ERSPAN_VER,
            "idx" => slot::TUN_ERSPAN_IDX,
            "dir" => slot::TUN_ERSPAN_DIR,
            "hwid" => slot::TUN_ERSPAN_HWID,
            _ => return None,
        };
        cursor.expect("=")?;
        masked(cursor, slot, flow)?;
    }
}

/// Bytes from a hexadecimal number, which is `len` bytes long.
fn parse_hex(text: &str, len: usize) -> Option<Vec<u8>> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))?;
    let padded = format!("{digits:0>width$}", width = len * 2);
    if padded.len() > len * 2 || !padded.is_ascii() {
        return None;
    }
    let byte = |i: usize| u8::from_str_radix(padded.get(i * 2..i * 2 + 2)?, 16).ok();
    (0..len).map(byte).collect()
}

fn parse_geneve(cursor: &mut Cursor<'_>, flow: &mut FlowText) -> Option<()> {
    let (mut bytes, mut bits) = (Vec::new(), Vec::new());
    while cursor.eat("{") {
        parse_option(cursor, &mut bytes, &mut bits)?;
        cursor.skip_delimiters();
    }
    cursor.expect(")")?;
    if bytes.len() > tunnel::MAX_OPTIONS {
        return None;
    }
    tunnel::set_options(&mut flow.key, &bytes);
    tunnel::set_options_mask(&mut flow.mask, &bits);
    Some(())
}

fn parse_option(cursor: &mut Cursor<'_>, bytes: &mut Vec<u8>, bits: &mut Vec<u8>) -> Option<()> {
    let (mut class, mut kind, mut len) = ((0, 0), (0, 0), (0, 0));
    let mut data = None;
    loop {
        cursor.skip_delimiters();
        if cursor.eat("}") {
            break;
        }
        if cursor.0.starts_with("0x") {
            let value = cursor.until(&['}', '/', ',']);
            let mask = if cursor.eat("/") {
                Some(cursor.until(&['}', ',']))
            } else {
                None
            };
            data = Some((value, mask));
            continue;
        }
        let (place, full) = match cursor.word() {
            "class" => (&mut class, 0xffff),
            "type" => (&mut kind, 0xff),
            "len" => (&mut len, 0xff),
            _ => return None,
        };
        cursor.expect("=")?;
        let value = parse_number(cursor.until(&[',', '/', '}']))?;
        let mask = if cursor.eat("/") {
            parse_number(cursor.until(&[',', '}']))?
        } else {
            full
        };
        if value > full {
            return None;
        }
        *place = (value, mask & full);
    }
    let size = len.0 as usize;
    if size > 124 || !size.is_multiple_of(4) {
        return None;
    }
    bytes.extend((class.0 as u16).to_be_bytes());
    bytes.extend([kind.0 as u8, (size / 4) as u8]);
    bits.extend((class.1 as u16).to_be_bytes());
    bits.extend([kind.1 as u8, (len.1 & 0x1f) as u8]);
    match data {
        None => {
            bytes.extend(vec![0; size]);
            bits.extend(vec![0; size]);
        }
        Some((value, mask)) => {
            bytes.extend(parse_hex(value, size)?);
            bits.extend(match mask {
                Some(mask) => parse_hex(mask, size)?,
                None => vec![0xff; size],
            });
        }
    }
    Some(())
}
