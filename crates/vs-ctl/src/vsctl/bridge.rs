//! Commands on bridges.

use std::collections::BTreeMap;

use db_model::{Atom, Datum, Uuid};

use super::model::{self, Bridge, Interface, Port, find_bridge, model};
use super::{Command, Ctx, atoi};
use crate::ctl::{Done, Failure};

pub(super) fn add_br(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let args = cmd.args();
    let (name, parent, vlan) = match args {
        [name] => (name, None, 0),
        [name, parent, vlan] => {
            let vlan = atoi(vlan);
            if !(0..=4095).contains(&vlan) {
                return Err("add-br: vlan must be between 0 and 4095".into());
            }
            (name, Some(parent), vlan)
        }
        _ => return Err("'add-br' command takes exactly 1 or 3 arguments".into()),
    };
    if name.is_empty() {
        return Err("bridge name must not be empty string".into());
    }
    if cmd.has("--may-exist")
        && let Some(bridge) = model(ctx).bridge(name).cloned()
    {
        return check_existing(&bridge, cmd, parent, vlan).map_err(Failure::Fatal);
    }
    let what = format!("cannot create a bridge named {name}");
    model(ctx).check_free(name, &what)?;
    match parent {
        None => add_real_bridge(ctx, name),
        Some(parent) => add_fake_bridge(ctx, name, parent, vlan)?,
    }
    Ok(())
}

/// Whether the bridge that exists is the one that `--may-exist add-br` wants.
fn check_existing(
    bridge: &Bridge,
    cmd: &Command,
    parent: Option<&String>,
    vlan: i64,
) -> Result<(), String> {
    let (name, typed) = (&bridge.name, cmd.argv.join(" "));
    let typed = format!("\"--may-exist {typed}\" but {name}");
    match (parent, &bridge.fake) {
        (None, None) => Ok(()),
        (None, Some((_, vlan))) => Err(format!("{typed} is a VLAN bridge for VLAN {vlan}")),
        (Some(_), None) => Err(format!("{typed} is not a VLAN bridge")),
        (Some(parent), Some((actual, _))) if parent != actual => {
            Err(format!("{typed} has the wrong parent {actual}"))
        }
        (Some(_), Some((_, actual))) if vlan != *actual => Err(format!(
            "{typed} is a VLAN bridge for the wrong VLAN {actual}"
        )),
        _ => Ok(()),
    }
}

