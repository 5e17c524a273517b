//! Cutting the stream of bytes into messages.

use of_wire::ErrorCode;

/// Bytes of a message's header.
const HEADER: usize = 8;

/// A whole message, not yet understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    /// Wire number of the version.
    pub(crate) fn version(&self) -> u8 {
        self.bytes.first().copied().unwrap_or(0)
    }

    /// Type of the message.
    pub(crate) fn kind(&self) -> u8 {
        self.bytes.get(1).copied().unwrap_or(0)
    }

    /// Transaction id.
    pub(crate) fn xid(&self) -> u32 {
        let xid = self.bytes.get(4..8).and_then(|x| x.try_into().ok());
        xid.map_or(0, u32::from_be_bytes)
    }
}

/// Bytes that were received and not yet handled.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffer {
    bytes: Vec<u8>,
    /// Where the next message begins.
    start: usize,
}

impl FrameBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && (self.start == self.bytes.len() || self.start >= 65536) {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn next_len(&self) -> Option<usize> {
        let header = self.bytes.get(self.start..self.start + HEADER)?;
        Some(usize::from(u16::from_be_bytes([header[2], header[3]])))
    }

    /// Whether a whole message, or a bad length, is there.
    pub(crate) fn has_frame(&self) -> bool {
        self.next_len()
            .is_some_and(|len| len < HEADER || self.len() >= len)
    }

    /// The next whole message.  After an error the stream makes no sense any more.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, ErrorCode> {
        let Some(len) = self.next_len() else {
            return Ok(None);
        };
        if len < HEADER {
            return Err(ErrorCode::OfpbrcBadLen);
        }
        let Some(bytes) = self.bytes.get(self.start..self.start + len) else {
            return Ok(None);
        };
        let frame = Frame {
            bytes: bytes.to_vec(),
        };
        self.start += len;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_wherever_the_bytes_are_split() {
        let messages: Vec<Vec<u8>> = vec![
            vec![4, 2, 0, 8, 0, 0, 0, 1],
            vec![4, 2, 0, 10, 0, 0, 0, 2, 9, 9],
        ];
        let stream = messages.concat();
        for split in 0..stream.len() {
            let mut buffer = FrameBuffer::default();
            let mut got = Vec::new();
            for piece in [&stream[..split], &stream[split..]] {
                buffer.push(piece);
                while let Some(frame) = buffer.next().unwrap() {
                    got.push(frame.bytes);
                }
            }
            assert_eq!(got, messages);
            assert_eq!(buffer.len(), 0);
        }
    }

    #[test]
    fn a_length_below_the_headers_is_an_error() {
        let mut buffer = FrameBuffer::default();
        buffer.push(&[4, 0, 0, 6, 0, 0, 0, 1]);
        assert!(buffer.has_frame());
        assert_eq!(buffer.next(), Err(ErrorCode::OfpbrcBadLen));
    }
}
