//! Frozen states: what a translation leaves behind for the time when the switch sees the
//! packet again, named by the recirculation id that travels with it.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use net_flow::MiniKey;
use of_wire::Action;

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
    /// The bridge.
    pub bridge: BridgeId,
    /// The table of the rule that was carried out.
    pub table: u8,
    /// The pipeline fields: input port (OpenFlow's number), tunnel, registers, metadata.
    pub metadata: MiniKey,
    /// The stack, top last.
    pub stack: Vec<StackItem>,
    /// The action set.
    pub action_set: Vec<Action>,
    /// The actions that are left to do.
    pub actions: Vec<Action>,
    /// What the `controller` action passes along.
    pub userdata: Box<[u8]>,
    /// Whether the packet has been through the connection tracker.
    pub conntracked: bool,
}

impl FrozenState {
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (
            self.bridge,
            self.table,
            &self.metadata,
            &self.stack,
            &self.userdata,
        )
            .hash(&mut hasher);
        (self.actions.len(), self.action_set.len()).hash(&mut hasher);
        hasher.finish()
    }
}

/// How many states that no flow refers to are kept for packets that are under way.
const KEPT: usize = 1024;

#[derive(Debug, Default)]
struct Inner {
    next: u32,
    states: HashMap<u32, (u64, Weak<FrozenState>)>,
    ids: HashMap<u64, Vec<u32>>,
    recent: VecDeque<Arc<FrozenState>>,
}

/// The frozen states of a switch.  A state goes some time after the last reference to it.
#[derive(Debug, Default)]
pub struct RecircTable(Mutex<Inner>);

impl RecircTable {
    /// The id of a state, which stays the same as long as a reference is held.
    pub(crate) fn intern(&self, state: FrozenState) -> (u32, Arc<FrozenState>) {
        let digest = state.digest();
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let id = inner.free_id();
        inner.states.insert(id, (digest, Arc::downgrade(&state)));
        inner.ids.entry(digest).or_default().push(id);
        inner.recent.push_back(Arc::clone(&state));
        if inner.recent.len() > KEPT {
            inner.recent.pop_front();
        }
        (id, state)
    }

    /// The state with that id.
    pub fn get(&self, id: u32) -> Option<Arc<FrozenState>> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.states.get(&id)?.1.upgrade()
    }
}

impl Inner {
    fn free_id(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            if self.next != 0 && !self.states.contains_key(&self.next) {
                return self.next;
            }
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
            action_set: Vec::new(),
            actions: Vec::new(),
            userdata: Box::default(),
            conntracked: false,
        }
    }

    #[test]
    fn equal_states_have_one_id() {
        let table = RecircTable::default();
        let (one, kept) = table.intern(state(0));
        let (two, _) = table.intern(state(1));
        assert_eq!((one, two), (1, 2));
        assert_eq!(table.intern(state(0)).0, one);
        assert_eq!(table.get(one), Some(kept));
        assert_eq!(table.get(99), None);
    }
}
