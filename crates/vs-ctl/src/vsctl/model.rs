//! Bridges, ports and interfaces as the commands see them: by name, and with fake bridges
//! apart from their parents.

use std::collections::BTreeMap;

use db_model::Uuid;
use json::Json;

use super::{Ctx, Vsctl};
use crate::ctl::{Done, Failure, Preparation};

/// A real or fake bridge.
#[derive(Clone, Debug)]
pub(super) struct Bridge {
    pub(super) name: String,
    /// The row of the bridge, or of its parent if it is fake.
    pub(super) row: Uuid,
    /// For a fake bridge: its parent and its VLAN.
    pub(super) fake: Option<(String, i64)>,
}

impl Bridge {
    /// The VLAN of a fake bridge, or 0.
    pub(super) fn vlan(&self) -> i64 {
        self.fake.as_ref().map_or(0, |(_, vlan)| *vlan)
    }

    /// The parent of a fake bridge, or the bridge itself.
    pub(super) fn parent(&self) -> &str {
        self.fake.as_ref().map_or(&self.name, |(parent, _)| parent)
    }
}

/// A port, bonds included.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) row: Uuid,
    /// The real or fake bridge that it is on.
    pub(super) bridge: String,
}

/// An interface.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) row: Uuid,
    pub(super) port: String,
}

/// Everything by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) bridges: BTreeMap<String, Bridge>,
    pub(super) ports: BTreeMap<String, Port>,
    pub(super) interfaces: BTreeMap<String, Interface>,
}

/// Asks for what [`model`] reads.
pub(super) fn prepare(preparation: &mut Preparation<'_, Vsctl>) {
    let t = &preparation.tool.tables;
    let interest = &mut *preparation.interest;
    for table in [t.bridge.table, t.port.table, t.interface.table] {
        interest.add_table(table);
    }
    for column in [
        t.bridge.ports.id(),
        t.bridge.controller.id(),
        t.bridge.fail_mode.id(),
    ] {
        interest.add_column(t.bridge.table, column);
    }
    prepare_names(preparation);
}

/// Asks for the columns by which everything is found.
fn prepare_names(preparation: &mut Preparation<'_, Vsctl>) {
    let t = &preparation.tool.tables;
    let interest = &mut *preparation.interest;
    interest.add_column(t.ovs.table, t.ovs.bridges.id());
    interest.add_column(t.bridge.table, t.bridge.name.id());
    for column in [
        t.port.name.id(),
        t.port.fake_bridge.id(),
        t.port.tag.id(),
        t.port.interfaces.id(),
    ] {
        interest.add_column(t.port.table, column);
    }
    for column in [
        t.interface.name.id(),
        t.interface.ofport.id(),
        t.interface.error.id(),
    ] {
        interest.add_column(t.interface.table, column);
    }
}

/// Asks for what adding a port needs: the bridges, and whatever might be in the way of the
/// names `port` and `interfaces`.
pub(super) fn prepare_new_port(
    preparation: &mut Preparation<'_, Vsctl>,
    port: &str,
    interfaces: &[String],
) {
    if preparation.whole {
        prepare(preparation);
        return;
    }
    let t = &preparation.tool.tables;
    let interest = &mut *preparation.interest;
    interest.add_table(t.bridge.table);
    let clause = |column: &str, value: Json| Json::from(vec![column.into(), "==".into(), value]);
    interest.add_rows(t.port.table, clause("fake_bridge", true.into()));
    for name in interfaces.iter().map(String::as_str).chain([port]) {
        interest.add_rows(t.port.table, clause("name", name.into()));
        interest.add_rows(t.interface.table, clause("name", name.into()));
    }
    prepare_names(preparation);
}

