//! What the switch asks of a datapath.

use std::fmt;
use std::sync::Arc;

use base::Instant;
use dp_lang::{Action, Features, PortNo, Ufid};
use net_dev::Device;
use net_flow::{FlowKey, MiniKey};

use crate::conntrack::Conntrack;
use crate::error::Error;
use crate::upcall::{Dispatch, UpcallHandler};

/// A port to be added.
#[derive(Clone, Debug, Default)]
pub struct PortSpec {
    /// Name of the device.
    pub name: String,
    /// Type of the device: `system`, `internal`, `dummy` and so on.
    pub kind: String,
    /// The number it should get, if it is free.
    pub number: Option<PortNo>,
    /// Options of its type.
    pub options: Vec<(String, String)>,
}

/// A port of a datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// Its number.
    pub number: PortNo,
    /// Name of the device.
    pub name: String,
    /// Type of the device.
    pub kind: String,
}

/// What a port has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that could not be sent.
    pub tx_dropped: u64,
    /// Send errors.
    pub tx_errors: u64,
}

/// What became of packets for the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpcallCounts {
    /// Packets that the switch took.
    pub taken: u64,
    /// Packets that it had no time for.
    pub lost: u64,
}

/// What a datapath has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatapathStats {
    /// Packets that met a flow.
    pub hits: u64,
    /// Packets that met none.
    pub misses: u64,
    /// Packets that were lost on the way to the switch.
    pub lost: u64,
    /// Flows installed.
    pub flows: u64,
    /// Distinct masks of those flows.
    pub masks: u64,
    /// Subtables or masks that were looked at.
    pub mask_hits: u64,
    /// Entries of the cache of masks, if there is one whose size is known.
    pub masks_cache_size: Option<u32>,
    /// Packets that met the exact-match cache, if that is counted.
    pub cache_hits: Option<u64>,
}

/// What a flow has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// When the last packet came.
    pub used: Option<Instant>,
    /// The TCP flags seen, or-ed.
    pub tcp_flags: u16,
}

/// A flow to be installed or replaced.
#[derive(Clone, Debug)]
pub struct FlowPut {
    /// Its id; computed from key and mask if none is given.
    pub ufid: Option<Ufid>,
    /// The key of the packet that it was made for; only what is under its mask matters.
    pub key: MiniKey,
    /// Its mask.
    pub mask: MiniKey,
    /// What it does.
    pub actions: Arc<[Action]>,
    /// May replace a flow with the same id; otherwise that is an error.
    pub replace: bool,
    /// A flow that is replaced begins to count anew.
    pub zero_stats: bool,
}

/// A flow as it is dumped.
#[derive(Clone, Debug)]
pub struct DumpedFlow {
    /// Its id.
    pub ufid: Ufid,
    /// Its key under its mask.
    pub key: MiniKey,
    /// Its mask.
    pub mask: MiniKey,
    /// What it does.
    pub actions: Arc<[Action]>,
    /// What it has counted.
    pub stats: FlowStats,
}

/// A packet to be sent through actions.
#[derive(Clone, Debug)]
pub struct Execute {
    /// The packet, from its first header on.
    pub packet: Vec<u8>,
    /// Its key and metadata.
    pub key: FlowKey,
    /// What is done to it.
    pub actions: Arc<[Action]>,
}

/// A datapath: ports, flows, packets.  All calls may come from any thread, and return
/// when what they ask is in force.
pub trait Datapath: Send + Sync {
    /// Its type: `netdev`, `system`, `dummy`.
    fn kind(&self) -> &str;

    /// Its name, such as `ovs-netdev`.
    fn name(&self) -> &str;

    /// What it can do; this does not change.
    fn features(&self) -> Features;

    /// Whether this process forwards the packets: dumps then say whose thread has a flow.
    fn is_userspace(&self) -> bool {
        false
    }

    /// Hands packets without a flow to `handler` from now on.
    fn set_handler(&self, handler: Arc<dyn UpcallHandler>);

    /// Adds a port.
    ///
    /// # Errors
    /// The device cannot be opened, or the number or name is taken.
    fn port_add(&self, spec: &PortSpec) -> Result<PortNo, Error>;

    /// Removes a port, with the device if this datapath made it.
    ///
    /// # Errors
    /// There is no such port.
    fn port_del(&self, port: PortNo) -> Result<(), Error>;

