//! Family `ovs_ct_limit`: how many connections a zone may have.

use super::{begin, parts};
use crate::msg::{Builder, Message, nl};

/// The version of the interface.
const VERSION: u8 = 1;

const CMD_SET: u8 = 1;
const CMD_DEL: u8 = 2;
const CMD_GET: u8 = 3;

const ZONE_LIMIT: u16 = 1;

/// Length of `struct ovs_zone_limit`.
const LEN: usize = 12;

/// The limit of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneLimit {
    /// The zone; none for the limit that zones without one of their own have.
    pub zone: Option<u16>,
    /// Connections at most; 0 is no limit.
    pub limit: u32,
    /// Connections that there are.
    pub count: u32,
}

impl ZoneLimit {
    fn bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let zone: i32 = self.zone.map_or(-1, i32::from);
        bytes[..4].copy_from_slice(&zone.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.limit.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.count.to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8; LEN]) -> Option<Self> {
        let [z0, z1, z2, z3, l0, l1, l2, l3, c0, c1, c2, c3] = *bytes;
        let zone = match i32::from_ne_bytes([z0, z1, z2, z3]) {
            -1 => None,
            zone => Some(u16::try_from(zone).ok()?),
        };
        Some(Self {
            zone,
            limit: u32::from_ne_bytes([l0, l1, l2, l3]),
            count: u32::from_ne_bytes([c0, c1, c2, c3]),
        })
    }
}

/// The limits in a message; `None` if it is malformed.
pub fn parse(message: &Message<'_>) -> Option<Vec<ZoneLimit>> {
    let bytes = parts(message)?.attrs.find(ZONE_LIMIT)?.value;
    let limits = bytes.as_chunks::<LEN>().0.iter();
    limits.map(ZoneLimit::read).collect()
}

fn request(family: u16, dp: u32, command: u8, flags: u16, limits: &[ZoneLimit]) -> Builder {
    let mut builder = begin(family, command, VERSION, flags, dp);
    let bytes: Vec<u8> = limits.iter().flat_map(|l| l.bytes()).collect();
    builder.put(ZONE_LIMIT, &bytes);
    builder
}

/// Sets limits.
pub fn set(family: u16, dp: u32, limits: &[ZoneLimit]) -> Builder {
    request(family, dp, CMD_SET, nl::ACK, limits)
}

/// Gives zones the default limit again; where none is named, lifts that.
pub fn delete(family: u16, dp: u32, zones: &[Option<u16>]) -> Builder {
    request(family, dp, CMD_DEL, nl::ACK, &of(zones))
}

/// Asks for the limits of these zones, or of all that have one if there are none.
pub fn get(family: u16, dp: u32, zones: &[Option<u16>]) -> Builder {
    if zones.is_empty() {
        return begin(family, CMD_GET, VERSION, 0, dp);
    }
    request(family, dp, CMD_GET, 0, &of(zones))
}

fn of(zones: &[Option<u16>]) -> Vec<ZoneLimit> {
    let zone = |zone: &Option<u16>| ZoneLimit {
        zone: *zone,
        ..ZoneLimit::default()
    };
    zones.iter().map(zone).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{only, sent, shorten};
    use super::*;

    #[test]
    fn limits_go_there_and_back() {
        let limits = [
            ZoneLimit {
                zone: None,
                limit: 5,
                count: 0,
            },
            ZoneLimit {
                zone: Some(65535),
                limit: 10,
                count: 3,
            },
        ];
        let bytes = sent(set(35, 7, &limits));
        assert_eq!(
            &bytes[24..],
            [28, 0, 1, 0]
                .into_iter()
                .chain([255, 255, 255, 255, 5, 0, 0, 0, 0, 0, 0, 0])
                .chain([255, 255, 0, 0, 10, 0, 0, 0, 3, 0, 0, 0])
                .collect::<Vec<u8>>()
        );
        assert_eq!(parse(&only(&bytes)), Some(limits.to_vec()));
        shorten(&bytes, |m| {
            let _ = parse(m);
        });
    }
}
