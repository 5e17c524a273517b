//! The commands that look at datapaths and change them past any bridge: `ovs-dpctl(8)`, and
//! `dpctl/*` on a switch's control socket.
//!
//! A [`Host`] is who has the datapaths: a switch, or a provider that a tool opened for
//! itself.  [`run`] carries out a command on one and gives a [`Report`].
#![forbid(unsafe_code)]

mod commands;
mod conntrack;
mod dump;
mod filter;
mod flow_text;
mod flows;
mod host;
mod lines;
mod normalize;
mod options;
mod ports;
mod report;
mod show;
mod text_only;

pub use commands::{COMMANDS, Command, find, run};
pub use flow_text::{DumpFormat, flow_text, stats_text};
pub use host::{Host, NoDatapaths, flows_by_key};
pub use lines::{Line, parse_line, preprocess};
pub use options::{Caller, Options};
pub use report::Report;