/// Inserts an internal interface and a port, both called `name`.
fn insert_local_port(ctx: &mut Ctx<'_>, name: &str) -> (Uuid, Uuid) {
    let t = ctx.tool.tables;
    let interface = ctx.insert(t.interface.table);
    let port = ctx.insert(t.port.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.interface
        .name
        .set(txn, replica, interface, Atom::string(name));
    let internal = Atom::string("internal");
    t.interface.r#type.set(txn, replica, interface, internal);
    t.port.name.set(txn, replica, port, Atom::string(name));
    t.port
        .interfaces
        .set(txn, replica, port, Atom::Uuid(interface));
    (port, interface)
}

fn add_real_bridge(ctx: &mut Ctx<'_>, name: &str) {
    let (port, interface) = insert_local_port(ctx, name);
    let t = ctx.tool.tables;
    let row = ctx.insert(t.bridge.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.bridge.name.set(txn, replica, row, Atom::string(name));
    t.bridge.ports.set(txn, replica, row, Atom::Uuid(port));
    if let Some(ovs) = ctx.tool.ovs {
        let bridges = Datum::from(Atom::Uuid(row));
        txn.put(replica, t.ovs.table, ovs, t.ovs.bridges.id(), &bridges);
    }
    let bridge = Bridge {
        name: name.to_owned(),
        row,
        fake: None,
    };
    remember(ctx, bridge, port, interface);
}

fn add_fake_bridge(ctx: &mut Ctx<'_>, name: &str, parent: &str, vlan: i64) -> Done {
    let Some(parent) = model(ctx).bridge(parent).cloned() else {
        return Err(format!("parent bridge {parent} does not exist").into());
    };
    if parent.fake.is_some() {
        return Err("cannot create bridge with fake bridge as parent".into());
    }
    let same = model(ctx)
        .children(&parent.name)
        .find(|child| child.vlan() == vlan);
    if let Some(child) = same {
        return Err(format!(
            "bridge {} already has a child VLAN bridge {} on VLAN {vlan}",
            parent.name, child.name
        )
        .into());
    }
    let (port, interface) = insert_local_port(ctx, name);
    let t = ctx.tool.tables;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.port
        .fake_bridge
        .set(txn, replica, port, Atom::Boolean(true));
    t.port.tag.set(txn, replica, port, Atom::Integer(vlan));
    put_port(ctx, parent.row, port);
    let bridge = Bridge {
        name: name.to_owned(),
        row: parent.row,
        fake: Some((parent.name, vlan)),
    };
    remember(ctx, bridge, port, interface);
    Ok(())
}

fn remember(ctx: &mut Ctx<'_>, bridge: Bridge, port: Uuid, interface: Uuid) {
    let name = bridge.name.clone();
    let model = model(ctx);
    model.bridges.insert(name.clone(), bridge);
    let port = Port {
        row: port,
        bridge: name.clone(),
    };
    model.ports.insert(name.clone(), port);
    let interface = Interface {
        row: interface,
        port: name.clone(),
    };
    model.interfaces.insert(name, interface);
}

/// Adds a port to a real bridge's set, which need not be known: only the bridge must still
/// be there when the transaction is run.
pub(super) fn put_port(ctx: &mut Ctx<'_>, bridge: Uuid, port: Uuid) {
    let t = ctx.tool.tables.bridge;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.name.verify(txn, replica, bridge);
    let port = Datum::from(Atom::Uuid(port));
    txn.put(replica, t.table, bridge, t.ports.id(), &port);
}

/// Takes a port out of a bridge and deletes it with its interfaces.
pub(super) fn delete_port(ctx: &mut Ctx<'_>, name: &str, bridge: Uuid) {
    let Some(port) = model(ctx).ports.get(name).cloned() else {
        return;
    };
    let t = ctx.tool.tables;
    let interfaces = t.port.interfaces.get(&ctx.txn, ctx.replica, port.row);
    let interfaces: Vec<Uuid> = interfaces.iter().collect();
    let gone = Datum::from(Atom::Uuid(port.row));
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.bridge.name.verify(txn, replica, bridge);
    txn.drop_keys(replica, t.bridge.table, bridge, t.bridge.ports.id(), &gone);
    for interface in interfaces {
        txn.delete(t.interface.table, interface);
    }
    txn.delete(t.port.table, port.row);
    model(ctx).forget_port(name);
}

pub(super) fn del_br(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let name = cmd.arg(1).unwrap_or_default();
    if cmd.has("--if-exists") && model(ctx).bridge(name).is_none() {
        return Ok(());
    }
    let bridge = find_bridge(ctx, name)?;
    let children: Vec<Bridge> = model(ctx).children(name).cloned().collect();
    for doomed in children.iter().chain([&bridge]) {
        if bridge.fake.is_some() {
            let ports: Vec<String> = model(ctx)
                .ports_of(&doomed.name)
                .map(|(port, _)| port.clone())
                .collect();
            for port in ports {
                delete_port(ctx, &port, doomed.row);
            }
        }
        model(ctx).forget_bridge(&doomed.name);
    }
    if bridge.fake.is_none() {
        // The ports go with the row.
        let t = ctx.tool.tables;
        let gone = Datum::from(Atom::Uuid(bridge.row));
        let (txn, replica) = (&mut ctx.txn, ctx.replica);
        let ports: Vec<Uuid> = t
            .bridge
            .ports
            .get(txn, replica, bridge.row)
            .iter()
            .collect();
        for port in ports {
            let interfaces = t.port.interfaces.get(txn, replica, port);
            let interfaces: Vec<Uuid> = interfaces.iter().collect();
            for interface in interfaces {
                txn.delete(t.interface.table, interface);
            }
            txn.delete(t.port.table, port);
        }
        txn.delete(t.bridge.table, bridge.row);
        if let Some(ovs) = ctx.tool.ovs {
            txn.drop_keys(replica, t.ovs.table, ovs, t.ovs.bridges.id(), &gone);
        }
    }
    Ok(())
}

pub(super) fn list_br(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let (real, fake) = (cmd.has("--real"), cmd.has("--fake"));
    let names: Vec<String> = model(ctx)
        .bridges
        .values()
        .filter(|bridge| match bridge.fake {
            Some(_) => fake || !real,
            None => real || !fake,
        })
        .map(|bridge| bridge.name.clone())
        .collect();
    for name in names {
        ctx.print_line(&name);
    }
    Ok(())
}

pub(super) fn br_exists(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let name = cmd.arg(1).unwrap_or_default();
    if model(ctx).bridge(name).is_some() {
        Ok(())
    } else {
        Err(Failure::Exit(2))
    }
}

pub(super) fn br_to_vlan(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    ctx.print_line(&bridge.vlan().to_string());
    Ok(())
}

pub(super) fn br_to_parent(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    ctx.print_line(bridge.parent());
    Ok(())
}

/// What precedes the keys of a fake bridge in its port's external IDs.
const FAKE_PREFIX: &str = "fake-bridge-";

/// Where a bridge's external IDs are: the port's row for a fake bridge.
fn external_ids_of(ctx: &mut Ctx<'_>, bridge: &Bridge) -> (Option<Uuid>, Uuid) {
    if bridge.fake.is_none() {
        return (None, bridge.row);
    }
    let port = model(ctx).ports.get(&bridge.name).map(|port| port.row);
    (port, bridge.row)
}

pub(super) fn br_set_external_id(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let key = cmd.arg(2).unwrap_or_default();
    let t = ctx.tool.tables;
    let (table, row, column, key) = match external_ids_of(ctx, &bridge) {
        (Some(port), _) => {
            let key = format!("{FAKE_PREFIX}{key}");
            (t.port.table, port, t.port.external_ids.id(), key)
        }
        (None, row) => {
            let column = t.bridge.external_ids.id();
            (t.bridge.table, row, column, key.to_owned())
        }
    };
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    match cmd.arg(3) {
        Some(value) => {
            let pair = vec![(Atom::string(key), Atom::string(value))];
            let pair = Datum::from_map(pair).unwrap_or_default();
            txn.put(replica, table, row, column, &pair);
        }
        None => {
            let key = Datum::from(Atom::string(key));
            txn.drop_keys(replica, table, row, column, &key);
        }
    }
    Ok(())
}

pub(super) fn br_get_external_id(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let t = ctx.tool.tables;
    let (port, row) = external_ids_of(ctx, &bridge);
    let (txn, replica) = (&ctx.txn, ctx.replica);
    let ids: BTreeMap<String, String> = match port {
        Some(port) => t
            .port
            .external_ids
            .get(txn, replica, port)
            .iter()
            .filter_map(|(k, v)| Some((k.strip_prefix(FAKE_PREFIX)?.to_owned(), v.to_owned())))
            .collect(),
        None => t
            .bridge
            .external_ids
            .get(txn, replica, row)
            .iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect(),
    };
    match cmd.arg(2) {
        Some(key) => {
            if let Some(value) = ids.get(key) {
                ctx.print_line(value);
            }
        }
        None => {
            for (key, value) in ids {
                ctx.print_line(&format!("{key}={value}"));
            }
        }
    }
    Ok(())
}

/// Asks for what the commands on external IDs need.
pub(super) fn prepare_external_ids(
    preparation: &mut super::Prep<'_>,
    _: &Command,
) -> Result<(), String> {
    model::prepare(preparation);
    let t = preparation.tool.tables;
    let interest = &mut *preparation.interest;
    interest.add_column(t.bridge.table, t.bridge.external_ids.id());
    interest.add_column(t.port.table, t.port.external_ids.id());
    Ok(())
}
