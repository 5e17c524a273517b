//! Flows.

use std::fmt::Write;

use net_flow::text::put_match;
use net_flow::text::value::put_port;
use net_flow::{Names, PortNo};

use super::Style;
use crate::action::put_actions;
use crate::codec::Kind;
use crate::message::{
    FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason, FlowStats,
    FlowStatsRequest,
};
use crate::text::put_table;
use crate::version::Version;

/// Appends seconds, with as many decimals as they need.
pub fn put_duration(out: &mut String, sec: u32, nsec: u32) {
    let _ = write!(out, "{sec}");
    if nsec > 0 {
        if nsec.is_multiple_of(1_000_000) {
            let _ = write!(out, ".{:03}", nsec / 1_000_000);
        } else {
            let digits = format!("{nsec:09}");
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
    }
    out.push('s');
}

/// Appends the names of a flow's flags, with a space behind each.
pub fn put_flow_mod_flags(out: &mut String, flags: FlowModFlags) {
    for (flag, name) in [
        (FlowModFlags::SEND_FLOW_REM, "send_flow_rem "),
        (FlowModFlags::CHECK_OVERLAP, "check_overlap "),
        (FlowModFlags::RESET_COUNTS, "reset_counts "),
        (FlowModFlags::NO_PKT_COUNTS, "no_packet_counts "),
        (FlowModFlags::NO_BYT_COUNTS, "no_byte_counts "),
    ] {
        if flags.contains(flag) {
            out.push_str(name);
        }
    }
}

/// Appends a flow with its statistics, or without them.
pub fn put_flow_stats(out: &mut String, s: &FlowStats, names: &Names, show_stats: bool) {
    if show_stats || s.cookie != 0 {
        let _ = write!(out, "cookie=0x{:x}, ", s.cookie);
    }
    if show_stats {
        out.push_str("duration=");
        put_duration(out, s.duration_sec, s.duration_nsec);
        out.push_str(", ");
    }
    if show_stats || s.table != 0 || names.tables.name(u32::from(s.table)).is_some() {
        out.push_str("table=");
        put_table(out, s.table, names);
        out.push_str(", ");
    }
    if show_stats {
        for (name, count) in [("n_packets", s.packet_count), ("n_bytes", s.byte_count)] {
            let _ = match count {
                u64::MAX => write!(out, "{name}=?, "),
                count => write!(out, "{name}={count}, "),
            };
        }
    }
    if s.idle_timeout != 0 {
        let _ = write!(out, "idle_timeout={}, ", s.idle_timeout);
    }
    if s.hard_timeout != 0 {
        let _ = write!(out, "hard_timeout={}, ", s.hard_timeout);
    }
    put_flow_mod_flags(out, s.flags);
    if s.importance != 0 {
        let _ = write!(out, "importance={}, ", s.importance);
    }
    if show_stats {
        if let Some(age) = s.idle_age {
            let _ = write!(out, "idle_age={age}, ");
        }
        if let Some(age) = s.hard_age.filter(|age| *age != s.duration_sec) {
            let _ = write!(out, "hard_age={age}, ");
        }
    }
    let len = out.len();
    put_match(out, &s.matching, i32::from(s.priority), names);
    if out.len() != len {
        out.push(' ');
    }
    out.push_str("actions=");
    put_actions(out, &s.actions, names);
}

pub(super) fn put_stats_request(out: &mut String, m: &FlowStatsRequest, names: &Names) {
    if m.table != 255 {
        out.push_str(" table=");
        put_table(out, m.table, names);
    }
    if m.out_port != PortNo::NONE {
        out.push_str(" out_port=");
        put_port(out, m.out_port, names);
    }
    out.push(' ');
    put_match(out, &m.matching, 32768, names);
}

pub(super) fn put_flow_removed(out: &mut String, m: &FlowRemoved, names: &Names) {
    out.push(' ');
    put_match(out, &m.matching, i32::from(m.priority), names);
    let reason = match m.reason {
        FlowRemovedReason::IdleTimeout => "idle",
        FlowRemovedReason::HardTimeout => "hard",
        FlowRemovedReason::Delete => "delete",
        FlowRemovedReason::GroupDelete => "group_delete",
        FlowRemovedReason::MeterDelete => "meter_delete",
        FlowRemovedReason::Eviction => "eviction",
    };
    let _ = write!(out, " reason={reason}");
    if m.table != 255 {
        out.push_str(" table_id=");
        put_table(out, m.table, names);
    }
    if m.cookie != 0 {
        let _ = write!(out, " cookie:0x{:x}", m.cookie);
    }
    out.push_str(" duration");
    put_duration(out, m.duration_sec, m.duration_nsec);
    let _ = write!(out, " idle{}", m.idle_timeout);
    if m.hard_timeout != 0 {
        let _ = write!(out, " hard{}", m.hard_timeout);
    }
    let _ = writeln!(out, " pkts{} bytes{}", m.packet_count, m.byte_count);
}

pub(super) fn put_flow_mod(
    out: &mut String,
    m: &FlowMod,
    version: Version,
    kind: Kind,
    bytes: &[u8],
    style: Style<'_>,
) {
    let names = style.names;
    out.push_str(match m.command {
        FlowModCommand::Add => " ADD",
        FlowModCommand::Modify => " MOD",
        FlowModCommand::ModifyStrict => " MOD_STRICT",
        FlowModCommand::Delete => " DEL",
        FlowModCommand::DeleteStrict => " DEL_STRICT",
    });
    if m.table != 0 || names.tables.name(u32::from(m.table)).is_some() {
        out.push_str(" table:");
        put_table(out, m.table, names);
    }
    out.push(' ');
    let raw_match = style.verbosity >= 3 && version == Version::V10;
    let need_priority = raw_match && put_raw_match(out, kind, bytes, style);
    if !need_priority {
        put_match(out, &m.matching, i32::from(m.priority), names);
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    if let Some(cookie) = m.new_cookie.filter(|cookie| *cookie != 0) {
        let _ = write!(out, "cookie:0x{cookie:x} ");
    }
    if m.cookie_mask != 0 {
        let _ = write!(out, "cookie:0x{:x}/0x{:x} ", m.cookie, m.cookie_mask);
    }
    if m.idle_timeout != 0 {
        let _ = write!(out, "idle:{} ", m.idle_timeout);
    }
    if m.hard_timeout != 0 {
        let _ = write!(out, "hard:{} ", m.hard_timeout);
    }
    if m.importance != 0 {
        let _ = write!(out, "importance:{} ", m.importance);
    }
    if m.priority != 32768 && need_priority {
        let _ = write!(out, "pri:{} ", m.priority);
    }
    if let Some(id) = m.buffer_id {
        let _ = write!(out, "buf:0x{id:x} ");
    }
    if m.out_port != PortNo::NONE {
        out.push_str("out_port:");
        put_port(out, m.out_port, names);
        out.push(' ');
    }
    let mut flags = m.flags;
    if version <= Version::V11 {
        // There every add has it, so it says nothing.
        flags -= FlowModFlags::RESET_COUNTS;
    }
    put_flow_mod_flags(out, flags);
    out.push_str("actions=");
    put_actions(out, &m.actions, names);
}

/// Appends the match as its bytes say it, not as it is understood.
fn put_raw_match(out: &mut String, kind: Kind, bytes: &[u8], style: Style<'_>) -> bool {
    match kind {
        Kind::OfptFlowMod => {
            let Some(bytes) = bytes.get(8..48) else {
                return false;
            };
            out.push_str(&crate::of10_match::text(
                bytes,
                style.names,
                style.verbosity,
            ));
            true
        }
        Kind::NxtFlowMod => {
            let Some(len) = bytes.get(40..42) else {
                return false;
            };
            let len = usize::from(u16::from_be_bytes([len[0], len[1]]));
            let Some(bytes) = bytes.get(48..48 + len) else {
                return false;
            };
            out.push_str(&crate::oxm::match_text(bytes));
            true
        }
        _ => false,
    }
}
