//! Commands on MAC bindings: where the addresses of a logical switch are.

use db_client::TableColumns;
use db_model::{Atom, Datum, Uuid};

use super::logical::{self, find_logical_switch};
use super::physical::print_sorted;
use super::tables::{Macs, Side};
use super::{Command, Ctx, Prep};
use crate::ctl::Done;

/// The encapsulation if none is given.
const VXLAN: &str = "vxlan_over_ipv4";

/// Asks for the bindings and what they refer to.
pub(super) fn prepare(prep: &mut Prep<'_>, cmd: &Command) -> Result<(), String> {
    let t = prep.tool.tables;
    t.local.want(prep.interest);
    t.remote.want(prep.interest);
    t.locator_set.want(prep.interest);
    t.locator.want(prep.interest);
    logical::prepare_switches(prep, cmd)
}

/// What `SWITCH MAC [ENCAP] IP` says.
struct Binding<'a> {
    switch: Uuid,
    mac: &'a str,
    encapsulation: &'a str,
    ip: &'a str,
}

fn binding<'a>(ctx: &Ctx<'_>, cmd: &'a Command) -> Done<Binding<'a>> {
    let (switch, mac, encapsulation, ip) = match cmd.args() {
        [switch, mac, ip] => (switch, mac, VXLAN, ip),
        [switch, mac, encapsulation, ip] => (switch, mac, encapsulation.as_str(), ip),
        _ => return Err("a binding takes a switch, a MAC address and an IP address".into()),
    };
    Ok(Binding {
        switch: find_logical_switch(ctx, switch)?,
        mac,
        encapsulation,
        ip,
    })
}

/// The bindings of a logical switch.
fn bindings(ctx: &Ctx<'_>, macs: Macs, switch: Uuid) -> Vec<Uuid> {
    let mut rows = ctx.rows(macs.table);
    let column = macs.logical_switch;
    rows.retain(|row| column.get(&ctx.txn, ctx.replica, *row) == switch);
    rows
}

/// The binding of an address on a logical switch.
fn binding_of(ctx: &Ctx<'_>, macs: Macs, switch: Uuid, mac: &str) -> Option<Uuid> {
    bindings(ctx, macs, switch)
        .into_iter()
        .find(|row| macs.mac.get(&ctx.txn, ctx.replica, *row) == mac)
}

