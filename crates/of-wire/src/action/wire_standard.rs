//! OpenFlow's own actions on the wire (OpenFlow 1.0 section 5.2.4, 1.3 section 7.2.5).

use std::net::Ipv4Addr;

use net_flow::field::Access;
use net_flow::{Field, PortNo, Subfield};

use super::check::{check_dst, check_src};
use super::codec::{Raw, output, vlan_type};
use super::header::is_mpls_type;
use super::{Action, Enqueue, Move, SetField, SetForm, SetL4Port, SetVlan};
use crate::error::ErrorCode;
use crate::oxm::{pull_action_field, pull_entry, put_entry, put_field_header};
use crate::version::Version;
use crate::wire::{Put, Reader};

/// The actions of OpenFlow 1.0 and of 1.1 that differ only in number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Output,
    VlanVid,
    VlanPcp,
    StripVlan,
    EthSrc,
    EthDst,
    NwSrc,
    NwDst,
    NwTos,
    NwEcn,
    TpSrc,
    TpDst,
    Enqueue,
    MplsLabel,
    MplsTc,
    MplsTtl,
    DecMplsTtl,
    PushVlan,
    PushMpls,
    PopMpls,
    SetQueue,
    Group,
    NwTtl,
    DecNwTtl,
    SetField,
    CopyField,
    Meter,
}

const OF10: [(u16, Kind); 12] = [
    (0, Kind::Output),
    (1, Kind::VlanVid),
    (2, Kind::VlanPcp),
    (3, Kind::StripVlan),
    (4, Kind::EthSrc),
    (5, Kind::EthDst),
    (6, Kind::NwSrc),
    (7, Kind::NwDst),
    (8, Kind::NwTos),
    (9, Kind::TpSrc),
    (10, Kind::TpDst),
    (11, Kind::Enqueue),
];

const OF11: [(u16, Kind, Version); 26] = [
    (0, Kind::Output, Version::V11),
    (1, Kind::VlanVid, Version::V11),
    (2, Kind::VlanPcp, Version::V11),
    (3, Kind::EthSrc, Version::V11),
    (4, Kind::EthDst, Version::V11),
    (5, Kind::NwSrc, Version::V11),
    (6, Kind::NwDst, Version::V11),
    (7, Kind::NwTos, Version::V11),
    (8, Kind::NwEcn, Version::V11),
    (9, Kind::TpSrc, Version::V11),
    (10, Kind::TpDst, Version::V11),
    (13, Kind::MplsLabel, Version::V11),
    (14, Kind::MplsTc, Version::V11),
    (15, Kind::MplsTtl, Version::V11),
    (16, Kind::DecMplsTtl, Version::V11),
    (17, Kind::PushVlan, Version::V11),
    (18, Kind::StripVlan, Version::V11),
    (19, Kind::PushMpls, Version::V11),
    (20, Kind::PopMpls, Version::V11),
    (21, Kind::SetQueue, Version::V11),
    (22, Kind::Group, Version::V11),
    (23, Kind::NwTtl, Version::V11),
    (24, Kind::DecNwTtl, Version::V11),
    (25, Kind::SetField, Version::V12),
    (28, Kind::CopyField, Version::V15),
    (29, Kind::Meter, Version::V15),
];

fn kind(version: Version, ty: u16) -> Option<Kind> {
    if version == Version::V10 {
        return OF10.iter().find(|(t, _)| *t == ty).map(|(_, kind)| *kind);
    }
    let found = OF11
        .iter()
        .find(|(t, _, first)| *t == ty && version >= *first);
    found.map(|(_, kind, _)| *kind)
}

fn number(version: Version, kind: Kind) -> Option<u16> {
    if version == Version::V10 {
        return OF10.iter().find(|(_, k)| *k == kind).map(|(t, _)| *t);
    }
    let found = OF11
        .iter()
        .find(|(_, k, first)| *k == kind && version >= *first);
    found.map(|(t, ..)| *t)
}

fn argument(ok: bool) -> Result<(), ErrorCode> {
    if ok {
        Ok(())
    } else {
        Err(ErrorCode::OfpbacBadArgument)
    }
}

