//! Statistics of flows as OpenFlow 1.5 has them (section 7.2.4): entries like those of a match.

use crate::error::ErrorCode;
use crate::wire::{Put, Reader};

const CLASS: u16 = 0x8002;
const DURATION: u8 = 0;
const IDLE_TIME: u8 = 1;
const FLOW_COUNT: u8 = 3;
const PACKET_COUNT: u8 = 4;
const BYTE_COUNT: u8 = 5;

/// Statistics; what is not known has all bits set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Oxs {
    pub(super) duration_sec: u32,
    pub(super) duration_nsec: u32,
    pub(super) idle_age: Option<u32>,
    pub(super) flow_count: u32,
    pub(super) packet_count: u64,
    pub(super) byte_count: u64,
}

impl Oxs {
    pub(super) const UNKNOWN: Self = Self {
        duration_sec: u32::MAX,
        duration_nsec: u32::MAX,
        idle_age: None,
        flow_count: u32::MAX,
        packet_count: u64::MAX,
        byte_count: u64::MAX,
    };
}

/// Reads the statistics at the front, with their padding.
pub(super) fn pull(r: &mut Reader<'_>) -> Result<Oxs, ErrorCode> {
    let mut head = *r;
    head.skip(2)?;
    let len = usize::from(head.u16()?);
    let mut whole = r.sub(len.next_multiple_of(8))?;
    let mut entries = whole.sub(len)?;
    entries.skip(4)?;
    let mut stats = Oxs::UNKNOWN;
    while !entries.is_empty() {
        let (class, field, len) = (entries.u16()?, entries.u8()? >> 1, entries.u8()?);
        let mut value = entries.sub(usize::from(len))?;
        if class != CLASS {
            return Err(ErrorCode::OfpbmcBadField);
        }
        match field {
            DURATION => {
                stats.duration_sec = value.u32()?;
                stats.duration_nsec = value.u32()?;
            }
            IDLE_TIME => stats.idle_age = Some(value.u32()?).filter(|age| *age != u32::MAX),
            FLOW_COUNT => stats.flow_count = value.u32()?,
            PACKET_COUNT => stats.packet_count = value.u64()?,
            BYTE_COUNT => stats.byte_count = value.u64()?,
            _ => return Err(ErrorCode::OfpbmcBadField),
        }
    }
    Ok(stats)
}

/// Appends the statistics, with their padding.
pub(super) fn put(out: &mut Vec<u8>, s: Oxs) {
    let start = out.len();
    out.u32(0);
    let mut entry = |field: u8, value: &[u8]| {
        out.u16(CLASS);
        out.u8(field << 1);
        out.u8(value.len() as u8);
        out.extend_from_slice(value);
    };
    if s.duration_sec != u32::MAX {
        let nanos = u64::from(s.duration_sec) << 32 | u64::from(s.duration_nsec);
        entry(DURATION, &nanos.to_be_bytes());
    }
    if let Some(age) = s.idle_age {
        entry(IDLE_TIME, &(u64::from(age) << 32).to_be_bytes());
    }
    if s.packet_count != u64::MAX {
        entry(PACKET_COUNT, &s.packet_count.to_be_bytes());
    }
    if s.byte_count != u64::MAX {
        entry(BYTE_COUNT, &s.byte_count.to_be_bytes());
    }
    if s.flow_count != u32::MAX {
        entry(FLOW_COUNT, &s.flow_count.to_be_bytes());
    }
    let len = out.len() - start;
    out.set_u16(start + 2, len as u16);
    out.pad8(start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_survive_the_wire() {
        let stats = Oxs {
            duration_sec: 7,
            duration_nsec: 9,
            idle_age: Some(3),
            flow_count: 2,
            packet_count: 10,
            byte_count: 600,
        };
        for stats in [stats, Oxs::UNKNOWN] {
            let mut bytes = Vec::new();
            put(&mut bytes, stats);
            assert_eq!(bytes.len() % 8, 0);
            assert_eq!(pull(&mut Reader::new(&bytes)), Ok(stats));
            for end in 0..bytes.len() {
                assert!(pull(&mut Reader::new(&bytes[..end])).is_err());
            }
        }
    }
}
