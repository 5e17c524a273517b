//! OpenFlow 1.0 to 1.5 and the Nicira extensions as values, bytes and text: messages,
//! actions and instructions, errors, versions.
//!
//! Everything here is pure: no socket, no clock.  [`Message`] is a whole message; a
//! bad one is an [`ErrorCode`] that can be sent back as it is.
#![forbid(unsafe_code)]

pub mod action;
pub mod codec;
pub mod error;
pub mod format_names;
pub mod group_text;
pub mod message;
pub mod of10_match;
pub mod of11_match;
pub mod oxm;
pub mod print;
pub mod text;
pub mod version;
mod wire;

pub use action::Action;
pub use codec::{Dialect, Kind};
pub use error::ErrorCode;
pub use message::{Body, Message};
pub use net_flow::{Formats, PortNo, Subfield};
pub use version::{Version, VersionSet};
