//! What a translation wants done besides forwarding, as data.

use std::sync::Arc;

use base::Instant;
use net_proto::mac_learning::{MacTable, Sighting};
use of_switch::tables::TableCounters;
use of_switch::{GroupEntry, Rule};

use crate::mirror::MirrorCounters;
use crate::view::PatchCounters;

/// One effect.  The caller applies it with the packet, and again with each push of the
/// statistics of the megaflow that came of the translation.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Packets used a rule.
    Rule(Arc<Rule>),
    /// Packets were looked up in a table, with or without success.
    Table(Arc<TableCounters>, bool),
    /// A station was seen.
    Learn(Arc<MacTable>, Sighting),
    /// Packets used the bucket of a group at this place, or all of them.
    Group(Arc<GroupEntry>, Option<usize>),
    /// Packets were copied by a mirror.
    Mirror(Arc<MirrorCounters>),
    /// Packets came out of a tunnel port.
    Received(Arc<PatchCounters>),
    /// Packets went into a tunnel port.
    Sent(Arc<PatchCounters>),
    /// Packets went into a patch port and out of its peer.
    Patch {
        /// The port that they went into.
        into: Arc<PatchCounters>,
        /// The port that they came out of.
        out_of: Arc<PatchCounters>,
    },
}

impl Effect {
    /// Applies it for so many packets and bytes, of which the last came at `now`.
    pub fn apply(&self, packets: u64, bytes: u64, now: Instant) {
        match self {
            Self::Rule(rule) => rule.count(packets, bytes, now),
            Self::Table(counters, matched) => counters.count(*matched, packets),
            Self::Learn(macs, seen) => {
                if packets > 0 {
                    macs.learn(*seen, now);
                }
            }
            Self::Group(group, bucket) => group.count(*bucket, packets, bytes),
            Self::Mirror(counters) => counters.sent(packets, bytes),
            Self::Received(counters) => counters.received(packets, bytes),
            Self::Sent(counters) => counters.sent(packets, bytes),
            Self::Patch { into, out_of } => {
                into.sent(packets, bytes);
                out_of.received(packets, bytes);
            }
        }
    }
}
