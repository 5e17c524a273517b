//! The stages of a lookup: which words of a key belong to metadata, L2, L3 and L4.

use net_flow::MiniKey;
use net_flow::slot;

const fn word_range(first: u8, last: u8) -> u128 {
    (u128::MAX >> (127 - last)) & (u128::MAX << first)
}

/// L2: addresses, type, tags and labels.
const L2: u128 = word_range(slot::ETH_DST.word, slot::MPLS_LSE2.word);
/// L3: network addresses and the rest of the IP header.
const L3: u128 = word_range(slot::NW_SRC.word, slot::IPV6_LABEL.word)
    | word_range(slot::CT_NW_SRC.word, slot::CT_TP_SRC.word - 1);
/// L4: neighbour discovery, hardware addresses, TCP flags, ports, NSH.
const L4: u128 = word_range(slot::ND_TARGET.word, slot::TP_SRC.word)
    | word_range(slot::CT_TP_SRC.word, slot::NSH_C4.word);
/// Everything that is not in the packet's headers.
const METADATA: u128 = !(L2 | L3 | L4);

/// One word of a mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageWord {
    /// Its index in a key.
    pub(crate) index: u8,
    /// Its position among the words of the mask, in rising order.
    pub(crate) position: u8,
    /// Its bits.
    pub(crate) mask: u64,
}

/// The words of one stage that has any.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// Their indices, as a bitmap.
    pub(crate) map: u128,
    pub(crate) words: Box<[StageWord]>,
}

/// The stages in which `mask` has bits, in order; one empty stage if it has none.
pub(crate) fn stages(mask: &MiniKey) -> Vec<Stage> {
    let words: Vec<StageWord> = mask
        .iter()
        .enumerate()
        .map(|(position, (index, mask))| StageWord {
            index: index as u8,
            position: position as u8,
            mask,
        })
        .collect();
    let mut stages: Vec<Stage> = [METADATA, L2, L3, L4]
        .into_iter()
        .map(|map| Stage {
            map: map & mask.map(),
            words: words
                .iter()
                .filter(|w| map >> w.index & 1 != 0)
                .copied()
                .collect(),
        })
        .filter(|stage| stage.map != 0)
        .collect();
    if stages.is_empty() {
        stages.push(Stage {
            map: 0,
            words: Box::new([]),
        });
    }
    stages
}

/// A hash that is extended stage by stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) const START: Self = Self(0x243f_6a88_85a3_08d3);

    pub(crate) const fn add(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    pub(crate) const fn finish(self) -> u32 {
        // Each step has folded the upper half, in which all bits are mixed, into this one.
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net_flow::Match;

    #[test]
    fn every_word_is_in_one_stage() {
        assert_eq!(METADATA | L2 | L3 | L4, u128::MAX);
        assert_eq!(L2 & L3 | L2 & L4 | L3 & L4, 0);
        for (map, slot) in [
            (METADATA, slot::TUN_METADATA_PRESENT),
            (L2, slot::VLAN_TCI),
            (L2, slot::MPLS_LSE2.part(0, 1)),
            (L3, slot::NW_PROTO),
            (L3, slot::CT_IPV6_DST),
            (L4, slot::TP_DST),
            (L4, slot::TCP_FLAGS),
        ] {
            assert_eq!(map >> slot.word & 1, 1, "{slot:?}");
        }
    }

    #[test]
    fn every_bit_of_a_word_changes_the_hash() {
        let of = |word| {
            let mut hash = Hash::START;
            hash.add(word);
            hash.finish()
        };
        let all: std::collections::HashSet<u32> = (0..64).map(|n| of(1 << n)).collect();
        assert_eq!(all.len(), 64);
    }

    #[test]
    fn a_mask_is_split_in_order() {
        let mut m = Match::any();
        m.set(slot::TP_DST, 80)
            .set(slot::IN_PORT, 1)
            .set(slot::ETH_TYPE, 0x800);
        let stages = stages(&MiniKey::new(m.mask().as_key()));
        let firsts: Vec<u8> = stages.iter().map(|s| s.words[0].index).collect();
        assert_eq!(
            firsts,
            [slot::IN_PORT.word, slot::ETH_TYPE.word, slot::TP_DST.word]
        );
    }
}
