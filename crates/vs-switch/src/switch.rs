//! The switch: what the main loop owns, and how steps change it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use base::Instant;
use dp_api::Datapath;
use io::Waker;
use net_packet::EthAddr;
use of_switch::Endpoints;
use of_xlate::BridgeId;

use crate::backer::Backer;
use crate::bridge::{Bridge, BridgePort};
use crate::config::{BridgeConfig, PortConfig, Step, SwitchConfig};
use crate::confine;
use crate::counters::Counters;
use crate::env::Env;
use crate::run::endpoint_base;
use crate::status::{BridgeStatus, Changes, InterfaceStatistics, InterfaceStatus};
use crate::tunnels;

/// A switch: bridges over datapaths, with everything that forwards, learns and reports.
///
/// The main loop owns it: it applies steps, hands it events, calls [`Switch::run`] in each
/// round and waits until [`Switch::next_deadline`] at most.
#[derive(Debug)]
pub struct Switch {
    pub(crate) env: Env,
    pub(crate) settings: SwitchConfig,
    /// Datapaths in use, by type.
    pub(crate) backers: BTreeMap<String, Backer>,
    /// Datapaths that were made by `dpctl/add-dp`, and that no bridge is on.
    pub(crate) spare_datapaths: Vec<Arc<dyn Datapath>>,
    pub(crate) bridges: BTreeMap<String, Bridge>,
    pub(crate) names: HashMap<BridgeId, String>,
    pub(crate) waker: Option<Waker>,
    pub(crate) controllers_looked_at: Instant,
    pub(crate) counters: Counters,
    /// Interfaces that wait for their device, by its name: the bridge.
    pub(crate) waiting: BTreeMap<String, String>,
    /// The bridge of each interface.
    pub(crate) owners: HashMap<String, String>,
    /// Interfaces that ask for another number, with their bridges.
    pub(crate) renumber: BTreeSet<(String, String)>,
    /// Bridges whose address is to be chosen anew.
    pub(crate) unsettled: BTreeSet<String>,
    /// Bridges that could not be made, and why.
    failed: BTreeMap<String, String>,
    next_bridge: u64,
    /// Whether the configuration was carried out once.
    pub(crate) is_configured: bool,
    /// Whether dumps name flows by their ids alone (`upcall/disable-ufid`).
    pub(crate) ufid_dumps: bool,
    /// Whether a step changed something since the views were published.
    pub(crate) reconfigured: bool,
    pub(crate) changed_interfaces: BTreeSet<(String, String)>,
    pub(crate) changed_bridges: BTreeSet<String>,
}

impl Switch {
    /// A switch without bridges.
    pub fn new(env: Env) -> Self {
        let counters = Counters::new(&env.coverage);
        Self {
            waker: None,
            controllers_looked_at: Instant::ZERO,
            settings: SwitchConfig::default(),
            backers: BTreeMap::new(),
            spare_datapaths: Vec::new(),
            bridges: BTreeMap::new(),
            names: HashMap::new(),
            counters,
            waiting: BTreeMap::new(),
            owners: HashMap::new(),
            renumber: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            failed: BTreeMap::new(),
            next_bridge: 1,
            is_configured: false,
            ufid_dumps: true,
            reconfigured: false,
            changed_interfaces: BTreeSet::new(),
            changed_bridges: BTreeSet::new(),
            env,
        }
    }

    /// Carries out a step.  An interface that cannot be set up shows it in its status.
    ///
    /// # Errors
    /// The step as a whole could not be carried out.
    pub fn apply(&mut self, step: &Step, now: Instant) -> Result<(), String> {
        self.reconfigured = true;
        match step {
            Step::Settings(settings) => {
                self.settings = settings.clone();
                for backer in self.backers.values_mut() {
                    backer.configure(settings);
                }
                Ok(())
            }
            Step::AddBridge(config) => self.add_bridge(config, now),
            Step::SetBridge(config) => self.set_bridge(config, now),
            Step::DelBridge(name) => self.del_bridge(name, now),
            // What was to be on a bridge that could not be made shows that in its status.
            Step::AddPort { bridge, port } | Step::SetPort { bridge, port }
                if self.failed.contains_key(bridge) =>
            {
                let interfaces = port.interfaces.keys();
                let changed = interfaces.map(|i| (bridge.clone(), i.clone()));
                self.changed_interfaces.extend(changed);
                Ok(())
            }
            Step::DelPort { bridge, .. } if self.failed.contains_key(bridge) => Ok(()),
            Step::AddPort { bridge, port } | Step::SetPort { bridge, port } => {
                self.set_port(bridge, port, now)
            }
            Step::DelPort { bridge, port } => self.del_port(bridge, port, now),
        }
    }

