//! Geneve options in a datapath's key: the bytes of RFC 8926 section 3.5 as they are on the wire,
//! in the words of the tunnel metadata from the first on, with their length in
//! [`slot::TUN_OPTIONS_LEN`].

use net_flow::{FlowKey, FlowMask, slot};

/// Bytes of options at most.
pub const MAX_OPTIONS: usize = 256;

/// Length of an option without its data.
pub const OPTION_HEADER: usize = 4;

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneveOption<'a> {
    /// Its class.
    pub class: u16,
    /// Its type.
    pub kind: u8,
    /// The reserved bits and the length in units of four bytes.
    pub length_byte: u8,
    /// Its data.
    pub data: &'a [u8],
}

/// The options of a key.
pub fn options(key: &FlowKey) -> Vec<u8> {
    let len = (key.get(slot::TUN_OPTIONS_LEN) as usize).min(MAX_OPTIONS);
    bytes(key, len)
}

/// The bits that matter of the options of `key`.
pub fn options_mask(key: &FlowKey, mask: &FlowMask) -> Vec<u8> {
    let len = (key.get(slot::TUN_OPTIONS_LEN) as usize).min(MAX_OPTIONS);
    bytes(mask.as_key(), len)
}

fn bytes(key: &FlowKey, len: usize) -> Vec<u8> {
    let first = usize::from(slot::TUN_METADATA_WORD);
    let words = (0..len.div_ceil(8)).map(|i| key.word(first + i).to_be_bytes());
    let mut bytes = words.collect::<Vec<_>>().concat();
    bytes.truncate(len);
    bytes
}

fn set_bytes(bytes: &[u8], mut set_word: impl FnMut(usize, u64)) {
    for (i, chunk) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let index = usize::from(slot::TUN_METADATA_WORD) + i;
        set_word(index, u64::from_be_bytes(word));
    }
}

/// Replaces the options of a key; what exceeds [`MAX_OPTIONS`] is cut off.
pub fn set_options(key: &mut FlowKey, options: &[u8]) {
    let options = &options[..options.len().min(MAX_OPTIONS)];
    for i in 0..MAX_OPTIONS / 8 {
        key.set_word(usize::from(slot::TUN_METADATA_WORD) + i, 0);
    }
    key.set(slot::TUN_OPTIONS_LEN, options.len() as u128);
    set_bytes(options, |i, word| key.set_word(i, word));
}

/// Replaces the bits that matter of options; their number always matters.
pub fn set_options_mask(mask: &mut FlowMask, bits: &[u8]) {
    let bits = &bits[..bits.len().min(MAX_OPTIONS)];
    mask.set_exact(slot::TUN_OPTIONS_LEN);
    set_bytes(bits, |i, word| mask.set_word(i, word));
}

/// Makes the options of `key` matter as a whole.
pub fn exact_options(key: &FlowKey, mask: &mut FlowMask) {
    let len = (key.get(slot::TUN_OPTIONS_LEN) as usize).min(MAX_OPTIONS);
    if len > 0 {
        set_options_mask(mask, &vec![0xff; len]);
    }
}

/// Iterates over options; ends at the first that is cut short.
pub fn iter(mut bytes: &[u8]) -> impl Iterator<Item = GeneveOption<'_>> {
    std::iter::from_fn(move || {
        let [c0, c1, kind, length_byte] = *bytes.first_chunk::<OPTION_HEADER>()?;
        let end = OPTION_HEADER + usize::from(length_byte & 0x1f) * 4;
        let data = bytes.get(OPTION_HEADER..end)?;
        bytes = &bytes[end..];
        Some(GeneveOption {
            class: u16::from_be_bytes([c0, c1]),
            kind,
            length_byte,
            data,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stay_as_they_are() {
        let mut key = FlowKey::new();
        let bytes: Vec<u8> = (1..=20).collect();
        set_options(&mut key, &[9; 200]);
        set_options(&mut key, &bytes);
        assert_eq!(options(&key), bytes);
        set_options(&mut key, &[7; 300]);
        assert_eq!(options(&key), [7; MAX_OPTIONS]);
        set_options(&mut key, &[]);
        assert_eq!(key, FlowKey::new());
    }

    #[test]
    fn options_one_by_one() {
        let bytes = [0xff, 0xff, 0x80, 1, 0, 0, 0, 10, 0, 1, 2, 0, 9, 9, 9, 4, 1];
        let found: Vec<_> = iter(&bytes).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].class, found[0].kind), (0xffff, 0x80));
        assert_eq!(found[0].data, [0, 0, 0, 10]);
        assert_eq!((found[1].class, found[1].data.len()), (1, 0));
    }
}
