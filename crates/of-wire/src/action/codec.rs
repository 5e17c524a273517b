//! Lists of actions and instructions on the wire: which number is which action.

use net_flow::PortNo;

use super::check::{Outer, verify, verify_nested};
use super::header::is_vlan_type;
use super::wire_nicira::{decode_nicira, encode_nicira};
use super::wire_standard::{decode_standard, encode_standard};
use super::{Action, Output, WriteMetadata};
use crate::error::{ErrorCode, NX_VENDOR, ONF_VENDOR};
use crate::version::Version;
use crate::wire::{OrCode, Put, Reader};

/// How deep actions may nest on the wire.
const MAX_DEPTH: u32 = 64;

const VENDOR: u16 = 0xffff;

/// One action's bytes, without its type and length.
pub(super) struct Raw<'a> {
    pub(super) version: Version,
    pub(super) ty: u16,
    pub(super) body: Reader<'a>,
    /// The whole length, header included.
    pub(super) len: usize,
    pub(super) depth: u32,
}

impl Raw<'_> {
    /// Demands that the action is `len` bytes long.
    pub(super) fn exactly(&self, len: usize) -> Result<(), ErrorCode> {
        if self.len == len {
            Ok(())
        } else {
            Err(ErrorCode::OfpbacBadLen)
        }
    }

    /// Demands that the action is at least `len` bytes long.
    pub(super) fn at_least(&self, len: usize) -> Result<(), ErrorCode> {
        if self.len >= len {
            Ok(())
        } else {
            Err(ErrorCode::OfpbacBadLen)
        }
    }

    /// The actions in the rest of this one.
    pub(super) fn nested(&mut self, outer: Option<Outer>) -> Result<Vec<Action>, ErrorCode> {
        let list = decode_list(self.body.rest(), self.version, self.depth + 1)?;
        verify_nested(&list, self.version, outer)?;
        Ok(list)
    }
}

/// Reads the actions that fill `bytes`, as a packet-out has them.
pub fn decode_actions(bytes: &[u8], version: Version) -> Result<Vec<Action>, ErrorCode> {
    let actions = decode_whole(bytes, version)?;
    verify(&actions, version, false)?;
    Ok(actions)
}

fn decode_whole(bytes: &[u8], version: Version) -> Result<Vec<Action>, ErrorCode> {
    if !bytes.len().is_multiple_of(8) {
        let len = bytes.len();
        warn(|| format!("OpenFlow message actions length {len} is not a multiple of 8"));
        return Err(ErrorCode::OfpbrcBadLen);
    }
    decode_list(bytes, version, 0)
}

/// Logs what is wrong with bytes that came from elsewhere, not too often.
pub(super) fn warn(text: impl FnOnce() -> String) {
    base::log_limited!(Warn, "ofp_actions", (1, 5), "{}", text().trim_end());
}

fn decode_list(bytes: &[u8], version: Version, depth: u32) -> Result<Vec<Action>, ErrorCode> {
    if depth > MAX_DEPTH {
        return Err(ErrorCode::OfpbacBadArgument);
    }
    let mut r = Reader::new(bytes);
    let mut actions = Vec::new();
    while !r.is_empty() {
        let at = bytes.len() - r.len();
        let action = decode_one(&mut r, version, depth);
        actions.push(action.inspect_err(|code| {
            warn(|| {
                let mut dump = String::new();
                crate::print::put_hex_dump(&mut dump, bytes, false);
                format!("bad action at offset {at} ({code}):\n{dump}")
            });
        })?);
    }
    Ok(actions)
}

