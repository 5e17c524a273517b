//! The datapath seam: what the switch asks of a datapath, and what a datapath asks of the
//! switch.  Every datapath (userspace, kernel, the reference one in tests) implements
//! [`Datapath`]; the switch implements [`UpcallHandler`].
#![forbid(unsafe_code)]

pub mod conntrack;
pub mod datapath;
pub mod error;
pub mod upcall;

pub use conntrack::Conntrack;
pub use datapath::{
    Datapath, DatapathStats, DumpedFlow, Execute, FlowPut, FlowStats, PortInfo, PortSpec,
    PortStats, UpcallCounts,
};
pub use error::Error;
pub use upcall::{Dispatch, NewFlow, Upcall, UpcallHandler, UpcallKind, flow_mask};
