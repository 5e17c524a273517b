//! `learn(...)`.

use std::fmt::Write;

use net_flow::field::Access;
use net_flow::formats::full_mask;
use net_flow::text::num::{c_int, wide_int};
use net_flow::text::value::put_alt_hex;
use net_flow::text::{KeyValues, subfield, value};
use net_flow::{Names, Subfield};

use super::field::parse_move_parts;
use super::text::{atoi, parse_table, put_table};
use super::{Action, Parser};
use crate::message::FlowModFlags;
use crate::oxm::nxm_header;

/// `learn(...)`: a rule made from the packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Learn {
    /// Seconds of disuse after which the rule goes, 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the rule goes, 0 for never.
    pub hard_timeout: u16,
    /// As in `fin_timeout`.
    pub fin_idle_timeout: u16,
    /// As in `fin_timeout`.
    pub fin_hard_timeout: u16,
    /// Priority of the rule.
    pub priority: u16,
    /// Table of the rule.
    pub table: u8,
    /// Cookie of the rule.
    pub cookie: u64,
    /// Flags of the rule (`send_flow_rem` only).
    pub flags: FlowModFlags,
    /// The learned rules go when this rule goes.
    pub delete_learned: bool,
    /// At most so many rules with this cookie and table, 0 for no limit.
    pub limit: u32,
    /// One bit that takes whether the limit allowed the rule.
    pub result_dst: Option<Subfield>,
    /// It came in the second form, and goes out so too.
    pub v2: bool,
    /// What the rule matches and does.
    pub specs: Box<[LearnSpec]>,
}

/// One part of a learned rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LearnSpec {
    /// How many bits.
    pub bits: u16,
    /// Where the value comes from.
    pub src: LearnSrc,
    /// What the value is for.
    pub dst: LearnDst,
}

/// Where the value of a learned part comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LearnSrc {
    /// From the packet.
    Field(Subfield),
    /// A constant, right-justified.
    Immediate(u128),
}

/// What the value of a learned part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LearnDst {
    /// The rule matches it.
    Match(Subfield),
    /// The rule writes it.
    Load(Subfield),
    /// The rule sends to it.
    Output,
}

pub(super) fn parse(arg: &str, p: &Parser<'_>) -> Result<Action, String> {
    let mut a = Learn {
        idle_timeout: 0,
        hard_timeout: 0,
        fin_idle_timeout: 0,
        fin_hard_timeout: 0,
        priority: 32768,
        table: 1,
        cookie: 0,
        flags: FlowModFlags::empty(),
        delete_learned: false,
        limit: 0,
        result_dst: None,
        v2: false,
        specs: Box::default(),
    };
    let mut specs = Vec::new();
    for kv in KeyValues::new(arg) {
        match kv.key {
            "table" => {
                let table = parse_table(kv.value, p.names);
                a.table = table.ok_or_else(|| format!("unknown table \"{}\"", kv.value))?;
                if a.table == 255 {
                    return Err(format!("{arg}: table id 255 not valid for `learn' action"));
                }
            }
            "priority" => a.priority = atoi(kv.value) as u16,
            "idle_timeout" => a.idle_timeout = atoi(kv.value) as u16,
            "hard_timeout" => a.hard_timeout = atoi(kv.value) as u16,
            "fin_idle_timeout" => a.fin_idle_timeout = atoi(kv.value) as u16,
            "fin_hard_timeout" => a.fin_hard_timeout = atoi(kv.value) as u16,
            "cookie" => a.cookie = c_int(kv.value, 0).map_or(0, |n| n.magnitude),
            "send_flow_rem" => a.flags |= FlowModFlags::SEND_FLOW_REM,
            "delete_learned" => a.delete_learned = true,
            "limit" => a.limit = atoi(kv.value) as u32,
            "result_dst" => {
                let dst = subfield::parse(kv.value)?;
                if dst.field.info().access == Access::ReadOnly {
                    return Err(format!("{} is read-only", kv.value));
                }
                if dst.bits != 1 {
                    return Err("result_dst in 'learn' action must be a single bit".to_owned());
                }
                a.result_dst = Some(dst);
            }
            _ => specs.push(parse_spec(arg, kv.key, kv.value, p.names)?),
        }
    }
    a.specs = specs.into();
    Ok(Action::Learn(Box::new(a)))
}

fn need_nxm(arg: &str, text: &str, part: Subfield) -> Result<Subfield, String> {
    if nxm_header(part.field) == 0 {
        return Err(format!(
            "{arg}: experimenter OXM field '{text}' not supported"
        ));
    }
    Ok(part)
}

fn parse_spec(arg: &str, name: &str, text: &str, names: &Names) -> Result<LearnSpec, String> {
    if let Ok(dst) = subfield::parse(name) {
        let dst = need_nxm(arg, name, dst)?;
        return Ok(LearnSpec {
            bits: dst.bits,
            src: match_source(arg, name, text, dst, names)?,
            dst: LearnDst::Match(dst),
        });
    }
    match name {
        "load" => parse_load(name, text),
        "output" => {
            let src = subfield::parse(text)?;
            Ok(LearnSpec {
                bits: src.bits,
                src: LearnSrc::Field(src),
                dst: LearnDst::Output,
            })
        }
        _ => Err(format!("{arg}: unknown keyword {name}")),
    }
}

