//! Nicira's actions with parts of their own on the wire: properties, ranges, nested
//! actions, learned rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use net_flow::field::Access;
use net_flow::{PortNo, Subfield};

use super::check::{Outer, check_src};
use super::codec::{Raw, encode_actions};
use super::wire_nicira::{nicira, ofs_nbits, part};
use super::{
    Action, Controller, Ct, CtZone, Decap, Encap, EncapProp, Learn, LearnDst, LearnSpec, LearnSrc,
    Nat, NatRange, Sample, SampleDirection, SampleId,
};
use crate::error::ErrorCode;
use crate::message::FlowModFlags;
use crate::oxm::{nxm_header, pull_action_field, put_action_header};
use crate::version::Version;
use crate::wire::{OrCode, Put, Reader};

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

/// The reader over the whole rest of an action.
fn body<'a>(raw: &Raw<'a>) -> Reader<'a> {
    raw.body
}

pub(super) fn decode_controller(raw: &Raw<'_>) -> Result<Action, ErrorCode> {
    let mut r = body(raw);
    let mut c = Controller::default();
    if raw.ty == 20 {
        raw.exactly(16)?;
        c.max_len = r.u16()?;
        c.controller_id = r.u16()?;
        c.reason = r.u8()?;
        return Ok(Action::Controller(Box::new(c)));
    }
    raw.at_least(16)?;
    c.v2 = true;
    zero(r.take(6)?.iter().all(|b| *b == 0))?;
    while !r.is_empty() {
        let (ty, mut p) = pull_property(&mut r)?;
        let width = |n: usize| {
            if p.len() == n {
                Ok(())
            } else {
                Err(ErrorCode::OfpbpcBadLen)
            }
        };
        match ty {
            // OpenFlow pads numbers of 16 bits; so may others be.
            0 => c.max_len = p.u16().or_code(ErrorCode::OfpbpcBadLen)?,
            1 => c.controller_id = p.u16().or_code(ErrorCode::OfpbpcBadLen)?,
            2 => c.reason = p.u8().or_code(ErrorCode::OfpbpcBadLen)?,
            3 => c.userdata = p.rest().into(),
            4 => c.pause = true,
            5 => {
                width(4)?;
                c.meter_id = Some(p.u32()?);
            }
            _ => return Err(ErrorCode::OfpbpcBadType),
        }
    }
    Ok(Action::Controller(Box::new(c)))
}

/// Reads a property: its type and its value.
pub(crate) fn pull_property<'a>(r: &mut Reader<'a>) -> Result<(u16, Reader<'a>), ErrorCode> {
    let bad = ErrorCode::OfpbpcBadLen;
    let mut head = *r;
    let ty = head.u16().or_code(bad)?;
    let len = usize::from(head.u16().or_code(bad)?);
    if len < 4 {
        return Err(bad);
    }
    let padded = len.next_multiple_of(8);
    let whole = r.take(padded).or_code(bad)?;
    let mut value = Reader::new(&whole[..len]);
    value.skip(4).or_code(bad)?;
    Ok((ty, value))
}

/// Appends a property, padded.
pub(crate) fn put_property(out: &mut Vec<u8>, ty: u16, value: &[u8]) {
    let start = out.len();
    out.u16(ty);
    out.u16((value.len() + 4) as u16);
    out.extend_from_slice(value);
    out.pad8(start);
}

/// A number of 16 bits as properties have it.
fn padded(n: u16) -> [u8; 4] {
    (u32::from(n) << 16).to_be_bytes()
}

fn encode_controller(out: &mut Vec<u8>, a: &Controller) {
    let v2 = a.v2 || a.pause || !a.userdata.is_empty() || a.meter_id.is_some();
    if !v2 {
        nicira(out, 20, |out| {
            out.u16(a.max_len);
            out.u16(a.controller_id);
            out.u8(a.reason);
        });
        return;
    }
    nicira(out, 37, |out| {
        out.zeros(6);
        if a.max_len != u16::MAX {
            put_property(out, 0, &padded(a.max_len));
        }
        if a.controller_id != 0 {
            put_property(out, 1, &padded(a.controller_id));
        }
        if a.reason != 1 {
            put_property(out, 2, &[a.reason]);
        }
        if !a.userdata.is_empty() {
            put_property(out, 3, &a.userdata);
        }
        if a.pause {
            put_property(out, 4, &[]);
        }
        if let Some(id) = a.meter_id {
            put_property(out, 5, &id.to_be_bytes());
        }
    });
}

