//! Packets that a datapath has no flow for, or was told to hand over.

use std::sync::Arc;

use base::Instant;
use dp_lang::{Action, UserCookie};
use net_flow::{FlowKey, FlowMask};

/// Why a packet is handed to the switch.
#[derive(Clone, Copy, Debug)]
pub enum UpcallKind<'a> {
    /// No flow matched.
    Miss,
    /// A `userspace` action, with what the switch wrote into it.
    Action(Option<&'a UserCookie>),
}

/// A packet for the switch to decide on.
#[derive(Debug)]
pub struct Upcall<'a> {
    /// Why.
    pub kind: UpcallKind<'a>,
    /// The packet, from its first header on.
    pub packet: &'a [u8],
    /// Its key; the input port is a datapath port.
    pub key: &'a FlowKey,
}

/// What is to be done with a packet and with those like it.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The actions for this packet; an empty list drops it.
    pub actions: Arc<[Action]>,
    /// The actions for the flow, where they differ from those for this packet.
    pub flow_actions: Option<Arc<[Action]>>,
    /// The bits of the key that the decision depended on.
    pub mask: FlowMask,
    /// Whether a flow is to be installed.
    pub install: bool,
}

/// The switch, as a datapath sees it.  Called on datapath threads, for several packets at
/// once: an implementation reads a snapshot and takes no lock that a slow step may hold.
pub trait UpcallHandler: Send + Sync {
    /// Decides on a packet.  Effects (learning, packets to controllers) are visible when
    /// it returns.
    fn upcall(&self, upcall: &Upcall<'_>, now: Instant) -> Verdict;
}
