//! What the switch remembers of the flows that it has installed: what each depended on, and
//! what it has counted that rules were credited with already.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Instant;
use dp_lang::{Action, Ufid};
use net_flow::MiniKey;
use of_xlate::{Dependencies, Effect, FrozenState, Translation};

use crate::changes::ViewChanges;
use crate::flow_index::FlowIndex;

const SHARDS: usize = 16;

/// An installed flow.
#[derive(Clone, Debug)]
pub(crate) struct Megaflow {
    /// The key of the packet that it was made for, with the datapath's port.
    pub(crate) key: Arc<MiniKey>,
    pub(crate) mask: Arc<MiniKey>,
    pub(crate) actions: Arc<[Action]>,
    /// The version of the view that it was translated with.
    pub(crate) version: u64,
    pub(crate) dependencies: Dependencies,
    /// What its statistics are credited to.
    pub(crate) effects: Vec<Effect>,
    /// Keeps the ids in its actions meaning what they do.
    pub(crate) frozen: Vec<Arc<FrozenState>>,
    pub(crate) created: Instant,
    /// Counts up with each flow, so that dumps list the oldest first.
    pub(crate) sequence: u64,
    /// Packets and bytes that were credited.
    pub(crate) credited: (u64, u64),
    /// The dump in which it was last seen in the datapath.
    pub(crate) seen: u64,
}

impl Megaflow {
    /// Whether it was found in the datapath, and not yet translated.
    pub(crate) const fn is_adopted(&self) -> bool {
        self.version == 0
    }

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
    /// Flows that were translated with an older view than this are nevertheless as this
    /// version wants them.
    checked: AtomicU64,
    count: AtomicUsize,
    shards: [Shard; SHARDS],
    /// Locked after a shard, never before one.
    index: Mutex<FlowIndex>,
}

impl Megaflows {
    pub(crate) fn shard(&self, ufid: Ufid) -> MutexGuard<'_, HashMap<Ufid, Megaflow>> {
        lock(&self.shards[ufid.0 as usize % SHARDS])
    }

    /// The number of flows.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn all(&self) -> impl Iterator<Item = MutexGuard<'_, HashMap<Ufid, Megaflow>>> {
        self.shards.iter().map(lock)
    }

    fn index(&self) -> MutexGuard<'_, FlowIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of the flows older than `version` that `changes` may concern.  The others are
    /// as that version wants them once these are.
    pub(crate) fn outdated(&self, version: u64, changes: &ViewChanges) -> Vec<Ufid> {
        let ids = match self.candidates(changes) {
            Some(candidates) => candidates
                .into_iter()
                .filter(|ufid| {
                    let shard = self.shard(*ufid);
                    let flow = shard.get(ufid);
                    flow.is_some_and(|m| m.version < version && changes.affect(m))
                })
                .collect(),
            None => self.search(version, changes),
        };
        self.checked.fetch_max(version, Ordering::Relaxed);
        ids
    }

    fn search(&self, version: u64, changes: &ViewChanges) -> Vec<Ufid> {
        let mut ids = Vec::new();
        for shard in self.all() {
            let old = shard.iter().filter(|(_, m)| m.version < version);
            ids.extend(old.filter(|(_, m)| changes.affect(m)).map(|(id, _)| *id));
        }
        ids
    }

    /// The flows that changes of rules may concern, without looking at every flow; none if
    /// every flow is to be looked at.
    fn candidates(&self, changes: &ViewChanges) -> Option<Vec<Ufid>> {
        let rules = changes.rules_only()?;
        let mut index = self.index();
        let flows = self.len();
        if flows == 0 {
            return Some(Vec::new());
        }
        // Finding flows by rule must not cost more than looking at each.
        if rules.len() * index.masks() > flows.saturating_mul(4) + 64 {
            return None;
        }
        let mut found = Vec::new();
        for rule in rules {
            if rule.is_clause() || index.has_later_lookups(rule.bridge, rule.table()) {
                return None;
            }
            index.find(rule.matching(), &mut found);
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// Whether a flow is as `version` wants it as far as checks of changes can tell.
    pub(crate) fn is_current(&self, megaflow: &Megaflow, version: u64) -> bool {
        !megaflow.is_adopted()
            && megaflow.version.max(self.checked.load(Ordering::Relaxed)) >= version
    }

    /// Remembers a flow, unless one with that id is known.
    pub(crate) fn add(&self, ufid: Ufid, mut megaflow: Megaflow) {
        megaflow.sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.shard(ufid);
        if let Entry::Vacant(place) = shard.entry(ufid) {
            self.count.fetch_add(1, Ordering::Relaxed);
            let mut index = self.index();
            megaflow.mask = index.share_mask(&megaflow.mask);
            let parts = (&megaflow.key, &megaflow.mask);
            index.add(ufid, parts, &megaflow.dependencies);
            place.insert(megaflow);
        }
    }

    /// Takes note of what a flow depends on after it was translated anew.  Returns the states
    /// that its actions named before.
    pub(crate) fn renew(
        &self,
        megaflow: &mut Megaflow,
        translation: Translation,
        version: u64,
    ) -> Vec<Arc<FrozenState>> {
        let mut index = self.index();
        index.remove_lookups(&megaflow.dependencies);
        index.add_lookups(&translation.dependencies);
        drop(index);
        megaflow.version = version;
        megaflow.dependencies = translation.dependencies;
        megaflow.effects = translation.effects;
        std::mem::replace(&mut megaflow.frozen, translation.frozen)
    }

    /// Where a flow stands among all by age; one that is not known stands last.
    pub(crate) fn age_rank(&self, ufid: Ufid) -> u64 {
        self.shard(ufid).get(&ufid).map_or(u64::MAX, |m| m.sequence)
    }

    pub(crate) fn remove(&self, ufid: Ufid) -> Option<Megaflow> {
        let mut shard = self.shard(ufid);
        let megaflow = shard.remove(&ufid)?;
        self.forget(ufid, &megaflow);
        Some(megaflow)
    }

    /// A flow that is being removed goes from the index, too.
    fn forget(&self, ufid: Ufid, megaflow: &Megaflow) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        let mut index = self.index();
        index.remove(ufid, &megaflow.mask, &megaflow.dependencies);
    }

    /// Forgets those that were not in the datapath at dump `dump` and are older than `before`.
    pub(crate) fn sweep(&self, dump: u64, before: Instant) {
        for mut shard in self.all() {
            shard.retain(|id, m| {
                let stays = m.seen >= dump || m.created >= before;
                if !stays {
                    self.forget(*id, m);
                }
                stays
            });
        }
    }
}
