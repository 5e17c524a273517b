//! The runtime over real sockets.

mod streams;
