//! One bridge of the switch: its ports, its OpenFlow model, and what translation sees.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base::{Dirs, Instant};
use net_flow::PortNo;
use net_packet::EthAddr;
use net_proto::mac_learning::MacTable;
use of_switch::tables::TableSettings;
use of_switch::{
    Bridge as Model, BridgeConfig as ModelConfig, Change, ControllerSettings, EndpointSettings,
    Endpoints, FailMode as ModelFailMode, FragMode,
};
use of_wire::VersionSet;
use of_wire::message::{ControllerRole, PortState};
use of_xlate::{
    BridgeId, BridgeView, Bundle, FragmentMode, Port, PriorityTags as XlatePriorityTags,
    VlanMode as XlateVlanMode, VlanSet,
};

use crate::config::{BridgeConfig, ControllerConfig, FailMode, PortConfig, PriorityTags, VlanMode};
use crate::interface::{Carrier, Interface};
use crate::mirrors::BridgeMirror;
use crate::numbers::Numbers;
use crate::status::ControllerStatus;

/// A port of the database: one interface, or several as a bond.
#[derive(Debug)]
pub(crate) struct BridgePort {
    pub(crate) config: PortConfig,
    /// The number of its bundle in the MAC table; never used again for another.
    pub(crate) bundle: u32,
}

/// A bridge.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) id: BridgeId,
    pub(crate) config: BridgeConfig,
    /// The type of its datapath, with the default resolved.
    pub(crate) kind: String,
    pub(crate) model: Model,
    pub(crate) endpoints: Endpoints,
    /// Whether the endpoints differ from the configuration.
    pub(crate) endpoints_stale: bool,
    /// Targets, connections and roles as they were last reported.
    pub(crate) controllers_seen: Vec<(String, bool, Option<String>)>,
    pub(crate) macs: Arc<MacTable>,
    pub(crate) numbers: Numbers,
    pub(crate) ports: BTreeMap<String, BridgePort>,
    pub(crate) interfaces: BTreeMap<String, Interface>,
    pub(crate) by_number: BTreeMap<PortNo, String>,
    pub(crate) mirrors: Vec<BridgeMirror>,
    pub(crate) mac: EthAddr,
    pub(crate) datapath_id: u64,
    /// The id that was told last.
    pub(crate) shown_id: Option<u64>,
    /// The address that it falls back to while it has no port.
    default_mac: EthAddr,
    next_bundle: u32,
    /// The smallest MTU of ports that are not its own, once there was one.
    pub(crate) min_mtu: Option<u32>,
    /// What translation saw last.
    view: Arc<BridgeView>,
    /// Whether ports or settings differ from the view.
    pub(crate) is_stale: bool,
    /// Changes of rules and groups that translation does not see yet.
    pub(crate) table_changes: Vec<Change>,
    /// The generation of the MAC table that megaflows were last checked against.
    pub(crate) macs_seen: u64,
}

impl Bridge {
    pub(crate) fn new(
        id: BridgeId,
        config: &BridgeConfig,
        kind: &str,
        default_mac: EthAddr,
        endpoints: Endpoints,
        now: Instant,
    ) -> Self {
        let mac = config.hwaddr.map_or(default_mac, EthAddr::from_u64);
        let datapath_id = config.datapath_id.unwrap_or_else(|| mac.to_u64());
        let macs = Arc::new(MacTable::new());
        let model = Model::new(model_config(config, datapath_id), now);
        let tables = Arc::clone(model.view());
        let view = BridgeView::new(id, &config.name, tables, Arc::clone(&macs));
        let mut bridge = Self {
            id,
            config: config.clone(),
            kind: kind.to_owned(),
            model,
            endpoints,
            endpoints_stale: true,
            controllers_seen: Vec::new(),
            macs,
            numbers: Numbers::default(),
            ports: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            by_number: BTreeMap::new(),
            mirrors: Vec::new(),
            mac,
            datapath_id,
            shown_id: None,
            default_mac,
            next_bundle: 1,
            min_mtu: None,
            view: Arc::new(view),
            is_stale: true,
            table_changes: Vec::new(),
            macs_seen: 0,
        };
        bridge.set_up_macs();
        bridge.set_mirrors();
        bridge
    }

