//! The runtime over real sockets.

mod sessions;
mod streams;
