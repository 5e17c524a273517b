//! Follows the database: keeps what is desired up to date with each change of a row, and
//! says which bridges and ports to look at.  The work is that of the rows that changed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use db_client::{Changes, Layout, Replica, TableChanges};
use db_model::{Atom, Datum, Uuid};
use vs_switch::config::{BridgeConfig, MirrorConfig, PortConfig};

use crate::columns::{Columns, Row};
use crate::desired::{
    Desired, DesiredBridge, bridge_config, controller_config, flow_table_config,
    is_usable_bridge_name, mirror_config, port_config, switch_config,
};
use crate::plan::Dirty;
use crate::tables::{NamedRow, Table, Tables};

/// What is known of a row of `Bridge`.
#[derive(Clone, Debug)]
struct BridgeRow {
    name: String,
    ports: BTreeSet<Uuid>,
}

/// What is known of a row of `Port`.
#[derive(Clone, Debug)]
struct PortRow {
    bridge: String,
    name: String,
    /// Rows and names of its interfaces.
    interfaces: Vec<(Uuid, String)>,
}

/// Turns changes of rows into changes of what is desired.
#[derive(Debug)]
pub(crate) struct Watcher {
    tables: Tables,
    layout: Arc<Layout>,
    desired: Desired,
    bridges: HashMap<Uuid, BridgeRow>,
    ports: HashMap<Uuid, PortRow>,
    /// By interface: its port.
    owners: HashMap<Uuid, Uuid>,
    /// By name: the row of the interface.
    interfaces: HashMap<String, Uuid>,
}

impl Watcher {
    pub(crate) fn new(layout: Arc<Layout>, tables: Tables) -> Self {
        Self {
            tables,
            layout,
            desired: Desired::default(),
            bridges: HashMap::new(),
            ports: HashMap::new(),
            owners: HashMap::new(),
            interfaces: HashMap::new(),
        }
    }

    /// What the database asks for, as of the last update.
    pub(crate) const fn desired(&self) -> &Desired {
        &self.desired
    }

    /// The row of the interface called `name`.
    pub(crate) fn interface(&self, name: &str) -> Option<Uuid> {
        self.interfaces.get(name).copied()
    }

    /// The row of the bridge called `name`.
    pub(crate) fn bridge(&self, name: &str) -> Option<Uuid> {
        self.bridges
            .iter()
            .find(|(_, b)| b.name == name)
            .map(|(uuid, _)| *uuid)
    }

