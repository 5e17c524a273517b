//! Commands on physical switches, their ports, and the logical switches bound to these.

use db_client::TableColumns;
use db_model::{Atom, Datum, Uuid};

use super::logical::{self, find_logical_switch};
use super::{Command, Ctx, Prep};
use crate::ctl::{Done, Failure};

/// Asks for the switches and their ports.
pub(super) fn prepare(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    let t = prep.tool.tables;
    let interest = &mut *prep.interest;
    interest.add_column(t.global.table, t.global.switches.id());
    t.switch.want(interest);
    t.port.want(interest);
    Ok(())
}

/// Asks for the logical switches, too.
pub(super) fn prepare_bindings(prep: &mut Prep<'_>, cmd: &Command) -> Result<(), String> {
    prepare(prep, cmd)?;
    logical::prepare_switches(prep, cmd)
}

/// The physical switches.
fn switches(ctx: &mut Ctx<'_>) -> Vec<Uuid> {
    let column = ctx.tool.tables.global.switches;
    let Some(global) = ctx.tool.global else {
        return Vec::new();
    };
    column.verify(&mut ctx.txn, ctx.replica, global);
    column.get(&ctx.txn, ctx.replica, global).iter().collect()
}

/// The physical switch called `name`, if there is one.
fn switch(ctx: &mut Ctx<'_>, name: &str) -> Option<Uuid> {
    let column = ctx.tool.tables.switch.name;
    switches(ctx)
        .into_iter()
        .find(|row| column.get(&ctx.txn, ctx.replica, *row) == name)
}

fn find_switch(ctx: &mut Ctx<'_>, name: &str) -> Done<Uuid> {
    switch(ctx, name).ok_or_else(|| format!("no physical switch named {name}").into())
}

/// The ports of a switch.
fn ports(ctx: &mut Ctx<'_>, switch: Uuid) -> Vec<Uuid> {
    let column = ctx.tool.tables.switch.ports;
    column.verify(&mut ctx.txn, ctx.replica, switch);
    column.get(&ctx.txn, ctx.replica, switch).iter().collect()
}

fn port_name(ctx: &Ctx<'_>, port: Uuid) -> String {
    let column = ctx.tool.tables.port.name;
    column.get(&ctx.txn, ctx.replica, port).to_owned()
}

/// The switch called `switch_name` and its port called `name`, if there is one.  A port that
/// is called as its switch stands for the switch itself and is none.
fn port(ctx: &mut Ctx<'_>, switch_name: &str, name: &str) -> Option<(Uuid, Uuid)> {
    let switch = switch(ctx, switch_name)?;
    let ports = ports(ctx, switch);
    let port = ports
        .into_iter()
        .find(|port| name != switch_name && port_name(ctx, *port) == name)?;
    Some((switch, port))
}

fn find_port(ctx: &mut Ctx<'_>, cmd: &Command) -> Done<Uuid> {
    let (switch, name) = (arg(cmd, 1), arg(cmd, 2));
    let found = port(ctx, switch, name);
    let found = found.ok_or_else(|| format!("no port named {name}"))?;
    Ok(found.1)
}

/// Argument `i`, which the grammar has checked to exist.
fn arg(cmd: &Command, i: usize) -> &str {
    cmd.arg(i).unwrap_or_default()
}

