//! What tests share: saying that a test was skipped and why, scratch folders, and
//! programs that are ended when a test is over.
#![forbid(unsafe_code)]

mod need;
pub mod net;
mod process;
mod scratch;
mod stack;

pub use need::{Need, cases, is_root, need, ovn_programs, python};
pub use process::{Daemon, eventually, output, sluice_program};
pub use scratch::Scratch;
pub use stack::{Running, Stack};
