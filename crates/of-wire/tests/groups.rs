//! Groups as text, as bytes, and as the text that the bytes print as, recorded from
//! Open vSwitch 3.7.1.
//!
//! In `groups.txt`, after a line `COMMAND TEXT` of `ovs-ofctl`, come a line `VERSION HEX TEXT`
//! for each version in which the request can be sent and `refused VERSION TEXT` for the others,
//! or `error TEXT`.  Lines `request HEX TEXT` and `reply HEX TEXT` are an exchange of a switch.

use net_flow::{Formats, Names};
use of_wire::group_text::{GroupTextCommand, parse_group_mod};
use of_wire::message::{Body, GroupCommand, GroupMod, Part};
use of_wire::print::{Style, message_text};
use of_wire::version::formats_of;
use of_wire::{Dialect, Message, Version};

const GOLDEN: &str = include_str!("groups.txt");

fn command(name: &str) -> Option<GroupCommand> {
    Some(match name {
        "add-group" => GroupCommand::Add,
        "mod-group" => GroupCommand::Modify,
        "del-groups" => GroupCommand::Delete,
        "insert-buckets" => GroupCommand::InsertBucket,
        "remove-buckets" => GroupCommand::RemoveBucket,
        _ => return None,
    })
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
    message_text(bytes, style).trim_end().replace('\n', "\\n")
}

fn version(name: &str) -> Option<Version> {
    let number: u8 = name.strip_prefix("OpenFlow1")?.parse().ok()?;
    Version::from_wire(number + 1)
}

/// Whether a request can be sent in a version.
fn can_say(request: &GroupMod, formats: Formats, version: Version) -> bool {
    let of_buckets = matches!(
        request.command,
        GroupCommand::InsertBucket | GroupCommand::RemoveBucket
    );
    let knows = !of_buckets || matches!(version, Version::V10 | Version::V15);
    knows && formats.intersects(formats_of(version))
}

#[test]
fn groups_are_written_and_printed_as_recorded() {
    let mut parsed = Err(String::new());
    let mut source = "";
    let mut wrong = Vec::new();
    let mut expect = |what: &str, ours: String, theirs: &str| {
        if ours != theirs {
            wrong.push(format!("{what}\n  ours:   {ours}\n  theirs: {theirs}"));
        }
    };
    for line in GOLDEN.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(command) = command(word) {
            source = line;
            let command = GroupTextCommand::Fixed(command);
            parsed = parse_group_mod(rest, command, &Names::default());
        } else if word == "error" {
            expect(source, parsed.clone().err().unwrap_or_default(), rest);
        } else if word == "refused" {
            let (name, _) = rest.split_once(' ').unwrap();
            if let Ok((request, formats)) = &parsed {
                let can = can_say(request, *formats, version(name).unwrap());
                expect(source, can.to_string(), "false");
            }
        } else if let Some(version) = version(word) {
            let (hex, printed) = rest.split_once(' ').unwrap();
            let dialect = Dialect::of(version);
            let theirs = bytes(hex);
            match &parsed {
                Err(error) => expect(source, error.clone(), "success"),
                Ok((request, formats)) => {
                    if !can_say(request, *formats, version) {
                        expect(source, format!("not in {version}"), "success");
                    }
                    let body = Body::GroupMod(Box::new(request.clone()));
                    let ours = Message::new(version, 1, body).encode(dialect);
                    expect(source, format!("{ours:02x?}"), &format!("{theirs:02x?}"));
                }
            }
            expect(source, text(&theirs), printed);
        } else {
            let (hex, printed) = rest.split_once(' ').unwrap();
            let theirs = bytes(hex);
            expect(hex, text(&theirs), printed);
            let dialect = Dialect::of(Version::from_wire(theirs[0]).unwrap());
            match Message::decode(&theirs, dialect) {
                Err(error) => expect(hex, error.to_string(), "success"),
                Ok(message) => {
                    let ours = message.encode(dialect);
                    expect(printed, format!("{ours:02x?}"), &format!("{theirs:02x?}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// An entry that no message can hold is left out, wherever it stands, and spoils no other.
#[test]
fn what_is_too_long_spoils_nothing_else() {
    let group = |id: u32, buckets: u32| {
        let bucket = |id: u32| format!(",bucket=bucket_id:{id},actions=output:1");
        let buckets: String = (0..buckets).map(bucket).collect();
        let text = format!("group_id={id},type=all{buckets}");
        let command = GroupTextCommand::Fixed(GroupCommand::Add);
        let parsed = parse_group_mod(&text, command, &Names::default());
        parsed.unwrap().0.group
    };
    let (one, huge, two) = (group(1, 2), group(2, 5000), group(3, 3));
    for version in Version::ALL {
        let part = Part {
            more: false,
            entries: vec![one.clone(), huge.clone(), two.clone()],
        };
        let dialect = Dialect::of(version);
        let reply = Message::new(version, 1, Body::GroupDescReply(part));
        let read = Message::decode(&reply.encode(dialect), dialect).unwrap();
        let Body::GroupDescReply(part) = read.body else {
            panic!("{read:?}");
        };
        let ids: Vec<u32> = part.entries.iter().map(|g| g.id).collect();
        assert_eq!(ids, [1, 3], "{version}");
    }
}
