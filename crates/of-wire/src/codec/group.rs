//! Groups (OpenFlow 1.1; with ids of buckets and properties from 1.5 on, which Nicira's
//! messages for 1.0 have too).

use std::collections::HashSet;

use net_flow::PortNo;

use super::kind::Kind;
use super::{Decoded, Encoder, Head};
use crate::action::{decode_actions, encode_actions, pull_property, put_property};
use crate::error::ErrorCode;
use crate::message::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, BUCKET_MAX, Body, Bucket, GROUP_ALL, GROUP_ANY, Group,
    GroupCommand, GroupFeatures, GroupMod, GroupStats, GroupType, Part, Selection,
};
use crate::oxm::{pull_entry, put_entry};
use crate::version::Version;
use crate::wire::{OrCode, Put, Reader, text};

/// Properties of buckets (OpenFlow 1.5.1 section 7.3.4.3).
mod bucket_property {
    pub(super) const WEIGHT: u16 = 0;
    pub(super) const WATCH_PORT: u16 = 1;
    pub(super) const WATCH_GROUP: u16 = 2;
}

const EXPERIMENTER: u16 = 0xffff;
/// Netronome, and the number that Open vSwitch 2.4 took for it.
const NETRONOME: u32 = 0x154d;
const NETRONOME_COMPAT: u32 = 0x1540;
const SELECTION_METHOD: u32 = 1;
/// Bytes of a method's name, with the zero behind it.
const METHOD_LEN: usize = 16;

fn warn(what: &str) {
    base::log_limited!(Warn, "ofp_group", (1, 5), "{what}");
}

/// Whether messages of this version have ids of buckets.
const fn has_ids(version: Version) -> bool {
    matches!(version, Version::V10 | Version::V15)
}

pub(super) fn decode(head: Head<'_>) -> Decoded<'_> {
    let (version, mut r) = (head.version, head.body);
    let more = head.more;
    Ok(Ok(match head.kind {
        Kind::OfptGroupMod | Kind::NxtGroupMod => {
            let group_mod = pull_group_mod(r, version)?;
            check(&group_mod)?;
            Body::GroupMod(Box::new(group_mod))
        }
        Kind::OfpstGroupRequest | Kind::NxstGroupRequest => Body::GroupStatsRequest(r.u32()?),
        Kind::OfpstGroupReply | Kind::NxstGroupReply => {
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(pull_stats(&mut r, version)?);
            }
            Body::GroupStatsReply(Part { more, entries })
        }
        Kind::OfpstGroupDescRequest if r.is_empty() => Body::GroupDescRequest(GROUP_ALL),
        Kind::OfpstGroupDescRequest | Kind::NxstGroupDescRequest => {
            Body::GroupDescRequest(r.u32()?)
        }
        Kind::OfpstGroupDescReply | Kind::NxstGroupDescReply => {
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(pull_desc(&mut r, version)?);
            }
            Body::GroupDescReply(Part { more, entries })
        }
        Kind::OfpstGroupFeaturesRequest | Kind::NxstGroupFeaturesRequest => {
            Body::GroupFeaturesRequest
        }
        Kind::OfpstGroupFeaturesReply | Kind::NxstGroupFeaturesReply => {
            let mut features = GroupFeatures {
                types: r.u32()?,
                capabilities: r.u32()?,
                ..GroupFeatures::default()
            };
            for max in &mut features.max_groups {
                *max = r.u32()?;
            }
            for actions in &mut features.actions {
                *actions = r.u32()?;
            }
            Body::GroupFeaturesReply(Box::new(features))
        }
        _ => return Ok(Err(head)),
    }))
}

fn group_type(number: u8) -> Result<GroupType, ErrorCode> {
    let known = GroupType::EVERY.get(usize::from(number));
    known.copied().ok_or(ErrorCode::OfpgmfcBadType)
}

fn command(number: u16) -> Result<GroupCommand, ErrorCode> {
    Ok(match number {
        0 => GroupCommand::Add,
        1 => GroupCommand::Modify,
        2 => GroupCommand::Delete,
        3 => GroupCommand::InsertBucket,
        5 => GroupCommand::RemoveBucket,
        0x8000 => GroupCommand::AddOrModify,
        _ => return Err(ErrorCode::OfpgmfcBadCommand),
    })
}