/// Inserts a binding that does not yet say where the address is.
fn insert(ctx: &mut Ctx<'_>, macs: Macs, binding: &Binding<'_>) -> Uuid {
    let row = ctx.insert(macs.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    macs.mac.set(txn, replica, row, Atom::string(binding.mac));
    let switch = Atom::Uuid(binding.switch);
    macs.logical_switch.set(txn, replica, row, switch);
    row
}

/// The locator with this encapsulation and address, if there is one.
fn locator(ctx: &Ctx<'_>, binding: &Binding<'_>) -> Option<Uuid> {
    let t = ctx.tool.tables.locator;
    let (txn, replica) = (&ctx.txn, ctx.replica);
    ctx.rows(t.table).into_iter().find(|row| {
        t.dst_ip.get(txn, replica, *row) == binding.ip
            && t.encapsulation_type.get(txn, replica, *row) == binding.encapsulation
    })
}

fn locator_or_new(ctx: &mut Ctx<'_>, binding: &Binding<'_>) -> Uuid {
    if let Some(row) = locator(ctx, binding) {
        return row;
    }
    let t = ctx.tool.tables.locator;
    let row = ctx.insert(t.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.dst_ip.set(txn, replica, row, Atom::string(binding.ip));
    let encapsulation = Atom::string(binding.encapsulation);
    t.encapsulation_type.set(txn, replica, row, encapsulation);
    row
}

/// A text that says where a locator is.
fn location(ctx: &Ctx<'_>, locator: Uuid) -> String {
    let t = ctx.tool.tables.locator;
    format!(
        "{}/{}",
        t.encapsulation_type.get(&ctx.txn, ctx.replica, locator),
        t.dst_ip.get(&ctx.txn, ctx.replica, locator)
    )
}

fn add_unicast(ctx: &mut Ctx<'_>, macs: Macs, cmd: &Command) -> Done {
    let binding = binding(ctx, cmd)?;
    let locator = locator_or_new(ctx, &binding);
    let row = match binding_of(ctx, macs, binding.switch, binding.mac) {
        Some(row) => row,
        None => insert(ctx, macs, &binding),
    };
    let locator = Atom::Uuid(locator);
    macs.location.set(&mut ctx.txn, ctx.replica, row, locator);
    Ok(())
}

fn del_unicast(ctx: &mut Ctx<'_>, macs: Macs, cmd: &Command) -> Done {
    let switch = find_logical_switch(ctx, cmd.arg(1).unwrap_or_default())?;
    let mac = cmd.arg(2).unwrap_or_default();
    if let Some(row) = binding_of(ctx, macs, switch, mac) {
        ctx.txn.delete(macs.table, row);
    }
    Ok(())
}

/// The locators of a multicast binding.
fn locators(ctx: &Ctx<'_>, macs: Macs, row: Uuid) -> Datum {
    let set = macs.location.get(&ctx.txn, ctx.replica, row);
    let column = ctx.tool.tables.locator_set.locators;
    column.get(&ctx.txn, ctx.replica, set).datum().clone()
}

/// Gives a multicast binding a new set of locators: such sets never change.
fn set_locators(ctx: &mut Ctx<'_>, macs: Macs, row: Uuid, locators: Datum) {
    let t = ctx.tool.tables.locator_set;
    let set = ctx.insert(t.table);
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.locators.set(txn, replica, set, locators);
    macs.location.set(txn, replica, row, Atom::Uuid(set));
}

fn add_multicast(ctx: &mut Ctx<'_>, macs: Macs, cmd: &Command) -> Done {
    let binding = binding(ctx, cmd)?;
    let new = Datum::from(Atom::Uuid(locator_or_new(ctx, &binding)));
    match binding_of(ctx, macs, binding.switch, binding.mac) {
        Some(row) => {
            macs.location.verify(&mut ctx.txn, ctx.replica, row);
            let all = locators(ctx, macs, row).union(&new);
            set_locators(ctx, macs, row, all);
        }
        None => {
            let row = insert(ctx, macs, &binding);
            set_locators(ctx, macs, row, new);
        }
    }
    Ok(())
}

fn del_multicast(ctx: &mut Ctx<'_>, macs: Macs, cmd: &Command) -> Done {
    let binding = binding(ctx, cmd)?;
    let row = binding_of(ctx, macs, binding.switch, binding.mac);
    let (Some(row), Some(locator)) = (row, locator(ctx, &binding)) else {
        return Ok(());
    };
    macs.location.verify(&mut ctx.txn, ctx.replica, row);
    let old = locators(ctx, macs, row);
    let left = old.subtract(&Atom::Uuid(locator).into());
    if left.is_empty() {
        ctx.txn.delete(macs.table, row);
    } else if left != old {
        set_locators(ctx, macs, row, left);
    }
    Ok(())
}

fn clear(ctx: &mut Ctx<'_>, side: Side, cmd: &Command) -> Done {
    let switch = find_logical_switch(ctx, cmd.arg(1).unwrap_or_default())?;
    for macs in [side.unicast, side.multicast] {
        for row in bindings(ctx, macs, switch) {
            ctx.txn.delete(macs.table, row);
        }
    }
    Ok(())
}

fn list(ctx: &mut Ctx<'_>, side: Side, cmd: &Command) -> Done {
    let switch = find_logical_switch(ctx, cmd.arg(1).unwrap_or_default())?;
    let mut lines = Vec::new();
    for row in bindings(ctx, side.unicast, switch) {
        let mac = side.unicast.mac.get(&ctx.txn, ctx.replica, row);
        let locator = side.unicast.location.get(&ctx.txn, ctx.replica, row);
        lines.push(format!("  {mac} -> {}", location(ctx, locator)));
    }
    ctx.print_line(&format!("ucast-mac-{}", side.name));
    print_sorted(ctx, lines);
    ctx.print_line("");
    let mut lines = Vec::new();
    for row in bindings(ctx, side.multicast, switch) {
        let mac = side.multicast.mac.get(&ctx.txn, ctx.replica, row);
        let locators = locators(ctx, side.multicast, row);
        for locator in locators.keys().filter_map(Atom::as_uuid) {
            lines.push(format!("  {mac} -> {}", location(ctx, locator)));
        }
    }
    ctx.print_line(&format!("mcast-mac-{}", side.name));
    print_sorted(ctx, lines);
    ctx.print_line("");
    Ok(())
}

pub(super) fn add_ucast_local(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.local.unicast;
    add_unicast(ctx, t, cmd)
}

pub(super) fn add_ucast_remote(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.remote.unicast;
    add_unicast(ctx, t, cmd)
}

pub(super) fn del_ucast_local(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.local.unicast;
    del_unicast(ctx, t, cmd)
}

pub(super) fn del_ucast_remote(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.remote.unicast;
    del_unicast(ctx, t, cmd)
}

pub(super) fn add_mcast_local(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.local.multicast;
    add_multicast(ctx, t, cmd)
}

pub(super) fn add_mcast_remote(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.remote.multicast;
    add_multicast(ctx, t, cmd)
}

pub(super) fn del_mcast_local(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.local.multicast;
    del_multicast(ctx, t, cmd)
}

pub(super) fn del_mcast_remote(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.remote.multicast;
    del_multicast(ctx, t, cmd)
}

pub(super) fn clear_local(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.local;
    clear(ctx, t, cmd)
}

pub(super) fn clear_remote(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.remote;
    clear(ctx, t, cmd)
}

pub(super) fn list_local(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.local;
    list(ctx, t, cmd)
}

pub(super) fn list_remote(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.remote;
    list(ctx, t, cmd)
}
