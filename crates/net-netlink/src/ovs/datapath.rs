//! Family `ovs_datapath`.

use super::{begin, cmd, parts, words};
use crate::msg::{Builder, Message, nl};

/// The version of the interface.
const VERSION: u8 = 2;

const NAME: u16 = 1;
const UPCALL_PID: u16 = 2;
const STATS: u16 = 3;
const MEGAFLOW_STATS: u16 = 4;
const USER_FEATURES: u16 = 5;
const MASKS_CACHE_SIZE: u16 = 7;
const PER_CPU_PIDS: u16 = 8;

/// What a datapath does differently if the switch asks for it.
pub mod feature {
    /// Attributes of upcalls are not padded.
    pub const UNALIGNED: u32 = 1;
    /// A port may have several sockets.
    pub const VPORT_PIDS: u32 = 1 << 1;
    /// Recirculation ids are shared with the kernel's traffic control.
    pub const TC_RECIRC_SHARING: u32 = 1 << 2;
    /// A packet goes to the socket of the CPU that it is on.
    pub const PER_CPU: u32 = 1 << 3;
    /// Stands for none: a kernel that takes it does not check what it is asked for.
    pub const UNKNOWN: u32 = 1 << 31;
}

/// What a datapath has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that met a flow.
    pub hits: u64,
    /// Packets that met none.
    pub misses: u64,
    /// Packets for the switch that found no room in its socket.
    pub lost: u64,
    /// Flows.
    pub flows: u64,
    /// Masks that were looked at.
    pub mask_hits: u64,
    /// Masks.
    pub masks: u32,
    /// Packets whose mask was found in the cache; kernels from 5.9 on.
    pub cache_hits: u64,
}

/// A datapath.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datapath {
    /// Interface number of its local port.
    pub index: u32,
    /// Name of its local port.
    pub name: String,
    /// What it has counted.
    pub stats: Stats,
    /// The [`feature`]s that are on.
    pub features: u32,
    /// Entries of the cache of masks, where the kernel says it (from 5.10 on).
    pub masks_cache_size: Option<u32>,
}

impl Datapath {
    /// From a message about a datapath, and whether it is gone; `None` if it is malformed.
    pub fn parse(message: &Message<'_>) -> Option<(Self, bool)> {
        let parts = parts(message)?;
        let mut datapath = Self {
            index: parts.dp,
            ..Self::default()
        };
        for attr in parts.attrs {
            match attr.kind {
                NAME => attr.text()?.clone_into(&mut datapath.name),
                STATS => {
                    let stats = &mut datapath.stats;
                    [stats.hits, stats.misses, stats.lost, stats.flows] = words(attr.value);
                }
                MEGAFLOW_STATS => {
                    let [mask_hits, _, cache_hits] = words(attr.value);
                    let stats = &mut datapath.stats;
                    (stats.mask_hits, stats.cache_hits) = (mask_hits, cache_hits);
                    stats.masks = attr
                        .value
                        .get(8..12)
                        .and_then(|b| b.first_chunk())
                        .map_or(0, |b| u32::from_ne_bytes(*b));
                }
                USER_FEATURES => datapath.features = attr.u32()?,
                MASKS_CACHE_SIZE => datapath.masks_cache_size = attr.u32(),
                _ => {}
            }
        }
        Some((datapath, parts.command == cmd::DEL))
    }
}

/// Asks for a new datapath whose local port is called `name`.  Packets of that port go to the
/// socket `pid`; none if that is 0.
pub fn create(family: u16, name: &str, pid: u32, features: u32) -> Builder {
    let mut builder = begin(family, cmd::NEW, VERSION, nl::ACK, 0);
    builder
        .put_text(NAME, name)
        .put_u32(UPCALL_PID, pid)
        .put_u32(USER_FEATURES, features);
    builder
}

/// Asks for a datapath by the name of its local port.
pub fn get(family: u16, name: &str) -> Builder {
    let mut builder = begin(family, cmd::GET, VERSION, 0, 0);
    builder.put_text(NAME, name);
    builder
}

