//! What is said of removed flows.

use super::flow::pull_match11;
use super::oxs::{self, Oxs};
use super::pull_nx_match;
use super::{Encoder, Head, flow::put_nx_match, kind::Kind};
use crate::error::ErrorCode;
use crate::message::{FlowRemoved, FlowRemovedReason};
use crate::of10_match;
use crate::oxm::{MatchRules, put_ofp12_match, read_match};
use crate::version::Version;
use crate::wire::{Put, Reader};

/// What stands for the table where it is not said.
const UNKNOWN_TABLE: u8 = 255;

pub(super) fn decode(head: &Head<'_>) -> Result<FlowRemoved, ErrorCode> {
    match (head.kind, head.version) {
        (Kind::NxtFlowRemoved, _) => decode_removed_nx(head.body),
        (_, Version::V10) => decode_removed10(head.body),
        (_, Version::V15) => decode_removed15(head.body),
        (_, version) => decode_removed11(head.body, version),
    }
}

fn removed_reason(number: u8) -> Result<FlowRemovedReason, ErrorCode> {
    Ok(match number {
        0 => FlowRemovedReason::IdleTimeout,
        1 => FlowRemovedReason::HardTimeout,
        2 => FlowRemovedReason::Delete,
        3 => FlowRemovedReason::GroupDelete,
        4 => FlowRemovedReason::MeterDelete,
        5 => FlowRemovedReason::Eviction,
        _ => return Err(ErrorCode::NxbrcBadReason),
    })
}

fn decode_removed10(mut r: Reader<'_>) -> Result<FlowRemoved, ErrorCode> {
    let matching = of10_match::pull(&mut r)?;
    let (cookie, priority, reason) = (r.u64()?, r.u16()?, r.u8()?);
    r.skip(1)?;
    let (duration_sec, duration_nsec, idle_timeout) = (r.u32()?, r.u32()?, r.u16()?);
    r.skip(2)?;
    Ok(FlowRemoved {
        matching,
        cookie,
        priority,
        table: UNKNOWN_TABLE,
        reason: removed_reason(reason)?,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout: 0,
        packet_count: r.u64()?,
        byte_count: r.u64()?,
    })
}

fn decode_removed11(mut r: Reader<'_>, version: Version) -> Result<FlowRemoved, ErrorCode> {
    let (cookie, priority, reason, table) = (r.u64()?, r.u16()?, r.u8()?, r.u8()?);
    let (duration_sec, duration_nsec) = (r.u32()?, r.u32()?);
    let (idle_timeout, hard_timeout) = (r.u16()?, r.u16()?);
    let (packet_count, byte_count) = (r.u64()?, r.u64()?);
    Ok(FlowRemoved {
        matching: pull_match11(&mut r, version)?,
        cookie,
        priority,
        table,
        reason: removed_reason(reason)?,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout,
        packet_count,
        byte_count,
    })
}

fn decode_removed_nx(mut r: Reader<'_>) -> Result<FlowRemoved, ErrorCode> {
    let (cookie, priority, reason, table) = (r.u64()?, r.u16()?, r.u8()?, r.u8()?);
    let (duration_sec, duration_nsec) = (r.u32()?, r.u32()?);
    let (idle_timeout, match_len) = (r.u16()?, usize::from(r.u16()?));
    let (packet_count, byte_count) = (r.u64()?, r.u64()?);
    let bytes = pull_nx_match(&mut r, match_len)?;
    let (matching, ..) = read_match(bytes, MatchRules::STRICT)?;
    if !r.is_empty() {
        return Err(ErrorCode::OfpbrcBadLen);
    }
    Ok(FlowRemoved {
        matching,
        cookie,
        priority,
        table: table.checked_sub(1).unwrap_or(UNKNOWN_TABLE),
        reason: removed_reason(reason)?,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout: 0,
        packet_count,
        byte_count,
    })
}

fn decode_removed15(mut r: Reader<'_>) -> Result<FlowRemoved, ErrorCode> {
    let (table, reason, priority) = (r.u8()?, r.u8()?, r.u16()?);
    let (idle_timeout, hard_timeout, cookie) = (r.u16()?, r.u16()?, r.u64()?);
    let matching = pull_match11(&mut r, Version::V15)?;
    let stats = oxs::pull(&mut r)?;
    Ok(FlowRemoved {
        matching,
        cookie,
        priority,
        table,
        reason: removed_reason(reason)?,
        duration_sec: stats.duration_sec,
        duration_nsec: stats.duration_nsec,
        idle_timeout,
        hard_timeout,
        packet_count: stats.packet_count,
        byte_count: stats.byte_count,
    })
}

pub(super) fn encode(e: &mut Encoder<'_>, m: &FlowRemoved) {
    let version = e.version;
    let mut reason = m.reason as u8;
    if m.reason == FlowRemovedReason::MeterDelete && version < Version::V14 {
        reason = FlowRemovedReason::Delete as u8;
    }
    let put_duration = |out: &mut Vec<u8>| {
        out.u32(m.duration_sec);
        out.u32(m.duration_nsec);
        out.u16(m.idle_timeout);
    };
    if version == Version::V15 {
        return e.message(Kind::OfptFlowRemoved, |out| {
            out.u8(m.table);
            out.u8(reason);
            out.u16(m.priority);
            out.u16(m.idle_timeout);
            out.u16(m.hard_timeout);
            out.u64(m.cookie);
            put_ofp12_match(out, &m.matching, version as u8);
            let stats = Oxs {
                duration_sec: m.duration_sec,
                duration_nsec: m.duration_nsec,
                packet_count: m.packet_count,
                byte_count: m.byte_count,
                ..Oxs::UNKNOWN
            };
            oxs::put(out, stats);
        });
    }
    if version > Version::V10 {
        return e.message(Kind::OfptFlowRemoved, |out| {
            out.u64(m.cookie);
            out.u16(m.priority);
            out.u8(reason);
            out.u8(m.table);
            put_duration(out);
            out.u16(m.hard_timeout);
            out.u64(m.packet_count);
            out.u64(m.byte_count);
            put_ofp12_match(out, &m.matching, version as u8);
        });
    }
    if e.dialect.is_nxm() {
        return e.message(Kind::NxtFlowRemoved, |out| {
            out.u64(m.cookie);
            out.u16(m.priority);
            out.u8(reason);
            out.u8(m.table.wrapping_add(1));
            put_duration(out);
            let len_at = out.len();
            out.u16(0);
            out.u64(m.packet_count);
            out.u64(m.byte_count);
            put_nx_match(out, len_at, &m.matching, 0, 0);
        });
    }
    let known = |n: u64| if n == u64::MAX { 0 } else { n };
    e.message(Kind::OfptFlowRemoved, |out| {
        of10_match::put(out, &m.matching);
        out.u64(m.cookie);
        out.u16(m.priority);
        out.u8(reason);
        out.zeros(1);
        put_duration(out);
        out.zeros(2);
        out.u64(known(m.packet_count));
        out.u64(known(m.byte_count));
    });
}
