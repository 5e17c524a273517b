//! Ports and queues.

use std::fmt::Write;

use net_flow::text::addr::put_eth;
use net_flow::text::value::put_port;
use net_flow::{Names, PortNo};

use super::flow::put_duration;
use super::{Style, put_bits};
use crate::message::{
    Body, PortConfig, PortDesc, PortFeatures, PortMod, PortState, PortStats, PortStatusReason,
    QueueStats,
};

const CONFIG: &[(u32, &str)] = &[
    (PortConfig::PORT_DOWN.bits(), "PORT_DOWN"),
    (PortConfig::NO_STP.bits(), "NO_STP"),
    (PortConfig::NO_RECV.bits(), "NO_RECV"),
    (PortConfig::NO_RECV_STP.bits(), "NO_RECV_STP"),
    (PortConfig::NO_FLOOD.bits(), "NO_FLOOD"),
    (PortConfig::NO_FWD.bits(), "NO_FWD"),
    (PortConfig::NO_PACKET_IN.bits(), "NO_PACKET_IN"),
];

const STATE: &[(u32, &str)] = &[
    (PortState::LINK_DOWN.bits(), "LINK_DOWN"),
    (PortState::BLOCKED.bits(), "BLOCKED"),
    (PortState::LIVE.bits(), "LIVE"),
];

const FEATURES: &[(u32, &str)] = &[
    (PortFeatures::HD_10MB.bits(), "10MB-HD"),
    (PortFeatures::FD_10MB.bits(), "10MB-FD"),
    (PortFeatures::HD_100MB.bits(), "100MB-HD"),
    (PortFeatures::FD_100MB.bits(), "100MB-FD"),
    (PortFeatures::HD_1GB.bits(), "1GB-HD"),
    (PortFeatures::FD_1GB.bits(), "1GB-FD"),
    (PortFeatures::FD_10GB.bits(), "10GB-FD"),
    (PortFeatures::FD_40GB.bits(), "40GB-FD"),
    (PortFeatures::FD_100GB.bits(), "100GB-FD"),
    (PortFeatures::FD_1TB.bits(), "1TB-FD"),
    (PortFeatures::OTHER.bits(), "OTHER"),
    (PortFeatures::COPPER.bits(), "COPPER"),
    (PortFeatures::FIBER.bits(), "FIBER"),
    (PortFeatures::AUTONEG.bits(), "AUTO_NEG"),
    (PortFeatures::PAUSE.bits(), "AUTO_PAUSE"),
    (PortFeatures::PAUSE_ASYM.bits(), "AUTO_PAUSE_ASYM"),
];

fn put_mac(out: &mut String, mac: [u8; 6]) {
    put_eth(out, mac.iter().fold(0, |v, b| (v << 8) | u64::from(*b)));
}

fn put_state(out: &mut String, state: PortState) {
    let stp = match state.bits() & 0x300 {
        0 => "",
        0x100 => "STP_LEARN",
        0x200 => "STP_FORWARD",
        _ => "STP_BLOCK",
    };
    let rest = state.bits() & !0x300;
    out.push_str(stp);
    if !stp.is_empty() && rest != 0 {
        out.push(' ');
    }
    if stp.is_empty() || rest != 0 {
        put_bits(out, rest, STATE);
    }
    out.push('\n');
}

/// Appends a port's description, in several lines.
pub fn put_port_desc(out: &mut String, d: &PortDesc) {
    out.push(' ');
    put_port(out, d.port, &Names::default());
    let end = d.name.find(|c: char| !(' '..='~').contains(&c));
    let _ = write!(out, "({}): addr:", &d.name[..end.unwrap_or(d.name.len())]);
    put_mac(out, d.hw_addr);
    out.push_str("\n     config:     ");
    put_bits(out, d.config.bits(), CONFIG);
    out.push_str("\n     state:      ");
    put_state(out, d.state);
    for (title, features) in [
        ("current:    ", d.curr),
        ("advertised: ", d.advertised),
        ("supported:  ", d.supported),
        ("peer:       ", d.peer),
    ] {
        if !features.is_empty() {
            let _ = write!(out, "     {title}");
            put_bits(out, features.bits(), FEATURES);
            out.push('\n');
        }
    }
    let _ = writeln!(
        out,
        "     speed: {} Mbps now, {} Mbps max",
        d.curr_speed / 1000,
        d.max_speed / 1000
    );
}

/// Appends descriptions by port number.
pub(super) fn put_descs(out: &mut String, descs: &[PortDesc]) {
    let mut sorted: Vec<&PortDesc> = descs.iter().collect();
    sorted.sort_by_key(|d| d.port.to_of10());
    for desc in sorted {
        put_port_desc(out, desc);
    }
}

fn put_port_mod(out: &mut String, m: &PortMod, names: &Names) {
    out.push_str(" port: ");
    put_port(out, m.port, names);
    out.push_str(": addr:");
    put_mac(out, m.hw_addr);
    out.push_str("\n     config: ");
    put_bits(out, m.config.bits(), CONFIG);
    out.push_str("\n     mask:   ");
    put_bits(out, m.mask.bits(), CONFIG);
    out.push_str("\n     advertise: ");
    if m.advertise.is_empty() {
        out.push_str("UNCHANGED");
    } else {
        put_bits(out, m.advertise.bits(), FEATURES);
    }
    out.push('\n');
}

