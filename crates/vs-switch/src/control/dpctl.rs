//! `dpctl/*`: datapaths as they are, whatever bridges are on them.

use std::sync::Arc;

use base::Instant;
use dp_api::{Datapath, DumpedFlow, Error, FlowPut, FlowStats, PortSpec};
use dp_ctl::{Caller, Command, Host, Options, flows_by_key};
use dp_lang::{PortNo, Ufid};

use crate::backer::Backer;
use crate::switch::Switch;

/// The kernel's number for "Device or resource busy".
const EBUSY: i32 = 16;

/// The switch as the owner of datapaths: of those that bridges are on, and of those that
/// were made past all bridges.
struct Owner<'a> {
    switch: &'a mut Switch,
    now: Instant,
}

impl Owner<'_> {
    /// What the switch keeps for a datapath, if bridges are on it.
    fn backer(&self, datapath: &Arc<dyn Datapath>) -> Option<&Backer> {
        let mut backers = self.switch.backers.values();
        backers.find(|backer| Arc::ptr_eq(&backer.datapath, datapath))
    }

    fn backer_mut(&mut self, datapath: &Arc<dyn Datapath>) -> Option<&mut Backer> {
        let mut backers = self.switch.backers.values_mut();
        backers.find(|backer| Arc::ptr_eq(&backer.datapath, datapath))
    }
}

fn busy(what: &str) -> Error {
    Error::System(EBUSY, format!("{what} is in use by a bridge"))
}

impl Host for Owner<'_> {
    fn kinds(&self) -> Vec<String> {
        self.switch.env.datapath_kinds()
    }

    fn names(&self, kind: &str) -> Result<Vec<String>, Error> {
        let all = self.switch.datapaths();
        let of_kind = all.filter(|datapath| datapath.kind() == kind);
        let mut names: Vec<String> = of_kind.map(|d| d.name().to_owned()).collect();
        names.sort();
        Ok(names)
    }

    fn open(&self, kind: &str, name: &str) -> Result<Arc<dyn Datapath>, Error> {
        let mut all = self.switch.datapaths();
        let found = all.find(|d| d.kind() == kind && d.name() == name);
        found.ok_or_else(|| Error::NotFound(format!("no datapath {kind}@{name}")))
    }

    fn create(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        if self.open(kind, name).is_ok() {
            return Err(Error::Exists(format!("datapath {kind}@{name} exists")));
        }
        let datapath = self.switch.env.create_datapath(kind, name)?;
        self.switch.spare_datapaths.push(datapath);
        Ok(())
    }

    fn delete(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        let datapath = self.open(kind, name)?;
        if self.backer(&datapath).is_some() {
            return Err(busy(name));
        }
        let spare = &mut self.switch.spare_datapaths;
        spare.retain(|other| !Arc::ptr_eq(other, &datapath));
        Ok(())
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn flows(&self, datapath: &Arc<dyn Datapath>) -> Vec<DumpedFlow> {
        match self.backer(datapath) {
            Some(backer) => backer.flows(),
            None => flows_by_key(datapath),
        }
    }

    fn flow_put(&mut self, datapath: &Arc<dyn Datapath>, put: FlowPut) -> Result<(), Error> {
        datapath.flow_put(put)?;
        let now = self.now;
        if let Some(backer) = self.backer_mut(datapath) {
            backer.revalidator.wake(now);
        }
        Ok(())
    }

    fn flow_del(&mut self, datapath: &Arc<dyn Datapath>, ufid: Ufid) -> Result<FlowStats, Error> {
        match self.backer(datapath) {
            Some(backer) => backer.try_delete(ufid, self.now),
            None => datapath.flow_del(ufid),
        }
    }

    fn flow_flush(&mut self, datapath: &Arc<dyn Datapath>) {
        let now = self.now;
        match self.backer_mut(datapath) {
            Some(backer) => backer.purge(now),
            None => datapath.flow_flush(),
        }
    }

    fn port_add(&mut self, datapath: &Arc<dyn Datapath>, spec: &PortSpec) -> Result<PortNo, Error> {
        datapath.port_add(spec)
    }

    fn port_del(&mut self, datapath: &Arc<dyn Datapath>, port: PortNo) -> Result<(), Error> {
        let backer = self.backer(datapath);
        if backer.is_some_and(|backer| backer.ports.contains_key(&port)) {
            return Err(busy(&format!("port {port}")));
        }
        datapath.port_del(port)
    }
}

impl Switch {
    /// All datapaths: those with bridges on them, and others.
    fn datapaths(&self) -> impl Iterator<Item = Arc<dyn Datapath>> {
        let backers = self.backers.values().map(|backer| &backer.datapath);
        backers.chain(&self.spare_datapaths).cloned()
    }
}

/// Carries out `command` with the options and operands in `args`.
pub(super) fn run(
    switch: &mut Switch,
    command: &Command,
    args: &[String],
    now: Instant,
) -> Result<String, String> {
    let (options, operands) = Options::take(args)?;
    let (name, given) = (command.name, operands.len());
    if given < command.min {
        let min = command.min;
        return Err(format!(
            "\"dpctl/{name}\" command requires at least {min} arguments"
        ));
    }
    if given > command.max {
        let max = command.max;
        return Err(format!(
            "\"dpctl/{name}\" command takes at most {max} arguments"
        ));
    }
    let mut owner = Owner { switch, now };
    let report = dp_ctl::run(command, &mut owner, Caller::Control, options, &operands);
    report.into_result("ovs-vswitchd")
}