pub(super) fn decode_sample(raw: &Raw<'_>) -> Result<Action, ErrorCode> {
    let mut r = body(raw);
    raw.exactly(match raw.ty {
        29 => 24,
        51 => 40,
        _ => 32,
    })?;
    let probability = r.u16()?;
    let collector_set_id = r.u32()?;
    let (obs_domain, obs_point) = if raw.ty == 51 {
        (sample_id(&mut r)?, sample_id(&mut r)?)
    } else {
        (SampleId::Constant(r.u32()?), SampleId::Constant(r.u32()?))
    };
    let mut a = Sample {
        probability,
        collector_set_id,
        obs_domain,
        obs_point,
        sampling_port: PortNo::NONE,
        direction: SampleDirection::Default,
    };
    if raw.ty != 29 {
        a.sampling_port = PortNo::from_of10(r.u16()?);
        a.direction = match (raw.ty, r.u8()?) {
            (38, _) | (_, 0) => SampleDirection::Default,
            (_, 1) => SampleDirection::Ingress,
            (_, 2) => SampleDirection::Egress,
            _ => return Err(ErrorCode::OfpbacBadArgument),
        };
        zero(r.all_zero())?;
    }
    argument(probability != 0)?;
    Ok(Action::Sample(Box::new(a)))
}

fn sample_id(r: &mut Reader<'_>) -> Result<SampleId, ErrorCode> {
    let nxm = r.u32()?;
    if nxm == 0 {
        return Ok(SampleId::Constant(r.u32()?));
    }
    let id = part(r.u16()?, nxm)?;
    r.skip(2)?;
    check_src(id, None)?;
    argument(id.bits <= 32)?;
    Ok(SampleId::Field(id))
}

fn encode_sample(out: &mut Vec<u8>, a: &Sample) {
    let constant = |id| match id {
        SampleId::Constant(n) => Some(n),
        SampleId::Field(_) => None,
    };
    let (domain, point) = (constant(a.obs_domain), constant(a.obs_point));
    let plain = a.sampling_port == PortNo::NONE;
    let subtype = match (domain, point) {
        (Some(_), Some(_)) if a.direction != SampleDirection::Default => 41,
        (Some(_), Some(_)) if plain => 29,
        (Some(_), Some(_)) => 38,
        _ => 51,
    };
    let put_id = |out: &mut Vec<u8>, id| match id {
        SampleId::Constant(n) if subtype != 51 => out.u32(n),
        SampleId::Constant(n) => {
            out.u32(0);
            out.u32(n);
        }
        SampleId::Field(id) => {
            out.u32(nxm_header(id.field));
            out.u16(ofs_nbits(id));
            out.zeros(2);
        }
    };
    nicira(out, subtype, |out| {
        out.u16(a.probability);
        out.u32(a.collector_set_id);
        put_id(out, a.obs_domain);
        put_id(out, a.obs_point);
        if subtype != 29 {
            out.u16(a.sampling_port.to_of10());
            out.u8(a.direction as u8);
            out.zeros(5);
        }
    });
}

pub(super) fn decode_ct(raw: &mut Raw<'_>) -> Result<Action, ErrorCode> {
    raw.at_least(24)?;
    let r = &mut raw.body;
    let (flags, zone_src, zone) = (r.u16()?, r.u32()?, r.u16()?);
    let table = r.u8()?;
    r.skip(3)?;
    let alg = r.u16()?;
    argument(flags & 2 == 0 || flags & 1 != 0)?;
    let zone = if zone_src == 0 {
        CtZone::Constant(zone)
    } else {
        let zone = part(zone, zone_src)?;
        check_src(zone, None)?;
        if zone.bits != 16 {
            return Err(ErrorCode::OfpbacBadSetLen);
        }
        CtZone::Field(zone)
    };
    let actions = raw.nested(Some(Outer::Ct))?;
    let nats = actions.iter().filter(|a| matches!(a, Action::Nat(_)));
    // At most one translation, and before the writes of fields.
    match nats.count() {
        0 => {}
        1 if matches!(actions[0], Action::Nat(_)) => {}
        _ => return Err(ErrorCode::OfpbacBadArgument),
    }
    Ok(Action::Ct(Box::new(Ct {
        commit: flags & 1 != 0,
        force: flags & 2 != 0,
        zone,
        table: (table != 255).then_some(table),
        alg,
        actions,
    })))
}

