//! The groups of a bridge, and the rules that use them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::Instant;
use of_wire::message::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, BUCKET_MAX, Bucket, FlowRemovedReason, GROUP_ALL,
    GROUP_MAX, Group, GroupCommand, GroupMod, GroupType, Part,
};
use of_wire::{Body, Dialect, ErrorCode, Message, Version};

use crate::group::GroupEntry;
use crate::rule::{Rule, RuleId};
use crate::tables::{Change, Changes, Tables, for_each_group};

/// Pieces that a change of a group does not copy all of.
const PIECES: usize = 64;

/// Groups by number.
type Piece = BTreeMap<u32, Arc<GroupEntry>>;

/// One version of the groups of a bridge.  A copy shares what it does not change.
#[derive(Clone, Debug)]
pub struct GroupsView {
    pieces: Arc<[Arc<Piece>; PIECES]>,
}

impl Default for GroupsView {
    fn default() -> Self {
        let pieces = std::array::from_fn(|_| Arc::default());
        Self {
            pieces: Arc::new(pieces),
        }
    }
}

const fn piece_of(id: u32) -> usize {
    id as usize % PIECES
}

impl GroupsView {
    /// The group of that number.
    pub fn get(&self, id: u32) -> Option<&Arc<GroupEntry>> {
        self.pieces[piece_of(id)].get(&id)
    }

    /// All groups, in the order of their numbers.
    pub fn all(&self) -> Vec<&Arc<GroupEntry>> {
        let mut all: Vec<_> = self.pieces.iter().flat_map(|p| p.values()).collect();
        all.sort_by_key(|entry| entry.group.id);
        all
    }

    /// The groups that a request is about: one, or all.
    pub(crate) fn asked(&self, id: u32) -> Vec<&Arc<GroupEntry>> {
        match id {
            GROUP_ALL => self.all(),
            id => self.get(id).into_iter().collect(),
        }
    }

    pub(crate) fn set(&mut self, id: u32, entry: Option<Arc<GroupEntry>>) {
        let piece = &mut Arc::make_mut(&mut self.pieces)[piece_of(id)];
        let piece = Arc::make_mut(piece);
        match entry {
            Some(entry) => {
                piece.insert(id, entry);
            }
            None => {
                piece.remove(&id);
            }
        }
    }
}

/// The owner's side.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) view: GroupsView,
    users: HashMap<u32, BTreeMap<RuleId, Arc<Rule>>>,
}

impl Groups {
    /// A rule is there that may use groups.
    pub(crate) fn add_user(&mut self, rule: &Arc<Rule>) {
        for_each_group(&rule.actions, &mut |id| {
            let users = self.users.entry(id).or_default();
            users.insert(rule.id, Arc::clone(rule));
        });
    }

    /// It is there no longer.
    pub(crate) fn forget_user(&mut self, rule: &Rule) {
        for_each_group(&rule.actions, &mut |id| {
            if let Some(users) = self.users.get_mut(&id) {
                users.remove(&rule.id);
                if users.is_empty() {
                    self.users.remove(&id);
                }
            }
        });
    }
}

impl Tables {
    /// The groups as they are now.
    pub const fn groups(&self) -> &GroupsView {
        &self.groups.view
    }

    /// How many rules use a group.
    pub fn group_users(&self, id: u32) -> usize {
        self.groups.users.get(&id).map_or(0, BTreeMap::len)
    }

    /// Carries out a group-mod, entirely or not at all.  Rules that use a group that is deleted
    /// go with it.
    ///
    /// # Errors
    /// What to tell the controller.
    pub fn apply_group(&mut self, request: GroupMod, now: Instant) -> Result<Changes, ErrorCode> {
        let mut changes = Changes::new();
        let id = request.group.id;
        let old = self.groups.view.get(id).cloned();
        match (request.command, old) {
            (GroupCommand::Add, Some(_)) => return Err(ErrorCode::OfpgmfcGroupExists),
            (GroupCommand::Add | GroupCommand::AddOrModify, None) => {
                self.add_group(request.group, now, &mut changes)?;
            }
            (GroupCommand::Delete, _) if id == GROUP_ALL => {
                let all = self.groups.view.all().into_iter().cloned();
                for entry in all.collect::<Vec<_>>() {
                    self.delete_group(&entry, &mut changes);
                }
            }
            (GroupCommand::Delete, Some(old)) => self.delete_group(&old, &mut changes),
            (GroupCommand::Delete, None) => {}
            (_, None) => return Err(ErrorCode::OfpgmfcUnknownGroup),
            (_, Some(old)) => {
                let group = changed(&old.group, request)?;
                check_size(&group)?;
                if group.kind == GroupType::Select {
                    log::debug!(target: "ofproto_dpif", "Modifying select group {id}");
                }
                let new = Arc::new(GroupEntry::new(group, old.created));
                self.set_group(id, Some(old), Some(new), &mut changes);
            }
        }
        Ok(changes)
    }

    fn add_group(
        &mut self,
        group: Group,
        now: Instant,
        changes: &mut Changes,
    ) -> Result<(), ErrorCode> {
        let id = group.id;
        if id > GROUP_MAX {
            return Err(ErrorCode::OfpgmfcInvalidGroup);
        }
        check_size(&group)?;
        if group.kind == GroupType::Select {
            log::debug!(target: "ofproto_dpif", "Constructing select group {id}");
        }
        let new = Arc::new(GroupEntry::new(group, now));
        self.set_group(id, None, Some(new), changes);
        Ok(())
    }

