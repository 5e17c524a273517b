//! What datapath threads leave for the main loop: a bounded queue.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use io::Waker;
use of_switch::PacketInEvent;
use of_xlate::BridgeId;

/// Packets for controllers that wait for the main loop at most.
const MAX_WAITING: usize = 4096;

/// Something for the main loop to do.
#[derive(Debug)]
pub(crate) enum Event {
    /// There are flows in the datapath again.
    FlowsExist,
    /// A station was learned: flows may have to be translated anew.
    Learned,
    /// A packet for a bridge's controllers.
    PacketIn {
        bridge: BridgeId,
        packet: Box<PacketInEvent>,
    },
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Event>,
    waker: Option<Waker>,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Inner>);

impl Events {
    /// Wakes `waker` when something is put into the empty queue.
    pub(crate) fn set_waker(&self, waker: Waker) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waker = Some(waker);
    }

    /// Puts an event into the queue, unless it is full.  Returns whether it was put.
    pub(crate) fn push(&self, event: Event) -> bool {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.events.len() >= MAX_WAITING {
            return false;
        }
        inner.events.push_back(event);
        if inner.events.len() == 1
            && let Some(waker) = &inner.waker
        {
            waker.wake();
        }
        true
    }

    /// Takes everything out of the queue.
    pub(crate) fn take(&self) -> VecDeque<Event> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut inner.events)
    }
}
