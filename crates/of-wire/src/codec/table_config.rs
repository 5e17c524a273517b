//! Settings of tables: `OFPT_TABLE_MOD`, and their description (OpenFlow 1.4, sections 7.3.4.3
//! and 7.3.5.16).

use super::kind::Kind;
use super::{Decoded, Encoder, Head};
use crate::action::{pull_property, put_property};
use crate::error::ErrorCode;
use crate::message::{Body, Part, TableMod, Vacancy};
use crate::version::Version;
use crate::wire::{OrCode, Put, Reader};

/// `OFPTC14_*`: rules may be evicted.
const EVICTION: u32 = 1 << 2;
/// `OFPTC14_*`: vacancy events are sent.
const VACANCY_EVENTS: u32 = 1 << 3;

/// `OFPTMPT14_*`.
mod property {
    pub(super) const EVICTION: u16 = 2;
    pub(super) const VACANCY: u16 = 3;
}

pub(super) fn decode(head: Head<'_>) -> Decoded<'_> {
    let (version, mut r) = (head.version, head.body);
    Ok(Ok(match head.kind {
        Kind::OfptTableMod => {
            let table = r.u8()?;
            r.skip(3)?;
            let config = r.u32()?;
            let mut settings = settings(table, config, version)?;
            // Up to OpenFlow 1.3 nothing follows.
            pull_properties(r, &mut settings, true)?;
            Body::TableMod(settings)
        }
        Kind::OfpstTableDescRequest => Body::TableDescRequest,
        Kind::OfpstTableDescReply => {
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(pull_desc(&mut r, version)?);
            }
            let more = head.more;
            Body::TableDescReply(Part { more, entries })
        }
        _ => return Ok(Err(head)),
    }))
}

fn pull_desc(r: &mut Reader<'_>, version: Version) -> Result<TableMod, ErrorCode> {
    let bad = ErrorCode::OfpbrcBadLen;
    let length = r.u16().or_code(bad)?;
    let rest = usize::from(length).checked_sub(2).ok_or(bad)?;
    let mut entry = r.sub(rest).or_code(bad)?;
    let table = entry.u8().or_code(bad)?;
    entry.skip(1).or_code(bad)?;
    let config = entry.u32().or_code(bad)?;
    let mut settings = settings(table, config, version)?;
    pull_properties(entry, &mut settings, false)?;
    Ok(settings)
}

fn settings(table: u8, config: u32, version: Version) -> Result<TableMod, ErrorCode> {
    let miss = if version < Version::V13 {
        match config & 3 {
            3 => return Err(ErrorCode::OfptmfcBadConfig),
            miss => Some(miss as u8),
        }
    } else {
        None
    };
    let says = version >= Version::V14;
    let events = match config & VACANCY_EVENTS {
        0 => Vacancy::Off,
        _ => Vacancy::On {
            down: 0,
            up: 0,
            now: 0,
        },
    };
    Ok(TableMod {
        table,
        miss,
        eviction: says.then_some(config & EVICTION != 0),
        eviction_flags: None,
        vacancy: says.then_some(events),
    })
}

/// Reads the properties of settings; a request's have to make sense.
fn pull_properties(
    mut r: Reader<'_>,
    settings: &mut TableMod,
    request: bool,
) -> Result<(), ErrorCode> {
    let bad = ErrorCode::OfpbpcBadLen;
    while !r.is_empty() {
        let (kind, mut value) = pull_property(&mut r)?;
        match kind {
            property::EVICTION => settings.eviction_flags = Some(value.u32().or_code(bad)?),
            property::VACANCY => {
                let [down, up, now, _] = value.array().or_code(bad)?;
                if request && (down > up || up > 100 || now != 0) {
                    return Err(ErrorCode::OfpbpcBadValue);
                }
                if let Some(Vacancy::On { .. }) = settings.vacancy {
                    settings.vacancy = Some(Vacancy::On { down, up, now });
                }
            }
            _ if request => return Err(ErrorCode::OfpbpcBadType),
            // What a switch tells beyond that is of no interest.
            _ => continue,
        }
        if !value.is_empty() {
            return Err(bad);
        }
    }
    Ok(())
}

fn put_config(out: &mut Vec<u8>, version: Version, settings: &TableMod) {
    out.u32(if version >= Version::V14 {
        let mut config = 0;
        if settings.eviction == Some(true) {
            config |= EVICTION;
        }
        if matches!(settings.vacancy, Some(Vacancy::On { .. })) {
            config |= VACANCY_EVENTS;
        }
        config
    } else {
        settings.miss.map_or(0, u32::from)
    });
}

fn put_properties(out: &mut Vec<u8>, settings: &TableMod) {
    if let Some(flags) = settings.eviction_flags {
        put_property(out, property::EVICTION, &flags.to_be_bytes());
    }
    if let Some(Vacancy::On { down, up, now }) = settings.vacancy {
        put_property(out, property::VACANCY, &[down, up, now, 0]);
    }
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    let version = e.version;
    match body {
        Body::TableMod(settings) => e.message(Kind::OfptTableMod, |out| {
            out.u8(settings.table);
            out.zeros(3);
            put_config(out, version, settings);
            if version >= Version::V14 {
                put_properties(out, settings);
            }
        }),
        Body::TableDescRequest => e.message(Kind::OfpstTableDescRequest, |_| ()),
        Body::TableDescReply(part) => {
            let kind = Kind::OfpstTableDescReply;
            e.parts(kind, part.more, &part.entries, |out, settings| {
                let mut rest = vec![settings.table, 0];
                put_config(&mut rest, version, settings);
                put_properties(&mut rest, settings);
                out.u16(u16::try_from(rest.len() + 2).unwrap_or(u16::MAX));
                out.extend_from_slice(&rest);
            });
        }
        _ => return false,
    }
    true
}
