//! Frozen states: what a translation leaves behind for the time when the switch sees the
//! packet again, named by the recirculation id that travels with it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use net_flow::{MiniKey, PortNo};
use of_wire::Action;

use crate::trace::actions_text;
use crate::view::BridgeId;

/// A value on the stack of `push` and `pop`, right-justified, with its width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackItem {
    /// The value.
    pub value: u128,
    /// Its width.
    pub bits: u16,
}

/// A translation's state at the point where a packet left for somewhere else.
#[derive(Clone, Debug, PartialEq)]
pub struct FrozenState {
    /// The bridge to resume in.
    pub bridge: BridgeId,
    /// The table to look up if there are no actions; for a packet that goes to a controller,
    /// the table of the rule that sent it.
    pub table: u8,
    /// The pipeline fields: input port (OpenFlow's number), tunnel, registers, metadata.
    pub metadata: MiniKey,
    /// The stack, top last.
    pub stack: Vec<StackItem>,
    /// The mirrors of the bridge that have their copy.
    pub mirrors: u32,
    /// The action set.
    pub action_set: Vec<Action>,
    /// The actions that are left to do.
    pub actions: Arc<[Action]>,
    /// What the `controller` action passes along.
    pub userdata: Box<[u8]>,
    /// Whether the packet has been through the connection tracker.
    pub conntracked: bool,
    /// Whether the last MPLS entry was popped, so that what is behind it is not known yet.
    pub was_mpls: bool,
    /// Whether the datapath has computed a hash of the packet, which it then carries.
    pub hashed: bool,
    /// The port that the packet first came in by, if it has one.
    pub input: Option<(BridgeId, PortNo)>,
}

impl FrozenState {
    /// A hash that is the same in every process.  Bridges are numbered anew in each, so their
    /// names stand for them.
    fn digest(&self, name_of: &dyn Fn(BridgeId) -> Arc<str>) -> u64 {
        let mut hash = Fnv::default();
        hash.bytes(name_of(self.bridge).as_bytes());
        let flags =
            u8::from(self.conntracked) | u8::from(self.was_mpls) << 1 | u8::from(self.hashed) << 2;
        hash.bytes(&[self.table, flags]);
        hash.bytes(&self.metadata.map().to_be_bytes());
        for word in self.metadata.words() {
            hash.bytes(&word.to_be_bytes());
        }
        for item in &self.stack {
            hash.bytes(&item.value.to_be_bytes());
            hash.bytes(&item.bits.to_be_bytes());
        }
        hash.bytes(&self.mirrors.to_be_bytes());
        for list in [&self.action_set[..], &self.actions] {
            hash.bytes(actions_text(list).as_bytes());
        }
        hash.bytes(&self.userdata);
        if let Some((bridge, port)) = self.input {
            hash.bytes(name_of(bridge).as_bytes());
            hash.bytes(&port.0.to_be_bytes());
        }
        hash.0
    }
}

/// Fowler, Noll and Vo's hash, variant 1a; each piece is followed by its length.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u32).to_be_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// How many states that no flow refers to are kept for packets that are under way.
const KEPT: usize = 1024;

/// Ids have 28 bits, because traffic control's chains, to which flows may be offloaded, have no
/// more.
const ID_MASK: u32 = 0x0fff_ffff;

/// How a new state gets its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdSource {
    /// They count up.
    #[default]
    Counter,
    /// A hash of the state, so that a restarted switch gives the states of the flows that it
    /// finds in a datapath the ids that these flows have.
    Hash,
}

#[derive(Debug, Default)]
struct Inner {
    source: IdSource,
    next: u32,
    states: HashMap<u32, (u64, Weak<FrozenState>)>,
    ids: HashMap<u64, Vec<u32>>,
    recent: VecDeque<Arc<FrozenState>>,
}

/// The frozen states of a switch.  A state goes some time after the last reference to it.
#[derive(Debug, Default)]
pub struct RecircTable(Mutex<Inner>);

