//! The datapath as the switch sees it.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base::{Clock, Instant};
use dp_api::{
    Conntrack, Datapath, DatapathStats, Dispatch, DumpedFlow, Error, Execute, FlowPut, FlowStats,
    PortInfo, PortSpec, PortStats, UpcallCounts, UpcallHandler,
};
use dp_lang::netlink::{encode_metadata, ufid_to_bytes};
use dp_lang::{Features, PortNo, Ufid};
use net_dev::{Device, Providers};
use net_flow::slot;
use net_netlink::ovs::datapath;
use net_netlink::ovs::flow::{self, FlowRef, UfidBytes, omit};
use net_netlink::ovs::packet;
use net_netlink::ovs::vport::{self, NewPort, Vport};
use net_netlink::{AttrWriter, errno as number_of};

use crate::events::PortEvents;
use crate::flow as flows;
use crate::help;
use crate::kernel::{Kernel, errno, error, lock};
use crate::kind::{PortKind, type_of};
use crate::links::Links;
use crate::manage::{get, has_per_cpu, make};
use crate::ports::Port;
use crate::probe::{Prober, everything};
use crate::removal;
use crate::shared::{Shared, Switch};
use crate::tracker::Tracker;
use crate::upcall::dispatch::Dispatcher;
use crate::upcall::mode::Mode;

/// What a datapath is opened with.
#[derive(Clone)]
pub struct Options {
    /// Its name, which its local port has too: `ovs-system`.
    pub name: String,
    /// Who opens the devices of its ports.
    pub devices: Providers,
    /// The process's clock.
    pub clock: Clock,
}

/// A datapath of the kernel.
pub struct KernelDatapath {
    shared: Arc<Shared>,
    devices: Providers,
    links: Links,
    events: Mutex<PortEvents>,
    dispatcher: Arc<Dispatcher>,
    /// Held while ports come or go.
    changing: Mutex<()>,
    /// Ports whose devices vanished.
    lost: AtomicUsize,
    tracker: Tracker,
    /// Keys of flows that were made without an id, by the id that they have here.
    keyed: Mutex<HashMap<Ufid, Vec<u8>>>,
}

fn no_port(port: PortNo) -> Error {
    Error::NotFound(format!("no port {port}"))
}

pub(crate) fn no_flow(ufid: Ufid) -> Error {
    Error::NotFound(format!("no flow {ufid}"))
}

impl KernelDatapath {
    /// Opens the datapath of that name, with the ports and flows that it has, or makes it.
    ///
    /// # Errors
    /// The module is not there, or the kernel refuses.
    pub fn open(options: Options) -> Result<Self, Error> {
        Self::open_io(options).map_err(|e| error(&e))
    }

    /// Opens the datapath of that name beside the switch that it belongs to, if there is one: nothing of it is
    /// made, tried out or set.  It must not be given a handler.
    ///
    /// # Errors
    /// There is no such datapath, or the kernel refuses.
    pub fn attach(options: Options) -> Result<Self, Error> {
        let attach = || {
            let kernel = Kernel::open()?;
            let found = get(&kernel, &options.name)?;
            // Nothing that is asked for is left out: the kernel says what it cannot do.
            let features = Features {
                ufid: true,
                masked_set: true,
                ..everything()
            };
            Self::with(kernel, &found, features, false, options)
        };
        attach().map_err(|e: io::Error| error(&e))
    }

    fn open_io(options: Options) -> io::Result<Self> {
        let kernel = Kernel::open()?;
        let found = match get(&kernel, &options.name) {
            Err(e) if matches!(number_of(&e), Some(errno::ENODEV | errno::ENOENT)) => {
                make(&kernel, &options.name)?;
                get(&kernel, &options.name)?
            }
            other => other?,
        };
        let has_per_cpu = has_per_cpu(&kernel, found.index, found.features);
        let prober = Prober {
            kernel: &kernel,
            dp: found.index,
        };
        let features = prober.features();
        Self::with(kernel, &found, features, has_per_cpu, options)
    }

