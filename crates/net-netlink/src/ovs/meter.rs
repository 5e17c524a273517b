//! Family `ovs_meter`.

use super::{begin, parts, words};
use crate::attr::Attrs;
use crate::msg::{Builder, Message, nl};

/// The version of the interface.
const VERSION: u8 = 1;

const CMD_FEATURES: u8 = 1;
const CMD_SET: u8 = 2;
const CMD_DEL: u8 = 3;
const CMD_GET: u8 = 4;

const ID: u16 = 1;
const KBPS: u16 = 2;
const STATS: u16 = 3;
const BANDS: u16 = 4;
const USED: u16 = 5;
const CLEAR: u16 = 6;
const MAX_METERS: u16 = 7;
const MAX_BANDS: u16 = 8;

const BAND_TYPE: u16 = 1;
const BAND_RATE: u16 = 2;
const BAND_BURST: u16 = 3;
const BAND_STATS: u16 = 4;
const BAND_DROP: u32 = 1;

/// What the datapath can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Meters at most.
    pub max_meters: u32,
    /// Bands of a meter at most.
    pub max_bands: u32,
    /// Whether bands may drop.
    pub drop: bool,
}

impl Features {
    /// From the answer to [`features`]; `None` if it is malformed.
    pub fn parse(message: &Message<'_>) -> Option<Self> {
        let parts = parts(message)?;
        if parts.command != CMD_FEATURES {
            return None;
        }
        let bands = parts.attrs.find(BANDS).into_iter().flat_map(|b| b.nested());
        let mut types = bands.filter_map(|band| band.nested().find(BAND_TYPE)?.u32());
        Some(Self {
            max_meters: parts.attrs.find(MAX_METERS)?.u32()?,
            max_bands: parts.attrs.find(MAX_BANDS)?.u32()?,
            drop: types.any(|kind| kind == BAND_DROP),
        })
    }
}

/// What a meter or band has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A band that drops what exceeds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// Its rate, in the meter's unit.
    pub rate: u32,
    /// Its burst, in kilobits or packets.
    pub burst: u32,
    /// What exceeded it.
    pub counted: Counted,
}

/// A meter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Its id in the datapath.
    pub id: u32,
    /// Rates are kilobits per second, else packets per second.
    pub kbps: bool,
    /// Its bands.
    pub bands: Vec<Band>,
    /// What passed through it.
    pub counted: Counted,
    /// When it was used last, in milliseconds of the kernel's monotonic clock.
    pub used: Option<u64>,
}

impl Meter {
    /// From a message about a meter; `None` if it is malformed or there is no such meter.
    pub fn parse(message: &Message<'_>) -> Option<Self> {
        let parts = parts(message)?;
        let mut meter = Self {
            id: parts.attrs.find(ID)?.u32()?,
            ..Self::default()
        };
        for attr in parts.attrs {
            match attr.kind {
                KBPS => meter.kbps = true,
                STATS => meter.counted = counted(attr.value),
                BANDS => meter.bands = attr.nested().map(|b| band(b.nested())).collect(),
                USED => meter.used = attr.u64(),
                _ => {}
            }
        }
        Some(meter)
    }
}

fn counted(bytes: &[u8]) -> Counted {
    let [packets, bytes] = words(bytes);
    Counted { packets, bytes }
}

fn band(attrs: Attrs<'_>) -> Band {
    let number = |kind| attrs.find(kind).and_then(|a| a.u32()).unwrap_or(0);
    Band {
        rate: number(BAND_RATE),
        burst: number(BAND_BURST),
        counted: attrs
            .find(BAND_STATS)
            .map_or_else(Counted::default, |s| counted(s.value)),
    }
}

/// Asks what the datapath can do.
pub fn features(family: u16, dp: u32) -> Builder {
    begin(family, CMD_FEATURES, VERSION, 0, dp)
}

/// Makes or changes a meter; with `clear` its counters begin anew.
pub fn set(family: u16, dp: u32, meter: &Meter, clear: bool) -> Builder {
    let mut builder = begin(family, CMD_SET, VERSION, nl::ACK | nl::ECHO, dp);
    builder.put_u32(ID, meter.id);
    if meter.kbps {
        builder.put_flag(KBPS);
    }
    let bands = builder.open(BANDS);
    for band in &meter.bands {
        let nest = builder.open(0);
        builder
            .put_u32(BAND_TYPE, BAND_DROP)
            .put_u32(BAND_RATE, band.rate)
            .put_u32(BAND_BURST, band.burst);
        builder.close(nest);
    }
    builder.close(bands);
    if clear {
        builder.put_flag(CLEAR);
    }
    builder
}

/// Asks for a meter.
pub fn get(family: u16, dp: u32, id: u32) -> Builder {
    let mut builder = begin(family, CMD_GET, VERSION, 0, dp);
    builder.put_u32(ID, id);
    builder
}

/// Removes a meter; the answer describes it.
pub fn delete(family: u16, dp: u32, id: u32) -> Builder {
    let mut builder = begin(family, CMD_DEL, VERSION, nl::ACK | nl::ECHO, dp);
    builder.put_u32(ID, id);
    builder
}

#[cfg(test)]
mod tests {
    use super::super::{only, sent, shorten};
    use super::*;

    #[test]
    fn a_meter_goes_there_and_back() {
        let meter = Meter {
            id: 9,
            kbps: true,
            bands: vec![
                Band {
                    rate: 1000,
                    burst: 100,
                    counted: Counted::default(),
                },
                Band::default(),
            ],
            ..Meter::default()
        };
        let mut builder = set(34, 7, &meter, true);
        builder
            .put(STATS, &[1u64, 2].map(u64::to_ne_bytes).concat())
            .put(USED, &77u64.to_ne_bytes());
        let bytes = sent(builder);
        let read = Meter::parse(&only(&bytes)).unwrap();
        assert_eq!(
            read,
            Meter {
                counted: Counted {
                    packets: 1,
                    bytes: 2,
                },
                used: Some(77),
                ..meter
            }
        );
        shorten(&bytes, |m| {
            let _ = Meter::parse(m);
        });
    }

    #[test]
    fn what_a_datapath_can_do() {
        let mut builder = features(34, 7);
        builder.put_u32(MAX_METERS, 100).put_u32(MAX_BANDS, 1);
        let bands = builder.open(BANDS);
        let nest = builder.open(0);
        builder.put_u32(BAND_TYPE, BAND_DROP);
        builder.close(nest);
        builder.close(bands);
        let bytes = sent(builder);
        let read = Features::parse(&only(&bytes)).unwrap();
        let expected = Features {
            max_meters: 100,
            max_bands: 1,
            drop: true,
        };
        assert_eq!(read, expected);
        shorten(&bytes, |m| {
            let _ = Features::parse(m);
        });
    }
}
