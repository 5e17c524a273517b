//! The switch's control commands, with the texts that scripts know.

mod bridge;
mod dpctl;
mod dpif;
mod dummy;
mod fdb;
mod features;
mod netdev;
mod trace;
mod tunnel;
mod upcall;

use base::Instant;
use io::control::{Commands, Format};
use json::Json;

use crate::backer::Backer;
use crate::bridge::Bridge;
use crate::switch::Switch;

/// A command: the answer, or the text of an error.
type Run = fn(&mut Switch, &[String], Instant) -> Result<String, String>;

/// The same, as JSON.
type RunJson = fn(&mut Switch, &[String], Instant) -> Result<Json, String>;

/// A command with its usage and the numbers of arguments that it takes.
pub(crate) struct Command {
    name: &'static str,
    usage: &'static str,
    min: usize,
    max: usize,
    run: Run,
    /// The answer as JSON, for commands that have one of their own.
    json: Option<RunJson>,
}

impl Command {
    /// The same command with an answer of its own for clients that want JSON.
    const fn with_json(mut self, json: RunJson) -> Self {
        self.json = Some(json);
        self
    }
}

const fn command(
    name: &'static str,
    usage: &'static str,
    min: usize,
    max: usize,
    run: Run,
) -> Command {
    Command {
        name,
        usage,
        min,
        max,
        run,
        json: None,
    }
}

/// Any number of arguments.
const MANY: usize = usize::MAX;

fn all() -> impl Iterator<Item = &'static Command> {
    let groups = [
        bridge::COMMANDS,
        dpif::COMMANDS,
        dummy::COMMANDS,
        fdb::COMMANDS,
        features::COMMANDS,
        netdev::COMMANDS,
        trace::COMMANDS,
        tunnel::COMMANDS,
        upcall::COMMANDS,
    ];
    groups.into_iter().flatten()
}

/// Registers all commands of a switch, which `switch` finds in what the daemon works on.
pub fn register<C: 'static>(commands: &mut Commands<C>, switch: fn(&mut C) -> &mut Switch) {
    for command in all() {
        let (run, json) = (command.run, command.json);
        commands.register(
            command.name,
            command.usage,
            command.min,
            command.max,
            move |context, call| {
                let switch = switch(context);
                let now = switch.env.clock.now();
                match json {
                    Some(json) if call.format == Format::Json => {
                        match json(switch, &call.args, now) {
                            Ok(value) => call.responder.reply_json(value),
                            Err(error) => call.responder.error(error),
                        }
                    }
                    _ => call.responder.finish(run(switch, &call.args, now)),
                }
            },
        );
    }
    for command in dp_ctl::COMMANDS.iter().filter(|c| c.on_control) {
        let name = format!("dpctl/{}", command.name);
        // The command counts its operands itself, without its options.
        commands.register(&name, command.usage, 0, MANY, move |context, call| {
            let switch = switch(context);
            let now = switch.env.clock.now();
            let answer = dpctl::run(switch, command, &call.args, now);
            call.responder.finish(answer);
        });
    }
}

/// Carries out one command, as a control socket would.
///
/// # Errors
/// The text of the error.
pub fn run(switch: &mut Switch, name: &str, args: &[String]) -> Result<String, String> {
    let now = switch.env.clock.now();
    if let Some(command) = name.strip_prefix("dpctl/").and_then(dp_ctl::find) {
        return dpctl::run(switch, command, args, now);
    }
    let command = all().find(|c| c.name == name);
    let command = command.ok_or_else(|| format!("\"{name}\" is not a valid command"))?;
    if args.len() < command.min || args.len() > command.max {
        return Err(format!("\"{name}\" takes another number of arguments"));
    }
    (command.run)(switch, args, now)
}

impl Switch {
    fn bridge(&self, name: &str) -> Result<&Bridge, String> {
        let bridge = self.bridges.get(name);
        bridge.ok_or_else(|| "no such bridge".to_owned())
    }

    fn backer_of(&self, bridge: &Bridge) -> Result<&Backer, String> {
        let backer = self.backers.get(&bridge.kind);
        backer.ok_or_else(|| "no such bridge".to_owned())
    }

    /// What the parts of the switch hold, for `memory/show`.
    pub fn memory_usage(&self) -> Vec<(String, u64)> {
        let rules = |b: &Bridge| b.model.view().iter().map(|(_, t)| t.len()).sum::<usize>();
        let bridges = || self.bridges.values();
        let counts = [
            ("ports", bridges().map(|b| b.by_number.len()).sum()),
            ("rules", bridges().map(rules).sum()),
            ("revalidators", self.backers.len()),
            (
                "udpif keys",
                self.backers
                    .values()
                    .map(|b| b.shared.megaflows.len())
                    .sum(),
            ),
        ];
        let shown = counts.into_iter().filter(|(_, n): &(_, usize)| *n > 0);
        shown.map(|(name, n)| (name.to_owned(), n as u64)).collect()
    }
}