/// Checks that [`model`] knows enough to add a port.  If not all ports were asked for, the
/// bridges that ports are on are unknown: then there must be no fake bridge and nothing in
/// the way, lest messages need to tell where it is.
pub(super) fn check_new_port(ctx: &Ctx<'_>, port: &str, interfaces: &[String]) -> Done {
    let t = &ctx.tool.tables;
    if ctx.interest.has_column(t.bridge.table, t.bridge.ports.id())
        && ctx.interest.has_all_rows(t.port.table)
        && ctx.interest.has_all_rows(t.interface.table)
    {
        return Ok(());
    }
    let is_wanted = |name: &str| name == port || interfaces.iter().any(|i| i == name);
    let in_way = ctx
        .replica
        .table(t.port.table)
        .rows()
        .any(|row| row.read(t.port.fake_bridge) || is_wanted(row.read(t.port.name)))
        || ctx
            .replica
            .table(t.interface.table)
            .rows()
            .any(|row| is_wanted(row.read(t.interface.name)));
    if in_way {
        Err(Failure::NeedAll)
    } else {
        Ok(())
    }
}

/// The VLAN of a port that stands for a fake bridge.
fn fake_vlan(ctx: &Ctx<'_>, port: Uuid) -> Option<i64> {
    let t = &ctx.tool.tables.port;
    let (txn, replica) = (&ctx.txn, ctx.replica);
    let tag = t.tag.get(txn, replica, port)?;
    (t.fake_bridge.get(txn, replica, port) && (0..=4095).contains(&tag)).then_some(tag)
}

/// Reads the model, once in a run of commands: they keep it up to date.
pub(super) fn model<'c>(ctx: &'c mut Ctx<'_>) -> &'c mut Model {
    if ctx.tool.model.is_none() {
        ctx.tool.model = Some(read(ctx));
    }
    ctx.tool.model.get_or_insert_default()
}

fn read(ctx: &Ctx<'_>) -> Model {
    let t = &ctx.tool.tables;
    let (txn, replica) = (&ctx.txn, ctx.replica);
    let mut model = Model::default();
    let Some(ovs) = ctx.tool.ovs else {
        return model;
    };
    for row in t.ovs.bridges.get(txn, replica, ovs).iter() {
        let name = t.bridge.name.get(txn, replica, row).to_owned();
        if model.bridges.contains_key(&name) {
            log::warn!(target: "vsctl", "{name}: database contains duplicate bridge name");
            continue;
        }
        let ports: Vec<Uuid> = t.bridge.ports.get(txn, replica, row).iter().collect();
        let bridge = Bridge {
            name: name.clone(),
            row,
            fake: None,
        };
        model.bridges.insert(name.clone(), bridge);
        read_ports(ctx, &mut model, &name, row, &ports);
    }
    model
}

fn read_ports(ctx: &Ctx<'_>, model: &mut Model, bridge: &str, row: Uuid, ports: &[Uuid]) {
    let t = &ctx.tool.tables;
    let (txn, replica) = (&ctx.txn, ctx.replica);
    // Fake bridges by VLAN.
    let mut fakes: BTreeMap<i64, String> = BTreeMap::new();
    for port in ports {
        let Some(vlan) = fake_vlan(ctx, *port) else {
            continue;
        };
        let name = t.port.name.get(txn, replica, *port).to_owned();
        if model.bridges.contains_key(&name) || fakes.contains_key(&vlan) {
            continue;
        }
        fakes.insert(vlan, name.clone());
        let fake = Bridge {
            name: name.clone(),
            row,
            fake: Some((bridge.to_owned(), vlan)),
        };
        model.bridges.insert(name, fake);
    }
    for port in ports {
        let name = t.port.name.get(txn, replica, *port).to_owned();
        if let Some(other) = model.ports.get(&name) {
            log::warn!(
                target: "vsctl",
                "{name}: port is on both bridges {} and {bridge}", other.bridge
            );
            continue;
        }
        let tag = t.port.tag.get(txn, replica, *port);
        let on = tag
            .and_then(|tag| fakes.get(&tag))
            .map_or(bridge, String::as_str);
        for interface in t.port.interfaces.get(txn, replica, *port).iter() {
            let interface_name = t.interface.name.get(txn, replica, interface).to_owned();
            let entry = Interface {
                row: interface,
                port: name.clone(),
            };
            model.interfaces.entry(interface_name).or_insert(entry);
        }
        let entry = Port {
            row: *port,
            bridge: on.to_owned(),
        };
        model.ports.insert(name, entry);
    }
}

