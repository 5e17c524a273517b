//! Nicira's and ONF's actions on the wire (`nicira-ext.h`).

use net_flow::field::Access;
use net_flow::{Field, PortNo, Subfield};

use super::check::{Outer, check_dst, check_members, check_src};
use super::codec::Raw;
use super::header::is_mpls_type;
use super::{
    Action, Bundle, BundleAlgorithm, CheckPktLarger, Conjunction, FinTimeout, HashFields,
    Multipath, MultipathAlgorithm, OutputReg, OutputTrunc, Resubmit, SetField, SetForm,
    WriteMetadata, wire_nested, wire_standard,
};
use crate::error::{ErrorCode, NX_VENDOR, ONF_VENDOR};
use crate::oxm::{
    field_of_nxm, nxm_header, pull_action_field, pull_entry, put_action_header, put_entry,
};
use crate::version::Version;
use crate::wire::{Put, Reader};

fn argument(ok: bool) -> Result<(), ErrorCode> {
    if ok {
        Ok(())
    } else {
        Err(ErrorCode::OfpbacBadArgument)
    }
}

fn zero(ok: bool) -> Result<(), ErrorCode> {
    if ok {
        Ok(())
    } else {
        Err(ErrorCode::NxbrcMustBeZero)
    }
}

/// A part of a field from offset and width in 16 bits, and Nicira's header.
pub(super) fn part(ofs_nbits: u16, nxm: u32) -> Result<Subfield, ErrorCode> {
    Ok(Subfield {
        field: placed(field_of_nxm(nxm)?)?,
        offset: ofs_nbits >> 6,
        bits: (ofs_nbits & 0x3f) + 1,
    })
}

/// A field that has a place in keys.
fn placed(field: Field) -> Result<Field, ErrorCode> {
    match field.info().slot {
        Some(_) => Ok(field),
        None => Err(ErrorCode::OfpbacBadSetType),
    }
}

pub(super) const fn ofs_nbits(part: Subfield) -> u16 {
    (part.offset << 6) | (part.bits - 1)
}

pub(super) fn decode_nicira(raw: &mut Raw<'_>, vendor: u32) -> Result<Action, ErrorCode> {
    if vendor == ONF_VENDOR {
        let version = raw.version == Version::V13 || raw.version == Version::V14;
        if raw.ty != 3200 || !version {
            return Err(ErrorCode::OfpbacBadVendorType);
        }
        raw.at_least(24)?;
        return wire_standard::decode_copy_field(raw.body, true);
    }
    if let Some(result) = decode_of10(raw) {
        return result;
    }
    let mut r = raw.body;
    match raw.ty {
        1 | 2 | 9 | 14 | 44 | 5 | 17 | 43 | 254 | 255 => decode_simple(raw),
        6 if raw.version < Version::V15 => {
            raw.at_least(24)?;
            decode_move(raw.body)
        }
        7 if raw.version < Version::V15 => {
            raw.exactly(24)?;
            decode_load(raw.body)
        }
        33 if raw.version < Version::V15 => {
            raw.at_least(16)?;
            decode_load2(raw.body)
        }
        8 => Ok(Action::Note(r.rest().into())),
        10 => {
            raw.exactly(32)?;
            decode_multipath(raw.body)
        }
        12 | 13 => {
            raw.at_least(32)?;
            decode_bundle(raw.body, raw.ty == 13)
        }
        15 | 32 => {
            raw.exactly(24)?;
            decode_output_reg(raw.body, raw.ty == 32)
        }
        16 | 45 => wire_nested::decode_learn(raw),
        19 => {
            raw.exactly(16)?;
            let (idle, hard) = (r.u16()?, r.u16()?);
            Ok(Action::FinTimeout(FinTimeout { idle, hard }))
        }
        20 | 37 => wire_nested::decode_controller(raw),
        21 => {
            raw.at_least(16)?;
            decode_dec_ttl(raw.body)
        }
        22 => {
            raw.exactly(32)?;
            zero(r.take(6)?.iter().all(|b| *b == 0))?;
            let (value, mask) = (r.u64()?, r.u64()?);
            Ok(Action::WriteMetadata(WriteMetadata { value, mask }))
        }
        27 | 28 => {
            raw.exactly(24)?;
            decode_stack(raw.body, raw.ty == 27)
        }
        29 | 38 | 41 | 51 => wire_nested::decode_sample(raw),
        34 => {
            raw.exactly(16)?;
            decode_conjunction(raw.body)
        }
        35 => wire_nested::decode_ct(raw),
        36 => wire_nested::decode_nat(raw),
        39 => {
            raw.exactly(16)?;
            let (port, max_len) = (PortNo::from_of10(r.u16()?), r.u32()?);
            argument(max_len >= 14)?;
            Ok(Action::OutputTrunc(OutputTrunc { port, max_len }))
        }
        42 => {
            raw.at_least(16)?;
            raw.body.skip(6)?;
            raw.nested(Some(Outer::Clone)).map(Action::Clone)
        }
        46..=48 if raw.version >= Version::V13 => wire_nested::decode_encap(raw),
        49 => {
            raw.exactly(24)?;
            decode_check_pkt_larger(raw.body)
        }
        50 => {
            raw.exactly(24)?;
            Ok(Action::DeleteField(pull_action_field(&mut r)?))
        }
        _ => Err(ErrorCode::OfpbacBadVendorType),
    }
}

