//! The tools as library functions: each takes its arguments and an [`Env`], and gives
//! an [`Exit`], so that tests run them in process.
//!
//! A tool is a module with `pub fn run(env: &mut Env<'_>, args: &[OsString]) -> Exit`;
//! `args` excludes the program's name, which is [`Env::program`].
#![forbid(unsafe_code)]

mod env;

pub use env::{Env, Exit, main};
