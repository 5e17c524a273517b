//! Ports, and the table that packets find them in.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use dp_lang::PortNo;
use net_dev::Device;

use crate::registry::lock;

/// A port.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: PortNo,
    pub(crate) device: Arc<dyn Device>,
    /// Which worker receives from it.  Locked while that worker is told of it, so that what it is told comes in order.
    pub(crate) worker: Mutex<usize>,
    /// Its type, where that is not the device's: a dummy that stands in for a tunnel.
    pub(crate) stands_for: Option<String>,
    /// Packets that its device could not take; several threads add to it.
    pub(crate) tx_dropped: AtomicU64,
}

impl Port {
    /// The worker that receives from it now.
    pub(crate) fn worker(&self) -> usize {
        *lock(&self.worker)
    }
}

/// The ports at one moment, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortTable(Vec<Option<Arc<Port>>>);

impl PortTable {
    pub(crate) fn get(&self, number: PortNo) -> Option<&Arc<Port>> {
        self.0.get(number.0 as usize)?.as_ref()
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Port>> {
        self.iter().find(|port| port.device.name() == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Port>> {
        self.0.iter().flatten()
    }

    /// The table with another port in it.
    pub(crate) fn with(&self, port: Arc<Port>) -> Self {
        let mut table = self.clone();
        let at = port.number.0 as usize;
        if table.0.len() <= at {
            table.0.resize(at + 1, None);
        }
        table.0[at] = Some(port);
        table
    }

    /// The table without a port.
    pub(crate) fn without(&self, number: PortNo) -> Self {
        let mut table = self.clone();
        if let Some(place) = table.0.get_mut(number.0 as usize) {
            *place = None;
        }
        table
    }

    /// The lowest free number from `first` on, below 65536.
    pub(crate) fn free(&self, first: u32) -> Option<PortNo> {
        let mut numbers = (first..=u32::from(u16::MAX)).map(PortNo);
        numbers.find(|number| self.get(*number).is_none())
    }
}
