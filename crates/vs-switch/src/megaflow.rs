//! What the switch remembers of the flows that it has installed: what each depended on, and
//! what it has counted that rules were credited with already.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Instant;
use dp_lang::{Action, Ufid};
use net_flow::{FlowKey, MiniKey, PortNo};
use of_xlate::{Dependencies, Effect, FrozenState};

const SHARDS: usize = 16;

/// An installed flow.
#[derive(Clone, Debug)]
pub(crate) struct Megaflow {
    /// The key of the packet that it was made for, with the datapath's port.
    pub(crate) key: MiniKey,
    pub(crate) mask: MiniKey,
    /// The OpenFlow number of its input port.
    pub(crate) in_port: PortNo,
    pub(crate) actions: Arc<[Action]>,
    /// The version of the view that it was translated with.
    pub(crate) version: u64,
    pub(crate) dependencies: Dependencies,
    /// What its statistics are credited to.
    pub(crate) effects: Vec<Effect>,
    /// Keeps the ids in its actions meaning what they do.
    pub(crate) _frozen: Vec<Arc<FrozenState>>,
    pub(crate) created: Instant,
    /// Counts up with each flow, so that dumps list the oldest first.
    pub(crate) sequence: u64,
    /// Packets and bytes that were credited.
    pub(crate) credited: (u64, u64),
    /// The dump in which it was last seen in the datapath.
    pub(crate) seen: u64,
}

impl Megaflow {
    /// Credits what the flow has counted since the last time; `used` is when its last packet
    /// came.
    pub(crate) fn credit(&mut self, packets: u64, bytes: u64, used: Instant) {
        let (old_packets, old_bytes) = self.credited;
        // Counters that went back are those of a flow that was put anew.
        let (new_packets, new_bytes) = if packets < old_packets {
            (packets, bytes)
        } else {
            (packets - old_packets, bytes.saturating_sub(old_bytes))
        };
        self.credited = (packets, bytes);
        if new_packets > 0 {
            for effect in &self.effects {
                effect.apply(new_packets, new_bytes, used);
            }
        }
    }
}

fn lock(shard: &Shard) -> MutexGuard<'_, HashMap<Ufid, Megaflow>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

type Shard = Mutex<HashMap<Ufid, Megaflow>>;

/// All installed flows of one datapath, by id.
#[derive(Debug, Default)]
pub(crate) struct Megaflows {
    next: AtomicU64,
    shards: [Shard; SHARDS],
}

impl Megaflows {
    pub(crate) fn shard(&self, ufid: Ufid) -> MutexGuard<'_, HashMap<Ufid, Megaflow>> {
        lock(&self.shards[ufid.0 as usize % SHARDS])
    }

    /// The number of flows.
    pub(crate) fn len(&self) -> usize {
        self.all().map(|shard| shard.len()).sum()
    }

    fn all(&self) -> impl Iterator<Item = MutexGuard<'_, HashMap<Ufid, Megaflow>>> {
        self.shards.iter().map(lock)
    }

    /// The ids of the flows older than `version` for which `is_affected` holds; the others are
    /// as that version wants them.
    pub(crate) fn outdated(
        &self,
        version: u64,
        is_affected: impl Fn(&Megaflow) -> bool,
    ) -> Vec<Ufid> {
        let mut ids = Vec::new();
        for mut shard in self.all() {
            for (id, megaflow) in shard.iter_mut().filter(|(_, m)| m.version < version) {
                if is_affected(megaflow) {
                    ids.push(*id);
                } else {
                    megaflow.version = version;
                }
            }
        }
        ids
    }

    /// Remembers a flow, unless one with that id is known.
    pub(crate) fn add(&self, ufid: Ufid, mut megaflow: Megaflow) {
        megaflow.sequence = self.next.fetch_add(1, Ordering::Relaxed);
        self.shard(ufid).entry(ufid).or_insert(megaflow);
    }

    /// The whole key of the packet that a flow was made for.
    pub(crate) fn whole_key(&self, ufid: Ufid) -> Option<FlowKey> {
        self.shard(ufid).get(&ufid).map(|m| m.key.expand())
    }

    /// Where a flow stands among all by age; one that is not known stands last.
    pub(crate) fn age_rank(&self, ufid: Ufid) -> u64 {
        self.shard(ufid).get(&ufid).map_or(u64::MAX, |m| m.sequence)
    }

    pub(crate) fn remove(&self, ufid: Ufid) -> Option<Megaflow> {
        self.shard(ufid).remove(&ufid)
    }

    /// Forgets those that were not in the datapath at dump `dump` and are older than `before`.
    pub(crate) fn sweep(&self, dump: u64, before: Instant) {
        for mut shard in self.all() {
            shard.retain(|_, m| m.seen >= dump || m.created >= before);
        }
    }
}
