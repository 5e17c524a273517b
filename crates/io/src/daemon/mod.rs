//! The manners of daemons: background, pidfile, supervision, signals, common options.

mod core;
mod detach;
mod options;
pub mod pidfile;
mod usage;
mod user;

pub use self::core::{Core, CoreSettings, End};
pub use detach::{Daemon, Start};
pub use options::{
    DAEMON_OPTIONS, DaemonOption, DaemonOptions, LOG_OPTIONS, LogOption, TLS_OPTIONS, TlsOption,
};
pub use usage::{connection_usage, daemon_usage, log_usage};
pub use user::NewUser;

/// What `version` and `--version` say, without a new-line.
pub fn version_text(program: &str) -> String {
    format!("{program} (Open vSwitch) {}", base::VERSION)
}
