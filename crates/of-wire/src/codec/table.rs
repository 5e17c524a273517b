//! Tables: counters, features, settings.

use net_flow::Field;

use super::kind::Kind;
use super::{Decoded, Encoder, Head};
use crate::error::ErrorCode;
use crate::message::{Body, Part, TableCaps, TableFeatures, TableStats};
use crate::oxm::{pull_header, put_field_header};
use crate::version::Version;
use crate::wire::{OrCode, Put, Reader, text};

/// Properties of table features (OpenFlow 1.3.1, section A.3.5.5.2); those of the table-miss
/// flow are one more.
mod property {
    pub(super) const INSTRUCTIONS: u16 = 0;
    pub(super) const NEXT_TABLES: u16 = 2;
    pub(super) const WRITE_ACTIONS: u16 = 4;
    pub(super) const APPLY_ACTIONS: u16 = 6;
    pub(super) const MATCH: u16 = 8;
    pub(super) const WILDCARDS: u16 = 10;
    pub(super) const WRITE_SETFIELD: u16 = 12;
    pub(super) const APPLY_SETFIELD: u16 = 14;
    /// Those that every table must have.
    pub(super) const REQUIRED: u32 = 0b0101_0101_0101_0101;
}

/// The fields behind the wildcard bits of OpenFlow 1.0.
const OF10_FIELDS: [(u32, Field); 12] = [
    (1, Field::InPort),
    (1 << 1, Field::VlanVid),
    (1 << 2, Field::EthSrc),
    (1 << 3, Field::EthDst),
    (1 << 4, Field::EthType),
    (1 << 5, Field::IpProto),
    (1 << 6, Field::TcpSrc),
    (1 << 7, Field::TcpDst),
    (0x3f << 8, Field::Ipv4Src),
    (0x3f << 14, Field::Ipv4Dst),
    (1 << 20, Field::VlanPcp),
    (1 << 21, Field::IpTos),
];

pub(super) fn decode(head: Head<'_>) -> Decoded<'_> {
    let (version, mut r) = (head.version, head.body);
    Ok(Ok(match head.kind {
        Kind::OfpstTableRequest => Body::TableStatsRequest,
        Kind::OfpstTableReply => {
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(match version {
                    Version::V10 => stats10(&mut r)?,
                    Version::V11 => stats11(&mut r)?,
                    Version::V12 => stats12(&mut r)?,
                    _ => stats13(&mut r)?,
                });
            }
            let more = head.more;
            Body::TableStatsReply(Part { more, entries })
        }
        Kind::OfpstTableFeaturesRequest | Kind::OfpstTableFeaturesReply => {
            let reply = head.kind == Kind::OfpstTableFeaturesReply;
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(pull_features(&mut r, reply)?);
            }
            let more = head.more;
            if reply {
                Body::TableFeaturesReply(Part { more, entries })
            } else {
                Body::TableFeaturesRequest(Part { more, entries })
            }
        }
        _ => return Ok(Err(head)),
    }))
}

type Stats = (TableFeatures, TableStats);

fn counts(r: &mut Reader<'_>, table: u8) -> Result<TableStats, ErrorCode> {
    Ok(TableStats {
        table,
        active_count: r.u32()?,
        lookup_count: r.u64()?,
        matched_count: r.u64()?,
    })
}

fn stats10(r: &mut Reader<'_>) -> Result<Stats, ErrorCode> {
    let table = r.u8()?;
    r.skip(3)?;
    let name = text(r.take(32)?);
    let (wildcards, max_entries) = (r.u32()?, r.u32()?);
    let fields = OF10_FIELDS.iter().filter(|(bit, _)| wildcards & bit != 0);
    let fields: Vec<Field> = fields.map(|(_, field)| *field).collect();
    let features = TableFeatures {
        table,
        name,
        max_entries,
        match_fields: fields.clone(),
        wildcard_fields: fields,
        ..TableFeatures::default()
    };
    Ok((features, counts(r, table)?))
}

