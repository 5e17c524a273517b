//! Flows as text, from a file or a command line.

use dp_lang::text::{FlowFormat, PortNames, format_actions, format_flow};
use net_flow::Names;
use of_wire::text::{FlowCommand, ParsedFlow, parse_flow};
use of_wire::version::formats_of;
use of_wire::{Body, Dialect, Message, Version};

use crate::openflow::decode;

/// Parses a flow of OpenFlow, and a datapath's flow and actions.
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
            Ok(flow) => send(&flow),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                let _ = error.explain(text);
            }
        }
    }
    datapath_flow(text);
    datapath_actions(text);
}

fn send(parsed: &ParsedFlow) {
    for version in Version::ALL {
        if !formats_of(version).intersects(parsed.formats) {
            continue;
        }
        let dialect = Dialect::of(version);
        let message = Message::new(version, 1, Body::FlowMod(Box::new(parsed.flow.clone())));
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
