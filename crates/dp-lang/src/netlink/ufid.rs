//! Flow ids as bytes.

use crate::Ufid;

/// The bytes of an id: its four 32-bit parts from the first printed on, each in this machine's
/// order, as Open vSwitch keeps them.  So both print an id alike.
pub fn ufid_to_bytes(ufid: Ufid) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (i, part) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *part = ((ufid.0 >> (96 - 32 * i)) as u32).to_ne_bytes();
    }
    bytes
}

/// The id that [`ufid_to_bytes`] wrote.
pub fn ufid_from_bytes(bytes: &[u8; 16]) -> Ufid {
    let parts = bytes.as_chunks::<4>().0.iter();
    Ufid(parts.fold(0, |id, part| {
        id << 32 | u128::from(u32::from_ne_bytes(*part))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_words_in_this_machines_order() {
        let ufid = Ufid(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        let bytes = ufid_to_bytes(ufid);
        assert_eq!(bytes[..4], 0x0123_4567_u32.to_ne_bytes());
        assert_eq!(bytes[12..], 0x4455_6677_u32.to_ne_bytes());
        assert_eq!(ufid_from_bytes(&bytes), ufid);
    }
}
