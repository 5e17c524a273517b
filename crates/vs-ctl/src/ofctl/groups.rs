//! Groups, and bundles of any requests.

use net_flow::text::num::c_int;
use net_flow::{Formats, Names};
use of_wire::format_names::formats_names;
use of_wire::group_text::{GroupTextCommand, parse_group_mod};
use of_wire::message::{Body, GROUP_ALL, GROUP_ANY, GroupCommand, GroupMod};
use of_wire::text::{FlowCommand, parse_flow};
use of_wire::version::{formats_of, formats_of_all};
use of_wire::{Dialect, Message, Version, VersionSet};

use super::{Ctl, Fail, Outcome, fatal, packet_out};

pub(super) fn add(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    change(ctl, args, GroupCommand::Add)
}

pub(super) fn add_file(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    from_file(ctl, args, GroupTextCommand::FirstWord)
}

pub(super) fn modify(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let command = if ctl.settings.may_create {
        GroupCommand::AddOrModify
    } else {
        GroupCommand::Modify
    };
    change(ctl, args, command)
}

pub(super) fn delete(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    change(ctl, args, GroupCommand::Delete)
}

pub(super) fn insert_buckets(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    change(ctl, args, GroupCommand::InsertBucket)
}

pub(super) fn remove_buckets(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    change(ctl, args, GroupCommand::RemoveBucket)
}

fn change(ctl: &mut Ctl<'_, '_>, args: &[String], command: GroupCommand) -> Outcome {
    let text = args.get(1).map_or("", String::as_str);
    if text == "-" {
        let command = match command {
            GroupCommand::Add => GroupTextCommand::FirstWord,
            command => GroupTextCommand::Fixed(command),
        };
        return from_file(ctl, args, command);
    }
    let names = ctl.names_to_accept(&args[0])?;
    let command = GroupTextCommand::Fixed(command);
    let (request, formats) = parse_group_mod(text, command, &names).or_else(fatal)?;
    send(ctl, &args[0], vec![request], formats)
}

fn from_file(ctl: &mut Ctl<'_, '_>, args: &[String], command: GroupTextCommand) -> Outcome {
    let names = ctl.names_to_accept(&args[0])?;
    let file = &args[1];
    let mut requests = Vec::new();
    let mut formats = Formats::ANY;
    let cannot_open = |text| Fail::Fatal(format!("{file}: open failed ({text})"));
    ctl.each_line(file, cannot_open, |_, line| {
        let parsed = parse_group_mod(&line.text, command, &names);
        let place = |error| fatal(format!("{file}:{}: {error}", line.number));
        let (request, usable) = parsed.or_else(place)?;
        formats &= usable;
        requests.push(request);
        Ok(())
    })?;
    send(ctl, &args[0], requests, formats)
}

fn send(ctl: &mut Ctl<'_, '_>, switch: &str, requests: Vec<GroupMod>, usable: Formats) -> Outcome {
    let usable = if ctl.settings.bundle {
        usable & Formats::OF13_UP
    } else {
        usable
    };
    let mut conn = ctl.open_for_flows(switch, usable)?;
    for request in &requests {
        check_version(request.command, conn.version)?;
    }
    let bodies = requests.into_iter().map(|r| Body::GroupMod(Box::new(r)));
    if ctl.settings.bundle {
        return ctl.bundle(&mut conn, bodies.collect());
    }
    for body in bodies {
        ctl.must_succeed(&mut conn, body)?;
    }
    Ok(())
}

/// Buckets alone can be changed from OpenFlow 1.5 on, and by Nicira's message for 1.0.
fn check_version(command: GroupCommand, version: Version) -> Outcome {
    let name = match command {
        _ if matches!(version, Version::V10 | Version::V15) => return Ok(()),
        GroupCommand::InsertBucket => "insert-bucket",
        GroupCommand::RemoveBucket => "remove-bucket",
        _ => return Ok(()),
    };
    fatal(format!(
        "{name} needs OpenFlow 1.5 or later ('-O OpenFlow15')"
    ))
}

pub(super) fn dump(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let id = args.get(1).and_then(|text| group_id(text));
    ctl.dump_once(&args[0], Body::GroupDescRequest(id.unwrap_or(GROUP_ALL)))
}

