//! Protocol machines of a switch, free of sockets and clocks.  MAC learning is here so far.
#![forbid(unsafe_code)]

pub mod mac_learning;
