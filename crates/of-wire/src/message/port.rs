//! Messages about ports and queues.

use net_flow::PortNo;

bitflags::bitflags! {
    /// What an administrator has set on a port, as OpenFlow 1.0 numbers it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct PortConfig: u32 {
        /// Down.
        const PORT_DOWN = 1;
        /// No spanning tree on it (OpenFlow 1.0).
        const NO_STP = 1 << 1;
        /// Drop what it receives, but for spanning tree.
        const NO_RECV = 1 << 2;
        /// Drop the spanning tree packets that it receives (OpenFlow 1.0).
        const NO_RECV_STP = 1 << 3;
        /// No flooding to it (OpenFlow 1.0).
        const NO_FLOOD = 1 << 4;
        /// Send nothing to it.
        const NO_FWD = 1 << 5;
        /// No packet-ins for it.
        const NO_PACKET_IN = 1 << 6;
    }

    /// What state a port is in.  The numbers are our own: see the codec.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct PortState: u32 {
        /// No link.
        const LINK_DOWN = 1;
        /// Blocked by a protocol outside OpenFlow (OpenFlow 1.1 and later).
        const BLOCKED = 1 << 1;
        /// Live for fast failover groups (OpenFlow 1.1 and later).
        const LIVE = 1 << 2;
        /// Spanning tree: learning (with `STP_FORWARD`, the two bits of OpenFlow 1.0: 0
        /// listen, 1 learn, 2 forward, 3 block).
        const STP_LEARN = 1 << 8;
        /// Spanning tree: forwarding.
        const STP_FORWARD = 2 << 8;
        /// Spanning tree: blocking.
        const STP_BLOCK = 3 << 8;
    }

    /// Speeds and media, as OpenFlow 1.1 numbers them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct PortFeatures: u32 {
        /// 10 Mb/s half duplex.
        const HD_10MB = 1;
        /// 10 Mb/s full duplex.
        const FD_10MB = 1 << 1;
        /// 100 Mb/s half duplex.
        const HD_100MB = 1 << 2;
        /// 100 Mb/s full duplex.
        const FD_100MB = 1 << 3;
        /// 1 Gb/s half duplex.
        const HD_1GB = 1 << 4;
        /// 1 Gb/s full duplex.
        const FD_1GB = 1 << 5;
        /// 10 Gb/s full duplex.
        const FD_10GB = 1 << 6;
        /// 40 Gb/s full duplex.
        const FD_40GB = 1 << 7;
        /// 100 Gb/s full duplex.
        const FD_100GB = 1 << 8;
        /// 1 Tb/s full duplex.
        const FD_1TB = 1 << 9;
        /// Another speed.
        const OTHER = 1 << 10;
        /// Copper.
        const COPPER = 1 << 11;
        /// Fiber.
        const FIBER = 1 << 12;
        /// Auto-negotiation.
        const AUTONEG = 1 << 13;
        /// Pause.
        const PAUSE = 1 << 14;
        /// Asymmetric pause.
        const PAUSE_ASYM = 1 << 15;
    }
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDesc {
    /// Its number.
    pub port: PortNo,
    /// Its Ethernet address.
    pub hw_addr: [u8; 6],
    /// Its name; messages before OpenFlow 1.5 carry 15 bytes of it at most.
    pub name: String,
    /// What an administrator has set.
    pub config: PortConfig,
    /// Its state.
    pub state: PortState,
    /// Features in use.
    pub curr: PortFeatures,
    /// Features that it advertises.
    pub advertised: PortFeatures,
    /// Features that it can do.
    pub supported: PortFeatures,
    /// Features that the other end advertises.
    pub peer: PortFeatures,
    /// Current speed, kb/s.
    pub curr_speed: u32,
    /// Highest speed, kb/s.
    pub max_speed: u32,
}

/// What happened to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PortStatusReason {
    /// Added.
    Add = 0,
    /// Removed.
    Delete = 1,
    /// Changed.
    Modify = 2,
}

/// Notice that a port came, went or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// Which.
    pub reason: PortStatusReason,
    /// The port as it is now, or was.
    pub desc: PortDesc,
}

/// A request to change a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// The port.
    pub port: PortNo,
    /// Its address, as a check.
    pub hw_addr: [u8; 6],
    /// New settings.
    pub config: PortConfig,
    /// The settings that change.
    pub mask: PortConfig,
    /// New advertised features; empty for no change.
    pub advertise: PortFeatures,
}

/// Counters of a port.  `u64::MAX` stands for one that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortStats {
    /// The port.
    pub port: PortNo,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received packets dropped.
    pub rx_dropped: u64,
    /// Packets to send dropped.
    pub tx_dropped: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Send errors.
    pub tx_errors: u64,
    /// Frame alignment errors.
    pub rx_frame_errors: u64,
    /// Receiver overruns.
    pub rx_over_errors: u64,
    /// CRC errors.
    pub rx_crc_errors: u64,
    /// Collisions.
    pub collisions: u64,
    /// How long the port has been there, whole seconds; `u32::MAX` if unknown.
    pub duration_sec: u32,
    /// The rest of that time, in nanoseconds.
    pub duration_nsec: u32,
    /// Counters by packet size and kind (Intel's extension), `u64::MAX` where not kept.
    pub custom: Option<[u64; 23]>,
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// Its port.
    pub port: PortNo,
    /// The queue.
    pub queue: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped on overrun.
    pub tx_errors: u64,
    /// How long the queue has been there, whole seconds; `u32::MAX` if unknown.
    pub duration_sec: u32,
    /// The rest of that time, in nanoseconds.
    pub duration_nsec: u32,
}
