//! `dpif/*`: datapaths as bridges see them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base::Instant;
use dp_ctl::{DumpFormat, flow_text};
use dp_lang::text::PortNames;

use super::{Command, command};
use crate::interface::{Carrier, Interface};
use crate::switch::Switch;
use crate::tunnels::options;

pub(super) const COMMANDS: &[Command] = &[
    command("dpif/show", "", 0, 0, show),
    command("dpif/dump-dps", "", 0, 0, dump_dps),
    command(
        "dpif/dump-flows",
        "[-m] [--names | --no-names] bridge",
        1,
        super::MANY,
        dump_flows,
    ),
];

fn dump_dps(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    let mut text = String::new();
    for (name, bridge) in &switch.bridges {
        let _ = writeln!(text, "{}@{name}", bridge.kind);
    }
    Ok(text)
}

fn show(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    let mut text = String::new();
    for backer in switch.backers.values().filter(|b| !b.bridges.is_empty()) {
        let stats = backer.datapath.stats();
        let name = backer.display_name();
        let _ = writeln!(text, "{name}: hit:{} missed:{}", stats.hits, stats.misses);
        for name in &backer.bridges {
            let Some(bridge) = switch.bridges.get(name) else {
                continue;
            };
            let _ = writeln!(text, "  {name}:");
            for interface in bridge.interfaces.values() {
                put_interface(&mut text, interface);
            }
        }
    }
    Ok(text)
}

fn put_interface(text: &mut String, interface: &Interface) {
    let Some(number) = interface.number else {
        return;
    };
    let name = &interface.config.name;
    let _ = write!(text, "    {name} {}/", number.to_of10());
    let own: BTreeMap<&str, String> = match interface.tunnel() {
        Some(carrier) => options::shown(&carrier.tunnel.config),
        None => {
            let options = interface.config.options.iter();
            options.map(|(k, v)| (k.as_str(), v.clone())).collect()
        }
    };
    let (port, kind) = match &interface.carrier {
        Carrier::Tunnel(tunnel) => (tunnel.port.to_string(), interface.config.kind.clone()),
        Carrier::Datapath { port, device } => (port.to_string(), device.kind().to_owned()),
        Carrier::Patch(_) => ("none".to_owned(), "patch".to_owned()),
        Carrier::None(_) => ("none".to_owned(), interface.config.kind.clone()),
    };
    let options: Vec<String> = own.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let _ = if options.is_empty() {
        writeln!(text, "{port}: ({kind})")
    } else {
        writeln!(text, "{port}: ({kind}: {})", options.join(", "))
    };
}

fn dump_flows(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let mut format = DumpFormat::default();
    let mut named = None;
    let mut operands = Vec::new();
    for arg in args {
        match arg.as_str() {
            "-m" => format.more = true,
            "--names" => named = Some(true),
            "--no-names" => named = Some(false),
            other => operands.push(other),
        }
    }
    let name = operands.pop().ok_or("no bridge was named")?;
    let bridge = switch.bridge(name)?;
    let backer = switch.backer_of(bridge)?;
    let names = if named.unwrap_or(format.more) {
        backer.port_names()
    } else {
        PortNames::none()
    };
    format.kernel = !backer.datapath.is_userspace();
    let view = backer.shared.view.load();
    let mut text = String::new();
    for flow in backer.flows() {
        let owner = view.locate(&flow.key.expand());
        if owner.is_ok_and(|(id, _)| id == bridge.id) {
            text += &flow_text(&flow, &names, format, now);
            text.push('\n');
        }
    }
    Ok(text)
}
