//! Parts of fields in text.

use std::fmt::Write;

use super::num::c_int;
use crate::field::{Field, OxmId};
use crate::oxm_names::NAMES;
use crate::subfield::Subfield;

/// The field that is called `name`, by its own name or that of a code point.
pub fn field_by_any_name(name: &str) -> Option<Field> {
    if let Some((class, experimenter, number, _)) = NAMES.iter().find(|(.., n)| *n == name) {
        return Field::by_oxm(*class, *experimenter, *number);
    }
    Field::by_name(name)
}

/// The code point that is called `name`.
pub fn oxm_by_name(name: &str) -> Option<(u16, u32, u8)> {
    let entry = NAMES.iter().find(|(.., n)| *n == name)?;
    Some((entry.0, entry.1, entry.2))
}

/// The name of a code point.
pub fn oxm_name(class: u16, experimenter: u32, field: u8) -> Option<&'static str> {
    let same = |e: &&(u16, u32, u8, &str)| (e.0, e.1, e.2) == (class, experimenter, field);
    NAMES.iter().find(same).map(|entry| entry.3)
}

/// The code point of `field` to use in OpenFlow `version` on the wire, 0 for Nicira's
/// where there is a choice; `None` if the field has none.
pub fn preferred_oxm(field: Field, version: u8) -> Option<&'static OxmId> {
    let mut ids = field.info().oxm.iter();
    let first = ids.next()?;
    let best = ids.filter(|id| id.version <= version && id.version > first.version);
    Some(best.max_by_key(|id| id.version).unwrap_or(first))
}

/// A part of a field at the beginning of `s`, and what follows.
pub fn parse_prefix(s: &str) -> Result<(Subfield, &str), String> {
    let len = s.find(['[', '-']).unwrap_or(s.len());
    let name = &s[..len];
    let plain = name.strip_suffix("_W").filter(|n| !n.is_empty());
    let field = field_by_any_name(plain.unwrap_or(name)).or_else(|| field_by_any_name(name));
    let field = field.ok_or_else(|| format!("{s}: unknown field `{name}'"))?;
    let width = i64::from(field.info().bits);
    let (mut start, mut end) = (0, width - 1);
    let mut rest = &s[len..];
    if rest.starts_with('[') {
        let Some((from, to, tail)) = range(rest) else {
            return Err(format!(
                "{s}: syntax error expecting [] or [<bit>] or [<start>..<end>]"
            ));
        };
        (start, end) = (from.unwrap_or(start), to.or(from).unwrap_or(end));
        rest = tail;
    }
    if start > end {
        return Err(format!(
            "{s}: starting bit {start} is after ending bit {end}"
        ));
    }
    let fault = |what: &str, bit| {
        format!("{s}: {what} bit {bit} is not valid because field is only {width} bits wide")
    };
    if start >= width || start < 0 {
        return Err(fault("starting", start));
    }
    if end >= width {
        return Err(fault("ending", end));
    }
    let part = Subfield {
        field,
        offset: start as u16,
        bits: (end - start + 1) as u16,
    };
    Ok((part, rest))
}

/// `[]`, `[BIT]` or `[START..END]` at the beginning of `s`: start, end, and what follows.
fn range(s: &str) -> Option<(Option<i64>, Option<i64>, &str)> {
    if let Some(rest) = s.strip_prefix("[]") {
        return Some((None, None, rest));
    }
    let number = |s| {
        let n = c_int(s, 10)?;
        let value = i64::try_from(n.magnitude).ok()?;
        Some((if n.negative { -value } else { value }, n.rest))
    };
    let (start, rest) = number(s.strip_prefix('[')?)?;
    if let Some(rest) = rest.strip_prefix(']') {
        return Some((Some(start), None, rest));
    }
    let (end, rest) = number(rest.strip_prefix("..")?)?;
    Some((Some(start), Some(end), rest.strip_prefix(']')?))
}

/// All of `s` as a part of a field.
pub fn parse(s: &str) -> Result<Subfield, String> {
    match parse_prefix(s)? {
        (part, "") => Ok(part),
        (_, rest) => Err(format!("{rest}: unexpected input following field syntax")),
    }
}

/// Appends a part of a field, under the name of its first code point.
pub fn put(out: &mut String, part: Subfield) {
    let info = part.field.info();
    let oxm = preferred_oxm(part.field, 0);
    let name = oxm.and_then(|id| oxm_name(id.class, id.experimenter, id.field));
    out.push_str(name.unwrap_or(info.name));
    if part.offset == 0 && part.bits == info.bits {
        out.push_str("[]");
    } else if part.bits == 1 {
        let _ = write!(out, "[{}]", part.offset);
    } else {
        let end = part.offset + part.bits - 1;
        let _ = write!(out, "[{}..{end}]", part.offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_read_and_print() {
        for (text, want) in [
            ("NXM_NX_REG0[]", "NXM_NX_REG0[]"),
            ("reg0[3]", "NXM_NX_REG0[3]"),
            ("NXM_OF_VLAN_TCI[0..11]", "NXM_OF_VLAN_TCI[0..11]"),
            ("metadata", "OXM_OF_METADATA[]"),
            ("in_port", "NXM_OF_IN_PORT[]"),
        ] {
            let mut out = String::new();
            put(&mut out, parse(text).unwrap());
            assert_eq!(out, want);
        }
    }

    #[test]
    fn errors_are_those_that_scripts_know() {
        for (text, want) in [
            ("x[]", "x[]: unknown field `x'"),
            (
                "reg0[5..3]",
                "reg0[5..3]: starting bit 5 is after ending bit 3",
            ),
            (
                "reg0[0..32]",
                "reg0[0..32]: ending bit 32 is not valid because field is only 32 bits wide",
            ),
            (
                "reg0[a]",
                "reg0[a]: syntax error expecting [] or [<bit>] or [<start>..<end>]",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), want);
        }
    }
}
