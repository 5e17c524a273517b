//! Matches: a key and the mask that says which of its bits matter.

use crate::field::Field;
use crate::key::{FlowKey, FlowMask};
use crate::slot::Slot;

/// What a rule matches.  The key has no bit that the mask lacks.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Match {
    key: FlowKey,
    mask: FlowMask,
}

impl Match {
    /// Matches every packet.
    pub fn any() -> Self {
        Self::default()
    }

    /// From a key and a mask; bits of `key` outside `mask` are dropped.
    pub fn new(key: &FlowKey, mask: FlowMask) -> Self {
        Self {
            key: key.masked(&mask),
            mask,
        }
    }

    /// The values.
    pub const fn key(&self) -> &FlowKey {
        &self.key
    }

    /// The bits that matter.
    pub const fn mask(&self) -> &FlowMask {
        &self.mask
    }

    /// Requires `value` in `slot` exactly.
    pub fn set(&mut self, slot: Slot, value: u128) -> &mut Self {
        self.set_masked(slot, value, slot.max())
    }

    /// Requires `value` in the bits of `slot` that `mask` has, and nothing of its others.
    pub fn set_masked(&mut self, slot: Slot, value: u128, mask: u128) -> &mut Self {
        self.key.set(slot, value & mask);
        self.mask.set(slot, mask);
        self
    }

    /// Requires nothing of `slot`.
    pub fn clear(&mut self, slot: Slot) -> &mut Self {
        self.set_masked(slot, 0, 0)
    }

    /// Whether `key` matches.
    pub fn matches(&self, key: &FlowKey) -> bool {
        self.key.equal_under(key, &self.mask)
    }

    /// Whether every packet that matches `self` matches `other` too (OpenFlow's
    /// non-strict comparison).
    pub fn is_within(&self, other: &Self) -> bool {
        self.mask.contains(&other.mask) && other.matches(&self.key)
    }

    /// Whether the packets that the fields of `field`'s prerequisites demand are all
    /// that this can match.
    pub fn meets_prerequisites(&self, field: Field) -> bool {
        field.info().prereq.met_by(&self.key, &self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot;

    #[test]
    fn a_narrower_match_is_within_a_wider_one() {
        let mut wide = Match::any();
        wide.set_masked(slot::NW_SRC, 0x0a00_0000, 0xff00_0000);
        let mut narrow = Match::any();
        narrow
            .set(slot::NW_SRC, 0x0a01_0203)
            .set(slot::ETH_TYPE, 0x800);
        assert!(narrow.is_within(&wide));
        assert!(!wide.is_within(&narrow));
        assert!(narrow.is_within(&Match::any()));
    }
}
