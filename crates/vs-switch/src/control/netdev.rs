//! `dpif-netdev/*`: polling threads, of which there are none.

use base::Instant;

use super::{Command, MANY, command};
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command(
        "dpif-netdev/pmd-stats-show",
        "[-pmd core] [dp]",
        0,
        MANY,
        refuse,
    ),
    command(
        "dpif-netdev/pmd-stats-clear",
        "[-pmd core] [dp]",
        0,
        MANY,
        refuse,
    ),
    command(
        "dpif-netdev/pmd-rxq-show",
        "[-pmd core] [-secs secs] [dp]",
        0,
        MANY,
        refuse,
    ),
    command("dpif-netdev/pmd-rxq-rebalance", "[dp]", 0, MANY, refuse),
    command(
        "dpif-netdev/pmd-perf-show",
        "[-pmd core] [dp]",
        0,
        MANY,
        refuse,
    ),
    command("dpif-netdev/pmd-sleep-show", "[dp]", 0, MANY, refuse),
];

fn refuse(_switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    Err("there are no polling threads: event-driven threads serve all ports".to_owned())
}