fn pull_group_mod(mut r: Reader<'_>, version: Version) -> Result<GroupMod, ErrorCode> {
    let (number, kind) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let id = r.u32()?;
    let mut selection = Selection::default();
    let (command_bucket, buckets);
    if has_ids(version) {
        let len = usize::from(r.u16()?);
        r.skip(2)?;
        command_bucket = r.u32()?;
        check_place(number, command_bucket)?;
        let own = r.sub(len).or_code(ErrorCode::OfpbrcBadLen)?;
        buckets = pull_buckets15(own, version, kind)?;
        pull_selection(r, kind, number, &mut selection)?;
    } else {
        command_bucket = BUCKET_ALL;
        buckets = pull_buckets11(r, version)?;
        // OpenFlow 1.3.5 section 6.7.
        if version >= Version::V13 && number == 2 && !buckets.is_empty() {
            return Err(ErrorCode::OfpgmfcInvalidGroup);
        }
    }
    Ok(GroupMod {
        command_bucket,
        group: Group {
            id,
            kind: group_type(kind)?,
            selection,
            buckets,
        },
        command: command(number)?,
    })
}

/// Whether a command may name this bucket.
fn check_place(command: u16, bucket: u32) -> Result<(), ErrorCode> {
    let is_one = bucket <= BUCKET_MAX || bucket == BUCKET_FIRST || bucket == BUCKET_LAST;
    let fits = match command {
        3 => is_one,
        5 => is_one || bucket == BUCKET_ALL,
        _ => bucket == BUCKET_ALL,
    };
    if fits {
        return Ok(());
    }
    warn(&format!(
        "group command bucket id ({bucket}) is out of range"
    ));
    Err(ErrorCode::OfpgmfcBadBucket)
}

fn watch_port(number: u32) -> Result<PortNo, ErrorCode> {
    PortNo::from_of11(number).ok_or(ErrorCode::OfpgmfcBadWatch)
}

fn pull_buckets11(mut r: Reader<'_>, version: Version) -> Result<Vec<Bucket>, ErrorCode> {
    let mut buckets = Vec::new();
    while !r.is_empty() {
        let mut b = pull_bucket(&mut r, 16)?;
        let (weight, port, group) = (b.u16()?, b.u32()?, b.u32()?);
        b.skip(4)?;
        let actions = decode_actions(b.rest(), version)?;
        buckets.push(Bucket {
            id: buckets.len() as u32,
            weight,
            watch_port: watch_port(port)?,
            watch_group: group,
            actions,
        });
    }
    Ok(buckets)
}

/// One bucket without its length.
fn pull_bucket<'a>(r: &mut Reader<'a>, min: usize) -> Result<Reader<'a>, ErrorCode> {
    let bad = ErrorCode::OfpgmfcBadBucket;
    let left = r.len();
    if left < min {
        warn(&format!("buckets end with {left} leftover bytes"));
        return Err(bad);
    }
    let len = usize::from(Reader::new(r.rest()).u16().or_code(bad)?);
    if len < min {
        warn(&format!(
            "OpenFlow message bucket length {len} is not valid"
        ));
        return Err(bad);
    }
    if len > left {
        warn(&format!(
            "OpenFlow message bucket length {len} exceeds remaining buckets data size {left}"
        ));
        return Err(bad);
    }
    let mut bucket = r.sub(len).or_code(bad)?;
    bucket.skip(2).or_code(bad)?;
    Ok(bucket)
}

fn pull_buckets15(mut r: Reader<'_>, version: Version, kind: u8) -> Result<Vec<Bucket>, ErrorCode> {
    let bad = ErrorCode::OfpgmfcBadBucket;
    let mut buckets: Vec<Bucket> = Vec::new();
    while !r.is_empty() {
        let mut b = pull_bucket(&mut r, 8)?;
        let (actions_len, id) = (usize::from(b.u16()?), b.u32()?);
        let left = b.len();
        let actions = b.take(actions_len).map_err(|_| {
            warn(&format!(
                "OpenFlow message bucket actions length {actions_len} exceeds remaining bucket \
                 data size {left}"
            ));
            bad
        })?;
        let mut bucket = Bucket {
            id,
            weight: u16::from(kind == GroupType::Select as u8),
            watch_port: PortNo::NONE,
            watch_group: GROUP_ANY,
            actions: decode_actions(actions, version)?,
        };
        while !b.is_empty() {
            pull_bucket_property(&mut b, &mut bucket)?;
        }
        if id > BUCKET_MAX {
            warn(&format!("bucket id ({id}) is out of range"));
            return Err(bad);
        }
        if buckets.iter().any(|other| other.id == id) {
            warn("Duplicate bucket id");
            return Err(bad);
        }
        buckets.push(bucket);
    }
    Ok(buckets)
}

