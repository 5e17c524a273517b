//! Commands on datapaths: connection-tracking zones and capabilities.

use db_client::TableColumns;
use db_model::{Atom, Datum, Uuid};

use super::{Command, Ctx, Prep, atoi};
use crate::ctl::Done;

pub(super) fn prepare(prep: &mut Prep<'_>, _: &Command) -> Result<(), String> {
    let t = prep.tool.tables;
    t.datapath.want(prep.interest);
    t.ct_zone.want(prep.interest);
    t.ct_timeout_policy.want(prep.interest);
    let column = t.ovs.datapaths.id();
    prep.interest.add_column(t.ovs.table, column);
    Ok(())
}

fn find_datapath(ctx: &Ctx<'_>, name: &str) -> Option<Uuid> {
    let column = ctx.tool.tables.ovs.datapaths;
    column.get(&ctx.txn, ctx.replica, ctx.tool.ovs?).get(name)
}

fn need_datapath(ctx: &Ctx<'_>, name: &str) -> Done<Uuid> {
    find_datapath(ctx, name).ok_or_else(|| format!("datapath {name} does not exist").into())
}

fn zones(ctx: &Ctx<'_>, datapath: Uuid) -> Vec<(i64, Uuid)> {
    let column = ctx.tool.tables.datapath.ct_zones;
    column.get(&ctx.txn, ctx.replica, datapath).iter().collect()
}

fn find_zone(ctx: &Ctx<'_>, datapath: Uuid, zone: i64) -> Option<Uuid> {
    zones(ctx, datapath)
        .into_iter()
        .find(|(id, _)| *id == zone)
        .map(|(_, row)| row)
}

/// The row of a zone, which is made if need be.
fn need_zone(ctx: &mut Ctx<'_>, datapath: Uuid, zone: i64) -> Uuid {
    if let Some(row) = find_zone(ctx, datapath, zone) {
        return row;
    }
    let t = ctx.tool.tables;
    let row = ctx.insert(t.ct_zone.table);
    let pair = vec![(Atom::Integer(zone), Atom::Uuid(row))];
    let pair = Datum::from_map(pair).unwrap_or_default();
    let column = t.datapath.ct_zones.id();
    ctx.txn
        .put(ctx.replica, t.datapath.table, datapath, column, &pair);
    row
}

/// Deletes a zone that has neither a policy nor a limit.
fn delete_zone(ctx: &mut Ctx<'_>, datapath: Uuid, zone: i64, row: Uuid) {
    let t = ctx.tool.tables;
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    let key = Datum::from(Atom::Integer(zone));
    let column = t.datapath.ct_zones.id();
    txn.drop_keys(replica, t.datapath.table, datapath, column, &key);
    txn.delete(t.ct_zone.table, row);
}

/// Reads `zone=N`.
fn zone_arg(arg: &str) -> Done<i64> {
    arg.strip_prefix("zone=")
        .and_then(|zone| zone.parse().ok())
        .ok_or_else(|| format!("invalid zone argument, {arg}").into())
}

pub(super) fn add_zone_tp(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let zone = zone_arg(cmd.arg(2).unwrap_or_default())?;
    let datapath = need_datapath(ctx, cmd.arg(1).unwrap_or_default())?;
    let t = ctx.tool.tables;
    let old = find_zone(ctx, datapath, zone)
        .and_then(|row| t.ct_zone.timeout_policy.get(&ctx.txn, ctx.replica, row));
    if old.is_some() && !cmd.has("--may-exist") {
        return Err(format!("zone id {zone} already has a policy").into());
    }
    let mut timeouts = Vec::new();
    for arg in &cmd.args()[2..] {
        let Some((key, value)) = arg.split_once('=') else {
            return Err(format!("invalid timeout policy argument, {arg}").into());
        };
        timeouts.retain(|(k, _): &(Atom, Atom)| k.as_str() != Some(key));
        timeouts.push((Atom::string(key), Atom::Integer(atoi(value))));
    }
    let timeouts = Datum::from_map(timeouts).unwrap_or_default();
    let policy = match old {
        Some(policy) => policy,
        None => {
            let policy = ctx.insert(t.ct_timeout_policy.table);
            let row = need_zone(ctx, datapath, zone);
            let column = t.ct_zone.timeout_policy;
            column.set(&mut ctx.txn, ctx.replica, row, Atom::Uuid(policy));
            policy
        }
    };
    let column = t.ct_timeout_policy.timeouts;
    column.set(&mut ctx.txn, ctx.replica, policy, timeouts);
    Ok(())
}

pub(super) fn del_zone_tp(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let zone = zone_arg(cmd.arg(2).unwrap_or_default())?;
    let datapath = need_datapath(ctx, cmd.arg(1).unwrap_or_default())?;
    let t = ctx.tool.tables;
    // A zone without policy or limit, which others may have made, counts as one with the
    // default policy.
    let row = find_zone(ctx, datapath, zone).filter(|row| {
        let (txn, replica) = (&ctx.txn, ctx.replica);
        t.ct_zone.timeout_policy.get(txn, replica, *row).is_some()
            || t.ct_zone.limit.get(txn, replica, *row).is_none()
    });
    let Some(row) = row else {
        if cmd.has("--if-exists") {
            return Ok(());
        }
        return Err(format!("zone id {zone} does not have a policy").into());
    };
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.ct_zone
        .timeout_policy
        .set(txn, replica, row, Datum::EMPTY);
    if t.ct_zone.limit.get(txn, replica, row).is_none() {
        delete_zone(ctx, datapath, zone, row);
    }
    Ok(())
}

