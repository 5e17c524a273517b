//! New UUIDs, and the names that a transaction gives to them.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::{Builder, Uuid};

/// A source of random UUIDs (version 4) that is seeded from outside, so that tests repeat.
#[derive(Clone, Debug)]
pub struct UuidSource {
    state: [u64; 4],
}

impl UuidSource {
    /// A source that yields the same UUIDs for the same seed.  An all-zeros seed is valid.
    pub fn new(seed: [u8; 32]) -> Self {
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(seed.chunks_exact(8)) {
            let mut array = [0; 8];
            array.copy_from_slice(bytes);
            *word = u64::from_le_bytes(array);
        }
        if state == [0; 4] {
            state = [1, 2, 3, 4];
        }
        Self { state }
    }

    /// An independent source, for a part that keeps its own.
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        for chunk in seed.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.next_word().to_le_bytes());
        }
        Self::new(seed)
    }

    /// The next word of xoshiro256**.
    fn next_word(&mut self) -> u64 {
        let s = &mut self.state;
        let word = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        word
    }

    /// A new random UUID.
    pub fn next_uuid(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next_word().to_le_bytes());
        bytes[8..].copy_from_slice(&self.next_word().to_le_bytes());
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// What a transaction knows about one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol {
    uuid: Uuid,
    /// Whether an insert operation has defined it.
    created: bool,
}

/// The `uuid-name`s of one transaction, which may be used before they are defined.
#[derive(Debug)]
pub struct SymbolTable {
    symbols: HashMap<Arc<str>, Symbol>,
    source: UuidSource,
}

impl SymbolTable {
    /// An empty table that draws UUIDs from `source`.
    pub fn new(source: UuidSource) -> Self {
        Self {
            symbols: HashMap::new(),
            source,
        }
    }

    fn symbol(&mut self, name: &Arc<str>) -> &mut Symbol {
        let source = &mut self.source;
        self.symbols
            .entry(Arc::clone(name))
            .or_insert_with(|| Symbol {
                uuid: source.next_uuid(),
                created: false,
            })
    }

    /// The UUID that `name` stands for; a new name gets a new one.
    pub fn refer(&mut self, name: &Arc<str>) -> Uuid {
        self.symbol(name).uuid
    }

    /// Defines `name`: the UUID for its row (`wish`, if given), or `None` if it was defined
    /// before.
    pub fn define(&mut self, name: &Arc<str>, wish: Option<Uuid>) -> Option<Uuid> {
        let symbol = self.symbol(name);
        if symbol.created {
            return None;
        }
        symbol.created = true;
        if let Some(uuid) = wish {
            symbol.uuid = uuid;
        }
        Some(symbol.uuid)
    }

    /// Whether `name` was used or defined.
    pub fn contains(&self, name: &str) -> bool {
        self.symbols.contains_key(name)
    }

    /// A UUID for a row without a name.
    pub fn new_uuid(&mut self) -> Uuid {
        self.source.next_uuid()
    }

    /// Names that were used but never defined, in no order.
    pub fn undefined(&self) -> impl Iterator<Item = &str> {
        self.symbols
            .iter()
            .filter(|(_, symbol)| !symbol.created)
            .map(|(name, _)| &**name)
    }
}