fn pull_bucket_property(r: &mut Reader<'_>, bucket: &mut Bucket) -> Result<(), ErrorCode> {
    let (kind, mut value) = pull_property(r)?;
    let bad = ErrorCode::OfpbpcBadLen;
    match kind {
        // Numbers of 16 bits are followed by padding that counts as their length.
        bucket_property::WEIGHT => bucket.weight = value.u16().or_code(bad)?,
        bucket_property::WATCH_PORT => bucket.watch_port = watch_port(value.u32().or_code(bad)?)?,
        bucket_property::WATCH_GROUP => bucket.watch_group = value.u32().or_code(bad)?,
        _ => {
            warn(&format!("unknown group bucket property type {kind}"));
            return Err(ErrorCode::OfpbpcBadType);
        }
    }
    Ok(())
}

/// Reads the properties of a group.
fn pull_selection(
    mut r: Reader<'_>,
    kind: u8,
    command: u16,
    selection: &mut Selection,
) -> Result<(), ErrorCode> {
    while !r.is_empty() {
        let (property, mut value) = pull_property(&mut r)?;
        let vendor = |mut v: Reader<'_>| Some((v.u32().ok()?, v.u32().ok()?));
        let known = match vendor(value) {
            Some((NETRONOME | NETRONOME_COMPAT, SELECTION_METHOD)) => property == EXPERIMENTER,
            _ => false,
        };
        if !known {
            warn(&format!("unknown group property type {property}"));
            return Err(if property == EXPERIMENTER {
                ErrorCode::OfpbpcBadExperimenter
            } else {
                ErrorCode::OfpbpcBadType
            });
        }
        value.skip(8)?;
        *selection = pull_method(value, kind, command)?;
    }
    Ok(())
}

fn pull_method(mut r: Reader<'_>, kind: u8, command: u16) -> Result<Selection, ErrorCode> {
    let bad = ErrorCode::OfpbpcBadValue;
    if group_type(kind)? != GroupType::Select {
        warn("ntr selection method property is only allowed for select groups");
        return Err(bad);
    }
    if !matches!(command, 0 | 1 | 0x8000) {
        warn(
            "ntr selection method property is only allowed for add and delete group modifications",
        );
        return Err(bad);
    }
    let short = ErrorCode::OfpbpcBadLen;
    r.skip(4).or_code(short)?;
    let name = r.take(METHOD_LEN).or_code(short)?;
    let param = r.u64().or_code(short)?;
    if !name.contains(&0) {
        warn("ntr selection method is not null terminated");
        return Err(bad);
    }
    let method = text(name);
    if method != "hash" && method != "dp_hash" {
        warn(&format!("ntr selection method '{method}' is not supported"));
        return Err(bad);
    }
    if !r.is_empty() && method != "hash" {
        warn(&format!(
            "ntr selection method {method} does not support fields"
        ));
        return Err(bad);
    }
    let mut fields: Vec<(net_flow::Field, u128)> = Vec::new();
    while !r.is_empty() {
        let entry = pull_entry(&mut r)?;
        let field = entry.field.ok_or(ErrorCode::OfpbmcBadField)?;
        if fields.iter().any(|(known, _)| *known == field) {
            return Err(ErrorCode::OfpbmcDupField);
        }
        if entry.value == 0 {
            warn("values of a selection method's fields must not be all-zeros");
            return Err(ErrorCode::OfpbmcBadMask);
        }
        fields.push((field, entry.value));
    }
    Ok(Selection {
        method,
        param,
        fields,
    })
}

/// Whether a request makes sense in itself.
fn check(request: &GroupMod) -> Result<(), ErrorCode> {
    let Group { kind, buckets, .. } = &request.group;
    let command = request.command;
    if *kind == GroupType::Indirect && command != GroupCommand::Delete && buckets.len() != 1 {
        return Err(ErrorCode::OfpgmfcInvalidGroup);
    }
    if command == GroupCommand::RemoveBucket && !buckets.is_empty() {
        return Err(ErrorCode::OfpgmfcBadBucket);
    }
    for bucket in buckets {
        let may_weigh = *kind == GroupType::Select || command == GroupCommand::InsertBucket;
        if bucket.weight != 0 && !may_weigh {
            return Err(ErrorCode::OfpgmfcInvalidGroup);
        }
        match kind {
            GroupType::All | GroupType::Indirect if bucket.watches() => {
                return Err(ErrorCode::OfpgmfcWatchUnsupported);
            }
            GroupType::FastFailover if !bucket.watches() => {
                return Err(ErrorCode::OfpgmfcInvalidGroup);
            }
            _ => {}
        }
    }
    Ok(())
}

