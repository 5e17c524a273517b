//! The userspace datapath.
//!
//! Ports that have a file descriptor are served by a few threads that block in epoll, take a batch per port and round,
//! and translate a miss in place through the switch's upcall handler.  Ports without one (dummies) are served by the same
//! code when the main loop calls [`dp_api::Datapath::run`].
//!
//! Each thread has caches and a megaflow classifier of its own, which nobody else touches; flows of all threads are
//! listed in one registry, through which they are dumped, changed and removed.
#![forbid(unsafe_code)]

mod balance;
mod cache;
mod classifier;
mod datapath;
mod engine;
mod flow;
mod port;
mod registry;
mod shared;
mod worker;

pub use datapath::{Options, UserDatapath};
