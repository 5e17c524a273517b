//! From the database to the switch and back: rows to what is desired, the difference to
//! what is, the steps, and the status columns.
#![forbid(unsafe_code)]

mod bridges;
mod columns;
pub mod daemon;
pub mod desired;
pub mod plan;
mod statistics;
mod status;
mod tables;
pub mod target;
mod watch;

pub use bridges::Bridges;
pub use columns::Row;
pub use target::Target;
