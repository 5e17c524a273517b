//! One group of a bridge.

use std::sync::atomic::{AtomicU64, Ordering};

use base::Instant;
use of_wire::message::{Bucket, Group, GroupType};

/// The most values that a hash of the datapath is cut down to.
const MAX_HASH_VALUES: u64 = 256;
/// The fewest.
const MIN_HASH_VALUES: u64 = 16;

/// How a `select` group chooses one of its buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By the addresses and ports of both directions alike, each bucket with a score of its own.
    Default,
    /// By the fields of [`Group::selection`], likewise.
    Fields,
    /// By a hash that the datapath computes.
    Datapath(HashTable),
}

/// Buckets by hash value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashTable {
    /// The algorithm: 0 for layer 4, 1 for layer 4 of both directions alike.
    pub algorithm: u32,
    /// What the hash begins with.
    pub basis: u32,
    /// The place in the group of each value's bucket; a power of two of them.
    pub buckets: Box<[u32]>,
}

/// Packets and bytes.
#[derive(Debug, Default)]
struct Counter {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    fn add(&self, packets: u64, bytes: u64) {
        self.packets.fetch_add(packets, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (of(&self.packets), of(&self.bytes))
    }
}

/// A group as one version of the tables has it, with what it has counted.  A modification
/// makes another.
#[derive(Debug)]
pub struct GroupEntry {
    /// What a controller set up.
    pub group: Group,
    /// How it chooses; [`Selector::Default`] for types that do not.
    pub selector: Selector,
    /// When it was added.
    pub created: Instant,
    all: Counter,
    buckets: Box<[Counter]>,
}

impl GroupEntry {
    pub(crate) fn new(group: Group, created: Instant) -> Self {
        Self {
            selector: selector(&group),
            created,
            all: Counter::default(),
            buckets: group.buckets.iter().map(|_| Counter::default()).collect(),
            group,
        }
    }

    /// Counts packets that used the bucket at this place, or all of them.
    pub fn count(&self, bucket: Option<usize>, packets: u64, bytes: u64) {
        self.all.add(packets, bytes);
        match bucket {
            Some(at) => {
                if let Some(counter) = self.buckets.get(at) {
                    counter.add(packets, bytes);
                }
            }
            None => self.buckets.iter().for_each(|c| c.add(packets, bytes)),
        }
    }

    /// Packets and bytes of the group.
    pub fn counts(&self) -> (u64, u64) {
        self.all.read()
    }

