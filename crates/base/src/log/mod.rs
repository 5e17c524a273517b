//! The log: the `log` crate's facade with a back end in the format that operators know.
//!
//! A daemon owns a [`Logger`].  A thread that belongs to the daemon binds itself with
//! [`Logger::bind_thread`]; what it then logs through the facade, with the module's name as
//! the target (`log::info!(target: "bridge", ...)`), goes to that logger.  Two daemons in
//! one process so keep their own levels and files.

mod control;
pub mod date;
mod level;
mod logger;
mod modules;
mod pattern;
mod sink;
mod syslog;

pub use level::{Destination, Level};
pub use logger::{Limit, Logger};
pub use modules::{DATABASE_MODULES, SWITCH_MODULES, TOOL_MODULES};
pub use sink::{admit, current};

/// Logs like the facade's macros, but at most `rate` messages a minute after a burst, counted
/// for this place in the program: `log_limited!(Warn, "bridge", (1, 5), "text {x}")`.
#[macro_export]
macro_rules! log_limited {
    ($level:ident, $module:expr, ($rate:expr, $burst:expr), $($arg:tt)+) => {
        if ::log::log_enabled!(target: $module, ::log::Level::$level)
            && $crate::log::admit(
                $module,
                ::log::Level::$level,
                &$crate::log::Limit { file: file!(), line: line!(), rate: $rate, burst: $burst },
            )
        {
            ::log::log!(target: $module, ::log::Level::$level, $($arg)+);
        }
    };
}
