//! The database server: sessions, locks, monitors and transactions of clients around
//! `db-engine`, without sockets in [`Server`]; remotes, control commands and the daemon
//! around that.
#![forbid(unsafe_code)]

mod databases;
mod locks;
mod methods;
mod monitoring;
mod served;
mod server;
mod server_db;
mod transact;

pub use server::{ClientCensus, ClientId, Output, Server};