    /// The names of all interfaces.
    pub(crate) fn interface_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let owner = |uuid| self.owners.get(uuid).and_then(|p| self.ports.get(p));
        self.interfaces
            .iter()
            .filter_map(move |(name, uuid)| Some((owner(uuid)?.bridge.as_str(), name.as_str())))
    }

    /// Takes `changes` in, after which the replica is as it is now.
    pub(crate) fn update(&mut self, replica: &Replica, changes: &Changes) -> Dirty {
        let mut dirty = Dirty::default();
        self.update_settings(replica, changes, &mut dirty);
        let mut stale = self.stale_ports(changes);
        self.update_bridges(replica, changes, &mut stale, &mut dirty);
        for port in stale {
            self.update_port(replica, port, &mut dirty);
        }
        dirty
    }

    fn named<'a>(&'a self, replica: &'a Replica, table: Table, uuid: Uuid) -> Option<NamedRow<'a>> {
        let row = replica.row(table.id, uuid)?;
        Some(NamedRow {
            row,
            table: &self.layout[table.id],
        })
    }

    fn update_settings(&mut self, replica: &Replica, changes: &Changes, dirty: &mut Dirty) {
        if changes.table(self.tables.root.id).is_empty() {
            return;
        }
        let Some(row) = replica.table(self.tables.root.id).rows().next() else {
            return;
        };
        let table = &self.layout[self.tables.root.id];
        let settings = switch_config(&NamedRow { row, table });
        if settings != self.desired.settings {
            self.desired.settings = settings;
            dirty.settings = true;
        }
    }

    /// The ports that must be read anew because their row or an interface's row changed.
    fn stale_ports(&self, changes: &Changes) -> HashSet<Uuid> {
        let mut stale: HashSet<Uuid> = HashSet::new();
        let ports = changes.table(self.tables.port.id);
        stale.extend(configured(ports, self.tables.port).filter(|p| self.ports.contains_key(p)));
        let interfaces = changes.table(self.tables.interface.id);
        let changed = configured(interfaces, self.tables.interface);
        stale.extend(changed.filter_map(|i| self.owners.get(&i).copied()));
        stale
    }

    fn update_bridges(
        &mut self,
        replica: &Replica,
        changes: &Changes,
        stale: &mut HashSet<Uuid>,
        dirty: &mut Dirty,
    ) {
        let bridges = changes.table(self.tables.bridge.id);
        for uuid in bridges.deleted.keys() {
            self.remove_bridge(*uuid, stale, dirty);
        }
        let mut reread: BTreeSet<Uuid> = configured(bridges, self.tables.bridge).collect();
        let others = [
            self.tables.controller,
            self.tables.mirror,
            self.tables.flow_table,
        ];
        if others
            .iter()
            .any(|t| configured(changes.table(t.id), *t).next().is_some())
        {
            reread.extend(self.bridges.keys());
        }
        for uuid in reread {
            self.update_bridge(replica, uuid, stale, dirty);
        }
    }

    fn remove_bridge(&mut self, uuid: Uuid, stale: &mut HashSet<Uuid>, dirty: &mut Dirty) {
        let Some(bridge) = self.bridges.remove(&uuid) else {
            return;
        };
        for port in &bridge.ports {
            self.forget_port(*port, dirty);
            stale.remove(port);
        }
        self.desired.bridges.remove(&bridge.name);
        dirty.bridges.entry(bridge.name).or_default();
    }

    fn update_bridge(
        &mut self,
        replica: &Replica,
        uuid: Uuid,
        stale: &mut HashSet<Uuid>,
        dirty: &mut Dirty,
    ) {
        let Some(row) = self.named(replica, self.tables.bridge, uuid) else {
            return;
        };
        // A name never changes, so such a row never had a bridge.
        let name = Columns(&row).text("name");
        if !is_usable_bridge_name(name) {
            base::log_limited!(
                Warn,
                "bridge",
                (1, 5),
                "ignoring bridge with invalid name \"{name}\""
            );
            return;
        }
        let config = self.read_bridge(replica, &row);
        let ports: BTreeSet<Uuid> = uuids(row.column("ports")).collect();
        let name = config.name.clone();
        let old = self.bridges.insert(
            uuid,
            BridgeRow {
                name: name.clone(),
                ports: ports.clone(),
            },
        );
        let old = old.map(|b| b.ports).unwrap_or_default();
        for gone in old.difference(&ports) {
            self.forget_port(*gone, dirty);
            stale.remove(gone);
        }
        for added in ports.difference(&old) {
            self.ports.insert(*added, PortRow::unread(&name));
            stale.insert(*added);
        }
        dirty.bridges.entry(name.clone()).or_default();
        match self.desired.bridges.get_mut(&name) {
            Some(bridge) if *bridge.config == config => {}
            Some(bridge) => bridge.config = Arc::new(config),
            None => {
                let local = Arc::new(PortConfig::new(&name, "internal"));
                let ports = BTreeMap::from([(name.clone(), local)]);
                dirty.port(&name, &name);
                let bridge = DesiredBridge {
                    config: Arc::new(config),
                    ports,
                };
                self.desired.bridges.insert(name, bridge);
            }
        }
    }

    fn read_bridge(&self, replica: &Replica, row: &NamedRow<'_>) -> BridgeConfig {
        let mut config = bridge_config(row);
        let controllers = uuids(row.column("controller"));
        config.controllers = controllers
            .filter_map(|uuid| self.named(replica, self.tables.controller, uuid))
            .map(|row| controller_config(&row))
            .collect();
        config.controllers.sort_by(|a, b| a.target.cmp(&b.target));
        let mirrors = uuids(row.column("mirrors"));
        config.mirrors = mirrors
            .filter_map(|uuid| self.named(replica, self.tables.mirror, uuid))
            .map(|row| self.read_mirror(replica, &row))
            .collect();
        let tables = row.column("flow_tables").map_or(&[][..], Datum::as_map);
        for (number, uuid) in tables {
            let (Atom::Integer(number), Atom::Uuid(uuid)) = (number, uuid) else {
                continue;
            };
            let Ok(number) = u8::try_from(*number) else {
                continue;
            };
            if let Some(row) = self.named(replica, self.tables.flow_table, *uuid) {
                config.flow_tables.insert(number, flow_table_config(&row));
            }
        }
        config
    }

    fn read_mirror(&self, replica: &Replica, row: &NamedRow<'_>) -> MirrorConfig {
        let ports = |column: &str| -> Vec<String> {
            uuids(row.column(column))
                .filter_map(|uuid| self.named(replica, self.tables.port, uuid))
                .map(|row| Columns(&row).text("name").to_string())
                .collect()
        };
        MirrorConfig {
            select_src_ports: ports("select_src_port"),
            select_dst_ports: ports("select_dst_port"),
            output_port: ports("output_port").pop(),
            ..mirror_config(row)
        }
    }

    /// Takes a port out; a bridge's own port stays with its defaults.
    fn forget_port(&mut self, uuid: Uuid, dirty: &mut Dirty) {
        let Some(port) = self.ports.remove(&uuid) else {
            return;
        };
        self.forget_interfaces(uuid, &port);
        if port.name.is_empty() {
            return;
        }
        dirty.port(&port.bridge, &port.name);
        let Some(bridge) = self.desired.bridges.get_mut(&port.bridge) else {
            return;
        };
        if port.name == port.bridge {
            let local = PortConfig::new(&port.name, "internal");
            bridge.ports.insert(port.name, Arc::new(local));
        } else {
            bridge.ports.remove(&port.name);
        }
    }

    fn forget_interfaces(&mut self, uuid: Uuid, port: &PortRow) {
        for (interface, name) in &port.interfaces {
            if self.owners.get(interface) == Some(&uuid) {
                self.owners.remove(interface);
            }
            if self.interfaces.get(name) == Some(interface) {
                self.interfaces.remove(name);
            }
        }
    }

    fn update_port(&mut self, replica: &Replica, uuid: Uuid, dirty: &mut Dirty) {
        let Some(known) = self.ports.get(&uuid).cloned() else {
            return;
        };
        self.forget_interfaces(uuid, &known);
        let Some(row) = self.named(replica, self.tables.port, uuid) else {
            return;
        };
        let rows: Vec<NamedRow<'_>> = uuids(row.column("interfaces"))
            .filter_map(|uuid| self.named(replica, self.tables.interface, uuid))
            .collect();
        let borrowed: Vec<&dyn Row> = rows.iter().map(|r| r as &dyn Row).collect();
        let config = port_config(&known.bridge, &row, &borrowed);
        let interfaces: Vec<(Uuid, String)> = rows
            .iter()
            .map(|row| (row.row.uuid(), Columns(row).text("name").to_string()))
            .collect();
        for (interface, name) in &interfaces {
            self.owners.insert(*interface, uuid);
            self.interfaces.insert(name.clone(), *interface);
        }
        let name = config.name.clone();
        let port = PortRow {
            bridge: known.bridge,
            name: name.clone(),
            interfaces,
        };
        dirty.port(&port.bridge, &name);
        if let Some(bridge) = self.desired.bridges.get_mut(&port.bridge) {
            bridge.ports.insert(name, Arc::new(config));
        }
        self.ports.insert(uuid, port);
    }
}

impl PortRow {
    fn unread(bridge: &str) -> Self {
        Self {
            bridge: bridge.to_string(),
            name: String::new(),
            interfaces: Vec::new(),
        }
    }
}

/// The rows that are new, or whose configuration was written.
fn configured(changes: &TableChanges, table: Table) -> impl Iterator<Item = Uuid> {
    let written = changes
        .modified
        .iter()
        .filter(move |(_, c)| c.intersects(table.config));
    changes
        .inserted
        .iter()
        .copied()
        .chain(written.map(|(uuid, _)| *uuid))
}

fn uuids(datum: Option<&Datum>) -> impl Iterator<Item = Uuid> {
    let set = datum.map_or(&[][..], Datum::as_set);
    set.iter().filter_map(|atom| match atom {
        Atom::Uuid(uuid) => Some(*uuid),
        _ => None,
    })
}
