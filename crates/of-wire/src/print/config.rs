//! Handshake, configuration, roles, and Nicira's settings.

use std::fmt::Write;

use super::table::action_names;
use super::{Style, c_hex, port, put_bits, put_hex_dump};
use crate::message::{
    AsyncConfig, AsyncKind, Body, BundleControl, ControllerRole, Features, PacketInFormat,
    SwitchConfig,
};
use crate::version::{Version, VersionSet};

pub(super) const BUNDLE_FLAGS: &[(u32, &str)] = &[(1, "atomic"), (2, "ordered")];

fn put_versions(out: &mut String, versions: VersionSet) {
    out.push_str("\n version bitmap: ");
    let set = (1..32).filter(|n| versions.0 >> n & 1 != 0);
    let names: Vec<String> = set.map(|n| format!("0x{n:02x}")).collect();
    out.push_str(&names.join(", "));
}

fn put_features(out: &mut String, f: &Features, version: Version) {
    let _ = writeln!(out, " dpid:{:016x}", f.datapath_id);
    let _ = write!(out, "n_tables:{}, n_buffers:{}", f.n_tables, f.n_buffers);
    if f.auxiliary_id != 0 {
        let _ = write!(out, ", auxiliary_id:{}", f.auxiliary_id);
    }
    out.push_str("\ncapabilities: ");
    let mut names = vec![
        (1, "FLOW_STATS"),
        (1 << 1, "TABLE_STATS"),
        (1 << 2, "PORT_STATS"),
    ];
    if version >= Version::V11 {
        names.push((1 << 3, "GROUP_STATS"));
    }
    names.extend([(1 << 5, "IP_REASM"), (1 << 6, "QUEUE_STATS")]);
    match version {
        Version::V10 => names.extend([(1 << 7, "ARP_MATCH_IP"), (1 << 3, "STP")]),
        Version::V11 => names.push((1 << 7, "ARP_MATCH_IP")),
        _ => names.push((1 << 8, "PORT_BLOCKED")),
    }
    if version >= Version::V14 {
        names.extend([(1 << 9, "BUNDLES"), (1 << 10, "FLOW_MONITORING")]);
    }
    let known = names.iter().fold(0, |bits, (bit, _)| bits | bit);
    put_bits(out, f.capabilities & known, &names);
    out.push('\n');
    if f.actions & 0xfff != 0 {
        out.push_str("actions:");
        for name in action_names(f.actions, version) {
            let _ = write!(out, " {name}");
        }
        out.push('\n');
    }
    port::put_descs(out, &f.ports);
}

/// The name of a way to treat fragments.
pub(super) fn frag_name(frag: u16) -> &'static str {
    match frag & 3 {
        0 => "normal",
        1 => "drop",
        2 => "reassemble",
        _ => "nx-match",
    }
}

fn put_config(out: &mut String, c: SwitchConfig) {
    let _ = write!(out, " frags={}", frag_name(c.frag));
    if c.invalid_ttl_to_controller == Some(true) {
        out.push_str(" invalid_ttl_to_controller");
    }
    let _ = writeln!(out, " miss_send_len={}", c.miss_send_len);
}

const fn role_name(role: ControllerRole) -> &'static str {
    match role {
        ControllerRole::NoChange => "nochange",
        ControllerRole::Equal => "equal",
        ControllerRole::Primary => "primary",
        ControllerRole::Secondary => "secondary",
    }
}

fn put_async(out: &mut String, c: &AsyncConfig) {
    let kinds: [(AsyncKind, &str, &[&str]); 6] = [
        (
            AsyncKind::PacketIn,
            "PACKET_IN",
            &[
                "no_match",
                "action",
                "invalid_ttl",
                "action_set",
                "group",
                "packet_out",
                "",
                "",
            ],
        ),
        (
            AsyncKind::PortStatus,
            "PORT_STATUS",
            &["add", "delete", "modify"],
        ),
        (
            AsyncKind::FlowRemoved,
            "FLOW_REMOVED",
            &[
                "idle",
                "hard",
                "delete",
                "group_delete",
                "meter_delete",
                "eviction",
            ],
        ),
        (
            AsyncKind::RoleStatus,
            "ROLE_STATUS",
            &[
                "primary_request",
                "configuration_changed",
                "experimenter_data_changed",
            ],
        ),
        (
            AsyncKind::TableStatus,
            "TABLE_STATUS",
            &["0", "1", "2", "vacancy_down", "vacancy_up"],
        ),
        (
            AsyncKind::RequestForward,
            "REQUESTFORWARD",
            &["group_mod_request", "meter_mod_request"],
        ),
    ];
    for (title, masks) in [("primary", c.primary), ("secondary", c.secondary)] {
        let _ = writeln!(out, "\n {title}:");
        for (kind, name, reasons) in kinds {
            let _ = write!(out, "{name:>16}:");
            let mask = masks[kind as usize];
            for bit in (0..32).filter(|bit| mask >> bit & 1 != 0) {
                let _ = match reasons.get(bit) {
                    Some(&"") => Ok(()),
                    Some(reason) => write!(out, " {reason}"),
                    None => write!(out, " {bit}"),
                };
            }
            out.push_str(if mask == 0 { " (off)\n" } else { "\n" });
        }
    }
}

