//! What the tools that edit a database share (`ovs-vsctl`, later `vtep-ctl`): the
//! grammar of commands, how they name tables, rows and columns, and the commands that work
//! on any table.

mod column;
pub mod command;
mod condition;
mod context;
pub mod db;
pub mod names;
mod run;
pub mod show;
mod symbols;
pub mod usage;

pub use context::{Cmd, Context, Done, Failure, Handler, Output, Preparation, Prepare, Schema};
pub use run::{Tool, run};
pub use symbols::Symbols;
