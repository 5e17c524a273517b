//! The database server: sessions, locks, monitors and transactions of clients around
//! `db-engine`, without sockets in [`Server`]; remotes, control commands and the daemon
//! around that.
#![forbid(unsafe_code)]

mod backup;
mod cluster;
mod config_file;
mod control;
mod conversion;
mod daemon;
mod databases;
mod db_column;
mod failed_write;
mod kept;
mod locks;
mod methods;
mod monitoring;
mod options;
mod relay;
mod remotes;
mod served;
mod server;
mod server_db;
mod services;
mod sources;
mod state;
mod table_log;
mod transact;
mod upstream;

pub use daemon::{EmbedSettings, Embedded, run};
pub use options::{Options, Parsed, parse};
pub use server::{ClientId, ClientInfo, ClientLocks, Output, Server};