fn put_bundle_control(out: &mut String, b: BundleControl) {
    let kinds = ["OPEN", "CLOSE", "COMMIT", "DISCARD"];
    let name = kinds.get(usize::from(b.kind / 2)).unwrap_or(&"");
    let half = if b.kind.is_multiple_of(2) {
        "REQUEST"
    } else {
        "REPLY"
    };
    let id = c_hex(b.id);
    let _ = write!(out, "\n bundle_id={id} type={name}_{half} flags=");
    put_bits(out, u32::from(b.flags), BUNDLE_FLAGS);
}

pub(super) fn put(
    out: &mut String,
    body: &Body,
    version: Version,
    bytes: &[u8],
    style: Style<'_>,
) -> bool {
    let _ = match body {
        Body::Hello(versions) => {
            put_versions(out, *versions);
            if !crate::codec::hello_is_clear(bytes) {
                out.push_str("\n unknown data in hello:\n");
                put_hex_dump(out, bytes, true);
            }
            Ok(())
        }
        Body::EchoRequest(data) | Body::EchoReply(data) => {
            let _ = writeln!(out, " {} bytes of payload", data.len());
            if style.verbosity > 1 {
                put_hex_dump(out, &bytes[8..], true);
            }
            Ok(())
        }
        Body::FeaturesReply(f) => {
            put_features(out, f, version);
            Ok(())
        }
        Body::GetConfigReply(c) | Body::SetConfig(c) => {
            put_config(out, *c);
            Ok(())
        }
        Body::RoleRequest(m) | Body::RoleReply(m) => {
            let _ = write!(out, " role={}", role_name(m.role));
            match m.generation_id {
                Some(id) => write!(out, " generation_id={id}"),
                None => Ok(()),
            }
        }
        Body::RoleStatus(m) => {
            let reasons = [
                "primary_request",
                "configuration_changed",
                "experimenter_data_changed",
            ];
            let reason = reasons.get(usize::from(m.reason)).unwrap_or(&"(unknown)");
            let _ = write!(out, " role={}", role_name(m.role));
            if m.generation_id != u64::MAX {
                let _ = write!(out, " generation_id={}", m.generation_id);
            }
            write!(out, " reason={reason}")
        }
        Body::GetAsyncReply(c) | Body::SetAsync(c) => {
            put_async(out, c);
            Ok(())
        }
        Body::DescReply(d) => writeln!(
            out,
            "\nManufacturer: {}\nHardware: {}\nSoftware: {}\nSerial Num: {}\nDP Description: {}",
            d.mfr, d.hw, d.sw, d.serial, d.dp
        ),
        Body::FlowModTableId(set) => {
            write!(out, " {}", if *set { "enable" } else { "disable" })
        }
        Body::SetFlowFormat(format) => write!(
            out,
            " format={}",
            match format {
                0 => "openflow10",
                2 => "nxm",
                _ => "(unknown)",
            }
        ),
        Body::SetPacketInFormat(format) => write!(
            out,
            " format={}",
            match format {
                PacketInFormat::Standard => "standard",
                PacketInFormat::Nxt => "nxt_packet_in",
                PacketInFormat::Nxt2 => "nxt_packet_in2",
            }
        ),
        Body::SetControllerId(id) => write!(out, " id={id}"),
        Body::CtFlushZone(zone) => write!(out, " zone_id={zone}"),
        Body::CtFlush(flush) => {
            let _ = write!(out, " zone={} ", flush.zone.unwrap_or(0));
            flush.of.put(out);
            Ok(())
        }
        Body::BundleControl(b) => {
            put_bundle_control(out, *b);
            Ok(())
        }
        _ => return false,
    };
    true
}
