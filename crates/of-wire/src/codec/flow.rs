//! Flows: changes, removals, statistics.

use net_flow::types::eth_type;
use net_flow::{Match, PortNo, slot};

use super::kind::Kind;
use super::oxs::{self, Oxs};
use super::{Decoded, Dialect, Encoder, Head, flow_removed, pull_nx_match};
use crate::action::{decode_instructions, encode_instructions};
use crate::error::ErrorCode;
use crate::message::{
    AggregateStats, Body, FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest, Part,
};
use crate::of10_match;
use crate::oxm::{MatchRules, pull_ofp11_match, put_match, put_ofp12_match, read_match};
use crate::version::Version;
use crate::wire::{Put, Reader};

/// The number on the wire of "all tables".
const ALL_TABLES: u8 = 255;

const EMERG: u16 = 1 << 2;

fn decode_flags(
    raw: u16,
    command: Option<FlowModCommand>,
    version: Version,
) -> Result<FlowModFlags, ErrorCode> {
    let table = [
        (1, FlowModFlags::SEND_FLOW_REM, Version::V10, Version::V15),
        (2, FlowModFlags::CHECK_OVERLAP, Version::V10, Version::V15),
        (EMERG, FlowModFlags::EMERG, Version::V10, Version::V10),
        (4, FlowModFlags::RESET_COUNTS, Version::V12, Version::V15),
        (8, FlowModFlags::NO_PKT_COUNTS, Version::V13, Version::V15),
        (16, FlowModFlags::NO_BYT_COUNTS, Version::V13, Version::V15),
    ];
    let mut rest = raw;
    let mut flags = FlowModFlags::empty();
    for (bit, flag, first, last) in table {
        if rest & bit != 0 && (first..=last).contains(&version) {
            rest &= !bit;
            flags |= flag;
        }
    }
    // Before OpenFlow 1.2, adding always resets the counters.
    if version < Version::V12 && command == Some(FlowModCommand::Add) {
        flags |= FlowModFlags::RESET_COUNTS;
    }
    if rest != 0 {
        return Err(ErrorCode::OfpfmfcBadFlags);
    }
    Ok(flags)
}

fn encode_flags(flags: FlowModFlags, version: Version) -> u16 {
    let mut raw = flags.bits() & 3;
    if version >= Version::V12 {
        raw |= flags.bits() & 4;
    }
    if version >= Version::V13 {
        raw |= flags.bits() & 0x18;
    }
    raw
}

fn command_of(number: u16) -> Result<FlowModCommand, ErrorCode> {
    Ok(match number {
        0 => FlowModCommand::Add,
        1 => FlowModCommand::Modify,
        2 => FlowModCommand::ModifyStrict,
        3 => FlowModCommand::Delete,
        4 => FlowModCommand::DeleteStrict,
        _ => return Err(ErrorCode::OfpfmfcBadCommand),
    })
}

const fn deletes(command: FlowModCommand) -> bool {
    matches!(
        command,
        FlowModCommand::Delete | FlowModCommand::DeleteStrict
    )
}

const fn modifies(command: FlowModCommand) -> bool {
    matches!(
        command,
        FlowModCommand::Modify | FlowModCommand::ModifyStrict
    )
}

