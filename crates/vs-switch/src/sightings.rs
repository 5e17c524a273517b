//! What was seen lately, in little memory: a flow that is met for the first time in a flood is
//! not worth installing, and one that is met again is.

use std::sync::atomic::{AtomicU64, Ordering};

use base::hash::{hash_words, random_seed};
use net_flow::{FlowKey, FlowMask};

/// Places for hashes, of which each holds the newest that belongs there.
const PLACES: usize = 8192;

/// Hashes of flows that packets would have met.
#[derive(Debug)]
pub(crate) struct Sightings {
    seed: u64,
    places: Box<[AtomicU64]>,
}

impl Default for Sightings {
    fn default() -> Self {
        Self {
            seed: random_seed(),
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Sightings {
    /// Whether a packet with the bits of `key` that `mask` has was seen lately; this one is
    /// from now on.  Two flows may be taken for one, which is seldom and costs a flow.
    pub(crate) fn again(&self, key: &FlowKey, mask: &FlowMask) -> bool {
        let words = mask.iter().map(|(index, bits)| key.word(index) & bits);
        let hash = hash_words(self.seed, words);
        let place = &self.places[hash as usize % PLACES];
        place.swap(hash, Ordering::Relaxed) == hash
    }
}

#[cfg(test)]
mod tests {
    use net_flow::slot;

    use super::*;

    #[test]
    fn a_flow_is_seen_again_and_others_are_not() {
        let sightings = Sightings::default();
        let mut mask = FlowMask::new();
        mask.set_exact(slot::ETH_SRC);
        let key = |source, port| {
            let mut key = FlowKey::new();
            key.set(slot::ETH_SRC, source);
            key.set(slot::TP_SRC, port);
            key
        };
        assert!(!sightings.again(&key(1, 7), &mask));
        assert!(!sightings.again(&key(2, 7), &mask));
        // What the mask leaves open does not matter.
        assert!(sightings.again(&key(1, 8), &mask));
        // Those that were seen long ago are forgotten.
        let unseen = (10..1_000_000).filter(|n| !sightings.again(&key(*n, 0), &mask));
        assert!(unseen.count() > 999_000);
        assert!(!sightings.again(&key(1, 8), &mask));
    }
}
