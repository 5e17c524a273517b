//! Internet checksums (RFC 1071), whole and incremental (RFC 1624).

/// A sum of 16-bit words in one's complement arithmetic, of which the complement is a checksum.
///
/// Words are added in this machine's order, which one's complement allows; the bytes are put in
/// network order when the sum is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Self = Self(0);

    /// Adds `data`, which begins at an even offset of what is summed; an odd last byte is padded with
    /// zero.
    #[must_use]
    pub fn with(self, data: &[u8]) -> Self {
        let mut lanes = [0u64; 8];
        let (blocks, rest) = data.as_chunks::<32>();
        for block in blocks {
            for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<4>().0) {
                *lane += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let (words, tail) = rest.as_chunks::<2>();
        let mut sum = 0u64;
        for word in words {
            sum += u64::from(u16::from_ne_bytes(*word));
        }
        if let [last] = tail {
            sum += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        for lane in lanes {
            sum += (lane & 0xffff_ffff) + (lane >> 32);
        }
        Self(fold32(self.0) + fold32(sum))
    }

    /// Adds one 16-bit word.
    #[must_use]
    pub fn with_u16(self, word: u16) -> Self {
        Self(fold32(self.0) + u64::from(u16::from_ne_bytes(word.to_be_bytes())))
    }

    /// Takes a checksum that stands in a packet as a sum: the complement of the checksum.
    pub fn of_checksum(checksum: u16) -> Self {
        Self::ZERO.with_u16(!checksum)
    }

    /// Replaces `old` by `new`, of which both begin at even offsets and have an even length.
    #[must_use]
    pub fn replace(self, old: &[u8], new: &[u8]) -> Self {
        let gone = Self::ZERO.with(old).folded_ne();
        Self(fold32(self.0) + u64::from(!gone)).with(new)
    }

    fn folded_ne(self) -> u16 {
        let sum = fold32(self.0);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// The sum itself, folded to 16 bits.
    pub fn folded(self) -> u16 {
        u16::from_be_bytes(self.folded_ne().to_ne_bytes())
    }

    /// The checksum: the complement of the sum.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// At most 33 bits, congruent to `sum` in one's complement.
fn fold32(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

/// The Internet checksum of `data`.
pub fn checksum(data: &[u8]) -> u16 {
    Sum::ZERO.with(data).checksum()
}

/// The sum of the pseudo-header of IPv4 (RFC 793): `addresses` are source and destination, eight
/// bytes; `len` is the length of the transport header and its payload.
pub fn pseudo_header4(addresses: &[u8], protocol: u8, len: usize) -> Sum {
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    let sum = Sum::ZERO.with(addresses).with_u16(u16::from(protocol));
    sum.with_u16(len)
}

/// The sum of the pseudo-header of IPv6 (RFC 8200 section 8.1): `addresses` are source and
/// destination, 32 bytes; `len` is the length of the transport header and its payload.
pub fn pseudo_header6(addresses: &[u8], protocol: u8, len: usize) -> Sum {
    let len = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
    let sum = Sum::ZERO.with(addresses).with(&len);
    sum.with_u16(u16::from(protocol))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 by the letter.
    fn slow(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([pair[0], low]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn an_ipv4_header() {
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8,
            0, 0xc7,
        ];
        assert_eq!(checksum(&header), 0);
        let without = [&header[..10], &[0, 0], &header[12..]].concat();
        assert_eq!(checksum(&without), 0xb861);
    }

    #[test]
    fn all_ones_of_the_largest_size() {
        let data = vec![0xff; 65535 * 2];
        assert_eq!(checksum(&data), slow(&data));
    }

    proptest! {
        #[test]
        fn agrees_with_its_slow_twin(data in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(checksum(&data), slow(&data));
        }

        #[test]
        fn a_replacement_is_as_good_as_a_new_sum(
            mut data in proptest::collection::vec(1u8.., 40..80),
            new: [u8; 8],
            at in 0usize..16,
        ) {
            let before = checksum(&data);
            let place = &mut data[2 * at..2 * at + 8];
            let sum = Sum::of_checksum(before).replace(place, &new);
            place.copy_from_slice(&new);
            prop_assert_eq!(sum.checksum(), slow(&data));
        }
    }
}