pub(super) fn decode_standard(raw: &mut Raw<'_>) -> Result<Action, ErrorCode> {
    let kind = kind(raw.version, raw.ty).ok_or(ErrorCode::OfpbacBadType)?;
    let of10 = raw.version == Version::V10;
    let len = match kind {
        Kind::Output if !of10 => 16,
        Kind::EthSrc | Kind::EthDst | Kind::Enqueue => 16,
        Kind::SetField => raw.len,
        Kind::CopyField => {
            raw.at_least(16)?;
            raw.len
        }
        _ => 8,
    };
    raw.exactly(len)?;
    if matches!(kind, Kind::Output | Kind::Enqueue) {
        return decode_output(raw, kind);
    }
    let r = &mut raw.body;
    Ok(match kind {
        Kind::VlanVid => {
            let value = r.u16()?;
            argument(value <= 0xfff)?;
            Action::SetVlanVid(vlan(value, of10))
        }
        Kind::VlanPcp => {
            let value = r.u8()?;
            argument(value <= 7)?;
            Action::SetVlanPcp(vlan(value, of10))
        }
        Kind::StripVlan => Action::StripVlan { pop: !of10 },
        Kind::EthSrc => Action::SetEthSrc(r.array()?),
        Kind::EthDst => Action::SetEthDst(r.array()?),
        Kind::NwSrc => Action::SetIpv4Src(Ipv4Addr::from(r.u32()?)),
        Kind::NwDst => Action::SetIpv4Dst(Ipv4Addr::from(r.u32()?)),
        Kind::NwTos => {
            let tos = r.u8()?;
            argument(tos & 3 == 0)?;
            Action::SetIpDscp(tos)
        }
        Kind::NwEcn => {
            let ecn = r.u8()?;
            argument(ecn <= 3)?;
            Action::SetIpEcn(ecn)
        }
        Kind::TpSrc => Action::SetL4SrcPort(l4(r.u16()?)),
        Kind::TpDst => Action::SetL4DstPort(l4(r.u16()?)),
        Kind::MplsLabel => {
            let label = r.u32()?;
            argument(label <= 0xfffff)?;
            Action::SetMplsLabel(label)
        }
        Kind::MplsTc => {
            let tc = r.u8()?;
            argument(tc <= 7)?;
            Action::SetMplsTc(tc)
        }
        Kind::MplsTtl => Action::SetMplsTtl(r.u8()?),
        Kind::DecMplsTtl => Action::DecMplsTtl,
        Kind::PushVlan => Action::PushVlan(vlan_type(r.u16()?)?),
        Kind::PushMpls => {
            let ty = r.u16()?;
            argument(is_mpls_type(ty))?;
            Action::PushMpls(ty)
        }
        Kind::PopMpls => Action::PopMpls(r.u16()?),
        Kind::SetQueue => Action::SetQueue(r.u32()?),
        Kind::Group => Action::Group(r.u32()?),
        Kind::NwTtl => Action::SetIpTtl(r.u8()?),
        Kind::DecNwTtl => Action::DecTtl(Vec::new()),
        Kind::SetField => decode_set_field(*r, raw.version >= Version::V15)?,
        Kind::CopyField => decode_copy_field(*r, false)?,
        Kind::Meter => Action::Meter(r.u32()?),
        Kind::Output | Kind::Enqueue => return Err(ErrorCode::OfpbacBadType),
    })
}

fn decode_output(raw: &mut Raw<'_>, kind: Kind) -> Result<Action, ErrorCode> {
    let r = &mut raw.body;
    if raw.version != Version::V10 {
        let port = PortNo::from_of11(r.u32()?).ok_or(ErrorCode::OfpbacBadOutPort)?;
        return output(port, r.u16()?);
    }
    let port = PortNo::from_of10(r.u16()?);
    if kind == Kind::Output {
        return output(port, r.u16()?);
    }
    r.skip(6)?;
    let special = port == PortNo::IN_PORT || port == PortNo::LOCAL;
    if !port.is_physical() && !special {
        return Err(ErrorCode::OfpbacBadOutPort);
    }
    let queue = r.u32()?;
    Ok(Action::Enqueue(Enqueue { port, queue }))
}

const fn vlan<T>(value: T, push_if_needed: bool) -> SetVlan<T> {
    SetVlan {
        value,
        push_if_needed,
        flow_has_vlan: false,
    }
}

const fn l4(port: u16) -> SetL4Port {
    SetL4Port { port, ip_proto: 0 }
}

