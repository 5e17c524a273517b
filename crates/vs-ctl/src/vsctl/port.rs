//! Commands on ports, bonds and interfaces.

use db_model::{Atom, Datum, Uuid};

use super::bridge::{delete_port, put_port};
use super::model::{self, Interface, Port, find_bridge, find_interface, find_port, model};
use super::{Command, Ctx, Prep};
use crate::ctl::Done;
use crate::ctl::db::prepare_assignments;

pub(super) fn list_ports(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let names: Vec<String> = model(ctx)
        .ports_of(&bridge.name)
        .map(|(name, _)| name.clone())
        .filter(|name| *name != bridge.name)
        .collect();
    for name in names {
        ctx.print_line(&name);
    }
    Ok(())
}

pub(super) fn list_ifaces(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let model = model(ctx);
    let names: Vec<String> = model
        .interfaces
        .iter()
        .filter(|(name, interface)| {
            let port = model.ports.get(&interface.port);
            port.is_some_and(|port| port.bridge == bridge.name) && **name != bridge.name
        })
        .map(|(name, _)| name.clone())
        .collect();
    for name in names {
        ctx.print_line(&name);
    }
    Ok(())
}

pub(super) fn port_to_br(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let port = find_port(ctx, cmd.arg(1).unwrap_or_default())?;
    ctx.print_line(&port.bridge);
    Ok(())
}

pub(super) fn iface_to_br(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let interface = find_interface(ctx, cmd.arg(1).unwrap_or_default())?;
    let port = model(ctx).ports.get(&interface.port).cloned();
    ctx.print_line(port.as_ref().map_or("", |port| &port.bridge));
    Ok(())
}

pub(super) fn prepare_add_port(prep: &mut Prep<'_>, cmd: &Command) -> Result<(), String> {
    let name = cmd.arg(2).unwrap_or_default();
    model::prepare_new_port(prep, name, &[]);
    let port = prep.tool.tables.port.table;
    prepare_assignments(prep, port, &cmd.args()[2..])
}

pub(super) fn add_port(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let name = cmd.arg(2).unwrap_or_default().to_owned();
    let (interfaces, settings) = (vec![name], &cmd.args()[2..]);
    insert_port(ctx, cmd, &interfaces, settings)
}

/// Where the settings begin among the arguments of `add-bond`: with the first one that has
/// an equals sign.
fn bond_settings(cmd: &Command) -> usize {
    let args = cmd.args();
    let settings = args.iter().skip(2).position(|arg| arg.contains('='));
    settings.map_or(args.len(), |at| 2 + at)
}

pub(super) fn prepare_add_bond(prep: &mut Prep<'_>, cmd: &Command) -> Result<(), String> {
    let at = bond_settings(cmd);
    let interfaces = at - 2;
    if interfaces < 2 {
        return Err(format!(
            "add-bond requires at least 2 interfaces, but only {interfaces} were specified"
        ));
    }
    let name = cmd.arg(2).unwrap_or_default();
    model::prepare_new_port(prep, name, &cmd.args()[2..at]);
    let port = prep.tool.tables.port.table;
    prepare_assignments(prep, port, &cmd.args()[at..])
}

pub(super) fn add_bond(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let at = bond_settings(cmd);
    let (interfaces, settings) = (cmd.args()[2..at].to_vec(), &cmd.args()[at..]);
    insert_port(ctx, cmd, &interfaces, settings)
}

