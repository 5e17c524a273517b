//! What the tools that edit a database share (`ovs-vsctl`, `vtep-ctl`): the grammar of
//! commands, how they name tables, rows and columns, and the commands that work on any table
//! or on managers.

mod column;
pub mod command;
mod condition;
mod context;
pub mod db;
pub(crate) mod managers;
pub mod names;
mod run;
pub mod show;
mod symbols;
pub mod usage;

pub use context::{Cmd, Context, Done, Failure, Handler, Output, Preparation, Prepare, Schema};
pub use managers::{ManagedBy, Managers};
pub use run::{Tool, run};
pub use symbols::Symbols;

/// The number at the beginning of `text`, or 0, as the C library reads it.
pub(crate) fn atoi(text: &str) -> i64 {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    sign * digits[..end].parse().unwrap_or(0)
}
