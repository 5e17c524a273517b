//! The database engine: tables in memory, transactions (RFC 7047 section 5.2), monitors, the
//! log file and its writer, schema conversion.
//!
//! Nothing here reads a clock or a socket.  Files are reached through [`Disk`], which the
//! writer's thread owns.
#![forbid(unsafe_code)]

mod changes;
mod commit;
mod convert;
mod database;
pub mod disk;
mod execute;
mod follow;
mod loader;
pub mod log_file;
pub mod monitor;
mod operations;
mod rbac;
mod record;
mod replay;
mod search;
pub mod store;
mod table;
mod transaction;
pub mod writer;

pub use changes::{Changes, RowChange, TableChanges};
pub use convert::{Converter, convert};
pub use database::{Database, Snapshot};
pub use disk::Disk;
pub use execute::{Committed, Context, Outcome};
pub use follow::Told;
pub use loader::Loader;
pub use rbac::Identity;
pub use record::{Record, read_record, snapshot_record, transaction_record};
pub use table::Table;
pub use transaction::Transaction;
