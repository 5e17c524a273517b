//! `ofproto/list`, `bridge/*`.

use std::fmt::Write as _;

use base::Instant;
use net_flow::Names;
use net_flow::text::put_match;
use of_switch::Rule;
use of_wire::action::put_actions;

use super::{Command, command};
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command("ofproto/list", "", 0, 0, list),
    command(
        "bridge/dump-flows",
        "[--offload-stats] bridge",
        1,
        2,
        dump_flows,
    ),
    command("bridge/reconnect", "[bridge]", 0, 1, reconnect),
];

fn list(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    let mut text = String::new();
    for name in switch.bridges.keys() {
        let _ = writeln!(text, "{name}");
    }
    Ok(text)
}

fn dump_flows(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let mut offload = false;
    let mut name = None;
    for arg in args {
        match arg.as_str() {
            "--offload-stats" => offload = true,
            other => name = Some(other),
        }
    }
    let bridge = name.and_then(|name| switch.bridges.get(name));
    let bridge = bridge.ok_or("Unknown bridge")?;
    if let Some(backer) = switch.backers.get(&bridge.kind) {
        // Counters that cannot be had now are those of a moment ago.
        let _ = backer.update_counters(now, &switch.env.clock);
    }
    let mut text = String::new();
    for (table, view) in bridge.model.view().iter() {
        let mut rules: Vec<_> = view.rules().collect();
        rules.sort_by_key(|rule| (-rule.priority, rule.id));
        for rule in rules {
            if table != 0 {
                let _ = write!(text, "table_id={table}, ");
            }
            put_rule(&mut text, rule, offload, now);
        }
    }
    Ok(text)
}

fn put_rule(text: &mut String, rule: &Rule, offload: bool, now: Instant) {
    let counts = rule.counts();
    let duration = now.since(rule.created).as_secs();
    let _ = write!(
        text,
        "duration={duration}s, n_packets={}, n_bytes={}, ",
        counts.packets, counts.bytes
    );
    if offload {
        *text += "n_offload_packets=0, n_offload_bytes=0, ";
    }
    let names = Names::default();
    put_match(text, &rule.matching(), rule.priority, &names);
    *text += ",actions=";
    put_actions(text, &rule.actions, &names);
    text.push('\n');
}

fn reconnect(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    match args.first() {
        None => {
            for bridge in switch.bridges.values_mut() {
                bridge.endpoints.reconnect(now);
            }
        }
        Some(name) => {
            let bridge = switch.bridges.get_mut(name).ok_or("Unknown bridge")?;
            bridge.endpoints.reconnect(now);
        }
    }
    Ok(String::new())
}
