//! Messages: how they are built, and how a buffer of them is read.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::attr::{Attrs, aligned};
use crate::write::AttrWriter;

/// Flags and types of netlink itself.
pub mod nl {
    /// Flag: a request.
    pub const REQUEST: u16 = 0x1;
    /// Flag: part of an answer that ends with [`DONE`].
    pub const MULTI: u16 = 0x2;
    /// Flag: an acknowledgement is wanted.
    pub const ACK: u16 = 0x4;
    /// Flag: the answer describes what was made or changed.
    pub const ECHO: u16 = 0x8;
    /// Flag: the table changed during this dump, which should be repeated.
    pub const DUMP_INTERRUPTED: u16 = 0x10;
    /// Flag of an error: the request's payload is left out.
    pub const CAPPED: u16 = 0x100;
    /// Flag of an error: attributes follow that explain it.
    pub const ACK_ATTRS: u16 = 0x200;
    /// Flag of a request: all objects.
    pub const DUMP: u16 = 0x300;
    /// Flag of a request: replace what exists.
    pub const REPLACE: u16 = 0x100;
    /// Flag of a request: fail if it exists.
    pub const EXCLUSIVE: u16 = 0x200;
    /// Flag of a request: make it if it does not exist.
    pub const CREATE: u16 = 0x400;
    /// Type: error or acknowledgement.
    pub const ERROR: u16 = 2;
    /// Type: end of a dump.
    pub const DONE: u16 = 3;
    /// Type: messages were lost.
    pub const OVERRUN: u16 = 4;
}

/// Length of a message's header.
pub const HEADER_LEN: usize = 16;

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the message, with this header.
    pub len: u32,
    /// Type.
    pub kind: u16,
    /// Flags.
    pub flags: u16,
    /// Number of the request that this belongs to.
    pub seq: u32,
    /// Netlink port of the sender; zero is the kernel.
    pub port: u32,
}

/// A message that was received.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its header.
    pub header: Header,
    /// What follows the header.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The attributes after a family's own header of `len` bytes.
    pub fn attrs_after(&self, len: usize) -> Attrs<'a> {
        Attrs::new(self.body.get(aligned(len)..).unwrap_or_default())
    }

    /// If this is an error or an acknowledgement: what the kernel says.
    pub fn outcome(&self) -> Option<Result<(), KernelError>> {
        if !matches!(self.header.kind, nl::ERROR | nl::DONE) {
            return None;
        }
        let code = match self.body.first_chunk() {
            Some(code) => i32::from_ne_bytes(*code),
            // An end of dump may come without a status.
            None if self.header.kind == nl::DONE => 0,
            None => -libc_eproto(),
        };
        if code >= 0 {
            return Some(Ok(()));
        }
        Some(Err(KernelError {
            errno: code.saturating_neg(),
            text: self.error_text().unwrap_or_default().to_owned(),
        }))
    }

    /// The kernel's explanation of an error (extended acknowledgement).
    fn error_text(&self) -> Option<&'a str> {
        const TEXT: u16 = 1;
        if self.header.flags & nl::ACK_ATTRS == 0 {
            return None;
        }
        let request = self.body.get(4..)?;
        let len = if self.header.kind == nl::DONE {
            0
        } else if self.header.flags & nl::CAPPED != 0 {
            HEADER_LEN
        } else {
            u32::from_ne_bytes(*request.first_chunk()?) as usize
        };
        Attrs::new(request.get(aligned(len)..)?).find(TEXT)?.text()
    }
}

const fn libc_eproto() -> i32 {
    71
}

/// What the kernel answers to a request that it refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError {
    /// The system's error number.
    pub errno: i32,
    /// The kernel's explanation, which may be empty.
    pub text: String,
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = std::io::Error::from_raw_os_error(self.errno);
        if self.text.is_empty() {
            write!(f, "{error}")
        } else {
            write!(f, "{error}: {}", self.text)
        }
    }
}

impl std::error::Error for KernelError {}

impl From<KernelError> for std::io::Error {
    fn from(error: KernelError) -> Self {
        let kind = Self::from_raw_os_error(error.errno).kind();
        if error.text.is_empty() {
            Self::from_raw_os_error(error.errno)
        } else {
            Self::new(kind, error)
        }
    }
}

/// The system's error number behind an error, whether or not the kernel explained it.
pub fn errno(error: &std::io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let inner = error.get_ref()?.downcast_ref::<KernelError>()?;
        Some(inner.errno)
    })
}

