//! Commands on controllers, fail modes and TLS.

use db_client::TableColumns;
use db_model::{Atom, Datum, Uuid};

use super::model::{self, find_bridge, find_real_bridge};
use super::{Command, Ctx, Prep};
use crate::ctl::Done;
use crate::ctl::managers::Targets;

fn targets(ctx: &Ctx<'_>) -> Targets {
    let t = ctx.tool.tables.controller;
    Targets {
        table: t.table,
        target: t.target,
        inactivity_probe: t.inactivity_probe,
    }
}

pub(super) fn prepare_controllers(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    model::prepare(prep);
    prep.tool.tables.controller.want(prep.interest);
    Ok(())
}

/// The rows that a column of a bridge refers to.
fn controllers(ctx: &Ctx<'_>, bridge: Uuid) -> Vec<Uuid> {
    let column = ctx.tool.tables.bridge.controller;
    column.get(&ctx.txn, ctx.replica, bridge).iter().collect()
}

pub(super) fn get_controller(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let rows = controllers(ctx, bridge.row);
    targets(ctx).print(ctx, &rows);
    Ok(())
}

/// Makes the transaction depend on a bridge's controllers.
fn verify_controllers(ctx: &mut Ctx<'_>, bridge: Uuid) {
    let column = ctx.tool.tables.bridge.controller;
    column.verify(&mut ctx.txn, ctx.replica, bridge);
}

pub(super) fn del_controller(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_real_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    verify_controllers(ctx, bridge.row);
    replace_controllers(ctx, bridge.row, Datum::EMPTY);
    Ok(())
}

/// Writes a bridge's controllers and deletes those that it had.
fn replace_controllers(ctx: &mut Ctx<'_>, bridge: Uuid, new: Datum) {
    let t = ctx.tool.tables;
    for row in controllers(ctx, bridge) {
        ctx.txn.delete(t.controller.table, row);
    }
    let column = t.bridge.controller;
    column.set(&mut ctx.txn, ctx.replica, bridge, new);
}

pub(super) fn set_controller(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_real_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    verify_controllers(ctx, bridge.row);
    let new = targets(ctx).insert(ctx, &cmd.args()[1..], cmd);
    replace_controllers(ctx, bridge.row, new);
    Ok(())
}

pub(super) fn get_fail_mode(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let column = ctx.tool.tables.bridge.fail_mode;
    let mode = column.get(&ctx.txn, ctx.replica, bridge.row);
    if let Some(mode) = mode.filter(|mode| !mode.is_empty()).map(str::to_owned) {
        ctx.print_line(&mode);
    }
    Ok(())
}

fn write_fail_mode(ctx: &mut Ctx<'_>, cmd: &Command, mode: Datum) -> Done {
    let bridge = find_real_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let column = ctx.tool.tables.bridge.fail_mode;
    column.set(&mut ctx.txn, ctx.replica, bridge.row, mode);
    Ok(())
}

pub(super) fn del_fail_mode(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    write_fail_mode(ctx, cmd, Datum::EMPTY)
}

pub(super) fn set_fail_mode(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let mode = cmd.arg(2).unwrap_or_default();
    find_real_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    if mode != "standalone" && mode != "secure" {
        return Err("fail-mode must be \"standalone\" or \"secure\"".into());
    }
    write_fail_mode(ctx, cmd, Atom::string(mode).into())
}

pub(super) fn prepare_ssl(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    let t = prep.tool.tables;
    t.ssl.want(prep.interest);
    prep.interest.add_column(t.ovs.table, t.ovs.ssl.id());
    Ok(())
}

pub(super) fn get_ssl(ctx: &mut Ctx<'_>, _: &Command) -> Done {
    let t = ctx.tool.tables;
    let (txn, replica) = (&ctx.txn, ctx.replica);
    let ssl = ctx
        .tool
        .ovs
        .and_then(|ovs| t.ovs.ssl.get(txn, replica, ovs));
    let Some(ssl) = ssl else {
        return Ok(());
    };
    let text = format!(
        "Private key: {}\nCertificate: {}\nCA Certificate: {}\nBootstrap: {}",
        t.ssl.private_key.get(txn, replica, ssl),
        t.ssl.certificate.get(txn, replica, ssl),
        t.ssl.ca_cert.get(txn, replica, ssl),
        t.ssl.bootstrap_ca_cert.get(txn, replica, ssl)
    );
    ctx.print_line(&text);
    Ok(())
}

fn replace_ssl(ctx: &mut Ctx<'_>, new: Datum) {
    let t = ctx.tool.tables;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    let Some(ovs) = ctx.tool.ovs else {
        return;
    };
    t.ovs.ssl.verify(txn, replica, ovs);
    if let Some(old) = t.ovs.ssl.get(txn, replica, ovs) {
        txn.delete(t.ssl.table, old);
    }
    t.ovs.ssl.set(txn, replica, ovs, new);
}

pub(super) fn del_ssl(ctx: &mut Ctx<'_>, _: &Command) -> Done {
    replace_ssl(ctx, Datum::EMPTY);
    Ok(())
}

pub(super) fn set_ssl(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let t = ctx.tool.tables.ssl;
    let row = ctx.insert(t.table);
    let file = |i| Atom::string(cmd.arg(i).unwrap_or_default());
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.private_key.set(txn, replica, row, file(1));
    t.certificate.set(txn, replica, row, file(2));
    t.ca_cert.set(txn, replica, row, file(3));
    let bootstrap = Atom::Boolean(cmd.has("--bootstrap"));
    t.bootstrap_ca_cert.set(txn, replica, row, bootstrap);
    replace_ssl(ctx, Atom::Uuid(row).into());
    Ok(())
}
