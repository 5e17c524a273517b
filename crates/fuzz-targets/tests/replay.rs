//! Every seed and every input that once failed goes through its target.

use fuzz_targets::{TARGETS, Target, seeds};

/// Calls the target, and shows the input if it fails.
fn check(name: &str, file: &str, target: Target, input: &[u8]) {
    let passed = std::panic::catch_unwind(|| target(input));
    assert!(
        passed.is_ok(),
        "{name}, of {file}: {}",
        input.escape_ascii()
    );
}

#[test]
fn seeds_pass() {
    for (name, target) in TARGETS {
        let seeds = seeds(name).unwrap();
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for (file, seed) in seeds {
            check(name, &file, *target, &seed);
        }
    }
}

/// Seeds with bytes changed, cut and doubled: a little of what a fuzzer does, each time the
/// same.
#[test]
fn mangled_seeds_pass() {
    let rounds = testkit::cases(20);
    for (name, target) in TARGETS {
        for (file, seed) in seeds(name).unwrap() {
            let mut state = 0x9e37_79b9_7f4a_7c15u64;
            for _ in 0..rounds {
                check(name, &file, *target, &mangle(&seed, &mut state));
            }
        }
    }
}

fn mangle(seed: &[u8], state: &mut u64) -> Vec<u8> {
    let mut next = |below: usize| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state % below.max(1) as u64) as usize
    };
    let mut bytes = seed.to_vec();
    for _ in 0..=next(4) {
        let at = next(bytes.len());
        match next(4) {
            0 if !bytes.is_empty() => bytes[at] = next(256) as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << next(8),
            2 => bytes.truncate(at),
            _ => {
                let end = at + next(bytes.len() - at);
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}
