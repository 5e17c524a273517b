//! Why a translation failed; its packets are dropped.

use std::fmt;

/// Why a translation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XlateError {
    /// The bridge of the packet is gone.
    BridgeNotFound,
    /// Tables, clones and bridges are nested too deep.
    RecursionTooDeep,
    /// Too many table lookups.
    TooManyResubmits,
    /// Too much is on the stack of `push`.
    StackTooDeep,
    /// The packet was recirculated, and its state is gone.
    NoRecirculationContext,
    /// A recirculated packet was to be sent through other actions than those it left with.
    RecirculationConflict,
    /// The packet has, or would have, more MPLS labels than a key has room for.
    TooManyMplsLabels,
    /// The port that received the packet does not forward (spanning tree).  The packet is
    /// dropped, and that is no error.
    ForwardingDisabled,
    /// The packet met congestion in its tunnel and is not made for that (RFC 6040).  It is
    /// dropped, and that is no error.
    Congestion,
    /// An action that this version does not carry out.
    UnsupportedAction(&'static str),
}

impl XlateError {
    /// Whether it only says that the packet is dropped.
    pub(crate) const fn is_plain_drop(self) -> bool {
        matches!(self, Self::ForwardingDisabled | Self::Congestion)
    }
}

impl fmt::Display for XlateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BridgeNotFound => "Bridge not found",
            Self::RecursionTooDeep => "Recursion too deep",
            Self::TooManyResubmits => "Too many resubmits",
            Self::StackTooDeep => "Stack too deep",
            Self::NoRecirculationContext => "No recirculation context",
            Self::RecirculationConflict => "Recirculation conflict",
            Self::TooManyMplsLabels => "Too many MPLS labels",
            Self::ForwardingDisabled => "Forwarding is disabled",
            Self::Congestion => "Congestion Drop",
            Self::UnsupportedAction(name) => return write!(f, "Unsupported action {name}"),
        })
    }
}

impl std::error::Error for XlateError {}
