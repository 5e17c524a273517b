//! What a switch is told to be.  Names are those of the columns in
//! `ovs-vswitchd.conf.db(5)`, which is the source of every meaning and default here.

use std::collections::BTreeMap;
use std::time::Duration;

pub use dp_api::Dispatch;

/// Six bytes of an Ethernet address, as the low 48 bits.
pub type Mac = u64;

/// What a bridge does while no controller is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// Switches like any learning switch.
    #[default]
    Standalone,
    /// Keeps to the flows it has.
    Secure,
}

/// A bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Name, also that of its local port.
    pub name: String,
    /// `datapath_type`; empty is the default type.
    pub datapath_type: String,
    /// Datapath id, 64 bits; none lets the switch derive it from the MAC.
    pub datapath_id: Option<u64>,
    /// `other_config:hwaddr`.
    pub hwaddr: Option<Mac>,
    /// `fail_mode`.
    pub fail_mode: FailMode,
    /// Allowed OpenFlow wire versions, bit `n` for version `n`; 0 is the default set.
    pub protocols: u32,
    /// `other_config:mac-aging-time`.
    pub mac_aging_time: Duration,
    /// `other_config:mac-table-size`.
    pub mac_table_size: usize,
    /// `other_config:forward-bpdu`.
    pub forward_bpdu: bool,
    /// `flood_vlans`.
    pub flood_vlans: Vec<u16>,
    /// `other_config:disable-in-band`.
    pub disable_in_band: bool,
    /// `other_config:in-band-queue`.
    pub in_band_queue: Option<u32>,
    /// `other_config:dp-desc`.
    pub dp_desc: Option<String>,
    /// `other_config:dp-sn`.
    pub dp_sn: Option<String>,
    /// Controllers, in no order; their target is their identity.
    pub controllers: Vec<ControllerConfig>,
    /// `mirrors`.
    pub mirrors: Vec<MirrorConfig>,
    /// `flow_tables`, by table number.
    pub flow_tables: BTreeMap<u8, FlowTableConfig>,
}

/// The default of `mac-aging-time`.
pub const MAC_AGING_TIME: Duration = Duration::from_secs(300);
/// The default of `mac-table-size`.
pub const MAC_TABLE_SIZE: usize = 8192;

impl BridgeConfig {
    /// A bridge with the defaults of every column.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_string(),
            datapath_type: String::new(),
            datapath_id: None,
            hwaddr: None,
            fail_mode: FailMode::Standalone,
            protocols: 0,
            mac_aging_time: MAC_AGING_TIME,
            mac_table_size: MAC_TABLE_SIZE,
            forward_bpdu: false,
            flood_vlans: Vec::new(),
            disable_in_band: false,
            in_band_queue: None,
            dp_desc: None,
            dp_sn: None,
            controllers: Vec::new(),
            mirrors: Vec::new(),
            flow_tables: BTreeMap::new(),
        }
    }
}

/// A row of `Mirror`.  Ports are those of the bridge, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorConfig {
    /// `name`.
    pub name: String,
    /// `select_all`.
    pub select_all: bool,
    /// `select_src_port`.
    pub select_src_ports: Vec<String>,
    /// `select_dst_port`.
    pub select_dst_ports: Vec<String>,
    /// `select_vlan`; empty is all.
    pub select_vlans: Vec<u16>,
    /// `filter`: a flow.
    pub filter: Option<String>,
    /// `output_port`.
    pub output_port: Option<String>,
    /// `output_vlan`, which counts only without an output port.
    pub output_vlan: Option<u16>,
    /// `snaplen`, in bytes.
    pub snaplen: Option<u16>,
}

/// A row of `Flow_Table`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTableConfig {
    /// `name`.
    pub name: Option<String>,
    /// `flow_limit`.
    pub flow_limit: Option<u32>,
    /// Whether `overflow_policy` is `evict`.
    pub evict: bool,
    /// `groups`.
    pub groups: Vec<String>,
    /// `prefixes`.
    pub prefixes: Vec<String>,
}

/// How a connection to a controller reaches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionMode {
    /// Through the bridge itself, by hidden flows.
    #[default]
    InBand,
    /// Past the bridge.
    OutOfBand,
}

/// A row of `Controller`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// `target`: `tcp:...`, `ssl:...`, `unix:...` and their passive forms.
    pub target: String,
    /// Whether `type` is `service`: serves anybody and never decides on fail-open.
    pub service: bool,
    /// `max_backoff`, in milliseconds.
    pub max_backoff: Option<u32>,
    /// `inactivity_probe`, in milliseconds; 0 turns it off.
    pub inactivity_probe: Option<u32>,
    /// `connection_mode`.
    pub connection_mode: ConnectionMode,
    /// `enable_async_messages`.
    pub enable_async_messages: bool,
    /// `controller_rate_limit`, packets a second.
    pub rate_limit: Option<u32>,
    /// `controller_burst_limit`, packets.
    pub burst_limit: Option<u32>,
    /// `controller_queue_size`, packets.
    pub queue_size: Option<u32>,
    /// `other_config:dscp`.
    pub dscp: Option<u8>,
}

/// `vlan_mode` of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanMode {
    /// Carries one VLAN untagged.
    Access,
    /// Carries VLANs tagged.
    #[default]
    Trunk,
    /// A trunk that also carries its native VLAN, tagged.
    NativeTagged,
    /// A trunk that carries its native VLAN untagged.
    NativeUntagged,
    /// Wraps customers' VLANs into a service VLAN.
    Dot1qTunnel,
}

