//! What every other crate stands on: instants and the clock that may be stopped and
//! stepped, snapshots that one thread publishes and others read, rate limits, coverage
//! counters, the log, directories, and command-line options.
#![forbid(unsafe_code)]

pub mod getopt;
pub mod published;
pub mod rate_limit;
pub mod time;

pub use published::Published;
pub use rate_limit::RateLimiter;
pub use time::{Clock, Instant, WallTime};

/// The release of Open vSwitch that all programs report, because scripts read it.
pub const VERSION: &str = "3.7.1";