    /// Opens the datapath of type `kind` unless it is in use.
    fn use_backer(&mut self, kind: &str) -> Result<&mut Backer, String> {
        if !self.backers.contains_key(kind) {
            let datapath = self.env.open_datapath(kind).map_err(|e| e.to_string())?;
            let limit = self.settings.flow_limit;
            let is_held = self.must_hold(datapath.features().outlives_process);
            let mut backer = Backer::new(kind, datapath, &self.counters, limit, is_held);
            backer.configure(&self.settings);
            backer.log_features();
            if let Some(waker) = &self.waker {
                backer.shared.events.set_waker(waker.clone());
            }
            self.backers.insert(kind.to_owned(), backer);
        }
        self.backers
            .get_mut(kind)
            .ok_or_else(|| format!("datapath type {kind} is not open"))
    }

    fn add_bridge(&mut self, config: &BridgeConfig, now: Instant) -> Result<(), String> {
        let name = &config.name;
        if self.bridges.contains_key(name) {
            return self.set_bridge(config, now);
        }
        let config = &self.permitted(config);
        let kind = match config.datapath_type.as_str() {
            "" => self.env.default_datapath.clone(),
            kind => kind.to_owned(),
        };
        let id = BridgeId(self.next_bridge);
        if let Err(error) = self.use_backer(&kind) {
            let error = format!("failed to create bridge {name}: {error}");
            self.failed.insert(name.clone(), error.clone());
            return Err(error);
        }
        self.failed.remove(name);
        self.next_bridge += 1;
        if let Some(backer) = self.backers.get_mut(&kind) {
            backer.bridges.insert(name.clone());
            backer.is_stale = true;
        }
        let endpoints = Endpoints::new(&self.env.net, endpoint_base(id));
        let bridge = Bridge::new(id, config, &kind, random_mac(), endpoints, now);
        self.names.insert(id, name.clone());
        self.bridges.insert(name.clone(), bridge);
        let local = PortConfig::new(name, "internal");
        self.set_port(name, &local, now)?;
        self.changed_bridges.insert(name.clone());
        Ok(())
    }

    fn set_bridge(&mut self, config: &BridgeConfig, now: Instant) -> Result<(), String> {
        let name = &config.name;
        if self.failed.contains_key(name) {
            return Ok(());
        }
        let config = &self.permitted(config);
        let bridge = self.bridge_mut(name)?;
        bridge.set_config(config);
        self.mark_stale(name);
        self.unsettled.insert(name.clone());
        self.configure_model(name, now);
        self.changed_bridges.insert(name.clone());
        Ok(())
    }

    /// `config` without the controllers that are refused, each of which the log names.
    fn permitted(&self, config: &BridgeConfig) -> BridgeConfig {
        let mut config = config.clone();
        if self.env.confined {
            let run = &self.env.dirs.run;
            config.controllers.retain(|controller| {
                let refused = confine::refusal(&config.name, &controller.target, run);
                if let Some(why) = &refused {
                    base::log_limited!(Error, "bridge", (1, 5), "{why}");
                }
                refused.is_none()
            });
        }
        config
    }

    fn configure_model(&mut self, name: &str, now: Instant) {
        if let Some(bridge) = self.bridges.get_mut(name) {
            let config = bridge.model_config();
            bridge.model.configure(config, now);
            bridge.endpoints_stale = true;
        }
    }

    fn del_bridge(&mut self, name: &str, now: Instant) -> Result<(), String> {
        if self.failed.remove(name).is_some() {
            return Ok(());
        }
        let bridge = self.bridge_mut(name)?;
        let ports: Vec<String> = bridge.ports.keys().cloned().collect();
        let (id, kind) = (bridge.id, bridge.kind.clone());
        for port in ports {
            self.del_port(name, &port, now)?;
        }
        self.bridges.remove(name);
        self.names.remove(&id);
        if let Some(backer) = self.backers.get_mut(&kind) {
            backer.bridges.remove(name);
            backer.is_stale = true;
            if backer.bridges.is_empty() {
                // Nobody needs the datapath any more.
                if let Some(backer) = self.backers.remove(&kind) {
                    backer.datapath.destroy();
                }
            }
        }
        Ok(())
    }

    pub(crate) fn bridge_mut(&mut self, name: &str) -> Result<&mut Bridge, String> {
        let bridge = self.bridges.get_mut(name);
        bridge.ok_or_else(|| format!("there is no bridge {name}"))
    }