    /// The datapath `found`, with the ports that it has.
    fn with(
        kernel: Kernel,
        found: &datapath::Datapath,
        features: Features,
        has_per_cpu: bool,
        options: Options,
    ) -> io::Result<Self> {
        let events = PortEvents::open(kernel.families.vport_group, found.index)?;
        let shared = Shared::new(kernel, &options.name, found.index, features, options.clock);
        let shared = Arc::new(shared);
        let datapath = Self {
            tracker: Tracker::new(shared.clone()),
            dispatcher: Arc::new(Dispatcher::new(shared.clone(), has_per_cpu)),
            shared,
            devices: options.devices,
            links: Links::open()?,
            events: Mutex::new(events),
            changing: Mutex::default(),
            lost: AtomicUsize::new(0),
            keyed: Mutex::default(),
        };
        datapath.find_ports()?;
        Ok(datapath)
    }

    fn vports(&self) -> io::Result<Vec<Vport>> {
        let family = self.shared.kernel.families.vport;
        let mut request = vport::dump(family, self.shared.dp);
        self.shared.kernel.list(&mut request, |message| {
            Vport::parse(message).map(|(found, _)| found)
        })
    }

    /// Takes note of the ports that the kernel has.
    fn find_ports(&self) -> io::Result<()> {
        let mut table = self.shared.ports.write();
        for found in self.vports()? {
            let spec = PortSpec {
                name: found.name.clone(),
                kind: type_of(&found).to_owned(),
                number: Some(PortNo(found.port)),
                options: Vec::new(),
            };
            let number = PortNo(found.port);
            // The datapath's own port belongs to it.
            let is_own = number == PortNo::LOCAL;
            table.insert(Arc::new(Port::new(number, spec, is_own)));
        }
        Ok(())
    }

    fn port(&self, number: PortNo) -> Result<Arc<Port>, Error> {
        self.shared.ports.get(number).ok_or_else(|| no_port(number))
    }

    /// Makes a port in the kernel.
    fn create(&self, spec: &PortSpec, number: Option<PortNo>) -> io::Result<PortNo> {
        let kind = PortKind::of(spec).map_err(|e| io::Error::other(e.to_string()))?;
        let mut as_device = None;
        if let PortKind::Tunnel(tunnel) = &kind {
            match self.links.ensure(&spec.name, tunnel) {
                Ok(()) => as_device = Some(vport::kind::NETDEV),
                // The module may make it itself.
                Err(e) if kind.vport().is_none() => return Err(e),
                Err(e) if number_of(&e) != Some(errno::EOPNOTSUPP) => return Err(e),
                Err(_) => {}
            }
        }
        let type_number = as_device.or_else(|| kind.vport());
        let type_number =
            type_number.ok_or_else(|| io::Error::from_raw_os_error(errno::EOPNOTSUPP))?;
        let tunnel = match &kind {
            PortKind::Tunnel(tunnel) if as_device.is_none() => Some(vport::Tunnel {
                dst_port: tunnel.kind.has_port().then_some(tunnel.port),
                gbp: tunnel.gbp,
            }),
            _ => None,
        };
        let socket = self.dispatcher.port_socket(number)?;
        let new = NewPort {
            kind: type_number,
            name: &spec.name,
            port: number.map(|n| n.0),
            upcall_pids: &[socket.pid()],
            tunnel,
        };
        let family = self.shared.kernel.families.vport;
        let mut request = vport::create(family, self.shared.dp, &new);
        let made = self.shared.kernel.ask(&mut request, Vport::parse);
        let made = match made {
            Ok((made, _)) => made,
            Err(e) => {
                if as_device.is_some() {
                    // A device of ours without a port is of no use.
                    let _ = self.links.remove(&spec.name);
                }
                return Err(e);
            }
        };
        let number = PortNo(made.port);
        self.dispatcher.port_added(number, socket)?;
        Ok(number)
    }

