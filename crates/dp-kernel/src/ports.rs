//! The ports of a datapath, as this process knows them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use dp_api::PortSpec;
use dp_lang::PortNo;
use net_dev::Device;

/// A port.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: PortNo,
    /// What it is: name of the device and type.
    pub(crate) spec: PortSpec,
    /// Opened when somebody asks for it.
    pub(crate) device: OnceLock<Arc<dyn Device>>,
    /// Somebody has added it in this life of the process.
    claimed: bool,
    /// The kernel has no such port at the moment: its device vanished.
    lost: AtomicBool,
    /// Packets for the switch that found its queue full.
    dropped: AtomicU64,
    /// Packets that the switch has looked at.
    served: AtomicU64,
}

impl Port {
    pub(crate) fn new(number: PortNo, spec: PortSpec, claimed: bool) -> Self {
        Self {
            number,
            spec,
            device: OnceLock::new(),
            claimed,
            lost: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            served: AtomicU64::new(0),
        }
    }

    pub(crate) const fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// Notes whether it is lost; true if that is news.
    pub(crate) fn set_lost(&self, lost: bool) -> bool {
        self.lost.swap(lost, Ordering::Relaxed) != lost
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_served(&self, count: u64) {
        self.served.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Ports by number and by name.
#[derive(Debug, Default)]
pub(crate) struct PortTable {
    by_number: BTreeMap<PortNo, Arc<Port>>,
    by_name: HashMap<String, PortNo>,
}

impl PortTable {
    pub(crate) fn get(&self, number: PortNo) -> Option<&Arc<Port>> {
        self.by_number.get(&number)
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Port>> {
        self.get(*self.by_name.get(name)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Port>> {
        self.by_number.values()
    }

    pub(crate) fn insert(&mut self, port: Arc<Port>) {
        self.by_name.insert(port.spec.name.clone(), port.number);
        self.by_number.insert(port.number, port);
    }

    pub(crate) fn remove(&mut self, number: PortNo) -> Option<Arc<Port>> {
        let port = self.by_number.remove(&number)?;
        self.by_name.remove(&port.spec.name);
        Some(port)
    }
}

/// The table, which several threads look at.
#[derive(Debug, Default)]
pub(crate) struct Ports(RwLock<PortTable>);

impl Ports {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, PortTable> {
        self.0
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, PortTable> {
        self.0
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn get(&self, number: PortNo) -> Option<Arc<Port>> {
        self.read().get(number).cloned()
    }

    pub(crate) fn numbers(&self) -> Vec<PortNo> {
        self.read().iter().map(|port| port.number).collect()
    }
}
