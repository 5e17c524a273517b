//! All flows of all threads, by their ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dp_api::{DumpedFlow, FlowStats};
use dp_lang::{Action, Ufid};
use net_flow::MiniKey;

use crate::flow::Megaflow;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A flow, which each thread that may meet it has its own instance of.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// (worker, instance); never empty.
    pub(crate) instances: Vec<(usize, Arc<Megaflow>)>,
    /// Counts up from flow to flow.
    number: u64,
}

impl Entry {
    pub(crate) fn stats(&self) -> FlowStats {
        let mut all = FlowStats::default();
        for (_, flow) in &self.instances {
            let stats = flow.stats();
            all.packets += stats.packets;
            all.bytes += stats.bytes;
            all.used = all.used.max(stats.used);
            all.tcp_flags |= stats.tcp_flags;
        }
        all
    }

    pub(crate) fn dump(&self) -> Option<DumpedFlow> {
        let (_, first) = self.instances.first()?;
        Some(DumpedFlow {
            ufid: first.ufid,
            key: first.seen.clone(),
            mask: first.mask.clone(),
            actions: first.actions(),
            stats: self.stats(),
        })
    }

    pub(crate) fn set_actions(&self, actions: &Arc<[Action]>) {
        for (_, flow) in &self.instances {
            flow.set_actions(actions.clone());
        }
    }

    pub(crate) fn kill(&self) {
        for (_, flow) in &self.instances {
            flow.kill();
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Flows {
    entries: HashMap<Ufid, Entry>,
    /// How many flows have each mask.
    masks: HashMap<MiniKey, usize>,
    /// How many flows there have been.
    added: u64,
}

impl Flows {
    pub(crate) fn get(&self, ufid: Ufid) -> Option<&Entry> {
        self.entries.get(&ufid)
    }

    /// Adds an instance of a flow.
    pub(crate) fn add(&mut self, worker: usize, flow: Arc<Megaflow>) {
        let entry = self.entries.entry(flow.ufid).or_insert_with(|| {
            *self.masks.entry(flow.mask.clone()).or_default() += 1;
            self.added += 1;
            Entry {
                instances: Vec::with_capacity(1),
                number: self.added,
            }
        });
        entry.instances.push((worker, flow));
    }

    pub(crate) fn remove(&mut self, ufid: Ufid) -> Option<Entry> {
        let entry = self.entries.remove(&ufid)?;
        let (_, first) = entry.instances.first()?;
        if let Some(count) = self.masks.get_mut(&first.mask) {
            *count -= 1;
            if *count == 0 {
                self.masks.remove(&first.mask);
            }
        }
        Some(entry)
    }

    pub(crate) fn take_all(&mut self) -> Vec<Entry> {
        self.masks.clear();
        self.entries.drain().map(|(_, entry)| entry).collect()
    }

    /// All flows, the oldest first.
    pub(crate) fn all(&self) -> Vec<Entry> {
        let mut all: Vec<Entry> = self.entries.values().cloned().collect();
        all.sort_by_key(|entry| entry.number);
        all
    }

    /// What all flows have counted, in no order.
    pub(crate) fn counts(&self) -> Vec<(Ufid, FlowStats)> {
        let all = self.entries.iter();
        all.map(|(ufid, entry)| (*ufid, entry.stats())).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn masks(&self) -> usize {
        self.masks.len()
    }
}
