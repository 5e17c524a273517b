//! What every other crate stands on: instants and the clock that may be stopped and
//! stepped, and snapshots that one thread publishes and others read.
#![forbid(unsafe_code)]

pub mod published;
pub mod time;

pub use published::Published;
pub use time::{Clock, Instant, WallTime};
