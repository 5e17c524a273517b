//! The datapath's language: ports, flow ids, actions and the key attributes that they
//! set, as values.  It knows no OpenFlow: port numbers are the datapath's own.
#![forbid(unsafe_code)]

pub mod action;
pub mod attr;
pub mod connection;
pub mod exec;
mod features;
pub mod ids;
pub mod netlink;
mod set;
pub mod text;
pub mod tunnel;

pub use action::{Action, Controller, Ct, Nat, SetField, SlowPath, UserCookie, Userspace};
pub use attr::KeyAttr;
pub use connection::{Connection, CtLimit};
pub use exec::{Effects, InFlight, Missing, execute, find_stateful};
pub use features::Features;
pub use ids::{PortNo, Ufid};
