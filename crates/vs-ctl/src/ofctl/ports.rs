//! Ports, queues, and the switch's configuration.

use net_flow::PortNo;
use net_flow::text::num::{c_int, whole_i64};
use net_flow::text::value::parse_port;
use of_wire::message::{Body, PortConfig, PortDesc, PortFeatures, PortMod, SwitchConfig};
use of_wire::{Message, Version};

use super::conn::Conn;
use super::{Ctl, Outcome, fatal};

impl Ctl<'_, '_> {
    /// The port that `text` numbers or names.
    pub(super) fn port_no(&mut self, switch: &str, text: &str) -> Outcome<PortNo> {
        if let Some(port) = parse_port(text, &self.no_names) {
            return Ok(port);
        }
        let names = self.names_to_accept(switch)?;
        match parse_port(text, &names) {
            Some(port) => Ok(port),
            None => fatal(format!("{switch}: unknown port `{text}'")),
        }
    }

    pub(super) fn fetch_config(&mut self, conn: &mut Conn) -> Outcome<SwitchConfig> {
        let reply = self.transact(conn, Body::GetConfigRequest)?;
        match Message::decode(&reply, conn.dialect).map(|m| m.body) {
            Ok(Body::GetConfigReply(config)) => Ok(config),
            _ => fatal(format!(
                "{}: bad reply to config request",
                conn.stream.name()
            )),
        }
    }
}

fn optional_port(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome<PortNo> {
    match args.get(1) {
        Some(text) => ctl.port_no(&args[0], text),
        None => Ok(PortNo::NONE),
    }
}

pub(super) fn stats(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut conn = ctl.open(&args[0])?;
    let port = optional_port(ctl, args)?;
    ctl.dump(&mut conn, Body::PortStatsRequest(port))
}

pub(super) fn desc(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut conn = ctl.open(&args[0])?;
    let port = optional_port(ctl, args)?;
    ctl.dump(&mut conn, Body::PortDescRequest(port))
}

pub(super) fn queue_stats(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut conn = ctl.open(&args[0])?;
    let given = |i: usize| {
        let text = args.get(i).map(String::as_str);
        text.filter(|t| !t.is_empty() && !t.eq_ignore_ascii_case("all"))
    };
    let port = match given(1) {
        Some(text) => ctl.port_no(&args[0], text)?,
        None => PortNo::NONE,
    };
    let number = |text| c_int(text, 10).map_or(0, |n| n.magnitude as u32);
    let queue = given(2).map_or(u32::MAX, number);
    ctl.dump(&mut conn, Body::QueueStatsRequest { port, queue })
}

pub(super) fn queue_get_config(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let port_name = args.get(1).map_or("any", String::as_str);
    let port = ctl.port_no(&args[0], port_name)?;
    let queue = match args.get(2).map(String::as_str) {
        Some(text) if !text.eq_ignore_ascii_case("all") => {
            c_int(text, 10).map_or(0, |n| n.magnitude as u32)
        }
        _ => u32::MAX,
    };
    let mut conn = ctl.open(&args[0])?;
    if port != PortNo::NONE || conn.version != Version::V10 {
        return ctl.dump(&mut conn, Body::QueueGetConfigRequest { port, queue });
    }
    // OpenFlow 1.0 tells of one port at a time.
    for desc in ctl.ports(&mut conn)? {
        if desc.port.is_physical() {
            let port = desc.port;
            ctl.dump(&mut conn, Body::QueueGetConfigRequest { port, queue })?;
        }
    }
    Ok(())
}

/// What `mod-port` changes: name, bit, and whether the name sets it.
const ACTIONS: [(&str, PortConfig, bool); 8] = [
    ("up", PortConfig::PORT_DOWN, false),
    ("down", PortConfig::PORT_DOWN, true),
    ("stp", PortConfig::NO_STP, false),
    ("receive", PortConfig::NO_RECV, false),
    ("receive-stp", PortConfig::NO_RECV_STP, false),
    ("flood", PortConfig::NO_FLOOD, false),
    ("forward", PortConfig::NO_FWD, false),
    ("packet-in", PortConfig::NO_PACKET_IN, false),
];

pub(super) fn modify(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let port = find_port(ctl, &args[0], &args[1])?;
    let given = args[2].to_ascii_lowercase();
    let (not, name) = match given
        .strip_prefix("no-")
        .or_else(|| given.strip_prefix("no"))
    {
        Some(name) => (true, name),
        None => (false, given.as_str()),
    };
    let Some((_, bit, sets)) = ACTIONS.iter().find(|(n, ..)| *n == name) else {
        return fatal(format!("unknown mod-port command '{}'", args[2]));
    };
    let config = if *sets != not {
        *bit
    } else {
        PortConfig::empty()
    };
    let mut conn = ctl.open(&args[0])?;
    let body = Body::PortMod(Box::new(PortMod {
        port: port.port,
        hw_addr: port.hw_addr,
        config,
        mask: *bit,
        advertise: PortFeatures::empty(),
    }));
    ctl.must_succeed(&mut conn, body)
}

fn find_port(ctl: &mut Ctl<'_, '_>, switch: &str, name: &str) -> Outcome<PortDesc> {
    let number = whole_i64(name, 10).and_then(|n| u32::try_from(n).ok());
    let number = number.or_else(|| PortNo::from_reserved_name(name).map(|p| p.0));
    let mut conn = ctl.open(switch)?;
    let ports = ctl.ports(&mut conn)?;
    let same = |p: &&PortDesc| match number {
        Some(number) => p.port.0 == number || u32::from(p.port.to_of10()) == number,
        None => p.name == name,
    };
    match ports.iter().find(same) {
        Some(port) => Ok(port.clone()),
        None => fatal(format!("{switch}: couldn't find port `{name}'")),
    }
}

const FRAGS: [&str; 4] = ["normal", "drop", "reassemble", "nx-match"];

pub(super) fn get_frags(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut conn = ctl.open(&args[0])?;
    let config = ctl.fetch_config(&mut conn)?;
    ctl.env
        .print(format_args!("{}\n", FRAGS[usize::from(config.frag & 3)]));
    Ok(())
}

pub(super) fn set_frags(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let (switch, mode) = (&args[0], &args[1]);
    let Some(frag) = FRAGS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(mode))
    else {
        return fatal(format!("{mode}: unknown fragment handling mode"));
    };
    let frag = frag as u16;
    let mut conn = ctl.open(switch)?;
    let mut config = ctl.fetch_config(&mut conn)?;
    if config.frag == frag {
        return Ok(());
    }
    config.frag = frag;
    ctl.must_succeed(&mut conn, Body::SetConfig(config))?;
    // Errors about flags are ill defined, so what came of it is looked at.
    if ctl.fetch_config(&mut conn)?.frag != frag {
        return fatal(format!(
            "{switch}: setting fragment handling mode failed (this switch probably doesn't \
             support mode \"{}\")",
            FRAGS[usize::from(frag)]
        ));
    }
    Ok(())
}
