//! Netlink as a pure codec: messages, attributes, the kernel's answers, the parts of
//! rtnetlink and generic netlink that the switch uses.  No sockets here.
//!
//! Numbers are in this machine's byte order, as netlink has it; attributes are read by copy, since
//! 64-bit ones are aligned to four bytes only.
#![forbid(unsafe_code)]

pub mod attr;
pub mod genl;
pub mod msg;
pub mod netfilter;
pub mod ovs;
pub mod route;
pub mod tunnel;
mod write;

pub use attr::{Attr, Attrs};
pub use msg::{BuildError, Builder, Header, KernelError, Message, Messages, errno};
pub use write::{AttrWriter, Nest};