/// The actions that OpenFlow 1.1 made its own.
fn decode_of10(raw: &mut Raw<'_>) -> Option<Result<Action, ErrorCode>> {
    if raw.version != Version::V10 || !matches!(raw.ty, 4 | 18 | 23..=26 | 30 | 31 | 40) {
        return None;
    }
    Some((|| {
        raw.exactly(16)?;
        let r = &mut raw.body;
        Ok(match raw.ty {
            4 => {
                r.skip(2)?;
                Action::SetQueue(r.u32()?)
            }
            18 => Action::DecTtl(Vec::new()),
            23 => {
                let ty = r.u16()?;
                argument(is_mpls_type(ty))?;
                Action::PushMpls(ty)
            }
            24 => Action::PopMpls(r.u16()?),
            25 => Action::SetMplsTtl(r.u8()?),
            26 => Action::DecMplsTtl,
            30 => {
                r.skip(2)?;
                let label = r.u32()?;
                argument(label <= 0xfffff)?;
                Action::SetMplsLabel(label)
            }
            31 => {
                let tc = r.u8()?;
                argument(tc <= 7)?;
                Action::SetMplsTc(tc)
            }
            _ => {
                r.skip(2)?;
                Action::Group(r.u32()?)
            }
        })
    })())
}

fn decode_simple(raw: &mut Raw<'_>) -> Result<Action, ErrorCode> {
    raw.exactly(if raw.ty == 9 { 24 } else { 16 })?;
    let r = &mut raw.body;
    Ok(match raw.ty {
        1 => Action::Resubmit(Resubmit {
            in_port: PortNo::from_of10(r.u16()?),
            table: 255,
            with_ct_orig: false,
            plain: true,
        }),
        2 => {
            r.skip(2)?;
            let id = u64::from(r.u32()?);
            Action::SetTunnel { id, wide: false }
        }
        9 => {
            r.skip(6)?;
            let id = r.u64()?;
            Action::SetTunnel { id, wide: true }
        }
        14 | 44 => {
            let (in_port, table) = (PortNo::from_of10(r.u16()?), r.u8()?);
            argument(r.all_zero())?;
            Action::Resubmit(Resubmit {
                in_port,
                table,
                with_ct_orig: raw.ty == 44,
                plain: false,
            })
        }
        5 => Action::PopQueue,
        17 => Action::Exit,
        43 => Action::CtClear,
        254 => Action::DebugSlow,
        _ => Action::DebugRecirc,
    })
}

