//! A persistent map from 32-bit hashes to buckets: a tree of 32-way branches behind
//! reference counts, copied by path on write.

use std::sync::Arc;

/// Bits of the hash that one level consumes.
const LEVEL_BITS: u32 = 5;

#[derive(Debug)]
enum Child<B> {
    Branch(Arc<Branch<B>>),
    Bucket(u32, B),
}

impl<B: Clone> Clone for Child<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
            Self::Bucket(hash, bucket) => Self::Bucket(*hash, bucket.clone()),
        }
    }
}

/// A branch: bit `n` of the map says that there is a child for the digit `n`.
#[derive(Debug)]
struct Branch<B> {
    map: u32,
    children: Vec<Child<B>>,
}

impl<B: Clone> Clone for Branch<B> {
    fn clone(&self) -> Self {
        Self {
            map: self.map,
            children: self.children.clone(),
        }
    }
}

/// Where a digit's child is, or would be.
const fn position(map: u32, digit: u32) -> usize {
    (map & ((1 << digit) - 1)).count_ones() as usize
}

const fn digit(hash: u32, level: u32) -> u32 {
    (hash >> (level * LEVEL_BITS)) & 31
}

impl<B: Clone> Branch<B> {
    const fn empty() -> Self {
        Self {
            map: 0,
            children: Vec::new(),
        }
    }

    fn add(&mut self, digit: u32, child: Child<B>) {
        let at = position(self.map, digit);
        self.children.reserve_exact(1);
        self.children.insert(at, child);
        self.map |= 1 << digit;
    }

    fn insert(&mut self, level: u32, hash: u32, bucket: B) {
        let d = digit(hash, level);
        if self.map & (1 << d) == 0 {
            self.add(d, Child::Bucket(hash, bucket));
            return;
        }
        let child = &mut self.children[position(self.map, d)];
        match child {
            Child::Branch(branch) => Arc::make_mut(branch).insert(level + 1, hash, bucket),
            Child::Bucket(other, old) => {
                let (other, old) = (*other, old.clone());
                debug_assert_ne!(other, hash, "the hash has a bucket");
                let mut branch = Self::empty();
                branch.insert(level + 1, other, old);
                branch.insert(level + 1, hash, bucket);
                *child = Child::Branch(Arc::new(branch));
            }
        }
    }

    fn get_mut(&mut self, level: u32, hash: u32) -> Option<&mut B> {
        let d = digit(hash, level);
        if self.map & (1 << d) == 0 {
            return None;
        }
        match &mut self.children[position(self.map, d)] {
            Child::Branch(branch) => Arc::make_mut(branch).get_mut(level + 1, hash),
            Child::Bucket(other, bucket) => (*other == hash).then_some(bucket),
        }
    }

    fn remove(&mut self, level: u32, hash: u32) -> Option<B> {
        let d = digit(hash, level);
        if self.map & (1 << d) == 0 {
            return None;
        }
        let at = position(self.map, d);
        match &mut self.children[at] {
            Child::Bucket(other, _) => {
                if *other != hash {
                    return None;
                }
                self.map &= !(1 << d);
                match self.children.remove(at) {
                    Child::Bucket(_, bucket) => Some(bucket),
                    Child::Branch(_) => None,
                }
            }
            Child::Branch(branch) => {
                let branch = Arc::make_mut(branch);
                let removed = branch.remove(level + 1, hash);
                if let [Child::Bucket(..)] = branch.children[..] {
                    self.children[at] = branch.children[0].clone();
                }
                removed
            }
        }
    }
}

/// A map from hashes to buckets.  A clone shares everything with its original.
#[derive(Debug)]
pub(crate) struct Hamt<B> {
    root: Arc<Branch<B>>,
}

impl<B> Clone for Hamt<B> {
    fn clone(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
        }
    }
}

impl<B: Clone> Hamt<B> {
    pub(crate) fn new() -> Self {
        Self {
            root: Arc::new(Branch::empty()),
        }
    }

    /// The bucket of `hash`.
    pub(crate) fn get(&self, hash: u32) -> Option<&B> {
        let mut branch = &*self.root;
        let mut rest = hash;
        loop {
            let d = rest & 31;
            if branch.map & (1 << d) == 0 {
                return None;
            }
            match &branch.children[position(branch.map, d)] {
                Child::Branch(next) => branch = next,
                Child::Bucket(other, bucket) => return (*other == hash).then_some(bucket),
            }
            rest >>= LEVEL_BITS;
        }
    }

    /// The bucket of `hash`, for change: the path to it is made this map's own.
    pub(crate) fn get_mut(&mut self, hash: u32) -> Option<&mut B> {
        self.get(hash)?;
        Arc::make_mut(&mut self.root).get_mut(0, hash)
    }

    /// Adds the bucket of a hash that has none.
    pub(crate) fn insert(&mut self, hash: u32, bucket: B) {
        Arc::make_mut(&mut self.root).insert(0, hash, bucket);
    }

    /// Takes the bucket of `hash` out.
    pub(crate) fn remove(&mut self, hash: u32) -> Option<B> {
        self.get(hash)?;
        Arc::make_mut(&mut self.root).remove(0, hash)
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
