//! How a bundle of several ports chooses one.

use std::sync::Arc;

use net_flow::{PortNo, slot};

use crate::flow::Flow;

/// How a bond spreads packets over its members.
#[derive(Clone, Debug)]
pub enum BondMode {
    /// All packets take the active member.
    ActiveBackup,
    /// By source address and VLAN: each of 256 buckets has a member.
    Slb(Arc<[PortNo; 256]>),
}

/// A bond, as far as forwarding needs it.
#[derive(Clone, Debug)]
pub struct Bond {
    /// The member that takes what is not spread; none if no member is up.
    pub active: Option<PortNo>,
    /// How packets are spread.
    pub mode: BondMode,
}

/// What a bond says of a packet that one of its members received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept,
    Drop,
    /// Drop, if the source is known behind another port.
    DropIfMoved,
}

impl Bond {
    /// The member that sends a packet of VLAN `vid`.
    pub(crate) fn choose(&self, flow: &mut Flow, vid: u16) -> Option<PortNo> {
        let active = self.active?;
        match &self.mode {
            BondMode::ActiveBackup => Some(active),
            BondMode::Slb(buckets) => {
                let source = flow.read(slot::ETH_SRC) as u64;
                let mixed = (source ^ u64::from(vid) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                Some(buckets[(mixed >> 56) as usize])
            }
        }
    }

    /// Whether a packet to `destination` that `member` received is let in.
    pub(crate) fn admits(&self, member: PortNo, destination: u64) -> Verdict {
        let Some(active) = self.active else {
            return Verdict::Drop;
        };
        if destination >> 40 & 1 != 0 && member != active {
            return Verdict::Drop;
        }
        match self.mode {
            BondMode::ActiveBackup if member != active => Verdict::Drop,
            BondMode::ActiveBackup => Verdict::Accept,
            BondMode::Slb(_) => Verdict::DropIfMoved,
        }
    }
}
