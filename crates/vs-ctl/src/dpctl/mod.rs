//! `ovs-dpctl`: shows and changes datapaths past any bridge.
//!
//! The datapaths are those that this process can open itself, if its caller hands it any,
//! and otherwise those of the switch that runs on this machine.

mod options;
mod source;

use std::fs::File;
use std::io::Read;

use base::log::{Destination, Level, Logger, TOOL_MODULES};
use base::{Clock, Dirs, Instant};
use dp_ctl::{Command, Host, NoDatapaths, Report};

use crate::{Env, Exit};
use options::{Early, Settings};
use source::{Daemon, Direct, Failure, Source};

/// Runs the tool on the datapaths of the switch that runs on this machine.
pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit {
    run_on(env, args, None)
}

/// Runs the tool on the datapaths that `direct` has, if the command is about those, and otherwise on those of
/// the switch that runs on this machine.
pub fn run_on(env: &mut Env<'_>, args: &[String], direct: Option<&mut dyn Host>) -> Exit {
    let clock = Clock::new();
    let logger = Logger::new(&env.program, &clock, TOOL_MODULES);
    logger.set_level(None, Some(Destination::Console), Level::Warn);
    logger.bind_thread("");
    let dirs = env.dirs.clone();
    let settings = match options::parse(&env.program, args, &logger, &dirs) {
        Ok(settings) => settings,
        Err(Early::Print(text)) => {
            env.print(text);
            return Exit::SUCCESS;
        }
        Err(Early::Fail(text)) => return env.fatal(text),
        Err(Early::Usage(text)) => {
            // The stream that would show a write error is the one that fails.
            let _ = writeln!(env.stderr, "{text}");
            return Exit::FAILURE;
        }
    };
    let deadline = settings
        .timeout
        .map_or(Instant::MAX, |timeout| clock.now() + timeout);
    let command = match command(&settings) {
        Ok(command) => command,
        Err(text) => return env.fatal(text),
    };
    if command.name == "help" {
        let text = options::usage(&env.program, &dirs);
        env.print(text);
        return Exit::SUCCESS;
    }
    let outcome = if !command.needs_datapaths {
        carry_out(env, &mut Direct(&mut NoDatapaths), command, &settings)
    } else if let Some(host) = direct.filter(|host| is_for(&**host, &settings, &dirs)) {
        carry_out(env, &mut Direct(host), command, &settings)
    } else {
        let connected = Daemon::connect(&dirs, &clock, deadline);
        connected.and_then(|mut daemon| carry_out(env, &mut daemon, command, &settings))
    };
    match outcome {
        Ok(true) => Exit::SUCCESS,
        Ok(false) => Exit::FAILURE,
        Err(Failure::Fatal(text)) => env.fatal(text),
        Err(Failure::TimedOut) => {
            log::warn!(target: "fatal_signal", "terminating with signal 14 (Alarm clock)");
            Exit::Alarm
        }
    }
}

/// Whether a command is about the datapaths of `host`, and not about those of a switch.
fn is_for(host: &dyn Host, settings: &Settings, dirs: &Dirs) -> bool {
    let kinds = host.kinds();
    let kind_of = |operand: &String| operand.split_once('@').map(|(kind, _)| kind.to_owned());
    let first = settings.command.get(1).and_then(kind_of);
    if let Some(kind) = first.filter(|kind| kind.bytes().all(|b| b.is_ascii_lowercase())) {
        return kinds.contains(&kind);
    }
    let has_some = |kind: &String| host.names(kind).is_ok_and(|names| !names.is_empty());
    // Without a name the only datapath is meant, which may be the switch's own.
    kinds.iter().any(has_some) || !Daemon::may_run(dirs)
}

/// The command that is asked for, with as many operands as it may have.
fn command(settings: &Settings) -> Result<&'static Command, String> {
    let Some((name, operands)) = settings.command.split_first() else {
        return Err("missing command name; use --help for help".to_owned());
    };
    let command = dp_ctl::find(name);
    let command = command.ok_or(format!("unknown command '{name}'; use --help for help"))?;
    let (min, max) = (command.min, command.max);
    if operands.len() < min {
        return Err(format!(
            "'{name}' command requires at least {min} arguments"
        ));
    }
    if operands.len() > max {
        return Err(format!("'{name}' command takes at most {max} arguments"));
    }
    if command.writes && settings.read_only {
        return Err(format!("'{name}' command does not work in read only mode"));
    }
    Ok(command)
}

