//! A persistent map from 32-bit hashes to buckets: a tree of 32-way branches behind
//! reference counts, copied by path on write.

use std::sync::Arc;

/// Bits of the hash that one level consumes.
const LEVEL_BITS: u32 = 5;

/// The bits of one digit.
const DIGIT: u32 = (1 << LEVEL_BITS) - 1;

#[derive(Clone, Debug)]
enum Child<B> {
    Branch(Branch<B>),
    Bucket(u32, B),
}

/// A branch: bit `n` of the map says that there is a child for the digit `n`.
#[derive(Debug)]
struct Branch<B> {
    map: u32,
    children: Arc<[Child<B>]>,
}

impl<B> Clone for Branch<B> {
    fn clone(&self) -> Self {
        Self {
            map: self.map,
            children: Arc::clone(&self.children),
        }
    }
}

const fn digit(hash: u32, level: u32) -> u32 {
    (hash >> (level * LEVEL_BITS)) & DIGIT
}

impl<B: Clone> Branch<B> {
    fn empty() -> Self {
        Self {
            map: 0,
            children: Arc::new([]),
        }
    }

    /// Where a digit's child is, or would be.
    const fn position(&self, digit: u32) -> usize {
        (self.map & ((1 << digit) - 1)).count_ones() as usize
    }

    const fn has(&self, digit: u32) -> bool {
        self.map >> digit & 1 != 0
    }

    fn add(&mut self, digit: u32, child: Child<B>) {
        let (before, after) = self.children.split_at(self.position(digit));
        let mut all = Vec::with_capacity(self.children.len() + 1);
        all.extend_from_slice(before);
        all.push(child);
        all.extend_from_slice(after);
        self.children = all.into();
        self.map |= 1 << digit;
    }

    fn insert(&mut self, level: u32, hash: u32, bucket: B) {
        let d = digit(hash, level);
        if !self.has(d) {
            self.add(d, Child::Bucket(hash, bucket));
            return;
        }
        let at = self.position(d);
        let child = &mut Arc::make_mut(&mut self.children)[at];
        match child {
            Child::Branch(branch) => branch.insert(level + 1, hash, bucket),
            Child::Bucket(other, old) => {
                let (other, old) = (*other, old.clone());
                debug_assert_ne!(other, hash, "the hash has a bucket");
                let mut branch = Self::empty();
                branch.insert(level + 1, other, old);
                branch.insert(level + 1, hash, bucket);
                *child = Child::Branch(branch);
            }
        }
    }

    fn get_mut(&mut self, level: u32, hash: u32) -> Option<&mut B> {
        let d = digit(hash, level);
        if !self.has(d) {
            return None;
        }
        let at = self.position(d);
        match &mut Arc::make_mut(&mut self.children)[at] {
            Child::Branch(branch) => branch.get_mut(level + 1, hash),
            Child::Bucket(other, bucket) => (*other == hash).then_some(bucket),
        }
    }

    fn remove(&mut self, level: u32, hash: u32) -> Option<B> {
        let d = digit(hash, level);
        if !self.has(d) {
            return None;
        }
        let at = self.position(d);
        if let Child::Bucket(other, bucket) = &self.children[at] {
            if *other != hash {
                return None;
            }
            let bucket = bucket.clone();
            let rest = self.children.iter().enumerate().filter(|(i, _)| *i != at);
            self.children = rest.map(|(_, child)| child.clone()).collect();
            self.map &= !(1 << d);
            return Some(bucket);
        }
        let child = &mut Arc::make_mut(&mut self.children)[at];
        let Child::Branch(branch) = child else {
            return None;
        };
        let removed = branch.remove(level + 1, hash);
        if let [Child::Bucket(hash, bucket)] = &branch.children[..] {
            *child = Child::Bucket(*hash, bucket.clone());
        }
        removed
    }
}

/// A map from hashes to buckets.  A clone shares everything with its original.
#[derive(Debug)]
pub(crate) struct Hamt<B> {
    root: Branch<B>,
}

