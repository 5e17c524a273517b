//! Tunnel ports: how one is configured, which one a packet came by, and what becomes of a packet
//! that is sent to one.
//!
//! All tunnel ports of a type and UDP port share one datapath port.  A packet that comes in
//! there belongs to the port whose configuration it fits, the most exact one first.

mod receive;
mod send;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use dp_lang::PortNo as DpPort;
use net_flow::FlowKey;
use net_flow::slot;

use crate::view::{BridgeId, PatchCounters};

pub use receive::TunnelTable;
pub(crate) use receive::is_tunnelled;

/// The local end of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Local {
    /// One address.
    Address(IpAddr),
    /// Any address; the system chooses one to send from.
    #[default]
    Any,
    /// The flow table says.
    Flow,
}

/// A tunnel id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelKey {
    /// The tunnel has none, which is the same as 0 on receipt.
    #[default]
    Absent,
    /// The flow table says.
    Flow,
    /// This one.
    Value(u64),
}

impl TunnelKey {
    const fn is_flow(self) -> bool {
        matches!(self, Self::Flow)
    }

    const fn value(self) -> u64 {
        match self {
            Self::Value(value) => value,
            Self::Absent | Self::Flow => 0,
        }
    }
}

/// Whether the outer header has a checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelCsum {
    /// Nothing was said: as the protocol wants it, which is over IPv6 only.
    #[default]
    ByProtocol,
    /// Nothing was said, and the protocol does without.
    Without,
    /// It has one.
    Enabled,
    /// It has none.
    Disabled,
}

/// Which packets a port sends and receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketTypeMode {
    /// Ethernet frames.
    #[default]
    LegacyL2,
    /// Packets without an Ethernet header, which have one inside of the bridge.
    LegacyL3,
    /// Packets of any type, as they are.
    Aware,
}

/// How a tunnel port is configured (`options` of an interface).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// The type of the interface: `vxlan`, `geneve`, `gre`, `erspan`, `ip6gre`, `ip6erspan`.
    pub kind: Box<str>,
    /// The remote end; none if the flow table says.
    pub remote: Option<IpAddr>,
    /// The local end.
    pub local: Local,
    /// The id of packets that come in.
    pub in_key: TunnelKey,
    /// The id of packets that go out.
    pub out_key: TunnelKey,
    /// The outer type of service; none if it is that of the packet.
    pub tos: Option<u8>,
    /// The outer time to live; none if it is that of the packet.
    pub ttl: Option<u8>,
    /// Whether outer packets must not be fragmented.
    pub dont_fragment: bool,
    /// Whether the outer header has a checksum.
    pub csum: TunnelCsum,
    /// Whether the outer header has a sequence number (GRE).
    pub sequence: bool,
    /// UDP port; 0 for protocols without.
    pub dst_port: u16,
    /// Group based policies (VXLAN).
    pub gbp: bool,
    /// The generic protocol extension (VXLAN).
    pub gpe: bool,
    /// ERSPAN's header.
    pub erspan: ErspanConfig,
    /// The mark of outer packets.
    pub egress_pkt_mark: Option<u32>,
    /// Which packets it carries.
    pub mode: PacketTypeMode,
}

/// The outer time to live, where nothing else was said.
pub const DEFAULT_TTL: u8 = 64;

/// What outer headers of ERSPAN say; none is what the flow table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErspanConfig {
    /// Version: 1, 2, or 0 if none was given.
    pub version: Option<u8>,
    /// Index, of 20 bits (version 1).
    pub index: Option<u32>,
    /// Whether the packet was leaving (1) or coming in where it was copied (version 2).
    pub direction: Option<u8>,
    /// Hardware id, of 6 bits (version 2).
    pub hardware_id: Option<u8>,
}

impl Default for ErspanConfig {
    fn default() -> Self {
        Self {
            version: Some(0),
            index: Some(0),
            direction: Some(0),
            hardware_id: Some(0),
        }
    }
}

impl TunnelConfig {
    /// Whether its outer header is one of ERSPAN.
    pub fn is_erspan(&self) -> bool {
        matches!(&*self.kind, "erspan" | "ip6erspan")
    }

    /// A tunnel of a type, in which the flow table says all.
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            remote: None,
            local: Local::Any,
            in_key: TunnelKey::Absent,
            out_key: TunnelKey::Absent,
            tos: Some(0),
            ttl: Some(DEFAULT_TTL),
            dont_fragment: true,
            csum: TunnelCsum::ByProtocol,
            sequence: false,
            dst_port: 0,
            gbp: false,
            gpe: false,
            erspan: ErspanConfig::default(),
            egress_pkt_mark: None,
            mode: PacketTypeMode::LegacyL2,
        }
    }
}

/// A tunnel port in a view.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// How it is configured.
    pub config: Arc<TunnelConfig>,
    /// What it has counted; the datapath port that it shares with others does not.
    pub counters: Arc<PatchCounters>,
}

/// What tells the tunnel ports of one datapath apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TunnelMatch {
    /// The id; none if the flow table looks at it.
    in_key: Option<u64>,
    /// The remote end; none if the flow table looks at it.
    remote: Option<IpAddr>,
    /// The local end.
    local: Local,
    /// The datapath port.
    port: DpPort,
    /// The packets that it carries.
    mode: PacketTypeMode,
}

impl TunnelMatch {
    /// What packets of a port look like.
    pub fn new(config: &TunnelConfig, port: DpPort) -> Self {
        Self {
            in_key: (!config.in_key.is_flow()).then_some(config.in_key.value()),
            remote: config.remote,
            local: config.local,
            port,
            mode: config.mode,
        }
    }
}

impl fmt::Display for TunnelMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = match self.local {
            Local::Address(ip) => ip.to_string(),
            Local::Any => "::".to_owned(),
            Local::Flow => "flow".to_owned(),
        };
        match self.remote {
            Some(remote) => write!(f, "{local}->{remote}")?,
            None => write!(f, "{local}->flow")?,
        }
        match self.in_key {
            None => f.write_str(", key=flow")?,
            Some(0) => f.write_str(", key=0")?,
            Some(key) => write!(f, ", key={key:#x}")?,
        }
        let mode = match self.mode {
            PacketTypeMode::LegacyL2 => "legacy_l2",
            PacketTypeMode::LegacyL3 => "legacy_l3",
            PacketTypeMode::Aware => "ptap",
        };
        write!(f, ", {mode}, dp port={}", self.port)
    }
}

/// The remote address of a packet that came out of a tunnel.
fn outer(key: &FlowKey, v4: net_flow::Slot, v6: net_flow::Slot) -> Option<IpAddr> {
    let (four, six) = (key.get(v4) as u32, key.get(v6));
    if four != 0 {
        Some(IpAddr::V4(Ipv4Addr::from_bits(four)))
    } else if six != 0 {
        Some(IpAddr::V6(six.into()))
    } else {
        None
    }
}

/// Where a packet with this key goes to in its tunnel.
pub(crate) fn outer_dst(key: &FlowKey) -> Option<IpAddr> {
    outer(key, slot::TUN_DST, slot::TUN_IPV6_DST)
}

fn outer_src(key: &FlowKey) -> Option<IpAddr> {
    outer(key, slot::TUN_SRC, slot::TUN_IPV6_SRC)
}

/// Whose a tunnel port is: the bridge and its number there.
pub(crate) type Owner = (BridgeId, net_flow::PortNo);