fn decode_set_field(mut r: Reader<'_>, may_mask: bool) -> Result<Action, ErrorCode> {
    let entry = pull_entry(&mut r)?;
    let field = crate::oxm::action_field(entry.header)?;
    if entry.header.has_mask && !may_mask {
        return Err(ErrorCode::OfpbacBadSetMask);
    }
    let read_only = field.info().access == Access::ReadOnly;
    if !r.all_zero() || field == Field::InPortOxm || read_only {
        return Err(ErrorCode::OfpbacBadSetArgument);
    }
    let present = entry.value & entry.mask & 0x1000 != 0;
    if !field.allows_value(entry.value) || (field == Field::VlanVid && !present) {
        return Err(ErrorCode::OfpbacBadSetArgument);
    }
    if field.info().slot.is_none() {
        return Err(ErrorCode::OfpbacBadSetType);
    }
    Ok(Action::SetField(Box::new(SetField {
        field,
        value: entry.value,
        mask: entry.mask,
        form: SetForm::SetField,
        flow_has_vlan: false,
    })))
}

/// Reads the rest of a `copy_field`; ONF's form has two bytes of padding before the bits.
pub(super) fn decode_copy_field(mut r: Reader<'_>, onf: bool) -> Result<Action, ErrorCode> {
    if onf {
        r.skip(2)?;
    }
    let (bits, src_offset, dst_offset) = (r.u16()?, r.u16()?, r.u16()?);
    r.skip(2)?;
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
    if !r.all_zero() {
        return Err(ErrorCode::NxbrcMustBeZero);
    }
    checked_move(src, dst, onf)
}

/// A move between parts that exist.
pub(super) fn checked_move(src: Subfield, dst: Subfield, onf: bool) -> Result<Action, ErrorCode> {
    for part in [src, dst] {
        if part.field.info().slot.is_none() {
            return Err(ErrorCode::OfpbacBadSetType);
        }
        if u32::from(part.offset) + u32::from(part.bits) > 0xffff {
            return Err(ErrorCode::OfpbacBadSetLen);
        }
    }
    check_src(src, None)?;
    check_dst(dst, None)?;
    Ok(Action::Move(Move { src, dst, onf }))
}

/// Appends an 8-byte action with up to 4 bytes of argument.
fn short(out: &mut Vec<u8>, ty: u16, argument: u32, bytes: usize) {
    out.u16(ty);
    out.u16(8);
    out.uint(u128::from(argument), bytes);
    out.zeros(4 - bytes);
}

fn put_set_field(out: &mut Vec<u8>, version: Version, field: Field, value: u128, mask: u128) {
    let start = out.len();
    out.u16(25);
    out.u16(0);
    put_entry(out, field, version as u8, value, mask);
    out.pad8(start);
    let len = out.len() - start;
    out.set_u16(start + 2, len as u16);
}

/// Appends `action` if this version of OpenFlow has it, or another that does the same.
pub(super) fn encode_standard(out: &mut Vec<u8>, action: &Action, version: Version) -> bool {
    encode_forwarding(out, action, version)
        || encode_vlan(out, action, version)
        || encode_header(out, action, version)
        || encode_fields(out, action, version)
}

fn encode_forwarding(out: &mut Vec<u8>, action: &Action, version: Version) -> bool {
    let of10 = version == Version::V10;
    match action {
        Action::Output(a) if of10 => {
            short(
                out,
                0,
                u32::from(a.port.to_of10()) << 16 | u32::from(a.max_len),
                4,
            );
        }
        Action::Output(a) => put_output11(out, a.port, a.max_len),
        Action::Enqueue(a) if of10 => {
            out.u16(11);
            out.u16(16);
            out.u16(a.port.to_of10());
            out.zeros(6);
            out.u32(a.queue);
        }
        Action::Enqueue(a) => {
            short(out, 21, a.queue, 4);
            put_output11(out, a.port, u16::MAX);
            super::codec::encode_one(out, &Action::PopQueue, version);
        }
        Action::SetQueue(id) if !of10 => short(out, 21, *id, 4),
        Action::Group(id) if !of10 => short(out, 22, *id, 4),
        Action::Meter(id) if version >= Version::V15 => short(out, 29, *id, 4),
        // Elsewhere it is an instruction, or cannot be said.
        Action::Meter(_) | Action::ClearActions | Action::WriteActions(_) => {}
        _ => return false,
    }
    true
}

fn put_output11(out: &mut Vec<u8>, port: PortNo, max_len: u16) {
    out.u16(0);
    out.u16(16);
    out.u32(port.0);
    out.u16(max_len);
    out.zeros(6);
}

