//! The switch assembled: bridges, ports, upcalls, revalidation, effects.  It sees
//! datapaths only through `dp-api`; the binary injects them.
#![forbid(unsafe_code)]

mod adopt;
mod backer;
mod bridge;
mod changes;
pub mod config;
mod confine;
mod conntrack;
pub mod control;
mod counters;
mod env;
mod events;
mod flow_index;
mod interface;
mod megaflow;
mod mirrors;
mod numbers;
mod packet_out;
mod ports;
mod publish;
mod reserved;
mod revalidate;
mod run;
mod sightings;
pub mod status;
mod support;
mod switch;
mod tunnels;
mod upcall;

pub use env::{DatapathProvider, Env};
pub use run::TOKEN_BASE;
pub use switch::Switch;
