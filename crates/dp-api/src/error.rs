//! Why a datapath refuses.

use std::fmt;

/// Why a datapath did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such port, flow or datapath.
    NotFound(String),
    /// It exists already.
    Exists(String),
    /// The request is malformed.
    Invalid(String),
    /// This datapath has no such capability.
    Unsupported(String),
    /// No more fit in.
    Full(String),
    /// The system refused; the number is the errno.
    System(i32, String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(what)
            | Self::Exists(what)
            | Self::Invalid(what)
            | Self::Unsupported(what)
            | Self::Full(what)
            | Self::System(_, what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}