fn decode_move(mut r: Reader<'_>) -> Result<Action, ErrorCode> {
    let (bits, src_offset, dst_offset) = (r.u16()?, r.u16()?, r.u16()?);
    let src = Subfield {
        field: pull_action_field(&mut r)?,
        offset: src_offset,
        bits,
    };
    let dst = Subfield {
        field: pull_action_field(&mut r)?,
        offset: dst_offset,
        bits,
    };
    zero(r.all_zero())?;
    wire_standard::checked_move(src, dst, false)
}

fn decode_load(mut r: Reader<'_>) -> Result<Action, ErrorCode> {
    let (word, nxm, value) = (r.u16()?, r.u32()?, r.u64()?);
    let dst = part(word, nxm)?;
    check_dst(dst, None)?;
    argument(dst.bits >= 64 || value >> dst.bits == 0)?;
    let whole = dst.is_whole();
    Ok(Action::SetField(Box::new(SetField {
        field: dst.field,
        value: u128::from(value) << dst.offset,
        mask: if whole {
            dst.field.full_mask()
        } else {
            dst.mask() << dst.offset
        },
        form: SetForm::Load,
        flow_has_vlan: false,
    })))
}

fn decode_load2(mut r: Reader<'_>) -> Result<Action, ErrorCode> {
    r.skip(6)?;
    let entry = pull_entry(&mut r)?;
    let field = placed(crate::oxm::action_field(entry.header)?)?;
    if !r.all_zero() || field.info().access == Access::ReadOnly {
        return Err(ErrorCode::OfpbacBadSetArgument);
    }
    Ok(Action::SetField(Box::new(SetField {
        field,
        value: entry.value,
        mask: entry.mask,
        form: SetForm::Load2,
        flow_has_vlan: false,
    })))
}

fn decode_multipath(mut r: Reader<'_>) -> Result<Action, ErrorCode> {
    let fields = HashFields::from_wire(r.u16()?);
    let basis = r.u16()?;
    r.skip(2)?;
    let algorithm = MultipathAlgorithm::from_wire(r.u16()?);
    let (max_link, arg) = (r.u16()?, r.u32()?);
    r.skip(2)?;
    let dst = part(r.u16()?, r.u32()?)?;
    let bad = ErrorCode::OfpbacBadArgument;
    let fields = fields.ok_or(bad)?;
    let algorithm = algorithm.ok_or(bad)?;
    let n_links = u32::from(max_link) + 1;
    argument(dst.bits >= 16 || n_links <= 1 << dst.bits)?;
    check_dst(dst, None)?;
    Ok(Action::Multipath(Box::new(Multipath {
        fields,
        basis,
        algorithm,
        max_link,
        arg,
        dst,
    })))
}

fn decode_bundle(mut r: Reader<'_>, load: bool) -> Result<Action, ErrorCode> {
    let algorithm = match r.u16()? {
        0 => Some(BundleAlgorithm::ActiveBackup),
        1 => Some(BundleAlgorithm::Hrw),
        _ => None,
    };
    let fields = HashFields::from_wire(r.u16()?);
    let basis = r.u16()?;
    let member_type = r.u32()?;
    let n = usize::from(r.u16()?);
    let (word, nxm) = (r.u16()?, r.u32()?);
    let reserved = r.u32()?;
    let dst = if load {
        let dst = part(word, nxm)?;
        argument(dst.bits >= 16)?;
        check_dst(dst, None)?;
        Some(dst)
    } else {
        argument(word == 0 && nxm == 0)?;
        None
    };
    let fits = n <= super::hash::MAX_MEMBERS && member_type == nxm_header(Field::InPort);
    argument(fits && reserved == 0)?;
    let bad = ErrorCode::OfpbacBadArgument;
    let (fields, algorithm) = (fields.ok_or(bad)?, algorithm.ok_or(bad)?);
    if r.len() < n * 2 {
        return Err(ErrorCode::OfpbacBadLen);
    }
    let mut members = Vec::with_capacity(n);
    for _ in 0..n {
        members.push(PortNo::from_of10(r.u16()?));
    }
    let bundle = Bundle {
        fields,
        basis,
        algorithm,
        members: members.into(),
        dst,
    };
    check_members(&bundle, PortNo::MAX.0)?;
    Ok(Action::Bundle(Box::new(bundle)))
}

