//! Netlink sockets: requests with their answers, alone or in trains, dumps, events of multicast
//! groups, packets from the kernel.
#![forbid(unsafe_code)]

pub mod events;
pub mod generic;
pub mod inbox;
pub mod route;
pub mod socket;
pub mod train;

pub use events::{EventSocket, Events};
pub use inbox::{PacketInbox, Received};
pub use socket::{Completeness, Protocol, Socket, port_id};
pub use sys::netlink::Inbox;
pub use train::{Answer, Train};
