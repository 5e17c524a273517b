//! The control commands `cluster/...`.

use db_model::Uuid;
use db_raft::FailureTest;
use io::Commands;

use super::part::Part;
use crate::daemon::Daemon;

/// The part in the cluster of the database that a command names.
fn part<'a>(daemon: &'a mut Daemon, args: &[String]) -> Result<&'a mut Part, String> {
    let part = daemon.state.server.cluster_mut(&args[0]);
    part.ok_or_else(|| "unknown cluster".to_owned())
}

fn id_text(id: Uuid) -> String {
    format!("{id}\n")
}

/// Registers the commands.
pub(crate) fn register(commands: &mut Commands<Daemon>) {
    commands.answer("cluster/cid", "DB", 1, 1, |daemon, args| {
        let cid = part(daemon, args)?.raft.cid();
        if cid.is_nil() {
            return Err("cluster id not yet known".to_owned());
        }
        Ok(id_text(cid))
    });
    commands.answer("cluster/sid", "DB", 1, 1, |daemon, args| {
        Ok(id_text(part(daemon, args)?.raft.sid()))
    });
    commands.answer("cluster/status", "DB", 1, 1, |daemon, args| {
        let (now, links) = (daemon.now(), daemon.state.links.shown(&args[0]));
        Ok(part(daemon, args)?.raft.status(now, &links))
    });
    commands.answer("cluster/leave", "DB", 1, 1, |daemon, args| {
        let now = daemon.now();
        part(daemon, args)?.raft.command_leave(now)?;
        Ok(String::new())
    });
    commands.answer("cluster/kick", "DB SERVER", 2, 2, |daemon, args| {
        let now = daemon.now();
        let said = part(daemon, args)?.raft.command_kick(now, &args[1])?;
        Ok(if said.is_empty() { said } else { said + "\n" })
    });
    commands.answer(
        "cluster/change-election-timer",
        "DB TIME",
        2,
        2,
        |daemon, args| {
            let now = daemon.now();
            // What is no number is too short.
            let millis = args[1].trim().parse().unwrap_or(0);
            let raft = &mut part(daemon, args)?.raft;
            let said = raft.command_change_election_timer(now, millis)?;
            Ok(format!("{said}\n"))
        },
    );
    commands.answer(
        "cluster/set-backlog-threshold",
        "DB N_MSGS N_BYTES",
        3,
        3,
        |daemon, args| {
            let part = part(daemon, args)?;
            let number = |text: &String| text.parse::<u64>().map_err(|_| "invalid argument");
            let (messages, bytes) = (number(&args[1])?, number(&args[2])?);
            let (Ok(messages), Ok(bytes)) = (usize::try_from(messages), usize::try_from(bytes))
            else {
                return Err("values out of range".to_owned());
            };
            if messages < 50 {
                return Err("values out of range".to_owned());
            }
            part.backlog = (messages, bytes);
            daemon.state.links.set_backlog(&args[0], messages, bytes);
            Ok(String::new())
        },
    );
    commands.answer(
        "cluster/failure-test",
        "FAILURE SCENARIO",
        1,
        1,
        |daemon, args| failure_test(daemon, &args[0]),
    );
}

/// Lets something go wrong in all clusters.
fn failure_test(daemon: &mut Daemon, scenario: &str) -> Result<String, String> {
    let now = daemon.now();
    let test = FailureTest::named(scenario);
    if test.is_none() && !["clear", "force-election"].contains(&scenario) {
        return Err("unknown test scenario".to_owned());
    }
    for name in daemon.state.server.cluster_names() {
        let Some(part) = daemon.state.server.cluster_mut(&name) else {
            continue;
        };
        if scenario == "force-election" {
            part.raft.force_election(now);
        } else {
            part.raft.set_test(now, test);
        }
        part.tested = true;
    }
    Ok(if scenario == "clear" {
        "test dismissed\n".to_owned()
    } else {
        "test engaged\n".to_owned()
    })
}
