//! The work stack: what is still to be done, innermost last.

use std::sync::Arc;

use dp_lang::Action as DpAction;
use net_flow::{FlowKey, PortNo, slot};
use of_switch::GroupEntry;
use of_wire::Action;

use crate::actions::group::BucketEnd;
use crate::actions::{Next, action_set};
use crate::ctx::{Ctx, Position, Saved};
use crate::freeze::Departure;
use crate::mirror::MirrorSet;
use crate::trace::{NodeId, NodeKind};
use crate::view::{BridgeView, Bundle};
use crate::vlan::Tags;

/// One thing to do.
pub(crate) enum Work {
    /// Carry out the rest of an action list.
    Actions {
        list: Arc<[Action]>,
        next: usize,
        /// Nothing is done to the packet after the list.
        last: bool,
    },
    /// Carry out the buckets of a group from the one at `next` on.
    Buckets {
        group: Arc<GroupEntry>,
        next: usize,
        last: bool,
    },
    /// The end of a bucket.
    EndBucket(Box<BucketEnd>),
    /// Send to a port.
    Output(Output),
    /// Send to a bundle as NORMAL does.
    OutputNormal(Arc<Bundle>, Tags),
    /// Carry out the action set.
    ActionSet,
    /// Copy the packet, which has these tags inside of the bridge, to mirrors.
    Mirror(MirrorSet, Tags),
    /// A mirror has its copy; the others follow.
    EndMirror(MirrorSet, Tags),
    /// Put the VLAN tags back.
    Tags(u64),
    /// Put the priority back.
    Priority(u128),
    /// The end of a table's rule.
    EndTable(Position, NodeId),
    /// The end of the action set.
    EndActionSet(NodeId),
    /// The end of a nested part that changed nothing of the datapath's packet.
    EndSaved(Box<Saved>),
    /// The end of a datapath clone.
    EndClone(Box<CloneEnd>),
    /// The end of a stay in another bridge.
    EndBridge(Box<Visit>),
}

/// An output to a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) port: PortNo,
    /// Whether the spanning tree may forbid it.
    pub(crate) check_stp: bool,
    pub(crate) last: bool,
    /// Whether a truncation precedes it.
    pub(crate) truncated: bool,
}

/// What comes back at the end of a datapath clone.
pub(crate) struct CloneEnd {
    saved: Saved,
    base: FlowKey,
    conntracked: bool,
    was_mpls: bool,
}

/// What comes back at the end of a stay in another bridge.
pub(crate) struct Visit {
    pub(crate) saved: Saved,
    pub(crate) bridge: Arc<BridgeView>,
    pub(crate) node: NodeId,
    pub(crate) conntracked: bool,
    pub(crate) was_mpls: bool,
    pub(crate) mirrored: MirrorSet,
    /// The peer does not forward: what the datapath was told is taken back to here.
    pub(crate) discard: Option<(usize, FlowKey)>,
}

impl Ctx<'_> {
    /// Does all that is to be done.
    pub(crate) fn run(&mut self) {
        while let Some(work) = self.work.pop() {
            self.step(work);
        }
    }

    fn step(&mut self, work: Work) {
        match work {
            Work::Actions { list, next, last } => self.next_action(list, next, last),
            Work::Buckets { group, next, last } => self.next_bucket(group, next, last),
            Work::EndBucket(end) => self.leave_bucket(*end),
            Work::Output(output) => self.output_to(output),
            Work::OutputNormal(bundle, tags) => self.output_normal(&bundle, &tags),
            Work::Mirror(mirrors, tags) => self.mirror_next(mirrors, &tags),
            Work::EndMirror(left, tags) => {
                self.snaplen = 0;
                self.mirror_next(left, &tags);
            }
            Work::ActionSet => self.start_action_set(),
            Work::Tags(word) => self.flow.set_tags_word(word),
            Work::Priority(priority) => self.flow.set(slot::SKB_PRIORITY, priority),
            Work::EndTable(at, node) => {
                self.at = at;
                self.leave_node(node);
            }
            Work::EndActionSet(node) => {
                self.in_action_set = false;
                self.leave_node(node);
            }
            Work::EndSaved(saved) => self.restore(*saved),
            Work::EndClone(end) => {
                let outer = self.outer.pop().unwrap_or_default();
                let inner = std::mem::replace(&mut self.out, outer);
                if !inner.is_empty() {
                    self.out.push(DpAction::Clone(inner));
                }
                self.conntracked = end.conntracked;
                self.was_mpls = end.was_mpls;
                self.flow.base = end.base;
                self.restore(end.saved);
            }
            Work::EndBridge(visit) => self.leave_bridge(*visit),
        }
    }

    fn next_action(&mut self, list: Arc<[Action]>, next: usize, last: bool) {
        if self.error.is_some() || self.exit {
            return;
        }
        let Some(action) = list.get(next) else {
            return;
        };
        let is_last = last && next + 1 == list.len() && self.action_set.is_empty();
        if self.must_look_again(action) {
            self.work.push(Work::Actions { list, next, last });
            self.freeze(&Departure::Recirculate);
            return;
        }
        let rest = self.work.len();
        if next + 1 < list.len() {
            self.work.push(Work::Actions {
                list: Arc::clone(&list),
                next: next + 1,
                last,
            });
        }
        if let Some(trace) = &mut self.trace {
            trace.add(NodeKind::Action, crate::trace::action_text(action));
        }
        self.mirror_again_after(action);
        if self.act(action, is_last) == Next::Stop {
            self.work.truncate(rest);
        }
    }

    /// Puts an action list on the work stack.
    pub(crate) fn push_actions(&mut self, list: Arc<[Action]>, last: bool) {
        if list.is_empty() {
            if self.error.is_none() && !self.exit || self.trace.is_some() {
                self.report(NodeKind::Action, || "drop".to_string());
            }
            return;
        }
        self.work.push(Work::Actions {
            list,
            next: 0,
            last,
        });
    }

    fn start_action_set(&mut self) {
        let set = std::mem::take(&mut self.action_set);
        let list = action_set::in_order(&set);
        if list.is_empty() {
            return;
        }
        self.in_action_set = true;
        let node = self.enter_node(NodeKind::Table, || "--. Executing action set:".to_string());
        self.work.push(Work::EndActionSet(node));
        self.push_actions(list.into(), true);
    }

    /// Carries out `list` on a copy of the packet: with a copy in the datapath if what it
    /// does cannot be undone there and the packet is needed afterwards.
    pub(crate) fn clone_packet(&mut self, list: Arc<[Action]>, last: bool) {
        if last || crate::actions::are_reversible(&list) {
            let saved = self.save();
            self.work.push(Work::EndSaved(Box::new(saved)));
            self.work.push(Work::ActionSet);
            self.push_actions(list, last);
            return;
        }
        self.commit();
        let base = self.flow.base.clone();
        let saved = self.save();
        let outer = std::mem::take(&mut self.out);
        self.outer.push(outer);
        self.work.push(Work::EndClone(Box::new(CloneEnd {
            saved,
            base,
            conntracked: self.conntracked,
            was_mpls: self.was_mpls,
        })));
        self.work.push(Work::ActionSet);
        self.push_actions(list, true);
    }
}
