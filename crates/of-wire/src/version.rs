//! OpenFlow versions, sets of them, and flow formats.

use std::fmt;

use net_flow::Formats;

/// An OpenFlow version by its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.0.
    V10 = 1,
    /// OpenFlow 1.1.
    V11 = 2,
    /// OpenFlow 1.2.
    V12 = 3,
    /// OpenFlow 1.3.
    V13 = 4,
    /// OpenFlow 1.4.
    V14 = 5,
    /// OpenFlow 1.5.
    V15 = 6,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V10,
        Self::V11,
        Self::V12,
        Self::V13,
        Self::V14,
        Self::V15,
    ];

    /// From the number on the wire.
    pub fn from_wire(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|v| *v as u8 == number)
    }

    /// The name that options and the database use: `OpenFlow13`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V10 => "OpenFlow10",
            Self::V11 => "OpenFlow11",
            Self::V12 => "OpenFlow12",
            Self::V13 => "OpenFlow13",
            Self::V14 => "OpenFlow14",
            Self::V15 => "OpenFlow15",
        }
    }

    /// From a name: `OpenFlow13`, `OpenFlow1.3` in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let number = name.get(..8).filter(|s| s.eq_ignore_ascii_case("openflow"));
        let digits: String = name[number?.len()..]
            .chars()
            .filter(|c| *c != '.')
            .collect();
        Self::ALL.into_iter().find(|v| v.name()[8..] == digits)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of OpenFlow versions: bit `n` stands for wire number `n`, as in the bitmap of
/// a hello message (OpenFlow 1.3.1, section A.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct VersionSet(pub u32);

impl VersionSet {
    /// No version.
    pub const NONE: Self = Self(0);
    /// OpenFlow 1.0 to 1.5.
    pub const ALL: Self = Self(0x7e);

    /// The set of just `version`.
    pub const fn only(version: Version) -> Self {
        Self(1 << version as u8)
    }

    /// The versions up to wire number `highest`: what a hello without bitmap offers.
    pub const fn up_to(highest: u8) -> Self {
        if highest >= 31 {
            Self(!1)
        } else {
            Self(((1 << (highest + 1)) - 1) & !1)
        }
    }

    /// Whether `version` is in the set.
    pub const fn contains(self, version: Version) -> bool {
        self.0 & (1 << version as u8) != 0
    }

    /// Adds `version`.
    pub const fn insert(&mut self, version: Version) {
        self.0 |= 1 << version as u8;
    }

    /// The versions in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The newest known version in the set.
    pub fn highest(self) -> Option<Version> {
        let known = Version::ALL.into_iter().rev();
        known.into_iter().find(|v| self.contains(*v))
    }

    /// The wire number of the newest version in the set, known or not.
    pub const fn highest_wire(self) -> Option<u8> {
        if self.0 == 0 {
            None
        } else {
            Some(31 - self.0.leading_zeros() as u8)
        }
    }

    /// From a list of names with commas or spaces: `OpenFlow10,OpenFlow13`.  The error is
    /// the name that is no version.
    pub fn from_names(names: &str) -> Result<Self, String> {
        let mut set = Self::NONE;
        for name in names.split([',', ' ']).filter(|s| !s.is_empty()) {
            set.insert(Version::from_name(name).ok_or_else(|| name.to_owned())?);
        }
        Ok(set)
    }
}

impl FromIterator<Version> for VersionSet {
    fn from_iter<T: IntoIterator<Item = Version>>(iter: T) -> Self {
        let mut set = Self::NONE;
        for version in iter {
            set.insert(version);
        }
        set
    }
}

/// The formats of `version`.
pub const fn formats_of(version: Version) -> Formats {
    match version {
        Version::V10 => Formats::OF10_ANY,
        Version::V11 => Formats::OF11_STD,
        Version::V12 => Formats::OF12_OXM,
        Version::V13 => Formats::OF13_OXM,
        Version::V14 => Formats::OF14_OXM,
        Version::V15 => Formats::OF15_OXM,
    }
}

/// The formats of all versions in `versions`.
pub fn formats_of_all(versions: VersionSet) -> Formats {
    let known = Version::ALL.into_iter().filter(|v| versions.contains(*v));
    known.fold(Formats::empty(), |set, v| set | formats_of(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_versions_read_back() {
        for version in Version::ALL {
            assert_eq!(Version::from_name(version.name()), Some(version));
        }
        assert_eq!(Version::from_name("OpenFlow1.3"), Some(Version::V13));
        assert_eq!(Version::from_name("OpenFlow"), None);
        assert_eq!(Version::from_name("x"), None);
        let set = VersionSet::from_names("OpenFlow10,OpenFlow13").unwrap();
        assert_eq!((set.0, set.highest()), (0b1_0010, Some(Version::V13)));
        assert_eq!(VersionSet::from_names("OpenFlow10,foo"), Err("foo".into()));
    }

    #[test]
    fn a_hello_without_bitmap_offers_all_older_versions() {
        assert_eq!(VersionSet::up_to(4).0, 0b1_1110);
        assert_eq!(VersionSet::up_to(255).highest_wire(), Some(31));
    }
}
