//! What the threads of a datapath share: snapshots to read, and a mailbox for each.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, RwLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use base::{Clock, Epoch};
use crossbeam_utils::CachePadded;
use dp_api::{FlowStats, UpcallHandler};
use dp_lang::{Action, PortNo, Ufid};
use net_dev::Receiver;
use rustix::event::EventfdFlags;

use crate::balance::Report;
use crate::flow::{Matching, Megaflow};
use crate::port::PortTable;
use crate::registry::{Flows, lock};

/// The worker that the main loop drives.
pub(crate) const MAIN: usize = 0;

/// What a worker is told.
pub(crate) enum Command {
    Insert(Arc<Megaflow>),
    Remove(Arc<Megaflow>),
    /// Lets go of all flows that are dead.
    Sweep,
    AddPort(PortNo, Box<dyn Receiver>),
    /// Gives the receiver up, and says so.
    RemovePort(PortNo, SyncSender<()>),
    Stop,
}

/// What a worker counts; others read.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) visited: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) load: Report,
}

/// How the others reach a worker.
pub(crate) struct Mailbox {
    commands: Mutex<Vec<Command>>,
    pending: AtomicBool,
    wake: Option<OwnedFd>,
    /// Entered while the worker has packets in its hands.
    pub(crate) epoch: CachePadded<Epoch>,
    pub(crate) stats: CachePadded<Stats>,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

impl Mailbox {
    /// For a worker on a thread, which waits for [`Mailbox::wake_fd`], or one that the main loop drives.
    pub(crate) fn new(is_thread: bool) -> std::io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = if is_thread {
            Some(rustix::event::eventfd(0, flags)?)
        } else {
            None
        };
        Ok(Self {
            commands: Mutex::default(),
            pending: AtomicBool::new(false),
            wake,
            epoch: CachePadded::default(),
            stats: CachePadded::default(),
        })
    }

    pub(crate) fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn send(&self, command: Command) {
        self.send_all([command]);
    }

    /// Sends commands that the worker does one after the other.
    pub(crate) fn send_all(&self, commands: impl IntoIterator<Item = Command>) {
        lock(&self.commands).extend(commands);
        self.pending.store(true, Ordering::Release);
        if let Some(wake) = &self.wake {
            // A counter that is full wakes as well.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }

    /// The commands that came since the last call.
    pub(crate) fn take(&self) -> Vec<Command> {
        if !self.pending.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut lock(&self.commands))
    }
}

/// The handler, in a box of a size that a pointer can be swapped for.
pub(crate) struct Handler(pub(crate) Arc<dyn UpcallHandler>);

pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) handler: ArcSwapOption<Handler>,
    pub(crate) ports: ArcSwap<PortTable>,
    pub(crate) flows: Mutex<Flows>,
    /// VLAN tags that extraction reads.
    pub(crate) max_vlans: AtomicU8,
    mailboxes: RwLock<Vec<Arc<Mailbox>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(clock: Clock) -> std::io::Result<Self> {
        Ok(Self {
            clock,
            seed: base::hash::random_seed(),
            handler: ArcSwapOption::empty(),
            ports: ArcSwap::default(),
            flows: Mutex::default(),
            max_vlans: AtomicU8::new(1),
            mailboxes: RwLock::new(vec![Arc::new(Mailbox::new(false)?)]),
        })
    }

    pub(crate) fn mailboxes(&self) -> Vec<Arc<Mailbox>> {
        let all = self.mailboxes.read();
        all.unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn mailbox(&self, worker: usize) -> Arc<Mailbox> {
        let all = self.mailboxes.read();
        all.unwrap_or_else(std::sync::PoisonError::into_inner)[worker].clone()
    }

    /// Adds a worker's mailbox; the worker's number.
    pub(crate) fn add_mailbox(&self, mailbox: Arc<Mailbox>) -> usize {
        let all = self.mailboxes.write();
        let mut all = all.unwrap_or_else(std::sync::PoisonError::into_inner);
        all.push(mailbox);
        all.len() - 1
    }

    pub(crate) fn quiesce(&self) {
        for mailbox in self.mailboxes() {
            mailbox.epoch.wait();
        }
    }

    /// Installs a flow that `worker` found out; the instance, and whether it is a new one, which the worker must
    /// put into its tables.
    pub(crate) fn install(
        &self,
        worker: usize,
        ufid: Ufid,
        matching: Matching,
        actions: Arc<[Action]>,
    ) -> (Arc<Megaflow>, bool) {
        let mut flows = lock(&self.flows);
        if let Some(entry) = flows.get(ufid) {
            let mine = entry.instances.iter().find(|(w, _)| *w == worker);
            if let Some((_, flow)) = mine {
                flow.set_actions(actions);
                return (flow.clone(), false);
            }
        }
        let flow = Arc::new(Megaflow::new(ufid, matching, actions));
        flows.add(worker, flow.clone());
        drop(flows);
        flow.log_added();
        (flow, true)
    }

    /// Gives a worker instances of flows; those that it must put into its tables.
    pub(crate) fn copy_to<'a>(
        &self,
        worker: usize,
        wanted: impl Iterator<Item = &'a Arc<Megaflow>>,
    ) -> Vec<Arc<Megaflow>> {
        // Actions are replaced under this lock, so that none are copied that are about to go.
        let mut flows = lock(&self.flows);
        let mut copies = Vec::new();
        for flow in wanted {
            let Some(entry) = flows.get(flow.ufid) else {
                continue;
            };
            if entry.instances.iter().all(|(w, _)| *w != worker) {
                let copy = Arc::new(flow.copy());
                flows.add(worker, copy.clone());
                copies.push(copy);
            }
        }
        copies
    }

    /// Removes a flow from everywhere.
    pub(crate) fn remove(&self, ufid: Ufid) -> Option<FlowStats> {
        let entry = lock(&self.flows).remove(ufid)?;
        entry.kill();
        let stats = entry.stats();
        for (worker, flow) in entry.instances {
            self.mailbox(worker).send(Command::Remove(flow));
        }
        Some(stats)
    }

    /// Removes all flows.
    pub(crate) fn flush(&self) {
        let all = lock(&self.flows).take_all();
        for entry in &all {
            entry.kill();
        }
        for mailbox in self.mailboxes() {
            mailbox.send(Command::Sweep);
        }
    }
}