/// The datapath that a `list-` command names.
fn listed_datapath(ctx: &Ctx<'_>, name: &str) -> Done<Uuid> {
    find_datapath(ctx, name).ok_or_else(|| format!("datapath: {name} record not found").into())
}

pub(super) fn list_zone_tp(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let datapath = listed_datapath(ctx, cmd.arg(1).unwrap_or_default())?;
    let t = ctx.tool.tables;
    for (zone, row) in zones(ctx, datapath) {
        let (txn, replica) = (&ctx.txn, ctx.replica);
        let policy = match t.ct_zone.timeout_policy.get(txn, replica, row) {
            None => "system default".to_owned(),
            Some(policy) => {
                let timeouts = t.ct_timeout_policy.timeouts.get(txn, replica, policy);
                let timeouts: Vec<String> = timeouts
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                timeouts.join(" ")
            }
        };
        ctx.print_line(&format!("Zone:{zone}, Timeout Policies: {policy}"));
    }
    Ok(())
}

/// The zone that a limit is for; `None` is the default of all zones.
fn limited_zone(arg: &str) -> Done<Option<i64>> {
    if arg == "default" {
        return Ok(None);
    }
    let zone: i64 = arg.parse().map_err(|_| format!("invalid zone id, {arg}"))?;
    if !(0..=65535).contains(&zone) {
        return Err(format!("zone_id ({zone}) out of range").into());
    }
    Ok(Some(zone))
}

pub(super) fn set_zone_limit(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let zone = limited_zone(cmd.arg(2).unwrap_or_default())?;
    let text = cmd.arg(3).unwrap_or_default();
    let limit: i64 = text.parse().map_err(|_| format!("invalid limit, {text}"))?;
    if !(0..=i64::from(u32::MAX)).contains(&limit) {
        return Err(format!("limit ({limit}) out of range").into());
    }
    let datapath = need_datapath(ctx, cmd.arg(1).unwrap_or_default())?;
    let t = ctx.tool.tables;
    let row = zone.map(|zone| need_zone(ctx, datapath, zone));
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    let limit = Atom::Integer(limit);
    match row {
        Some(row) => t.ct_zone.limit.set(txn, replica, row, limit),
        None => {
            let column = t.datapath.ct_zone_default_limit;
            column.set(txn, replica, datapath, limit);
        }
    }
    Ok(())
}

pub(super) fn del_zone_limit(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let zone = limited_zone(cmd.arg(2).unwrap_or_default())?;
    let name = cmd.arg(1).unwrap_or_default();
    let datapath = need_datapath(ctx, name)?;
    let t = ctx.tool.tables;
    let must_exist = !cmd.has("--if-exists");
    let Some(zone) = zone else {
        let (txn, replica) = (&mut ctx.txn, ctx.replica);
        let column = t.datapath.ct_zone_default_limit;
        if must_exist && column.get(txn, replica, datapath).is_none() {
            return Err(format!("datapath {name} does not have a limit").into());
        }
        column.set(txn, replica, datapath, Datum::EMPTY);
        return Ok(());
    };
    let row = find_zone(ctx, datapath, zone)
        .filter(|row| t.ct_zone.limit.get(&ctx.txn, ctx.replica, *row).is_some());
    let Some(row) = row else {
        if must_exist {
            return Err(format!("zone_id {zone} does not have a limit").into());
        }
        return Ok(());
    };
    let (txn, replica) = (&mut ctx.txn, ctx.replica);
    t.ct_zone.limit.set(txn, replica, row, Datum::EMPTY);
    if t.ct_zone.timeout_policy.get(txn, replica, row).is_none() {
        delete_zone(ctx, datapath, zone, row);
    }
    Ok(())
}

pub(super) fn list_zone_limits(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let datapath = listed_datapath(ctx, cmd.arg(1).unwrap_or_default())?;
    let t = ctx.tool.tables;
    let column = t.datapath.ct_zone_default_limit;
    if let Some(limit) = column.get(&ctx.txn, ctx.replica, datapath) {
        ctx.print_line(&format!("Default, Limit: {limit}"));
    }
    for (zone, row) in zones(ctx, datapath) {
        if let Some(limit) = t.ct_zone.limit.get(&ctx.txn, ctx.replica, row) {
            ctx.print_line(&format!("Zone: {zone}, Limit: {limit}"));
        }
    }
    Ok(())
}

pub(super) fn list_dp_cap(ctx: &mut Ctx<'_>, cmd: &Command) -> Done {
    let name = cmd.arg(1).unwrap_or_default();
    let Some(datapath) = find_datapath(ctx, name) else {
        return Err(format!("datapath \"{name}\" record not found").into());
    };
    let column = ctx.tool.tables.datapath.capabilities;
    let capabilities: Vec<String> = column
        .get(&ctx.txn, ctx.replica, datapath)
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    ctx.print_line(&capabilities.join(" "));
    Ok(())
}
