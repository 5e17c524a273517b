//! Flows as text, as bytes, and as the text that the bytes print as, recorded from
//! Open vSwitch 3.7.1; and mutations of those bytes.
//!
//! In `golden.txt`, after a line `flow TEXT`, come `usable FORMATS` and a line
//! `FORMAT HEX TEXT` for each format in which the flow can be written, or `error TEXT`.

use net_flow::{Formats, Names};
use of_wire::format_names::{formats_from_names, formats_names};
use of_wire::message::{Body, FlowModCommand, PacketInFormat};
use of_wire::print::{Style, message_text};
use of_wire::text::{FlowCommand, ParsedFlow, parse_flow};
use of_wire::version::formats_of;
use of_wire::{Dialect, Message, Version};

const GOLDEN: &str = include_str!("golden.txt");

fn parse(text: &str) -> Result<ParsedFlow, String> {
    let command = FlowCommand::Fixed(FlowModCommand::Add);
    parse_flow(text, command, &Names::default()).map_err(|error| error.to_string())
}

fn dialect(format: Formats) -> (Version, Dialect) {
    let of = |v: &Version| formats_of(*v).intersects(format);
    let version = Version::ALL.into_iter().find(of).unwrap();
    let mut dialect = Dialect::of(version);
    dialect.format = format;
    (version, dialect)
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

fn text(bytes: &[u8]) -> String {
    let names = Names::default();
    let style = Style {
        names: &names,
        verbosity: 0,
    };
    message_text(bytes, style)
}

#[test]
fn flows_are_written_and_printed_as_recorded() {
    let mut flow = Err(String::new());
    let mut source = "";
    let mut wrong = Vec::new();
    for line in GOLDEN.lines() {
        let (word, rest) = line.split_once(' ').unwrap();
        match word {
            "flow" => (source, flow) = (rest, parse(rest)),
            "error" => {
                if flow.as_ref().err().map(String::as_str) != Some(rest) {
                    wrong.push(format!("{source}\n  {flow:?}\n  {rest}"));
                }
            }
            "usable" => {
                let formats = flow.as_ref().map(|flow| formats_names(flow.formats));
                if formats.as_deref() != Ok(rest) {
                    wrong.push(format!("{source}\n  {formats:?}\n  {rest}"));
                }
            }
            format => {
                let (hex, printed) = rest.split_once(' ').unwrap();
                let (version, dialect) = dialect(formats_from_names(format).unwrap());
                let Ok(ParsedFlow { flow, .. }) = &flow else {
                    continue;
                };
                let body = Body::FlowMod(Box::new(flow.clone()));
                let got = Message::new(version, 1, body).encode(dialect);
                if got != bytes(hex) {
                    let got: String = got.iter().map(|b| format!("{b:02x}")).collect();
                    wrong.push(format!("{source}\n  {format} {got}\n  {format} {hex}"));
                }
                let got = text(&bytes(hex));
                if got.trim_end() != printed {
                    wrong.push(format!("{source}\n  {got}\n  {printed}"));
                }
                let again = Message::decode(&bytes(hex), dialect).unwrap();
                if again.encode(dialect) != bytes(hex) {
                    wrong.push(format!("{source}\n  {format} is not written as read"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A sequence that needs no seed from outside, so that a failure comes again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn damaged_messages_are_refused_or_read() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for line in GOLDEN.lines() {
        let mut words = line.split(' ');
        let Some(Ok(format)) = words.next().map(formats_from_names) else {
            continue;
        };
        let (version, dialect) = dialect(format);
        let original = bytes(words.next().unwrap());
        for _ in 0..40 {
            let mut damaged = original.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(damaged.len());
                damaged[at] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => damaged[at] ^ 1 << random.below(8),
                    _ => random.below(256) as u8,
                };
            }
            if random.below(3) == 0 {
                damaged.truncate(8 + random.below(damaged.len() - 7));
            }
            let len = damaged.len() as u16;
            damaged[2..4].copy_from_slice(&len.to_be_bytes());
            let _ = text(&damaged);
            for packet_in in [PacketInFormat::Standard, PacketInFormat::Nxt2] {
                let dialect = Dialect {
                    packet_in,
                    ..dialect
                };
                if let Ok(message) = Message::decode(&damaged, dialect) {
                    let written = message.encode(Dialect::of(version));
                    let _ = text(&written);
                }
            }
        }
    }
}
