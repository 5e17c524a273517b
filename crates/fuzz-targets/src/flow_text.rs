//! Flows as text, from a file or a command line.

use dp_lang::text::{FlowFormat, PortNames, format_actions, format_flow};
use net_flow::{Formats, Names};
use of_wire::group_text::{GroupTextCommand, parse_group_mod};
use of_wire::message::GroupCommand;
use of_wire::text::{FlowCommand, parse_flow};
use of_wire::version::formats_of;
use of_wire::{Body, Dialect, Message, Version};

use crate::openflow::decode;

/// Parses a flow and a group of OpenFlow, and a datapath's flow and actions.
///
/// # Panics
/// When an error cannot be shown under the text that it is about, when a flow is not
/// written as it was read, or when a datapath's flow is not read again
/// as it was printed.
pub fn flow_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for command in [FlowCommand::FirstWord, FlowCommand::Stats] {
        match parse_flow(text, command, &Names::default()) {
            Ok(flow) => send(&Body::FlowMod(Box::new(flow.flow)), flow.formats),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                let _ = error.explain(text);
            }
        }
    }
    for command in [
        GroupTextCommand::FirstWord,
        GroupTextCommand::Fixed(GroupCommand::Add),
        GroupTextCommand::Fixed(GroupCommand::InsertBucket),
    ] {
        if let Ok((request, formats)) = parse_group_mod(text, command, &Names::default()) {
            send(&Body::GroupMod(Box::new(request)), formats);
        }
    }
    datapath_flow(text);
    datapath_actions(text);
}

fn send(body: &Body, formats: Formats) {
    for version in Version::ALL {
        if !formats_of(version).intersects(formats) {
            continue;
        }
        let dialect = Dialect::of(version);
        let message = Message::new(version, 1, body.clone());
        let written = message.encode(dialect);
        decode(&written);
    }
}

fn datapath_flow(text: &str) {
    let names = PortNames::none();
    let Ok(flow) = dp_lang::text::parse_flow(text, &names) else {
        return;
    };
    let format = FlowFormat::default();
    let printed = format_flow(&flow.key, Some(&flow.mask), &names, format);
    let again = dp_lang::text::parse_flow(&printed, &names)
        .unwrap_or_else(|error| panic!("{printed}: {error}"));
    let reprinted = format_flow(&again.key, Some(&again.mask), &names, format);
    assert_eq!(printed, reprinted);
}

fn datapath_actions(text: &str) {
    let names = PortNames::none();
    let Ok(actions) = dp_lang::text::parse_actions(text, &names) else {
        return;
    };
    let printed = format_actions(&actions, &names);
    let again = dp_lang::text::parse_actions(&printed, &names)
        .unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(printed, format_actions(&again, &names));
}
