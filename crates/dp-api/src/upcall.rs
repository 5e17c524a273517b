//! Packets that a datapath has no flow for, or was told to hand over.

use std::sync::Arc;

use base::Instant;
use dp_lang::{Action, Ufid, UserCookie};
use net_flow::{FlowKey, FlowMask, MiniKey, slot};

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
    /// More packets come than are served: a flow is worth what it costs only if more than one
    /// packet would meet it.
    pub congested: bool,
}

/// A flow that the switch wants to be installed, and will know by its id.
#[derive(Clone, Debug)]
pub struct NewFlow {
    /// Its id, made of the packet's key and of the mask.
    pub ufid: Ufid,
    /// The bits of the key that it matches.
    pub mask: Box<FlowMask>,
    /// What it does, which need not be what is done to the packet that it is made for.
    pub actions: Arc<[Action]>,
}

impl NewFlow {
    /// The flow for packets that agree with `key` in the bits that a decision depended on.
    pub fn new(key: &FlowKey, decided: &FlowMask, actions: Arc<[Action]>) -> Self {
        let mask = Box::new(flow_mask(decided));
        let ufid = Ufid::of(&MiniKey::under(key, &mask), &MiniKey::new(mask.as_key()));
        Self {
            ufid,
            mask,
            actions,
        }
    }
}

/// The bits of a tag that say whether it is there, and its VLAN.
const VLAN_PRESENT_AND_VID: u128 = 0x1fff;

/// The mask under which a flow is installed: the bits that a decision depended on, and in addition
/// what no flow may leave open.  Datapath and switch both name a flow by this mask.
pub fn flow_mask(decided: &FlowMask) -> FlowMask {
    let mut mask = decided.clone();
    mask.set_exact(slot::IN_PORT);
    mask.set_exact(slot::RECIRC_ID);
    // The kernel's keys cannot say "with or without a tag", and no datapath's flows should
    // be wider.
    if mask.get(slot::VLAN_TCI) == 0 {
        mask.set(slot::VLAN_TCI, VLAN_PRESENT_AND_VID);
    }
    mask
}

/// The switch, as a datapath sees it.  Called on datapath threads, for several packets at
/// once: an implementation reads a snapshot and takes no lock that a slow step may hold.
pub trait UpcallHandler: Send + Sync {
    /// Decides on a packet.  As soon as it is known what is to be done with it, `back` has the
    /// actions, once; it is not called for a packet that is dropped.  Effects (learning, packets to controllers)
    /// are visible by then.  Returns the flow to install for packets like it.
    fn upcall(
        &self,
        upcall: &Upcall<'_>,
        now: Instant,
        back: &mut dyn FnMut(Arc<[Action]>),
    ) -> Option<NewFlow>;
}

/// How a kernel spreads packets for the switch over sockets (`other_config:upcall-dispatch`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    /// A socket for each CPU, and when one overflows a socket for each port, for a while.
    #[default]
    Auto,
    /// A socket for each CPU, where the kernel can do that.
    PerCpu,
    /// A socket for each port.
    PerPort,
}

impl std::str::FromStr for Dispatch {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "per-cpu" => Ok(Self::PerCpu),
            "per-port" => Ok(Self::PerPort),
            _ => Err(()),
        }
    }
}
