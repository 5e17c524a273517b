//! What every other crate stands on: instants and the clock that may be stopped and
//! stepped, snapshots that one thread publishes and others read, waiting for a thread's work, rate limits, coverage
//! counters, the log, directories, hashes, and command-line options.
#![forbid(unsafe_code)]

pub mod coverage;
mod dirs;
mod epoch;
mod file;
pub mod getopt;
pub mod hash;
pub mod log;
pub mod published;
pub mod rate_limit;
pub mod time;

pub use coverage::{Counter, Coverage};
pub use dirs::Dirs;
pub use epoch::Epoch;
pub use file::{check_regular, read_regular};
pub use published::Published;
pub use rate_limit::RateLimiter;
pub use time::{Clock, Instant, WallTime};

/// The release of Open vSwitch that all programs report, because scripts read it.
pub const VERSION: &str = "3.7.1";

/// What the C library calls an error: the text without Rust's "(os error N)".
pub fn errno_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