fn encode_ct(out: &mut Vec<u8>, a: &Ct, version: Version) {
    nicira(out, 35, |out| {
        out.u16(u16::from(a.commit) | u16::from(a.force) << 1);
        match a.zone {
            CtZone::Constant(zone) => {
                out.u32(0);
                out.u16(zone);
            }
            CtZone::Field(zone) => {
                out.u32(nxm_header(zone.field));
                out.u16(ofs_nbits(zone));
            }
        }
        out.u8(a.table.unwrap_or(255));
        out.zeros(3);
        out.u16(a.alg);
        encode_actions(out, &a.actions, version);
    });
}

const NAT_IPV4_MIN: u16 = 1;
const NAT_IPV4_MAX: u16 = 1 << 1;
const NAT_IPV6_MIN: u16 = 1 << 2;
const NAT_IPV6_MAX: u16 = 1 << 3;
const NAT_PROTO_MIN: u16 = 1 << 4;
const NAT_PROTO_MAX: u16 = 1 << 5;

pub(super) fn decode_nat(raw: &Raw<'_>) -> Result<Action, ErrorCode> {
    raw.at_least(16)?;
    let mut r = body(raw);
    let bad = ErrorCode::OfpbacBadArgument;
    zero(r.u16()? == 0)?;
    let (flags, present) = (r.u16()?, r.u16()?);
    let (src, dst) = (flags & 1 != 0, flags & 2 != 0);
    argument(!(src && dst))?;
    argument(flags & 0x18 != 0x18)?;
    argument(src || dst || (flags == 0 && present == 0))?;
    let mut range = NatRange::default();
    let v4 = |r: &mut Reader<'_>, bit| -> Result<Option<IpAddr>, ErrorCode> {
        if present & bit == 0 {
            return Ok(None);
        }
        Ok(Some(IpAddr::V4(Ipv4Addr::from(r.u32().or_code(bad)?))))
    };
    range.addr_min = v4(&mut r, NAT_IPV4_MIN)?;
    range.addr_max = v4(&mut r, NAT_IPV4_MAX)?;
    let v6 = |r: &mut Reader<'_>, bit| -> Result<Option<IpAddr>, ErrorCode> {
        if present & bit == 0 {
            return Ok(None);
        }
        Ok(Some(IpAddr::V6(Ipv6Addr::from(r.uint(16).or_code(bad)?))))
    };
    let v6_bits = NAT_IPV6_MIN | NAT_IPV6_MAX;
    argument(present & v6_bits == 0 || present & (NAT_IPV4_MIN | NAT_IPV4_MAX) == 0)?;
    if present & v6_bits != 0 {
        range.addr_min = v6(&mut r, NAT_IPV6_MIN)?;
        range.addr_max = v6(&mut r, NAT_IPV6_MAX)?;
    }
    let unset = |ip: Option<IpAddr>| ip.is_some_and(|ip| ip.is_unspecified());
    argument(range.addr_max.is_none() || range.addr_min.is_some())?;
    argument(!unset(range.addr_min) && !unset(range.addr_max))?;
    argument(range.addr_max.is_none_or(|max| Some(max) >= range.addr_min))?;
    if present & NAT_PROTO_MIN != 0 {
        argument(range.addr_min.is_some())?;
        range.port_min = r.u16().or_code(bad)?;
        argument(range.port_min != 0)?;
    }
    if present & NAT_PROTO_MAX != 0 {
        argument(range.port_min != 0)?;
        range.port_max = r.u16().or_code(bad)?;
        argument(range.port_max >= range.port_min)?;
    }
    Ok(Action::Nat(Box::new(Nat { flags, range })))
}

fn encode_nat(out: &mut Vec<u8>, a: &Nat) {
    nicira(out, 36, |out| {
        out.zeros(2);
        out.u16(a.flags);
        let at = out.len();
        out.u16(0);
        let mut present = 0;
        let bits = [(NAT_IPV4_MIN, NAT_IPV6_MIN), (NAT_IPV4_MAX, NAT_IPV6_MAX)];
        for (ip, (v4, v6)) in [a.range.addr_min, a.range.addr_max].into_iter().zip(bits) {
            // Translation to no address in particular is said by saying none.
            match ip.filter(|ip| !ip.is_unspecified()) {
                Some(IpAddr::V4(ip)) => {
                    present |= v4;
                    out.extend_from_slice(&ip.octets());
                }
                Some(IpAddr::V6(ip)) => {
                    present |= v6;
                    out.extend_from_slice(&ip.octets());
                }
                None => {}
            }
        }
        if a.range.addr_min.is_some() {
            let ports = [
                (a.range.port_min, NAT_PROTO_MIN),
                (a.range.port_max, NAT_PROTO_MAX),
            ];
            for (port, bit) in ports {
                if port != 0 {
                    present |= bit;
                    out.u16(port);
                }
            }
        }
        out.set_u16(at, present);
    });
}