    /// Removes a port from the kernel, with the device if it was made for the port.
    fn destroy_port(&self, port: &Port) -> io::Result<()> {
        let family = self.shared.kernel.families.vport;
        let mut request = vport::delete(family, self.shared.dp, port.number.0);
        let outcome = self.shared.kernel.execute(&mut request);
        self.dispatcher.port_removed(port.number);
        let was_lost = port.set_lost(false);
        if was_lost {
            self.lost.fetch_sub(1, Ordering::Relaxed);
        }
        if matches!(PortKind::of(&port.spec), Ok(PortKind::Tunnel(_))) {
            self.links.remove(&port.spec.name)?;
        }
        match outcome {
            Err(e) if number_of(&e) == Some(errno::ENODEV) && was_lost => Ok(()),
            other => other,
        }
    }

    /// Whether a port that is there is as good as the one that is asked for.
    fn is_same(&self, port: &Port, spec: &PortSpec) -> bool {
        let wanted = if spec.kind.is_empty() {
            "system"
        } else {
            &spec.kind
        };
        if port.spec.kind != wanted || port.is_lost() {
            return false;
        }
        match PortKind::of(spec) {
            Ok(PortKind::Tunnel(tunnel)) => self.links.is(&spec.name, &tunnel),
            Ok(_) => spec.number.is_none_or(|n| n == port.number),
            Err(_) => false,
        }
    }

    /// Takes over a port that was there.
    fn adopt(&self, port: &Port, spec: &PortSpec) -> io::Result<PortNo> {
        let adopted = Port::new(port.number, spec.clone(), true);
        self.shared.ports.write().insert(Arc::new(adopted));
        self.dispatcher.adopt_port(port.number)?;
        Ok(port.number)
    }

    fn add(&self, spec: &PortSpec) -> Result<PortNo, Error> {
        PortKind::of(spec)?;
        let _changing = lock(&self.changing);
        let there = self.shared.ports.read().by_name(&spec.name).cloned();
        if let Some(port) = there {
            if port.is_claimed() {
                return Err(Error::Exists(format!("port {} exists", spec.name)));
            }
            if spec.kind != "tap" && self.is_same(&port, spec) {
                return self.adopt(&port, spec).map_err(|e| error(&e));
            }
            self.destroy_port(&port).map_err(|e| error(&e))?;
            self.shared.ports.write().remove(port.number);
        }
        // A tap is made by being opened, and lives as long as somebody has it open.
        let tap = match spec.kind.as_str() {
            "tap" => Some(
                self.devices
                    .open(&spec.name, "tap")
                    .map_err(|e| error(&e))?,
            ),
            _ => None,
        };
        let number = self.create(spec, spec.number).map_err(|e| error(&e))?;
        let port = Arc::new(Port::new(number, spec.clone(), true));
        if let Some(tap) = tap {
            port.device.get_or_init(|| tap);
        }
        self.shared.ports.write().insert(port);
        Ok(number)
    }

    /// Ports whose devices went are lost; those whose devices are back are made again under their
    /// numbers.
    fn follow_ports(&self) {
        let gone = match lock(&self.events).gone() {
            Ok(Some(gone)) => gone,
            // Events were lost: what is there says it.
            Ok(None) => {
                let there: Vec<PortNo> = match self.vports() {
                    Ok(there) => there.iter().map(|v| PortNo(v.port)).collect(),
                    Err(_) => return,
                };
                let mut known = self.shared.ports.numbers();
                known.retain(|n| !there.contains(n));
                known
            }
            Err(_) => return,
        };
        for number in gone {
            if let Some(port) = self.shared.ports.get(number)
                && port.set_lost(true)
            {
                self.lost.fetch_add(1, Ordering::Relaxed);
                self.dispatcher.port_removed(number);
            }
        }
    }

