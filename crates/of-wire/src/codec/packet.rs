//! Packet-in and packet-out.

use net_flow::{Match, PortNo, slot};

use super::kind::Kind;
use super::{Decoded, Encoder, Head, flow, pull_nx_match, rest};
use crate::action::{decode_actions, encode_actions};
use crate::error::ErrorCode;
use crate::message::{Body, PacketIn, PacketInFormat, PacketInReason, PacketOut};
use crate::oxm::{MatchRules, in_port, pull_ofp11_match, put_match, put_ofp12_match, read_match};
use crate::version::Version;
use crate::wire::{Put, Reader};

/// Properties of `NXT_PACKET_IN2`.
mod property {
    pub(super) const PACKET: u16 = 0;
    pub(super) const FULL_LEN: u16 = 1;
    pub(super) const BUFFER_ID: u16 = 2;
    pub(super) const TABLE_ID: u16 = 3;
    pub(super) const COOKIE: u16 = 4;
    pub(super) const REASON: u16 = 5;
    pub(super) const METADATA: u16 = 6;
    pub(super) const USERDATA: u16 = 7;
    pub(super) const CONTINUATION: u16 = 8;
}

fn reason(number: u8) -> Result<PacketInReason, ErrorCode> {
    Ok(match number {
        0 => PacketInReason::NoMatch,
        1 => PacketInReason::Action,
        2 => PacketInReason::InvalidTtl,
        3 => PacketInReason::ActionSet,
        4 => PacketInReason::Group,
        5 => PacketInReason::PacketOut,
        _ => return Err(ErrorCode::NxbrcBadReason),
    })
}

/// The number of a reason, as far as `version` knows it.
fn reason_number(reason: PacketInReason, version: Version) -> u8 {
    let known = match reason {
        PacketInReason::NoMatch | PacketInReason::Action | PacketInReason::InvalidTtl => reason,
        PacketInReason::ActionSet | PacketInReason::Group | PacketInReason::PacketOut => {
            if version < Version::V14 {
                PacketInReason::Action
            } else {
                reason
            }
        }
        PacketInReason::ExplicitMiss if version < Version::V13 => PacketInReason::Action,
        PacketInReason::ExplicitMiss | PacketInReason::ImplicitMiss => PacketInReason::NoMatch,
    };
    known as u8
}

