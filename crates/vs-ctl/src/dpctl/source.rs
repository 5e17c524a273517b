//! Where commands about datapaths are carried out.

use base::{Clock, Dirs, Instant};
use dp_ctl::{Caller, Command, Host, Line, Options, Report, parse_line, preprocess};
use io::control::{ControlClient, find_target};
use json::Json;

/// The daemon whose datapaths are reached over its control socket.
const DAEMON: &str = "ovs-vswitchd";

/// Why a command was not carried out.
#[derive(Debug)]
pub(super) enum Failure {
    Fatal(String),
    TimedOut,
}

/// Who has the datapaths that a command is about.
pub(super) trait Source {
    /// Carries out a command, of which the number of operands was checked.
    fn run(
        &mut self,
        command: &Command,
        options: Options,
        operands: &[&str],
    ) -> Result<Report, Failure>;

    /// Whether this reads files of flows itself; otherwise it is given their lines.
    fn reads_files(&self) -> bool;
}

/// Datapaths that this process opens.
pub(super) struct Direct<'a>(pub(super) &'a mut dyn Host);

impl Source for Direct<'_> {
    fn run(
        &mut self,
        command: &Command,
        options: Options,
        operands: &[&str],
    ) -> Result<Report, Failure> {
        let tool = Caller::Tool;
        Ok(dp_ctl::run(command, self.0, tool, options, operands))
    }

    fn reads_files(&self) -> bool {
        true
    }
}

/// Datapaths of a running daemon.
pub(super) struct Daemon {
    client: ControlClient,
}

impl Daemon {
    /// Whether a daemon of this run directory says that it runs.
    pub(super) fn may_run(dirs: &Dirs) -> bool {
        find_target(DAEMON, dirs).is_ok()
    }

    /// Connects to the daemon of this run directory.
    pub(super) fn connect(dirs: &Dirs, clock: &Clock, deadline: Instant) -> Result<Self, Failure> {
        let fatal = |why: String| {
            Failure::Fatal(format!(
                "no datapaths can be reached, since {DAEMON} cannot: {why}"
            ))
        };
        let socket = find_target(DAEMON, dirs).map_err(fatal)?;
        let client = ControlClient::connect(&socket, clock, deadline).map_err(|error| {
            let text = io::error_text(&error);
            fatal(format!("{} ({text})", socket.display()))
        })?;
        Ok(Self { client })
    }
}

impl Source for Daemon {
    fn run(
        &mut self,
        command: &Command,
        options: Options,
        operands: &[&str],
    ) -> Result<Report, Failure> {
        let mut args = options.to_args();
        args.extend(operands.iter().map(|operand| (*operand).to_owned()));
        let name = format!("dpctl/{}", command.name);
        let answer = self.client.transact(&name, &args).map_err(|error| {
            if error.kind() == std::io::ErrorKind::TimedOut {
                return Failure::TimedOut;
            }
            let text = io::error_text(&error);
            Failure::Fatal(format!("{DAEMON}: transaction error ({text})"))
        })?;
        let text = |json: Json| {
            json.as_str()
                .map_or_else(|| json.to_string(), str::to_owned)
        };
        let answer = answer.map(text).map_err(text);
        Ok(Report::from_answer(answer, DAEMON))
    }

    fn reads_files(&self) -> bool {
        false
    }
}

/// The datapaths that a source has, by their full names.
pub(super) fn datapaths(source: &mut dyn Source) -> Result<Vec<String>, Failure> {
    let Some(command) = dp_ctl::find("dump-dps") else {
        return Ok(Vec::new());
    };
    let report = source.run(command, Options::default(), &[])?;
    let output = report.parts().filter(|(is_error, _)| !is_error);
    let names = output.map(|(_, line)| line.trim_end().to_owned());
    Ok(names.collect())
}

/// Carries out one line of a file of flows; `default` is the command of lines that name none.
pub(super) fn run_line(
    source: &mut dyn Source,
    datapath: Option<&str>,
    (number, line): (usize, &str),
    default: &str,
    options: Options,
) -> Result<Report, Failure> {
    let Some(line) = preprocess(line) else {
        return Ok(Report::default());
    };
    let (name, operands) = match parse_line(line, default) {
        Some(Line::Add(flow, actions)) => ("add-flow", vec![flow, actions]),
        Some(Line::Modify(flow, actions)) => ("mod-flow", vec![flow, actions]),
        Some(Line::Delete(flow)) => ("del-flow", vec![flow]),
        None => {
            let mut report = Report::default();
            report.complain(format!("Failed parsing line number {number}, skipped!"));
            report.fail();
            return Ok(report);
        }
    };
    let operands: Vec<&str> = datapath.into_iter().chain(operands).collect();
    match dp_ctl::find(name) {
        Some(command) => source.run(command, options, &operands),
        None => Ok(Report::default()),
    }
}