fn match_source(
    arg: &str,
    name: &str,
    text: &str,
    dst: Subfield,
    names: &Names,
) -> Result<LearnSrc, String> {
    if text.is_empty() {
        return Ok(LearnSrc::Field(dst));
    }
    let field_error = match subfield::parse(text) {
        Ok(src) if src.bits == dst.bits => return Ok(LearnSrc::Field(src)),
        Ok(src) => {
            return Err(format!(
                "{arg}: bit widths of {name} ({}) and {text} ({}) differ",
                src.bits, dst.bits
            ));
        }
        Err(error) => error,
    };
    immediate(arg, text, dst, names)
        .map(LearnSrc::Immediate)
        .map_err(|error| {
            format!(
                "{arg}: {name} value {text} cannot be parsed as a subfield ({field_error}) or \
                 an immediate value ({error})"
            )
        })
}

fn immediate(arg: &str, text: &str, dst: Subfield, names: &Names) -> Result<u128, String> {
    if dst.is_whole() {
        return value::parse_exact(dst.field, text, names);
    }
    let bytes = dst.field.info().bytes;
    let number = match wide_int(text, bytes) {
        Ok((number, "")) => number,
        _ => return Err(format!("{arg}: cannot parse integer value")),
    };
    if number & !dst.mask() != 0 {
        let mut shown = String::new();
        value::put(&mut shown, dst.field, number, full_mask(bytes), names);
        return Err(format!(
            "{arg}: value {shown} does not fit into {} bits",
            dst.bits
        ));
    }
    Ok(number)
}

fn parse_load(name: &str, text: &str) -> Result<LearnSpec, String> {
    let Some((source, dst_text)) = text.split_once("->") else {
        return Err(format!("{name}: missing `->' in `{text}'"));
    };
    if source.is_empty() {
        return Err(format!("{name}: missing source before `->' in `{text}'"));
    }
    let Ok((number, rest)) = wide_int(text, 128) else {
        let (src, dst) = parse_move_parts(text)?;
        return Ok(LearnSpec {
            bits: src.bits,
            src: LearnSrc::Field(src),
            dst: LearnDst::Load(dst),
        });
    };
    if !rest.starts_with("->") {
        return Err(format!("{name}: garbage before `->' in `{text}'"));
    }
    let dst = need_nxm(text, dst_text, subfield::parse(dst_text)?)?;
    if number & !dst.mask() != 0 {
        return Err(format!("{text}: value does not fit into {} bits", dst.bits));
    }
    Ok(LearnSpec {
        bits: dst.bits,
        src: LearnSrc::Immediate(number),
        dst: LearnDst::Load(dst),
    })
}

pub(super) fn put(out: &mut String, a: &Learn, names: &Names) {
    out.push_str("learn(table=");
    put_table(out, a.table, names);
    let numbers = [
        ("idle_timeout", a.idle_timeout, 0),
        ("hard_timeout", a.hard_timeout, 0),
        ("fin_idle_timeout", a.fin_idle_timeout, 0),
        ("fin_hard_timeout", a.fin_hard_timeout, 0),
        ("priority", a.priority, 32768),
    ];
    for (name, number, unsaid) in numbers {
        if number != unsaid {
            let _ = write!(out, ",{name}={number}");
        }
    }
    if a.flags.contains(FlowModFlags::SEND_FLOW_REM) {
        out.push_str(",send_flow_rem");
    }
    if a.delete_learned {
        out.push_str(",delete_learned");
    }
    if a.cookie != 0 {
        let _ = write!(out, ",cookie={:#x}", a.cookie);
    }
    if a.limit != 0 {
        let _ = write!(out, ",limit={}", a.limit);
    }
    if let Some(dst) = a.result_dst {
        out.push_str(",result_dst=");
        subfield::put(out, dst);
    }
    for spec in &a.specs {
        out.push(',');
        put_spec(out, spec, names);
    }
    out.push(')');
}

fn put_spec(out: &mut String, spec: &LearnSpec, names: &Names) {
    match (spec.src, spec.dst) {
        (LearnSrc::Immediate(imm), LearnDst::Match(dst)) if dst.is_whole() => {
            let _ = write!(out, "{}=", dst.field.info().name);
            value::put(out, dst.field, imm, dst.field.full_mask(), names);
        }
        (LearnSrc::Immediate(imm), LearnDst::Match(dst)) => {
            subfield::put(out, dst);
            out.push('=');
            put_alt_hex(out, imm);
        }
        (LearnSrc::Field(src), LearnDst::Match(dst)) => {
            subfield::put(out, dst);
            if (src.field, src.offset) != (dst.field, dst.offset) {
                out.push('=');
                subfield::put(out, src);
            }
        }
        (src, LearnDst::Load(dst)) => {
            out.push_str("load:");
            match src {
                LearnSrc::Immediate(imm) => put_alt_hex(out, imm),
                LearnSrc::Field(src) => subfield::put(out, src),
            }
            out.push_str("->");
            subfield::put(out, dst);
        }
        (LearnSrc::Field(src), LearnDst::Output) => {
            out.push_str("output:");
            subfield::put(out, src);
        }
        (LearnSrc::Immediate(_), LearnDst::Output) => {}
    }
}
