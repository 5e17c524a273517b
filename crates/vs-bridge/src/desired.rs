//! What the database asks for: rows to the configuration of a switch.  Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vs_switch::config::{
    BridgeConfig, ConnectionMode, ControllerConfig, Dispatch, FailMode, FlowTableConfig,
    FormerNumber, InterfaceConfig, MAC_AGING_TIME, MAC_TABLE_SIZE, MirrorConfig, PortConfig,
    PriorityTags, SwitchConfig, VlanMode,
};

use crate::columns::{Columns, Row, is_usable_mac, mac};

/// A bridge with its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredBridge {
    /// Its settings.
    pub config: Arc<BridgeConfig>,
    /// Its ports by name, its local port included.
    pub ports: BTreeMap<String, Arc<PortConfig>>,
}

/// All that a switch is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Settings of the switch as a whole.
    pub settings: SwitchConfig,
    /// Its bridges by name.
    pub bridges: BTreeMap<String, DesiredBridge>,
}

/// From the one row of `Open_vSwitch`.
pub fn switch_config(row: &dyn Row) -> SwitchConfig {
    let row = Columns(row);
    let millis = |key: &str, default: Duration| {
        row.other_number::<u64>(key)
            .map_or(default, Duration::from_millis)
    };
    let default = SwitchConfig::default();
    SwitchConfig {
        max_idle: millis("max-idle", default.max_idle).max(Duration::from_millis(100)),
        flow_limit: row.other_number("flow-limit").unwrap_or(default.flow_limit),
        max_revalidator: millis("max-revalidator", default.max_revalidator),
        n_handler_threads: row.other_number("n-handler-threads").filter(|n| *n > 0),
        n_revalidator_threads: row.other_number("n-revalidator-threads").filter(|n| *n > 0),
        bundle_idle_timeout: row
            .other_number("bundle-idle-timeout")
            .map_or(default.bundle_idle_timeout, Duration::from_secs),
        vlan_limit: row.other_number("vlan-limit").unwrap_or(default.vlan_limit),
        flow_restore_wait: row.other_true("flow-restore-wait"),
        upcall_dispatch: upcall_dispatch(&row),
    }
}

/// `auto` where nothing else is said, or nothing that is known.
fn upcall_dispatch(row: &Columns<'_>) -> Dispatch {
    let Some(text) = row.other("upcall-dispatch") else {
        return Dispatch::Auto;
    };
    text.parse().unwrap_or_else(|()| {
        log::warn!(target: "bridge",
            "other_config:upcall-dispatch: '{text}' is not auto, per-cpu or per-port");
        Dispatch::Auto
    })
}

/// Whether a bridge may be called `name`: its control sockets are files of that name, and whoever
/// may write the database must not choose the folder they lie in.
pub fn is_usable_bridge_name(name: &str) -> bool {
    !name.contains(['/', '\\', '\0'])
}

/// From a row of `Bridge`; its controllers and flow tables are filled in by the caller.
pub fn bridge_config(row: &dyn Row) -> BridgeConfig {
    let row = Columns(row);
    let aging = row
        .other_number::<u64>("mac-aging-time")
        .map(Duration::from_secs);
    let table_size = row.other_number::<usize>("mac-table-size");
    BridgeConfig {
        datapath_type: row.text("datapath_type").to_string(),
        datapath_id: row.other("datapath-id").and_then(datapath_id),
        hwaddr: row
            .other("hwaddr")
            .and_then(mac)
            .filter(|m| is_usable_mac(*m)),
        fail_mode: match row.text("fail_mode") {
            "secure" => FailMode::Secure,
            _ => FailMode::Standalone,
        },
        protocols: row
            .texts("protocols")
            .filter_map(version)
            .fold(0, |all, v| all | 1 << v),
        mac_aging_time: aging.filter(|t| !t.is_zero()).unwrap_or(MAC_AGING_TIME),
        mac_table_size: table_size.filter(|n| *n > 0).unwrap_or(MAC_TABLE_SIZE),
        forward_bpdu: row.other_true("forward-bpdu"),
        flood_vlans: row.numbers("flood_vlans"),
        disable_in_band: row.other_true("disable-in-band"),
        in_band_queue: row.other_number("in-band-queue"),
        dp_desc: row.other("dp-desc").map(String::from),
        dp_sn: row.other("dp-sn").map(String::from),
        ..BridgeConfig::new(row.text("name"))
    }
}

/// 16 hexadecimal digits, or fewer after `0x`; zero is no id.
fn datapath_id(text: &str) -> Option<u64> {
    let (digits, short) = match text.strip_prefix("0x") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    if digits.len() > 16 || (!short && digits.len() != 16) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().filter(|id| *id != 0)
}

/// The wire version of a name in `protocols`.
fn version(name: &str) -> Option<u32> {
    const NAMES: [&str; 6] = [
        "OpenFlow10",
        "OpenFlow11",
        "OpenFlow12",
        "OpenFlow13",
        "OpenFlow14",
        "OpenFlow15",
    ];
    (1..).zip(NAMES).find(|(_, n)| *n == name).map(|(v, _)| v)
}

