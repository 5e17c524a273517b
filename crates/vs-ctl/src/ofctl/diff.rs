//! Comparing flows of files and switches, and making a switch's flows those of a file.

use std::collections::BTreeMap;

use net_flow::text::put_match;
use net_flow::{FlowKey, Formats, Match, MiniKey, Names, PortNo};
use of_wire::Action;
use of_wire::action::put_actions;
use of_wire::message::{Body, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use of_wire::text::FlowCommand;

use super::conn::Conn;
use super::flows::read_file;
use super::{Ctl, Fail, Outcome};

/// What makes a flow another flow: table, priority (falling), mask and match.
type Id = (u8, std::cmp::Reverse<u16>, MiniKey, MiniKey);

/// What one side has for a flow.
#[derive(Clone, Debug)]
struct Version {
    matching: Match,
    cookie: u64,
    idle_timeout: u16,
    hard_timeout: u16,
    importance: u16,
    flags: FlowModFlags,
    actions: Vec<Action>,
}

impl Version {
    fn same(&self, other: &Self) -> bool {
        (
            self.cookie,
            self.idle_timeout,
            self.hard_timeout,
            self.importance,
        ) == (
            other.cookie,
            other.idle_timeout,
            other.hard_timeout,
            other.importance,
        ) && self.actions == other.actions
    }
}

type Sides = BTreeMap<Id, [Option<Version>; 2]>;

fn id(m: &Match, table: u8, priority: u16) -> Id {
    let mask = MiniKey::new(m.mask().as_key());
    let key: &FlowKey = m.key();
    (table, std::cmp::Reverse(priority), mask, MiniKey::new(key))
}

/// Actions as both sides show them: how they were said in a file does not matter.
fn canonical(actions: &[Action], conn_version: of_wire::Version) -> Vec<Action> {
    let mut bytes = Vec::new();
    of_wire::action::encode_instructions(&mut bytes, actions, conn_version);
    let read = of_wire::action::decode_instructions(&bytes, conn_version);
    read.unwrap_or_else(|_| actions.to_vec())
}

fn from_file(
    ctl: &mut Ctl<'_, '_>,
    file: &str,
    names: &Names,
    sides: &mut Sides,
    index: usize,
) -> Outcome<Formats> {
    let (flows, formats) = read_file(ctl, file, FlowCommand::Fixed(FlowModCommand::Add), names)?;
    for flow in flows {
        let table = if flow.table == 255 { 0 } else { flow.table };
        let id = id(&flow.matching, table, flow.priority);
        sides.entry(id).or_default()[index] = Some(Version {
            matching: flow.matching,
            cookie: flow.new_cookie.unwrap_or(0),
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            importance: flow.importance,
            flags: flow.flags & FlowModFlags::SEND_FLOW_REM,
            actions: flow.actions,
        });
    }
    Ok(formats)
}

fn from_switch(ctl: &mut Ctl<'_, '_>, conn: &mut Conn, sides: &mut Sides, index: usize) -> Outcome {
    let request = FlowStatsRequest {
        matching: Match::any(),
        cookie: 0,
        cookie_mask: 0,
        out_port: PortNo::NONE,
        out_group: u32::MAX,
        table: 255,
        nicira: false,
    };
    for flow in ctl.flow_stats(conn, Body::FlowStatsRequest(Box::new(request)))? {
        let id = id(&flow.matching, flow.table, flow.priority);
        sides.entry(id).or_default()[index] = Some(Version {
            matching: flow.matching,
            cookie: flow.cookie,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            importance: flow.importance,
            flags: FlowModFlags::empty(),
            actions: flow.actions,
        });
    }
    Ok(())
}

pub(super) fn replace(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let names = ctl.names_to_accept(&args[0])?;
    let mut sides = Sides::new();
    let usable = from_file(ctl, &args[1], &names, &mut sides, 0)?;
    let mut conn = ctl.open(&args[0])?;
    ctl.set_dump_format(&mut conn, usable)?;
    from_switch(ctl, &mut conn, &mut sides, 1)?;
    let make = |id: &Id, version: &Version, command| FlowMod {
        matching: version.matching.clone(),
        priority: id.1.0,
        new_cookie: Some(version.cookie),
        modify_cookie: true,
        table: id.0,
        idle_timeout: version.idle_timeout,
        hard_timeout: version.hard_timeout,
        importance: version.importance,
        flags: version.flags,
        ..FlowMod::new(command)
    };
    let mut changes = Vec::new();
    let readd = ctl.settings.readd;
    for (id, sides) in &sides {
        if let [None, Some(old)] = sides {
            changes.push(make(id, old, FlowModCommand::DeleteStrict));
        }
        let [Some(new), old] = sides else { continue };
        let mut wanted = new.clone();
        wanted.actions = canonical(&new.actions, conn.version);
        if readd || old.as_ref().is_none_or(|old| !old.same(&wanted)) {
            let mut change = make(id, new, FlowModCommand::Add);
            change.actions.clone_from(&new.actions);
            changes.push(change);
        }
    }
    if ctl.settings.bundle {
        let bodies = changes.into_iter().map(|f| Body::FlowMod(Box::new(f)));
        return ctl.bundle(&mut conn, bodies.collect());
    }
    let mut bytes = Vec::new();
    let first = ctl.next_xid;
    for change in changes {
        let request = ctl.request(&conn, Body::FlowMod(Box::new(change)));
        bytes.extend(request.encode(conn.dialect));
    }
    let xids = first..ctl.next_xid;
    let reply = ctl.transact_all(&mut conn, xids, bytes)?;
    ctl.end_on_reply(&conn, reply)
}

/// Reads flows from a file (a name with a slash or a dot in front, or `-`) or from a switch.
fn from_source(
    ctl: &mut Ctl<'_, '_>,
    source: &str,
    sides: &mut Sides,
    index: usize,
) -> Outcome<Option<of_wire::Version>> {
    let is_file = source.starts_with(['/', '.'])
        || source == "-"
        || (!source.contains(':') && std::fs::metadata(source).is_ok_and(|m| m.is_file()));
    if is_file {
        let names = ctl.no_names.clone();
        from_file(ctl, source, &names, sides, index)?;
        return Ok(None);
    }
    let mut conn = ctl.open(source)?;
    ctl.set_dump_format(&mut conn, Formats::ANY)?;
    from_switch(ctl, &mut conn, sides, index)?;
    Ok(Some(conn.version))
}

pub(super) fn diff(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut sides = Sides::new();
    let a = from_source(ctl, &args[0], &mut sides, 0)?;
    let b = from_source(ctl, &args[1], &mut sides, 1)?;
    let version = a.or(b);
    let mut different = false;
    for (id, sides) in &mut sides {
        if let Some(version) = version {
            for side in sides.iter_mut().flatten() {
                side.actions = canonical(&side.actions, version);
            }
        }
        if let [Some(a), Some(b)] = sides
            && a.same(b)
        {
            continue;
        }
        different = true;
        for (sign, side) in ['-', '+'].into_iter().zip(sides) {
            if let Some(side) = side {
                let text = flow_text(id, side, &ctl.no_names);
                ctl.env.print(format_args!("{sign}{text}\n"));
            }
        }
    }
    if different {
        Err(Fail::Code(2))
    } else {
        Ok(())
    }
}

fn flow_text(id: &Id, v: &Version, names: &Names) -> String {
    let mut out = String::new();
    if id.0 != 0 {
        out += &format!("table={} ", id.0);
    }
    put_match(&mut out, &v.matching, i32::from(id.1.0), names);
    if v.cookie != 0 {
        out += &format!(" cookie=0x{:x}", v.cookie);
    }
    if v.idle_timeout != 0 {
        out += &format!(" idle_timeout={}", v.idle_timeout);
    }
    if v.hard_timeout != 0 {
        out += &format!(" hard_timeout={}", v.hard_timeout);
    }
    if v.importance != 0 {
        out += &format!(" importance={}", v.importance);
    }
    out += " actions=";
    put_actions(&mut out, &v.actions, names);
    out
}
