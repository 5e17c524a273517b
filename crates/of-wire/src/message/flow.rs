//! Messages about flows.

use net_flow::{Match, PortNo};

use crate::action::Action;

/// What a flow-mod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowModCommand {
    /// Adds, or replaces the one with the same match and priority.
    Add,
    /// Changes the actions of those within the match.
    Modify,
    /// Changes the actions of the one with the same match and priority.
    ModifyStrict,
    /// Deletes those within the match.
    Delete,
    /// Deletes the one with the same match and priority.
    DeleteStrict,
}

bitflags::bitflags! {
    /// Flags of a flow.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct FlowModFlags: u16 {
        /// Tell the controllers when it goes.
        const SEND_FLOW_REM = 1;
        /// Refuse it if it overlaps another of the same priority.
        const CHECK_OVERLAP = 1 << 1;
        /// Set the counters to 0.
        const RESET_COUNTS = 1 << 2;
        /// Do not count packets.
        const NO_PKT_COUNTS = 1 << 3;
        /// Do not count bytes.
        const NO_BYT_COUNTS = 1 << 4;
        /// OpenFlow 1.0's emergency flows (always refused).
        const EMERG = 1 << 8;
    }
}

/// A request to change flows.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowMod {
    /// What to do.
    pub command: FlowModCommand,
    /// Which packets.
    pub matching: Match,
    /// Priority; higher wins.
    pub priority: u16,
    /// For modify and delete: only flows whose cookie equals this under `cookie_mask`.
    pub cookie: u64,
    /// 0 for flows of any cookie.
    pub cookie_mask: u64,
    /// The cookie to give to a new flow; `None` is unsaid.
    pub new_cookie: Option<u64>,
    /// A modify gives `new_cookie` to the flows that it finds, too (OpenFlow 1.0 only).
    pub modify_cookie: bool,
    /// The table; 255 for all (delete), or for the switch to choose (add).
    pub table: u8,
    /// Seconds of disuse after which it goes, 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which it goes, 0 for never.
    pub hard_timeout: u16,
    /// Eviction order (OpenFlow 1.4).
    pub importance: u16,
    /// The buffered packet to send through it.
    pub buffer_id: Option<u32>,
    /// For delete: only flows that send to this port; `PortNo::NONE` for all.
    pub out_port: PortNo,
    /// For delete: only flows that use this group; `u32::MAX` for all.
    pub out_group: u32,
    /// Its flags.
    pub flags: FlowModFlags,
    /// What it does.
    pub actions: Vec<Action>,
}

impl FlowMod {
    /// A flow-mod of everything in table 0 with the default priority and no action.
    pub fn new(command: FlowModCommand) -> Self {
        Self {
            command,
            matching: Match::any(),
            priority: 32768,
            cookie: 0,
            cookie_mask: 0,
            new_cookie: None,
            modify_cookie: false,
            table: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            importance: 0,
            buffer_id: None,
            out_port: PortNo::NONE,
            out_group: u32::MAX,
            flags: FlowModFlags::empty(),
            actions: Vec::new(),
        }
    }
}

/// Why a flow went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlowRemovedReason {
    /// Disused.
    IdleTimeout = 0,
    /// Its time was up.
    HardTimeout = 1,
    /// A flow-mod deleted it.
    Delete = 2,
    /// Its group was deleted.
    GroupDelete = 3,
    /// Its meter was deleted.
    MeterDelete = 4,
    /// Another flow took its place.
    Eviction = 5,
}

/// Notice that a flow went.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRemoved {
    /// What it matched.
    pub matching: Match,
    /// Its cookie.
    pub cookie: u64,
    /// Its priority.
    pub priority: u16,
    /// Its table; 255 if the message does not say.
    pub table: u8,
    /// Why.
    pub reason: FlowRemovedReason,
    /// How long it was there, whole seconds.
    pub duration_sec: u32,
    /// The rest of that time, in nanoseconds.
    pub duration_nsec: u32,
    /// Its idle timeout, seconds.
    pub idle_timeout: u16,
    /// Its hard timeout, seconds.
    pub hard_timeout: u16,
    /// Packets that met it; `u64::MAX` if unknown.
    pub packet_count: u64,
    /// Their bytes; `u64::MAX` if unknown.
    pub byte_count: u64,
}

/// Which flows' statistics are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowStatsRequest {
    /// Flows within this match.
    pub matching: Match,
    /// Flows whose cookie equals this under `cookie_mask`.
    pub cookie: u64,
    /// 0 for flows of any cookie.
    pub cookie_mask: u64,
    /// Flows that send to this port; `PortNo::NONE` for all.
    pub out_port: PortNo,
    /// Flows that use this group; `u32::MAX` for all.
    pub out_group: u32,
    /// Flows in this table; 255 for all.
    pub table: u8,
    /// Asked in Nicira's form, so that the answer must have it too (OpenFlow 1.0).
    pub nicira: bool,
}

/// A flow with its statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowStats {
    /// What it matches.
    pub matching: Match,
    /// Its cookie.
    pub cookie: u64,
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// How long it has been there, whole seconds.
    pub duration_sec: u32,
    /// The rest of that time, in nanoseconds.
    pub duration_nsec: u32,
    /// Its idle timeout, seconds.
    pub idle_timeout: u16,
    /// Its hard timeout, seconds.
    pub hard_timeout: u16,
    /// Seconds since a packet met it (`NXST_FLOW` and OpenFlow 1.5 only).
    pub idle_age: Option<u32>,
    /// Seconds since it was added or changed (`NXST_FLOW` only).
    pub hard_age: Option<u32>,
    /// Eviction order (OpenFlow 1.4).
    pub importance: u16,
    /// Packets that met it; `u64::MAX` if unknown.
    pub packet_count: u64,
    /// Their bytes; `u64::MAX` if unknown.
    pub byte_count: u64,
    /// Its flags (OpenFlow 1.3 and later).
    pub flags: FlowModFlags,
    /// What it does.
    pub actions: Vec<Action>,
}

/// Statistics of several flows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AggregateStats {
    /// Packets; `u64::MAX` if unknown.
    pub packet_count: u64,
    /// Bytes; `u64::MAX` if unknown.
    pub byte_count: u64,
    /// Flows.
    pub flow_count: u32,
}