/// A port: one interface, or a bond of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Name.
    pub name: String,
    /// `vlan_mode`, resolved: an empty column is access with a tag and trunk without.
    pub vlan_mode: VlanMode,
    /// `tag`.
    pub tag: Option<u16>,
    /// `trunks`; empty is all.
    pub trunks: Vec<u16>,
    /// `cvlans`; empty is all.
    pub cvlans: Vec<u16>,
    /// `other_config:qinq-ethtype`: 0x88a8 or 0x8100.
    pub qinq_ethtype: u16,
    /// `other_config:priority-tags`: `never`, `if-nonzero` or `always`.
    pub priority_tags: PriorityTags,
    /// `protected`.
    pub protected: bool,
    /// `bond_mode`, for more than one interface.
    pub bond_mode: Option<String>,
    /// `mac`, which a bond or an internal interface may be given.
    pub mac: Option<Mac>,
    /// The interfaces, by name.
    pub interfaces: BTreeMap<String, InterfaceConfig>,
}

impl PortConfig {
    /// A trunk of one interface of the same name.
    pub fn new(name: &str, kind: &str) -> Self {
        let interface = InterfaceConfig::new(name, kind);
        Self {
            name: name.to_string(),
            vlan_mode: VlanMode::Trunk,
            tag: None,
            trunks: Vec::new(),
            cvlans: Vec::new(),
            qinq_ethtype: 0x88a8,
            priority_tags: PriorityTags::Never,
            protected: false,
            bond_mode: None,
            mac: None,
            interfaces: BTreeMap::from([(name.to_string(), interface)]),
        }
    }
}

/// Which priority-tagged packets keep their tag on an access port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorityTags {
    /// None.
    #[default]
    Never,
    /// Those with a priority other than zero.
    IfNonzero,
    /// All.
    Always,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Name of the device.
    pub name: String,
    /// `type`; `internal` for a bridge's own, `system` when the column is empty.
    pub kind: String,
    /// `options`.
    pub options: BTreeMap<String, String>,
    /// `ofport_request`.
    pub ofport_request: Option<u16>,
    /// The number that it had before, which it gets again if that is free.
    pub former_number: FormerNumber,
    /// `mtu_request`.
    pub mtu_request: Option<u32>,
    /// `mac`, for internal interfaces.
    pub mac: Option<Mac>,
}

impl InterfaceConfig {
    /// An interface without options.
    pub fn new(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_string(),
            kind: kind.to_string(),
            options: BTreeMap::new(),
            ofport_request: None,
            former_number: FormerNumber::default(),
            mtu_request: None,
            mac: None,
        }
    }

    /// The number that it should get if that is free.
    pub fn wished_number(&self) -> Option<u16> {
        self.ofport_request.or(self.former_number.0)
    }
}

/// The OpenFlow number that an interface had in an earlier life of it or of the switch.  It
/// is a wish and no setting: all are equal, so that another one is no change.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormerNumber(pub Option<u16>);

impl PartialEq for FormerNumber {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for FormerNumber {}

/// `Open_vSwitch` settings that concern the switch as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// `other_config:max-idle`: how long an unused megaflow is kept.
    pub max_idle: Duration,
    /// `other_config:flow-limit`: megaflows at most.
    pub flow_limit: u32,
    /// `other_config:max-revalidator`: the longest time between two revalidations.
    pub max_revalidator: Duration,
    /// `other_config:n-handler-threads`; none is chosen by the datapath.
    pub n_handler_threads: Option<u32>,
    /// `other_config:n-revalidator-threads`; none is chosen by the switch.
    pub n_revalidator_threads: Option<u32>,
    /// `other_config:bundle-idle-timeout`.
    pub bundle_idle_timeout: Duration,
    /// `other_config:vlan-limit`: tags that are looked at, 1 or 2 (0 is all).
    pub vlan_limit: u8,
    /// `other_config:flow-restore-wait`: no traffic is forwarded while this holds.
    pub flow_restore_wait: bool,
    /// `other_config:upcall-dispatch`: how a kernel hands packets over.
    pub upcall_dispatch: Dispatch,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            max_idle: Duration::from_secs(10),
            flow_limit: 200_000,
            max_revalidator: Duration::from_millis(500),
            n_handler_threads: None,
            n_revalidator_threads: None,
            bundle_idle_timeout: Duration::from_secs(10),
            vlan_limit: 1,
            flow_restore_wait: false,
            upcall_dispatch: Dispatch::Auto,
        }
    }
}

/// One change of a switch's configuration.  A step that fails leaves the rest untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// New settings of the switch as a whole.
    Settings(SwitchConfig),
    /// Adds a bridge, without ports other than its local one.
    AddBridge(BridgeConfig),
    /// Changes a bridge's settings in place; name and datapath type stay.
    SetBridge(BridgeConfig),
    /// Removes a bridge with its ports.
    DelBridge(String),
    /// Adds a port with its interfaces.  An interface that cannot be set up is reported in
    /// its status; the others are added all the same.
    AddPort {
        /// The bridge.
        bridge: String,
        /// The port.
        port: PortConfig,
    },
    /// Changes a port in place: interfaces that stay the same are not touched.
    SetPort {
        /// The bridge.
        bridge: String,
        /// The port, whose name stays.
        port: PortConfig,
    },
    /// Removes a port with its interfaces.
    DelPort {
        /// The bridge.
        bridge: String,
        /// Name of the port.
        port: String,
    },
}
