//! JSON-RPC 1.0 as OVSDB and control sockets use it (RFC 7047, section 4).

mod connection;
mod message;
mod session;

pub use connection::Rpc;
pub use message::Message;
pub use session::{Session, SessionOptions};
