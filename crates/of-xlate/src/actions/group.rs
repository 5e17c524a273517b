//! The `group` action.

use std::sync::Arc;

use net_flow::FlowKey;
use of_switch::GroupEntry;
use of_wire::Action;
use of_wire::message::GroupType;

use crate::actions::{Next, action_set};
use crate::ctx::Ctx;
use crate::effect::Effect;
use crate::error::XlateError;
use crate::group::Choice;
use crate::trace::{NodeId, NodeKind};
use crate::work::Work;

/// What comes back at the end of a bucket.
pub(crate) struct BucketEnd {
    key: FlowKey,
    was_mpls: bool,
    in_bucket: bool,
    node: NodeId,
}

impl Ctx<'_> {
    pub(crate) fn use_group(&mut self, id: u32, last: bool) -> Next {
        if !self.has_resources() {
            return Next::Continue;
        }
        // Groups that use groups multiply as tables do.
        self.resubmits += 1;
        let Some(group) = self.group(id) else {
            self.report(NodeKind::Warning, || {
                format!("output to nonexistent group {id}")
            });
            return Next::Stop;
        };
        if matches!(group.group.kind, GroupType::All | GroupType::Indirect) {
            self.effects.push(Effect::Group(Arc::clone(&group), None));
            self.work.push(Work::Buckets {
                group,
                next: 0,
                last,
            });
            return Next::Continue;
        }
        match self.choose(&group) {
            Choice::Bucket(at) => {
                let bucket = group.group.buckets[at].id;
                self.report(NodeKind::Detail, || format!("using bucket {bucket}"));
                self.effects
                    .push(Effect::Group(Arc::clone(&group), Some(at)));
                self.enter_bucket(&group, at, last);
                Next::Continue
            }
            Choice::None => {
                self.report(NodeKind::Detail, || "no live bucket".to_owned());
                Next::Continue
            }
            Choice::Leave(departure) => {
                // When the packet is back, the group chooses.
                self.work.push(Work::Actions {
                    list: Arc::from([Action::Group(id)]),
                    next: 0,
                    last,
                });
                self.freeze(&departure);
                Next::Stop
            }
        }
    }

    /// Goes on with the bucket `next` of a group that uses all of them.
    pub(crate) fn next_bucket(&mut self, group: Arc<GroupEntry>, next: usize, last: bool) {
        let count = group.group.buckets.len();
        if next >= count || self.error.is_some() {
            return;
        }
        let is_last = last && next + 1 == count;
        self.work.push(Work::Buckets {
            group: Arc::clone(&group),
            next: next + 1,
            last,
        });
        self.enter_bucket(&group, next, is_last);
    }

    /// Carries out a bucket, an action set, on the packet as it is.
    fn enter_bucket(&mut self, group: &GroupEntry, at: usize, last: bool) {
        let bucket = &group.group.buckets[at];
        let id = bucket.id;
        let node = self.enter_node(NodeKind::Bucket, || format!("bucket {id}"));
        self.work.push(Work::EndBucket(Box::new(BucketEnd {
            key: self.flow.key().clone(),
            was_mpls: self.was_mpls,
            in_bucket: std::mem::replace(&mut self.at.in_bucket, true),
            node,
        })));
        self.at.depth += 1;
        self.push_actions(action_set::in_order(&bucket.actions).into(), last);
    }

    /// Puts back what a bucket may have changed: what follows acts on the packet from before.
    pub(crate) fn leave_bucket(&mut self, end: BucketEnd) {
        self.flow.restore(end.key);
        self.was_mpls = end.was_mpls;
        self.at.in_bucket = end.in_bucket;
        self.at.depth -= 1;
        self.exit = false;
        // What is wrong with the packet in one bucket is not in another.
        if self.error == Some(XlateError::TooManyMplsLabels) {
            self.error = None;
        }
        self.leave_node(end.node);
    }
}
