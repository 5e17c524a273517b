//! A persistent binary trie of prefixes with path compression: how many leading bits of
//! a value suffice to say which of the prefixes match it.

use std::sync::Arc;

/// A node's own bits continue those of its ancestors; they lie at the top of `prefix`.
#[derive(Clone, Debug)]
struct Node {
    prefix: u128,
    bits: u8,
    /// How many prefixes end here.
    ends: u32,
    edges: [Option<Arc<Node>>; 2],
}

const fn shl(value: u128, bits: u8) -> u128 {
    if bits >= 128 { 0 } else { value << bits }
}

const fn shr(value: u128, bits: u8) -> u128 {
    if bits >= 128 { 0 } else { value >> bits }
}

/// The top bit, as an index of an edge.
const fn edge(value: u128) -> usize {
    (value >> 127) as usize
}

const fn top_mask(bits: u8) -> u128 {
    !shr(u128::MAX, bits)
}

impl Node {
    const fn leaf(prefix: u128, bits: u8) -> Self {
        Self {
            prefix,
            bits,
            ends: 1,
            edges: [None, None],
        }
    }

    const fn is_leaf(&self) -> bool {
        self.edges[0].is_none() && self.edges[1].is_none()
    }

    /// How many of this node's bits `value` shares.
    fn common(&self, value: u128) -> u8 {
        let equal = (self.prefix ^ value).leading_zeros() as u8;
        equal.min(self.bits)
    }
}

/// What a trie says of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Bit `n - 1` is set if a prefix of `n` bits matches.
    pub(crate) lengths: u128,
    /// How many leading bits were needed to tell.
    pub(crate) bits: u8,
}

impl Found {
    /// Whether a prefix of `length` bits, at least 1, matches.
    pub(crate) const fn has(self, length: u8) -> bool {
        self.lengths >> (length - 1) & 1 != 0
    }
}

/// A multiset of prefixes, each of at least one bit, at the top of a 128-bit value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trie(Option<Arc<Node>>);

impl Trie {
    pub(crate) fn insert(&mut self, value: u128, bits: u8) {
        insert(&mut self.0, value & top_mask(bits), bits);
    }

    pub(crate) fn remove(&mut self, value: u128, bits: u8) {
        remove(&mut self.0, value & top_mask(bits), bits);
    }

    /// Which prefixes match `value`, of which only the top `width` bits count.
    pub(crate) fn lookup(&self, value: u128, width: u8) -> Found {
        let mut found = Found::default();
        let mut next = self.0.as_deref();
        let mut last_was_leaf = true;
        while let Some(node) = next {
            let rest = shl(value, found.bits);
            let common = node.common(rest);
            found.bits += common;
            if common < node.bits {
                // The first bit that differs was looked at too.
                found.bits += 1;
                return found;
            }
            if node.ends > 0 {
                found.lengths |= 1 << (found.bits - 1);
            }
            if found.bits >= width {
                found.bits = width;
                return found;
            }
            last_was_leaf = node.is_leaf();
            next = node.edges[edge(shl(value, found.bits))].as_deref();
        }
        if !last_was_leaf {
            found.bits += 1;
        }
        found
    }

    /// The largest value in the trie.
    pub(crate) fn max(&self) -> Option<u128> {
        let mut node = self.0.as_deref()?;
        let mut value = node.prefix;
        let mut bits = node.bits;
        while let Some(next) = node.edges[1].as_deref().or(node.edges[0].as_deref()) {
            value |= shr(next.prefix, bits);
            bits += next.bits;
            node = next;
        }
        Some(value)
    }
}

