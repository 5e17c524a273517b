//! A cached flow of one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use base::Instant;
use dp_api::FlowStats;
use dp_lang::text::{FlowFormat, PortNames, format_actions, format_flow};
use dp_lang::{Action, PortNo, Ufid};
use net_flow::{FlowKey, FlowMask, MiniKey, slot};

/// What a flow matches.
#[derive(Clone, Debug)]
pub(crate) struct Matching {
    /// The key under the mask, with a word for each word of the mask.
    pub(crate) key: MiniKey,
    pub(crate) mask: MiniKey,
    /// The key of the packet for which the flow was made: dumps show it.
    pub(crate) seen: MiniKey,
}

impl Matching {
    pub(crate) fn new(key: &FlowKey, mask: &FlowMask) -> Self {
        Self {
            key: MiniKey::under(key, mask),
            mask: MiniKey::new(mask.as_key()),
            seen: MiniKey::new(key),
        }
    }
}

/// A flow that one thread has in its tables.  That thread alone counts; others read, and replace actions.
#[derive(Debug)]
pub(crate) struct Megaflow {
    pub(crate) ufid: Ufid,
    /// The key under the mask, with a word for each word of the mask.
    pub(crate) key: MiniKey,
    pub(crate) mask: MiniKey,
    pub(crate) seen: MiniKey,
    actions: ArcSwap<Arc<[Action]>>,
    dead: AtomicBool,
    packets: AtomicU64,
    bytes: AtomicU64,
    /// In microseconds, plus one; zero is never.
    used: AtomicU64,
    tcp_flags: AtomicU16,
}

/// Packets counted before they are added to a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) tcp_flags: u16,
}

/// Adds to a counter that only this thread writes.
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

impl Megaflow {
    pub(crate) fn new(ufid: Ufid, matching: Matching, actions: Arc<[Action]>) -> Self {
        Self {
            ufid,
            key: matching.key,
            mask: matching.mask,
            seen: matching.seen,
            actions: ArcSwap::from_pointee(actions),
            dead: AtomicBool::new(false),
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            used: AtomicU64::new(0),
            tcp_flags: AtomicU16::new(0),
        }
    }

    /// The port that its packets come from; every flow matches that exactly.
    pub(crate) fn in_port(&self) -> PortNo {
        let word = self.key.word(usize::from(slot::IN_PORT.word));
        PortNo((word >> slot::IN_PORT.shift) as u32)
    }

    /// Another instance, which has counted nothing yet.
    pub(crate) fn copy(&self) -> Self {
        let matching = Matching {
            key: self.key.clone(),
            mask: self.mask.clone(),
            seen: self.seen.clone(),
        };
        Self::new(self.ufid, matching, self.actions())
    }

    /// Tells the log, if it wants that much, of the flow.
    pub(crate) fn log_added(&self) {
        if log::log_enabled!(target: "dpif_netdev", log::Level::Debug) {
            let mask = self.mask.expand_mask();
            let names = PortNames::none();
            let key = self.seen.expand();
            let flow = format_flow(&key, Some(&mask), &names, FlowFormat::default());
            let actions = format_actions(&self.actions(), &names);
            let ufid = self.ufid;
            log::debug!(target: "dpif_netdev", "flow_add: ufid:{ufid} {flow}, actions:{actions}");
        }
    }

    pub(crate) fn actions(&self) -> Arc<[Action]> {
        Arc::clone(&self.actions.load())
    }

    pub(crate) fn set_actions(&self, actions: Arc<[Action]>) {
        self.actions.store(Arc::new(actions));
    }

    /// Whether the flow was removed, so that no packet may meet it any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }

    /// Adds what was counted; by the owning thread only.
    pub(crate) fn count(&self, counted: &Counted, now: Instant) {
        bump(&self.packets, counted.packets);
        bump(&self.bytes, counted.bytes);
        self.used.store(now.as_micros() + 1, Ordering::Relaxed);
        if counted.tcp_flags != 0 {
            let all = self.tcp_flags.load(Ordering::Relaxed) | counted.tcp_flags;
            self.tcp_flags.store(all, Ordering::Relaxed);
        }
    }

    pub(crate) fn stats(&self) -> FlowStats {
        let used = self.used.load(Ordering::Relaxed).checked_sub(1);
        FlowStats {
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            used: used.map(Instant::from_micros),
            tcp_flags: self.tcp_flags.load(Ordering::Relaxed),
        }
    }
}