fn buffer(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

fn from_port(port: PortNo) -> Match {
    let mut m = Match::any();
    m.set(slot::IN_PORT, u128::from(port.0));
    m
}

fn port11(r: &mut Reader<'_>) -> Result<PortNo, ErrorCode> {
    PortNo::from_of11(r.u32()?).ok_or(ErrorCode::OfpbrcBadPort)
}

pub(super) fn decode(head: Head<'_>) -> Decoded<'_> {
    let (version, r) = (head.version, head.body);
    Ok(Ok(match head.kind {
        Kind::OfptPacketIn => Body::PacketIn(Box::new(match version {
            Version::V10 => decode_in10(r)?,
            Version::V11 => decode_in11(r)?,
            _ => decode_in12(r, version)?,
        })),
        Kind::NxtPacketIn => Body::PacketIn(Box::new(decode_in_nx(r)?)),
        Kind::NxtPacketIn2 => Body::PacketIn(Box::new(decode_in_nx2(r)?)),
        Kind::OfptPacketOut => Body::PacketOut(Box::new(decode_out(r, version)?)),
        _ => return Ok(Err(head)),
    }))
}

fn packet_in(metadata: Match) -> PacketIn {
    PacketIn {
        packet: Vec::new(),
        total_len: 0,
        buffer_id: None,
        reason: PacketInReason::NoMatch,
        table: 0,
        cookie: u64::MAX,
        metadata,
        userdata: Vec::new(),
        continuation: None,
    }
}

fn decode_in10(mut r: Reader<'_>) -> Result<PacketIn, ErrorCode> {
    let (buffer_id, total_len, port) = (r.u32()?, r.u16()?, r.u16()?);
    let reason = reason(r.u8()?)?;
    r.skip(1)?;
    Ok(PacketIn {
        packet: rest(r),
        total_len: u32::from(total_len),
        buffer_id: buffer(buffer_id),
        reason,
        ..packet_in(from_port(PortNo::from_of10(port)))
    })
}

fn decode_in11(mut r: Reader<'_>) -> Result<PacketIn, ErrorCode> {
    let buffer_id = r.u32()?;
    let port = port11(&mut r)?;
    r.skip(4)?;
    let total_len = r.u16()?;
    let (reason, table) = (reason(r.u8()?)?, r.u8()?);
    Ok(PacketIn {
        packet: rest(r),
        total_len: u32::from(total_len),
        buffer_id: buffer(buffer_id),
        reason,
        table,
        ..packet_in(from_port(port))
    })
}

fn decode_in12(mut r: Reader<'_>, version: Version) -> Result<PacketIn, ErrorCode> {
    let (buffer_id, total_len) = (r.u32()?, r.u16()?);
    let (reason, table) = (reason(r.u8()?)?, r.u8()?);
    let cookie = if version >= Version::V13 {
        r.u64()?
    } else {
        u64::MAX
    };
    let metadata = pull_ofp11_match(&mut r, MatchRules::LOOSE)?;
    r.skip(2)?;
    Ok(PacketIn {
        packet: rest(r),
        total_len: u32::from(total_len),
        buffer_id: buffer(buffer_id),
        reason,
        table,
        cookie,
        ..packet_in(metadata)
    })
}

fn decode_in_nx(mut r: Reader<'_>) -> Result<PacketIn, ErrorCode> {
    let (buffer_id, total_len) = (r.u32()?, r.u16()?);
    let (reason, table) = (reason(r.u8()?)?, r.u8()?);
    let (cookie, match_len) = (r.u64()?, usize::from(r.u16()?));
    r.skip(6)?;
    let bytes = pull_nx_match(&mut r, match_len)?;
    let (metadata, ..) = read_match(bytes, MatchRules::LOOSE)?;
    r.skip(2)?;
    Ok(PacketIn {
        packet: rest(r),
        total_len: u32::from(total_len),
        buffer_id: buffer(buffer_id),
        reason,
        table,
        cookie,
        ..packet_in(metadata)
    })
}

fn decode_in_nx2(mut r: Reader<'_>) -> Result<PacketIn, ErrorCode> {
    let mut m = packet_in(Match::any());
    while !r.is_empty() {
        let (ty, mut p) = crate::action::pull_property(&mut r)?;
        match ty {
            property::PACKET => m.packet = rest(p),
            property::FULL_LEN => m.total_len = p.u32()?,
            property::BUFFER_ID => m.buffer_id = buffer(p.u32()?),
            property::TABLE_ID => m.table = p.u8()?,
            property::COOKIE => {
                p.skip(4)?;
                m.cookie = p.u64()?;
            }
            property::REASON => m.reason = reason(p.u8()?)?,
            property::METADATA => (m.metadata, ..) = read_match(p.rest(), MatchRules::LOOSE)?,
            property::USERDATA => m.userdata = rest(p),
            property::CONTINUATION => {
                p.skip(4)?;
                m.continuation = Some(rest(p));
            }
            // Unknown properties that are not critical are skipped.
            ty if ty & 0x8000 == 0 => {}
            _ => return Err(ErrorCode::OfpbpcBadType),
        }
    }
    let len = m.packet.len() as u32;
    if len == 0 || (m.total_len != 0 && m.total_len < len) {
        return Err(ErrorCode::OfpbrcBadLen);
    }
    if m.total_len == 0 {
        m.total_len = len;
    }
    Ok(m)
}

fn decode_out(mut r: Reader<'_>, version: Version) -> Result<PacketOut, ErrorCode> {
    let buffer_id = buffer(r.u32()?);
    let (metadata, actions_len) = match version {
        Version::V10 => {
            let port = PortNo::from_of10(r.u16()?);
            (from_port(port), r.u16()?)
        }
        Version::V15 => {
            let len = r.u16()?;
            r.skip(2)?;
            let rules = MatchRules {
                strict: false,
                cookie: false,
                pipeline_only: true,
            };
            (pull_ofp11_match(&mut r, rules)?, len)
        }
        _ => {
            let port = port11(&mut r)?;
            let len = r.u16()?;
            r.skip(6)?;
            (from_port(port), len)
        }
    };
    let port = in_port(&metadata).ok_or(ErrorCode::OfpbrcBadPort)?;
    let special = [PortNo::LOCAL, PortNo::NONE, PortNo::CONTROLLER];
    if !port.is_physical() && !special.contains(&port) {
        log::warn!(target: "ofp_packet", "packet-out has bad input port {:#x}", port.to_of10());
        return Err(ErrorCode::OfpbrcBadPort);
    }
    let actions = r.take(usize::from(actions_len))?;
    let actions = decode_actions(actions, version)?;
    // A buffered packet has its bytes in the switch, whatever else is said.
    let packet = if buffer_id.is_some() {
        Vec::new()
    } else {
        rest(r)
    };
    Ok(PacketOut {
        packet,
        buffer_id,
        metadata,
        actions,
    })
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    match body {
        Body::PacketIn(m) => match e.dialect.packet_in {
            PacketInFormat::Nxt2 => encode_in_nx2(e, m),
            PacketInFormat::Nxt => encode_in_nx(e, m),
            PacketInFormat::Standard => encode_in(e, m),
        },
        Body::PacketOut(m) => encode_out(e, m),
        _ => return false,
    }
    true
}

fn total16(m: &PacketIn) -> u16 {
    m.total_len.min(0xffff) as u16
}

fn encode_in(e: &mut Encoder<'_>, m: &PacketIn) {
    let version = e.version;
    let reason = reason_number(m.reason, version);
    let port = in_port(&m.metadata).unwrap_or(PortNo(0));
    e.message(Kind::OfptPacketIn, |out| {
        out.u32(m.buffer_id.unwrap_or(u32::MAX));
        match version {
            Version::V10 => {
                out.u16(total16(m));
                out.u16(port.to_of10());
                out.u8(reason);
                out.zeros(1);
            }
            Version::V11 => {
                out.u32(port.0);
                out.u32(port.0);
                out.u16(total16(m));
                out.u8(reason);
                out.u8(m.table);
            }
            _ => {
                out.u16(total16(m));
                out.u8(reason);
                out.u8(m.table);
                if version >= Version::V13 {
                    out.u64(m.cookie);
                }
                put_ofp12_match(out, &m.metadata, version as u8);
                out.zeros(2);
            }
        }
        out.extend_from_slice(&m.packet);
    });
}

fn encode_in_nx(e: &mut Encoder<'_>, m: &PacketIn) {
    let reason = reason_number(m.reason, e.version);
    e.message(Kind::NxtPacketIn, |out| {
        out.u32(m.buffer_id.unwrap_or(u32::MAX));
        out.u16(total16(m));
        out.u8(reason);
        out.u8(m.table);
        out.u64(m.cookie);
        let len_at = out.len();
        out.zeros(8);
        flow::put_nx_match(out, len_at, &m.metadata, 0, 0);
        out.zeros(2);
        out.extend_from_slice(&m.packet);
    });
}

fn encode_in_nx2(e: &mut Encoder<'_>, m: &PacketIn) {
    let version = e.version;
    let reason = reason_number(m.reason, version);
    let put = crate::action::put_property;
    e.message(Kind::NxtPacketIn2, |out| {
        put(out, property::PACKET, &m.packet);
        if m.total_len as usize != m.packet.len() {
            put(out, property::FULL_LEN, &m.total_len.to_be_bytes());
        }
        put(out, property::TABLE_ID, &[m.table]);
        if m.cookie != u64::MAX {
            let mut value = vec![0; 4];
            value.u64(m.cookie);
            put(out, property::COOKIE, &value);
        }
        put(out, property::REASON, &[reason]);
        let mut metadata = Vec::new();
        // OpenFlow 1.0 and 1.1 get Nicira's code points.
        let oxm = if version >= Version::V12 {
            version as u8
        } else {
            0
        };
        put_match(&mut metadata, &m.metadata, oxm, 0, 0);
        put(out, property::METADATA, &metadata);
        if let Some(bytes) = &m.continuation {
            let mut value = vec![0; 4];
            value.extend_from_slice(bytes);
            put(out, property::CONTINUATION, &value);
        }
        if !m.userdata.is_empty() {
            put(out, property::USERDATA, &m.userdata);
        }
    });
}

fn encode_out(e: &mut Encoder<'_>, m: &PacketOut) {
    let version = e.version;
    let mut actions = Vec::new();
    encode_actions(&mut actions, &m.actions, version);
    e.message(Kind::OfptPacketOut, |out| {
        out.u32(m.buffer_id.unwrap_or(u32::MAX));
        match version {
            Version::V10 => {
                out.u16(m.in_port().to_of10());
                out.u16(actions.len() as u16);
            }
            Version::V15 => {
                out.u16(actions.len() as u16);
                out.zeros(2);
                put_ofp12_match(out, &m.metadata, version as u8);
            }
            _ => {
                out.u32(m.in_port().0);
                out.u16(actions.len() as u16);
                out.zeros(6);
            }
        }
        out.extend_from_slice(&actions);
        if m.buffer_id.is_none() {
            out.extend_from_slice(&m.packet);
        }
    });
}