fn decode_one(r: &mut Reader<'_>, version: Version, depth: u32) -> Result<Action, ErrorCode> {
    let bad = ErrorCode::OfpbacBadLen;
    let mut head = *r;
    let ty = head.u16().or_code(bad)?;
    let len = usize::from(head.u16().or_code(bad)?);
    if head.len() < 4 {
        return Err(bad);
    }
    let mut vendor_head = head;
    let vendor = if ty == VENDOR {
        let vendor = vendor_head.u32().or_code(bad)?;
        if vendor != NX_VENDOR && vendor != ONF_VENDOR {
            warn(|| format!("OpenFlow action has unknown vendor {vendor:#x}"));
            return Err(ErrorCode::OfpbacBadVendor);
        }
        if vendor_head.len() < 8 {
            return Err(bad);
        }
        vendor
    } else {
        0
    };
    if len < 8 || !len.is_multiple_of(8) || len > r.len() {
        return Err(bad);
    }
    let mut body = r.sub(len).or_code(bad)?;
    body.skip(4).or_code(bad)?;
    let mut raw = Raw {
        version,
        ty,
        body,
        len,
        depth,
    };
    if vendor == 0 {
        return decode_standard(&mut raw);
    }
    raw.body.skip(4).or_code(bad)?;
    raw.ty = raw.body.u16().or_code(bad)?;
    decode_nicira(&mut raw, vendor)
}

/// Appends the actions.  Instructions among them are written only in OpenFlow 1.0, where
/// Nicira's actions stand for some of them.
pub fn encode_actions(out: &mut Vec<u8>, actions: &[Action], version: Version) {
    for action in actions {
        encode_one(out, action, version);
    }
}

pub(super) fn encode_one(out: &mut Vec<u8>, action: &Action, version: Version) {
    if !encode_standard(out, action, version) {
        encode_nicira(out, action, version);
    }
}

const GOTO_TABLE: u16 = 1;
const WRITE_METADATA: u16 = 2;
const WRITE_ACTIONS: u16 = 3;
const APPLY_ACTIONS: u16 = 4;
const CLEAR_ACTIONS: u16 = 5;
const METER: u16 = 6;

