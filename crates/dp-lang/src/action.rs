//! What a datapath does with a packet.

use std::sync::Arc;

use net_flow::{FlowKey, FlowMask, MiniKey};

use crate::attr::KeyAttr;
use crate::ids::PortNo;
use crate::tunnel;

/// One step of a flow's action list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends the packet to a port.
    Output(PortNo),
    /// Hands the packet to the switch.
    Userspace(Userspace),
    /// Writes header or metadata fields.
    Set(SetField),
    /// Pushes a VLAN tag.
    PushVlan {
        /// Tag protocol id.
        tpid: u16,
        /// Control information; bit 12 is set.
        tci: u16,
    },
    /// Pops the outer VLAN tag.
    PopVlan,
    /// Pushes an MPLS label stack entry.
    PushMpls {
        /// Ethernet type that the packet gets.
        ethertype: u16,
        /// The entry.
        lse: u32,
    },
    /// Pops the outermost MPLS label stack entry.
    PopMpls {
        /// Ethernet type that the packet gets.
        ethertype: u16,
    },
    /// Pushes an Ethernet header.
    PushEth {
        /// Source.
        src: u64,
        /// Destination.
        dst: u64,
    },
    /// Pops the Ethernet header.
    PopEth,
    /// Looks the packet up again under this recirculation id.
    Recirc(u32),
    /// Computes a hash into the packet's metadata.
    Hash {
        /// Algorithm: 0 is the L4 hash, 1 the symmetric L4 hash.
        algorithm: u32,
        /// Basis.
        basis: u32,
    },
    /// Cuts the next output to that many bytes.
    Trunc(u32),
    /// Does `actions` for a share of the packets.
    Sample {
        /// The share, as a fraction of 2^32 - 1.
        probability: u32,
        /// What is done.
        actions: Vec<Self>,
    },
    /// Does `actions` to a copy of the packet.
    Clone(Vec<Self>),
    /// Does one list or the other by the packet's length.
    CheckPktLen {
        /// The length in bytes.
        len: u16,
        /// For packets that are longer.
        greater: Vec<Self>,
        /// For all others.
        less_equal: Vec<Self>,
    },
    /// Sends the packet through the connection tracker.
    Ct(Box<Ct>),
    /// Forgets the packet's connection.
    CtClear,
    /// Applies a meter.
    Meter(u32),
    /// Hands the packet to a tunnel port for decapsulation.
    TunnelPop(PortNo),
    /// Takes one from the time to live, and does `actions` instead of what follows where that
    /// would reach zero.
    DecTtl(Vec<Self>),
    /// Drops the packet, for a reason that is counted.
    Drop(u32),
    /// An action that this crate does not know, as a kernel's flow has it.
    Other {
        /// The type of its attribute.
        kind: u16,
        /// The attribute's value.
        value: Arc<[u8]>,
    },
}

/// A masked write of one attribute's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetField {
    /// Which attribute.
    pub attr: KeyAttr,
    /// The new values, cut to the mask.
    pub key: MiniKey,
    /// The bits that are written.
    pub mask: MiniKey,
}

impl SetField {
    /// Writes the bits of `key` that `mask` has in the slots of `attr`.
    pub fn new(attr: KeyAttr, key: &FlowKey, mask: &FlowMask) -> Self {
        let mut own = FlowMask::new();
        for slot in attr.slots() {
            own.add(*slot, mask.get(*slot));
        }
        if attr == KeyAttr::Tunnel {
            tunnel::exact_options(key, &mut own);
        }
        Self {
            attr,
            key: MiniKey::under(key, &own),
            mask: MiniKey::new(own.as_key()),
        }
    }
}

/// Why and with what a packet is handed to the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Userspace {
    /// The netlink port id it goes to; 0 in a userspace datapath.
    pub pid: u32,
    /// What the switch wanted with the packet.
    pub cookie: Option<UserCookie>,
    /// The tunnel port by which the packet would leave, whose headers are handed over with it.
    pub egress_tunnel: Option<PortNo>,
    /// Whether the rest of the flow's actions are handed over too.
    pub actions: bool,
}

/// What the switch wrote into a `userspace` action, to be read back with the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserCookie {
    /// The flow is translated anew for each packet.
    SlowPath(SlowPath),
    /// The packet goes to controllers.
    Controller(Controller),
    /// Anything else: opaque bytes.
    Opaque(Arc<[u8]>),
}

/// Why a flow is handled by the switch instead of the datapath.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowPath {
    /// Connectivity fault management.
    pub cfm: bool,
    /// Bidirectional forwarding detection.
    pub bfd: bool,
    /// Link aggregation control.
    pub lacp: bool,
    /// Spanning tree.
    pub stp: bool,
    /// Link layer discovery.
    pub lldp: bool,
    /// Output to a controller.
    pub controller: bool,
    /// An action that the datapath lacks.
    pub action: bool,
    /// A key that the datapath cannot express.
    pub match_: bool,
}

/// How a packet is to be sent to controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The reason in the packet-in (OpenFlow 1.3 section 7.4.1; 1 is an action).
    pub reason: u8,
    /// The packet is not sent: it only updates state.
    pub dont_send: bool,
    /// The packet's processing may be resumed.
    pub continuation: bool,
    /// The recirculation id under which the frozen state is kept.
    pub recirc_id: u32,
    /// Cookie of the rule that sends it.
    pub rule_cookie: u64,
    /// Which controllers get it.
    pub controller_id: u16,
    /// Bytes of the packet that are sent at most.
    pub max_len: u16,
}

/// What the connection tracker does to a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ct {
    /// Enters the connection into the table.
    pub commit: bool,
    /// Forces the direction to this packet's.
    pub force: bool,
    /// Zone.
    pub zone: u16,
    /// Mark and the bits written of it.
    pub mark: Option<(u32, u32)>,
    /// Label and the bits written of it.
    pub label: Option<(u128, u128)>,
    /// Name of the application helper.
    pub helper: Option<String>,
    /// Address translation.
    pub nat: Option<Nat>,
    /// Timeout policy.
    pub timeout: Option<String>,
    /// Which changes of the connection the kernel reports to those who listen (`IPCT_*` bits); all
    /// if not said.
    pub eventmask: Option<u32>,
}

/// Address translation by the connection tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nat {
    /// Source (true) or destination (false) translation; none applies an existing one.
    pub source: Option<bool>,
    /// Lowest and highest address; IPv4 as the low 32 bits.
    pub addresses: Option<(std::net::IpAddr, std::net::IpAddr)>,
    /// Lowest and highest port.
    pub ports: Option<(u16, u16)>,
    /// Keeps the mapping over restarts.
    pub persistent: bool,
    /// Chooses the port by hash.
    pub hash: bool,
    /// Chooses the port at random.
    pub random: bool,
}
