//! Attributes under construction.

use crate::attr::aligned;
use crate::msg::BuildError;

/// In an attribute's type: it holds other attributes.
const NESTED: u16 = 0x8000;

/// Attributes one after the other, alone or behind a message's header.
#[derive(Clone, Debug, Default)]
pub struct AttrWriter {
    buf: Vec<u8>,
    too_long: bool,
}

/// A nested attribute that is still open.
#[derive(Debug)]
#[must_use = "a nested attribute must be closed"]
pub struct Nest(usize);

impl AttrWriter {
    /// No attributes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// To follow what `buf` holds.
    pub(crate) const fn after(buf: Vec<u8>) -> Self {
        Self {
            buf,
            too_long: false,
        }
    }

    /// The bytes so far.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buf
    }

    /// The bytes, if every length could be written down.
    pub(crate) fn checked(&mut self) -> Result<&mut [u8], BuildError> {
        if self.too_long {
            return Err(BuildError);
        }
        Ok(&mut self.buf)
    }

    /// The attributes' bytes.
    ///
    /// # Errors
    /// If an attribute is longer than its length field can say.
    pub fn into_bytes(self) -> Result<Vec<u8>, BuildError> {
        if self.too_long {
            return Err(BuildError);
        }
        Ok(self.buf)
    }

    /// The length so far in bytes, with what stands before the attributes.
    #[expect(
        clippy::len_without_is_empty,
        reason = "it measures, and holds nothing"
    )]
    pub const fn len(&self) -> usize {
        self.buf.len()
    }

    /// Forgets everything behind the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.buf.truncate(len);
    }

    /// Adds bytes as they are: a family's own header, or attributes that were read.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.buf.extend(bytes);
        self.pad();
        self
    }

    fn pad(&mut self) {
        self.buf.resize(aligned(self.buf.len()), 0);
    }

    /// Adds an attribute.
    pub fn put(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let nest = self.open(kind);
        self.buf.extend(value);
        self.close(nest)
    }

    /// Adds an attribute without a value.
    pub fn put_flag(&mut self, kind: u16) -> &mut Self {
        self.put(kind, &[])
    }

    /// Adds an attribute of one byte.
    pub fn put_u8(&mut self, kind: u16, value: u8) -> &mut Self {
        self.put(kind, &[value])
    }

    /// Adds an attribute of two bytes in this machine's order.
    pub fn put_u16(&mut self, kind: u16, value: u16) -> &mut Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute of four bytes in this machine's order.
    pub fn put_u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute of two bytes in network order.
    pub fn put_be16(&mut self, kind: u16, value: u16) -> &mut Self {
        self.put(kind, &value.to_be_bytes())
    }

    /// Adds an attribute of four bytes in network order.
    pub fn put_be32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.put(kind, &value.to_be_bytes())
    }

    /// Adds an attribute of eight bytes in network order.
    pub fn put_be64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.put(kind, &value.to_be_bytes())
    }

    /// Adds a text attribute, with the zero byte that ends it.
    pub fn put_text(&mut self, kind: u16, value: &str) -> &mut Self {
        let nest = self.open(kind);
        self.buf.extend(value.as_bytes());
        self.buf.push(0);
        self.close(nest)
    }

    /// Begins an attribute that holds others.
    pub fn open(&mut self, kind: u16) -> Nest {
        let at = self.buf.len();
        self.buf.extend([0; 2]);
        self.buf.extend(kind.to_ne_bytes());
        Nest(at)
    }

    /// Begins an attribute that holds others and says so, as some families of rtnetlink want it.
    pub fn open_nested(&mut self, kind: u16) -> Nest {
        self.open(kind | NESTED)
    }

    /// Ends it.
    pub fn close(&mut self, nest: Nest) -> &mut Self {
        match u16::try_from(self.buf.len() - nest.0) {
            Ok(len) => self.buf[nest.0..nest.0 + 2].copy_from_slice(&len.to_ne_bytes()),
            Err(_) => self.too_long = true,
        }
        self.pad();
        self
    }
}
