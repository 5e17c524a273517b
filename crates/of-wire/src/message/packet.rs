//! Packet-in and packet-out.

use net_flow::{Match, PortNo};

use crate::action::Action;

/// How packet-ins are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PacketInFormat {
    /// The version's own.
    Standard = 0,
    /// `NXT_PACKET_IN`.
    Nxt = 1,
    /// `NXT_PACKET_IN2`.
    Nxt2 = 2,
}

/// Why a packet goes to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketInReason {
    /// No flow matched.
    NoMatch = 0,
    /// An action says so.
    Action = 1,
    /// Its time to live is up.
    InvalidTtl = 2,
    /// An action in the action set (OpenFlow 1.4).
    ActionSet = 3,
    /// An action in a group (OpenFlow 1.4).
    Group = 4,
    /// A packet-out (OpenFlow 1.4).
    PacketOut = 5,
    /// The table-miss flow (told apart from `Action` by later versions' configuration only).
    ExplicitMiss = 6,
    /// Connections without a known role's reason: a miss where misses are not sent.
    ImplicitMiss = 7,
}

/// The fields that go with a packet between switch and controller: input port, tunnel,
/// registers, metadata and so on.
pub type PacketMetadata = Match;

/// A packet for the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketIn {
    /// The packet, possibly cut.
    pub packet: Vec<u8>,
    /// Its whole length.
    pub total_len: u32,
    /// Its buffer in the switch.
    pub buffer_id: Option<u32>,
    /// Why.
    pub reason: PacketInReason,
    /// The table that sent it.
    pub table: u8,
    /// The cookie of the rule that sent it; `u64::MAX` if none.
    pub cookie: u64,
    /// The fields that go with it, the input port among them.
    pub metadata: PacketMetadata,
    /// From the `controller` action.
    pub userdata: Vec<u8>,
    /// The bytes of its frozen state, if it is paused: given back on resume.
    pub continuation: Option<Vec<u8>>,
}

/// A packet from the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketOut {
    /// The packet, unless it is buffered.
    pub packet: Vec<u8>,
    /// Its buffer in the switch.
    pub buffer_id: Option<u32>,
    /// The fields that go with it; the input port is `PortNo::CONTROLLER` if unsaid.
    pub metadata: PacketMetadata,
    /// What to do with it.
    pub actions: Vec<Action>,
}

impl PacketOut {
    /// The input port.
    pub fn in_port(&self) -> PortNo {
        PortNo(self.metadata.key().get(net_flow::slot::IN_PORT) as u32)
    }
}