const LEARN_SEND_FLOW_REM: u16 = 1;
const LEARN_DELETE_LEARNED: u16 = 2;
const LEARN_WRITE_RESULT: u16 = 4;

pub(super) fn decode_learn(raw: &Raw<'_>) -> Result<Action, ErrorCode> {
    let second = raw.ty == 45;
    raw.at_least(if second { 40 } else { 32 })?;
    let mut r = body(raw);
    let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (cookie, flags, table) = (r.u64()?, r.u16()?, r.u8()?);
    argument(r.u8()? == 0)?;
    let (fin_idle_timeout, fin_hard_timeout) = (r.u16()?, r.u16()?);
    argument(table != 255)?;
    let mut known = LEARN_SEND_FLOW_REM | LEARN_DELETE_LEARNED;
    let (mut limit, mut result_dst) = (0, None);
    if second {
        known |= LEARN_WRITE_RESULT;
        limit = r.u32()?;
        let offset = r.u16()?;
        if r.u16()? != 0 {
            return Err(ErrorCode::NxbacMustBeZero);
        }
        if flags & LEARN_WRITE_RESULT != 0 {
            let field = pull_action_field(&mut r)?;
            if field.info().access == Access::ReadOnly || field.info().slot.is_none() {
                return Err(ErrorCode::OfpbacBadSetArgument);
            }
            if offset >= field.info().bits {
                return Err(ErrorCode::OfpbacBadSetLen);
            }
            result_dst = Some(Subfield {
                field,
                offset,
                bits: 1,
            });
        } else {
            argument(offset == 0)?;
        }
    }
    argument(flags & !known == 0)?;
    let rem = flags & LEARN_SEND_FLOW_REM != 0;
    Ok(Action::Learn(Box::new(Learn {
        idle_timeout,
        hard_timeout,
        fin_idle_timeout,
        fin_hard_timeout,
        priority,
        table,
        cookie,
        flags: if rem {
            FlowModFlags::SEND_FLOW_REM
        } else {
            FlowModFlags::empty()
        },
        delete_learned: flags & LEARN_DELETE_LEARNED != 0,
        limit,
        result_dst,
        v2: second,
        specs: decode_specs(r)?.into(),
    })))
}

fn decode_specs(mut r: Reader<'_>) -> Result<Vec<LearnSpec>, ErrorCode> {
    let mut specs = Vec::new();
    let bad = ErrorCode::OfpbacBadLen;
    while !r.is_empty() {
        let header = r.u16().or_code(bad)?;
        if header == 0 {
            break;
        }
        let bits = header & 0x3ff;
        let immediate = header & 0x2000 != 0;
        let dst_kind = (header >> 11) & 3;
        argument(dst_kind < 2 || (dst_kind == 2 && !immediate))?;
        let src = if immediate {
            let bytes = usize::from(bits.div_ceil(16)) * 2;
            let value = r.take(bytes).or_code(bad)?;
            // No field that fits a key is wider than 128 bits.
            argument(bits <= 128)?;
            LearnSrc::Immediate(Reader::new(value).uint(bytes)?)
        } else {
            LearnSrc::Field(spec_part(&mut r, bits)?)
        };
        let dst = match dst_kind {
            0 => LearnDst::Match(spec_part(&mut r, bits)?),
            1 => LearnDst::Load(spec_part(&mut r, bits)?),
            _ => LearnDst::Output,
        };
        specs.push(LearnSpec { bits, src, dst });
    }
    argument(r.all_zero())?;
    Ok(specs)
}

fn spec_part(r: &mut Reader<'_>, bits: u16) -> Result<Subfield, ErrorCode> {
    let bad = ErrorCode::OfpbacBadLen;
    let (nxm, offset) = (r.u32().or_code(bad)?, r.u16().or_code(bad)?);
    let whole = part(0, nxm)?;
    let width = u32::from(whole.field.info().bits);
    if bits == 0 || u32::from(offset) + u32::from(bits) > width {
        return Err(ErrorCode::OfpbacBadSetLen);
    }
    Ok(Subfield {
        field: whole.field,
        offset,
        bits,
    })
}