impl<B> Clone for Hamt<B> {
    fn clone(&self) -> Self {
        Self {
            root: self.root.clone(),
        }
    }
}

impl<B: Clone> Hamt<B> {
    pub(crate) fn new() -> Self {
        Self {
            root: Branch::empty(),
        }
    }

    /// The bucket of `hash`.
    pub(crate) fn get(&self, hash: u32) -> Option<&B> {
        let mut branch = &self.root;
        let mut rest = hash;
        loop {
            let d = rest & DIGIT;
            if !branch.has(d) {
                return None;
            }
            match branch.children.get(branch.position(d))? {
                Child::Branch(next) => branch = next,
                Child::Bucket(other, bucket) => return (*other == hash).then_some(bucket),
            }
            rest >>= LEVEL_BITS;
        }
    }

    /// The bucket of `hash`, for change: the path to it is made this map's own.
    pub(crate) fn get_mut(&mut self, hash: u32) -> Option<&mut B> {
        self.get(hash)?;
        self.root.get_mut(0, hash)
    }

    /// Adds the bucket of a hash that has none.
    pub(crate) fn insert(&mut self, hash: u32, bucket: B) {
        self.root.insert(0, hash, bucket);
    }

    /// Takes the bucket of `hash` out.
    pub(crate) fn remove(&mut self, hash: u32) -> Option<B> {
        self.get(hash)?;
        self.root.remove(0, hash)
    }

    /// All buckets, in the order of their hashes' digits.
    pub(crate) fn iter(&self) -> Iter<'_, B> {
        Iter {
            stack: vec![self.root.children.iter()],
        }
    }
}

/// Iterates over the buckets of a map.
pub(crate) struct Iter<'a, B> {
    stack: Vec<std::slice::Iter<'a, Child<B>>>,
}

impl<'a, B> Iterator for Iter<'a, B> {
    type Item = &'a B;

    fn next(&mut self) -> Option<&'a B> {
        loop {
            match self.stack.last_mut()?.next() {
                None => {
                    self.stack.pop();
                }
                Some(Child::Bucket(_, bucket)) => return Some(bucket),
                Some(Child::Branch(branch)) => self.stack.push(branch.children.iter()),
            }
        }
    }
}

/// How often each hash occurs.
#[derive(Clone, Debug)]
pub(crate) struct Counts(Hamt<u32>);

impl Counts {
    pub(crate) fn new() -> Self {
        Self(Hamt::new())
    }

    pub(crate) fn contains(&self, hash: u32) -> bool {
        self.0.get(hash).is_some()
    }

    pub(crate) fn add(&mut self, hash: u32) {
        match self.0.get_mut(hash) {
            Some(count) => *count += 1,
            None => self.0.insert(hash, 1),
        }
    }

    pub(crate) fn take(&mut self, hash: u32) {
        if let Some(count) = self.0.get_mut(hash) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Hashes that share many low digits, so that branches nest deep.
    fn hash(n: u32) -> u32 {
        ((n % 7) << 30) | ((n % 3) << 5) | (n % 2)
    }

    #[test]
    fn clones_keep_what_they_had() {
        let mut map = Hamt::new();
        let mut twin = BTreeMap::new();
        let mut versions = Vec::new();
        for n in 0..200u32 {
            let h = hash(n.wrapping_mul(0x9e37_79b9) >> 3);
            if n % 5 == 4 {
                assert_eq!(map.remove(h), twin.remove(&h));
            } else {
                match map.get_mut(h) {
                    Some(bucket) => *bucket = n,
                    None => map.insert(h, n),
                }
                twin.insert(h, n);
            }
            versions.push((map.clone(), twin.clone()));
        }
        for (map, twin) in versions {
            let mut all: Vec<u32> = map.iter().copied().collect();
            let mut wanted: Vec<u32> = twin.values().copied().collect();
            all.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(all, wanted);
            assert!(twin.iter().all(|(h, n)| map.get(*h) == Some(n)));
        }
    }
}
