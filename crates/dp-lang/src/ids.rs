//! Numbers that name things in a datapath.

use std::fmt;
use std::hash::{Hash, Hasher};

use net_flow::MiniKey;

/// A port of a datapath.  Number 0 is the datapath's own (local) port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The local port.
    pub const LOCAL: Self = Self(0);
    /// No port.
    pub const NONE: Self = Self(u32::MAX);
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The unique id of a datapath flow: a hash of its key under its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ufid(pub u128);

impl Ufid {
    /// The id of the flow with this masked key and mask.  The same in every run, so that
    /// a restarted switch finds the flows it installed.
    pub fn of(key: &MiniKey, mask: &MiniKey) -> Self {
        let half = |seed: u64| {
            let mut hasher = Fnv(seed);
            key.hash(&mut hasher);
            mask.hash(&mut hasher);
            u128::from(hasher.finish())
        };
        Self((half(0xcbf2_9ce4_8422_2325) << 64) | half(0x9e37_79b9_7f4a_7c15))
    }
}

/// As `ufid:` in text: 8-4-4-4-12 hexadecimal digits.
impl fmt::Display for Ufid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        let part = |shift: u32, bits: u32| (v >> shift) & ((1 << bits) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 32),
            part(80, 16),
            part(64, 16),
            part(48, 16),
            part(0, 48)
        )
    }
}

/// A hash that is the same in every process: words folded by multiplication.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = ((wide as u64) ^ ((wide >> 64) as u64)).wrapping_add(0xf39c_c060_5ced_c835);
    }
}

#[cfg(test)]
mod tests {
    use net_flow::{FlowKey, slot};

    use super::*;

    #[test]
    fn different_flows_have_different_ids() {
        let mut ids = std::collections::HashSet::new();
        for port in 0..1000 {
            let mut key = FlowKey::new();
            key.set(slot::TP_DST, port);
            let mini = MiniKey::new(&key);
            assert!(ids.insert(Ufid::of(&mini, &MiniKey::default())));
        }
    }

    #[test]
    fn an_id_prints_like_a_uuid() {
        let text = Ufid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef).to_string();
        assert_eq!(text, "01234567-89ab-cdef-0123-456789abcdef");
    }
}
