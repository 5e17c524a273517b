//! `set_queue`, `pop_queue`.  In the userspace datapath a queue's number is its priority.

use net_flow::slot;

use crate::ctx::Ctx;
use crate::trace::NodeKind;

impl Ctx<'_> {
    pub(crate) const fn read_priority(&mut self) -> u128 {
        self.flow.read(slot::SKB_PRIORITY)
    }

    /// Sets the priority; returns what it was.
    pub(crate) const fn set_priority(&mut self, priority: u128) -> u128 {
        let before = self.read_priority();
        self.flow.set(slot::SKB_PRIORITY, priority);
        before
    }

    pub(crate) fn set_queue(&mut self, queue: u32) {
        self.set_priority(u128::from(queue));
    }

    pub(crate) fn pop_queue(&mut self) {
        let original = self.original_priority;
        if self.set_priority(original) != original {
            self.report(NodeKind::Detail, || format!("queue = {original:#x}"));
        }
    }
}