    fn set_up_macs(&self) {
        self.macs.set_idle(self.config.mac_aging_time);
        self.macs.set_max(self.config.mac_table_size);
        let flooded: BTreeSet<u16> = self.config.flood_vlans.iter().copied().collect();
        self.macs.set_flood_vlans(flooded);
    }

    /// Takes over new settings; address and model are to be settled after it.
    pub(crate) fn set_config(&mut self, config: &BridgeConfig) {
        self.config = config.clone();
        self.set_up_macs();
        self.set_mirrors();
        self.is_stale = true;
    }

    /// Chooses its address and its id anew: what the configuration says, else the lowest
    /// address among its ports that was given out by a manufacturer.  Returns whether the
    /// address changed.
    pub(crate) fn choose_mac(&mut self) -> bool {
        let mirrors = self.config.mirrors.iter();
        let outputs: Vec<&String> = mirrors.filter_map(|m| m.output_port.as_ref()).collect();
        let ports = self.ports.values().map(|port| &port.config);
        let macs = ports
            .filter(|port| port.name != self.config.name && !outputs.contains(&&port.name))
            .filter_map(|port| self.mac_of(port))
            .filter(|mac| {
                !mac.is_zero() && !mac.is_multicast() && !mac.is_local() && !mac.is_reserved()
            });
        let configured = self.config.hwaddr.map(EthAddr::from_u64);
        let mac = configured
            .or_else(|| macs.min())
            .unwrap_or(self.default_mac);
        let changed = mac != self.mac;
        self.mac = mac;
        self.datapath_id = self.config.datapath_id.unwrap_or_else(|| mac.to_u64());
        changed
    }

    /// The address that stands for a port: the one it is given, or that of its first interface.
    fn mac_of(&self, port: &PortConfig) -> Option<EthAddr> {
        if let Some(mac) = port.mac {
            return Some(EthAddr::from_u64(mac));
        }
        let first = port.interfaces.keys().next()?;
        let interface = self.interfaces.get(first);
        let interface = interface.filter(|i| i.is_up_and_running())?;
        Some(EthAddr(interface.mac()))
    }

    pub(crate) fn model_config(&self) -> ModelConfig {
        model_config(&self.config, self.datapath_id)
    }

    /// Whether the tables differ from those that translation sees.
    pub(crate) fn tables_changed(&self) -> bool {
        self.is_stale || !Arc::ptr_eq(&self.view.tables, self.model.view())
    }

    /// Where connections come from and go to.
    pub(crate) fn endpoint_settings(&self, dirs: &Dirs) -> EndpointSettings {
        let name = &self.config.name;
        let path = |kind: &str| {
            let path = dirs.in_run(format!("{name}.{kind}"));
            path.to_string_lossy().into_owned()
        };
        EndpointSettings {
            bridge: name.clone(),
            management: Some(path("mgmt")),
            snoop: Some(path("snoop")),
            controllers: self.config.controllers.iter().map(controller).collect(),
        }
    }

    /// What the database shows of its controllers.
    pub(crate) fn controller_status(&self, now: Instant) -> Vec<ControllerStatus> {
        let own = |target: &str| self.config.controllers.iter().any(|c| c.target == target);
        let all = self.endpoints.status(now, &self.model).into_iter();
        let shown = all.filter(|status| own(&status.target));
        shown
            .map(|status| ControllerStatus {
                target: status.target,
                is_connected: status.is_connected,
                role: status.role.and_then(role_name).map(String::from),
                status: status
                    .status
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
            })
            .collect()
    }

    pub(crate) fn has_live_controller(&self) -> bool {
        self.controllers_seen
            .iter()
            .any(|(_, connected, _)| *connected)
    }

    pub(crate) const fn allot_bundle(&mut self) -> u32 {
        let bundle = self.next_bundle;
        self.next_bundle += 1;
        bundle
    }

    /// The interface with this OpenFlow number.
    pub(crate) fn by_number(&self, number: PortNo) -> Option<&Interface> {
        self.interfaces.get(self.by_number.get(&number)?)
    }