/// Reads the instructions, or in OpenFlow 1.0 the actions, that fill `bytes`.
pub fn decode_instructions(bytes: &[u8], version: Version) -> Result<Vec<Action>, ErrorCode> {
    if version == Version::V10 {
        let actions = decode_whole(bytes, version)?;
        verify(&actions, version, true)?;
        return Ok(actions);
    }
    let bad = ErrorCode::OfpbicBadLen;
    if !bytes.len().is_multiple_of(8) {
        let len = bytes.len();
        warn(|| format!("OpenFlow message instructions length {len} is not a multiple of 8"));
        return Err(bad);
    }
    // By type, so that they come out in the order in which they are carried out.
    let mut found: [Option<Reader<'_>>; 7] = [None; 7];
    let mut r = Reader::new(bytes);
    while !r.is_empty() {
        let mut head = r;
        let ty = head.u16().or_code(bad)?;
        let len = usize::from(head.u16().or_code(bad)?);
        if len < 8 || !len.is_multiple_of(8) {
            return Err(bad);
        }
        let mut body = r.sub(len).or_code(bad)?;
        body.skip(4).or_code(bad)?;
        let fits = match ty {
            GOTO_TABLE | CLEAR_ACTIONS => len == 8,
            METER if version < Version::V15 => len == 8,
            WRITE_METADATA => len == 24,
            WRITE_ACTIONS | APPLY_ACTIONS => true,
            0xffff => return Err(ErrorCode::OfpbicBadExperimenter),
            _ => return Err(ErrorCode::OfpbicUnknownInst),
        };
        if !fits {
            return Err(bad);
        }
        if found[usize::from(ty)].replace(body).is_some() {
            return Err(ErrorCode::OfpbicDupInst);
        }
    }
    let actions = instructions_in_order(found, version)?;
    verify(&actions, version, true)?;
    Ok(actions)
}

fn instructions_in_order(
    mut found: [Option<Reader<'_>>; 7],
    version: Version,
) -> Result<Vec<Action>, ErrorCode> {
    let mut take = |ty: u16| found[usize::from(ty)].take();
    let mut actions = Vec::new();
    if let Some(mut r) = take(METER) {
        actions.push(Action::Meter(r.u32()?));
    }
    if let Some(mut r) = take(APPLY_ACTIONS) {
        r.skip(4)?;
        actions.extend(decode_list(r.rest(), version, 0)?);
    }
    if take(CLEAR_ACTIONS).is_some() {
        actions.push(Action::ClearActions);
    }
    if let Some(mut r) = take(WRITE_ACTIONS) {
        r.skip(4)?;
        let list = decode_list(r.rest(), version, 1)?;
        if !list.iter().all(fits_action_set) {
            return Err(ErrorCode::OfpbacBadType);
        }
        verify_nested(&list, version, Some(Outer::WriteActions))?;
        actions.push(Action::WriteActions(list));
    }
    if let Some(mut r) = take(WRITE_METADATA) {
        r.skip(4)?;
        let (value, mask) = (r.u64()?, r.u64()?);
        actions.push(Action::WriteMetadata(WriteMetadata { value, mask }));
    }
    if let Some(mut r) = take(GOTO_TABLE) {
        actions.push(Action::GotoTable(r.u8()?));
    }
    Ok(actions)
}

/// Whether an action may be in an action set.
pub(super) const fn fits_action_set(action: &Action) -> bool {
    !matches!(
        action,
        Action::Bundle(_)
            | Action::CheckPktLarger(_)
            | Action::Conjunction(_)
            | Action::CtClear
            | Action::Controller(_)
            | Action::Enqueue(_)
            | Action::Exit
            | Action::UnrollXlate { .. }
            | Action::FinTimeout(_)
            | Action::Learn(_)
            | Action::Meter(_)
            | Action::Multipath(_)
            | Action::Note(_)
            | Action::OutputReg(_)
            | Action::OutputTrunc(_)
            | Action::PopQueue
            | Action::Sample(_)
            | Action::StackPop(_)
            | Action::StackPush(_)
            | Action::DebugRecirc
            | Action::DebugSlow
            | Action::DeleteField(_)
            | Action::ClearActions
            | Action::WriteActions(_)
            | Action::WriteMetadata(_)
            | Action::GotoTable(_)
    )
}

fn is_instruction(action: &Action, version: Version) -> bool {
    match action {
        Action::Meter(_) => version < Version::V15,
        Action::ClearActions
        | Action::WriteActions(_)
        | Action::WriteMetadata(_)
        | Action::GotoTable(_) => true,
        _ => false,
    }
}

/// Appends the instructions, or in OpenFlow 1.0 the actions.
pub fn encode_instructions(out: &mut Vec<u8>, actions: &[Action], version: Version) {
    if version == Version::V10 {
        return encode_actions(out, actions, version);
    }
    let mut rest = actions;
    while let Some(action) = rest.first() {
        let start = out.len();
        if !is_instruction(action, version) {
            out.u16(APPLY_ACTIONS);
            out.zeros(6);
            let end = rest.iter().position(|a| is_instruction(a, version));
            let (apply, tail) = rest.split_at(end.unwrap_or(rest.len()));
            encode_actions(out, apply, version);
            rest = tail;
        } else {
            encode_instruction(out, action, version);
            rest = &rest[1..];
        }
        let len = out.len() - start;
        if len > 0 {
            out.set_u16(start + 2, len as u16);
        }
    }
}

fn encode_instruction(out: &mut Vec<u8>, action: &Action, version: Version) {
    match action {
        Action::Meter(id) if version >= Version::V13 => {
            out.u16(METER);
            out.u16(0);
            out.u32(*id);
        }
        Action::ClearActions => {
            out.u16(CLEAR_ACTIONS);
            out.zeros(6);
        }
        // Writing nothing is doing nothing.
        Action::WriteActions(list) if !list.is_empty() => {
            out.u16(WRITE_ACTIONS);
            out.zeros(6);
            encode_actions(out, list, version);
        }
        Action::WriteMetadata(a) => {
            out.u16(WRITE_METADATA);
            out.zeros(6);
            out.u64(a.value);
            out.u64(a.mask);
        }
        Action::GotoTable(table) => {
            out.u16(GOTO_TABLE);
            out.u16(0);
            out.u8(*table);
            out.zeros(3);
        }
        _ => {}
    }
}

/// The port and maximum length of an output action.
pub(super) fn output(port: PortNo, max_len: u16) -> Result<Action, ErrorCode> {
    super::check::check_output_port(port, PortNo::MAX.0)?;
    Ok(Action::Output(Output { port, max_len }))
}

/// An Ethernet type for a new VLAN tag.
pub(super) fn vlan_type(ty: u16) -> Result<u16, ErrorCode> {
    if is_vlan_type(ty) {
        Ok(ty)
    } else {
        Err(ErrorCode::OfpbacBadArgument)
    }
}