/// Carries out a command and shows what comes of it.  Returns whether it succeeded.
fn carry_out(
    env: &mut Env<'_>,
    source: &mut dyn Source,
    command: &Command,
    settings: &Settings,
) -> Result<bool, Failure> {
    let operands: Vec<&str> = settings.command[1..].iter().map(|o| &o[..]).collect();
    if let Some(file) = file_of(source, command, &operands)? {
        return flows_of_file(env, source, command, &operands, file, settings);
    }
    let is_type = |operand: &&str| operand.starts_with("type=");
    if command.name == "dump-flows" && operands.iter().any(is_type) {
        let text = "Invalid argument 'type'. Use 'ovs-appctl dpctl/dump-flows' instead.";
        return Err(Failure::Fatal(text.to_owned()));
    }
    let report = source.run(command, settings.options, &operands)?;
    Ok(show(env, &report))
}

/// Prints a report.  Returns whether its command succeeded.
fn show(env: &mut Env<'_>, report: &Report) -> bool {
    for (is_error, text) in report.parts() {
        if is_error {
            env.fatal(text);
        } else {
            env.print(text);
        }
    }
    !report.failed()
}

/// The file of flows that a command names, if `source` wants its lines instead.
fn file_of<'a>(
    source: &mut dyn Source,
    command: &Command,
    operands: &[&'a str],
) -> Result<Option<&'a str>, Failure> {
    if source.reads_files() {
        return Ok(None);
    }
    Ok(match (command.name, operands) {
        ("add-flows" | "mod-flows", [.., file]) => Some(*file),
        ("del-flows", [_, file]) => Some(*file),
        // A lone operand is a datapath, if there is one of that name.
        ("del-flows", [name]) => {
            let full = match name.contains('@') {
                true => (*name).to_owned(),
                false => format!("system@{name}"),
            };
            let known = source::datapaths(source)?.contains(&full);
            (!known).then_some(*name)
        }
        _ => None,
    })
}

/// Carries out the lines of a file, each of which may fail for itself.
fn flows_of_file(
    env: &mut Env<'_>,
    source: &mut dyn Source,
    command: &Command,
    operands: &[&str],
    file: &str,
    settings: &Settings,
) -> Result<bool, Failure> {
    let datapath = (operands.len() > 1).then(|| operands[0]);
    let default = match command.name {
        "mod-flows" => "modify",
        "del-flows" => "delete",
        _ => "add",
    };
    let fatal = |what: &str, error: &std::io::Error| {
        let why = base::errno_text(error);
        Failure::Fatal(format!("{what} file \"{file}\" failed ({why})"))
    };
    let mut opened = match file {
        "-" => None,
        file => Some(File::open(file).map_err(|error| fatal("Opening", &error))?),
    };
    let mut lines = Lines::default();
    let mut succeeded = true;
    loop {
        // Whoever writes to standard input may want each line done before the next.
        let line = match &mut opened {
            Some(file) => lines.next(file),
            None => lines.next(env.stdin),
        };
        let Some(line) = line.map_err(|error| fatal("Reading", &error))? else {
            return Ok(succeeded);
        };
        let line = (lines.number, &line[..]);
        let report = source::run_line(source, datapath, line, default, settings.options)?;
        succeeded &= show(env, &report);
        let _ = env.stdout.flush();
    }
}

/// Cuts what comes in into lines.
#[derive(Default)]
struct Lines {
    read: Vec<u8>,
    ended: bool,
    number: usize,
}

impl Lines {
    /// The next line, without the end of it.
    fn next(&mut self, input: &mut dyn Read) -> std::io::Result<Option<String>> {
        loop {
            let end = self.read.iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.or(self.ended.then_some(self.read.len())) {
                if self.read.is_empty() {
                    return Ok(None);
                }
                let rest = self.read.split_off((end + 1).min(self.read.len()));
                let line = std::mem::replace(&mut self.read, rest);
                self.number += 1;
                let line = String::from_utf8_lossy(&line[..end]).into_owned();
                return Ok(Some(line));
            }
            let mut buffer = [0; 4096];
            let n = input.read(&mut buffer)?;
            self.ended = n == 0;
            self.read.extend_from_slice(&buffer[..n]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one() {
        let mut input: &[u8] = b"one\n\ntwo # \n three";
        let mut lines = Lines::default();
        let mut all = Vec::new();
        while let Some(line) = lines.next(&mut input).unwrap() {
            all.push((lines.number, line));
        }
        let want = [(1, "one"), (2, ""), (3, "two # "), (4, " three")];
        assert_eq!(all, want.map(|(n, line)| (n, line.to_owned())));
    }
}
