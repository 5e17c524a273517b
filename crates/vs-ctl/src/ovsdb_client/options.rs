//! The command line of `ovsdb-client`.

use std::time::Duration;

use base::getopt::{Getopt, Opt, Order};
use base::log::{Destination, Level, Logger, TOOL_MODULES};
use base::{Clock, Dirs, Instant};
use io::daemon::{
    DAEMON_OPTIONS, DaemonOption, DaemonOptions, LOG_OPTIONS, LogOption, TLS_OPTIONS, TlsOption,
    connection_usage, daemon_usage, log_usage, version_text,
};
use io::tls::TlsConfig;

use crate::table::{self, Style, StyleOption};

/// What the options say.
pub(super) struct Settings {
    pub(super) program: String,
    pub(super) dirs: Dirs,
    pub(super) clock: Clock,
    pub(super) logger: Logger,
    pub(super) tls: TlsConfig,
    pub(super) daemon: DaemonOptions,
    pub(super) style: Style,
    pub(super) timestamp: bool,
    pub(super) force: bool,
    /// Whether the server is told that we cope with databases that come and go; told, but
    /// without insisting, if this was not asked for.
    pub(super) change_aware: Option<bool>,
    /// Whether, of several servers, only the leader will do.
    pub(super) leader_only: bool,
    pub(super) deadline: Instant,
    pub(super) operands: Vec<String>,
}

/// Why there is nothing to do.
pub(super) enum Early {
    Print(String),
    Fail(String),
    /// Errors of options have the program as it was called in front.
    Usage(String),
}

#[derive(Clone, Copy, PartialEq)]
enum Id {
    Timestamp,
    Force,
    Timeout,
    ChangeAware(bool),
    LeaderOnly(bool),
    Unsupported(&'static str),
    Help,
    Version,
    Options,
    Style(StyleOption),
    Log(LogOption),
    Tls(TlsOption),
    Daemon(DaemonOption),
}

fn table() -> Vec<Opt<Id>> {
    let mut table = vec![
        Opt::flag("timestamp", None, Id::Timestamp),
        Opt::flag("force", None, Id::Force),
        Opt::required("timeout", Some('t'), Id::Timeout),
        Opt::flag("db-change-aware", None, Id::ChangeAware(true)),
        Opt::flag("no-db-change-aware", None, Id::ChangeAware(false)),
        Opt::flag("leader-only", None, Id::LeaderOnly(true)),
        Opt::flag("no-leader-only", None, Id::LeaderOnly(false)),
        Opt::optional("record", None, Id::Unsupported("record")),
        Opt::optional("replay", None, Id::Unsupported("replay")),
        Opt::flag("help", Some('h'), Id::Help),
        Opt::flag("version", Some('V'), Id::Version),
        Opt::flag("option", Some('o'), Id::Options),
    ];
    table.extend(table::OPTIONS.map(|opt| opt.map(Id::Style)));
    table.extend(LOG_OPTIONS.map(|opt| opt.map(Id::Log)));
    table.extend(TLS_OPTIONS.map(|opt| opt.map(Id::Tls)));
    table.extend(DAEMON_OPTIONS.map(|opt| opt.map(Id::Daemon)));
    table
}

pub(super) fn parse(program: &str, args: &[String], dirs: Dirs) -> Result<Settings, Early> {
    let clock = Clock::new();
    let logger = Logger::new(program, &clock, TOOL_MODULES);
    logger.set_level(None, Some(Destination::Console), Level::Warn);
    logger.bind_thread("");
    let table = table();
    let mut settings = Settings {
        program: program.to_owned(),
        deadline: Instant::MAX,
        clock,
        logger,
        tls: TlsConfig::default(),
        daemon: DaemonOptions {
            keep_stderr: true,
            keep_stdout: true,
            ..DaemonOptions::default()
        },
        style: Style::default(),
        timestamp: false,
        force: false,
        change_aware: None,
        leader_only: true,
        operands: Vec::new(),
        dirs,
    };
    let mut pass = Getopt::new(args, &table, Order::Permute);
    loop {
        let (id, value) = match pass.next() {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(error) => return Err(Early::Usage(format!("{}: {error}", pass.program()))),
        };
        match id {
            Id::Options => {
                let names = table.iter().filter(|opt| !opt.long.is_empty());
                let names = names.map(|opt| format!("--{}\n", opt.long));
                return Err(Early::Print(names.collect()));
            }
            id => settings.apply(id, value)?,
        }
    }
    settings.operands = pass.into_operands();
    Ok(settings)
}

impl Settings {
    fn apply(&mut self, id: Id, value: Option<&str>) -> Result<(), Early> {
        let text = value.unwrap_or_default();
        match id {
            Id::Timestamp => self.timestamp = true,
            Id::Force => self.force = true,
            Id::Timeout => {
                let seconds = text.parse::<u64>().ok().filter(|s| *s > 0);
                let seconds = seconds.ok_or_else(|| {
                    Early::Fail(format!("value {text} on -t or --timeout is invalid"))
                })?;
                self.deadline = self.clock.now() + Duration::from_secs(seconds);
            }
            Id::ChangeAware(aware) => self.change_aware = Some(aware),
            Id::LeaderOnly(only) => self.leader_only = only,
            Id::Unsupported(name) => {
                return Err(Early::Fail(format!("--{name} is not supported yet")));
            }
            Id::Help | Id::Options => return Err(Early::Print(usage(&self.program, &self.dirs))),
            Id::Version => {
                return Err(Early::Print(version_text(&self.program) + "\n"));
            }
            Id::Style(option) => self.style.set(option, value).map_err(Early::Fail)?,
            Id::Log(option) => option
                .apply(value, &self.logger, &self.dirs)
                .map_err(Early::Fail)?,
            Id::Tls(option) => option.apply(value, &mut self.tls).map_err(Early::Fail)?,
            Id::Daemon(option) => self
                .daemon
                .apply(option, value, &self.program, &self.dirs)
                .map_err(Early::Fail)?,
        }
        Ok(())
    }
}

/// What `--help` tells of the commands.
const COMMANDS: &str = "  list-dbs [SERVER]
    list databases available on SERVER

