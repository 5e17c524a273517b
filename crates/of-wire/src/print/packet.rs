//! Packets between switch and controller.

use std::fmt::Write;

use net_flow::text::put_match;
use net_flow::types::ip_proto;
use net_flow::{FlowKey, Names, PortNo, slot};
use net_packet::Packet;

use super::{Style, put_hex_dump};
use crate::action::put_actions;
use crate::message::{PacketIn, PacketInReason, PacketOut};
use crate::text::put_table;

/// Appends what a packet that came in at `in_port` is, field by field.
pub fn put_packet_flow(out: &mut String, bytes: &[u8], in_port: PortNo) {
    let mut packet = Packet::from_frame(bytes);
    let mut key = FlowKey::new();
    key.set(slot::IN_PORT, u128::from(in_port.0));
    net_flow::extract::extract(&mut packet, &mut key, net_flow::extract::MAX_VLANS);
    net_flow::packet::put_packet(out, &key, &Names::default());
}

/// Appends what a packet is, with its L4 checksum, and a newline.
pub fn put_packet_text(out: &mut String, bytes: &[u8], packet_type: u32) {
    let mut packet = Packet::from_frame(bytes);
    let mut key = FlowKey::new();
    key.set(slot::PACKET_TYPE, u128::from(packet_type));
    net_flow::extract::extract(&mut packet, &mut key, net_flow::extract::MAX_VLANS);
    net_flow::packet::put_packet(out, &key, &Names::default());
    if let Some(at) = packet.layers.l4 {
        put_checksum(
            out,
            key.get(slot::NW_PROTO) as u8,
            packet.tail_from(usize::from(at)),
        );
    }
    out.push('\n');
}

fn put_checksum(out: &mut String, proto: u8, l4: &[u8]) {
    let word = |at: usize| l4.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let _ = match (proto, l4.len()) {
        (ip_proto::TCP, 20..) => write!(out, " tcp_csum:{:x}", word(16).unwrap_or(0)),
        (ip_proto::UDP, 8..) => write!(out, " udp_csum:{:x}", word(6).unwrap_or(0)),
        (ip_proto::SCTP, 12..) => {
            let (high, low) = (word(8).unwrap_or(0), word(10).unwrap_or(0));
            let sum = u32::from(high) << 16 | u32::from(low);
            write!(out, " sctp_csum:{sum:x}")
        }
        (ip_proto::ICMP, 8..) => write!(out, " icmp_csum:{:x}", word(2).unwrap_or(0)),
        (ip_proto::ICMPV6, 4..) => write!(out, " icmp6_csum:{:x}", word(2).unwrap_or(0)),
        _ => Ok(()),
    };
}

const fn reason_name(reason: PacketInReason) -> &'static str {
    match reason {
        PacketInReason::NoMatch => "no_match",
        PacketInReason::Action => "action",
        PacketInReason::InvalidTtl => "invalid_ttl",
        PacketInReason::ActionSet => "action_set",
        PacketInReason::Group => "group",
        PacketInReason::PacketOut => "packet_out",
        PacketInReason::ExplicitMiss | PacketInReason::ImplicitMiss => "",
    }
}

pub(super) fn put_packet_in(out: &mut String, m: &PacketIn, style: Style<'_>) {
    let names = style.names;
    if m.table != 0 || names.tables.name(u32::from(m.table)).is_some() {
        out.push_str(" table_id=");
        put_table(out, m.table, names);
    }
    if m.cookie != u64::MAX {
        let _ = write!(out, " cookie=0x{:x}", m.cookie);
    }
    let (total, len) = (m.total_len as usize, m.packet.len());
    let _ = write!(out, " total_len={total} ");
    put_match(out, &m.metadata, 32768, names);
    let _ = write!(out, " (via {}) data_len={len}", reason_name(m.reason));
    match m.buffer_id {
        None => {
            out.push_str(" (unbuffered)");
            if total != len {
                out.push_str(" (***total_len != data_len***)");
            }
        }
        Some(id) => {
            let _ = write!(out, " buffer=0x{id:08x}");
            if total < len {
                out.push_str(" (***total_len < data_len***)");
            }
        }
    }
    out.push('\n');
    if !m.userdata.is_empty() {
        out.push_str(" userdata=");
        for (i, byte) in m.userdata.iter().enumerate() {
            let dot = if i > 0 { "." } else { "" };
            let _ = write!(out, "{dot}{byte:02x}");
        }
        out.push('\n');
    }
    if style.verbosity > 0 {
        let packet_type = m.metadata.key().get(slot::PACKET_TYPE) as u32;
        put_packet_text(out, &m.packet, packet_type);
    }
    if style.verbosity > 2 {
        put_hex_dump(out, &m.packet, false);
    }
}

pub(super) fn put_packet_out(out: &mut String, m: &PacketOut, style: Style<'_>) {
    out.push(' ');
    put_match(out, &m.metadata, 32768, style.names);
    out.push_str(" actions=");
    put_actions(out, &m.actions, style.names);
    if let Some(id) = m.buffer_id {
        let _ = write!(out, " buffer=0x{id:08x}");
        return;
    }
    let _ = write!(out, " data_len={}", m.packet.len());
    if style.verbosity > 0 && !m.packet.is_empty() {
        out.push('\n');
        let packet_type = m.metadata.key().get(slot::PACKET_TYPE) as u32;
        put_packet_text(out, &m.packet, packet_type);
    }
    if style.verbosity > 2 {
        put_hex_dump(out, &m.packet, false);
    }
}
