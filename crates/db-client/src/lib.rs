//! A replica of a remote database, typed from its schema, and a transaction builder.
//!
//! [`Follower`] is the protocol of who follows a database, without input or output, whatever is
//! done with its contents; [`Client`] keeps them and commits transactions; [`Replica`] is what it knows of the
//! database, with the rows that changed; [`Transaction`] gathers changes.  [`table!`]
//! gives a program typed access to the columns that it uses; [`Remote`] is a client with its
//! connection.
#![forbid(unsafe_code)]

mod changes;
mod client;
mod encode;
mod follower;
mod interest;
mod layout;
mod remote;
mod replica;
mod server;
mod servers;
mod transaction;
mod typed;

pub use changes::{Changes, Columns, TableChanges};
pub use client::{Client, Ticket};
pub use encode::{Outcome, Success};
pub use follower::{Contents, Follower, Form, Request, Step};
pub use interest::Interest;
pub use layout::{ColumnId, ColumnLayout, Layout, TableId, TableLayout};
pub use remote::Remote;
pub use replica::{Replica, Row, RowRef, TableReplica};
pub use servers::Servers;
pub use transaction::Transaction;
pub use typed::{Column, Element, Map, MapRef, One, Optional, Set, SetRef, TableColumns, Value};

#[cfg(test)]
mod tests;