    /// Shows controllers a new interface: first that it is there, then that it is live.
    pub(crate) fn announce_port(&mut self, interface: &str) {
        if let Some(interface) = self.interfaces.get(interface)
            && let Some(number) = interface.number.filter(|_| interface.is_up_and_running())
        {
            let mut desc = interface.desc(number);
            desc.state.remove(PortState::LIVE);
            self.model.set_port(desc);
        }
        self.show_port(interface);
    }

    /// Shows controllers how an interface looks now.
    pub(crate) fn show_port(&mut self, interface: &str) {
        let Some(interface) = self.interfaces.get(interface) else {
            return;
        };
        if let Some(number) = interface.number
            && interface.is_up_and_running()
        {
            self.model.set_port(interface.desc(number));
        }
        self.is_stale = true;
    }

    /// What translation sees of this bridge, brought up to date.
    pub(crate) fn view(&mut self, patches: &PatchEnds<'_>) -> Arc<BridgeView> {
        let tables = self.model.view();
        if self.is_stale {
            let ports = self.view_ports(patches);
            let bundles = self.view_bundles(&ports);
            let mirrors = self.view_mirrors();
            let has_live_controller = self.has_live_controller();
            let view = Arc::make_mut(&mut self.view);
            view.ports = Arc::new(ports);
            view.bundles = Arc::new(bundles);
            view.mirrors = mirrors;
            view.forward_bpdu = self.config.forward_bpdu;
            view.in_band = false;
            view.has_live_controller = has_live_controller;
            view.fragments = match self.model.frag_mode() {
                FragMode::Normal => FragmentMode::Normal,
                FragMode::Drop => FragmentMode::Drop,
                FragMode::NxMatch => FragmentMode::NxMatch,
            };
            view.tables = Arc::clone(self.model.view());
            self.is_stale = false;
        } else if !Arc::ptr_eq(&self.view.tables, tables) {
            Arc::make_mut(&mut self.view).tables = Arc::clone(tables);
        }
        Arc::clone(&self.view)
    }

    fn view_ports(&self, patches: &PatchEnds<'_>) -> BTreeMap<PortNo, Arc<Port>> {
        let mut ports = BTreeMap::new();
        for interface in self.interfaces.values() {
            let Some(number) = interface.number.filter(|_| interface.is_up_and_running()) else {
                continue;
            };
            let name = &interface.config.name;
            let mut port = Port::new(number, name, interface.datapath_port());
            port.flags = interface.flags();
            port.is_live = interface.is_live();
            port.bundle = self.ports.get(&interface.port).map(|p| p.bundle);
            port.tunnel = interface.tunnel().map(|t| t.tunnel.clone());
            if let (Carrier::Patch(counters), Some(peer)) = (&interface.carrier, interface.peer()) {
                port.patch =
                    patches
                        .other_end(name, peer)
                        .map(|(bridge, number)| of_xlate::Patch {
                            bridge,
                            port: number,
                            counters: Arc::clone(counters),
                        });
            }
            ports.insert(number, Arc::new(port));
        }
        ports
    }

    fn view_bundles(&self, ports: &BTreeMap<PortNo, Arc<Port>>) -> Vec<Arc<Bundle>> {
        let mut members: HashMap<u32, Vec<PortNo>> = HashMap::new();
        for port in ports.values() {
            if let Some(bundle) = port.bundle {
                members.entry(bundle).or_default().push(port.number);
            }
        }
        let mut bundles = Vec::new();
        for (name, port) in &self.ports {
            let Some(members) = members.remove(&port.bundle) else {
                continue;
            };
            bundles.push(Arc::new(bundle(name, port, members)));
        }
        // A flood goes to the bridge's own port first, then to the others in order of age.
        bundles.sort_by_key(|b| (!b.members.contains(&PortNo::LOCAL), b.id));
        bundles
    }
}

/// Where patch ports lead.
#[derive(Debug)]
pub(crate) struct PatchEnds<'a> {
    /// By interface name: the bridge, its number there, and its peer.
    pub(crate) ends: &'a HashMap<String, PatchEnd>,
}

/// One end of a pair of patch ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatchEnd {
    pub(crate) bridge: BridgeId,
    pub(crate) number: PortNo,
    pub(crate) peer: String,
}

