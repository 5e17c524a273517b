//! Comparing flows of files and switches, and making a switch's flows those of a file.

use std::collections::BTreeMap;

use net_flow::text::put_match;
use net_flow::{FlowKey, Formats, Match, MiniKey, Names, PortNo};
use of_wire::Action;
use of_wire::action::put_actions;
use of_wire::message::{Body, FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest};
use of_wire::text::FlowCommand;

use super::conn::Conn;
use super::flows::each_flow;
use super::{Ctl, Fail, Outcome};

/// What makes a flow another flow: table, priority (falling), mask and match.
type Id = (u8, std::cmp::Reverse<u16>, MiniKey, MiniKey);

/// The match in an id.  Its full form is large, and there may be a million of them.
fn match_of(id: &Id) -> Match {
    Match::new(&id.3.expand(), id.2.expand_mask())
}

/// What one side has for a flow.
#[derive(Clone, Debug)]
struct Version {
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
    let command = FlowCommand::Fixed(FlowModCommand::Add);
    each_flow(ctl, file, command, names, |flow| {
        let table = if flow.table == 255 { 0 } else { flow.table };
        let id = id(&flow.matching, table, flow.priority);
        sides.entry(id).or_default()[index] = Some(Version {
            cookie: flow.new_cookie.unwrap_or(0),
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            importance: flow.importance,
            flags: flow.flags & FlowModFlags::SEND_FLOW_REM,
            actions: flow.actions,
        });
    })
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
    let mut take = |flow: FlowStats| {
        let id = id(&flow.matching, flow.table, flow.priority);
        sides.entry(id).or_default()[index] = Some(Version {
            cookie: flow.cookie,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            importance: flow.importance,
            flags: FlowModFlags::empty(),
            actions: flow.actions,
        });
    };
    let body = Body::FlowStatsRequest(Box::new(request));
    ctl.each_reply(conn, body, |reply| {
        if let Body::FlowStatsReply(part) = reply.body {
            part.entries.into_iter().for_each(&mut take);
        }
    })
}

pub(super) fn replace(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let names = ctl.names_to_accept(&args[0])?;
    let mut sides = Sides::new();
    let usable = from_file(ctl, &args[1], &names, &mut sides, 0)?;
    let mut conn = ctl.open(&args[0])?;
    ctl.set_dump_format(&mut conn, usable)?;
    from_switch(ctl, &mut conn, &mut sides, 1)?;
    let make = |id: &Id, version: &Version, command| FlowMod {
        matching: match_of(id),
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
    let readd = ctl.settings.readd;
    let version = conn.version;
    let changes = sides.iter().filter_map(|(id, sides)| match sides {
        [None, Some(old)] => Some(make(id, old, FlowModCommand::DeleteStrict)),
        [Some(new), old] => {
            let mut wanted = new.clone();
            wanted.actions = canonical(&new.actions, version);
            let differs = readd || old.as_ref().is_none_or(|old| !old.same(&wanted));
            let mut change = differs.then(|| make(id, new, FlowModCommand::Add))?;
            change.actions.clone_from(&new.actions);
            Some(change)
        }
        [None, None] => None,
    });
    if ctl.settings.bundle {
        let bodies = changes.map(|f| Body::FlowMod(Box::new(f)));
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
    put_match(&mut out, &match_of(id), i32::from(id.1.0), names);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of a million flows are compared on machines that have other things to do.
    #[test]
    fn a_flow_takes_little_room() {
        assert!(size_of::<(Id, [Option<Version>; 2])>() <= 256);
    }

    #[test]
    fn an_id_has_the_whole_match() {
        let text = "table=3,priority=7,tcp,nw_src=10.0.0.0/8,tp_dst=80,actions=drop";
        let command = FlowCommand::Fixed(FlowModCommand::Add);
        let flow = of_wire::text::parse_flow(text, command, &Names::default());
        let flow = flow.unwrap().flow;
        let id = id(&flow.matching, flow.table, flow.priority);
        assert_eq!(match_of(&id), flow.matching);
        assert_eq!((id.0, id.1.0), (3, 7));
    }
}
