//! Control sockets: how `ovs-appctl` talks to a daemon.
//!
//! A daemon makes a [`ControlServer`], registers what it can do in [`Commands`] (the common
//! ones with [`builtin`]), and in each turn of its loop dispatches the calls that came.

pub mod builtin;
mod client;
mod commands;
mod server;
mod time;

pub use client::{ControlClient, find_target};
pub use commands::Commands;
pub use server::{Call, ControlServer, Format, Responder};
pub use time::TimeControl;