/// From a row of `Controller`.
pub fn controller_config(row: &dyn Row) -> ControllerConfig {
    let row = Columns(row);
    let number = |name: &str| row.integer(name).and_then(|n| u32::try_from(n).ok());
    ControllerConfig {
        target: row.text("target").to_string(),
        service: row.text("type") == "service",
        max_backoff: number("max_backoff"),
        inactivity_probe: number("inactivity_probe"),
        connection_mode: match row.text("connection_mode") {
            "out-of-band" => ConnectionMode::OutOfBand,
            _ => ConnectionMode::InBand,
        },
        enable_async_messages: row.boolean("enable_async_messages").unwrap_or(true),
        rate_limit: number("controller_rate_limit"),
        burst_limit: number("controller_burst_limit"),
        queue_size: row
            .other_number("controller_queue_size")
            .or(number("controller_queue_size")),
        dscp: row.other_number("dscp"),
    }
}

/// From a row of `Mirror`; its ports are filled in by the caller.
pub fn mirror_config(row: &dyn Row) -> MirrorConfig {
    let row = Columns(row);
    let number = |name: &str| row.integer(name).and_then(|n| u16::try_from(n).ok());
    MirrorConfig {
        name: row.text("name").to_string(),
        select_all: row.boolean("select_all").unwrap_or(false),
        select_vlans: row.numbers("select_vlan"),
        filter: Some(row.text("filter"))
            .filter(|f| !f.is_empty())
            .map(String::from),
        output_vlan: number("output_vlan"),
        // The whole of a packet is at most so long.
        snaplen: number("snaplen").filter(|n| *n < u16::MAX),
        ..MirrorConfig::default()
    }
}

/// From a row of `Flow_Table`.
pub fn flow_table_config(row: &dyn Row) -> FlowTableConfig {
    let row = Columns(row);
    FlowTableConfig {
        name: Some(row.text("name"))
            .filter(|n| !n.is_empty())
            .map(String::from),
        flow_limit: row
            .integer("flow_limit")
            .and_then(|n| u32::try_from(n).ok()),
        evict: row.text("overflow_policy") == "evict",
        groups: row.texts("groups").map(String::from).collect(),
        prefixes: row.texts("prefixes").map(String::from).collect(),
    }
}

/// From a row of `Port` and those of its interfaces.  `bridge` is the name of the bridge,
/// whose own port is internal whatever its type says.
pub fn port_config(bridge: &str, row: &dyn Row, interfaces: &[&dyn Row]) -> PortConfig {
    let row = Columns(row);
    let tag = row
        .integer("tag")
        .and_then(|n| u16::try_from(n).ok())
        .filter(|t| *t < 4096);
    let interfaces = interfaces.iter().map(|i| interface_config(bridge, *i));
    let bond_mode = Some(row.text("bond_mode")).filter(|m| !m.is_empty());
    PortConfig {
        vlan_mode: vlan_mode(row.text("vlan_mode"), tag),
        tag,
        trunks: row.numbers("trunks"),
        cvlans: row.numbers("cvlans"),
        qinq_ethtype: match row.other("qinq-ethtype") {
            Some("802.1q") => 0x8100,
            _ => 0x88a8,
        },
        priority_tags: match row.other("priority-tags") {
            Some("true" | "if-nonzero") => PriorityTags::IfNonzero,
            Some("always") => PriorityTags::Always,
            _ => PriorityTags::Never,
        },
        protected: row.boolean("protected").unwrap_or(false),
        bond_mode: bond_mode.map(String::from),
        mac: mac(row.text("mac")).filter(|m| is_usable_mac(*m)),
        interfaces: interfaces.map(|i| (i.name.clone(), i)).collect(),
        ..PortConfig::new(row.text("name"), "system")
    }
}

fn vlan_mode(text: &str, tag: Option<u16>) -> VlanMode {
    match text {
        "access" => VlanMode::Access,
        "trunk" => VlanMode::Trunk,
        "native-tagged" => VlanMode::NativeTagged,
        "native-untagged" => VlanMode::NativeUntagged,
        "dot1q-tunnel" => VlanMode::Dot1qTunnel,
        _ if tag.is_some() => VlanMode::Access,
        _ => VlanMode::Trunk,
    }
}

fn interface_config(bridge: &str, row: &dyn Row) -> InterfaceConfig {
    let row = Columns(row);
    let name = row.text("name");
    let kind = match row.text("type") {
        _ if name == bridge => "internal",
        "" => "system",
        kind => kind,
    };
    let number = |name: &str| row.integer(name);
    InterfaceConfig {
        name: name.to_string(),
        kind: kind.to_string(),
        options: row
            .pairs("options")
            .map(|(k, v)| (k.into(), v.into()))
            .collect(),
        ofport_request: number("ofport_request").and_then(|n| u16::try_from(n).ok()),
        former_number: FormerNumber(number("ofport").and_then(|n| u16::try_from(n).ok())),
        mtu_request: number("mtu_request").and_then(|n| u32::try_from(n).ok()),
        mac: mac(row.text("mac")).filter(|m| is_usable_mac(*m)),
    }
}