pub(super) fn add_ps(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let name = arg(cmd, 1);
    if switch(ctx, name).is_some() {
        if cmd.has("--may-exist") {
            return Ok(());
        }
        return Err(
            format!("cannot create physical switch {name} because it already exists").into(),
        );
    }
    let t = ctx.tool.tables;
    let row = ctx.insert(t.switch.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.switch.name.set(txn, replica, row, Atom::string(name));
    if let Some(global) = ctx.tool.global {
        let column = t.global.switches.id();
        txn.put(
            replica,
            t.global.table,
            global,
            column,
            &Atom::Uuid(row).into(),
        );
    }
    Ok(())
}

pub(super) fn del_ps(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let name = arg(cmd, 1);
    let row = match switch(ctx, name) {
        Some(row) => row,
        None if cmd.has("--if-exists") => return Ok(()),
        None => return Err(format!("no physical switch named {name}").into()),
    };
    let ports = ports(ctx, row);
    let t = ctx.tool.tables;
    for port in ports {
        ctx.txn.delete(t.port.table, port);
    }
    ctx.txn.delete(t.switch.table, row);
    if let Some(global) = ctx.tool.global {
        let column = t.global.switches.id();
        let gone = Datum::from(Atom::Uuid(row));
        let (txn, replica) = (&mut ctx.txn, ctx.replica);
        txn.drop_keys(replica, t.global.table, global, column, &gone);
    }
    Ok(())
}

pub(super) fn list_ps(ctx: &mut Ctx<'_>, _: &Command) -> Done {
    let column = ctx.tool.tables.switch.name;
    let names = switches(ctx)
        .into_iter()
        .map(|row| column.get(&ctx.txn, ctx.replica, row).to_owned())
        .collect();
    print_sorted(ctx, names);
    Ok(())
}

/// Prints lines in order.
pub(super) fn print_sorted(ctx: &mut Ctx<'_>, mut lines: Vec<String>) {
    lines.sort_unstable();
    for line in lines {
        ctx.print_line(&line);
    }
}

pub(super) fn ps_exists(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    match switch(ctx, arg(cmd, 1)) {
        Some(_) => Ok(()),
        None => Err(Failure::Exit(2)),
    }
}

pub(super) fn list_ports(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let switch_name = arg(cmd, 1);
    let switch = find_switch(ctx, switch_name)?;
    let names = ports(ctx, switch)
        .into_iter()
        .map(|port| port_name(ctx, port))
        .filter(|name| name != switch_name)
        .collect();
    print_sorted(ctx, names);
    Ok(())
}

pub(super) fn add_port(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let (switch_name, name) = (arg(cmd, 1), arg(cmd, 2));
    if port(ctx, switch_name, name).is_some() {
        if cmd.has("--may-exist") {
            return Ok(());
        }
        return Err(format!(
            "cannot create a port named {name} on {switch_name} because a port with that name \
             already exists"
        )
        .into());
    }
    let switch = find_switch(ctx, switch_name)?;
    let t = ctx.tool.tables;
    let row = ctx.insert(t.port.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.port.name.set(txn, replica, row, Atom::string(name));
    let column = t.switch.ports.id();
    txn.put(
        replica,
        t.switch.table,
        switch,
        column,
        &Atom::Uuid(row).into(),
    );
    Ok(())
}

pub(super) fn del_port(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let name = arg(cmd, 2);
    let (switch, row) = match port(ctx, arg(cmd, 1), name) {
        Some(found) => found,
        None if cmd.has("--if-exists") => return Ok(()),
        None => return Err(format!("no port named {name}").into()),
    };
    let t = ctx.tool.tables;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    let (column, gone) = (t.switch.ports.id(), Datum::from(Atom::Uuid(row)));
    txn.drop_keys(replica, t.switch.table, switch, column, &gone);
    txn.delete(t.port.table, row);
    Ok(())
}

/// A VLAN as it was typed: decimal, or hexadecimal or octal with the prefix that C has for it.
/// The server refuses what is out of range.
fn vlan(text: &str) -> Done<i64> {
    let parsed = if let Some(digits) = text.strip_prefix("0x") {
        i64::from_str_radix(digits, 16)
    } else if let Some(digits) = text.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        i64::from_str_radix(digits, 8)
    } else {
        text.parse()
    };
    parsed.map_err(|_| format!("{text}: VLAN is not a number").into())
}

pub(super) fn bind_ls(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let port = find_port(ctx, cmd)?;
    let typed = arg(cmd, 3);
    let logical = find_logical_switch(ctx, arg(cmd, 4))?;
    let key = Atom::Integer(vlan(typed)?);
    let t = ctx.tool.tables;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.port.vlan_bindings.verify(txn, replica, port);
    let bindings = t.port.vlan_bindings.get(txn, replica, port).datum();
    if bindings.contains_key(&key) {
        return Err(format!("multiple bindings for vlan {typed}").into());
    }
    let pair = Datum::from_map(vec![(key, Atom::Uuid(logical))]).unwrap_or_default();
    let column = t.port.vlan_bindings.id();
    txn.put(replica, t.port.table, port, column, &pair);
    Ok(())
}

pub(super) fn unbind_ls(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let port = find_port(ctx, cmd)?;
    let typed = arg(cmd, 3);
    let key = Atom::Integer(vlan(typed)?);
    let t = ctx.tool.tables;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.port.vlan_bindings.verify(txn, replica, port);
    let bindings = t.port.vlan_bindings.get(txn, replica, port).datum();
    if !bindings.contains_key(&key) {
        return Err(format!("no binding for vlan {typed}").into());
    }
    let column = t.port.vlan_bindings.id();
    txn.drop_keys(replica, t.port.table, port, column, &key.into());
    Ok(())
}

pub(super) fn list_bindings(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let port = find_port(ctx, cmd)?;
    let t = ctx.tool.tables;
    let (txn, replica) = (&ctx.txn, ctx.replica);
    let lines = t
        .port
        .vlan_bindings
        .get(txn, replica, port)
        .iter()
        .map(|(vlan, logical)| {
            let name = t.logical_switch.name.get(txn, replica, logical);
            format!("{vlan:04} {name}")
        })
        .collect();
    print_sorted(ctx, lines);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn vlans_are_numbers_as_c_reads_them() {
        for (text, number) in [
            ("0", 0),
            ("100", 100),
            ("0x64", 100),
            ("0144", 100),
            ("-1", -1),
        ] {
            assert_eq!(super::vlan(text), Ok(number), "{text}");
        }
        for text in ["", "x", "0x", "09", "1 2"] {
            assert!(super::vlan(text).is_err(), "{text}");
        }
    }
}