fn pull_stats(r: &mut Reader<'_>, version: Version) -> Result<GroupStats, ErrorCode> {
    let bad = ErrorCode::OfpbrcBadLen;
    let len = usize::from(Reader::new(r.rest()).u16().or_code(bad)?);
    let mut r = r.sub(len.max(1)).or_code(bad)?;
    r.skip(4).or_code(bad)?;
    let (id, ref_count) = (r.u32().or_code(bad)?, r.u32().or_code(bad)?);
    r.skip(4).or_code(bad)?;
    let (packets, bytes) = (r.u64().or_code(bad)?, r.u64().or_code(bad)?);
    let duration = if matches!(version, Version::V11 | Version::V12) {
        None
    } else {
        Some((r.u32().or_code(bad)?, r.u32().or_code(bad)?))
    };
    let mut buckets = Vec::new();
    while !r.is_empty() {
        buckets.push((r.u64().or_code(bad)?, r.u64().or_code(bad)?));
    }
    Ok(GroupStats {
        id,
        ref_count,
        packets,
        bytes,
        duration,
        buckets,
    })
}

fn pull_desc(r: &mut Reader<'_>, version: Version) -> Result<Group, ErrorCode> {
    let bad = ErrorCode::OfpbrcBadLen;
    let len = usize::from(Reader::new(r.rest()).u16().or_code(bad)?);
    let mut r = r.sub(len.max(1)).or_code(bad)?;
    r.skip(2).or_code(bad)?;
    let kind = r.u8().or_code(bad)?;
    r.skip(1).or_code(bad)?;
    let id = r.u32().or_code(bad)?;
    let mut selection = Selection::default();
    let buckets = if has_ids(version) {
        let len = usize::from(r.u16().or_code(bad)?);
        r.skip(6).or_code(bad)?;
        let own = r.sub(len).or_code(bad)?;
        let buckets = pull_buckets15(own, version, kind)?;
        pull_selection(r, kind, 0, &mut selection)?;
        buckets
    } else {
        pull_buckets11(r, version)?
    };
    Ok(Group {
        id,
        kind: group_type(kind)?,
        selection,
        buckets,
    })
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    let version = e.version;
    let of10 = version == Version::V10;
    let kind = |nicira, standard| if of10 { nicira } else { standard };
    match body {
        Body::GroupMod(m) => {
            let kind = kind(Kind::NxtGroupMod, Kind::OfptGroupMod);
            e.message(kind, |out| put_group_mod(out, m, version));
        }
        Body::GroupStatsRequest(id) => {
            let kind = kind(Kind::NxstGroupRequest, Kind::OfpstGroupRequest);
            e.message(kind, |out| put_id(out, *id));
        }
        Body::GroupStatsReply(part) => {
            let kind = kind(Kind::NxstGroupReply, Kind::OfpstGroupReply);
            e.parts(kind, part.more, &part.entries, |out, stats| {
                put_stats(out, stats, version);
            });
        }
        Body::GroupDescRequest(id) => {
            let kind = kind(Kind::NxstGroupDescRequest, Kind::OfpstGroupDescRequest);
            e.message(kind, |out| {
                if has_ids(version) {
                    put_id(out, *id);
                }
            });
        }
        Body::GroupDescReply(part) => {
            let kind = kind(Kind::NxstGroupDescReply, Kind::OfpstGroupDescReply);
            e.parts(kind, part.more, &part.entries, |out, group| {
                put_desc(out, group, version);
            });
        }
        Body::GroupFeaturesRequest | Body::GroupFeaturesReply(_) => {
            put_features(e, body);
        }
        _ => return false,
    }
    true
}

fn put_features(e: &mut Encoder<'_>, body: &Body) {
    let nicira = e.version < Version::V12;
    let Body::GroupFeaturesReply(features) = body else {
        let kind = if nicira {
            Kind::NxstGroupFeaturesRequest
        } else {
            Kind::OfpstGroupFeaturesRequest
        };
        e.message(kind, |_| {});
        return;
    };
    let kind = if nicira {
        Kind::NxstGroupFeaturesReply
    } else {
        Kind::OfpstGroupFeaturesReply
    };
    e.message(kind, |out| {
        out.u32(features.types);
        out.u32(features.capabilities);
        for number in features.max_groups.iter().chain(&features.actions) {
            out.u32(*number);
        }
    });
}

fn put_id(out: &mut Vec<u8>, id: u32) {
    out.u32(id);
    out.zeros(4);
}