fn buffer(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

fn port11(r: &mut Reader<'_>) -> Result<PortNo, ErrorCode> {
    PortNo::from_of11(r.u32()?).ok_or(ErrorCode::OfpbacBadOutPort)
}

pub(super) fn decode(head: Head<'_>, dialect: Dialect) -> Decoded<'_> {
    let version = head.version;
    let r = head.body;
    Ok(Ok(match head.kind {
        Kind::OfptFlowMod if version == Version::V10 => {
            Body::FlowMod(Box::new(decode_mod10(r, dialect)?))
        }
        Kind::OfptFlowMod => Body::FlowMod(Box::new(decode_mod11(r, version)?)),
        Kind::NxtFlowMod => Body::FlowMod(Box::new(decode_mod_nx(r, version, dialect)?)),
        Kind::OfptFlowRemoved | Kind::NxtFlowRemoved => {
            Body::FlowRemoved(Box::new(flow_removed::decode(&head)?))
        }
        Kind::OfpstFlowRequest | Kind::NxstFlowRequest => {
            Body::FlowStatsRequest(Box::new(decode_request(&head)?))
        }
        Kind::OfpstAggregateRequest | Kind::NxstAggregateRequest => {
            Body::AggregateStatsRequest(Box::new(decode_request(&head)?))
        }
        Kind::OfpstFlowReply | Kind::NxstFlowReply => decode_stats(&head)?,
        Kind::OfpstAggregateReply if version == Version::V15 => {
            let mut r = r;
            let stats = oxs::pull(&mut r)?;
            Body::AggregateStatsReply(AggregateStats {
                packet_count: stats.packet_count,
                byte_count: stats.byte_count,
                flow_count: stats.flow_count,
            })
        }
        Kind::OfpstAggregateReply | Kind::NxstAggregateReply => {
            let mut r = r;
            Body::AggregateStatsReply(AggregateStats {
                packet_count: r.u64()?,
                byte_count: r.u64()?,
                flow_count: r.u32()?,
            })
        }
        _ => return Ok(Err(head)),
    }))
}

fn decode_mod10(mut r: Reader<'_>, dialect: Dialect) -> Result<FlowMod, ErrorCode> {
    let exact = r
        .rest()
        .first_chunk::<4>()
        .map_or(0, |w| u32::from_be_bytes(*w))
        & 0x3f_ffff
        == 0;
    let mut matching = of10_match::pull(&mut r)?;
    of10_match::normalize_and_log(&mut matching);
    let cookie = r.u64()?;
    let command = r.u16()?;
    let (idle_timeout, hard_timeout) = (r.u16()?, r.u16()?);
    let priority = r.u16()?;
    let (buffer_id, out_port, flags) = (r.u32()?, r.u16()?, r.u16()?);
    let (command, table) = split_command(command, dialect)?;
    let flow = FlowMod {
        matching,
        cookie: 0,
        cookie_mask: 0,
        new_cookie: (cookie != u64::MAX).then_some(cookie),
        modify_cookie: cookie != u64::MAX,
        table,
        idle_timeout,
        hard_timeout,
        // OpenFlow 1.0, section 3.4: an exact match has the highest priority.
        priority: if exact { u16::MAX } else { priority },
        buffer_id: buffer(buffer_id),
        out_port: PortNo::from_of10(out_port),
        ..FlowMod::new(command)
    };
    finish_mod(flow, r, flags, Version::V10)
}

/// The command, and the table in its upper byte where the connection has that.
fn split_command(raw: u16, dialect: Dialect) -> Result<(FlowModCommand, u8), ErrorCode> {
    if dialect.has_table_id() {
        return Ok((command_of(raw & 0xff)?, (raw >> 8) as u8));
    }
    if raw > 0xff {
        log::warn!(target: "ofp_flow",
            "flow_mod has explicit table_id but flow_mod_table_id extension is not enabled");
    }
    Ok((
        command_of(raw & 0xff).and_then(|c| {
            if raw > 0xff {
                Err(ErrorCode::OfpfmfcBadCommand)
            } else {
                Ok(c)
            }
        })?,
        ALL_TABLES,
    ))
}

fn decode_mod_nx(
    mut r: Reader<'_>,
    version: Version,
    dialect: Dialect,
) -> Result<FlowMod, ErrorCode> {
    let new_cookie = r.u64()?;
    let command = r.u16()?;
    let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let (buffer_id, out_port, flags) = (r.u32()?, r.u16()?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    r.skip(6)?;
    let bytes = pull_nx_match(&mut r, match_len)?;
    let (matching, cookie, cookie_mask) = read_match(bytes, MatchRules::STRICT_COOKIE)?;
    if command & 0xff == 0 && cookie_mask != 0 {
        return Err(ErrorCode::NxbrcNxmInvalid);
    }
    let (command, table) = split_command(command, dialect)?;
    let flow = FlowMod {
        matching,
        cookie,
        cookie_mask,
        new_cookie: (new_cookie != u64::MAX).then_some(new_cookie),
        modify_cookie: new_cookie != u64::MAX,
        table,
        idle_timeout,
        hard_timeout,
        priority,
        buffer_id: buffer(buffer_id),
        out_port: PortNo::from_of10(out_port),
        ..FlowMod::new(command)
    };
    finish_mod(flow, r, flags, version)
}

fn decode_mod11(mut r: Reader<'_>, version: Version) -> Result<FlowMod, ErrorCode> {
    let (cookie, cookie_mask) = (r.u64()?, r.u64()?);
    let (table, command) = (r.u8()?, r.u8()?);
    let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let buffer_id = r.u32()?;
    let out_port = r.u32()?;
    let (out_group, flags, importance) = (r.u32()?, r.u16()?, r.u16()?);
    let matching = pull_match11(&mut r, version)?;
    let command = command_of(u16::from(command))?;
    let adds = command == FlowModCommand::Add
        || (version == Version::V11 && modifies(command) && cookie_mask == 0);
    if table == ALL_TABLES && (version == Version::V11 || !deletes(command)) {
        return Err(ErrorCode::OfpfmfcBadTableId);
    }
    let flow = FlowMod {
        matching,
        cookie: if adds { 0 } else { cookie },
        cookie_mask: if adds { 0 } else { cookie_mask },
        new_cookie: adds.then_some(cookie),
        table,
        idle_timeout,
        hard_timeout,
        priority,
        importance: if version >= Version::V14 && command == FlowModCommand::Add {
            importance
        } else {
            0
        },
        buffer_id: buffer(buffer_id),
        out_port: PortNo::from_of11(out_port).ok_or(ErrorCode::OfpbacBadOutPort)?,
        out_group: if deletes(command) {
            out_group
        } else {
            u32::MAX
        },
        ..FlowMod::new(command)
    };
    finish_mod(flow, r, flags, version)
}

/// The match of OpenFlow 1.1 and later.
pub(super) fn pull_match11(r: &mut Reader<'_>, version: Version) -> Result<Match, ErrorCode> {
    let _ = version;
    pull_ofp11_match(r, MatchRules::STRICT)
}

fn finish_mod(
    mut flow: FlowMod,
    r: Reader<'_>,
    flags: u16,
    version: Version,
) -> Result<FlowMod, ErrorCode> {
    let m = &flow.matching;
    let ty = m.eth_type();
    let has = |slots: [net_flow::Slot; 2]| slots.iter().any(|s| m.mask().get(*s) != 0);
    if (has([slot::CT_NW_SRC, slot::CT_NW_DST]) && ty != eth_type::IPV4)
        || (has([slot::CT_IPV6_SRC, slot::CT_IPV6_DST]) && ty != eth_type::IPV6)
    {
        return Err(ErrorCode::OfpbacMatchInconsistent);
    }
    flow.actions = decode_instructions(r.rest(), version)?;
    flow.flags = decode_flags(flags, Some(flow.command), version)?;
    if flow.flags.contains(FlowModFlags::EMERG) {
        let timeout = flow.hard_timeout != 0 || flow.idle_timeout != 0;
        return Err(if timeout {
            ErrorCode::OfpfmfcBadEmergTimeout
        } else {
            ErrorCode::OfpfmfcTableFull
        });
    }
    Ok(flow)
}

fn decode_request(head: &Head<'_>) -> Result<FlowStatsRequest, ErrorCode> {
    let mut r = head.body;
    let mut request = FlowStatsRequest {
        matching: Match::any(),
        cookie: 0,
        cookie_mask: 0,
        out_port: PortNo::NONE,
        out_group: u32::MAX,
        table: ALL_TABLES,
        nicira: false,
    };
    match head.kind {
        Kind::NxstFlowRequest | Kind::NxstAggregateRequest => {
            request.nicira = true;
            request.out_port = PortNo::from_of10(r.u16()?);
            let match_len = usize::from(r.u16()?);
            request.table = r.u8()?;
            r.skip(3)?;
            let bytes = pull_nx_match(&mut r, match_len)?;
            (request.matching, request.cookie, request.cookie_mask) =
                read_match(bytes, MatchRules::STRICT_COOKIE)?;
            if !r.is_empty() {
                return Err(ErrorCode::OfpbrcBadLen);
            }
        }
        _ if head.version == Version::V10 => {
            request.matching = of10_match::pull(&mut r)?;
            request.table = r.u8()?;
            r.skip(1)?;
            request.out_port = PortNo::from_of10(r.u16()?);
        }
        _ => {
            request.table = r.u8()?;
            r.skip(3)?;
            request.out_port = port11(&mut r)?;
            request.out_group = r.u32()?;
            r.skip(4)?;
            request.cookie = r.u64()?;
            request.cookie_mask = r.u64()?;
            request.matching = pull_match11(&mut r, head.version)?;
        }
    }
    Ok(request)
}

fn decode_stats(head: &Head<'_>) -> Result<Body, ErrorCode> {
    let mut r = head.body;
    let mut entries = Vec::new();
    while !r.is_empty() {
        let len = usize::from(Reader::new(r.rest()).u16()?);
        let mut entry = r.sub(len)?;
        entry.skip(2)?;
        entries.push(if head.kind == Kind::NxstFlowReply {
            stats_nx(entry)?
        } else if head.version == Version::V10 {
            stats10(entry)?
        } else if head.version == Version::V15 {
            stats15(entry)?
        } else {
            stats11(entry, head.version)?
        });
    }
    Ok(Body::FlowStatsReply(Part {
        more: head.more,
        entries,
    }))
}

fn stats10(mut r: Reader<'_>) -> Result<FlowStats, ErrorCode> {
    let table = r.u8()?;
    r.skip(1)?;
    let matching = of10_match::pull(&mut r)?;
    let (duration_sec, duration_nsec, priority) = (r.u32()?, r.u32()?, r.u16()?);
    let (idle_timeout, hard_timeout) = (r.u16()?, r.u16()?);
    r.skip(6)?;
    let (cookie, packet_count, byte_count) = (r.u64()?, r.u64()?, r.u64()?);
    Ok(FlowStats {
        matching,
        cookie,
        table,
        priority,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout,
        idle_age: None,
        hard_age: None,
        importance: 0,
        packet_count,
        byte_count,
        flags: FlowModFlags::empty(),
        actions: decode_instructions(r.rest(), Version::V10)?,
    })
}

fn stats_nx(mut r: Reader<'_>) -> Result<FlowStats, ErrorCode> {
    let table = r.u8()?;
    r.skip(1)?;
    let (duration_sec, duration_nsec, priority) = (r.u32()?, r.u32()?, r.u16()?);
    let (idle_timeout, hard_timeout) = (r.u16()?, r.u16()?);
    let match_len = usize::from(r.u16()?);
    let mut age = || r.u16().map(|age| age.checked_sub(1).map(u32::from));
    let (idle_age, hard_age) = (age()?, age()?);
    let (cookie, packet_count, byte_count) = (r.u64()?, r.u64()?, r.u64()?);
    let bytes = pull_nx_match(&mut r, match_len)?;
    let (matching, ..) = read_match(bytes, MatchRules::STRICT)?;
    Ok(FlowStats {
        matching,
        cookie,
        table,
        priority,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout,
        idle_age,
        hard_age,
        importance: 0,
        packet_count,
        byte_count,
        flags: FlowModFlags::empty(),
        actions: decode_instructions(r.rest(), Version::V10)?,
    })
}

fn stats11(mut r: Reader<'_>, version: Version) -> Result<FlowStats, ErrorCode> {
    let table = r.u8()?;
    r.skip(1)?;
    let (duration_sec, duration_nsec, priority) = (r.u32()?, r.u32()?, r.u16()?);
    let (idle_timeout, hard_timeout) = (r.u16()?, r.u16()?);
    let (flags, importance) = (r.u16()?, r.u16()?);
    r.skip(2)?;
    let (cookie, packet_count, byte_count) = (r.u64()?, r.u64()?, r.u64()?);
    let matching = pull_match11(&mut r, version)?;
    let flags = if version >= Version::V13 {
        decode_flags(flags, None, version)?
    } else {
        FlowModFlags::empty()
    };
    Ok(FlowStats {
        matching,
        cookie,
        table,
        priority,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout,
        idle_age: None,
        hard_age: None,
        importance: if version >= Version::V14 {
            importance
        } else {
            0
        },
        packet_count,
        byte_count,
        flags,
        actions: decode_instructions(r.rest(), version)?,
    })
}

fn stats15(mut r: Reader<'_>) -> Result<FlowStats, ErrorCode> {
    r.skip(2)?;
    let table = r.u8()?;
    r.skip(1)?;
    let (priority, idle_timeout, hard_timeout) = (r.u16()?, r.u16()?, r.u16()?);
    let (flags, importance, cookie) = (r.u16()?, r.u16()?, r.u64()?);
    let matching = pull_match11(&mut r, Version::V15)?;
    let stats = oxs::pull(&mut r)?;
    Ok(FlowStats {
        matching,
        cookie,
        table,
        priority,
        duration_sec: stats.duration_sec,
        duration_nsec: stats.duration_nsec,
        idle_timeout,
        hard_timeout,
        idle_age: stats.idle_age,
        hard_age: None,
        importance,
        packet_count: stats.packet_count,
        byte_count: stats.byte_count,
        flags: decode_flags(flags, None, Version::V15)?,
        actions: decode_instructions(r.rest(), Version::V15)?,
    })
}

fn put_stats15(out: &mut Vec<u8>, s: &FlowStats) {
    out.zeros(2);
    out.u8(s.table);
    out.zeros(1);
    out.u16(s.priority);
    out.u16(s.idle_timeout);
    out.u16(s.hard_timeout);
    out.u16(encode_flags(s.flags, Version::V15));
    out.u16(s.importance);
    out.u64(s.cookie);
    put_ofp12_match(out, &s.matching, Version::V15 as u8);
    let stats = Oxs {
        duration_sec: s.duration_sec,
        duration_nsec: s.duration_nsec,
        idle_age: s.idle_age,
        packet_count: s.packet_count,
        byte_count: s.byte_count,
        ..Oxs::UNKNOWN
    };
    oxs::put(out, stats);
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    match body {
        Body::FlowMod(m) => encode_mod(e, m),
        Body::FlowRemoved(m) => flow_removed::encode(e, m),
        Body::FlowStatsRequest(m) => encode_request(e, m, false),
        Body::AggregateStatsRequest(m) => encode_request(e, m, true),
        Body::FlowStatsReply(part) => encode_stats(e, part),
        Body::AggregateStatsReply(s) => {
            let nxm = e.version == Version::V10 && e.dialect.is_nxm();
            let kind = if nxm {
                Kind::NxstAggregateReply
            } else {
                Kind::OfpstAggregateReply
            };
            if e.version == Version::V15 {
                let stats = Oxs {
                    packet_count: s.packet_count,
                    byte_count: s.byte_count,
                    flow_count: s.flow_count,
                    ..Oxs::UNKNOWN
                };
                e.message(kind, |out| oxs::put(out, stats));
                return true;
            }
            let v10 = e.version == Version::V10 && !nxm;
            let known = |n: u64| if v10 && n == u64::MAX { 0 } else { n };
            e.message(kind, |out| {
                out.u64(known(s.packet_count));
                out.u64(known(s.byte_count));
                out.u32(s.flow_count);
                out.zeros(4);
            });
        }
        _ => return false,
    }
    true
}

fn encode_mod(e: &mut Encoder<'_>, m: &FlowMod) {
    let version = e.version;
    let flags = encode_flags(m.flags, version);
    if version > Version::V10 {
        return e.message(Kind::OfptFlowMod, |out| put_mod11(out, m, version, flags));
    }
    let table = if e.dialect.has_table_id() {
        u16::from(m.table) << 8
    } else {
        0
    };
    let command = table | m.command as u16;
    let unsaid = if modifies(m.command) { u64::MAX } else { 0 };
    let new_cookie = m.new_cookie.unwrap_or(unsaid);
    let put_rest = |out: &mut Vec<u8>| {
        out.u16(command);
        out.u16(m.idle_timeout);
        out.u16(m.hard_timeout);
        out.u16(m.priority);
        out.u32(m.buffer_id.unwrap_or(u32::MAX));
        out.u16(m.out_port.to_of10());
        out.u16(flags);
    };
    if e.dialect.is_nxm() {
        e.message(Kind::NxtFlowMod, |out| {
            out.u64(new_cookie);
            put_rest(out);
            let len_at = out.len();
            out.zeros(8);
            put_nx_match(out, len_at, &m.matching, m.cookie, m.cookie_mask);
            encode_instructions(out, &m.actions, version);
        });
    } else {
        e.message(Kind::OfptFlowMod, |out| {
            of10_match::put(out, &m.matching);
            out.u64(new_cookie);
            put_rest(out);
            encode_instructions(out, &m.actions, version);
        });
    }
}

/// Appends Nicira's match, padded, and puts its length at `len_at`.
pub(super) fn put_nx_match(
    out: &mut Vec<u8>,
    len_at: usize,
    m: &Match,
    cookie: u64,
    cookie_mask: u64,
) {
    let start = out.len();
    put_match(out, m, 0, cookie, cookie_mask);
    let len = out.len() - start;
    out.set_u16(len_at, len as u16);
    out.pad8(start);
}

fn put_mod11(out: &mut Vec<u8>, m: &FlowMod, version: Version, flags: u16) {
    let adds = m.command == FlowModCommand::Add
        || (version == Version::V11 && modifies(m.command) && m.cookie_mask == 0);
    out.u64(if adds {
        m.new_cookie.unwrap_or(0)
    } else {
        m.cookie & m.cookie_mask
    });
    out.u64(m.cookie_mask);
    let all = version > Version::V11 && deletes(m.command);
    out.u8(if m.table != ALL_TABLES || all {
        m.table
    } else {
        0
    });
    out.u8(m.command as u8);
    out.u16(m.idle_timeout);
    out.u16(m.hard_timeout);
    out.u16(m.priority);
    out.u32(m.buffer_id.unwrap_or(u32::MAX));
    out.u32(m.out_port.0);
    out.u32(m.out_group);
    out.u16(flags);
    let imports = version >= Version::V14 && m.command == FlowModCommand::Add;
    out.u16(if imports { m.importance } else { 0 });
    put_ofp12_match(out, &m.matching, version as u8);
    encode_instructions(out, &m.actions, version);
}

fn encode_request(e: &mut Encoder<'_>, m: &FlowStatsRequest, aggregate: bool) {
    let version = e.version;
    let kind = match (aggregate, version == Version::V10 && e.dialect.is_nxm()) {
        (false, false) => Kind::OfpstFlowRequest,
        (false, true) => Kind::NxstFlowRequest,
        (true, false) => Kind::OfpstAggregateRequest,
        (true, true) => Kind::NxstAggregateRequest,
    };
    if version > Version::V10 {
        return e.message(kind, |out| {
            out.u8(m.table);
            out.zeros(3);
            out.u32(m.out_port.0);
            out.u32(m.out_group);
            out.zeros(4);
            out.u64(m.cookie);
            out.u64(m.cookie_mask);
            put_ofp12_match(out, &m.matching, version as u8);
        });
    }
    if e.dialect.is_nxm() {
        return e.message(kind, |out| {
            out.u16(m.out_port.to_of10());
            let len_at = out.len();
            out.u16(0);
            out.u8(m.table);
            out.zeros(3);
            put_nx_match(out, len_at, &m.matching, m.cookie, m.cookie_mask);
        });
    }
    e.message(kind, |out| {
        of10_match::put(out, &m.matching);
        out.u8(m.table);
        out.zeros(1);
        out.u16(m.out_port.to_of10());
    });
}

fn encode_stats(e: &mut Encoder<'_>, part: &Part<FlowStats>) {
    let version = e.version;
    let nxm = version == Version::V10 && e.dialect.is_nxm();
    let kind = if nxm {
        Kind::NxstFlowReply
    } else {
        Kind::OfpstFlowReply
    };
    e.parts(kind, part.more, &part.entries, |out, s| {
        let start = out.len();
        out.u16(0);
        if version == Version::V15 {
            put_stats15(out, s);
        } else {
            out.u8(s.table);
            out.zeros(1);
            match (version, nxm) {
                (Version::V10, false) => put_stats10(out, s),
                (Version::V10, true) => put_stats_nx(out, s),
                _ => put_stats11(out, s, version),
            }
        }
        encode_instructions(out, &s.actions, version);
        let len = out.len() - start;
        out.set_u16(start, len.min(0xffff) as u16);
    });
}

fn put_stats10(out: &mut Vec<u8>, s: &FlowStats) {
    let known = |n: u64| if n == u64::MAX { 0 } else { n };
    of10_match::put(out, &s.matching);
    out.u32(s.duration_sec);
    out.u32(s.duration_nsec);
    out.u16(s.priority);
    out.u16(s.idle_timeout);
    out.u16(s.hard_timeout);
    out.zeros(6);
    out.u64(s.cookie);
    out.u64(known(s.packet_count));
    out.u64(known(s.byte_count));
}

fn put_stats_nx(out: &mut Vec<u8>, s: &FlowStats) {
    out.u32(s.duration_sec);
    out.u32(s.duration_nsec);
    out.u16(s.priority);
    out.u16(s.idle_timeout);
    out.u16(s.hard_timeout);
    let len_at = out.len();
    out.u16(0);
    for age in [s.idle_age, s.hard_age] {
        let plus_one = age.map_or(0, |age| age.saturating_add(1).min(0xffff));
        out.u16(plus_one as u16);
    }
    out.u64(s.cookie);
    out.u64(s.packet_count);
    out.u64(s.byte_count);
    put_nx_match(out, len_at, &s.matching, 0, 0);
}

fn put_stats11(out: &mut Vec<u8>, s: &FlowStats, version: Version) {
    let known = |n: u64| if n == u64::MAX { 0 } else { n };
    out.u32(s.duration_sec);
    out.u32(s.duration_nsec);
    out.u16(s.priority);
    out.u16(s.idle_timeout);
    out.u16(s.hard_timeout);
    let flags = if version >= Version::V13 {
        encode_flags(s.flags, version)
    } else {
        0
    };
    out.u16(flags);
    out.u16(if version >= Version::V14 {
        s.importance
    } else {
        0
    });
    out.zeros(2);
    out.u64(s.cookie);
    out.u64(known(s.packet_count));
    out.u64(known(s.byte_count));
    put_ofp12_match(out, &s.matching, version as u8);
}
