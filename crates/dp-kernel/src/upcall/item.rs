//! A packet for the switch as it waits in a queue.

use std::hash::Hasher;
use std::ops::Range;

use dp_lang::PortNo;
use net_netlink::Message;
use net_netlink::msg::Header;
use net_netlink::ovs::packet::{Upcall, Why};

use super::queue::Waiting;

/// Attribute of a key that holds the input port.
const IN_PORT: u16 = 3;

/// A message of the kernel, kept until its turn.
#[derive(Debug)]
pub(crate) struct Item {
    header: Header,
    /// What follows the header.
    body: Vec<u8>,
    /// Where the key is in it.
    key: Range<usize>,
    /// The socket that it came by.
    pid: u32,
    /// A hash of the key; 0 for packets that are not misses.
    hash: u64,
}

/// The port that an upcall came from.
pub(crate) fn port_of(upcall: &Upcall<'_>) -> PortNo {
    let port = upcall.key.find(IN_PORT).and_then(|a| a.u32());
    port.map_or(PortNo::NONE, PortNo)
}

impl Item {
    /// Keeps a message, whose upcall is `upcall` and which came by the socket `pid`, in `buffer`.
    pub(crate) fn keep(
        message: &Message<'_>,
        upcall: &Upcall<'_>,
        pid: u32,
        mut buffer: Vec<u8>,
    ) -> Self {
        buffer.clear();
        buffer.extend_from_slice(message.body);
        let key = upcall.key.bytes();
        // The key lies inside the body, from which it was read.
        let start = key.as_ptr() as usize - message.body.as_ptr() as usize;
        let hash = match upcall.why {
            Why::Miss => hash(key),
            Why::Action => 0,
        };
        Self {
            header: message.header,
            body: buffer,
            key: start..start + key.len(),
            pid,
            hash,
        }
    }

    /// The upcall; always there, since it was when the message was kept.
    pub(crate) fn upcall(&self) -> Option<Upcall<'_>> {
        Upcall::parse(&Message {
            header: self.header,
            body: &self.body,
        })
    }

    /// The socket that it came by.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// The buffer, for another message.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.body
    }

    fn key(&self) -> &[u8] {
        self.body.get(self.key.clone()).unwrap_or_default()
    }
}

/// A hash that is never 0.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish() | 1
}

impl Waiting for Item {
    fn same_flow(&self, other: &Self) -> bool {
        self.hash != 0 && self.hash == other.hash && self.key() == other.key()
    }
}

#[cfg(test)]
mod tests {
    use net_netlink::ovs::packet::{Execute, Extra, execute};
    use net_netlink::{Builder, Messages};

    use super::*;

    /// A miss, made from an execution, which has the same attributes.
    fn miss(port: u32, packet: &[u8], command: u8) -> Vec<u8> {
        let mut key = net_netlink::AttrWriter::new();
        key.put_u32(IN_PORT, port);
        let request = Execute {
            packet,
            key: &key.into_bytes().unwrap(),
            actions: &[],
            extra: Extra::default(),
            upcall_pid: None,
            probe: false,
        };
        let mut builder: Builder = execute(33, 1, &request, 0);
        let mut bytes = builder.finish(0).unwrap().to_vec();
        bytes[16] = command;
        bytes
    }

    fn item(bytes: &[u8]) -> Item {
        let message = Messages::new(bytes).next().unwrap();
        let upcall = Upcall::parse(&message).unwrap();
        Item::keep(&message, &upcall, 7, vec![9; 100])
    }

    #[test]
    fn misses_with_equal_keys_are_one_flow() {
        let one = item(&miss(1, b"one", 1));
        let other = item(&miss(1, b"other", 1));
        assert!(one.same_flow(&other));
        assert!(!one.same_flow(&item(&miss(2, b"one", 1))));
        let action = item(&miss(1, b"one", 2));
        assert!(!action.same_flow(&action));
        let upcall = other.upcall().unwrap();
        assert_eq!(
            (port_of(&upcall), upcall.packet),
            (PortNo(1), &b"other"[..])
        );
    }
}
