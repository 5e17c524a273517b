//! Inputs to begin with.

use std::io;
use std::path::{Path, PathBuf};

use net_flow::Names;
use of_wire::text::{FlowCommand, parse_flow};
use of_wire::{Body, Dialect, Message, Version};

/// Flows that were recorded from Open vSwitch, in text and in bytes: see `of-wire`.
const RECORDED: &str = include_str!("../../of-wire/tests/golden.txt");
/// The same of groups.
const GROUPS: &str = include_str!("../../of-wire/tests/groups.txt");

/// The inputs that a target begins with: the files of its folder under `seeds`, with their
/// names, and what can be made of other tests' recordings.
///
/// # Errors
/// The folder cannot be read.
pub fn seeds(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for path in files(target)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        seeds.push((name.into_owned(), std::fs::read(&path)?));
    }
    let made = match target {
        "flow-text" => recorded_texts(),
        "openflow" => [encoded_flows()?, recorded_messages()].concat(),
        _ => Vec::new(),
    };
    let named = made.into_iter().enumerate();
    seeds.extend(named.map(|(n, seed)| (format!("made-{n:04}"), seed)));
    Ok(seeds)
}

fn files(target: &str) -> io::Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(target);
    let entries = std::fs::read_dir(folder)?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn recorded_texts() -> Vec<Vec<u8>> {
    let flows = RECORDED.lines().filter_map(|l| l.strip_prefix("flow "));
    let groups = GROUPS.lines().filter_map(|l| l.strip_prefix("add-group "));
    let texts = flows.chain(groups);
    texts.map(|text| text.as_bytes().to_vec()).collect()
}

fn recorded_messages() -> Vec<Vec<u8>> {
    let bytes = |line: &str| {
        let hex = line.split(' ').nth(1)?;
        let digits = hex.as_bytes().chunks(2);
        let byte = |d: &[u8]| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok();
        digits.map(byte).collect::<Option<Vec<u8>>>()
    };
    let lines = RECORDED.lines().chain(GROUPS.lines());
    lines.filter_map(bytes).collect()
}

/// The flow texts as messages of every version.
fn encoded_flows() -> io::Result<Vec<Vec<u8>>> {
    let mut messages = Vec::new();
    for path in files("flow-text")? {
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        let parsed = parse_flow(&text, FlowCommand::FirstWord, &Names::default());
        let Ok(parsed) = parsed else { continue };
        for version in Version::ALL {
            let body = Body::FlowMod(Box::new(parsed.flow.clone()));
            messages.push(Message::new(version, 1, body).encode(Dialect::of(version)));
        }
    }
    Ok(messages)
}
