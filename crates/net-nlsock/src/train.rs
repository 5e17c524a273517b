//! Trains: many requests in one call.

use std::io;

use net_netlink::msg::{HEADER_LEN, nl};
use net_netlink::{Builder, Message};

/// Bytes of requests that are sent by one call at most; the kernel's limit is about 200 KiB.
const STRETCH: usize = 96 << 10;

/// Requests that are sent by one call at most, so that the answers have room to wait.
const MANY: usize = 64;

/// What came back for a request of a train.
#[derive(Debug)]
pub enum Answer<'a> {
    /// How it ended.
    Outcome(io::Result<()>),
    /// Something that it asked for.
    Message(&'a Message<'a>),
}

#[derive(Debug)]
pub(crate) struct Request {
    /// Where it begins in the buffer.
    start: usize,
    end: usize,
    /// Its outcome is wanted and not known yet.
    pub(crate) awaited: bool,
}

/// Requests that go together.
#[derive(Debug, Default)]
pub struct Train {
    buf: Vec<u8>,
    pub(crate) requests: Vec<Request>,
}

impl Train {
    /// An empty train.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request.  Returns its number in the train.
    ///
    /// # Errors
    /// An attribute of it is too long.
    pub fn push(&mut self, request: &mut Builder) -> io::Result<usize> {
        let bytes = request.finish(0)?;
        let flags = u16::from_ne_bytes([bytes[6], bytes[7]]);
        let start = self.buf.len();
        self.buf.extend(bytes);
        self.buf.resize(self.buf.len().next_multiple_of(4), 0);
        self.requests.push(Request {
            start,
            end: self.buf.len(),
            awaited: flags & nl::ACK != 0,
        });
        Ok(self.requests.len() - 1)
    }

    /// Requests in it.
    pub const fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.requests.clear();
    }

    /// The bytes of requests that go together, from number `from` on, and how many they are.
    /// Request 0 gets the sequence number `first`.
    pub(crate) fn stretch(&mut self, from: usize, first: u32) -> (&[u8], u32) {
        let start = self.requests[from].start;
        let mut end = start;
        let mut count = 0;
        for request in self.requests[from..].iter().take(MANY) {
            if count > 0 && request.end - start > STRETCH {
                break;
            }
            let seq = first.wrapping_add(from as u32 + count);
            let header = &mut self.buf[request.start..request.start + HEADER_LEN];
            header[8..12].copy_from_slice(&seq.to_ne_bytes());
            end = request.end;
            count += 1;
        }
        (&self.buf[start..end], count)
    }
}

#[cfg(test)]
mod tests {
    use net_netlink::Messages;

    use super::*;

    #[test]
    fn a_train_goes_in_stretches() {
        let mut train = Train::new();
        for n in 0..100u16 {
            let mut request = Builder::new(n, if n == 3 { nl::ACK } else { 0 });
            request.put(1, &vec![0; usize::from(n) * 100 + 1]);
            assert_eq!(train.push(&mut request).unwrap(), usize::from(n));
        }
        assert!(train.requests[3].awaited && !train.requests[4].awaited);
        let mut from = 0;
        let mut kinds = Vec::new();
        while from < train.len() {
            let (bytes, count) = train.stretch(from, 1000);
            assert!(count <= MANY as u32 && (bytes.len() <= STRETCH || count == 1));
            for message in Messages::new(bytes) {
                assert_eq!(message.header.seq, 1000 + u32::from(message.header.kind));
                kinds.push(message.header.kind);
            }
            from += count as usize;
        }
        assert_eq!(kinds, (0..100).collect::<Vec<u16>>());
    }
}
