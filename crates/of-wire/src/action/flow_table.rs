//! Actions that concern flow tables and rules.

use net_flow::PortNo;

/// `resubmit(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resubmit {
    /// The input port to look up with; `PortNo::IN_PORT` leaves it.
    pub in_port: PortNo,
    /// The table; 255 is the table of the rule itself.
    pub table: u8,
    /// Look up with the connection's original direction in the packet's place.
    pub with_ct_orig: bool,
}

/// `fin_timeout(...)`, in seconds, 0 for no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FinTimeout {
    /// New idle timeout.
    pub idle: u16,
    /// New hard timeout.
    pub hard: u16,
}

/// `conjunction(ID,CLAUSE/N)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conjunction {
    /// The conjunctive match.
    pub id: u32,
    /// Which dimension this rule is, from 0.
    pub clause: u8,
    /// How many dimensions there are.
    pub n_clauses: u8,
}