/// Asks for a datapath by its number.
pub fn get_by_index(family: u16, dp: u32) -> Builder {
    begin(family, cmd::GET, VERSION, 0, dp)
}

/// Asks for all datapaths of the namespace.
pub fn dump(family: u16) -> Builder {
    begin(family, cmd::GET, VERSION, nl::DUMP, 0)
}

/// Changes the [`feature`]s of a datapath and, if given, the sockets of the CPUs: that of CPU n is
/// the entry n, or n modulo their number on kernels that find none there.
pub fn set(family: u16, dp: u32, features: u32, per_cpu: Option<&[u32]>) -> Builder {
    let mut builder = begin(family, cmd::SET, VERSION, nl::ACK, dp);
    builder.put_u32(USER_FEATURES, features);
    if let Some(pids) = per_cpu {
        let bytes: Vec<u8> = pids.iter().flat_map(|pid| pid.to_ne_bytes()).collect();
        builder.put(PER_CPU_PIDS, &bytes);
    }
    builder
}

/// Changes the number of entries of the cache of masks.  `features` are those that the datapath has: what a
/// request does not name is taken away.
pub fn set_masks_cache_size(family: u16, dp: u32, features: u32, size: u32) -> Builder {
    let mut builder = begin(family, cmd::SET, VERSION, nl::ACK, dp);
    builder.put_u32(USER_FEATURES, features);
    builder.put_u32(MASKS_CACHE_SIZE, size);
    builder
}

/// Removes a datapath with its ports and flows.
pub fn delete(family: u16, dp: u32) -> Builder {
    begin(family, cmd::DEL, VERSION, nl::ACK, dp)
}

#[cfg(test)]
mod tests {
    use super::super::{only, sent, shorten};
    use super::*;

    #[test]
    fn a_datapath_is_read() {
        let mut builder = begin(30, cmd::NEW, VERSION, 0, 7);
        let stats = [5u64, 6, 7, 8].map(u64::to_ne_bytes).concat();
        let mut megaflow = [9u64.to_ne_bytes(), [0; 8], 11u64.to_ne_bytes(), [0; 8]].concat();
        megaflow[8] = 10;
        builder
            .put_text(NAME, "ovs-system")
            .put(STATS, &stats)
            .put(MEGAFLOW_STATS, &megaflow)
            .put_u32(USER_FEATURES, feature::UNALIGNED | feature::PER_CPU)
            .put_u32(MASKS_CACHE_SIZE, 256);
        let bytes = sent(builder);
        let (datapath, gone) = Datapath::parse(&only(&bytes)).unwrap();
        assert!(!gone);
        assert_eq!(
            datapath,
            Datapath {
                index: 7,
                name: "ovs-system".into(),
                stats: Stats {
                    hits: 5,
                    misses: 6,
                    lost: 7,
                    flows: 8,
                    mask_hits: 9,
                    masks: 10,
                    cache_hits: 11,
                },
                features: 9,
                masks_cache_size: Some(256),
            }
        );
        shorten(&bytes, |m| {
            let _ = Datapath::parse(m);
        });
    }

    #[test]
    fn requests_as_the_kernel_wants_them() {
        let bytes = sent(set(30, 7, feature::PER_CPU, Some(&[1, 2])));
        assert_eq!(
            &bytes[16..],
            [
                [4, 2, 0, 0, 7, 0, 0, 0].as_slice(),
                &[8, 0, 5, 0, 8, 0, 0, 0],
                &[12, 0, 8, 0, 1, 0, 0, 0, 2, 0, 0, 0],
            ]
            .concat()
        );
        let bytes = sent(create(30, "dp", 0, 1));
        assert_eq!(
            &bytes[16..],
            [
                [1, 2, 0, 0, 0, 0, 0, 0].as_slice(),
                &[7, 0, 1, 0, b'd', b'p', 0, 0],
                &[8, 0, 2, 0, 0, 0, 0, 0],
                &[8, 0, 5, 0, 1, 0, 0, 0],
            ]
            .concat()
        );
    }
}