fn stats11(r: &mut Reader<'_>) -> Result<Stats, ErrorCode> {
    let table = r.u8()?;
    r.skip(7)?;
    let name = text(r.take(32)?);
    r.skip(8)?;
    let mut features = TableFeatures {
        table,
        name,
        ..TableFeatures::default()
    };
    features.nonmiss.instructions = r.u32()?;
    features.nonmiss.write_actions = r.u32()?;
    features.nonmiss.apply_actions = r.u32()?;
    features.config = r.u32()?;
    features.max_entries = r.u32()?;
    features.miss = features.nonmiss.clone();
    Ok((features, counts(r, table)?))
}

/// The fields of a bitmap of OpenFlow 1.2: bit `n` is field `n` of the basic class.
fn oxm_bitmap(bits: u64) -> Vec<Field> {
    let set = (0..64u8).filter(|n| bits >> n & 1 != 0);
    set.filter_map(|n| Field::by_oxm(0x8000, 0, n)).collect()
}

fn to_oxm_bitmap(fields: &[Field]) -> u64 {
    let ids = fields.iter().flat_map(|f| f.info().oxm);
    let basic = ids.filter(|id| id.class == 0x8000 && id.version <= 3 && id.field < 64);
    basic.fold(0, |bits, id| bits | 1 << id.field)
}

fn stats12(r: &mut Reader<'_>) -> Result<Stats, ErrorCode> {
    let table = r.u8()?;
    r.skip(7)?;
    let name = text(r.take(32)?);
    let mut features = TableFeatures {
        table,
        name,
        match_fields: oxm_bitmap(r.u64()?),
        wildcard_fields: oxm_bitmap(r.u64()?),
        ..TableFeatures::default()
    };
    features.nonmiss.write_actions = r.u32()?;
    features.nonmiss.apply_actions = r.u32()?;
    features.nonmiss.write_set_fields = oxm_bitmap(r.u64()?);
    features.nonmiss.apply_set_fields = oxm_bitmap(r.u64()?);
    features.metadata_match = r.u64()?;
    features.metadata_write = r.u64()?;
    features.nonmiss.instructions = r.u32()?;
    features.config = r.u32()?;
    features.max_entries = r.u32()?;
    features.miss = features.nonmiss.clone();
    Ok((features, counts(r, table)?))
}

fn stats13(r: &mut Reader<'_>) -> Result<Stats, ErrorCode> {
    let table = r.u8()?;
    r.skip(3)?;
    let features = TableFeatures {
        table,
        ..TableFeatures::default()
    };
    Ok((features, counts(r, table)?))
}

fn put_stats(out: &mut Vec<u8>, version: Version, (f, s): &Stats) {
    out.u8(s.table);
    let wide = version == Version::V11 || version == Version::V12;
    out.zeros(if wide { 7 } else { 3 });
    match version {
        Version::V10 => {
            out.text(&f.name, 32);
            let open = |field: &Field| {
                f.wildcard_fields.contains(field) || !f.match_fields.contains(field)
            };
            let bits = OF10_FIELDS.iter().filter(|(_, field)| open(field));
            out.u32(bits.fold(0, |bits, (bit, _)| bits | bit));
            out.u32(f.max_entries);
        }
        Version::V11 => {
            out.text(&f.name, 32);
            // Wildcards and match: every field of OpenFlow 1.1.
            out.u32(0x3ff);
            out.u32(0x3ff);
            out.u32(f.nonmiss.instructions & 0x3e);
            out.u32(f.nonmiss.write_actions);
            out.u32(f.nonmiss.apply_actions);
            out.u32(f.config);
            out.u32(f.max_entries);
        }
        Version::V12 => {
            out.text(&f.name, 32);
            out.u64(to_oxm_bitmap(&f.match_fields));
            out.u64(to_oxm_bitmap(&f.wildcard_fields));
            out.u32(f.nonmiss.write_actions);
            out.u32(f.nonmiss.apply_actions);
            out.u64(to_oxm_bitmap(&f.nonmiss.write_set_fields));
            out.u64(to_oxm_bitmap(&f.nonmiss.apply_set_fields));
            out.u64(f.metadata_match);
            out.u64(f.metadata_write);
            out.u32(f.nonmiss.instructions & 0x3e);
            out.u32(f.config);
            out.u32(f.max_entries);
        }
        _ => {}
    }
    out.u32(s.active_count);
    out.u64(s.lookup_count);
    out.u64(s.matched_count);
}

