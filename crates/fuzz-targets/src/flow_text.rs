//! Flows as text, from a file or a command line.

use net_flow::Names;
use of_wire::text::{FlowCommand, parse_flow};

/// Parses a flow.
///
/// # Panics
/// When an error cannot be shown under the text that it is about.
pub fn flow_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for command in [FlowCommand::FirstWord, FlowCommand::Stats] {
        if let Err(error) = parse_flow(text, command, &Names::default()) {
            assert!(!error.to_string().is_empty());
            let _ = error.explain(text);
        }
    }
}
