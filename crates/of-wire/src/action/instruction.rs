//! Instructions (OpenFlow 1.1 and later).

/// `write_metadata:VALUE/MASK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriteMetadata {
    /// The value.
    pub value: u64,
    /// The bits that are written.
    pub mask: u64,
}