#[cfg(test)]
mod tests {
    use db_model::{Atom, Datum};

    use super::*;

    /// A row that a test writes down.
    #[derive(Default)]
    struct TestRow(BTreeMap<&'static str, Datum>);

    impl Row for TestRow {
        fn column(&self, name: &str) -> Option<&Datum> {
            self.0.get(name)
        }
    }

    impl TestRow {
        fn text(mut self, name: &'static str, value: &str) -> Self {
            self.0.insert(name, set(vec![Atom::string(value)]));
            self
        }

        fn integer(mut self, name: &'static str, value: i64) -> Self {
            self.0.insert(name, set(vec![Atom::Integer(value)]));
            self
        }

        fn other(mut self, pairs: &[(&str, &str)]) -> Self {
            let pairs = pairs
                .iter()
                .map(|(k, v)| (Atom::string(*k), Atom::string(*v)))
                .collect();
            let map = Datum::from_map(pairs).unwrap_or_else(|| panic!("a key stands twice"));
            self.0.insert("other_config", map);
            self
        }
    }

    fn set(atoms: Vec<Atom>) -> Datum {
        Datum::from_set(atoms).unwrap_or_else(|| panic!("an element stands twice"))
    }

    #[test]
    fn an_empty_bridge_row_has_the_defaults() {
        let row = TestRow::default().text("name", "br0");
        assert_eq!(bridge_config(&row), BridgeConfig::new("br0"));
    }

    #[test]
    fn no_name_of_a_bridge_leads_out_of_the_run_directory() {
        let run = std::path::Path::new("/run/x");
        for name in [
            "../evil", "a/b", "/etc/x", "..\\evil", "/", "\\", "x/..", "n\0l",
        ] {
            assert!(!is_usable_bridge_name(name), "{name:?}");
        }
        for name in ["br0", "..", ".", "x y", "é", "br-int.4", "a\nb", "-"] {
            assert!(is_usable_bridge_name(name), "{name:?}");
            for suffix in ["mgmt", "snoop"] {
                let file = run.join(format!("{name}.{suffix}"));
                assert_eq!(file.parent(), Some(run), "{name:?}");
            }
        }
    }

    #[test]
    fn settings_are_read_and_bad_ones_ignored() {
        let row = TestRow::default()
            .text("name", "br0")
            .text("fail_mode", "secure")
            .other(&[
                ("datapath-id", "0x1f"),
                ("hwaddr", "01:00:00:00:00:01"),
                ("mac-table-size", "none"),
                ("forward-bpdu", "true"),
            ]);
        let config = bridge_config(&row);
        assert_eq!(config.datapath_id, Some(0x1f));
        assert_eq!(
            config.hwaddr, None,
            "a multicast address is no bridge address"
        );
        assert_eq!(config.mac_table_size, MAC_TABLE_SIZE);
        assert_eq!(
            (config.fail_mode, config.forward_bpdu),
            (FailMode::Secure, true)
        );
    }

    #[test]
    fn datapath_ids_have_16_digits_or_a_prefix() {
        assert_eq!(datapath_id("00000000000000ff"), Some(255));
        assert_eq!(datapath_id("ff"), None);
        assert_eq!(datapath_id("0xff"), Some(255));
        assert_eq!(datapath_id("0x0"), None);
        assert_eq!(datapath_id("0x11112222333344445"), None);
    }

    #[test]
    fn a_tag_alone_makes_an_access_port() {
        let interface = TestRow::default().text("name", "p1");
        let row = TestRow::default().text("name", "p1").integer("tag", 9);
        let port = port_config("br0", &row, &[&interface]);
        assert_eq!((port.vlan_mode, port.tag), (VlanMode::Access, Some(9)));
        assert_eq!(port.interfaces["p1"].kind, "system");
    }

    #[test]
    fn a_number_from_before_is_a_wish_and_no_setting() {
        let row = TestRow::default().text("name", "p1");
        let wished = |ofport, request| {
            let interface = TestRow::default().text("name", "p1");
            let interface = interface.integer("ofport", ofport);
            let interface = match request {
                Some(number) => interface.integer("ofport_request", number),
                None => interface,
            };
            port_config("br0", &row, &[&interface])
        };
        let number = |port: PortConfig| port.interfaces["p1"].wished_number();
        assert_eq!(number(wished(7, None)), Some(7));
        assert_eq!(number(wished(7, Some(9))), Some(9));
        assert_eq!(number(wished(-1, None)), None);
        assert_eq!(wished(7, None), wished(8, None));
    }

    #[test]
    fn a_bridges_own_port_is_internal() {
        let interface = TestRow::default()
            .text("name", "br0")
            .text("type", "system");
        let row = TestRow::default().text("name", "br0");
        let port = port_config("br0", &row, &[&interface]);
        assert_eq!(port.interfaces["br0"].kind, "internal");
    }
}
