//! Groups: changes, and queries about them.

use base::Instant;
use of_wire::message::{
    AsyncKind, Group, GroupCommand, GroupFeatures, GroupMod, GroupStats, GroupType, Part,
};
use of_wire::{Body, ErrorCode, Message, Version};

use crate::bridge::dispatch::Asked;
use crate::bridge::flows::update_counters_for;
use crate::bridge::queries::ACTIONS_10;
use crate::bridge::{Bridge, Facts};
use crate::conn::ConnId;
use crate::group::GroupEntry;
use crate::tables::{Change, Changes};

/// Chains of groups, liveness and weights for `select`.
const CAPABILITIES: u32 = 0x7;
/// Reason of a forwarded group-mod.
const REASON_GROUP_MOD: u8 = 0;
/// The actions that buckets may have, as a version numbers them: all that it has, but for those that copy
/// TTLs.
const fn actions(version: Version) -> u32 {
    match version {
        Version::V10 => ACTIONS_10,
        Version::V11 => 0x01ff_e7ff,
        // Fields are set by one action.
        Version::V12 | Version::V13 | Version::V14 => 0x03ff_8001,
        // And copied.
        Version::V15 => 0x13ff_8001,
    }
}

impl Bridge {
    pub(super) fn handle_group_mod(
        &mut self,
        asked: &Asked<'_>,
        request: GroupMod,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let changes = self.apply_group(&request, asked.now, facts)?;
        update_counters_for(&changes, facts);
        self.forward_group_mod(asked.conn, asked.xid, &request, &changes);
        self.note_changes(changes, asked.now);
        Ok(())
    }

    /// Changes groups, if what is asked makes sense here.
    pub(super) fn apply_group(
        &mut self,
        request: &GroupMod,
        now: Instant,
        facts: &dyn Facts,
    ) -> Result<Changes, ErrorCode> {
        for bucket in &request.group.buckets {
            facts.check_actions(&bucket.actions)?;
        }
        self.tables.apply_group(request.clone(), now)
    }

    /// Tells controllers that want to know what another one changed.
    pub(super) fn forward_group_mod(
        &mut self,
        source: ConnId,
        xid: u32,
        request: &GroupMod,
        changes: &Changes,
    ) {
        let outcome = changes.iter().find_map(|change| match change {
            Change::Group(_, old, new) => Some((old.is_some(), new.as_ref())),
            _ => None,
        });
        let (existed, new) = outcome.unwrap_or_default();
        for (id, conn) in &mut self.conns {
            let Some(version) = conn.version() else {
                continue;
            };
            if *id == source || !conn.wants(AsyncKind::RequestForward, REASON_GROUP_MOD) {
                continue;
            }
            let told = request_for(request, version, existed, new.map(|e| &e.group));
            let inner = Message::new(version, xid, Body::GroupMod(Box::new(told)));
            let outer = Message::new(version, 0, Body::RequestForward(Box::new(inner)));
            conn.send_unasked(outer.encode(conn.dialect));
        }
    }

    pub(super) fn handle_group_stats(
        &mut self,
        asked: &Asked<'_>,
        id: u32,
    ) -> Result<(), ErrorCode> {
        let entries = self.tables.groups().asked(id);
        let stats = entries.into_iter().map(|e| self.group_stats(e, asked.now));
        let stats = stats.collect();
        // The codec cuts it into messages.
        let part = Part {
            more: false,
            entries: stats,
        };
        self.reply(asked.conn, &asked.answer(Body::GroupStatsReply(part)));
        Ok(())
    }

    fn group_stats(&self, entry: &GroupEntry, now: Instant) -> GroupStats {
        let id = entry.group.id;
        let age = now.since(entry.created);
        let (packets, bytes) = entry.counts();
        let seconds = u32::try_from(age.as_secs()).unwrap_or(u32::MAX);
        GroupStats {
            id,
            ref_count: u32::try_from(self.tables.group_users(id)).unwrap_or(u32::MAX),
            packets,
            bytes,
            duration: Some((seconds, age.subsec_nanos())),
            buckets: entry.bucket_counts(),
        }
    }

    pub(super) fn handle_group_desc(
        &mut self,
        asked: &Asked<'_>,
        id: u32,
    ) -> Result<(), ErrorCode> {
        let entries = self.tables.groups().asked(id);
        let part = Part {
            more: false,
            entries: entries.into_iter().map(|e| e.group.clone()).collect(),
        };
        self.reply(asked.conn, &asked.answer(Body::GroupDescReply(part)));
        Ok(())
    }

    pub(super) fn handle_group_features(&mut self, asked: &Asked<'_>) -> Result<(), ErrorCode> {
        let types = GroupType::EVERY
            .iter()
            .fold(0, |set, t| set | 1 << *t as u32);
        let features = GroupFeatures {
            types,
            capabilities: CAPABILITIES,
            max_groups: [of_wire::message::GROUP_MAX; 4],
            actions: [actions(asked.version); 4],
        };
        let body = Body::GroupFeaturesReply(Box::new(features));
        self.reply(asked.conn, &asked.answer(body));
        Ok(())
    }
}

/// The request as another version of OpenFlow can say it.
fn request_for(
    request: &GroupMod,
    version: Version,
    existed: bool,
    new: Option<&Group>,
) -> GroupMod {
    let mut told = request.clone();
    let knows_buckets = matches!(version, Version::V10 | Version::V15);
    match request.command {
        GroupCommand::AddOrModify if existed => told.command = GroupCommand::Modify,
        GroupCommand::AddOrModify => told.command = GroupCommand::Add,
        GroupCommand::InsertBucket | GroupCommand::RemoveBucket if !knows_buckets => {
            told.command = GroupCommand::Modify;
            if let Some(new) = new {
                told.group = new.clone();
            }
        }
        _ => {}
    }
    told
}