    /// Packets and bytes of each bucket.
    pub fn bucket_counts(&self) -> Vec<(u64, u64)> {
        self.buckets.iter().map(Counter::read).collect()
    }
}

/// The target of messages about how groups choose.
const LOG: &str = "ofproto_dpif";

fn selector(group: &Group) -> Selector {
    /// The algorithms that there are.
    const ALGORITHMS: u64 = 2;
    if group.kind != GroupType::Select {
        return Selector::Default;
    }
    let selection = &group.selection;
    let (algorithm, basis) = match &*selection.method {
        "hash" => {
            log::debug!(target: LOG, "Selection method specified: hash.");
            if selection.fields.is_empty() {
                log::debug!(target: LOG, "No hash fields. Falling back to default hash method.");
                return Selector::Default;
            }
            return Selector::Fields;
        }
        "dp_hash" => {
            log::debug!(target: LOG, "Selection method specified: dp_hash.");
            let algorithm = selection.param >> 32;
            if algorithm >= ALGORITHMS {
                log::debug!(target: LOG,
                    "Invalid dp_hash algorithm {algorithm}. Defaulting to OVS_HASH_ALG_L4");
            }
            let known = algorithm < ALGORITHMS;
            let algorithm = if known { algorithm as u32 } else { 0 };
            (algorithm, selection.param as u32)
        }
        _ => {
            log::debug!(target: LOG, "No selection method specified. Trying dp_hash.");
            (1, 0)
        }
    };
    let Some(buckets) = hash_values(&group.buckets) else {
        log::debug!(target: LOG, "Falling back to default hash method.");
        return Selector::Default;
    };
    log::debug!(target: LOG,
        "Use dp_hash with {} hash values using algorithm {algorithm}.", buckets.len());
    Selector::Datapath(HashTable {
        algorithm,
        basis,
        buckets,
    })
}

/// Gives each hash value a bucket, so that each bucket has its share of them by its weight
/// (Webster's method of apportionment).  `None` if that takes too many values.
fn hash_values(buckets: &[Bucket]) -> Option<Box<[u32]>> {
    if buckets.is_empty() {
        log::debug!(target: LOG, "  Don't apply dp_hash method without buckets.");
        return None;
    }
    let weights = || buckets.iter().map(|b| u64::from(b.weight));
    let total: u64 = weights().sum();
    let Some(least) = weights().filter(|w| *w > 0).min() else {
        log::debug!(target: LOG, "  Total weight is zero. No active buckets.");
        return None;
    };
    log::debug!(target: LOG, "  Minimum weight: {least}, total weight: {total}");
    let wanted = total.div_ceil(least);
    let generous = (buckets.len() as u64 * 4).min(MAX_HASH_VALUES);
    let values = wanted.max(generous).next_power_of_two();
    let values = values.max(MIN_HASH_VALUES);
    if values > MAX_HASH_VALUES {
        log::debug!(target: LOG, "  Too many hash values required: {values}");
        return None;
    }
    log::debug!(target: LOG, "  Using {values} hash values:");
    let table = apportion(buckets, values);
    let is_shown = log::log_enabled!(target: LOG, log::Level::Debug);
    for (at, bucket) in buckets.iter().enumerate().filter(|_| is_shown) {
        let target = (values * u64::from(bucket.weight)) as f64 / total as f64;
        let hits = table.iter().filter(|b| **b as usize == at).count();
        log::debug!(target: LOG, "  Bucket {}: weight={}, target={target:.2} hits={hits}",
            bucket.id, bucket.weight);
    }
    Some(table)
}

/// The bucket with the highest quotient of weight and divisor gets the next value, and a higher
/// divisor.
fn apportion(buckets: &[Bucket], values: u64) -> Box<[u32]> {
    let mut divisors = vec![1u64; buckets.len()];
    let next = |_| {
        let mut best = 0;
        for at in 1..buckets.len() {
            // Quotients are compared crosswise.
            let (own, other) = (buckets[at].weight, buckets[best].weight);
            if u64::from(own) * divisors[best] > u64::from(other) * divisors[at] {
                best = at;
            }
        }
        divisors[best] += 2;
        best as u32
    };
    (0..values).map(next).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use net_flow::PortNo;
    use of_wire::message::GROUP_ANY;

    fn buckets(weights: &[u16]) -> Vec<Bucket> {
        let numbered = weights.iter().enumerate();
        let bucket = |(id, weight): (usize, &u16)| Bucket {
            id: id as u32,
            weight: *weight,
            watch_port: PortNo::NONE,
            watch_group: GROUP_ANY,
            actions: Vec::new(),
        };
        numbered.map(bucket).collect()
    }

    #[test]
    fn without_weight_there_is_no_table() {
        assert_eq!(hash_values(&[]), None);
        assert_eq!(hash_values(&buckets(&[0, 0])), None);
        assert_eq!(hash_values(&buckets(&[1, 1000])), None);
    }

    proptest! {
        /// Each bucket has its share of the hash values to within one.
        #[test]
        fn buckets_have_their_shares(weights in prop::collection::vec(0u16..6, 1..12)) {
            let Some(table) = hash_values(&buckets(&weights)) else {
                return Ok(());
            };
            let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
            prop_assert!(table.len().is_power_of_two() && table.len() >= 16);
            for (at, weight) in weights.iter().enumerate() {
                let has = table.iter().filter(|b| **b == at as u32).count() as f64;
                let share = table.len() as f64 * f64::from(*weight) / total as f64;
                prop_assert!((has - share).abs() < 2.0, "{at}: {has} of {share}");
                prop_assert_eq!(has == 0.0, *weight == 0);
            }
        }
    }
}