fn group_id(text: &str) -> Option<u32> {
    if text.eq_ignore_ascii_case("any") {
        return Some(GROUP_ANY);
    }
    if text.eq_ignore_ascii_case("all") {
        return Some(GROUP_ALL);
    }
    let number = c_int(text, 10).filter(|n| !n.negative && n.rest.is_empty());
    let id = number.and_then(|n| u32::try_from(n.magnitude).ok());
    if id.is_none() {
        log::warn!(target: "ofp_group", "{text} is not a valid group ID.  (Valid group IDs are \
            32-bit nonnegative integers or the keywords ANY or ALL.)");
    }
    id
}

pub(super) fn stats(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let names = ctl.names_to_accept(&args[0])?;
    let text = args.get(1).map_or("", String::as_str);
    let command = GroupTextCommand::Fixed(GroupCommand::Delete);
    let (request, _) = parse_group_mod(text, command, &names).or_else(fatal)?;
    ctl.dump_once(&args[0], Body::GroupStatsRequest(request.group.id))
}

pub(super) fn features(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    ctl.dump_once(&args[0], Body::GroupFeaturesRequest)
}

pub(super) fn parse(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let command = GroupTextCommand::Fixed(GroupCommand::Add);
    let parsed = parse_group_mod(&args[0], command, &Names::default());
    let (request, usable) = parsed.or_else(fatal)?;
    ctl.env.print(format_args!(
        "usable protocols: {}\n",
        formats_names(usable)
    ));
    let Some(chosen) = (usable & ctl.settings.formats).iter().next() else {
        return fatal("no usable protocol");
    };
    let speaks = |v: &Version| formats_of(*v).intersects(chosen);
    let version = Version::ALL.into_iter().find(speaks);
    let version = version.unwrap_or(Version::V10);
    ctl.env.print(format_args!("chosen version: {version}\n"));
    let body = Body::GroupMod(Box::new(request));
    let bytes = Message::new(version, ctl.xid(), body).encode(Dialect::of(version));
    let text = ctl.message(&bytes, ctl.settings.verbosity);
    ctl.env.print(text);
    Ok(())
}

/// `bundle`: flows, groups and packets of a file, all or none.
pub(super) fn bundle(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let names = ctl.names_to_accept(&args[0])?;
    let (bodies, usable) = read_bundle(ctl, &args[1], &names)?;
    let old = VersionSet::up_to(Version::V12 as u8);
    let allowed = VersionSet(ctl.settings.versions.0 & !old.0);
    ctl.settings.versions = if allowed == VersionSet::NONE {
        VersionSet::only(Version::V14)
    } else {
        allowed
    };
    ctl.settings.formats = formats_of_all(ctl.settings.versions);
    let mut conn = ctl.open_for_flows(&args[0], usable & Formats::OF13_UP)?;
    for body in &bodies {
        if let Body::GroupMod(request) = body {
            check_version(request.command, conn.version)?;
        }
    }
    ctl.bundle(&mut conn, bodies)
}

fn read_bundle(ctl: &mut Ctl<'_, '_>, file: &str, names: &Names) -> Outcome<(Vec<Body>, Formats)> {
    let mut bodies = Vec::new();
    let mut formats = Formats::ANY;
    let cannot_open = |text| Fail::Fatal(format!("{file}: open failed ({text})"));
    ctl.each_line(file, cannot_open, |ctl, line| {
        let place = format!("{file}:{}: ", line.number);
        let space = |c: char| " \t\r\n".contains(c);
        let text = line.text.trim_start_matches(space);
        let end = text.find(|c| c == ',' || space(c)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let located = |error| Fail::Fatal(format!("{place}{error}"));
        let (body, usable) = if "flow".starts_with(word) {
            let parsed = parse_flow(rest, FlowCommand::FirstWord, names);
            let parsed = parsed.map_err(|error| ctl.explain(&place, &error, rest))?;
            (Body::FlowMod(Box::new(parsed.flow)), parsed.formats)
        } else if "group".starts_with(word) {
            let parsed = parse_group_mod(rest, GroupTextCommand::FirstWord, names);
            let (request, usable) = parsed.map_err(located)?;
            (Body::GroupMod(Box::new(request)), usable)
        } else if "packet-out".starts_with(word) {
            let (packet, usable) = packet_out::parse(rest, names).map_err(located)?;
            (Body::PacketOut(Box::new(packet)), usable)
        } else {
            return Err(located(format!("Unsupported bundle message type: {word}")));
        };
        formats &= usable;
        bodies.push(body);
        Ok(())
    })?;
    Ok((bodies, formats))
}
