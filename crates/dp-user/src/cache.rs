//! The exact-match cache: whole keys that were seen lately, each with its flow.

use std::sync::Arc;

use net_flow::{FlowKey, MiniKey};

use crate::flow::Megaflow;

const ENTRIES: usize = 8192;

/// One in so many keys replaces an entry that is in use, so that a flood of new keys does not empty the cache.
const REPLACE_ONE_IN: u64 = 32;

#[derive(Debug)]
struct Entry {
    hash: u64,
    key: MiniKey,
    flow: Arc<Megaflow>,
}

/// A key may be in either of two places.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: Vec<Option<Entry>>,
    turn: u64,
}

fn same(mini: &MiniKey, key: &FlowKey) -> bool {
    mini.map() == key.map() && mini.iter().all(|(i, word)| key.word(i) == word)
}

const fn places(hash: u64) -> [usize; 2] {
    [hash as usize % ENTRIES, (hash >> 32) as usize % ENTRIES]
}

impl Cache {
    /// The flow of a key with this hash.
    pub(crate) fn find(&self, key: &FlowKey, hash: u64) -> Option<&Arc<Megaflow>> {
        if self.entries.is_empty() {
            return None;
        }
        let entries = places(hash)
            .into_iter()
            .filter_map(|p| self.entries[p].as_ref());
        let mut hits = entries.filter(|e| e.hash == hash && same(&e.key, key));
        hits.find(|e| !e.flow.is_dead()).map(|e| &e.flow)
    }

    /// Notes the flow of a key, if there is room or chance wills it.
    pub(crate) fn insert(&mut self, key: &FlowKey, hash: u64, flow: &Arc<Megaflow>) {
        if self.entries.is_empty() {
            self.entries.resize_with(ENTRIES, || None);
        }
        let [first, second] = places(hash);
        let is_free = |entry: &Option<Entry>| {
            let used = entry.as_ref().filter(|e| !e.flow.is_dead());
            used.is_none_or(|e| e.hash == hash && same(&e.key, key))
        };
        let place = [first, second]
            .into_iter()
            .find(|p| is_free(&self.entries[*p]));
        self.turn = self.turn.wrapping_add(1);
        let place = match place {
            Some(place) => place,
            None if self.turn.is_multiple_of(REPLACE_ONE_IN) => first,
            None => return,
        };
        self.entries[place] = Some(Entry {
            hash,
            key: MiniKey::new(key),
            flow: flow.clone(),
        });
    }

    /// Lets go of flows that were removed.
    pub(crate) fn sweep(&mut self) {
        for entry in &mut self.entries {
            if entry.as_ref().is_some_and(|e| e.flow.is_dead()) {
                *entry = None;
            }
        }
    }
}
