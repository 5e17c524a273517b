//! TLS: configuration from files that are read again when they change, and sessions.
//!
//! Only the chain of a peer's certificate is checked, never its name, as the protocols
//! over it expect.

mod ciphers;
mod config;
mod der;
mod protocols;
mod session;
mod verify;

pub use config::{Tls, TlsConfig};
pub(crate) use session::TlsSession;