fn decode_output_reg(mut r: Reader<'_>, second: bool) -> Result<Action, ErrorCode> {
    let word = r.u16()?;
    let (src, max_len) = if second {
        let max_len = r.u16()?;
        let src = Subfield {
            field: placed(pull_action_field(&mut r)?)?,
            offset: word >> 6,
            bits: (word & 0x3f) + 1,
        };
        (src, max_len)
    } else {
        let src = part(word, r.u32()?)?;
        (src, r.u16()?)
    };
    if !r.all_zero() {
        let code = if second {
            ErrorCode::NxbrcMustBeZero
        } else {
            ErrorCode::OfpbacBadArgument
        };
        return Err(code);
    }
    check_src(src, None)?;
    Ok(Action::OutputReg(OutputReg { src, max_len }))
}

fn decode_dec_ttl(mut r: Reader<'_>) -> Result<Action, ErrorCode> {
    let n = usize::from(r.u16()?);
    zero(r.u32()? == 0)?;
    if r.len() < n * 2 {
        return Err(ErrorCode::OfpbacBadLen);
    }
    let mut ids = Vec::with_capacity(n);
    for _ in 0..n {
        ids.push(r.u16()?);
    }
    Ok(Action::DecTtl(ids))
}

fn decode_stack(mut r: Reader<'_>, push: bool) -> Result<Action, ErrorCode> {
    let offset = r.u16()?;
    let field = placed(pull_action_field(&mut r)?)?;
    let bits = r.u16()?;
    zero(r.all_zero())?;
    if u32::from(offset) + u32::from(bits) > u32::from(field.info().bits) {
        return Err(ErrorCode::OfpbacBadSetLen);
    }
    let part = Subfield {
        field,
        offset,
        bits,
    };
    if push {
        check_src(part, None)?;
        Ok(Action::StackPush(part))
    } else {
        check_dst(part, None)?;
        Ok(Action::StackPop(part))
    }
}

fn decode_conjunction(mut r: Reader<'_>) -> Result<Action, ErrorCode> {
    let (clause, n_clauses, id) = (r.u8()?, r.u8()?, r.u32()?);
    if !(2..=64).contains(&n_clauses) || clause >= n_clauses {
        return Err(ErrorCode::NxbacBadConjunction);
    }
    Ok(Action::Conjunction(Conjunction {
        id,
        clause,
        n_clauses,
    }))
}

fn decode_check_pkt_larger(mut r: Reader<'_>) -> Result<Action, ErrorCode> {
    let (pkt_len, offset) = (r.u16()?, r.u16()?);
    let field = placed(pull_action_field(&mut r)?)?;
    zero(r.all_zero())?;
    if offset >= field.info().bits {
        return Err(ErrorCode::OfpbacBadSetLen);
    }
    let dst = Subfield {
        field,
        offset,
        bits: 1,
    };
    check_dst(dst, None)?;
    Ok(Action::CheckPktLarger(CheckPktLarger { dst, pkt_len }))
}

/// Appends one of Nicira's actions: its header, what `body` appends, padding.
pub(super) fn nicira(out: &mut Vec<u8>, subtype: u16, body: impl FnOnce(&mut Vec<u8>)) {
    vendor_action(out, NX_VENDOR, subtype, body);
}

fn vendor_action(out: &mut Vec<u8>, vendor: u32, subtype: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.u16(0xffff);
    out.u16(0);
    out.u32(vendor);
    out.u16(subtype);
    body(out);
    out.pad8(start);
    if out.len() - start < 16 {
        out.zeros(16 - (out.len() - start));
    }
    let len = out.len() - start;
    out.set_u16(start + 2, len as u16);
}

