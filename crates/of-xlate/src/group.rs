//! Which bucket of a group a packet goes to.

use std::sync::Arc;

use net_flow::{PortNo, slot};
use of_switch::{GroupEntry, HashTable, Selector};
use of_wire::action::HashFields;
use of_wire::message::{Bucket, GROUP_ANY, GroupType};

use crate::ctx::{Ctx, MAX_RESUBMITS};
use crate::freeze::Departure;
use crate::hash::WordHash;
use crate::trace::NodeKind;

/// Groups may watch groups so deep.
const MAX_WATCHED: usize = 128;

/// What a group chooses.
pub(crate) enum Choice {
    /// The bucket at this place.
    Bucket(usize),
    /// None is live.
    None,
    /// First the datapath must say more about the packet.
    Leave(Departure),
}

impl Ctx<'_> {
    /// A group of the current bridge, on which the answer now depends.
    pub(crate) fn group(&mut self, id: u32) -> Option<Arc<GroupEntry>> {
        self.dependencies.note_group(self.bridge.id, id);
        self.bridge.tables.groups().get(id).cloned()
    }

    /// The bucket of a group that uses one.
    pub(crate) fn choose(&mut self, group: &GroupEntry) -> Choice {
        if group.group.kind == GroupType::FastFailover {
            return match self.first_live(group, 0) {
                Some(at) => Choice::Bucket(at),
                None => Choice::None,
            };
        }
        if self.was_mpls {
            // Fields that may be hashed are not known yet.
            return Choice::Leave(Departure::Recirculate);
        }
        let chosen = match &group.selector {
            Selector::Default => {
                let basis = self.flow.hash(HashFields::SymmetricL4, 0);
                self.best_live(group, basis)
            }
            Selector::Fields => {
                let selection = &group.group.selection;
                let basis = self.flow.hash_fields(&selection.fields, selection.param);
                self.best_live(group, basis)
            }
            Selector::Datapath(table) => return self.choose_by_hash(group, table),
        };
        chosen.map_or(Choice::None, Choice::Bucket)
    }

    fn choose_by_hash(&mut self, group: &GroupEntry, table: &HashTable) -> Choice {
        // What a datapath computes is never zero.
        let hash = self.flow.key().get(slot::DP_HASH);
        if hash == 0 {
            let known = table.algorithm <= self.view.features.max_hash_algorithm;
            self.report(NodeKind::Detail, || {
                "selection method in use: dp_hash, recirculating".to_owned()
            });
            return Choice::Leave(Departure::Hash {
                algorithm: if known { table.algorithm } else { 0 },
                basis: table.basis,
            });
        }
        let values = &table.buckets;
        let bits = values.len() as u128 - 1;
        let hash = self.flow.read_bits(slot::DP_HASH, bits) as usize;
        // The values of a bucket lie scattered, so that those of one that is not live go to
        // the others by their shares.
        for step in 0..values.len() {
            let at = values[(hash + step) % values.len()] as usize;
            let bucket = &group.group.buckets[at];
            if self.is_live(group.group.kind, bucket, 0) {
                return Choice::Bucket(at);
            }
        }
        Choice::None
    }

    /// The live bucket with the highest score.
    fn best_live(&mut self, group: &GroupEntry, basis: u32) -> Option<usize> {
        let mut best = None;
        for (at, bucket) in group.group.buckets.iter().enumerate() {
            if !self.is_live(group.group.kind, bucket, 0) {
                self.report_not_live(bucket);
                continue;
            }
            let mut hash = WordHash::new(u64::from(basis));
            hash.add(u64::from(bucket.id));
            let score = (hash.finish() & 0xffff) * u32::from(bucket.weight);
            if best.is_none_or(|(_, known)| score >= known) {
                best = Some((at, score));
            }
            let id = bucket.id;
            self.report(NodeKind::Detail, || format!("bucket {id}: score {score}"));
        }
        best.map(|(at, _)| at)
    }

    /// The first live bucket.
    fn first_live(&mut self, group: &GroupEntry, depth: usize) -> Option<usize> {
        for (at, bucket) in group.group.buckets.iter().enumerate() {
            if self.is_live(group.group.kind, bucket, depth) {
                return Some(at);
            }
            self.report_not_live(bucket);
        }
        None
    }

    fn is_live(&mut self, kind: GroupType, bucket: &Bucket, depth: usize) -> bool {
        if depth >= MAX_WATCHED {
            self.warn(format!("bucket chaining exceeded {MAX_WATCHED} links"));
            return false;
        }
        if self.resubmits >= MAX_RESUBMITS {
            // The next use of a table or group says so.
            return false;
        }
        if kind == GroupType::Select && bucket.weight == 0 {
            return false;
        }
        !bucket.watches()
            || self.is_port_live(bucket.watch_port)
            || bucket.watch_group != GROUP_ANY && self.is_group_live(bucket.watch_group, depth + 1)
    }

    pub(crate) fn is_port_live(&self, port: PortNo) -> bool {
        match port {
            PortNo::NONE => false,
            PortNo::CONTROLLER => self.bridge.has_live_controller,
            port => self.bridge.ports.get(&port).is_some_and(|p| p.is_live),
        }
    }

    fn is_group_live(&mut self, id: u32, depth: usize) -> bool {
        // Groups that watch groups multiply as those do that use them.
        self.resubmits += 1;
        let group = self.group(id);
        group.is_some_and(|group| self.first_live(&group, depth).is_some())
    }

    fn report_not_live(&mut self, bucket: &Bucket) {
        self.report(NodeKind::Detail, || {
            let mut why = Vec::new();
            if bucket.watch_port != PortNo::NONE {
                why.push(format!("port {}", bucket.watch_port));
            }
            if bucket.watch_group != GROUP_ANY {
                // Called a port here, too, from of old.
                why.push(format!("port {}", bucket.watch_group));
            }
            format!(
                "bucket {}: not live due to {}",
                bucket.id,
                why.join(" and ")
            )
        });
    }
}
