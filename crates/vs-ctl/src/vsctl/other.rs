//! `init`, `emer-reset` and the auto-attach commands.

use db_client::TableColumns;
use db_model::{Atom, Datum, Uuid};

use super::model::{self, find_bridge};
use super::{Command, Ctx, Prep};
use crate::ctl::Done;

pub(super) fn prepare_emer_reset(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    model::prepare(prep);
    let t = prep.tool.tables;
    t.bridge.want(prep.interest);
    t.port.want(prep.interest);
    t.interface.want(prep.interest);
    for column in [t.ovs.manager_options.id(), t.ovs.ssl.id()] {
        prep.interest.add_column(t.ovs.table, column);
    }
    Ok(())
}

/// Takes the switch back to plain bridging; what is unreferenced then goes by itself.
pub(super) fn emer_reset(ctx: &mut Ctx<'_>, _: &Command) -> Done {
    let t = ctx.tool.tables;
    let (bridges, ports, interfaces) = (
        ctx.rows(t.bridge.table),
        ctx.rows(t.port.table),
        ctx.rows(t.interface.table),
    );
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    for row in bridges {
        t.bridge.controller.set(txn, replica, row, Datum::EMPTY);
        t.bridge.fail_mode.set(txn, replica, row, Datum::EMPTY);
        t.bridge.mirrors.set(txn, replica, row, Datum::EMPTY);
        t.bridge.netflow.set(txn, replica, row, Datum::EMPTY);
        t.bridge.sflow.set(txn, replica, row, Datum::EMPTY);
        t.bridge.ipfix.set(txn, replica, row, Datum::EMPTY);
        t.bridge.flood_vlans.set(txn, replica, row, Datum::EMPTY);
        let hwaddr = t.bridge.other_config.get(txn, replica, row).get("hwaddr");
        let kept = hwaddr.map(|hwaddr| (Atom::string("hwaddr"), Atom::string(hwaddr)));
        let kept = Datum::from_map(kept.into_iter().collect()).unwrap_or_default();
        t.bridge.other_config.set(txn, replica, row, kept);
    }
    for row in ports {
        t.port.other_config.set(txn, replica, row, Datum::EMPTY);
    }
    for row in interfaces {
        let zero = Atom::Integer(0);
        let rate = t.interface.ingress_policing_rate;
        rate.set(txn, replica, row, zero.clone());
        let burst = t.interface.ingress_policing_burst;
        burst.set(txn, replica, row, zero);
    }
    if let Some(ovs) = ctx.tool.ovs {
        t.ovs.manager_options.set(txn, replica, ovs, Datum::EMPTY);
        t.ovs.ssl.set(txn, replica, ovs, Datum::EMPTY);
    }
    Ok(())
}

pub(super) fn prepare_auto_attach(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    model::prepare(prep);
    let t = prep.tool.tables;
    t.auto_attach.want(prep.interest);
    let column = t.bridge.auto_attach.id();
    prep.interest.add_column(t.bridge.table, column);
    Ok(())
}

/// The bridge's auto-attach row, if it has one.
fn auto_attach(ctx: &Ctx<'_>, bridge: Uuid) -> Option<Uuid> {
    let column = ctx.tool.tables.bridge.auto_attach;
    column.get(&ctx.txn, ctx.replica, bridge)
}

/// Reads the service identifier and the VLAN of a mapping.
fn mapping(cmd: &Command) -> Done<(Atom, Atom)> {
    let number = |i: usize| {
        let text = cmd.arg(i).unwrap_or_default();
        text.parse()
            .map(Atom::Integer)
            .map_err(|_| format!("Invalid argument {text}"))
    };
    Ok((number(2)?, number(3)?))
}

pub(super) fn add_aa_mapping(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let (isid, vlan) = mapping(cmd)?;
    let t = ctx.tool.tables;
    let row = match auto_attach(ctx, bridge.row) {
        Some(row) => row,
        None => {
            let row = ctx.insert(t.auto_attach.table);
            let column = t.bridge.auto_attach;
            column.verify(&mut ctx.txn, ctx.replica, bridge.row);
            column.set(&mut ctx.txn, ctx.replica, bridge.row, Atom::Uuid(row));
            row
        }
    };
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    let mappings = t.auto_attach.mappings.get(txn, replica, row).datum();
    // A service that is mapped keeps its VLAN.
    if !mappings.contains_key(&isid) {
        let pair = Datum::from_map(vec![(isid, vlan)]).unwrap_or_default();
        let column = t.auto_attach.mappings.id();
        txn.put(replica, t.auto_attach.table, row, column, &pair);
    }
    Ok(())
}

pub(super) fn del_aa_mapping(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let (isid, vlan) = mapping(cmd)?;
    let t = ctx.tool.tables;
    let Some(row) = auto_attach(ctx, bridge.row) else {
        return Ok(());
    };
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    let mappings = t.auto_attach.mappings.get(txn, replica, row).datum();
    if mappings.get(&isid) == Some(&vlan) {
        let column = t.auto_attach.mappings.id();
        txn.drop_keys(replica, t.auto_attach.table, row, column, &isid.into());
    }
    Ok(())
}

pub(super) fn get_aa_mapping(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let bridge = find_bridge(ctx, cmd.arg(1).unwrap_or_default())?;
    let t = ctx.tool.tables;
    let Some(row) = auto_attach(ctx, bridge.row) else {
        return Ok(());
    };
    let mappings = t.auto_attach.mappings.get(&ctx.txn, ctx.replica, row);
    let lines: Vec<String> = mappings
        .iter()
        .map(|(isid, vlan)| format!("{isid} {vlan}"))
        .collect();
    for line in lines {
        ctx.print_line(&line);
    }
    Ok(())
}
