//! `fdb/*`: the MAC tables.

use base::Instant;
use json::{Json, Object};
use net_flow::PortNo;
use net_packet::EthAddr;
use net_proto::mac_learning::{Station, show};

use super::{Command, command};
use crate::bridge::Bridge;
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command("fdb/show", "bridge", 1, 1, show_table).with_json(table_json),
    command("fdb/flush", "[bridge]", 0, 1, flush),
    command("fdb/add", "bridge port vlan mac", 4, 4, add),
    command("fdb/del", "bridge vlan mac", 3, 3, del),
    command("fdb/stats-show", "bridge", 1, 1, show_stats),
    command("fdb/stats-clear", "[bridge]", 0, 1, clear_stats),
];

/// The OpenFlow port of a bundle: its number, or `LOCAL`.
fn port_name(bridge: &Bridge, bundle: u32) -> String {
    let port = bridge.ports.iter().find(|(_, p)| p.bundle == bundle);
    let number = port.and_then(|(name, _)| {
        let mut interfaces = bridge.interfaces.values();
        interfaces.find(|i| i.port == *name)?.number
    });
    match number {
        Some(PortNo::LOCAL) => "LOCAL".to_owned(),
        Some(number) => number.to_of10().to_string(),
        None => "-1".to_owned(),
    }
}

fn show_table(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let bridge = switch.bridge(&args[0])?;
    let entries = bridge.macs.entries(now);
    Ok(show(&entries, |bundle| port_name(bridge, bundle)))
}

fn table_json(switch: &mut Switch, args: &[String], now: Instant) -> Result<Json, String> {
    let bridge = switch.bridge(&args[0])?;
    let entries = bridge.macs.entries(now).into_iter().map(|entry| {
        let port = port_name(bridge, entry.port);
        let port = match port.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => Json::string(port),
        };
        let shown = Object::new()
            .with("port", port)
            .with("vlan", i64::from(entry.station.vlan))
            .with("mac", EthAddr::from_u64(entry.station.mac).to_string());
        let shown = match entry.age {
            Some(age) => shown.with("age", i64::try_from(age).unwrap_or(i64::MAX)),
            None => shown.with("static", true),
        };
        Json::from(shown)
    });
    Ok(Json::Array(entries.collect()))
}

/// The bridge that is named, or all.
fn chosen<'a>(
    switch: &'a Switch,
    args: &[String],
) -> Result<Vec<(&'a String, &'a Bridge)>, String> {
    match args.first() {
        None => Ok(switch.bridges.iter().collect()),
        Some(name) => {
            let entry = switch.bridges.get_key_value(name);
            Ok(vec![entry.ok_or("no such bridge")?])
        }
    }
}

fn flush(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    for (_, bridge) in chosen(switch, args)? {
        bridge.macs.flush();
    }
    Ok("table successfully flushed".to_owned())
}

fn station(vlan: &str, mac: &str) -> Result<Station, String> {
    let vlan = vlan.parse().unwrap_or(0);
    let mac: EthAddr = mac.parse().map_err(|_| "bad MAC address".to_owned())?;
    Ok(Station {
        vlan,
        mac: mac.to_u64(),
    })
}

fn add(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let [bridge, port, vlan, mac] = args else {
        return Err("four arguments are needed".to_owned());
    };
    let bridge = switch.bridge(bridge)?;
    let station = station(vlan, mac)?;
    let interface = bridge.interfaces.get(port);
    let bundle = interface.and_then(|i| bridge.ports.get(&i.port));
    let bundle = bundle.ok_or("software error, odp port is present but no ofp port")?;
    let old = bridge.macs.entry(station, now);
    let mut text = String::new();
    if let Some(old) = old {
        let kind = if old.age.is_some() {
            "dynamic"
        } else {
            "static"
        };
        let port = port_name(bridge, old.port);
        text = format!("Overriding already existing {kind} entry on {port}");
    }
    bridge.macs.add_static(station, bundle.bundle);
    Ok(text)
}

fn del(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    let bridge = switch.bridge(&args[0])?;
    if bridge.macs.remove_static(station(&args[1], &args[2])?) {
        Ok(String::new())
    } else {
        Err("could not find static mac entry".to_owned())
    }
}

fn show_stats(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    let bridge = switch.bridge(&args[0])?;
    let stats = bridge.macs.stats();
    Ok(format!("Statistics for bridge \"{}\":\n{stats}", args[0]))
}

fn clear_stats(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    for (_, bridge) in chosen(switch, args)? {
        bridge.macs.clear_stats();
    }
    Ok("statistics successfully cleared".to_owned())
}
