//! Netfilter's part of netlink: the header that its messages begin with, and the numbers of those
//! about tracked connections and their timeouts.
//!
//! Source: the kernel's `linux/netfilter/nfnetlink.h`, `nfnetlink_conntrack.h` and
//! `nfnetlink_cttimeout.h`.

use crate::attr::Attrs;
use crate::msg::{Builder, Message};

/// Tracked connections.
pub const CONNTRACK: u8 = 1;
/// Policies of their timeouts.
pub const TIMEOUT: u8 = 8;

/// Kinds of messages about connections.
pub mod conntrack {
    /// A connection.
    pub const NEW: u8 = 0;
    /// Asks for connections.
    pub const GET: u8 = 1;
    /// Removes connections.
    pub const DELETE: u8 = 2;
}

/// Kinds of messages about timeouts.
pub mod timeout {
    /// A policy, or a request to make or change it.
    pub const NEW: u8 = 0;
    /// Asks for policies.
    pub const GET: u8 = 1;
    /// Removes a policy.
    pub const DELETE: u8 = 2;
}

/// Address families, as netfilter numbers them.
pub mod family {
    /// Any.
    pub const ANY: u8 = 0;
    /// IPv4.
    pub const IPV4: u8 = 2;
    /// IPv6.
    pub const IPV6: u8 = 10;
}

/// Length of `struct nfgenmsg`.
const HEADER: usize = 4;

/// Begins a request to `subsystem`.
pub fn begin(subsystem: u8, kind: u8, flags: u16, family: u8) -> Builder {
    let number = u16::from(subsystem) << 8 | u16::from(kind);
    let mut builder = Builder::new(number, flags);
    // Version 0, resource 0.
    builder.raw(&[family, 0, 0, 0]);
    builder
}

/// A message of `subsystem`: its kind, family and attributes; nothing if it is another's.
pub fn parts<'a>(message: &Message<'a>, subsystem: u8) -> Option<(u8, u8, Attrs<'a>)> {
    let header: &[u8; HEADER] = message.body.first_chunk()?;
    let [kind, from] = message.header.kind.to_le_bytes();
    let is_known = from == subsystem && header[1] == 0;
    is_known.then(|| (kind, header[0], message.attrs_after(HEADER)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msg::{Messages, nl};

    #[test]
    fn headers_go_there_and_back() {
        let mut builder = begin(TIMEOUT, timeout::GET, nl::DUMP, family::IPV6);
        builder.put_be16(2, 7);
        let bytes = builder.finish(3).unwrap().to_vec();
        let message = Messages::new(&bytes).next().unwrap();
        assert_eq!(message.header.kind, 0x0801);
        assert!(parts(&message, CONNTRACK).is_none());
        let (kind, family, attrs) = parts(&message, TIMEOUT).unwrap();
        assert_eq!((kind, family), (timeout::GET, family::IPV6));
        assert_eq!(attrs.find(2).and_then(|a| a.be16()), Some(7));
        let short = Message {
            body: &message.body[..3],
            ..message
        };
        assert!(parts(&short, TIMEOUT).is_none());
    }
}
