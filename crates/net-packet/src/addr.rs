//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// An Ethernet (MAC) address, in transmission order.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EthAddr(pub [u8; 6]);

impl EthAddr {
    /// 00:00:00:00:00:00.
    pub const ZERO: Self = Self([0; 6]);
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether the group bit is set: multicast and broadcast.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether this is ff:ff:ff:ff:ff:ff.
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// Whether all octets are zero.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Whether the locally administered bit is set.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }

    /// Whether this is in 01:80:c2:00:00:00 to 01:80:c2:00:00:0f, which bridges do not
    /// forward (IEEE 802.1D-2004 section 7.12.6), or one of the other link-local
    /// protocols' groups that a switch keeps back unless it forwards BPDUs.
    pub fn is_reserved(self) -> bool {
        match self.0 {
            [0x01, 0x80, 0xc2, 0, 0, last] => last & 0xf0 == 0,
            [0x00, 0xe0, 0x2b, 0, 0, last] => matches!(last, 0 | 4 | 6),
            [0x01, 0x00, 0x0c, 0xcc, 0xcc, last] => {
                matches!(last, 0xcc | 0xcd | 0xc0..=0xc7)
            }
            [0x01, 0x00, 0x0c, 0xcd, 0xcd, 0xcd] | [0x01, 0x00, 0x0c, 0, 0, 0] => true,
            _ => false,
        }
    }

    /// The address as the low 48 bits of a number, first octet highest.
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// From the low 48 bits of `value`.
    pub const fn from_u64(value: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for EthAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for EthAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six hexadecimal octets separated by colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseEthAddrError;

impl fmt::Display for ParseEthAddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid Ethernet address")
    }
}

impl std::error::Error for ParseEthAddrError {}

impl FromStr for EthAddr {
    type Err = ParseEthAddrError;

    fn from_str(text: &str) -> Result<Self, ParseEthAddrError> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().ok_or(ParseEthAddrError)?;
            let hex = part.bytes().all(|b| b.is_ascii_hexdigit());
            if part.is_empty() || part.len() > 2 || !hex {
                return Err(ParseEthAddrError);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| ParseEthAddrError)?;
        }
        match parts.next() {
            None => Ok(Self(octets)),
            Some(_) => Err(ParseEthAddrError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_both_ways() {
        let addr: EthAddr = "50:54:00:00:00:0a".parse().unwrap();
        assert_eq!(addr.to_string(), "50:54:00:00:00:0a");
        assert_eq!(EthAddr::from_u64(addr.to_u64()), addr);
        for bad in [
            "",
            "1:2:3:4:5",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:+6",
            "001:2:3:4:5:6",
        ] {
            assert!(bad.parse::<EthAddr>().is_err(), "{bad}");
        }
    }
}