impl RecircTable {
    /// An empty table.
    pub fn new(source: IdSource) -> Self {
        Self(Mutex::new(Inner {
            source,
            ..Inner::default()
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a state, which stays the same as long as a reference is held.
    pub(crate) fn intern(
        &self,
        state: FrozenState,
        name_of: &dyn Fn(BridgeId) -> Arc<str>,
    ) -> (u32, Arc<FrozenState>) {
        let digest = state.digest(name_of);
        let mut inner = self.lock();
        for id in inner.ids.get(&digest).into_iter().flatten() {
            let known = inner.states.get(id).and_then(|(_, s)| s.upgrade());
            if let Some(known) = known
                && *known == state
            {
                return (*id, known);
            }
        }
        if inner.states.len() > 2 * KEPT && inner.states.len().is_multiple_of(KEPT) {
            inner.prune();
        }
        let state = Arc::new(state);
        let id = inner.free_id(digest);
        inner.states.insert(id, (digest, Arc::downgrade(&state)));
        inner.ids.entry(digest).or_default().push(id);
        inner.keep(&state);
        (id, state)
    }

    /// The state with that id.
    pub fn get(&self, id: u32) -> Option<Arc<FrozenState>> {
        self.lock().states.get(&id)?.1.upgrade()
    }

    /// Keeps states that a flow referred to for packets that have passed it and are still
    /// under way.
    pub fn linger(&self, states: &[Arc<FrozenState>]) {
        if states.is_empty() {
            return;
        }
        let mut inner = self.lock();
        for state in states {
            inner.keep(state);
        }
    }
}

impl Inner {
    fn keep(&mut self, state: &Arc<FrozenState>) {
        self.recent.push_back(Arc::clone(state));
        if self.recent.len() > KEPT {
            self.recent.pop_front();
        }
    }

    fn is_free(&self, id: u32) -> bool {
        id != 0
            && self
                .states
                .get(&id)
                .is_none_or(|(_, s)| s.strong_count() == 0)
    }

    fn free_id(&mut self, digest: u64) -> u32 {
        let mut id = match self.source {
            IdSource::Counter => self.next,
            IdSource::Hash => (digest >> 32) as u32 ^ digest as u32,
        };
        loop {
            id = id.wrapping_add(1) & ID_MASK;
            if self.is_free(id) {
                self.next = id;
                self.forget(id);
                return id;
            }
        }
    }

    /// Forgets an id whose state is gone.
    fn forget(&mut self, id: u32) {
        if let Some((digest, _)) = self.states.remove(&id)
            && let Some(ids) = self.ids.get_mut(&digest)
        {
            ids.retain(|other| *other != id);
        }
    }

    /// Forgets the ids of states that are gone.
    fn prune(&mut self) {
        self.states.retain(|_, (_, state)| state.strong_count() > 0);
        let states = &self.states;
        self.ids.retain(|_, ids| {
            ids.retain(|id| states.contains_key(id));
            !ids.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(table: u8) -> FrozenState {
        FrozenState {
            bridge: BridgeId(1),
            table,
            metadata: MiniKey::default(),
            stack: Vec::new(),
            mirrors: 0,
            action_set: Vec::new(),
            actions: Arc::default(),
            userdata: Box::default(),
            conntracked: false,
            was_mpls: false,
            hashed: false,
            input: None,
        }
    }

    fn name(id: BridgeId) -> Arc<str> {
        format!("br{}", id.0).into()
    }

    #[test]
    fn equal_states_have_one_id() {
        let table = RecircTable::default();
        let (one, kept) = table.intern(state(0), &name);
        let (two, _) = table.intern(state(1), &name);
        assert_eq!((one, two), (1, 2));
        assert_eq!(table.intern(state(0), &name).0, one);
        assert_eq!(table.get(one), Some(kept));
        assert_eq!(table.get(99), None);
    }

    #[test]
    fn ids_from_hashes_are_the_same_in_every_process() {
        let (one, two) = (
            RecircTable::new(IdSource::Hash),
            RecircTable::new(IdSource::Hash),
        );
        let renumbered = |id: BridgeId| name(BridgeId(id.0 - 6));
        for n in (0..100).rev() {
            two.intern(
                FrozenState {
                    bridge: BridgeId(7),
                    ..state(n)
                },
                &renumbered,
            );
        }
        for n in 0..100 {
            let (id, _) = one.intern(state(n), &name);
            assert_eq!(two.get(id).expect("a state").table, n);
            assert!(id <= ID_MASK);
        }
    }

    #[test]
    fn a_taken_id_is_passed_over() {
        let table = RecircTable::new(IdSource::Hash);
        let (id, kept) = table.intern(state(0), &name);
        let digest = kept.digest(&name);
        let mut inner = table.lock();
        assert_eq!(inner.free_id(digest), id + 1);
        inner.next = 0;
        inner.recent.clear();
        drop(kept);
        assert_eq!(inner.free_id(digest), id);
    }

    #[test]
    fn a_state_stays_while_packets_may_be_under_way() {
        let table = RecircTable::default();
        let (id, kept) = table.intern(state(0), &name);
        table.lock().recent.clear();
        table.linger(&[kept]);
        for n in 1..KEPT {
            table.intern(state(n as u8), &name);
        }
        assert!(table.get(id).is_some());
        table.lock().recent.clear();
        assert!(table.get(id).is_none());
    }
}
