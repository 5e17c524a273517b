//! Every seed and every input that once failed goes through its target.

use std::path::Path;

use fuzz_targets::{TARGETS, openflow};
use net_flow::Names;
use of_wire::text::{FlowCommand, parse_flow};
use of_wire::{Body, Dialect, Message, Version};

#[test]
fn seeds_pass() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for (name, target) in TARGETS {
        let folder = seeds.join(name);
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}"));
        let mut count = 0;
        for entry in entries {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            target(&std::fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count > 0, "{} has no seeds", folder.display());
    }
}

/// Seeds with bytes changed, cut and doubled: a little of what a fuzzer does, each time the
/// same.
#[test]
fn mangled_seeds_pass() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for (name, target) in TARGETS {
        for entry in std::fs::read_dir(seeds.join(name)).unwrap() {
            let seed = std::fs::read(entry.unwrap().path()).unwrap();
            let mut state = 0x9e37_79b9_7f4a_7c15u64;
            for _ in 0..200 {
                target(&mangle(&seed, &mut state));
            }
        }
    }
}

/// The flow texts as messages of every version, whole and mangled.
#[test]
fn encoded_flows_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/flow-text");
    let mut messages = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let parsed = parse_flow(&text, FlowCommand::FirstWord, &Names::default());
        let Ok(parsed) = parsed else { continue };
        for version in Version::ALL {
            let body = Body::FlowMod(Box::new(parsed.flow.clone()));
            let bytes = Message {
                version,
                xid: 1,
                body,
            }
            .encode(Dialect::of(version));
            openflow(&bytes);
            let mut state = 0x9e37_79b9_7f4a_7c15u64;
            for _ in 0..200 {
                openflow(&mangle(&bytes, &mut state));
            }
            messages += 1;
        }
    }
    assert!(messages > 50);
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
