//! OpenFlow port numbers.

use std::fmt;

/// An OpenFlow port number as OpenFlow 1.1 and later have it: 32 bits, the reserved
/// ports at the top.  This is also what `slot::IN_PORT` holds in OpenFlow matches.
///
/// OpenFlow 1.0 has 16 bits: its number is the low half, which is why ports from
/// 0xff00 up that are not reserved do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PortNo(pub u32);

impl PortNo {
    /// One more than the largest number that a port can have.
    pub const MAX: Self = Self(0xff00);
    /// Not a port of any message: the action set has no output.
    pub const UNSET: Self = Self(0xffff_fff7);
    /// Send back out of the port on which the packet came.
    pub const IN_PORT: Self = Self(0xffff_fff8);
    /// Look up in the flow tables from the start (packet-out only).
    pub const TABLE: Self = Self(0xffff_fff9);
    /// Forward as a plain switch does.
    pub const NORMAL: Self = Self(0xffff_fffa);
    /// All ports but the input port and those with flooding off.
    pub const FLOOD: Self = Self(0xffff_fffb);
    /// All ports but the input port.
    pub const ALL: Self = Self(0xffff_fffc);
    /// Send to the controller.
    pub const CONTROLLER: Self = Self(0xffff_fffd);
    /// The bridge's own port.
    pub const LOCAL: Self = Self(0xffff_fffe);
    /// No port; `OFPP_ANY` in OpenFlow 1.1 and later, `OFPP_NONE` before.
    pub const NONE: Self = Self(0xffff_ffff);

    const RESERVED: [(Self, &'static str); 10] = [
        (Self::IN_PORT, "IN_PORT"),
        (Self::TABLE, "TABLE"),
        (Self::NORMAL, "NORMAL"),
        (Self::FLOOD, "FLOOD"),
        (Self::ALL, "ALL"),
        (Self::CONTROLLER, "CONTROLLER"),
        (Self::LOCAL, "LOCAL"),
        (Self::NONE, "ANY"),
        (Self::NONE, "NONE"),
        (Self::UNSET, "UNSET"),
    ];

    /// From the 16-bit number of OpenFlow 1.0.
    pub const fn from_of10(number: u16) -> Self {
        if number >= 0xff00 {
            Self(0xffff_0000 | number as u32)
        } else {
            Self(number as u32)
        }
    }

    /// From the 32-bit number of OpenFlow 1.1 and later; `None` if no port has it.
    pub const fn from_of11(number: u32) -> Option<Self> {
        if number < 0xff00 || number >= 0xffff_ff00 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The 16-bit number of OpenFlow 1.0.
    pub const fn to_of10(self) -> u16 {
        self.0 as u16
    }

    /// Whether it is a number that an actual port may have (`LOCAL` apart).
    pub const fn is_physical(self) -> bool {
        self.0 < 0xff00
    }

    /// The name of a reserved port.
    pub fn reserved_name(self) -> Option<&'static str> {
        let entry = Self::RESERVED.iter().find(|(port, _)| *port == self);
        entry.map(|(_, name)| *name)
    }

    /// The reserved port with that name, in any case.
    pub fn from_reserved_name(name: &str) -> Option<Self> {
        let same = |entry: &&(Self, &str)| entry.1.eq_ignore_ascii_case(name);
        Self::RESERVED.iter().find(same).map(|(port, _)| *port)
    }
}

/// Prints the reserved name, or the number as OpenFlow 1.0 has it.
impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reserved_name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.to_of10()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_have_one_number_in_both_versions() {
        assert_eq!(PortNo::from_of10(0xfffe), PortNo::LOCAL);
        assert_eq!(PortNo::LOCAL.to_of10(), 0xfffe);
        assert_eq!(PortNo::from_of11(0xff00), None);
        assert_eq!(PortNo::from_of10(1), PortNo(1));
    }

    #[test]
    fn names_read_back() {
        for name in ["LOCAL", "in_port", "Flood"] {
            let port = PortNo::from_reserved_name(name).unwrap();
            assert!(port.to_string().eq_ignore_ascii_case(name));
        }
        assert_eq!(PortNo::NONE.to_string(), "ANY");
        assert_eq!(PortNo(5).to_string(), "5");
    }
}
