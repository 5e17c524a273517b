//! What is sent unasked: packets, removed rules, ports.

use base::Instant;
use of_wire::message::{
    AsyncKind, FlowRemoved, FlowRemovedReason, PacketIn, PacketInReason, PortDesc, PortStatus,
    PortStatusReason,
};
use of_wire::{Body, Message, Version};

use crate::bridge::Bridge;
use crate::conn::{ConnId, QueuedPacket};
use crate::rule::Rule;
use crate::wire;

/// A packet for the controllers.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketInEvent {
    /// The packet with what goes along.
    pub packet: PacketIn,
    /// Controllers with this id get it; 0 is what controllers have that said nothing.
    pub controller_id: u16,
}

/// Which of a connection's two queues a packet waits in.
const fn queue_of(reason: PacketInReason) -> usize {
    match reason {
        PacketInReason::NoMatch | PacketInReason::ExplicitMiss | PacketInReason::ImplicitMiss => 0,
        _ => 1,
    }
}

/// The reason as a version of OpenFlow has it.
const fn reason_in(reason: PacketInReason, version: Version) -> PacketInReason {
    match reason {
        PacketInReason::ImplicitMiss => PacketInReason::NoMatch,
        PacketInReason::ExplicitMiss if version as u8 >= Version::V13 as u8 => {
            PacketInReason::NoMatch
        }
        PacketInReason::ExplicitMiss => PacketInReason::Action,
        PacketInReason::ActionSet | PacketInReason::Group | PacketInReason::PacketOut
            if (version as u8) < Version::V14 as u8 =>
        {
            PacketInReason::Action
        }
        reason => reason,
    }
}

/// The reason as a version of OpenFlow has it.
const fn removal_in(reason: FlowRemovedReason, version: Version) -> FlowRemovedReason {
    match reason {
        FlowRemovedReason::GroupDelete if (version as u8) < Version::V11 as u8 => {
            FlowRemovedReason::Delete
        }
        FlowRemovedReason::MeterDelete | FlowRemovedReason::Eviction
            if (version as u8) < Version::V14 as u8 =>
        {
            FlowRemovedReason::Delete
        }
        reason => reason,
    }
}

impl Bridge {
    /// A packet for the controllers that want it.
    pub fn packet_in(&mut self, event: &PacketInEvent, now: Instant) {
        let is_implicit = event.packet.reason == PacketInReason::ImplicitMiss;
        let in_port = event.packet.metadata.key().get(net_flow::slot::IN_PORT) as u32;
        for conn in self.conns.values_mut() {
            let Some(version) = conn.version() else {
                continue;
            };
            if conn.controller_id != event.controller_id || (is_implicit && version >= Version::V13)
            {
                continue;
            }
            let reason = reason_in(event.packet.reason, version);
            if !conn.wants(AsyncKind::PacketIn, reason as u8) {
                continue;
            }
            let mut packet = event.packet.clone();
            packet.reason = reason;
            let message = Message::new(version, 0, Body::PacketIn(Box::new(packet)));
            let bytes = message.encode(conn.dialect);
            let queue = &mut conn.packet_ins[queue_of(event.packet.reason)];
            if let Some(packet) = queue.offer(now, in_port, QueuedPacket { bytes }) {
                conn.send_packet_in(packet.bytes);
            }
        }
    }

    /// Sends packets that waited for their turn.
    pub(super) fn release_packet_ins(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        for queue in 0..conn.packet_ins.len() {
            while let Some(packet) = conn.packet_ins[queue].take(now) {
                conn.send_packet_in(packet.bytes);
            }
        }
    }

    pub(super) fn send_flow_removed(
        &mut self,
        rule: &Rule,
        reason: FlowRemovedReason,
        now: Instant,
    ) {
        let counts = rule.counts();
        let age = now.since(rule.created);
        for conn in self.conns.values_mut() {
            let Some(version) = conn.version() else {
                continue;
            };
            let reason = removal_in(reason, version);
            if !conn.wants(AsyncKind::FlowRemoved, reason as u8) {
                continue;
            }
            let removed = FlowRemoved {
                matching: rule.matching(),
                cookie: rule.cookie,
                priority: rule.priority as u16,
                table: rule.table,
                reason,
                duration_sec: u32::try_from(age.as_secs()).unwrap_or(u32::MAX),
                duration_nsec: age.subsec_nanos(),
                idle_timeout: rule.idle_timeout(),
                hard_timeout: rule.hard_timeout(),
                packet_count: counts.packets,
                byte_count: counts.bytes,
            };
            let message = Message::new(version, 0, Body::FlowRemoved(Box::new(removed)));
            conn.send_unasked(message.encode(conn.dialect));
        }
    }

    /// Tells controllers of a port; `source` is whose request changed it.
    pub(super) fn send_port_status(
        &mut self,
        reason: PortStatusReason,
        desc: &PortDesc,
        source: Option<ConnId>,
    ) {
        self.send_port_status_from(Version::V10, reason, desc, source);
    }

    /// The same for those that speak `oldest` or a newer version.
    pub(super) fn send_port_status_from(
        &mut self,
        oldest: Version,
        reason: PortStatusReason,
        desc: &PortDesc,
        source: Option<ConnId>,
    ) {
        for (id, conn) in &mut self.conns {
            let Some(version) = conn.version() else {
                continue;
            };
            // Up to OpenFlow 1.4 a controller is not told what it asked for itself.
            let is_own = source == Some(*id) && version < Version::V15;
            if version < oldest || is_own || !conn.wants(AsyncKind::PortStatus, reason as u8) {
                continue;
            }
            let status = PortStatus {
                reason,
                desc: desc.clone(),
            };
            let message = Message::new(version, 0, Body::PortStatus(Box::new(status)));
            conn.send_unasked(wire::encode(&message));
        }
    }
}
