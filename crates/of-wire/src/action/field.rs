//! Actions that write fields: `set_field`, `load`, `move`, `push`, `pop`, `delete_field`.

use std::fmt::Write;

use net_flow::field::Access;
use net_flow::formats::{full_mask, usable_for};
use net_flow::text::num::wide_int;
use net_flow::text::{subfield, value};
use net_flow::{Field, Names, Subfield};

use super::{Action, Parser};

/// `set_field:VALUE[/MASK]->FIELD` and `load:VALUE->FIELD[]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetField {
    /// What is written.
    pub field: Field,
    /// The value, right-justified in the field's bytes; 0 where `mask` is 0.
    pub value: u128,
    /// The bits that are written; ones in all the field's bytes for the whole field.
    pub mask: u128,
    /// How it was said, which matters to text and bytes only.
    pub form: SetForm,
    /// The rule's match guarantees a VLAN tag (matters when writing the VLAN id in
    /// OpenFlow 1.0 and 1.1, where that can add a tag).
    pub flow_has_vlan: bool,
}

/// How a write of a field is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetForm {
    /// OpenFlow's `set_field`.
    SetField,
    /// Nicira's `load`.
    Load,
    /// Nicira's second `load`, whose text is `set_field`.
    Load2,
}

/// `move:SRC->DST`; both have the same number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// Read here.
    pub src: Subfield,
    /// Written here.
    pub dst: Subfield,
    /// Said in OpenFlow 1.3's extension (ONF's `copy_field`), which matters to bytes only.
    pub onf: bool,
}

impl SetField {
    /// The runs of bits that it writes, at most 64 long each, and their values.
    pub fn segments(&self) -> Vec<(Subfield, u64)> {
        let width = self.field.info().bits;
        let set = |bit: u16| bit < width && self.mask >> bit & 1 != 0;
        let mut segments = Vec::new();
        let mut offset = 0;
        while offset < width {
            if !set(offset) {
                offset += 1;
                continue;
            }
            let end = (offset + 1..width.min(offset + 64)).find(|bit| !set(*bit));
            let bits = end.unwrap_or(width.min(offset + 64)) - offset;
            let part = Subfield {
                field: self.field,
                offset,
                bits,
            };
            let value = ((self.value >> offset) & part.mask()) as u64;
            segments.push((part, value));
            offset += bits;
        }
        segments
    }

    /// Whether it writes the whole field.
    pub fn is_whole(&self) -> bool {
        self.mask == self.field.full_mask()
    }
}

/// Cuts `VALUE->FIELD`.
pub(super) fn split_arrow(arg: &str) -> Result<(&str, &str), String> {
    let (value, dst) = arg
        .split_once("->")
        .ok_or_else(|| format!("{arg}: missing `->'"))?;
    if dst.is_empty() {
        return Err(format!("{arg}: missing field name following `->'"));
    }
    Ok((value, dst))
}

/// The error for fields that have no place of their own yet.
fn placed(field: Field) -> Result<Field, String> {
    match field.info().slot {
        Some(_) => Ok(field),
        None => Err(format!(
            "{}: tunnel metadata is not supported yet",
            field.info().name
        )),
    }
}

pub(super) fn parse_set_field(arg: &str, p: &mut Parser<'_>) -> Result<Action, String> {
    let (text, name) = split_arrow(arg)?;
    let unknown = || format!("{name} is not a valid OXM field name");
    let field = Field::by_name(name).ok_or_else(unknown)?;
    if field.info().access == Access::ReadOnly {
        return Err(format!("{name} is read-only"));
    }
    let field = placed(field)?;
    let (value, mask) = value::parse(field, text, p.names)?;
    if !field.allows_value(value) {
        return Err(format!("{text} is not a valid value for field {name}"));
    }
    p.formats &= usable_for(field, field.full_mask());
    Ok(Action::SetField(Box::new(SetField {
        field,
        value: value & mask,
        mask,
        form: SetForm::SetField,
        flow_has_vlan: false,
    })))
}

pub(super) fn parse_load(arg: &str) -> Result<Action, String> {
    let (text, dst) = split_arrow(arg)?;
    let dst = subfield::parse(dst)?;
    let field = placed(dst.field)?;
    let info = field.info();
    let number = wide_int(text, info.bytes);
    let (number, _) = number.map_err(|_| format!("{arg}: cannot parse integer value"))?;
    if number & !dst.mask() != 0 {
        let mut shown = String::new();
        let full = full_mask(info.bytes);
        value::put(&mut shown, field, number, full, &Names::default());
        return Err(format!(
            "{arg}: value {shown} does not fit into {} bits",
            dst.bits
        ));
    }
    let mask = if dst.is_whole() {
        field.full_mask()
    } else {
        dst.mask() << dst.offset
    };
    Ok(Action::SetField(Box::new(SetField {
        field,
        value: number << dst.offset,
        mask,
        form: SetForm::Load,
        flow_has_vlan: false,
    })))
}

/// `SRC->DST` of equal width.
pub(super) fn parse_move_parts(arg: &str) -> Result<(Subfield, Subfield), String> {
    let (src, rest) = subfield::parse_prefix(arg)?;
    let rest = rest.strip_prefix("->");
    let rest = rest.ok_or_else(|| format!("{arg}: missing `->' following source"))?;
    let dst = subfield::parse(rest)?;
    if src.bits != dst.bits {
        return Err(format!(
            "{arg}: source field is {} bits wide but destination is {} bits wide",
            src.bits, dst.bits
        ));
    }
    Ok((src, dst))
}

pub(super) fn parse_move(arg: &str) -> Result<Action, String> {
    let (src, dst) = parse_move_parts(arg)?;
    placed(src.field)?;
    placed(dst.field)?;
    Ok(Action::Move(Move {
        src,
        dst,
        onf: false,
    }))
}

pub(super) fn parse_stack(arg: &str) -> Result<Subfield, String> {
    let (part, rest) = subfield::parse_prefix(arg)?;
    if !rest.is_empty() {
        return Err(format!("{rest}: trailing garbage following push or pop"));
    }
    placed(part.field)?;
    Ok(part)
}

pub(super) fn parse_delete(arg: &str) -> Result<Action, String> {
    let field = subfield::field_by_any_name(arg);
    field
        .map(Action::DeleteField)
        .ok_or_else(|| format!("{arg}: unknown field `{arg}'"))
}

pub(super) fn put_set_field(out: &mut String, a: &SetField, names: &Names) {
    if a.form != SetForm::Load {
        out.push_str("set_field:");
        value::put(out, a.field, a.value, a.mask, names);
        let _ = write!(out, "->{}", a.field.info().name);
        return;
    }
    for (i, (part, value)) in a.segments().into_iter().enumerate() {
        out.push_str(if i > 0 { ",load:" } else { "load:" });
        value::put_alt_hex(out, u128::from(value));
        out.push_str("->");
        subfield::put(out, part);
    }
}

pub(super) fn put_move(out: &mut String, a: &Move) {
    out.push_str("move:");
    subfield::put(out, a.src);
    out.push_str("->");
    subfield::put(out, a.dst);
}

pub(super) fn put_stack(out: &mut String, name: &str, part: Subfield) {
    let _ = write!(out, "{name}:");
    subfield::put(out, part);
}