    fn bring_back(&self) {
        if self.lost.load(Ordering::Relaxed) == 0 {
            return;
        }
        let lost: Vec<Arc<Port>> = {
            let ports = self.shared.ports.read();
            ports.iter().filter(|p| p.is_lost()).cloned().collect()
        };
        for port in lost {
            let device = port.device.get();
            if !device.is_some_and(|d| d.state().present) {
                continue;
            }
            let _changing = lock(&self.changing);
            // It may be another's by now, or go again; the next event tells.
            if self.create(&port.spec, Some(port.number)).is_ok() && port.set_lost(false) {
                self.lost.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    fn flow_ref<'a>(&self, ufid: Ufid, id: &'a mut UfidBytes, key: &'a mut Vec<u8>) -> FlowRef<'a> {
        match lock(&self.keyed).get(&ufid) {
            Some(found) => {
                key.clone_from(found);
                FlowRef::Key(key)
            }
            None => {
                *id = ufid_to_bytes(ufid);
                FlowRef::Ufid(id)
            }
        }
    }

    /// Takes note of a flow that has no id in the kernel.
    fn note_keyed(&self, ufid: Ufid, found: &flow::Flow<'_>) {
        if found.ufid.is_none()
            && let Some(key) = found.key
        {
            lock(&self.keyed).insert(ufid, key.bytes().to_vec());
        }
    }

    fn dump(&self, leave_out: u32, mut visit: impl FnMut(&flow::Flow<'_>) -> bool) {
        let family = self.shared.kernel.families.flow;
        let mut request = flow::dump(family, self.shared.dp, leave_out);
        let mut go_on = true;
        let outcome = self.shared.kernel.visit(&mut request, |message| {
            if go_on && let Some(found) = flow::Flow::parse(message) {
                go_on = visit(&found);
            }
        });
        if let Err(error) = outcome {
            let why = base::errno_text(&error);
            base::log_limited!(
                Warn,
                "dpif_netlink",
                (1, 5),
                "{}: flows cannot be listed ({why})",
                self.shared.display_name()
            );
        }
    }
}

impl Datapath for KernelDatapath {
    fn kind(&self) -> &str {
        "system"
    }

    fn name(&self) -> &str {
        &self.shared.name
    }

    fn features(&self) -> Features {
        self.shared.features
    }

    fn is_userspace(&self) -> bool {
        false
    }

    fn set_handler(&self, handler: Arc<dyn UpcallHandler>) {
        self.shared.switch.store(Some(Arc::new(Switch(handler))));
        if let Err(error) = self.dispatcher.start() {
            let why = base::errno_text(&error);
            log::error!(target: "dpif_netlink",
                "{}: packets for the switch cannot be received ({why})",
                self.shared.display_name());
        }
    }

    fn port_add(&self, spec: &PortSpec) -> Result<PortNo, Error> {
        let number = self.add(spec)?;
        // The port keeps its device's state from now on, for when that vanishes.
        self.port_device(number)?;
        Ok(number)
    }

    fn port_del(&self, number: PortNo) -> Result<(), Error> {
        let _changing = lock(&self.changing);
        let port = self.port(number)?;
        self.shared.ports.write().remove(number);
        self.destroy_port(&port).map_err(|e| error(&e))
    }

    fn port_set(&self, number: PortNo, options: &[(String, String)]) -> Result<(), Error> {
        let port = self.port(number)?;
        let new = PortSpec {
            options: options.to_vec(),
            ..port.spec.clone()
        };
        if PortKind::of(&new)? != PortKind::of(&port.spec)? {
            let what = format!("port {} must be made anew for these options", new.name);
            return Err(Error::Invalid(what));
        }
        self.port_device(number)?
            .set_options(options)
            .map_err(Error::Invalid)
    }

    fn ports(&self) -> Vec<PortInfo> {
        let table = self.shared.ports.read();
        let infos = table.iter().map(|port| PortInfo {
            number: port.number,
            name: port.spec.name.clone(),
            kind: match port.spec.kind.as_str() {
                "" => "system".to_owned(),
                kind => kind.to_owned(),
            },
        });
        infos.collect()
    }

    fn port_device(&self, number: PortNo) -> Result<Arc<dyn Device>, Error> {
        let port = self.port(number)?;
        if let Some(device) = port.device.get() {
            return Ok(device.clone());
        }
        let kind = if port.spec.kind == "tap" {
            "tap"
        } else {
            "system"
        };
        let device = self.devices.open(&port.spec.name, kind);
        let device = device.map_err(|e| error(&e))?;
        Ok(port.device.get_or_init(|| device).clone())
    }

    fn port_stats(&self, number: PortNo) -> Result<PortStats, Error> {
        let family = self.shared.kernel.families.vport;
        let mut request = vport::get(family, self.shared.dp, number.0);
        let found = self.shared.kernel.ask(&mut request, Vport::parse);
        let (found, _) = found.map_err(|e| error(&e))?;
        let stats = found.stats.unwrap_or_default();
        Ok(PortStats {
            rx_packets: stats.rx_packets,
            rx_bytes: stats.rx_bytes,
            rx_dropped: stats.rx_dropped,
            rx_errors: stats.rx_errors,
            tx_packets: stats.tx_packets,
            tx_bytes: stats.tx_bytes,
            tx_dropped: stats.tx_dropped,
            tx_errors: stats.tx_errors,
        })
    }

    fn flow_put(&self, put: FlowPut) -> Result<Ufid, Error> {
        let (key, mask) = (put.key.expand(), put.mask.expand_mask());
        let ufid = put.ufid.unwrap_or_else(|| Ufid::of(&put.key, &put.mask));
        let encoded = flows::encode(&self.shared, &key, &mask, &put.actions, None)?;
        let mut id = ufid_to_bytes(ufid);
        let mut known_key = Vec::new();
        let known = self.flow_ref(ufid, &mut id, &mut known_key);
        let (ufid_bytes, key_bytes): (Option<&UfidBytes>, &[u8]) = match known {
            FlowRef::Key(key) => (None, key),
            FlowRef::Ufid(id) => (self.shared.features.ufid.then_some(id), &encoded.key),
        };
        let request = flow::FlowPut {
            ufid: ufid_bytes,
            key: key_bytes,
            mask: Some(&encoded.mask),
            actions: Some(&encoded.actions),
            create: !put.replace,
            replace: put.replace,
            clear: put.zero_stats,
            probe: false,
        };
        let family = self.shared.kernel.families.flow;
        let kernel = &self.shared.kernel;
        let outcome = kernel.execute(&mut flow::put(family, self.shared.dp, &request, 0));
        let outcome = match outcome {
            // There is none to replace.
            Err(e) if put.replace && number_of(&e) == Some(errno::ENOENT) => {
                let request = flow::FlowPut {
                    create: true,
                    ..request
                };
                kernel.execute(&mut flow::put(family, self.shared.dp, &request, 0))
            }
            other => other,
        };
        match outcome {
            Ok(()) => Ok(ufid),
            Err(e) if number_of(&e) == Some(errno::EFBIG) => {
                Err(Error::Full("the kernel takes no more flows".to_owned()))
            }
            Err(e) => Err(error(&e)),
        }
    }

    fn flow_del(&self, ufid: Ufid) -> Result<FlowStats, Error> {
        let (mut id, mut key) = ([0; 16], Vec::new());
        let found = self.flow_ref(ufid, &mut id, &mut key);
        let leave_out = omit::KEY | omit::MASK | omit::ACTIONS;
        let family = self.shared.kernel.families.flow;
        let mut request = flow::delete(family, self.shared.dp, found, leave_out);
        let outcome = self.shared.kernel.ask(&mut request, |message| {
            flow::Flow::parse(message).map(|f| f.stats)
        });
        lock(&self.keyed).remove(&ufid);
        match outcome {
            Ok(stats) => Ok(flows::stats(&self.shared, &stats)),
            Err(e) if number_of(&e) == Some(errno::ENOENT) => Err(no_flow(ufid)),
            Err(e) => Err(error(&e)),
        }
    }

    fn flow_del_all(&self, ufids: &[Ufid], visit: &mut dyn FnMut(Ufid, Result<FlowStats, Error>)) {
        for chunk in ufids.chunks(removal::CHUNK) {
            let mut keyed = lock(&self.keyed);
            let chunk: Vec<_> = chunk.iter().map(|u| (*u, keyed.remove(u))).collect();
            drop(keyed);
            removal::remove(&self.shared, &chunk, visit);
        }
    }

    fn flow_get(&self, ufid: Ufid) -> Result<DumpedFlow, Error> {
        let (mut id, mut key) = ([0; 16], Vec::new());
        let found = self.flow_ref(ufid, &mut id, &mut key);
        let family = self.shared.kernel.families.flow;
        let mut request = flow::get(family, self.shared.dp, found, 0);
        let outcome = self.shared.kernel.ask(&mut request, |message| {
            let found = flow::Flow::parse(message)?;
            flows::decode(&self.shared, &found)
        });
        match outcome {
            Ok(flow) => Ok(DumpedFlow { ufid, ..flow }),
            Err(e) if number_of(&e) == Some(errno::ENOENT) => Err(no_flow(ufid)),
            Err(e) => Err(error(&e)),
        }
    }

    fn flow_flush(&self) {
        let family = self.shared.kernel.families.flow;
        let outcome = self
            .shared
            .kernel
            .execute(&mut flow::flush(family, self.shared.dp));
        lock(&self.keyed).clear();
        if let Err(error) = outcome {
            let why = base::errno_text(&error);
            log::warn!(target: "dpif", "{}: failed to flush ({why})", self.shared.display_name());
        }
    }

    fn flow_dump(&self, visit: &mut dyn FnMut(DumpedFlow) -> bool) {
        self.dump(0, |found| match flows::decode(&self.shared, found) {
            Some(flow) => {
                self.note_keyed(flow.ufid, found);
                visit(flow)
            }
            None => true,
        });
    }

    fn flow_counts(&self, visit: &mut dyn FnMut(Ufid, &FlowStats)) {
        let leave_out = if self.shared.features.ufid {
            omit::KEY | omit::MASK | omit::ACTIONS
        } else {
            0
        };
        self.dump(leave_out, |found| {
            if let Some(ufid) = flows::ufid(found) {
                self.note_keyed(ufid, found);
                visit(ufid, &flows::stats(&self.shared, &found.stats));
            }
            true
        });
    }

    fn execute(&self, execute: Execute) -> Result<(), Error> {
        if help::needs_help(&execute.actions) {
            let parts = help::divide(&execute.packet, &execute.key, &execute.actions);
            return parts.into_iter().try_for_each(|(packet, actions)| {
                self.execute(Execute {
                    packet,
                    key: execute.key.clone(),
                    actions: actions.into(),
                })
            });
        }
        let port = PortNo(execute.key.get(slot::IN_PORT) as u32);
        let actions = flows::encode_list(&self.shared, &execute.actions, port)?;
        if actions.is_empty() {
            return Ok(());
        }
        let mut key = AttrWriter::new();
        encode_metadata(&execute.key, &self.shared.features, &mut key);
        let key = key
            .into_bytes()
            .map_err(|e| Error::Invalid(e.to_string()))?;
        let request = packet::Execute {
            packet: &execute.packet,
            key: &key,
            actions: &actions,
            extra: packet::Extra::default(),
            upcall_pid: None,
            probe: false,
        };
        let family = self.shared.kernel.families.packet;
        let mut request = packet::execute(family, self.shared.dp, &request, 0);
        self.shared
            .kernel
            .execute(&mut request)
            .map_err(|e| error(&e))
    }

    fn run(&self, _now: Instant) -> bool {
        self.follow_ports();
        self.bring_back();
        false
    }

    fn set_vlan_limit(&self, limit: u8) {
        let most = net_flow::extract::MAX_VLANS;
        let limit = if limit == 0 { most } else { limit.min(most) };
        self.shared.max_vlans.store(limit, Ordering::Relaxed);
    }

    fn set_dispatch(&self, dispatch: Dispatch) {
        self.dispatcher.want(dispatch);
    }

    fn dispatch_mode(&self) -> Option<String> {
        self.dispatcher.mode().map(|mode| match mode {
            Mode::PerCpu => "per-cpu".to_owned(),
            Mode::PerPort => "per-port".to_owned(),
        })
    }

    fn upcalls(&self, number: PortNo) -> Option<UpcallCounts> {
        let port = self.shared.ports.get(number)?;
        let family = self.shared.kernel.families.vport;
        let mut request = vport::get(family, self.shared.dp, number.0);
        let found = self.shared.kernel.ask(&mut request, Vport::parse);
        // Older kernels do not count what they had no room for by port.
        let kernel = found.ok().and_then(|(found, _)| found.upcalls);
        Some(UpcallCounts {
            taken: port.served(),
            lost: port.dropped() + kernel.map_or(0, |k| k.fail),
        })
    }

    fn remove_leftovers(&self) -> Vec<String> {
        let _changing = lock(&self.changing);
        let leftovers: Vec<Arc<Port>> = {
            let ports = self.shared.ports.read();
            ports.iter().filter(|p| !p.is_claimed()).cloned().collect()
        };
        let mut names = Vec::new();
        for port in leftovers {
            match self.destroy_port(&port) {
                Ok(()) => names.push(port.spec.name.clone()),
                Err(error) => {
                    let (name, why) = (&port.spec.name, base::errno_text(&error));
                    log::warn!(target: "dpif", "{}: port {name} cannot be removed ({why})",
                        self.shared.display_name());
                }
            }
            self.shared.ports.write().remove(port.number);
        }
        names
    }

    fn destroy(&self) {
        self.dispatcher.stop();
        let family = self.shared.kernel.families.datapath;
        let outcome = self
            .shared
            .kernel
            .execute(&mut datapath::delete(family, self.shared.dp));
        if let Err(error) = outcome {
            let why = base::errno_text(&error);
            log::warn!(target: "dpif_netlink",
                "{}: cannot be removed ({why})", self.shared.display_name());
        }
        let tunnels: Vec<Arc<Port>> = {
            let ports = self.shared.ports.read();
            let is_tunnel =
                |p: &&Arc<Port>| matches!(PortKind::of(&p.spec), Ok(PortKind::Tunnel(_)));
            ports.iter().filter(is_tunnel).cloned().collect()
        };
        for port in tunnels {
            // A device that the module made has gone with the datapath.
            let _ = self.links.remove(&port.spec.name);
        }
    }

    fn quiesce(&self) {
        self.dispatcher.quiesce();
    }

    fn stats(&self) -> DatapathStats {
        let family = self.shared.kernel.families.datapath;
        let mut request = datapath::get_by_index(family, self.shared.dp);
        let found = self
            .shared
            .kernel
            .ask(&mut request, datapath::Datapath::parse);
        let Ok((found, _)) = found else {
            return DatapathStats::default();
        };
        DatapathStats {
            hits: found.stats.hits,
            misses: found.stats.misses,
            lost: found.stats.lost + self.shared.lost.load(Ordering::Relaxed),
            flows: found.stats.flows,
            masks: u64::from(found.stats.masks),
            mask_hits: found.stats.mask_hits,
            cache_hits: Some(found.stats.cache_hits),
            masks_cache_size: found.masks_cache_size,
        }
    }

    fn set_masks_cache_size(&self, size: u32) -> Result<(), Error> {
        let kernel = &self.shared.kernel;
        let (family, dp) = (kernel.families.datapath, self.shared.dp);
        let change = || {
            let mut request = datapath::get_by_index(family, dp);
            let (found, _) = kernel.ask(&mut request, datapath::Datapath::parse)?;
            // A cache has a power of two of entries, or none.
            let size = match size {
                0 => 0,
                size => size.checked_next_power_of_two().unwrap_or(u32::MAX),
            };
            let features = found.features;
            kernel.execute(&mut datapath::set_masks_cache_size(
                family, dp, features, size,
            ))
        };
        change().map_err(|e: io::Error| error(&e))
    }

    fn conntrack(&self) -> Option<&dyn Conntrack> {
        Some(&self.tracker)
    }
}

impl Drop for KernelDatapath {
    fn drop(&mut self) {
        self.dispatcher.stop();
    }
}
