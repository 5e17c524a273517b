//! Messages from a hostile controller or switch.

use base::Instant;
use net_flow::Names;
use of_switch::{Bridge, BridgeConfig, ConnConfig, ConnKind, Facts, Output};
use of_wire::codec::{claimed_len, split};
use of_wire::message::{PortConfig, PortDesc, PortFeatures, PortState, PortStats, QueueStats};
use of_wire::print::{Style, message_text};
use of_wire::{Action, Dialect, ErrorCode, Message, PortNo, Version};

/// Decodes a message of whatever version it claims, prints it, and hands it with all that
/// follow it to a switch.
///
/// # Panics
/// When what was decoded is written in a form that says something else, when the switch
/// does not come to an end with the messages, or answers with what cannot be read.
pub fn openflow(bytes: &[u8]) {
    decode(bytes);
    let names = Names::default();
    for verbosity in 0..3 {
        let names = &names;
        message_text(bytes, Style { names, verbosity });
    }
    converse(bytes);
}

fn version_of(bytes: &[u8]) -> Option<Version> {
    let first = usize::from(*bytes.first()?);
    Version::ALL.get(first.wrapping_sub(1)).copied()
}

/// Decodes a message, writes it, and decodes what was written.
pub(crate) fn decode(bytes: &[u8]) {
    let Some(version) = version_of(bytes) else {
        return;
    };
    let dialect = Dialect::of(version);
    let Ok(message) = Message::decode(bytes, dialect) else {
        return;
    };
    let written = message.encode(dialect);
    let Some(read) = reread(&written, dialect) else {
        return;
    };
    let rewritten = read.encode(dialect);
    if version >= Version::V12 {
        assert_eq!(rewritten, written, "{message:?}");
    } else if let Some(again) = reread(&rewritten, dialect) {
        // The matches of earlier versions do not say all that was in an OXM match.
        assert_eq!(again.encode(dialect), rewritten, "{message:?}");
    }
}

/// None if the message was split into several, or says what may not be said.
fn reread(bytes: &[u8], dialect: Dialect) -> Option<Message> {
    if claimed_len(bytes) != Some(bytes.len()) {
        return None;
    }
    Message::decode(bytes, dialect).ok()
}

/// A switch without counters and queues, that can carry out everything.
struct Nothing;

impl Facts for Nothing {
    fn port_stats(&self, _: PortNo) -> Option<PortStats> {
        None
    }

    fn queue_stats(&self, _: PortNo, _: Option<u32>) -> Vec<QueueStats> {
        Vec::new()
    }

    fn queues(&self, _: PortNo) -> Vec<(u32, Option<u16>, Option<u16>)> {
        Vec::new()
    }

    fn check_match(&self, _: &net_flow::FlowMask) -> Result<(), ErrorCode> {
        Ok(())
    }
    fn check_actions(&self, _: &[Action]) -> Result<(), ErrorCode> {
        Ok(())
    }
}

fn local_port() -> PortDesc {
    PortDesc {
        port: PortNo::LOCAL,
        hw_addr: [0xaa, 0x55, 0xaa, 0x55, 0, 0],
        name: "br0".to_owned(),
        config: PortConfig::empty(),
        state: PortState::LIVE,
        curr: PortFeatures::empty(),
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        curr_speed: 0,
        max_speed: 0,
    }
}

/// Turns of the switch that any input of the fuzzer's size can take.
const TURNS: usize = 10_000;

/// A controller that says hello and then the bytes.
fn converse(bytes: &[u8]) {
    let Some(version) = version_of(bytes) else {
        return;
    };
    let now = Instant::from_millis(1000);
    let mut bridge = Bridge::new(BridgeConfig::new("br0", 1), now);
    bridge.set_port(local_port());
    let id = bridge.open(ConnConfig::new("fuzz", ConnKind::Primary), now);
    bridge.receive(id, &[version as u8, 0, 0, 8, 0, 0, 0, 1]);
    bridge.receive(id, bytes);
    let mut answers = Vec::new();
    for turn in 0.. {
        assert!(turn < TURNS, "no end");
        bridge.run(now, &Nothing);
        let mut passed = None;
        while let Some(output) = bridge.poll_output() {
            match output {
                Output::AwaitDatapath { version } => passed = Some(version),
                Output::Close { conn } => bridge.close(conn, now),
                _ => {}
            }
        }
        answers.extend(std::iter::from_fn(|| bridge.poll_send(id)).flatten());
        if let Some(passed) = passed {
            bridge.datapath_passed(passed);
        } else if bridge.next_deadline(now) > now {
            break;
        }
    }
    // What comes first may be of another version than what was settled on.
    let (messages, rest) = split(&answers).unwrap_or_else(|e| panic!("{e:?} in {answers:x?}"));
    assert!(rest.is_empty(), "half a message: {rest:x?}");
    for message in messages {
        let version = version_of(message).unwrap_or_else(|| panic!("version of {message:x?}"));
        let read = Message::decode(message, Dialect::of(version));
        assert!(read.is_ok(), "{read:?} of {message:x?}");
    }
}