fn encode_vlan(out: &mut Vec<u8>, action: &Action, version: Version) -> bool {
    let of10 = version == Version::V10;
    let push = |out: &mut Vec<u8>, needed: bool, has: bool| {
        if !of10 && needed && !has {
            short(out, 17, 0x8100, 2);
        }
    };
    match action {
        Action::SetVlanVid(a) => {
            push(out, a.push_if_needed, a.flow_has_vlan);
            if version >= Version::V12 {
                let value = u128::from(a.value | 0x1000);
                put_set_field(out, version, Field::VlanVid, value, 0xffff);
            } else {
                short(out, 1, u32::from(a.value), 2);
            }
        }
        Action::SetVlanPcp(a) => {
            push(out, a.push_if_needed, a.flow_has_vlan);
            if version >= Version::V12 {
                put_set_field(out, version, Field::VlanPcp, u128::from(a.value), 0xff);
            } else {
                short(out, 2, u32::from(a.value), 1);
            }
        }
        Action::StripVlan { .. } => short(out, if of10 { 3 } else { 18 }, 0, 0),
        // In OpenFlow 1.0 writing the VLAN adds the tag.
        Action::PushVlan(_) if of10 => {}
        Action::PushVlan(ty) => short(out, 17, u32::from(*ty), 2),
        _ => return false,
    }
    true
}

/// A write of a header field: before OpenFlow 1.2 an action of its own, then a set-field.
fn write(
    out: &mut Vec<u8>,
    version: Version,
    kind: Kind,
    old: (u32, usize),
    new: (Field, u128),
) -> bool {
    if version >= Version::V12 {
        put_set_field(out, version, new.0, new.1, new.0.full_mask());
        return true;
    }
    let Some(ty) = number(version, kind) else {
        return false;
    };
    short(out, ty, old.0, old.1);
    true
}

fn encode_header(out: &mut Vec<u8>, action: &Action, version: Version) -> bool {
    let of10 = version == Version::V10;
    let byte = |v: u8| (u32::from(v), 1);
    match action {
        Action::SetEthSrc(mac) => put_mac(out, version, Kind::EthSrc, Field::EthSrc, *mac),
        Action::SetEthDst(mac) => put_mac(out, version, Kind::EthDst, Field::EthDst, *mac),
        Action::SetIpv4Src(ip) => {
            let ip = u32::from(*ip);
            return write(
                out,
                version,
                Kind::NwSrc,
                (ip, 4),
                (Field::Ipv4Src, ip.into()),
            );
        }
        Action::SetIpv4Dst(ip) => {
            let ip = u32::from(*ip);
            return write(
                out,
                version,
                Kind::NwDst,
                (ip, 4),
                (Field::Ipv4Dst, ip.into()),
            );
        }
        Action::SetIpDscp(v) => {
            let new = (Field::IpDscp, u128::from(v >> 2));
            return write(out, version, Kind::NwTos, byte(*v), new);
        }
        Action::SetIpEcn(v) => {
            let new = (Field::IpEcn, u128::from(*v));
            return write(out, version, Kind::NwEcn, byte(*v), new);
        }
        Action::SetIpTtl(v) if !of10 => short(out, 23, u32::from(*v), 1),
        Action::SetL4SrcPort(a) => {
            let by_proto = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc];
            put_l4(out, version, Kind::TpSrc, *a, by_proto);
        }
        Action::SetL4DstPort(a) => {
            let by_proto = [Field::TcpDst, Field::UdpDst, Field::SctpDst];
            put_l4(out, version, Kind::TpDst, *a, by_proto);
        }
        Action::DecTtl(ids) if !of10 && ids.is_empty() => short(out, 24, 0, 0),
        Action::SetMplsLabel(v) => {
            let new = (Field::MplsLabel, u128::from(*v));
            return write(out, version, Kind::MplsLabel, (*v, 4), new);
        }
        Action::SetMplsTc(v) => {
            let new = (Field::MplsTc, u128::from(*v));
            return write(out, version, Kind::MplsTc, byte(*v), new);
        }
        Action::SetMplsTtl(v) if !of10 => short(out, 15, u32::from(*v), 1),
        Action::DecMplsTtl if !of10 => short(out, 16, 0, 0),
        Action::PushMpls(ty) if !of10 => short(out, 19, u32::from(*ty), 2),
        Action::PopMpls(ty) if !of10 => short(out, 20, u32::from(*ty), 2),
        _ => return false,
    }
    true
}

