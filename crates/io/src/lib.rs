//! The runtime under daemons and tools: the event loop, streams (unix, TCP, TLS, within the
//! process), JSON-RPC, reconnection, control sockets and the manners of daemons.
#![forbid(unsafe_code)]

pub mod event;
pub mod stream;
pub mod tls;

pub use event::{Event, Interest, Poll, Token, Waker};
pub use stream::{Listener, Net, Stream};
