//! The tables and columns that the switch reads, and those that it writes.

use db_client::{Columns, Interest, Layout, RowRef, TableId, TableLayout};
use db_model::Datum;

use crate::columns::Row;

/// A table that the switch follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) id: TableId,
    /// The columns that configure the switch: others that change are no reason to act.
    pub(crate) config: Columns,
}

/// The tables that the switch follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) root: Table,
    pub(crate) bridge: Table,
    pub(crate) port: Table,
    pub(crate) interface: Table,
    pub(crate) controller: Table,
    pub(crate) mirror: Table,
    pub(crate) flow_table: Table,
}

/// By table: the columns that are read, then those that are only written.
const COLUMNS: [(&str, &[&str], &[&str]); 7] = [
    (
        "Open_vSwitch",
        &["bridges", "other_config", "next_cfg"],
        &[
            "cur_cfg",
            "datapath_types",
            "iface_types",
            "ovs_version",
            "db_version",
            "dpdk_initialized",
        ],
    ),
    (
        "Bridge",
        &[
            "name",
            "ports",
            "mirrors",
            "controller",
            "flow_tables",
            "datapath_type",
            "fail_mode",
            "flood_vlans",
            "other_config",
            "protocols",
        ],
        &["datapath_id", "datapath_version", "status"],
    ),
    (
        "Port",
        &[
            "name",
            "interfaces",
            "tag",
            "trunks",
            "cvlans",
            "vlan_mode",
            "other_config",
            "bond_mode",
            "mac",
            "protected",
        ],
        &["bond_active_slave", "status", "statistics"],
    ),
    (
        "Interface",
        &[
            "name",
            "type",
            "options",
            "ofport_request",
            "mtu_request",
            "mac",
            "other_config",
        ],
        &[
            "ofport",
            "error",
            "mac_in_use",
            "mtu",
            "ifindex",
            "admin_state",
            "link_state",
            "link_resets",
            "link_speed",
            "duplex",
            "status",
            "statistics",
        ],
    ),
    (
        "Controller",
        &[
            "target",
            "type",
            "max_backoff",
            "inactivity_probe",
            "connection_mode",
            "enable_async_messages",
            "controller_rate_limit",
            "controller_burst_limit",
            "controller_queue_size",
            "other_config",
        ],
        &["is_connected", "role", "status"],
    ),
    (
        "Mirror",
        &[
            "name",
            "select_all",
            "select_src_port",
            "select_dst_port",
            "select_vlan",
            "filter",
            "output_port",
            "output_vlan",
            "snaplen",
        ],
        &["statistics"],
    ),
    (
        "Flow_Table",
        &[
            "name",
            "flow_limit",
            "overflow_policy",
            "groups",
            "prefixes",
        ],
        &[],
    ),
];

impl Tables {
    /// Finds the tables in `layout`, and what to ask the server for.
    ///
    /// # Panics
    /// When `layout` is not that of the switch's own schema.
    pub(crate) fn new(layout: &Layout) -> (Self, Interest) {
        let mut interest = Interest::new();
        let [
            root,
            bridge,
            port,
            interface,
            controller,
            mirror,
            flow_table,
        ] = COLUMNS.map(|(name, read, written)| find(layout, name, read, written, &mut interest));
        (
            Self {
                root,
                bridge,
                port,
                interface,
                controller,
                mirror,
                flow_table,
            },
            interest,
        )
    }
}

fn find(
    layout: &Layout,
    name: &str,
    read: &[&str],
    written: &[&str],
    interest: &mut Interest,
) -> Table {
    let Some(id) = layout.table(name) else {
        panic!("the schema has no table {name}")
    };
    let mut config = Columns::default();
    for column in read.iter().chain(written) {
        let Some(found) = layout[id].column(column) else {
            panic!("the schema's table {name} has no column {column}");
        };
        interest.add_column(id, found);
        if read.contains(column) {
            config.insert(found);
        }
    }
    Table { id, config }
}

/// A row of the replica, whose columns are found by name.
#[derive(Clone, Copy)]
pub(crate) struct NamedRow<'a> {
    pub(crate) row: RowRef<'a>,
    pub(crate) table: &'a TableLayout,
}

impl Row for NamedRow<'_> {
    fn column(&self, name: &str) -> Option<&Datum> {
        self.table.column(name).map(|id| self.row.get(id))
    }
}