fn reg_load(out: &mut Vec<u8>, dst: Subfield, value: u64) {
    nicira(out, 7, |out| {
        out.u16(ofs_nbits(dst));
        out.u32(nxm_header(dst.field));
        out.u64(value);
    });
}

/// Appends an action that OpenFlow `version` does not have by itself.
pub(super) fn encode_nicira(out: &mut Vec<u8>, action: &Action, version: Version) {
    if wire_nested::encode(out, action, version) || encode_of10(out, action) {
        return;
    }
    match action {
        Action::SetField(a) => encode_set_field(out, a),
        Action::Move(a) if a.onf && version >= Version::V13 => {
            vendor_action(out, ONF_VENDOR, 3200, |out| {
                out.zeros(2);
                wire_standard::put_copy(out, a, version);
            });
        }
        Action::Move(a) => nicira(out, 6, |out| {
            out.u16(a.src.bits);
            out.u16(a.src.offset);
            out.u16(a.dst.offset);
            put_action_header(out, a.src.field);
            put_action_header(out, a.dst.field);
        }),
        Action::StackPush(part) => stack(out, 27, *part),
        Action::StackPop(part) => stack(out, 28, *part),
        Action::Resubmit(a) if a.plain && a.table == 255 => {
            nicira(out, 1, |out| out.u16(a.in_port.to_of10()));
        }
        Action::Resubmit(a) => {
            let subtype = if a.with_ct_orig { 44 } else { 14 };
            nicira(out, subtype, |out| {
                out.u16(a.in_port.to_of10());
                out.u8(a.table);
            });
        }
        Action::GotoTable(table) => nicira(out, 14, |out| {
            out.u16(PortNo::IN_PORT.to_of10());
            out.u8(*table);
        }),
        Action::WriteMetadata(a) => nicira(out, 22, |out| {
            out.zeros(6);
            out.u64(a.value);
            out.u64(a.mask);
        }),
        Action::SetTunnel { id, wide } if !wide && *id <= u64::from(u32::MAX) => {
            nicira(out, 2, |out| {
                out.zeros(2);
                out.u32(*id as u32);
            });
        }
        Action::SetTunnel { id, .. } => nicira(out, 9, |out| {
            out.zeros(6);
            out.u64(*id);
        }),
        Action::Note(bytes) => nicira(out, 8, |out| out.extend_from_slice(bytes)),
        Action::DecTtl(ids) => nicira(out, 21, |out| {
            out.u16(ids.len() as u16);
            out.zeros(4);
            ids.iter().for_each(|id| out.u16(*id));
        }),
        Action::FinTimeout(a) => nicira(out, 19, |out| {
            out.u16(a.idle);
            out.u16(a.hard);
        }),
        Action::Conjunction(a) => nicira(out, 34, |out| {
            out.u8(a.clause);
            out.u8(a.n_clauses);
            out.u32(a.id);
        }),
        Action::OutputTrunc(a) => nicira(out, 39, |out| {
            out.u16(a.port.to_of10());
            out.u32(a.max_len);
        }),
        Action::OutputReg(a) => encode_output_reg(out, *a),
        Action::Multipath(a) => encode_multipath(out, a),
        Action::Bundle(a) => encode_bundle(out, a),
        Action::CheckPktLarger(a) => nicira(out, 49, |out| {
            out.u16(a.pkt_len);
            out.u16(a.dst.offset);
            put_action_header(out, a.dst.field);
            out.zeros(if nxm_header(a.dst.field) == 0 { 2 } else { 6 });
        }),
        Action::DeleteField(field) => nicira(out, 50, |out| {
            let start = out.len();
            put_action_header(out, *field);
            let used = out.len() - start;
            out.zeros(14 - used.min(14));
        }),
        Action::PopQueue => nicira(out, 5, |_| ()),
        Action::Exit => nicira(out, 17, |_| ()),
        Action::CtClear => nicira(out, 43, |_| ()),
        Action::DecNshTtl => nicira(out, 48, |_| ()),
        Action::DebugSlow => nicira(out, 254, |_| ()),
        Action::DebugRecirc => nicira(out, 255, |_| ()),
        _ => {}
    }
}

