//! The runtime under daemons and tools: the event loop, streams (unix, TCP, TLS, within the
//! process), JSON-RPC, reconnection, control sockets and the manners of daemons.
#![forbid(unsafe_code)]

pub mod control;
pub mod daemon;
pub mod event;
pub mod jsonrpc;
pub mod reconnect;
pub mod stream;
pub mod tls;

/// What is said of an error in log lines and by tools: the C library's text, or "End of
/// file" if a peer closed the connection.
pub fn error_text(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof if error.raw_os_error().is_none() => {
            "End of file".to_owned()
        }
        _ => base::errno_text(error),
    }
}

pub use control::{Call, Commands, ControlServer, Responder};
pub use event::{Event, Interest, Poll, Token, Waker};
pub use jsonrpc::{Message, Rpc, Session};
pub use reconnect::Reconnect;
pub use stream::{Listener, Net, Stream};
