//! The datapath's language as the kernel's module speaks it: attributes of netlink.
//!
//! Keys and masks have the same attributes; which ones there are follows from the key, since a
//! mask says nothing of what a packet is.  Numbers are in this machine's order where the kernel
//! made them up (port numbers, marks, connection state) and in network order where a packet has
//! them.
//!
//! Source: the kernel's `linux/openvswitch.h` (values and structures).

mod action;
mod connection;
mod conntrack;
mod cookie;
mod fields;
mod header;
mod key;
mod lists;
mod mask;
mod nsh;
mod set;
#[cfg(test)]
mod tests;
mod tunnel;
mod ufid;

use std::fmt;

pub use action::{ActionContext, decode_actions, encode_actions};
pub use connection::{decode_connection, forget_connection, forget_connections, list_connections};
pub use cookie::{decode_cookie, encode_cookie};
pub use key::{decode_key, encode_key, encode_metadata};
pub use mask::{decode_mask, encode_mask, tighten, unmatchable};
pub use ufid::{ufid_from_bytes, ufid_to_bytes};

/// What could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// An attribute is shorter than it must be, or malformed inside.
fn malformed(what: &str) -> Error {
    Error(format!("malformed {what} attribute"))
}

/// Attributes of keys.
mod attr {
    pub(super) const ENCAP: u16 = 1;
    pub(super) const PRIORITY: u16 = 2;
    pub(super) const IN_PORT: u16 = 3;
    pub(super) const ETHERNET: u16 = 4;
    pub(super) const VLAN: u16 = 5;
    pub(super) const ETHERTYPE: u16 = 6;
    pub(super) const IPV4: u16 = 7;
    pub(super) const IPV6: u16 = 8;
    pub(super) const TCP: u16 = 9;
    pub(super) const UDP: u16 = 10;
    pub(super) const ICMP: u16 = 11;
    pub(super) const ICMPV6: u16 = 12;
    pub(super) const ARP: u16 = 13;
    pub(super) const ND: u16 = 14;
    pub(super) const SKB_MARK: u16 = 15;
    pub(super) const TUNNEL: u16 = 16;
    pub(super) const SCTP: u16 = 17;
    pub(super) const TCP_FLAGS: u16 = 18;
    pub(super) const DP_HASH: u16 = 19;
    pub(super) const RECIRC_ID: u16 = 20;
    pub(super) const MPLS: u16 = 21;
    pub(super) const CT_STATE: u16 = 22;
    pub(super) const CT_ZONE: u16 = 23;
    pub(super) const CT_MARK: u16 = 24;
    pub(super) const CT_LABELS: u16 = 25;
    pub(super) const CT_ORIG_TUPLE_IPV4: u16 = 26;
    pub(super) const CT_ORIG_TUPLE_IPV6: u16 = 27;
    pub(super) const NSH: u16 = 28;
    pub(super) const PACKET_TYPE: u16 = 29;
    /// Of Open vSwitch's userspace datapath alone; a kernel has none.
    pub(super) const ND_EXTENSIONS: u16 = 30;
}