/// Appends what OpenFlow 1.0 lacks and 1.1 has.
fn encode_of10(out: &mut Vec<u8>, action: &Action) -> bool {
    let word = |out: &mut Vec<u8>, value: u32| {
        out.zeros(2);
        out.u32(value);
    };
    match action {
        Action::SetQueue(id) => nicira(out, 4, |out| word(out, *id)),
        Action::DecTtl(ids) if ids.is_empty() => nicira(out, 18, |_| ()),
        Action::PushMpls(ty) => nicira(out, 23, |out| out.u16(*ty)),
        Action::PopMpls(ty) => nicira(out, 24, |out| out.u16(*ty)),
        Action::SetMplsTtl(v) => nicira(out, 25, |out| out.u8(*v)),
        Action::DecMplsTtl => nicira(out, 26, |_| ()),
        Action::SetMplsLabel(v) => nicira(out, 30, |out| word(out, *v)),
        Action::SetMplsTc(v) => nicira(out, 31, |out| out.u8(*v)),
        Action::Group(id) => nicira(out, 40, |out| word(out, *id)),
        Action::SetIpEcn(v) => reg_load(out, Subfield::whole(Field::IpEcn), u64::from(*v)),
        Action::SetIpTtl(v) => reg_load(out, Subfield::whole(Field::IpTtl), u64::from(*v)),
        _ => return false,
    }
    true
}

fn encode_set_field(out: &mut Vec<u8>, a: &SetField) {
    if a.form == SetForm::Load2 || nxm_header(a.field) == 0 {
        nicira(out, 33, |out| {
            out.zeros(6);
            put_entry(out, a.field, 0, a.value, a.mask);
        });
        return;
    }
    for (part, value) in a.segments() {
        reg_load(out, part, value);
    }
}

fn stack(out: &mut Vec<u8>, subtype: u16, part: Subfield) {
    nicira(out, subtype, |out| {
        out.u16(part.offset);
        put_action_header(out, part.field);
        out.u16(part.bits);
        out.zeros(if nxm_header(part.field) == 0 { 2 } else { 6 });
    });
}

fn encode_output_reg(out: &mut Vec<u8>, a: OutputReg) {
    if nxm_header(a.src.field) == 0 {
        nicira(out, 32, |out| {
            out.u16(ofs_nbits(a.src));
            out.u16(a.max_len);
            put_action_header(out, a.src.field);
        });
        return;
    }
    nicira(out, 15, |out| {
        out.u16(ofs_nbits(a.src));
        out.u32(nxm_header(a.src.field));
        out.u16(a.max_len);
        out.zeros(6);
    });
}

fn encode_multipath(out: &mut Vec<u8>, a: &Multipath) {
    nicira(out, 10, |out| {
        out.u16(a.fields as u16);
        out.u16(a.basis);
        out.zeros(2);
        out.u16(a.algorithm as u16);
        out.u16(a.max_link);
        out.u32(a.arg);
        out.zeros(2);
        out.u16(ofs_nbits(a.dst));
        out.u32(nxm_header(a.dst.field));
    });
}

fn encode_bundle(out: &mut Vec<u8>, a: &Bundle) {
    let subtype = if a.dst.is_some() { 13 } else { 12 };
    nicira(out, subtype, |out| {
        out.u16(a.algorithm as u16);
        out.u16(a.fields as u16);
        out.u16(a.basis);
        out.u32(nxm_header(Field::InPort));
        out.u16(a.members.len() as u16);
        out.u16(a.dst.map_or(0, ofs_nbits));
        out.u32(a.dst.map_or(0, |dst| nxm_header(dst.field)));
        out.zeros(4);
        a.members.iter().for_each(|port| out.u16(port.to_of10()));
    });
}
