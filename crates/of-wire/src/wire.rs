//! Reading and writing big-endian bytes.

use crate::error::ErrorCode;

/// Reads from the front of a slice.  Every read checks the length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

/// The bytes ended too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short;

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What has not been read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Short> {
        let (head, tail) = self.bytes.split_at_checked(n).ok_or(Short)?;
        self.bytes = tail;
        Ok(head)
    }

    /// The next `n` bytes as a reader of their own.
    pub(crate) fn sub(&mut self, n: usize) -> Result<Self, Short> {
        self.take(n).map(Self::new)
    }

    pub(crate) fn skip(&mut self, n: usize) -> Result<(), Short> {
        self.take(n).map(|_| ())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (head, tail) = self.bytes.split_first_chunk::<N>().ok_or(Short)?;
        self.bytes = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|a| a[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_be_bytes)
    }

    /// The integer of the next `n` bytes, at most 16.
    pub(crate) fn uint(&mut self, n: usize) -> Result<u128, Short> {
        let bytes = self.take(n)?;
        Ok(bytes.iter().fold(0, |v, b| (v << 8) | u128::from(*b)))
    }

    /// Whether everything left is zero.
    pub(crate) fn all_zero(&self) -> bool {
        self.bytes.iter().all(|b| *b == 0)
    }
}

/// What a short read means where it happens.
pub(crate) trait OrCode<T> {
    fn or_code(self, code: ErrorCode) -> Result<T, ErrorCode>;
}

impl<T> OrCode<T> for Result<T, Short> {
    fn or_code(self, code: ErrorCode) -> Result<T, ErrorCode> {
        self.map_err(|Short| code)
    }
}

/// In a message, a short read is a bad length.
impl From<Short> for ErrorCode {
    fn from(_: Short) -> Self {
        Self::OfpbrcBadLen
    }
}

/// Appends big-endian bytes.
pub(crate) trait Put {
    fn u8(&mut self, value: u8);
    fn u16(&mut self, value: u16);
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    /// The low `n` bytes of `value`.
    fn uint(&mut self, value: u128, n: usize);
    fn zeros(&mut self, n: usize);
    /// Zeros up to a multiple of 8 bytes from `start`.
    fn pad8(&mut self, start: usize);
    /// Overwrites 16 bits.
    fn set_u16(&mut self, at: usize, value: u16);
    /// `text` in a field of `n` bytes, cut so that a zero follows.
    fn text(&mut self, text: &str, n: usize);
}

impl Put for Vec<u8> {
    fn u8(&mut self, value: u8) {
        self.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn uint(&mut self, value: u128, n: usize) {
        let bytes = value.to_be_bytes();
        self.extend_from_slice(&bytes[16 - n.min(16)..]);
    }

    fn zeros(&mut self, n: usize) {
        self.resize(self.len() + n, 0);
    }

    fn pad8(&mut self, start: usize) {
        let len = self.len() - start;
        self.zeros(len.next_multiple_of(8) - len);
    }

    fn set_u16(&mut self, at: usize, value: u16) {
        self[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn text(&mut self, text: &str, n: usize) {
        let bytes = &text.as_bytes()[..text.len().min(n - 1)];
        self.extend_from_slice(bytes);
        self.zeros(n - bytes.len());
    }
}

/// The text in a field of bytes: up to the first zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
