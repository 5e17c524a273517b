//! Attributes: type, length and value, padded to four bytes.

/// The bits of an attribute's type that are its type.
const TYPE_MASK: u16 = 0x3fff;

/// Rounds up to the alignment of messages and attributes.
pub(crate) const fn aligned(len: usize) -> usize {
    (len + 3) & !3
}

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr<'a> {
    /// Its type, without the nested and byte-order flags.
    pub kind: u16,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Attr<'a> {
    /// The value as a number of one byte, if it is that long.
    pub fn u8(&self) -> Option<u8> {
        self.value.first().copied()
    }

    /// The value as a number of two bytes, if it is that long.
    pub fn u16(&self) -> Option<u16> {
        self.value.first_chunk().map(|b| u16::from_ne_bytes(*b))
    }

    /// The value as a number of four bytes, if it is that long.
    pub fn u32(&self) -> Option<u32> {
        self.value.first_chunk().map(|b| u32::from_ne_bytes(*b))
    }

    /// The value as a number of eight bytes, if it is that long.
    pub fn u64(&self) -> Option<u64> {
        self.value.first_chunk().map(|b| u64::from_ne_bytes(*b))
    }

    /// The value as a number of two bytes in network order, if it is that long.
    pub fn be16(&self) -> Option<u16> {
        self.value.first_chunk().map(|b| u16::from_be_bytes(*b))
    }

    /// The value as a number of four bytes in network order, if it is that long.
    pub fn be32(&self) -> Option<u32> {
        self.value.first_chunk().map(|b| u32::from_be_bytes(*b))
    }

    /// The value as a number of eight bytes in network order, if it is that long.
    pub fn be64(&self) -> Option<u64> {
        self.value.first_chunk().map(|b| u64::from_be_bytes(*b))
    }

    /// The value as text up to the first zero byte, if it is UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        let end = self.value.iter().position(|b| *b == 0);
        std::str::from_utf8(&self.value[..end.unwrap_or(self.value.len())]).ok()
    }

    /// The attributes inside.
    pub const fn nested(&self) -> Attrs<'a> {
        Attrs { rest: self.value }
    }
}

/// Iterates over attributes; ends at the first that is malformed.
#[derive(Clone, Copy, Debug)]
pub struct Attrs<'a> {
    rest: &'a [u8],
}

impl<'a> Attrs<'a> {
    /// Over the attributes in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that were not iterated over yet.
    pub const fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// The first attribute of type `kind`.
    pub fn find(mut self, kind: u16) -> Option<Attr<'a>> {
        Iterator::find(&mut self, |attr| attr.kind == kind)
    }
}

impl<'a> Iterator for Attrs<'a> {
    type Item = Attr<'a>;

    fn next(&mut self) -> Option<Attr<'a>> {
        let [l0, l1, t0, t1] = *self.rest.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = self.rest.get(4..len)?;
        self.rest = self.rest.get(aligned(len)..).unwrap_or_default();
        Some(Attr {
            kind: u16::from_ne_bytes([t0, t1]) & TYPE_MASK,
            value,
        })
    }
}
