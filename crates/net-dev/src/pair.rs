//! Two devices in memory, each of which receives what is sent to the other: what tests use.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use net_packet::{BATCH, Batch, EthAddr, Packet, Pool};

use crate::{Device, DeviceState, DeviceStats, Receiver, Sent};

/// Packets that wait at most.
const QUEUE: usize = 1024;

type Queue = Arc<Mutex<VecDeque<Packet>>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of a pair of devices.
#[derive(Debug)]
pub struct MemoryDevice {
    name: String,
    state: Mutex<DeviceState>,
    changes: AtomicU64,
    inbox: Queue,
    outbox: Queue,
}

impl MemoryDevice {
    /// A pair.
    pub fn pair(one: &str, other: &str) -> (Arc<Self>, Arc<Self>) {
        let (a, b) = (Queue::default(), Queue::default());
        let device = |name: &str, inbox: &Queue, outbox: &Queue, last| {
            let state = DeviceState {
                present: true,
                ifindex: None,
                mac: EthAddr([2, 0, 0, 0, 0, last]),
                mtu: 1500,
                up: true,
                carrier: true,
                carrier_resets: 0,
            };
            Arc::new(Self {
                name: name.to_owned(),
                state: Mutex::new(state),
                changes: AtomicU64::new(1),
                inbox: inbox.clone(),
                outbox: outbox.clone(),
            })
        };
        (device(one, &a, &b, 1), device(other, &b, &a, 2))
    }

    fn change(&self, f: impl FnOnce(&mut DeviceState)) {
        f(&mut lock(&self.state));
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

struct MemoryReceiver(Queue);

impl Receiver for MemoryReceiver {
    fn receive(&mut self, batch: &mut Batch, _pool: &mut Pool) -> io::Result<()> {
        let mut queue = lock(&self.0);
        let count = queue.len().min(BATCH);
        batch.extend(queue.drain(..count));
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Device for MemoryDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "memory"
    }

    fn state(&self) -> DeviceState {
        lock(&self.state).clone()
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn set_up(&self, up: bool) -> io::Result<()> {
        self.change(|state| state.up = up);
        Ok(())
    }

    fn set_mac(&self, mac: EthAddr) -> io::Result<()> {
        self.change(|state| state.mac = mac);
        Ok(())
    }

    fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        self.change(|state| state.mtu = mtu);
        Ok(())
    }

    fn stats(&self) -> io::Result<DeviceStats> {
        Ok(DeviceStats::default())
    }

    fn open_receiver(&self) -> io::Result<Box<dyn Receiver>> {
        Ok(Box::new(MemoryReceiver(self.inbox.clone())))
    }

    fn send(&self, batch: &mut Batch, _pool: &mut Pool) -> Sent {
        let mut sent = Sent::default();
        let mut queue = lock(&self.outbox);
        for packet in batch.drain(..) {
            if queue.len() < QUEUE {
                sent.add(packet.len());
                queue.push_back(packet);
            } else {
                sent.dropped += 1;
            }
        }
        sent
    }
}
