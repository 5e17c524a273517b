//! OpenFlow errors: their names, and their numbers in each version.

mod table;

use std::fmt;

pub use table::ErrorCode;
use table::{ALL, ERRORS};

use crate::version::Version;

/// Experimenter id of Nicira.
pub const NX_VENDOR: u32 = 0x2320;
/// Experimenter id of the Open Networking Foundation.
pub const ONF_VENDOR: u32 = 0x4f4e_4600;

/// An error's number in a range of versions.
#[derive(Debug)]
struct CodePoint {
    experimenter: u32,
    first: u8,
    last: u8,
    ty: u16,
    code: u16,
}

/// An error's number in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorNumber {
    /// The experimenter whose error it is, 0 for OpenFlow's own.
    pub experimenter: u32,
    /// The type; of an experimenter's error in OpenFlow 1.2 and later, its number.
    pub ty: u16,
    /// The code in the type; 0 for an experimenter's error in OpenFlow 1.2 and later.
    pub code: u16,
}

impl ErrorCode {
    /// Its name, such as `OFPBMC_BAD_PREREQ`.
    pub fn name(self) -> &'static str {
        ERRORS[self as usize].0
    }

    /// The error with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|code| code.name() == name)
    }

    /// Its number in `version`, if that version can say it.
    pub fn number(self, version: Version) -> Option<ErrorNumber> {
        let wire = version as u8;
        let points = ERRORS[self as usize].1;
        let point = points.iter().find(|p| (p.first..=p.last).contains(&wire))?;
        Some(ErrorNumber {
            experimenter: point.experimenter,
            ty: point.ty,
            code: point.code,
        })
    }

    /// The error that has this number in `version`.
    pub fn from_number(version: Version, number: ErrorNumber) -> Option<Self> {
        let same = |code: &Self| code.number(version) == Some(number);
        ALL.iter().copied().find(same)
    }

    /// Whether this is a mismatch that ends the handshake (`OFPET_HELLO_FAILED`).
    pub const fn is_hello_failure(self) -> bool {
        matches!(self, Self::OfphfcIncompatible | Self::OfphfcEperm)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for ErrorCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_except_the_shared_ones() {
        for version in Version::ALL {
            for code in ALL {
                let Some(number) = code.number(version) else {
                    continue;
                };
                let back = ErrorCode::from_number(version, number).unwrap();
                let shared = [ErrorCode::OfpbrcIsSecondary, ErrorCode::OfpbicBadExpType];
                assert!(back == *code || shared.contains(code), "{code} {back}");
            }
        }
    }

    #[test]
    fn names_read_back() {
        for code in ALL {
            assert_eq!(ErrorCode::by_name(code.name()), Some(*code));
        }
    }
}