fn put_mac(out: &mut Vec<u8>, version: Version, kind: Kind, field: Field, mac: [u8; 6]) {
    if version < Version::V12 {
        out.u16(number(version, kind).unwrap_or_default());
        out.u16(16);
        out.extend_from_slice(&mac);
        out.zeros(6);
        return;
    }
    let value = mac.iter().fold(0, |v, b| (v << 8) | u128::from(*b));
    put_set_field(out, version, field, value, field.full_mask());
}

fn put_l4(out: &mut Vec<u8>, version: Version, kind: Kind, a: SetL4Port, fields: [Field; 3]) {
    let field = match a.ip_proto {
        6 => Some(fields[0]),
        17 => Some(fields[1]),
        132 => Some(fields[2]),
        _ => None,
    };
    match field.filter(|_| version >= Version::V12) {
        Some(field) => put_set_field(out, version, field, u128::from(a.port), 0xffff),
        None => {
            let ty = number(version, kind).unwrap_or_default();
            short(out, ty, u32::from(a.port), 2);
        }
    }
}

fn encode_fields(out: &mut Vec<u8>, action: &Action, version: Version) -> bool {
    match action {
        Action::SetField(a) => {
            let whole_by_name = a.form == SetForm::SetField && a.is_whole();
            if version >= Version::V15 || (version >= Version::V12 && whole_by_name) {
                put_set_field(out, version, a.field, a.value, a.mask);
                return true;
            }
            version < Version::V12 && a.form == SetForm::SetField && put_legacy(out, a, version)
        }
        Action::SetTunnel { id, .. } if version >= Version::V12 => {
            let id = u128::from(*id);
            put_set_field(out, version, Field::TunId, id, u128::from(u64::MAX));
            true
        }
        Action::Move(a) if version >= Version::V15 => {
            let start = out.len();
            out.u16(28);
            out.u16(0);
            put_copy(out, a, version);
            out.pad8(start);
            let len = out.len() - start;
            out.set_u16(start + 2, len as u16);
            true
        }
        _ => false,
    }
}

/// Appends what follows the header in a `copy_field`.
pub(super) fn put_copy(out: &mut Vec<u8>, a: &Move, version: Version) {
    out.u16(a.src.bits);
    out.u16(a.src.offset);
    out.u16(a.dst.offset);
    out.u16(0);
    for field in [a.src.field, a.dst.field] {
        put_field_header(out, field, version as u8, false);
    }
}

/// A set-field as an action of OpenFlow 1.0 or 1.1, if one does the same.
fn put_legacy(out: &mut Vec<u8>, a: &SetField, version: Version) -> bool {
    let of10 = version == Version::V10;
    let value = a.value as u32;
    let as_action = |out: &mut Vec<u8>, action: Action| encode_standard(out, &action, version);
    match a.field {
        Field::VlanTci => {
            let tci = a.value as u16;
            if tci & 0x1000 == 0 {
                return as_action(out, Action::StripVlan { pop: !of10 });
            }
            if !of10 && !a.flow_has_vlan {
                short(out, 17, 0x8100, 2);
            }
            short(out, 1, u32::from(tci & 0xfff), 2);
            short(out, 2, u32::from(tci >> 13), 1);
            true
        }
        Field::VlanVid => {
            short(out, 1, value & 0xfff, 2);
            true
        }
        Field::VlanPcp => {
            short(out, 2, value, 1);
            true
        }
        Field::EthSrc => as_action(out, Action::SetEthSrc(mac(a.value))),
        Field::EthDst => as_action(out, Action::SetEthDst(mac(a.value))),
        Field::Ipv4Src => as_action(out, Action::SetIpv4Src(Ipv4Addr::from(value))),
        Field::Ipv4Dst => as_action(out, Action::SetIpv4Dst(Ipv4Addr::from(value))),
        Field::IpTos => as_action(out, Action::SetIpDscp(value as u8)),
        Field::IpDscp => as_action(out, Action::SetIpDscp((value << 2) as u8)),
        Field::IpEcn if !of10 => as_action(out, Action::SetIpEcn(value as u8)),
        Field::TcpSrc | Field::UdpSrc => as_action(out, Action::SetL4SrcPort(l4(value as u16))),
        Field::TcpDst | Field::UdpDst => as_action(out, Action::SetL4DstPort(l4(value as u16))),
        _ => false,
    }
}

fn mac(value: u128) -> [u8; 6] {
    let b = (value as u64).to_be_bytes();
    [b[2], b[3], b[4], b[5], b[6], b[7]]
}
