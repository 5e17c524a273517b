//! `encap` and `decap`.

/// `encap(HEADER)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Encap {
    /// Packet type of the new header: namespace in the upper, type in the lower 16 bits.
    pub packet_type: u32,
    /// Properties of the new header.
    pub props: Box<[EncapProp]>,
}

/// A property of a new header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncapProp {
    /// `OFPPPC_*`: 4 is NSH.
    pub class: u16,
    /// Its kind in the class: for NSH, 1 is the metadata type, 2 a TLV.
    pub kind: u8,
    /// Its value.
    pub value: Box<[u8]>,
}

/// `decap()`, `decap(packet_type(...))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decap {
    /// Packet type of what is inside; 0xfffe when the packet itself says.
    pub packet_type: u32,
}

impl Decap {
    /// The new packet type that stands for "as the packet says".
    pub const USE_NEXT_PROTO: u32 = 0xfffe;
}
