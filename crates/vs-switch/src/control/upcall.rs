//! `upcall/*` and `revalidator/*`: the flows that the switch has installed.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use base::Instant;
use dp_api::Datapath;

use super::{Command, command};
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command("upcall/show", "", 0, 0, show),
    command(
        "upcall/set-flow-limit",
        "flow-limit-number",
        1,
        1,
        set_flow_limit,
    ),
    command("upcall/disable-megaflows", "", 0, 0, disable_megaflows),
    command("upcall/enable-megaflows", "", 0, 0, enable_megaflows),
    command("upcall/disable-ufid", "", 0, 0, disable_ufid),
    command("upcall/enable-ufid", "", 0, 0, enable_ufid),
    command("revalidator/wait", "", 0, 0, wait),
    command("revalidator/purge", "", 0, 0, purge),
    command("revalidator/pause", "", 0, 0, pause),
    command("revalidator/resume", "", 0, 0, resume),
];

fn show(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    let mut text = String::new();
    for backer in switch.backers.values() {
        let state = &backer.revalidator;
        let _ = writeln!(text, "{}:", backer.display_name());
        let _ = writeln!(
            text,
            "  flows         : (current {}) (avg {}) (max {}) (limit {})",
            backer.datapath.stats().flows,
            state.average,
            state.max,
            backer.flow_limit()
        );
        let _ = writeln!(text, "  dump duration : {}ms", state.duration.as_millis());
        let ufid = switch.ufid_dumps;
        let _ = writeln!(text, "  ufid enabled : {ufid}");
        put_lost(&*backer.datapath, &mut text);
        text.push('\n');
        let keys = backer.shared.megaflows.len();
        let _ = writeln!(text, "  1: (keys {keys})");
    }
    Ok(text)
}

/// Ports whose packets the switch had no time for, if there are any.
fn put_lost(datapath: &dyn Datapath, text: &mut String) {
    for port in datapath.ports() {
        let lost = datapath.upcalls(port.number).map_or(0, |u| u.lost);
        if lost > 0 {
            let _ = writeln!(text, "  lost upcalls  : {} from {}", lost, port.name);
        }
    }
}

fn set_flow_limit(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    // The original reads what is not a number as zero.
    let limit = args[0].parse().unwrap_or(0);
    for backer in switch.backers.values() {
        backer.shared.flow_limit.store(limit, Ordering::Relaxed);
    }
    Ok(format!("set flow_limit to {limit}\n"))
}

/// Flows so far match too much, or too little: all go.
fn set_wildcards(switch: &mut Switch, on: bool, now: Instant) {
    for backer in switch.backers.values_mut() {
        backer.shared.wildcards.store(on, Ordering::Relaxed);
        backer.purge(now);
    }
}

fn disable_megaflows(
    switch: &mut Switch,
    _args: &[String],
    now: Instant,
) -> Result<String, String> {
    set_wildcards(switch, false, now);
    Ok("megaflows disabled\n".to_owned())
}

fn enable_megaflows(switch: &mut Switch, _args: &[String], now: Instant) -> Result<String, String> {
    set_wildcards(switch, true, now);
    Ok("megaflows enabled\n".to_owned())
}

fn disable_ufid(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    switch.ufid_dumps = false;
    Ok("Datapath dumping tersely using UFID disabled\n".to_owned())
}

fn enable_ufid(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    switch.ufid_dumps = true;
    Ok("Datapath dumping tersely using UFID enabled for supported datapaths\n".to_owned())
}

fn wait(switch: &mut Switch, _args: &[String], now: Instant) -> Result<String, String> {
    switch.force_revalidation(now);
    Ok(String::new())
}

fn purge(switch: &mut Switch, _args: &[String], now: Instant) -> Result<String, String> {
    for backer in switch.backers.values_mut() {
        backer.purge(now);
    }
    Ok(String::new())
}

fn pause(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    for backer in switch.backers.values_mut() {
        backer.revalidator.paused = true;
    }
    Ok(String::new())
}

fn resume(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    for backer in switch.backers.values_mut() {
        backer.revalidator.paused = false;
    }
    Ok(String::new())
}