fn insert_port(
    ctx: &mut Ctx<'_>,
    cmd: &Command,
    interfaces: &[String],
    settings: &[String],
) -> Done {
    let name = cmd.arg(2).unwrap_or_default();
    model::check_new_port(ctx, name, interfaces)?;
    let bridge = find_bridge_after_checks(ctx, cmd, name, interfaces)?;
    let Some(bridge) = bridge else {
        return Ok(());
    };
    let t = ctx.tool.tables;
    let mut rows = Vec::new();
    for interface in interfaces {
        rows.push(insert_interface(ctx, interface, name));
    }
    let port = ctx.insert(t.port.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.port.name.set(txn, replica, port, Atom::string(name));
    let members = rows.iter().copied().map(Atom::Uuid).collect();
    let members = Datum::from_set_lossy(members);
    t.port.interfaces.set(txn, replica, port, members);
    if cmd.has("--fake-iface") {
        let yes = Atom::Boolean(true);
        t.port.bond_fake_iface.set(txn, replica, port, yes);
    }
    if bridge.fake.is_some() {
        let vlan = Atom::Integer(bridge.vlan());
        t.port.tag.set(txn, replica, port, vlan);
    }
    for setting in settings {
        ctx.assign(t.port.table, port, setting)?;
    }
    put_port(ctx, bridge.row, port);
    let port = Port {
        row: port,
        bridge: bridge.name,
    };
    model(ctx).ports.insert(name.to_owned(), port);
    Ok(())
}

/// The bridge that the new port goes to; `None` if the port is there already as
/// `--may-exist` allows.
fn find_bridge_after_checks(
    ctx: &mut Ctx<'_>,
    cmd: &Command,
    name: &str,
    interfaces: &[String],
) -> Done<Option<model::Bridge>> {
    if name.is_empty() {
        return Err("port name must not be empty string".into());
    }
    if interfaces.iter().any(String::is_empty) {
        return Err("interface name must not be empty string".into());
    }
    if cmd.has("--may-exist")
        && let Some(port) = model(ctx).port(name).cloned()
    {
        let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
        let typed = format!("\"--may-exist {}\" but {name}", cmd.argv.join(" "));
        if port.bridge != bridge.name {
            return Err(format!("{typed} is actually attached to bridge {}", port.bridge).into());
        }
        let mut wanted = interfaces.to_vec();
        wanted.sort_unstable();
        let model = model(ctx);
        let actual: Vec<String> = model
            .interfaces
            .iter()
            .filter(|(_, interface)| interface.port == name)
            .map(|(interface, _)| interface.clone())
            .collect();
        if wanted != actual {
            let actual = actual.join(", ");
            return Err(format!("{typed} actually has interface(s) {actual}").into());
        }
        return Ok(None);
    }
    model(ctx).check_free(name, &format!("cannot create a port named {name}"))?;
    for interface in interfaces {
        let what = format!("cannot create an interface named {interface}");
        model(ctx).check_free(interface, &what)?;
    }
    find_bridge(ctx, cmd.arg(1).unwrap_or_default()).map(Some)
}

fn insert_interface(ctx: &mut Ctx<'_>, name: &str, port: &str) -> Uuid {
    let t = ctx.tool.tables.interface;
    let row = ctx.insert(t.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.name.set(txn, replica, row, Atom::string(name));
    ctx.tool.new_interfaces.push(row);
    let interface = Interface {
        row,
        port: port.to_owned(),
    };
    model(ctx).interfaces.insert(name.to_owned(), interface);
    row
}

pub(super) fn del_port(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let (bridge, target) = match cmd.args() {
        [bridge, target] => (Some(bridge), target),
        args => (None, &args[0]),
    };
    let must_exist = !cmd.has("--if-exists");
    let with_iface = cmd.has("--with-iface");
    let m = model(ctx);
    let mut name = m.port(target).map(|_| target.clone());
    if name.is_none() && with_iface {
        name = m.interface(target).map(|interface| interface.port.clone());
    }
    let Some(name) = name else {
        if !must_exist {
            return Ok(());
        }
        if m.bridge(target).is_some() {
            return Err(format!(
                "cannot delete port {target} because it is the local port for bridge {target} \
                 (deleting this port requires deleting the entire bridge)"
            )
            .into());
        }
        return Err(if with_iface {
            format!("no port or interface named {target}").into()
        } else {
            format!("no port named {target}").into()
        });
    };
    let port = find_port(ctx, &name)?;
    let actual = find_bridge(ctx, &port.bridge)?;
    if let Some(bridge) = bridge {
        let bridge = find_bridge(ctx, bridge)?;
        if actual.name != bridge.name {
            let message = format!("bridge {} does not have a port {target}", bridge.name);
            return Err(if actual.parent() == bridge.name {
                format!("{message} (although its child bridge {} does)", actual.name).into()
            } else {
                message.into()
            });
        }
    }
    delete_port(ctx, &name, actual.row);
    Ok(())
}

pub(super) fn add_bond_iface(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bond = cmd.arg(1).unwrap_or_default();
    let name = cmd.arg(2).unwrap_or_default();
    let port = find_port(ctx, bond)?;
    if cmd.has("--may-exist")
        && let Some(interface) = model(ctx).interface(name)
    {
        if interface.port == bond {
            return Ok(());
        }
        return Err(format!(
            "\"--may-exist {}\" but {name} is actually attached to port {}",
            cmd.argv.join(" "),
            interface.port
        )
        .into());
    }
    let what = format!("cannot create an interface named {name}");
    model(ctx).check_free(name, &what)?;
    let row = insert_interface(ctx, name, bond);
    let t = ctx.tool.tables.port;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.name.verify(txn, replica, port.row);
    let added = Datum::from(Atom::Uuid(row));
    txn.put(replica, t.table, port.row, t.interfaces.id(), &added);
    Ok(())
}

pub(super) fn del_bond_iface(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let (bond, name) = match cmd.args() {
        [bond, name] => (Some(bond), name),
        args => (None, &args[0]),
    };
    if cmd.has("--if-exists") && model(ctx).interface(name).is_none() {
        return Ok(());
    }
    // A bond that does not exist is worth more of a complaint than its interface.
    let interface = match model(ctx).interface(name).cloned() {
        Some(interface) => interface,
        None => return Err(format!("no interface named {name}").into()),
    };
    if let Some(bond) = bond {
        find_port(ctx, bond)?;
        if interface.port != *bond {
            return Err(format!("port {bond} does not have an interface {name}").into());
        }
    }
    let port = find_port(ctx, &interface.port)?;
    let t = ctx.tool.tables;
    let members = t.port.interfaces.get(&ctx.txn, ctx.replica, port.row);
    if members.len() == 1 {
        return Err(format!("cannot delete last interface from port {}", interface.port).into());
    }
    let gone = Datum::from(Atom::Uuid(interface.row));
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    // Another may take out the other interface meanwhile.
    t.port.interfaces.verify(txn, replica, port.row);
    txn.drop_keys(
        replica,
        t.port.table,
        port.row,
        t.port.interfaces.id(),
        &gone,
    );
    txn.delete(t.interface.table, interface.row);
    model(ctx).interfaces.remove(name);
    Ok(())
}
