//! Groups.

use std::fmt::Write;

use net_flow::Names;
use net_flow::text::value::{self, put_port};

use super::c_hex;
use super::flow::put_duration;
use super::table::action_names;
use crate::action::put_actions;
use crate::message::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, Body, Bucket, GROUP_ALL, GROUP_ANY, Group, GroupCommand,
    GroupFeatures, GroupMod, GroupStats, GroupType, Selection,
};
use crate::version::Version;

/// Appends the text of a body that is one of this file's.
pub(super) fn put(out: &mut String, body: &Body, version: Version, names: &Names) -> bool {
    match body {
        Body::GroupMod(m) => put_group_mod(out, m, version, names),
        Body::GroupStatsRequest(id) | Body::GroupDescRequest(id) => {
            out.push_str(" group_id=");
            match *id {
                GROUP_ALL => out.push_str("ALL"),
                GROUP_ANY => out.push_str("ANY"),
                id => {
                    let _ = write!(out, "{id}");
                }
            }
        }
        Body::GroupStatsReply(part) => part.entries.iter().for_each(|s| put_stats(out, s)),
        Body::GroupDescReply(part) => {
            for group in &part.entries {
                out.push_str("\n ");
                put_group(out, group, version, names);
            }
        }
        Body::GroupFeaturesRequest => {}
        Body::GroupFeaturesReply(features) => put_features(out, features, version),
        _ => return false,
    }
    true
}

fn put_group_mod(out: &mut String, m: &GroupMod, version: Version, names: &Names) {
    let name = match m.command {
        GroupCommand::Add => "ADD",
        GroupCommand::Modify => "MOD",
        GroupCommand::AddOrModify => "ADD_OR_MOD",
        GroupCommand::Delete => "DEL",
        GroupCommand::InsertBucket => "INSERT_BUCKET",
        GroupCommand::RemoveBucket => "REMOVE_BUCKET",
    };
    let _ = write!(out, "\n {name} ");
    let of_buckets = matches!(
        m.command,
        GroupCommand::InsertBucket | GroupCommand::RemoveBucket
    );
    if of_buckets {
        put_bucket_id(out, "command_bucket_id:", m.command_bucket, version);
    }
    put_whole(out, &m.group, version, of_buckets, names);
}

/// Appends a group as `dump-groups` prints it.
pub fn put_group(out: &mut String, group: &Group, version: Version, names: &Names) {
    put_whole(out, group, version, false, names);
}

fn put_whole(out: &mut String, group: &Group, version: Version, untyped: bool, names: &Names) {
    let _ = write!(out, "group_id={}", group.id);
    if !untyped {
        let _ = write!(out, ",type={}", group.kind.name());
    }
    put_selection(out, &group.selection);
    out.push(',');
    for bucket in &group.buckets {
        put_bucket(out, bucket, group.kind, version, names);
        out.push(',');
    }
    if out.ends_with(',') {
        out.pop();
    }
}

fn put_selection(out: &mut String, selection: &Selection) {
    if selection.method.is_empty() {
        return;
    }
    let _ = write!(out, ",selection_method={}", selection.method);
    if selection.param != 0 {
        let _ = write!(out, ",selection_method_param={}", selection.param);
    }
    let mut fields = selection.fields.clone();
    fields.sort_by_key(|(field, _)| *field);
    let mut names = String::new();
    for (n, (field, mask)) in fields.iter().enumerate() {
        if n > 0 {
            names.push(',');
        }
        names.push_str(field.info().name);
        let full = field.full_mask();
        if *mask != full {
            names.push('=');
            value::put(&mut names, *field, *mask, full, &Names::default());
        }
    }
    let _ = match fields.len() {
        0 => Ok(()),
        1 => write!(out, ",fields={names}"),
        _ => write!(out, ",fields({names})"),
    };
}

fn put_bucket_id(out: &mut String, label: &str, id: u32, version: Version) {
    if !matches!(version, Version::V10 | Version::V15) {
        return;
    }
    out.push_str(label);
    let _ = match id {
        BUCKET_FIRST => write!(out, "first,"),
        BUCKET_LAST => write!(out, "last,"),
        BUCKET_ALL => write!(out, "all,"),
        id => write!(out, "{id},"),
    };
}

fn put_bucket(out: &mut String, b: &Bucket, kind: GroupType, version: Version, names: &Names) {
    out.push_str("bucket=");
    put_bucket_id(out, "bucket_id:", b.id, version);
    if b.weight != u16::from(kind == GroupType::Select) {
        let _ = write!(out, "weight:{},", b.weight);
    }
    if b.watch_port != net_flow::PortNo::NONE {
        out.push_str("watch_port:");
        put_port(out, b.watch_port, names);
        out.push(',');
    }
    if b.watch_group != GROUP_ANY {
        let _ = write!(out, "watch_group:{},", b.watch_group);
    }
    out.push_str("actions=");
    put_actions(out, &b.actions, names);
}

fn put_stats(out: &mut String, s: &GroupStats) {
    let _ = write!(out, "\n group_id={},", s.id);
    if let Some((sec, nsec)) = s.duration.filter(|(sec, _)| *sec != u32::MAX) {
        out.push_str("duration=");
        put_duration(out, sec, nsec);
        out.push(',');
    }
    let _ = write!(
        out,
        "ref_count={},packet_count={},byte_count={}",
        s.ref_count, s.packets, s.bytes
    );
    for (n, (packets, bytes)) in s.buckets.iter().enumerate() {
        if *packets != u64::MAX {
            let _ = write!(out, ",bucket{n}:packet_count={packets},byte_count={bytes}");
        }
    }
}

fn put_features(out: &mut String, f: &GroupFeatures, version: Version) {
    let _ = write!(
        out,
        "\n Group table:\n    Types:  0x{:x}\n    Capabilities:  0x{:x}\n",
        f.types, f.capabilities
    );
    for kind in GroupType::EVERY {
        let n = kind as usize;
        if f.types >> n & 1 == 0 {
            continue;
        }
        let name = match kind {
            GroupType::FastFailover => "fast failover",
            kind => kind.name(),
        };
        let _ = write!(
            out,
            "    {name} group:\n       max_groups={}\n       actions: ",
            c_hex(f.max_groups[n])
        );
        let names: Vec<&str> = action_names(f.actions[n], version).collect();
        out.push_str(if names.is_empty() { "(none)" } else { "" });
        out.push_str(&names.join(" "));
        out.push('\n');
    }
}
