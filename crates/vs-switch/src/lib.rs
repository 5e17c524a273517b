//! The switch assembled: bridges, ports, upcalls, revalidation, effects.  It sees
//! datapaths only through `dp-api`; the binary injects them.
#![forbid(unsafe_code)]

pub mod config;
pub mod status;
