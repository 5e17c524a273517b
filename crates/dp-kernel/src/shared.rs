//! What the threads of a datapath share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use base::{Clock, Instant};
use dp_api::UpcallHandler;
use dp_lang::{Features, PortNo};
use net_nlsock::PacketInbox;

use crate::kernel::Kernel;
use crate::ports::Ports;
use crate::upcall::Served;

/// The switch, in a box of a size that a pointer can be swapped for.
pub(crate) struct Switch(pub(crate) Arc<dyn UpcallHandler>);

/// A socket that a handler reads.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) inbox: PacketInbox,
    /// The only port whose packets come here, if there is one.
    pub(crate) port: Option<PortNo>,
}

/// Sockets by the number that their handlers know them by.
pub(crate) type Sources = RwLock<HashMap<u64, Arc<Source>>>;

/// Shared by the datapath, its handlers and its dispatcher.
pub(crate) struct Shared {
    pub(crate) kernel: Kernel,
    pub(crate) name: String,
    /// The datapath's number.
    pub(crate) dp: u32,
    pub(crate) features: Features,
    pub(crate) clock: Clock,
    /// The kernel's monotonic clock when ours was zero.
    origin: Duration,
    pub(crate) switch: ArcSwapOption<Switch>,
    pub(crate) ports: Ports,
    pub(crate) sources: Sources,
    /// The socket that `userspace` actions name, by input port; `None` in a mode in which the kernel
    /// does not look at it.
    pub(crate) pids: RwLock<Option<HashMap<PortNo, u32>>>,
    /// VLAN tags that extraction reads.
    pub(crate) max_vlans: AtomicU8,
    /// Packets for which there was no switch yet, or that could not be read.
    pub(crate) lost: AtomicU64,
    /// Upcalls of each port since the dispatcher last looked.
    pub(crate) served: Mutex<HashMap<PortNo, Served>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What the kernel takes for any socket where it does not look at it.
const ANY_PID: u32 = u32::MAX;

impl Shared {
    pub(crate) fn new(
        kernel: Kernel,
        name: &str,
        dp: u32,
        features: Features,
        clock: Clock,
    ) -> Self {
        let ours = Duration::from_millis(clock.real().as_millis());
        Self {
            kernel,
            name: name.to_owned(),
            dp,
            features,
            origin: sys::clock::monotonic().saturating_sub(ours),
            clock,
            switch: ArcSwapOption::empty(),
            ports: Ports::default(),
            sources: RwLock::default(),
            pids: RwLock::new(None),
            max_vlans: AtomicU8::new(1),
            lost: AtomicU64::new(0),
            served: Mutex::default(),
        }
    }

    /// The name under which logs show the datapath.
    pub(crate) fn display_name(&self) -> String {
        format!("system@{}", self.name)
    }

    /// The socket that actions of flows from `port` name.
    pub(crate) fn pid(&self, port: PortNo) -> u32 {
        let pids = self
            .pids
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*pids {
            None => ANY_PID,
            Some(pids) => pids.get(&port).copied().unwrap_or(0),
        }
    }

    /// The instant of a time in milliseconds of the kernel's monotonic clock.
    pub(crate) fn instant(&self, kernel_ms: u64) -> Instant {
        let (now, real) = (self.clock.now(), self.clock.real());
        let kernel_now = self.origin + Duration::from_millis(real.as_millis());
        let age = kernel_now.saturating_sub(Duration::from_millis(kernel_ms));
        now - age
    }

    /// VLAN tags that extraction reads.
    pub(crate) fn vlan_limit(&self) -> u8 {
        self.max_vlans.load(Ordering::Relaxed)
    }
}
