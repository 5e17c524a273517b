//! `ovs-ofctl`: shows and changes what an OpenFlow switch does.

mod capture;
mod commands;
mod compose;
mod conn;
mod conntrack;
mod debug;
mod diff;
mod dump;
mod flows;
mod groups;
mod input;
mod monitor;
mod options;
mod packet_out;
mod ports;
mod probe;
mod tables;
mod vlan;

use std::collections::HashMap;
use std::fmt::Display;
use std::rc::Rc;

use base::log::{Logger, TOOL_MODULES};
use base::{Clock, Instant};
use io::Net;
use net_flow::Names;
use of_wire::print::Style;

use crate::{Env, Exit};
use options::{Early, Settings};

/// Why a command ends before it is done.
#[derive(Debug)]
enum Fail {
    /// With this text on standard error and status 1.
    Fatal(String),
    /// With a line in the log and status 1.
    Logged(&'static str, String),
    /// With this status; everything is said.
    Code(u8),
    /// Its time is up.
    Alarm,
}

type Outcome<T = ()> = Result<T, Fail>;

/// A failure with a text.
fn fatal<T>(text: impl Display) -> Outcome<T> {
    Err(Fail::Fatal(text.to_string()))
}

/// What the commands work with.
struct Ctl<'c, 'e> {
    env: &'c mut Env<'e>,
    settings: Settings,
    logger: Logger,
    clock: Clock,
    net: Net,
    deadline: Instant,
    next_xid: u32,
    names: HashMap<String, Rc<Names>>,
    no_names: Rc<Names>,
}

/// Runs the tool.
pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit {
    let clock = Clock::new();
    let logger = Logger::new(&env.program, &clock, TOOL_MODULES);
    logger.bind_thread("");
    let dirs = env.dirs.clone();
    let (mut settings, tls) = match options::parse(&env.program, args, &logger, &dirs) {
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
    if let Err(text) = settings.daemon.become_user(&logger) {
        return env.fatal(text);
    }
    let net = Net::new(&dirs);
    net.tls().configure(tls);
    let deadline = settings
        .timeout
        .map_or(Instant::MAX, |timeout| clock.now() + timeout);
    let mut ctl = Ctl {
        env,
        settings,
        logger,
        clock,
        net,
        deadline,
        next_xid: 1,
        names: HashMap::new(),
        no_names: Rc::default(),
    };
    match ctl.run() {
        Ok(()) => Exit::SUCCESS,
        Err(Fail::Fatal(text)) => ctl.env.fatal(text),
        Err(Fail::Logged(module, text)) => {
            let _ = ctl.env.stdout.flush();
            ctl.logger.fatal(module, &text);
            Exit::FAILURE
        }
        Err(Fail::Code(code)) => {
            let _ = ctl.env.stdout.flush();
            Exit::Code(code)
        }
        Err(Fail::Alarm) => {
            log::warn!(target: "fatal_signal", "terminating with signal 14 (Alarm clock)");
            Exit::Alarm
        }
    }
}

impl Ctl<'_, '_> {
    /// Finds the command and carries it out.
    fn run(&mut self) -> Outcome {
        let command = std::mem::take(&mut self.settings.command);
        let Some((name, args)) = command.split_first() else {
            return fatal("missing command name; use --help for help");
        };
        let logged = |text: String| Err(Fail::Logged("command_line", text));
        let Some(command) = commands::find(name) else {
            return logged(format!("unknown command '{name}'; use --help for help"));
        };
        if args.len() < command.min {
            let min = command.min;
            return logged(format!(
                "'{name}' command requires at least {min} arguments"
            ));
        }
        if args.len() > command.max {
            let max = command.max;
            return logged(format!("'{name}' command takes at most {max} arguments"));
        }
        if command.writes && self.settings.read_only {
            return logged(format!("'{name}' command does not work in read only mode"));
        }
        (command.run)(self, args)
    }

    fn xid(&mut self) -> u32 {
        let xid = self.next_xid;
        self.next_xid = xid.wrapping_add(1);
        xid
    }

    /// How messages from the switch at `name` are printed, `more` above the usual verbosity.
    fn show(&mut self, name: &str, bytes: &[u8], more: u8) -> Outcome<String> {
        let names = self.names_to_show(name)?;
        let style = Style {
            names: &names,
            verbosity: self.settings.verbosity.saturating_add(more),
        };
        Ok(of_wire::print::message_text(bytes, style))
    }

    /// Names of ports and tables to read from the command line.
    fn names_to_accept(&mut self, switch: &str) -> Outcome<Rc<Names>> {
        if self.settings.names == Some(false) {
            return Ok(self.no_names.clone());
        }
        self.fetch_names(switch)
    }

    /// Whether output has names of ports and tables.
    fn shows_names(&self) -> bool {
        let terminal = || rustix::termios::isatty(std::io::stdout());
        self.settings.names.unwrap_or_else(terminal)
    }

    fn names_to_show(&mut self, switch: &str) -> Outcome<Rc<Names>> {
        if self.shows_names() {
            self.fetch_names(switch)
        } else {
            Ok(self.no_names.clone())
        }
    }
}
