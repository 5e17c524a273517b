//! The runtime over real sockets.

mod control;
mod secure;
mod sessions;
mod streams;
