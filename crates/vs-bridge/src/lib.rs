//! From the database to the switch and back: rows to what is desired, the difference to
//! what is, the steps, and the status columns.
#![forbid(unsafe_code)]

mod columns;
pub mod desired;
pub mod plan;

pub use columns::Row;