impl PatchEnds<'_> {
    fn other_end(&self, name: &str, peer: &str) -> Option<(BridgeId, PortNo)> {
        let end = self.ends.get(peer)?;
        (end.peer == name).then_some((end.bridge, end.number))
    }
}

fn bundle(name: &str, port: &BridgePort, members: Vec<PortNo>) -> Bundle {
    let config = &port.config;
    let set = |ids: &[u16]| (!ids.is_empty()).then(|| VlanSet::new(ids.iter().copied()));
    let trunks = match (config.vlan_mode, config.tag) {
        (VlanMode::NativeTagged | VlanMode::NativeUntagged, Some(native)) if native != 0 => {
            // The native VLAN is always carried, and takes the place of VLAN 0.
            let carried = |id: &u16| {
                let listed = config.trunks.is_empty() || config.trunks.contains(id);
                *id == native || (listed && *id != 0)
            };
            Some(VlanSet::new((0..4096).filter(carried)))
        }
        _ => set(&config.trunks),
    };
    // A bond whose members are all there sends by its first one, the active one.
    let bond = (members.len() > 1).then(|| of_xlate::Bond {
        active: members.first().copied(),
        mode: of_xlate::BondMode::ActiveBackup,
    });
    Bundle {
        id: port.bundle,
        name: name.into(),
        vlan_mode: match config.vlan_mode {
            VlanMode::Access => XlateVlanMode::Access,
            VlanMode::Trunk => XlateVlanMode::Trunk,
            VlanMode::NativeTagged => XlateVlanMode::NativeTagged,
            VlanMode::NativeUntagged => XlateVlanMode::NativeUntagged,
            VlanMode::Dot1qTunnel => XlateVlanMode::Dot1qTunnel,
        },
        tag: config.tag.unwrap_or(0),
        trunks,
        cvlans: set(&config.cvlans),
        qinq_ethtype: config.qinq_ethtype,
        priority_tags: match config.priority_tags {
            PriorityTags::Never => XlatePriorityTags::Never,
            PriorityTags::IfNonzero => XlatePriorityTags::IfNonzero,
            PriorityTags::Always => XlatePriorityTags::Always,
        },
        protected: config.protected,
        members,
        bond,
    }
}

fn model_config(config: &BridgeConfig, datapath_id: u64) -> ModelConfig {
    let mut model = ModelConfig::new(&config.name, datapath_id);
    if config.protocols != 0 {
        model.versions = VersionSet(config.protocols);
    }
    model.fail_mode = match config.fail_mode {
        FailMode::Standalone => ModelFailMode::Standalone,
        FailMode::Secure => ModelFailMode::Secure,
    };
    model.has_controllers = config.controllers.iter().any(|c| !c.service);
    model.dp_desc.clone_from(&config.dp_desc);
    model.serial.clone_from(&config.dp_sn);
    for (number, table) in &config.flow_tables {
        let settings = TableSettings {
            name: table.name.clone().unwrap_or_default(),
            flow_limit: table.flow_limit,
            evict: table.evict,
            ..TableSettings::default()
        };
        model.tables.insert(*number, settings);
    }
    model
}

/// The word of the `role` column.
const fn role_name(role: ControllerRole) -> Option<&'static str> {
    match role {
        ControllerRole::Equal => Some("other"),
        ControllerRole::Primary => Some("master"),
        ControllerRole::Secondary => Some("slave"),
        ControllerRole::NoChange => None,
    }
}

fn controller(config: &ControllerConfig) -> ControllerSettings {
    let mut settings = ControllerSettings::new(&config.target);
    settings.service = config.service;
    let millis = |ms: u32| Duration::from_millis(u64::from(ms));
    if let Some(backoff) = config.max_backoff {
        settings.max_backoff = millis(backoff);
    }
    if let Some(probe) = config.inactivity_probe {
        settings.inactivity_probe = millis(probe);
    }
    settings.rate_limit = config.rate_limit.unwrap_or(0);
    settings.burst_limit = config.burst_limit.unwrap_or(0);
    if let Some(size) = config.queue_size {
        settings.queue_size = size as usize;
    }
    settings.enable_async = config.enable_async_messages;
    if let Some(dscp) = config.dscp {
        settings.dscp = dscp;
    }
    settings
}