    /// Notes that a bridge looks different to translation.
    pub(crate) fn mark_stale(&mut self, bridge: &str) {
        if let Some(bridge) = self.bridges.get_mut(bridge) {
            bridge.is_stale = true;
            if let Some(backer) = self.backers.get_mut(&bridge.kind) {
                backer.is_stale = true;
            }
        }
    }

    fn set_port(&mut self, bridge: &str, config: &PortConfig, now: Instant) -> Result<(), String> {
        let owner = self.bridge_mut(bridge)?;
        match owner.ports.get_mut(&config.name) {
            Some(port) => port.config = config.clone(),
            None => {
                let port = BridgePort {
                    config: config.clone(),
                    bundle: owner.allot_bundle(),
                };
                owner.ports.insert(config.name.clone(), port);
            }
        }
        let gone: Vec<String> = owner
            .interfaces
            .iter()
            .filter(|(name, i)| i.port == config.name && !config.interfaces.contains_key(*name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.remove_interface(bridge, &name, now);
        }
        for interface in config.interfaces.values() {
            self.set_interface(bridge, config, interface, now);
        }
        self.mark_stale(bridge);
        self.unsettled.insert(bridge.to_owned());
        Ok(())
    }

    fn del_port(&mut self, bridge: &str, port: &str, now: Instant) -> Result<(), String> {
        let owner = self.bridge_mut(bridge)?;
        let Some(removed) = owner.ports.remove(port) else {
            return Err(format!("bridge {bridge} has no port {port}"));
        };
        let own = |i: &&String| owner.interfaces[*i].port == port;
        let interfaces: Vec<String> = owner.interfaces.keys().filter(own).cloned().collect();
        let stations = owner.macs.flush_port(removed.bundle);
        // What was behind this port may have been seen by other bridges through patch ports.
        for other in self.bridges.values() {
            for station in &stations {
                other.macs.forget_station(*station);
            }
        }
        for name in interfaces {
            self.remove_interface(bridge, &name, now);
        }
        self.mark_stale(bridge);
        self.unsettled.insert(bridge.to_owned());
        Ok(())
    }

    /// Gives the local ports of bridges whose ports changed the address that they should have.
    pub(crate) fn settle_addresses(&mut self, now: Instant) {
        for name in std::mem::take(&mut self.unsettled) {
            self.settle_mac(&name, now);
            self.settle_mtu(&name);
        }
    }

    /// Gives internal ports for which no MTU is configured the smallest of the others': all of them
    /// when that changes, otherwise those that are above it.  What somebody lowered stays.
    fn settle_mtu(&mut self, name: &str) {
        let Some(bridge) = self.bridges.get_mut(name) else {
            return;
        };
        let all = bridge.interfaces.values();
        let mtus = all.filter_map(|i| {
            let kind = &i.config.kind;
            let device = i
                .device()
                .filter(|_| kind != "internal" && !tunnels::options::is_tunnel(kind))?;
            Some(device.state()).filter(|s| s.present).map(|s| s.mtu)
        });
        let (before, found) = (bridge.min_mtu, mtus.min());
        if before.is_none() && found.is_none() {
            return;
        }
        let mtu = found.unwrap_or(DEFAULT_MTU);
        bridge.min_mtu = Some(mtu);
        let changes = before != Some(mtu);
        for (interface_name, interface) in &bridge.interfaces {
            let is_ours =
                interface.config.kind == "internal" && interface.config.mtu_request.is_none();
            let differs = |now: u32| now > mtu || (changes && now != mtu);
            if let Some(device) = interface.device().filter(|_| is_ours)
                && differs(device.state().mtu)
            {
                if let Err(error) = device.set_mtu(mtu) {
                    let why = base::errno_text(&error);
                    log::warn!(target: "bridge",
                        "failed to set MTU of network device {interface_name}: {why}");
                }
                let changed = (name.to_owned(), interface_name.clone());
                self.changed_interfaces.insert(changed);
            }
        }
    }

    fn settle_mac(&mut self, name: &str, now: Instant) {
        let Some(bridge) = self.bridges.get_mut(name) else {
            return;
        };
        let old_id = bridge.shown_id;
        bridge.choose_mac();
        let (mac, id) = (bridge.mac, bridge.datapath_id);
        if let Some(local) = bridge.interfaces.get(name)
            && local.mac() != mac.0
            && let Some(device) = local.device()
        {
            if let Err(error) = device.set_mac(mac) {
                let why = base::errno_text(&error);
                log::error!(target: "bridge",
                    "interface {name}: setting hardware address failed ({why})");
            }
            bridge.show_port(name);
            self.changed_interfaces
                .insert((name.to_owned(), name.to_owned()));
        }
        bridge.shown_id = Some(id);
        if old_id == Some(id) {
            return;
        }
        match old_id {
            None => log::info!(target: "bridge", "bridge {name}: using datapath ID {id:016x}"),
            Some(_) => {
                log::info!(target: "ofproto", "{name}: datapath ID changed to {id:016x}");
            }
        }
        self.changed_bridges.insert(name.to_owned());
        self.mark_stale(name);
        self.configure_model(name, now);
    }

    /// Removes everything that the switch has set up in datapaths, as `exit --cleanup` wants.
    pub fn clean_up(&mut self, now: Instant) {
        let names: Vec<String> = self.bridges.keys().cloned().collect();
        for name in names {
            if let Err(error) = self.del_bridge(&name, now) {
                log::warn!(target: "bridge", "{error}");
            }
        }
    }

    /// What may have changed since this was last asked.
    pub fn take_changes(&mut self) -> Changes {
        Changes {
            interfaces: std::mem::take(&mut self.changed_interfaces)
                .into_iter()
                .collect(),
            bridges: std::mem::take(&mut self.changed_bridges)
                .into_iter()
                .collect(),
        }
    }

    /// Where an interface stands.
    pub fn interface_status(&self, bridge: &str, interface: &str) -> Option<InterfaceStatus> {
        if let Some(error) = self.failed.get(bridge) {
            return Some(InterfaceStatus {
                error: Some(error.clone()),
                ..InterfaceStatus::default()
            });
        }
        let owner = self.bridges.get(bridge)?;
        let interface = owner.interfaces.get(interface)?;
        let mut status = interface.status();
        let backer = self.backers.get(&owner.kind);
        if backer.is_some_and(|backer| backer.datapath.is_userspace()) {
            // Where this process sends the packets, it tells what devices spare it.
            status.status.extend(interface.offload_status());
        }
        Some(status)
    }

    /// What an interface has counted.
    pub fn interface_statistics(
        &self,
        bridge: &str,
        interface: &str,
    ) -> Option<InterfaceStatistics> {
        let interface = self.bridges.get(bridge)?.interfaces.get(interface)?;
        Some(interface.statistics())
    }

    /// What the mirrors of a bridge have copied: name, packets, bytes.
    pub fn mirror_statistics(&self, bridge: &str) -> Vec<(String, u64, u64)> {
        let Some(bridge) = self.bridges.get(bridge) else {
            return Vec::new();
        };
        if let Some(backer) = self
            .backers
            .get(&bridge.kind)
            .filter(|_| bridge.has_mirrors())
        {
            // Counters that cannot be had now are those of a moment ago.
            let _ = backer.update_counters(self.env.clock.now(), &self.env.clock);
        }
        bridge.mirror_statistics()
    }

    /// Where a bridge stands.
    pub fn bridge_status(&self, name: &str) -> Option<BridgeStatus> {
        let now = self.env.clock.now();
        let bridge = self.bridges.get(name)?;
        Some(BridgeStatus {
            datapath_id: bridge.datapath_id,
            controllers: bridge.controller_status(now),
        })
    }

    /// Whether everything that steps changed is in force for packets that arrive now.
    pub fn is_settled(&self) -> bool {
        let settled = |b: &Backer| !b.is_stale && b.revalidator.is_done();
        self.backers.values().all(settled)
    }

    /// The types of datapaths and of interfaces that can be configured.
    pub fn types(&self) -> (Vec<String>, Vec<String>) {
        let mut interfaces = self.env.devices.kinds();
        interfaces.extend(["patch", "internal"].map(String::from));
        interfaces.sort();
        interfaces.dedup();
        (self.env.datapath_kinds(), interfaces)
    }
}

/// The MTU of an Ethernet device of which nobody said more.
const DEFAULT_MTU: u32 = 1500;

/// A locally administered address that nobody else has.
pub(crate) fn random_mac() -> EthAddr {
    let number = RandomState::new().hash_one(0);
    EthAddr::from_u64(number & 0xfcff_ffff_ffff | 0x0200_0000_0000)
}

impl Backer {
    /// The kernel's word for an error of a datapath.
    pub(crate) fn error_text(error: &dp_api::Error) -> String {
        match error {
            dp_api::Error::System(errno, _) => {
                base::errno_text(&std::io::Error::from_raw_os_error(*errno))
            }
            dp_api::Error::NotFound(_) => "No such device".to_owned(),
            dp_api::Error::Exists(_) => "File exists".to_owned(),
            dp_api::Error::Unsupported(_) => "Address family not supported by protocol".to_owned(),
            dp_api::Error::Invalid(_) => "Invalid argument".to_owned(),
            dp_api::Error::Full(_) => "File too large".to_owned(),
        }
    }
}
