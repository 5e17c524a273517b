//! Clusters of database servers: the consensus between them, with no socket, file, clock or
//! chance of its own.
//!
//! The algorithm is Raft (D. Ongaro, "Consensus: Bridging Theory and Practice", 2014) as
//! ovsdb(7) and ovsdb(5) describe its use: what servers say to each other is in [`message`],
//! what they write to their files in [`record`], and [`Raft`] is one server.
//!
//! A server's owner hands it messages, the time and news of its file, and does what it says:
//! sends, writes, replaces the file.  Nothing is sent that follows from something that is not
//! yet on disk.
#![forbid(unsafe_code)]

mod address;
mod data;
mod entry;
mod fields;
mod log;
pub mod message;
mod raft;
pub mod record;
mod servers;

pub use address::{check_address, nickname, passive_address};
pub use data::Data;
pub use entry::Entry;
pub use raft::{
    Applied, Command, DEFAULT_ELECTION_TIMER, FailureTest, Link, Output, Proposed, Raft, Ticket,
    check_election_timer,
};
pub use servers::Servers;

/// How many hexadecimal digits of a server's or cluster's id people are shown.
pub const SHORT_ID: usize = 4;

/// The beginning of a server's, cluster's or entry's id, as people are shown it.
pub fn short_id(id: db_model::Uuid) -> String {
    let mut text = id.to_string();
    text.truncate(SHORT_ID);
    text
}