    /// Changes a port's options in place.
    ///
    /// # Errors
    /// There is no such port, or the device refuses.
    fn port_set(&self, port: PortNo, options: &[(String, String)]) -> Result<(), Error>;

    /// The ports, by number.
    fn ports(&self) -> Vec<PortInfo>;

    /// The device behind a port: its state, counters and settings.
    ///
    /// # Errors
    /// There is no such port.
    fn port_device(&self, port: PortNo) -> Result<Arc<dyn Device>, Error>;

    /// What a port has counted.
    ///
    /// # Errors
    /// There is no such port.
    fn port_stats(&self, port: PortNo) -> Result<PortStats, Error>;

    /// Installs or replaces a flow.
    ///
    /// # Errors
    /// It exists and may not be replaced, an action is not there, or no more fit in.
    fn flow_put(&self, flow: FlowPut) -> Result<Ufid, Error>;

    /// Removes a flow and returns what it had counted.
    ///
    /// # Errors
    /// There is no such flow.
    fn flow_del(&self, ufid: Ufid) -> Result<FlowStats, Error>;

    /// Removes flows as [`Datapath::flow_del`] does, by as few calls of the kernel as possible, and
    /// tells `visit` of each what it had counted.
    fn flow_del_all(&self, ufids: &[Ufid], visit: &mut dyn FnMut(Ufid, Result<FlowStats, Error>)) {
        for ufid in ufids {
            visit(*ufid, self.flow_del(*ufid));
        }
    }

    /// One flow.
    ///
    /// # Errors
    /// There is no such flow.
    fn flow_get(&self, ufid: Ufid) -> Result<DumpedFlow, Error>;

    /// Removes every flow.
    fn flow_flush(&self);

    /// Hands every flow to `visit`, in no order, until it returns false.
    fn flow_dump(&self, visit: &mut dyn FnMut(DumpedFlow) -> bool);

    /// Hands what every flow has counted to `visit`, in no order.
    fn flow_counts(&self, visit: &mut dyn FnMut(Ufid, &FlowStats)) {
        self.flow_dump(&mut |flow| {
            visit(flow.ufid, &flow.stats);
            true
        });
    }

    /// Sends a packet through actions.
    ///
    /// # Errors
    /// An action is not there.
    fn execute(&self, execute: Execute) -> Result<(), Error>;

    /// Serves the ports that no thread can wait for, such as dummies, at `now`; the main loop
    /// calls it in each round.  Returns whether there was a packet.
    fn run(&self, now: Instant) -> bool;

    /// Looks at so many VLAN tags of a packet from now on (`other_config:vlan-limit`); 0 is as many as a key has
    /// room for.  A datapath begins with one.
    fn set_vlan_limit(&self, limit: u8);

    /// Chooses how packets for the switch come to it (`other_config:upcall-dispatch`); without
    /// meaning where there is no kernel in between.
    fn set_dispatch(&self, _dispatch: Dispatch) {}

    /// How packets for the switch come to it at the moment, for those who look; nothing where there
    /// is no kernel in between.
    fn dispatch_mode(&self) -> Option<String> {
        None
    }

    /// What became of a port's packets for the switch, where they are told apart.
    fn upcalls(&self, _port: PortNo) -> Option<UpcallCounts> {
        None
    }

    /// Removes ports that were there when the datapath was opened and that nobody has added since;
    /// their names.
    fn remove_leftovers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Removes the datapath for good, with its ports and flows, where it would outlive the process.
    fn destroy(&self) {}

    /// Returns when every packet that a thread was working on when this was called is done.
    fn quiesce(&self);

    /// What it has counted.
    fn stats(&self) -> DatapathStats;

    /// Changes the number of entries of its cache of masks, if its [`stats`](Self::stats) tell of one.
    ///
    /// # Errors
    /// It has none, or cannot be made so large.
    fn set_masks_cache_size(&self, _size: u32) -> Result<(), Error> {
        Err(Error::Unsupported("there is no cache of masks".to_owned()))
    }

    /// Its connection tracker, if it has one.
    fn conntrack(&self) -> Option<&dyn Conntrack> {
        None
    }
}

impl fmt::Debug for dyn Datapath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kind(), self.name())
    }
}