fn pull_features(r: &mut Reader<'_>, loose: bool) -> Result<TableFeatures, ErrorCode> {
    let bad = ErrorCode::OfpbpcBadLen;
    let len = usize::from(Reader::new(r.rest()).u16().or_code(bad)?);
    if len < 64 || !len.is_multiple_of(8) {
        return Err(bad);
    }
    let mut r = r.sub(len).or_code(bad)?;
    r.skip(2)?;
    let table = r.u8()?;
    if table == 255 {
        return Err(ErrorCode::OfptffcBadTable);
    }
    r.skip(5)?;
    let mut f = TableFeatures {
        table,
        name: text(r.take(32)?),
        metadata_match: r.u64()?,
        metadata_write: r.u64()?,
        config: r.u32()?,
        max_entries: r.u32()?,
        ..TableFeatures::default()
    };
    let mut seen = 0u32;
    while !r.is_empty() {
        let (ty, value) = crate::action::pull_property(&mut r)?;
        if ty < 32 {
            if seen & (1 << ty) != 0 {
                return Err(ErrorCode::OfptffcBadFeatures);
            }
            seen |= 1 << ty;
        }
        pull_feature(&mut f, ty, value, loose)?;
    }
    if seen & property::REQUIRED & 0x5555 != property::REQUIRED & 0x5555 {
        return Err(ErrorCode::OfptffcBadFeatures);
    }
    copy_unsaid(&mut f, seen);
    Ok(f)
}

/// What is unsaid of the table-miss flow is as for other flows.
fn copy_unsaid(f: &mut TableFeatures, seen: u32) {
    let unsaid = |ty: u16| seen & (1 << (ty + 1)) == 0;
    let (miss, nonmiss) = (&mut f.miss, &f.nonmiss);
    if unsaid(property::INSTRUCTIONS) {
        miss.instructions = nonmiss.instructions;
    }
    if unsaid(property::NEXT_TABLES) {
        miss.next_tables = nonmiss.next_tables;
    }
    if unsaid(property::WRITE_ACTIONS) {
        miss.write_actions = nonmiss.write_actions;
    }
    if unsaid(property::APPLY_ACTIONS) {
        miss.apply_actions = nonmiss.apply_actions;
    }
    if unsaid(property::WRITE_SETFIELD) {
        miss.write_set_fields.clone_from(&nonmiss.write_set_fields);
    }
    if unsaid(property::APPLY_SETFIELD) {
        miss.apply_set_fields.clone_from(&nonmiss.apply_set_fields);
    }
    for field in f.mask_fields.clone() {
        for list in [&mut f.match_fields, &mut f.wildcard_fields] {
            if !list.contains(&field) {
                list.push(field);
            }
        }
    }
    let matched = f.match_fields.clone();
    f.wildcard_fields.retain(|field| matched.contains(field));
}

fn pull_feature(
    f: &mut TableFeatures,
    ty: u16,
    value: Reader<'_>,
    loose: bool,
) -> Result<(), ErrorCode> {
    let caps = if ty & 1 == 0 {
        &mut f.nonmiss
    } else {
        &mut f.miss
    };
    match ty & !1 {
        property::INSTRUCTIONS => caps.instructions = pull_numbers(value)?,
        property::NEXT_TABLES => {
            for table in value.rest() {
                caps.next_tables[usize::from(*table) / 64] |= 1 << (table % 64);
            }
        }
        property::WRITE_ACTIONS => caps.write_actions = pull_numbers(value)?,
        property::APPLY_ACTIONS => caps.apply_actions = pull_numbers(value)?,
        property::WRITE_SETFIELD => caps.write_set_fields = pull_fields(value, loose)?.0,
        property::APPLY_SETFIELD => caps.apply_set_fields = pull_fields(value, loose)?.0,
        property::MATCH if ty & 1 == 0 => {
            let (exact, masked) = pull_fields(value, loose)?;
            f.match_fields = exact;
            f.mask_fields = masked;
        }
        property::WILDCARDS if ty & 1 == 0 => f.wildcard_fields = pull_fields(value, loose)?.0,
        _ if loose => {}
        _ => return Err(ErrorCode::OfpbpcBadType),
    }
    Ok(())
}

