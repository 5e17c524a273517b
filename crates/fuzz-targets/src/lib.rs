//! What the fuzzers call: one function per kind of hostile input, each of which also
//! checks what must hold of the result.  The folder `seeds` has inputs for each, which the
//! ordinary tests replay; an input that once failed stays there.  `cargo xtask fuzz` runs them.
#![forbid(unsafe_code)]

mod database;
mod flow_text;
mod json_text;
mod openflow;
mod packet;
mod seeds;

pub use database::database;
pub use flow_text::flow_text;
pub use json_text::json_text;
pub use openflow::openflow;
pub use packet::packet;
pub use seeds::seeds;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// The targets by the names of their seed folders.
pub const TARGETS: &[(&str, Target)] = &[
    ("packet", packet),
    ("json", json_text),
    ("database", database),
    ("openflow", openflow),
    ("flow-text", flow_text),
];
