//! Handshake, configuration, roles.

use crate::message::port::PortDesc;

/// What a switch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Its id.
    pub datapath_id: u64,
    /// Packets that it can buffer.
    pub n_buffers: u32,
    /// Its tables.
    pub n_tables: u8,
    /// Auxiliary connection (OpenFlow 1.3).
    pub auxiliary_id: u8,
    /// `OFPC_*`: 1 flow, 2 table, 4 port statistics, 8 spanning tree (OpenFlow 1.0) or
    /// group statistics (later), 0x20 reassembly, 0x40 queue statistics, 0x80 ARP matching
    /// (OpenFlow 1.0 to 1.1), 0x100 blocks looping ports (later).
    pub capabilities: u32,
    /// Supported actions, a bit for each `OFPAT10_*` (OpenFlow 1.0).
    pub actions: u32,
    /// Its ports (before OpenFlow 1.3).
    pub ports: Vec<PortDesc>,
}

/// How a switch treats packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Fragments: 0 normal, 1 drop, 2 reassemble, 3 Nicira's match.
    pub frag: u16,
    /// Packets whose time to live is up go to the controller; `None` where the version has no bit for it.
    pub invalid_ttl_to_controller: Option<bool>,
    /// At most so many bytes of a packet that matches nothing.
    pub miss_send_len: u16,
}

/// Which tracked connections are to be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CtFlush {
    /// In this zone; in all if none is named.
    pub zone: Option<u16>,
    /// Those that this means.
    pub of: net_flow::CtMatch,
}

/// Texts that describe a switch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Desc {
    /// Manufacturer, 255 bytes at most.
    pub mfr: String,
    /// Hardware, 255 bytes at most.
    pub hw: String,
    /// Software, 255 bytes at most.
    pub sw: String,
    /// Serial number, 31 bytes at most.
    pub serial: String,
    /// Description of the datapath, 255 bytes at most.
    pub dp: String,
}

/// What a controller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ControllerRole {
    /// Ask only.
    NoChange = 0,
    /// Everything.
    Equal = 1,
    /// Everything, alone.
    Primary = 2,
    /// Reading.
    Secondary = 3,
}

/// A role request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleMessage {
    /// The role.
    pub role: ControllerRole,
    /// Election number; `None` in Nicira's form.
    pub generation_id: Option<u64>,
}

/// Notice that a role changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleStatus {
    /// The new role.
    pub role: ControllerRole,
    /// Why: 0 another primary, 1 configuration, 2 experimenter.
    pub reason: u8,
    /// Election number.
    pub generation_id: u64,
}

/// The kinds of asynchronous messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncKind {
    /// Packet-in.
    PacketIn,
    /// Port status.
    PortStatus,
    /// Flow removed.
    FlowRemoved,
    /// Role status.
    RoleStatus,
    /// Table status.
    TableStatus,
    /// Requestforward.
    RequestForward,
}

impl AsyncKind {
    /// How many there are.
    pub const COUNT: usize = 6;
}

/// Which asynchronous messages a controller wants: for each kind, a bit for each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AsyncConfig {
    /// While its role is primary or equal; indexed by `AsyncKind`.
    pub primary: [u32; AsyncKind::COUNT],
    /// While its role is secondary.
    pub secondary: [u32; AsyncKind::COUNT],
}
