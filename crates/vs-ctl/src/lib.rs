//! The tools as library functions: each takes its arguments and an [`Env`], and gives
//! an [`Exit`], so that tests run them in process.
//!
//! A tool is a module with `pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit`;
//! `args[0]` is the program as it was called, as `base::getopt` wants it, and
//! [`Env::program`] is the name that messages begin with.
#![forbid(unsafe_code)]

pub mod appctl;
pub mod ctl;
pub mod dpctl;
mod env;
pub mod ofctl;
pub mod options;
pub mod ovsdb_client;
pub mod ovsdb_tool;
pub mod table;
pub mod usage;
pub mod vsctl;
pub mod vtep_ctl;

pub use env::{Env, Exit, Tool, main, main_with};