impl Model {
    /// A bridge, if it exists.
    pub(super) fn bridge(&self, name: &str) -> Option<&Bridge> {
        self.bridges.get(name)
    }

    /// A port, local ports of bridges apart.
    pub(super) fn port(&self, name: &str) -> Option<&Port> {
        self.ports
            .get(name)
            .filter(|_| !self.bridges.contains_key(name))
    }

    /// An interface, those of local ports apart.
    pub(super) fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces
            .get(name)
            .filter(|_| !self.bridges.contains_key(name))
    }

    /// The ports of a real or fake bridge, local ports included, with their names.
    pub(super) fn ports_of<'m>(
        &'m self,
        bridge: &'m str,
    ) -> impl Iterator<Item = (&'m String, &'m Port)> {
        self.ports
            .iter()
            .filter(move |(_, port)| port.bridge == bridge)
    }

    /// The fake bridges of a real bridge.
    pub(super) fn children<'m>(&'m self, parent: &'m str) -> impl Iterator<Item = &'m Bridge> {
        let is_child = move |b: &&Bridge| b.fake.as_ref().is_some_and(|(p, _)| p == parent);
        self.bridges.values().filter(is_child)
    }

    /// Checks that nothing is called `name`; `what` says what cannot be done if it is.
    pub(super) fn check_free(&self, name: &str, what: &str) -> Result<(), String> {
        if self.bridges.contains_key(name) {
            return Err(format!(
                "{what} because a bridge named {name} already exists"
            ));
        }
        if let Some(port) = self.ports.get(name) {
            return Err(format!(
                "{what} because a port named {name} already exists on bridge {}",
                port.bridge
            ));
        }
        if let Some(interface) = self.interfaces.get(name) {
            let bridge = self.ports.get(&interface.port).map_or("", |p| &p.bridge);
            return Err(format!(
                "{what} because an interface named {name} already exists on bridge {bridge}"
            ));
        }
        Ok(())
    }

    /// Forgets a bridge, its ports and their interfaces.
    pub(super) fn forget_bridge(&mut self, name: &str) {
        self.bridges.remove(name);
        self.ports.retain(|_, port| port.bridge != name);
        let ports = &self.ports;
        self.interfaces
            .retain(|_, interface| ports.contains_key(&interface.port));
    }

    /// Forgets a port and its interfaces.
    pub(super) fn forget_port(&mut self, name: &str) {
        self.ports.remove(name);
        self.interfaces
            .retain(|_, interface| interface.port != name);
    }
}

/// The bridge called `name`.
pub(super) fn find_bridge(ctx: &mut Ctx<'_>, name: &str) -> Done<Bridge> {
    let found = model(ctx).bridge(name).cloned();
    found.ok_or_else(|| format!("no bridge named {name}").into())
}

/// The bridge called `name`, which must be real.
pub(super) fn find_real_bridge(ctx: &mut Ctx<'_>, name: &str) -> Done<Bridge> {
    let bridge = find_bridge(ctx, name)?;
    if bridge.fake.is_some() {
        return Err(format!("{name} is a fake bridge").into());
    }
    Ok(bridge)
}

/// The port called `name`.
pub(super) fn find_port(ctx: &mut Ctx<'_>, name: &str) -> Done<Port> {
    let found = model(ctx).port(name).cloned();
    found.ok_or_else(|| format!("no port named {name}").into())
}

/// The interface called `name`.
pub(super) fn find_interface(ctx: &mut Ctx<'_>, name: &str) -> Done<Interface> {
    let found = model(ctx).interface(name).cloned();
    found.ok_or_else(|| format!("no interface named {name}").into())
}
