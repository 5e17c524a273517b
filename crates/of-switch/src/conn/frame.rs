//! Cutting the stream of bytes into messages.

use of_wire::ErrorCode;

/// Bytes of a message's header.
const HEADER: usize = 8;

/// A whole message, not yet understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
}

/// What a request costs that may concern many rules or has a long answer.
const USUAL_WORK: usize = 10;

impl Frame {
    /// How much work the request is at most, next to a rule that is added.
    pub(crate) fn work(&self) -> usize {
        const FLOW_MOD: u8 = 14;
        /// Commands that concern one rule: add, modify strictly, delete strictly.
        const OF_ONE_RULE: [u8; 3] = [0, 2, 4];
        // OpenFlow 1.0, 5.3.3: the low byte of the command follows match and cookie; later versions have one
        // byte after the table's number (1.3, A.3.4.1).
        let at = if self.version() == 1 { 57 } else { 25 };
        let is_cheap =
            self.kind() == FLOW_MOD && self.bytes.get(at).is_some_and(|c| OF_ONE_RULE.contains(c));
        if is_cheap { 1 } else { USUAL_WORK }
    }

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
    fn a_rule_that_is_added_is_the_least_work() {
        let frame = |version, kind, at: usize, command| {
            let mut bytes = vec![0; 72];
            (bytes[0], bytes[1], bytes[at]) = (version, kind, command);
            Frame { bytes }
        };
        for (version, at) in [(1, 57), (4, 25)] {
            for (command, work) in [(0, 1), (1, USUAL_WORK), (2, 1), (3, USUAL_WORK), (4, 1)] {
                assert_eq!(frame(version, 14, at, command).work(), work);
            }
            assert_eq!(frame(version, 18, at, 0).work(), USUAL_WORK);
        }
        let bytes = vec![1, 14, 0, 8, 0, 0, 0, 0];
        assert_eq!(Frame { bytes }.work(), USUAL_WORK, "cut off");
    }

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