fn encode_learn(out: &mut Vec<u8>, a: &Learn) {
    let second = a.v2 || a.limit != 0 || a.result_dst.is_some();
    nicira(out, if second { 45 } else { 16 }, |out| {
        out.u16(a.idle_timeout);
        out.u16(a.hard_timeout);
        out.u16(a.priority);
        out.u64(a.cookie);
        let rem = a.flags.contains(FlowModFlags::SEND_FLOW_REM);
        let flags = u16::from(rem)
            | u16::from(a.delete_learned) << 1
            | u16::from(a.result_dst.is_some()) << 2;
        out.u16(flags);
        out.u8(a.table);
        out.u8(0);
        out.u16(a.fin_idle_timeout);
        out.u16(a.fin_hard_timeout);
        if second {
            out.u32(a.limit);
            out.u16(a.result_dst.map_or(0, |dst| dst.offset));
            out.u16(0);
        }
        if let Some(dst) = a.result_dst {
            put_action_header(out, dst.field);
        }
        for spec in &a.specs {
            encode_spec(out, spec);
        }
    });
}

fn encode_spec(out: &mut Vec<u8>, spec: &LearnSpec) {
    let put_part = |out: &mut Vec<u8>, part: Subfield| {
        out.u32(nxm_header(part.field));
        out.u16(part.offset);
    };
    let dst_kind = match spec.dst {
        LearnDst::Match(_) => 0,
        LearnDst::Load(_) => 1 << 11,
        LearnDst::Output => 2 << 11,
    };
    match spec.src {
        LearnSrc::Field(src) => {
            out.u16(spec.bits | dst_kind);
            put_part(out, src);
        }
        LearnSrc::Immediate(value) => {
            out.u16(spec.bits | dst_kind | 0x2000);
            out.uint(value, usize::from(spec.bits.div_ceil(16)) * 2);
        }
    }
    match spec.dst {
        LearnDst::Match(dst) | LearnDst::Load(dst) => put_part(out, dst),
        LearnDst::Output => {}
    }
}

pub(super) fn decode_encap(raw: &Raw<'_>) -> Result<Action, ErrorCode> {
    raw.at_least(16)?;
    let mut r = body(raw);
    if raw.ty == 48 {
        return Ok(Action::DecNshTtl);
    }
    let hdr_size = r.u16()?;
    let packet_type = r.u32()?;
    if raw.ty == 47 {
        return Ok(Action::Decap(Decap { packet_type }));
    }
    argument(hdr_size == 0)?;
    if !matches!(packet_type, 0 | 0x1_894f | 0x1_8847 | 0x1_8848) {
        return Err(ErrorCode::NxbacBadHeaderType);
    }
    let mut props = Vec::new();
    let bad = ErrorCode::NxbacBadEdProp;
    while !r.is_empty() {
        let mut head = r;
        let class = head.u16().or_code(bad)?;
        let (kind, len) = (
            head.u8().or_code(bad)?,
            usize::from(head.u8().or_code(bad)?),
        );
        if len < 4 {
            return Err(bad);
        }
        let whole = r.take(len.next_multiple_of(8)).or_code(bad)?;
        let value = &whole[4..len];
        let fits = match (class, kind) {
            (4, 1) => matches!(value, [1 | 2]),
            (4, 2) => value.len() >= 4 && usize::from(value[3]) + 4 == value.len(),
            _ => return Err(ErrorCode::NxbacUnknownEdProp),
        };
        if !fits {
            return Err(bad);
        }
        props.push(EncapProp {
            class,
            kind,
            value: value.into(),
        });
    }
    Ok(Action::Encap(Box::new(Encap {
        packet_type,
        props: props.into(),
    })))
}

fn encode_encap(out: &mut Vec<u8>, a: &Encap) {
    nicira(out, 46, |out| {
        out.u16(0);
        out.u32(a.packet_type);
        for prop in &a.props {
            let start = out.len();
            out.u16(prop.class);
            out.u8(prop.kind);
            out.u8((prop.value.len() + 4) as u8);
            out.extend_from_slice(&prop.value);
            out.pad8(start);
        }
    });
}

/// Appends `action` if it is one of this file's.
pub(super) fn encode(out: &mut Vec<u8>, action: &Action, version: Version) -> bool {
    match action {
        Action::Controller(a) => encode_controller(out, a),
        Action::Sample(a) => encode_sample(out, a),
        Action::Ct(a) => encode_ct(out, a, version),
        Action::Nat(a) => encode_nat(out, a),
        Action::Learn(a) => encode_learn(out, a),
        Action::Encap(a) => encode_encap(out, a),
        Action::Decap(a) => nicira(out, 47, |out| {
            out.zeros(2);
            out.u32(a.packet_type);
        }),
        Action::Clone(list) => nicira(out, 42, |out| {
            out.zeros(6);
            encode_actions(out, list, version);
        }),
        _ => return false,
    }
    true
}
