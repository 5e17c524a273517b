//! Translation: from a packet's key and the flow tables of all bridges to the datapath's
//! actions, and the bits of the key that they depend on.
//!
//! [`translate`] is pure: it reads one [`SwitchView`] and returns a [`Translation`] with the
//! actions, the mask, and a list of effects (statistics, learning) that its caller applies
//! now, at each push of statistics, or never.  The same function serves a packet, a
//! revalidation and a trace.
//!
//! Invariants:
//! - Fields are read through `flow::Flow`, whose accessors set the mask; so a megaflow
//!   cannot be wider than what its translation looked at.
//! - Nothing recurses on the native stack: tables, bridges, clones and action sets are
//!   items on one work stack, so that a packet cannot exhaust a thread's stack.
#![forbid(unsafe_code)]

mod actions;
mod bond;
mod commit;
mod ctx;
mod dependency;
mod effect;
mod error;
mod finish;
mod flow;
mod freeze;
mod group;
mod hash;
mod lookup;
mod mirror;
mod mpls;
mod normal;
mod output;
mod patch;
mod recirc;
mod report;
#[cfg(test)]
mod tests;
mod thaw;
mod trace;
mod translation;
mod tunnel;
mod view;
mod vlan;
mod work;

pub use bond::{Bond, BondMode};
pub use dependency::{Dependencies, Lookup};
pub use effect::Effect;
pub use error::XlateError;
pub use mirror::{MAX_MIRRORS, Mirror, MirrorCounters, MirrorOutput};
pub use recirc::{FrozenState, IdSource, RecircTable, StackItem};
pub use report::{Report, TraceNames, trace};
pub use trace::{NodeKind, Trace};
pub use translation::{Input, Purpose, Recirculation, Remark, Translation, translate};
pub use tunnel::{
    DEFAULT_TTL, ErspanConfig, Local, PacketTypeMode, Tunnel, TunnelConfig, TunnelCsum, TunnelKey,
    TunnelMatch, TunnelTable,
};
pub use view::{
    BridgeId, BridgeView, Bundle, FragmentMode, LocateError, Patch, PatchCounters, Port, PortFlags,
    PriorityTags, SpanningState, SwitchView, VlanMode, VlanSet,
};