/// A list of instructions or actions as bits.
fn pull_numbers(mut r: Reader<'_>) -> Result<u32, ErrorCode> {
    let bad = ErrorCode::OfpbpcBadLen;
    let mut bits = 0;
    while !r.is_empty() {
        let (ty, len) = (r.u16().or_code(bad)?, usize::from(r.u16().or_code(bad)?));
        r.skip(len.checked_sub(4).ok_or(bad)?).or_code(bad)?;
        if ty < 32 {
            bits |= 1 << ty;
        }
    }
    Ok(bits)
}

/// A list of fields: those without and those with mask.
fn pull_fields(mut r: Reader<'_>, loose: bool) -> Result<(Vec<Field>, Vec<Field>), ErrorCode> {
    let (mut exact, mut masked) = (Vec::new(), Vec::new());
    while !r.is_empty() {
        let header = pull_header(&mut r)?;
        match header.known_field() {
            Some(field) if header.has_mask => masked.push(field),
            Some(field) => exact.push(field),
            None if loose => {}
            None => return Err(ErrorCode::OfpbmcBadField),
        }
    }
    Ok((exact, masked))
}

fn put_features(out: &mut Vec<u8>, version: Version, f: &TableFeatures) {
    let start = out.len();
    out.u16(0);
    out.u8(f.table);
    out.zeros(5);
    out.text(&f.name, 32);
    out.u64(f.metadata_match);
    out.u64(f.metadata_write);
    out.u32(f.config);
    out.u32(f.max_entries);
    put_caps(out, version, &f.nonmiss, 0);
    put_caps(out, version, &f.miss, 1);
    put_fields(
        out,
        version,
        property::MATCH,
        &f.match_fields,
        &f.mask_fields,
    );
    put_fields(out, version, property::WILDCARDS, &f.wildcard_fields, &[]);
    let len = out.len() - start;
    out.set_u16(start, len.min(0xffff) as u16);
}

fn put_caps(out: &mut Vec<u8>, version: Version, caps: &TableCaps, miss: u16) {
    put_numbers(out, property::INSTRUCTIONS + miss, caps.instructions);
    let tables = (0..255u8).filter(|t| caps.next_tables[usize::from(*t) / 64] >> (t % 64) & 1 != 0);
    let tables: Vec<u8> = tables.collect();
    crate::action::put_property(out, property::NEXT_TABLES + miss, &tables);
    put_numbers(out, property::WRITE_ACTIONS + miss, caps.write_actions);
    let ty = property::WRITE_SETFIELD + miss;
    put_fields(out, version, ty, &caps.write_set_fields, &[]);
    put_numbers(out, property::APPLY_ACTIONS + miss, caps.apply_actions);
    let ty = property::APPLY_SETFIELD + miss;
    put_fields(out, version, ty, &caps.apply_set_fields, &[]);
}

fn put_numbers(out: &mut Vec<u8>, ty: u16, bits: u32) {
    let mut value = Vec::new();
    for n in (0..32u16).filter(|n| bits >> n & 1 != 0) {
        value.u16(n);
        value.u16(4);
    }
    crate::action::put_property(out, ty, &value);
}

fn put_fields(out: &mut Vec<u8>, version: Version, ty: u16, fields: &[Field], masked: &[Field]) {
    let mut value = Vec::new();
    for field in fields {
        put_field_header(&mut value, *field, version as u8, masked.contains(field));
    }
    crate::action::put_property(out, ty, &value);
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    let version = e.version;
    match body {
        Body::TableStatsRequest => e.message(Kind::OfpstTableRequest, |_| ()),
        Body::TableStatsReply(part) => {
            e.parts(Kind::OfpstTableReply, part.more, &part.entries, |out, s| {
                put_stats(out, version, s);
            });
        }
        Body::TableFeaturesRequest(part) => {
            let kind = Kind::OfpstTableFeaturesRequest;
            e.parts(kind, part.more, &part.entries, |out, f| {
                put_features(out, version, f)
            });
        }
        Body::TableFeaturesReply(part) => {
            let kind = Kind::OfpstTableFeaturesReply;
            e.parts(kind, part.more, &part.entries, |out, f| {
                put_features(out, version, f)
            });
        }
        _ => return false,
    }
    true
}