fn put_counters(out: &mut String, counters: &[(&str, u64)]) {
    for (i, (name, count)) in counters.iter().enumerate() {
        let _ = match *count {
            u64::MAX => write!(out, "{name}=?"),
            count => write!(out, "{name}={count}"),
        };
        out.push_str(if i + 1 < counters.len() { ", " } else { "\n" });
    }
}

fn put_port_stats(out: &mut String, s: &PortStats, names: &Names) {
    out.push_str("  port ");
    if s.port.0 < 10 {
        out.push(' ');
    }
    put_port(out, s.port, names);
    out.push_str(": rx ");
    put_counters(
        out,
        &[
            ("pkts", s.rx_packets),
            ("bytes", s.rx_bytes),
            ("drop", s.rx_dropped),
            ("errs", s.rx_errors),
            ("frame", s.rx_frame_errors),
            ("over", s.rx_over_errors),
            ("crc", s.rx_crc_errors),
        ],
    );
    out.push_str("           tx ");
    put_counters(
        out,
        &[
            ("pkts", s.tx_packets),
            ("bytes", s.tx_bytes),
            ("drop", s.tx_dropped),
            ("errs", s.tx_errors),
            ("coll", s.collisions),
        ],
    );
    if s.duration_sec != u32::MAX {
        out.push_str("           duration=");
        put_duration(out, s.duration_sec, s.duration_nsec);
        out.push('\n');
    }
}

fn put_queue(out: &mut String, queue: u32) {
    let _ = match queue {
        u32::MAX => write!(out, "ALL"),
        queue => write!(out, "{queue}"),
    };
}

fn put_queue_stats(out: &mut String, s: &QueueStats, names: &Names) {
    out.push_str("  port ");
    put_port(out, s.port, names);
    out.push_str(" queue ");
    put_queue(out, s.queue);
    out.push_str(": ");
    put_counters(
        out,
        &[
            ("bytes", s.tx_bytes),
            ("pkts", s.tx_packets),
            ("errors", s.tx_errors),
        ],
    );
    // The counters' newline belongs behind the duration.
    out.pop();
    out.push_str(", duration=");
    if s.duration_sec == u32::MAX {
        out.push('?');
    } else {
        put_duration(out, s.duration_sec, s.duration_nsec);
    }
    out.push('\n');
}

fn put_queue_config(
    out: &mut String,
    port: PortNo,
    queues: &[(u32, Option<u16>, Option<u16>)],
    names: &Names,
) {
    let mut sorted = queues.to_vec();
    sorted.sort_by_key(|(id, ..)| *id);
    out.push(' ');
    if !sorted.is_empty() {
        out.push_str("port=");
        put_port(out, port, names);
        out.push('\n');
    }
    for (id, min, max) in sorted {
        let _ = write!(out, "queue {id}:");
        for (name, rate) in [("min_rate", min), ("max_rate", max)] {
            if let Some(rate) = rate {
                let _ = write!(out, " {name}:{}.{}%", rate / 10, rate % 10);
            }
        }
        out.push('\n');
    }
}

pub(super) fn put(out: &mut String, body: &Body, style: Style<'_>) -> bool {
    let names = style.names;
    match body {
        Body::PortStatus(s) => {
            out.push_str(match s.reason {
                PortStatusReason::Add => " ADD:",
                PortStatusReason::Delete => " DEL:",
                PortStatusReason::Modify => " MOD:",
            });
            put_port_desc(out, &s.desc);
        }
        Body::PortMod(m) => put_port_mod(out, m, names),
        Body::PortStatsRequest(port) => {
            out.push_str(" port_no=");
            put_port(out, *port, names);
        }
        Body::PortStatsReply(part) => {
            let _ = writeln!(out, " {} ports", part.entries.len());
            if style.verbosity >= 1 {
                part.entries
                    .iter()
                    .for_each(|s| put_port_stats(out, s, names));
            }
        }
        Body::PortDescRequest(port) => {
            out.push_str(" port=");
            put_port(out, *port, names);
        }
        Body::PortDescReply(part) => {
            out.push('\n');
            put_descs(out, &part.entries);
        }
        Body::QueueStatsRequest { port, queue } => {
            out.push_str(" port=");
            put_port(out, *port, names);
            out.push_str(" queue=");
            put_queue(out, *queue);
        }
        Body::QueueStatsReply(part) => {
            let _ = writeln!(out, " {} queues", part.entries.len());
            if style.verbosity >= 1 {
                part.entries
                    .iter()
                    .for_each(|s| put_queue_stats(out, s, names));
            }
        }
        Body::QueueGetConfigRequest { port, queue } => {
            out.push_str(" port=");
            put_port(out, *port, names);
            if *queue != u32::MAX {
                let _ = write!(out, " queue={queue}");
            }
        }
        Body::QueueGetConfigReply { port, queues } => put_queue_config(out, *port, queues, names),
        _ => return false,
    }
    true
}