fn put_group_mod(out: &mut Vec<u8>, m: &GroupMod, version: Version) {
    let group = &m.group;
    out.u16(m.command as u16);
    out.u8(group.kind as u8);
    out.u8(0);
    out.u32(group.id);
    if !has_ids(version) {
        for bucket in &group.buckets {
            put_bucket11(out, bucket, version);
        }
        return;
    }
    let at = out.len();
    out.zeros(4);
    out.u32(m.command_bucket);
    put_buckets15(out, group, at, version);
    put_selection(out, &group.selection, version);
}

/// Appends the buckets, and writes their length to `at`.
fn put_buckets15(out: &mut Vec<u8>, group: &Group, at: usize, version: Version) {
    let start = out.len();
    let taken: HashSet<u32> = group.buckets.iter().map(|b| b.id).collect();
    let mut free = (0..=BUCKET_MAX).filter(|id| !taken.contains(id));
    for bucket in &group.buckets {
        let id = if bucket.id > BUCKET_MAX {
            // It gets one that no other has.
            free.next().unwrap_or(0)
        } else {
            bucket.id
        };
        put_bucket15(out, bucket, id, group.kind, version);
    }
    out.set_u16(at, (out.len() - start) as u16);
}

fn put_bucket11(out: &mut Vec<u8>, bucket: &Bucket, version: Version) {
    let start = out.len();
    out.u16(0);
    out.u16(bucket.weight);
    out.u32(bucket.watch_port.0);
    out.u32(bucket.watch_group);
    out.zeros(4);
    encode_actions(out, &bucket.actions, version);
    out.set_u16(start, (out.len() - start) as u16);
}

fn put_bucket15(out: &mut Vec<u8>, bucket: &Bucket, id: u32, kind: GroupType, version: Version) {
    let start = out.len();
    out.zeros(4);
    out.u32(id);
    let actions = out.len();
    encode_actions(out, &bucket.actions, version);
    out.set_u16(start + 2, (out.len() - actions) as u16);
    if kind == GroupType::Select || bucket.weight != 0 {
        let at = out.len();
        put_property(out, bucket_property::WEIGHT, &bucket.weight.to_be_bytes());
        // The padding counts.
        out.set_u16(at + 2, 8);
    }
    if bucket.watch_port != PortNo::NONE {
        let number = bucket.watch_port.0;
        put_property(out, bucket_property::WATCH_PORT, &number.to_be_bytes());
    }
    if bucket.watch_group != GROUP_ANY {
        let number = bucket.watch_group.to_be_bytes();
        put_property(out, bucket_property::WATCH_GROUP, &number);
    }
    out.set_u16(start, (out.len() - start) as u16);
}

fn put_selection(out: &mut Vec<u8>, selection: &Selection, version: Version) {
    if selection.method.is_empty() {
        return;
    }
    let mut value = Vec::new();
    value.u32(NETRONOME);
    value.u32(SELECTION_METHOD);
    value.zeros(4);
    value.text(&selection.method, METHOD_LEN);
    value.u64(selection.param);
    let mut fields = selection.fields.clone();
    fields.sort_by_key(|(field, _)| *field);
    for (field, mask) in &fields {
        put_entry(&mut value, *field, version as u8, *mask, field.full_mask());
    }
    put_property(out, EXPERIMENTER, &value);
}

fn put_stats(out: &mut Vec<u8>, s: &GroupStats, version: Version) {
    let start = out.len();
    out.zeros(4);
    out.u32(s.id);
    out.u32(s.ref_count);
    out.zeros(4);
    out.u64(s.packets);
    out.u64(s.bytes);
    if !matches!(version, Version::V11 | Version::V12) {
        let (sec, nsec) = s.duration.unwrap_or((u32::MAX, u32::MAX));
        out.u32(sec);
        out.u32(nsec);
    }
    for (packets, bytes) in &s.buckets {
        out.u64(*packets);
        out.u64(*bytes);
    }
    out.set_u16(start, (out.len() - start) as u16);
}

fn put_desc(out: &mut Vec<u8>, group: &Group, version: Version) {
    let start = out.len();
    out.u16(0);
    out.u8(group.kind as u8);
    out.u8(0);
    out.u32(group.id);
    if has_ids(version) {
        let at = out.len();
        out.zeros(8);
        put_buckets15(out, group, at, version);
        put_selection(out, &group.selection, version);
    } else {
        for bucket in &group.buckets {
            put_bucket11(out, bucket, version);
        }
    }
    out.set_u16(start, (out.len() - start) as u16);
}
