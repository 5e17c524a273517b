//! Hashes of key words: multiply and fold, seeded by chance so that nobody outside can aim for collisions.

use std::hash::{BuildHasher, RandomState};

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seed that differs from process to process.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(0u8)
}

fn mix(state: u64, word: u64) -> u64 {
    let wide = u128::from(state ^ word) * u128::from(MULTIPLIER);
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// The hash of some words.
pub fn hash_words(seed: u64, words: impl Iterator<Item = u64>) -> u64 {
    // Adding the round's constant keeps a zero product from sticking.
    let hash = words.fold(seed, |state, word| {
        mix(state, word).wrapping_add(0xf39c_c060_5ced_c835)
    });
    mix(hash, seed)
}