/// Iterates over the messages in a buffer; ends at the first that is malformed.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Over the messages in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let header: &[u8; HEADER_LEN] = self.rest.first_chunk()?;
        let word = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&header[at..at + 4]);
            u32::from_ne_bytes(bytes)
        };
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let len = word(0) as usize;
        let body = self.rest.get(HEADER_LEN..len)?;
        self.rest = self.rest.get(aligned(len)..).unwrap_or_default();
        Some(Message {
            header: Header {
                len: word(0),
                kind: half(4),
                flags: half(6),
                seq: word(8),
                port: word(12),
            },
            body,
        })
    }
}

/// A message or attribute is too long for its length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildError;

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("netlink attribute is longer than 65535 bytes")
    }
}

impl std::error::Error for BuildError {}

impl From<BuildError> for std::io::Error {
    fn from(error: BuildError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

/// A message under construction; its attributes are put through [`AttrWriter`].
#[derive(Clone, Debug)]
pub struct Builder {
    attrs: AttrWriter,
}

impl Builder {
    /// Begins a request of type `kind`; [`nl::REQUEST`] is added to `flags`.
    pub fn new(kind: u16, flags: u16) -> Self {
        let mut buf = Vec::with_capacity(256);
        buf.extend([0; 4]);
        buf.extend(kind.to_ne_bytes());
        buf.extend((flags | nl::REQUEST).to_ne_bytes());
        buf.extend([0; 8]);
        Self {
            attrs: AttrWriter::after(buf),
        }
    }

    /// The whole message, numbered `seq`.
    ///
    /// # Errors
    /// If an attribute is longer than its length field can say.
    pub fn finish(&mut self, seq: u32) -> Result<&[u8], BuildError> {
        let buf = self.attrs.checked()?;
        let len = u32::try_from(buf.len()).map_err(|_| BuildError)?;
        buf[..4].copy_from_slice(&len.to_ne_bytes());
        buf[8..12].copy_from_slice(&seq.to_ne_bytes());
        Ok(buf)
    }

    /// Adds flags.
    pub fn add_flags(&mut self, flags: u16) {
        let buf = self.attrs.buffer();
        let now = u16::from_ne_bytes([buf[6], buf[7]]);
        buf[6..8].copy_from_slice(&(now | flags).to_ne_bytes());
    }
}

impl Deref for Builder {
    type Target = AttrWriter;

    fn deref(&self) -> &AttrWriter {
        &self.attrs
    }
}

impl DerefMut for Builder {
    fn deref_mut(&mut self) -> &mut AttrWriter {
        &mut self.attrs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read_back() {
        let mut builder = Builder::new(16, nl::ACK);
        builder.raw(&[1, 2, 3, 4]).put_u32(5, 77).put_text(6, "abc");
        let nest = builder.open(7);
        builder.put_u8(1, 9);
        builder.close(nest);
        let bytes = builder.finish(42).unwrap().to_vec();
        let message = Messages::new(&bytes).next().unwrap();
        assert_eq!(message.header.seq, 42);
        let attrs: Vec<_> = message.attrs_after(4).collect();
        assert_eq!(attrs[0].u32(), Some(77));
        assert_eq!(attrs[1].text(), Some("abc"));
        assert_eq!(attrs[2].nested().find(1).unwrap().u8(), Some(9));
        for len in 0..bytes.len() {
            for message in Messages::new(&bytes[..len]) {
                let _ = message.attrs_after(4).count();
            }
        }
    }

    #[test]
    fn an_attribute_that_is_too_long_is_refused() {
        let mut builder = Builder::new(16, 0);
        builder.put(1, &[0; 70000]);
        assert_eq!(builder.finish(1), Err(BuildError));
    }

    #[test]
    fn an_error_number_survives_its_explanation() {
        for text in ["", "because"] {
            let error = KernelError {
                errno: 17,
                text: text.to_owned(),
            };
            assert_eq!(errno(&std::io::Error::from(error)), Some(17));
        }
        assert_eq!(errno(&std::io::Error::other("x")), None);
    }

    #[test]
    fn lengths_that_lie_end_the_walk() {
        let bytes = [3, 0, 0, 0, 9, 9, 9, 9];
        assert_eq!(Attrs::new(&bytes).count(), 0);
        assert_eq!(
            Messages::new(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).count(),
            0
        );
    }
}