fn insert(slot: &mut Option<Arc<Node>>, value: u128, bits: u8) {
    let Some(node) = slot else {
        *slot = Some(Arc::new(Node::leaf(value, bits)));
        return;
    };
    let common = node.common(value).min(bits);
    if common < node.bits {
        let mut parent = Node::leaf(value & top_mask(common), common);
        let lower = Arc::make_mut(node);
        lower.prefix = shl(lower.prefix, common);
        lower.bits -= common;
        let at = edge(lower.prefix);
        parent.edges[at] = slot.take();
        if common < bits {
            parent.ends = 0;
            let rest = shl(value, common);
            parent.edges[edge(rest)] = Some(Arc::new(Node::leaf(rest, bits - common)));
        }
        *slot = Some(Arc::new(parent));
        return;
    }
    let node = Arc::make_mut(node);
    if common == bits {
        node.ends += 1;
    } else {
        let rest = shl(value, common);
        insert(&mut node.edges[edge(rest)], rest, bits - common);
    }
}

fn remove(slot: &mut Option<Arc<Node>>, value: u128, bits: u8) {
    let Some(node) = slot else { return };
    let common = node.common(value);
    if common < node.bits || bits < common {
        return;
    }
    let node = Arc::make_mut(node);
    if bits == common {
        node.ends = node.ends.saturating_sub(1);
    } else {
        let rest = shl(value, common);
        remove(&mut node.edges[edge(rest)], rest, bits - common);
    }
    if node.ends > 0 {
        return;
    }
    match &mut node.edges {
        [None, None] => *slot = None,
        [Some(only), None] | [None, Some(only)] => {
            let mut merged = (**only).clone();
            merged.prefix = node.prefix | shr(merged.prefix, node.bits);
            merged.bits += node.bits;
            *slot = Some(Arc::new(merged));
        }
        [Some(_), Some(_)] => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn top(value: u32) -> u128 {
        u128::from(value) << 96
    }

    #[test]
    fn a_lone_prefix_is_told_by_its_bits() {
        let mut trie = Trie::default();
        trie.insert(top(0x0a00_0000), 8);
        let inside = trie.lookup(top(0x0a01_0203), 32);
        assert!(inside.has(8) && inside.bits == 8);
        let outside = trie.lookup(top(0x8000_0000), 32);
        assert_eq!((outside.lengths, outside.bits), (0, 1));
        trie.remove(top(0x0a00_0000), 8);
        assert_eq!(trie.lookup(0, 32), Found::default());
    }

    proptest! {
        /// The lengths are right, and any value that agrees in the bits that were needed
        /// has the same ones.
        #[test]
        fn the_bits_suffice(
            prefixes in prop::collection::vec((any::<u32>(), 1u8..=32), 0..24),
            removed in prop::collection::vec(any::<bool>(), 24),
            value in any::<u32>(), noise in any::<u32>(),
            near in any::<u8>(),
        ) {
            let mut trie = Trie::default();
            for (p, n) in &prefixes {
                trie.insert(top(p & 0xf0f0_0fff), *n);
            }
            let mut kept = Vec::new();
            for ((p, n), gone) in prefixes.iter().zip(&removed) {
                if *gone {
                    trie.remove(top(p & 0xf0f0_0fff), *n);
                } else {
                    kept.push((top(p & 0xf0f0_0fff), *n));
                }
            }
            let value = match prefixes.get(usize::from(near) % 32) {
                Some((p, _)) => (p & 0xf0f0_0fff) ^ (value >> 27),
                None => value,
            };
            let naive = |v: u128| kept.iter().filter(|(p, n)| (p ^ v) & top_mask(*n) == 0)
                .fold(0u128, |all, (_, n)| all | 1 << (n - 1));
            let found = trie.lookup(top(value), 32);
            prop_assert!(found.bits <= 32);
            prop_assert_eq!(found.lengths, naive(top(value)));
            let other = (top(value) & top_mask(found.bits)) | (top(noise) & !top_mask(found.bits));
            prop_assert_eq!(trie.lookup(other, 32).lengths, found.lengths);
        }

        #[test]
        fn the_maximum_is_right(values in prop::collection::vec(any::<u32>(), 1..20)) {
            let mut trie = Trie::default();
            for v in &values {
                trie.insert(top(*v), 32);
            }
            prop_assert_eq!(trie.max(), values.iter().max().map(|v| top(*v)));
        }
    }
}