    fn delete_group(&mut self, old: &Arc<GroupEntry>, changes: &mut Changes) {
        let id = old.group.id;
        let users = self.groups.users.get(&id);
        let users: Vec<Arc<Rule>> = users.map_or_else(Vec::new, |u| u.values().cloned().collect());
        for rule in users {
            self.remove_rule(&rule, FlowRemovedReason::GroupDelete, changes);
        }
        self.set_group(id, Some(Arc::clone(old)), None, changes);
    }

    fn set_group(
        &mut self,
        id: u32,
        old: Option<Arc<GroupEntry>>,
        new: Option<Arc<GroupEntry>>,
        changes: &mut Changes,
    ) {
        self.groups.view.set(id, new.clone());
        self.is_changed = true;
        changes.push(Change::Group(id, old, new));
    }
}

/// Whether the description of a group fits a message in every version: buckets come bit by bit, and
/// take more room in one version than in another.
fn check_size(group: &Group) -> Result<(), ErrorCode> {
    let described = |version: Version, entries: Vec<Group>| {
        let part = Part {
            more: false,
            entries,
        };
        let message = Message::new(version, 0, Body::GroupDescReply(part));
        message.encode(Dialect::of(version)).len()
    };
    // What does not fit is left out.
    let fits =
        |version: Version| described(version, vec![group.clone()]) > described(version, Vec::new());
    if Version::ALL.into_iter().all(fits) {
        Ok(())
    } else {
        Err(ErrorCode::OfpgmfcOutOfBuckets)
    }
}

/// The group that `old` becomes.
fn changed(old: &Group, request: GroupMod) -> Result<Group, ErrorCode> {
    let place = request.command_bucket;
    let buckets = match request.command {
        GroupCommand::InsertBucket => inserted(&old.buckets, request.group.buckets, place)?,
        GroupCommand::RemoveBucket => remaining(&old.buckets, place)?,
        _ => return Ok(request.group),
    };
    Ok(Group {
        buckets,
        ..old.clone()
    })
}

/// The buckets with `new` ones behind the one that `place` names.
fn inserted(old: &[Bucket], new: Vec<Bucket>, place: u32) -> Result<Vec<Bucket>, ErrorCode> {
    let at = match place {
        BUCKET_FIRST => 0,
        BUCKET_LAST => old.len(),
        id if id <= BUCKET_MAX => position(old, id)? + 1,
        _ => return Err(ErrorCode::OfpgmfcBadBucket),
    };
    if new.iter().any(|b| old.iter().any(|o| o.id == b.id)) {
        log::info!(target: "ofproto", "Duplicate bucket id");
        return Err(ErrorCode::OfpgmfcBucketExists);
    }
    let mut all = old.to_vec();
    all.splice(at..at, new);
    Ok(all)
}

/// The buckets without what `place` names.
fn remaining(old: &[Bucket], place: u32) -> Result<Vec<Bucket>, ErrorCode> {
    let mut left = old.to_vec();
    match place {
        BUCKET_ALL => left.clear(),
        BUCKET_FIRST if !left.is_empty() => {
            left.remove(0);
        }
        BUCKET_LAST => {
            left.pop();
        }
        BUCKET_FIRST => {}
        id => {
            left.remove(position(old, id)?);
        }
    }
    Ok(left)
}

fn position(buckets: &[Bucket], id: u32) -> Result<usize, ErrorCode> {
    let at = buckets.iter().position(|b| b.id == id);
    at.ok_or(ErrorCode::OfpgmfcUnknownBucket)
}

#[cfg(test)]
mod tests {
    use net_flow::PortNo;
    use of_wire::message::{GROUP_ANY, Selection};

    use super::*;

    fn insert(first: u32, count: u32) -> GroupMod {
        let bucket = |id| Bucket {
            id,
            weight: 1,
            watch_port: PortNo::NONE,
            watch_group: GROUP_ANY,
            actions: Vec::new(),
        };
        GroupMod {
            command: GroupCommand::InsertBucket,
            command_bucket: BUCKET_LAST,
            group: Group {
                id: 1,
                kind: GroupType::All,
                selection: Selection::default(),
                buckets: (first..first + count).map(bucket).collect(),
            },
        }
    }

    /// A group grows until its description would not fit a message any more, in any version.
    #[test]
    fn a_group_can_always_be_described() {
        const STEP: u32 = 250;
        let mut tables = Tables::new();
        let add = GroupMod {
            command: GroupCommand::Add,
            ..insert(0, STEP)
        };
        assert!(tables.apply_group(add, Instant::ZERO).is_ok());
        let mut count = STEP;
        let refused = loop {
            match tables.apply_group(insert(count, STEP), Instant::ZERO) {
                Ok(_) => count += STEP,
                Err(error) => break error,
            }
            assert!(count < 20_000);
        };
        assert_eq!(refused, ErrorCode::OfpgmfcOutOfBuckets);
        let group = &tables.groups().get(1).unwrap().group;
        assert_eq!(group.buckets.len() as u32, count);
        for version in Version::ALL {
            let part = Part {
                more: false,
                entries: vec![group.clone()],
            };
            let reply = Message::new(version, 1, Body::GroupDescReply(part));
            let dialect = Dialect::of(version);
            let bytes = reply.encode(dialect);
            let read = Message::decode(&bytes, dialect).unwrap();
            let Body::GroupDescReply(part) = read.body else {
                panic!("{read:?}");
            };
            assert_eq!(part.entries[0].buckets.len() as u32, count);
        }
    }
}
