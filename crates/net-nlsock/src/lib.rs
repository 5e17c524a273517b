//! Netlink sockets: requests with their answers, dumps, and events of multicast groups.
#![forbid(unsafe_code)]

pub mod events;
pub mod route;
pub mod socket;

pub use events::{EventSocket, Events};
pub use socket::{Protocol, Socket};
