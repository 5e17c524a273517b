//! `ct(...)`, `nat(...)`.

use std::net::IpAddr;

use crate::action::Action;
use net_flow::Subfield;

/// Where a connection's zone comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CtZone {
    /// A constant.
    Constant(u16),
    /// From the packet.
    Field(Subfield),
}

/// `ct(...)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ct {
    /// Remember the connection.
    pub commit: bool,
    /// Replace a connection of the other direction.
    pub force: bool,
    /// The zone.
    pub zone: CtZone,
    /// Table in which the packet goes on once tracked; `None` for no recirculation.
    pub table: Option<u8>,
    /// L4 port of the application helper: 21 for FTP, 69 for TFTP, 0 for none.
    pub alg: u16,
    /// Address translation, and writes of `ct_mark` and `ct_label`.
    pub actions: Vec<Action>,
}

/// Addresses and ports to translate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NatRange {
    /// First address; `None` leaves addresses alone.
    pub addr_min: Option<IpAddr>,
    /// Last address; `None` for just the first.
    pub addr_max: Option<IpAddr>,
    /// First port, 0 for any.
    pub port_min: u16,
    /// Last port, 0 for just the first.
    pub port_max: u16,
}

/// `nat(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nat {
    /// `NX_NAT_F_*`: 1 source, 2 destination, 4 persistent, 8 hash, 16 random.
    pub flags: u16,
    /// What to translate to.
    pub range: NatRange,
}
