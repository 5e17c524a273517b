//! Netlink as a pure codec: messages, attributes, the kernel's answers, and the part of
//! rtnetlink that the switch uses.  No sockets here.
//!
//! Numbers are in this machine's byte order, as netlink has it; attributes are read by copy, since
//! 64-bit ones are aligned to four bytes only.
#![forbid(unsafe_code)]

pub mod attr;
pub mod msg;
pub mod route;

pub use attr::{Attr, Attrs};
pub use msg::{BuildError, Builder, Header, KernelError, Message, Messages};