  get-schema [SERVER] [DATABASE]
    retrieve schema for DATABASE from SERVER

  get-schema-version [SERVER] [DATABASE]
    retrieve schema for DATABASE from SERVER and report only its
    version number on stdout

  get-schema-cksum [SERVER] [DATABASE]
    retrieve schema for DATABASE from SERVER and report only its
    checksum on stdout

  list-tables [SERVER] [DATABASE]
    list tables for DATABASE on SERVER

  list-columns [SERVER] [DATABASE] [TABLE]
    list columns in TABLE (or all tables) in DATABASE on SERVER

  transact [SERVER] TRANSACTION
    run TRANSACTION (params for \"transact\" request) on SERVER
    and print the results as JSON on stdout

  query [SERVER] TRANSACTION
    run TRANSACTION (params for \"transact\" request) on SERVER,
    as read-only, and print the results as JSON on stdout

  monitor [SERVER] [DATABASE] TABLE [COLUMN,...]...
    monitor contents of COLUMNs in TABLE in DATABASE on SERVER.
    COLUMNs may include !initial, !insert, !delete, !modify
    to avoid seeing the specified kinds of changes.

  monitor-cond [SERVER] [DATABASE] CONDITION TABLE [COLUMN,...]...
    monitor contents that match CONDITION of COLUMNs in TABLE in
    DATABASE on SERVER.
    COLUMNs may include !initial, !insert, !delete, !modify
    to avoid seeing the specified kinds of changes.

  monitor-cond-since [SERVER] [DATABASE] [LASTID] CONDITION TABLE [COLUMN,...]...
    monitor contents that match CONDITION of COLUMNs in TABLE in
    DATABASE on SERVER, since change after LASTID.
    LASTID specifies transaction ID after which the monitoring
    starts, which works only for cluster mode. If ignored, it
    defaults to an all-zero uuid.
    Other arguments are the same as in monitor-cond.

  convert [SERVER] SCHEMA
    convert database on SERVER named in SCHEMA to SCHEMA.

  needs-conversion [SERVER] SCHEMA
    tests whether SCHEMA's db on SERVER needs conversion.

  monitor [SERVER] [DATABASE] ALL
    monitor all changes to all columns in all tables

  wait [SERVER] DATABASE STATE
    wait until DATABASE reaches STATE (\"added\" or \"connected\" or \"removed\")
    in DATABASE on SERVER.

  dump [SERVER] [DATABASE] [TABLE [COLUMN]...]
    dump contents of COLUMNs, TABLE (or all tables) in DATABASE
    on SERVER to stdout

  backup [SERVER] [DATABASE] > SNAPSHOT
    dump database contents in the form of a database file

  [--force] restore [SERVER] [DATABASE] < SNAPSHOT
    restore database contents from a database file

  lock [SERVER] LOCK
    create or wait for LOCK in SERVER

  steal [SERVER] LOCK
    steal LOCK from SERVER

  unlock [SERVER] LOCK
    unlock LOCK from SERVER
";

/// The last options.
const OTHER: &str = "
Other options:
  -t, --timeout=SECS          limits {program} runtime to
                              approximately SECS seconds.
  -h, --help                  display this help message
  -V, --version               display version information
";

/// The help text.
pub(super) fn usage(program: &str, dirs: &Dirs) -> String {
    let socket = dirs.run.join("db.sock");
    [
        &format!("{program}: Open vSwitch database JSON-RPC client\n"),
        &format!("usage: {program} [OPTIONS] COMMAND [ARG...]\n\nValid commands are:\n\n"),
        COMMANDS,
        &format!("\nThe default SERVER is unix:{}.\n", socket.display()),
        "The default DATABASE is Open_vSwitch.\n",
        &connection_usage("SERVER", true, true, true),
        "\n",
        crate::usage::TABLE,
        "  --timestamp                 timestamp \"monitor\" output",
        &daemon_usage(program, dirs),
        &log_usage(program, dirs),
        &OTHER.replace("{program}", program),
    ]
    .concat()
}
