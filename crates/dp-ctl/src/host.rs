//! Who has the datapaths.

use std::sync::Arc;

use base::Instant;
use dp_api::{Datapath, DumpedFlow, Error, FlowPut, FlowStats, PortSpec};
use dp_lang::{PortNo, Ufid};

/// Who has datapaths, and what has to happen beside a change of one.
pub trait Host {
    /// The types of datapaths that there can be.
    fn kinds(&self) -> Vec<String>;

    /// The names of the datapaths of type `kind`.
    ///
    /// # Errors
    /// They cannot be listed.
    fn names(&self, kind: &str) -> Result<Vec<String>, Error>;

    /// The datapath of that type and name.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    fn open(&self, kind: &str, name: &str) -> Result<Arc<dyn Datapath>, Error>;

    /// Makes a datapath.
    ///
    /// # Errors
    /// It is there, or cannot be made.
    fn create(&mut self, kind: &str, name: &str) -> Result<(), Error>;

    /// Removes a datapath.
    ///
    /// # Errors
    /// There is none, or it is in use.
    fn delete(&mut self, kind: &str, name: &str) -> Result<(), Error>;

    /// The time that flows' last use is told by.
    fn now(&self) -> Instant;

    /// The flows of a datapath, in the order in which they are shown.
    fn flows(&self, datapath: &Arc<dyn Datapath>) -> Vec<DumpedFlow> {
        flows_by_key(datapath)
    }

    /// One flow.
    ///
    /// # Errors
    /// As the datapath says.
    fn flow(&self, datapath: &Arc<dyn Datapath>, ufid: Ufid) -> Result<DumpedFlow, Error> {
        datapath.flow_get(ufid)
    }

    /// Installs or changes a flow.
    ///
    /// # Errors
    /// As the datapath says.
    fn flow_put(&mut self, datapath: &Arc<dyn Datapath>, put: FlowPut) -> Result<(), Error> {
        datapath.flow_put(put).map(|_| ())
    }

    /// Removes a flow; what it has counted.
    ///
    /// # Errors
    /// As the datapath says.
    fn flow_del(&mut self, datapath: &Arc<dyn Datapath>, ufid: Ufid) -> Result<FlowStats, Error> {
        datapath.flow_del(ufid)
    }

    /// Removes all flows.
    fn flow_flush(&mut self, datapath: &Arc<dyn Datapath>) {
        datapath.flow_flush();
    }

    /// Adds a port.
    ///
    /// # Errors
    /// As the datapath says.
    fn port_add(&mut self, datapath: &Arc<dyn Datapath>, spec: &PortSpec) -> Result<PortNo, Error> {
        datapath.port_add(spec)
    }

    /// Removes a port.
    ///
    /// # Errors
    /// As the datapath says.
    fn port_del(&mut self, datapath: &Arc<dyn Datapath>, port: PortNo) -> Result<(), Error> {
        datapath.port_del(port)
    }
}

/// All flows of a datapath, in the order of their keys.
pub fn flows_by_key(datapath: &Arc<dyn Datapath>) -> Vec<DumpedFlow> {
    let mut flows = Vec::new();
    datapath.flow_dump(&mut |flow| {
        flows.push(flow);
        true
    });
    flows.sort_by_cached_key(|flow| flow.key.clone());
    flows
}

/// Has no datapath: for commands that need none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDatapaths;

fn none(kind: &str) -> Error {
    Error::Unsupported(format!("datapath type {kind} is not supported"))
}

impl Host for NoDatapaths {
    fn kinds(&self) -> Vec<String> {
        Vec::new()
    }

    fn names(&self, kind: &str) -> Result<Vec<String>, Error> {
        Err(none(kind))
    }

    fn open(&self, kind: &str, _name: &str) -> Result<Arc<dyn Datapath>, Error> {
        Err(none(kind))
    }

    fn create(&mut self, kind: &str, _name: &str) -> Result<(), Error> {
        Err(none(kind))
    }

    fn delete(&mut self, kind: &str, _name: &str) -> Result<(), Error> {
        Err(none(kind))
    }

    fn now(&self) -> Instant {
        Instant::ZERO
    }
}
