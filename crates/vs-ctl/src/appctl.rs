//! `ovs-appctl`: has a running daemon carry out a command.

use std::path::PathBuf;
use std::time::Duration;

use base::getopt::{Getopt, Opt, Order};
use base::log::{Destination, Level, Logger, TOOL_MODULES};
use base::{Clock, Dirs, Instant};
use io::control::{ControlClient, find_target};
use io::daemon::{LOG_OPTIONS, LogOption, version_text};
use json::Json;

use crate::{Env, Exit};

const USAGE: &str = "\
{program}, for querying and controlling Open vSwitch daemon
usage: {program} [TARGET] COMMAND [ARG...]
Targets:
  -t, --target=TARGET  pidfile or socket to contact
Common commands:
  list-commands      List commands supported by the target
  version            Print version of the target
  vlog/list          List current logging levels
  vlog/list-pattern  List logging patterns for each destination.
  vlog/set [SPEC]
      Set log levels as detailed in SPEC, which may include:
      A valid module name (all modules, by default)
      'syslog', 'console', 'file' (all destinations, by default))
      'off', 'emer', 'err', 'warn', 'info', or 'dbg' ('dbg', bydefault)
  vlog/reopen        Make the program reopen its log file
Other options:
  --timeout=SECS     wait at most SECS seconds for a response
  -f, --format=FMT   Output format. One of: 'json', or 'text'
                     (default: text)
  --pretty           Format the output in a more readable fashion.
                     Requires: --format=json.
  -h, --help         Print this helpful information
  -V, --version      Display {program} version information
";

#[derive(Clone, Copy, PartialEq)]
enum Id {
    Target,
    Timeout,
    Format,
    Pretty,
    Execute,
    Help,
    Version,
    Log(LogOption),
}

/// What the options say.
struct Settings {
    target: String,
    timeout: Option<Duration>,
    json: bool,
    pretty: bool,
    command: Vec<String>,
}

/// Why there is nothing to do, and how to end.
enum Early {
    Print(String),
    Fail(String),
    /// Option errors have the program as it was called in front.
    Usage(String),
}

/// Runs the tool.
pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit {
    let clock = Clock::new();
    let logger = Logger::new(&env.program, &clock, TOOL_MODULES);
    logger.set_level(None, Some(Destination::Console), Level::Warn);
    logger.bind_thread("");
    let dirs = Dirs::with(|name| env.var(name).map(PathBuf::from));
    let settings = match parse(&env.program, args, &logger, &dirs) {
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
    match transact(&settings, &dirs, &clock, deadline) {
        Ok(text) => {
            env.print(text);
            Exit::SUCCESS
        }
        Err(Failure::Refused(text)) => {
            let _ = env.stdout.flush();
            let newline = if text.ends_with('\n') { "" } else { "\n" };
            let _ = write!(env.stderr, "{text}{newline}");
            let target = &settings.target;
            env.fatal(format!("{target}: server returned an error"));
            Exit::Code(2)
        }
        Err(Failure::Fatal(text, code)) => {
            env.fatal(text);
            Exit::Code(code)
        }
        Err(Failure::TimedOut) => {
            log::warn!(target: "fatal_signal", "terminating with signal 14 (Alarm clock)");
            Exit::Alarm
        }
    }
}

fn parse(program: &str, args: &[String], logger: &Logger, dirs: &Dirs) -> Result<Settings, Early> {
    let mut options = vec![
        Opt::required("target", Some('t'), Id::Target),
        Opt::required("timeout", Some('T'), Id::Timeout),
        Opt::required("format", Some('f'), Id::Format),
        Opt::flag("pretty", None, Id::Pretty),
        Opt::flag("execute", Some('e'), Id::Execute),
        Opt::flag("help", Some('h'), Id::Help),
        Opt::flag("version", Some('V'), Id::Version),
    ];
    options.extend(LOG_OPTIONS.map(|option| option.map(Id::Log)));
    let mut settings = Settings {
        target: "ovs-vswitchd".to_owned(),
        timeout: None,
        json: false,
        pretty: false,
        command: Vec::new(),
    };
    let mut executes = false;
    let mut pass = Getopt::new(args, &options, Order::StopAtOperand);
    loop {
        let next = pass
            .next()
            .map_err(|error| Early::Usage(format!("{}: {error}", pass.program())))?;
        let Some((id, value)) = next else { break };
        let text = value.unwrap_or_default();
        match id {
            Id::Target => text.clone_into(&mut settings.target),
            Id::Timeout => match text.parse::<u32>() {
                Ok(seconds) if seconds > 0 => {
                    settings.timeout = Some(Duration::from_secs(seconds.into()));
                }
                _ => {
                    let error = format!("value {text} on -T or --timeout is invalid");
                    return Err(Early::Fail(error));
                }
            },
            Id::Format => match text {
                "json" => settings.json = true,
                "text" => settings.json = false,
                _ => {
                    let error = format!("value {text} on -f or --format is invalid");
                    return Err(Early::Fail(error));
                }
            },
            Id::Pretty => settings.pretty = true,
            // Once it came before the command, which is now what follows the options anyway.
            Id::Execute if !executes => executes = true,
            Id::Execute => {
                let error = "-e or --execute may be speciifed only once";
                return Err(Early::Fail(error.to_owned()));
            }
            Id::Help => return Err(Early::Print(USAGE.replace("{program}", program))),
            Id::Version => return Err(Early::Print(version_text(program) + "\n")),
            Id::Log(option) => option.apply(value, logger, dirs).map_err(Early::Fail)?,
        }
    }
    settings.command = pass.into_operands();
    if settings.command.is_empty() {
        let error = "at least one non-option argument is required (use --help for help)";
        return Err(Early::Fail(error.to_owned()));
    }
    if settings.pretty && !settings.json {
        let error = "--pretty is supported with --format json only";
        return Err(Early::Fail(error.to_owned()));
    }
    Ok(settings)
}

enum Failure {
    /// The daemon said no, with this text.
    Refused(String),
    Fatal(String, u8),
    TimedOut,
}

fn transact(
    settings: &Settings,
    dirs: &Dirs,
    clock: &Clock,
    deadline: Instant,
) -> Result<String, Failure> {
    let fatal = |text: String| Failure::Fatal(text, 1);
    let target = &settings.target;
    let socket = find_target(target, dirs).map_err(fatal)?;
    let mut client = ControlClient::connect(&socket, clock, deadline).map_err(|error| {
        let text = io::error_text(&error);
        fatal(format!(
            "cannot connect to \"{}\" ({text})",
            socket.display()
        ))
    })?;
    let mut ask = |command: &str, args: &[String]| match client.transact(command, args) {
        Ok(answer) => Ok(answer),
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Err(Failure::TimedOut),
        Err(error) => {
            let text = io::error_text(&error);
            Err(fatal(format!("{target}: transaction error ({text})")))
        }
    };
    let refused = |error: Json| match error.as_str() {
        Some(text) => Failure::Refused(text.to_owned()),
        None => Failure::Refused(error.to_string()),
    };
    if settings.json {
        let args = ["--format".to_owned(), "json".to_owned()];
        ask("set-options", &args)?.map_err(refused)?;
    }
    let result = ask(&settings.command[0], &settings.command[1..])?.map_err(refused)?;
    let mut text = match &result {
        Json::String(text) if !settings.json => text.to_string(),
        value if settings.json && settings.pretty => format!("{value:#}"),
        value if settings.json => value.to_string(),
        value => {
            let kind = value.type_name();
            let text = format!("Unexpected reply type in JSON rpc reply: {kind}");
            return Err(Failure::Fatal(text, 2));
        }
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
