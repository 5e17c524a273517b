//! Options of `ovs-dpctl`.

use std::time::Duration;

use base::Dirs;
use base::getopt::{Getopt, Opt, Order};
use base::log::Logger;
use dp_ctl::Options;
use io::daemon::{LOG_OPTIONS, LogOption, log_usage, version_text};

/// What the options say.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) options: Options,
    pub(super) read_only: bool,
    pub(super) timeout: Option<Duration>,
    /// The command and its operands.
    pub(super) command: Vec<String>,
}

/// Why there is nothing to do, and how to end.
pub(super) enum Early {
    Print(String),
    Fail(String),
    /// Option errors have the program as it was called in front.
    Usage(String),
}

#[derive(Clone, Copy, PartialEq)]
enum Id {
    Statistics,
    Clear,
    MayCreate,
    ReadOnly,
    More,
    Names,
    NoNames,
    Timeout,
    Help,
    Option,
    Version,
    Log(LogOption),
}

fn table() -> Vec<Opt<Id>> {
    let mut options = vec![
        Opt::flag("statistics", Some('s'), Id::Statistics),
        Opt::flag("clear", None, Id::Clear),
        Opt::flag("may-create", None, Id::MayCreate),
        Opt::flag("read-only", None, Id::ReadOnly),
        Opt::flag("more", Some('m'), Id::More),
        Opt::flag("names", None, Id::Names),
        Opt::flag("no-names", None, Id::NoNames),
        Opt::required("timeout", Some('t'), Id::Timeout),
        Opt::flag("help", Some('h'), Id::Help),
        Opt::flag("option", Some('o'), Id::Option),
        Opt::flag("version", Some('V'), Id::Version),
    ];
    options.extend(LOG_OPTIONS.map(|option| option.map(Id::Log)));
    options
}

/// Reads the options.
pub(super) fn parse(
    program: &str,
    args: &[String],
    logger: &Logger,
    dirs: &Dirs,
) -> Result<Settings, Early> {
    let table = table();
    let mut settings = Settings::default();
    let mut pass = Getopt::new(args, &table, Order::Permute);
    loop {
        let next = pass
            .next()
            .map_err(|error| Early::Usage(format!("{}: {error}", pass.program())))?;
        let Some((id, value)) = next else { break };
        let text = value.unwrap_or_default();
        match id {
            Id::Statistics => settings.options.statistics = true,
            Id::Clear => settings.options.clear = true,
            Id::MayCreate => settings.options.may_create = true,
            Id::ReadOnly => settings.read_only = true,
            Id::More => settings.options.more = true,
            Id::Names => settings.options.names = Some(true),
            Id::NoNames => settings.options.names = Some(false),
            Id::Timeout => match text.parse::<u32>() {
                Ok(seconds) if seconds > 0 => {
                    settings.timeout = Some(Duration::from_secs(seconds.into()));
                }
                _ => {
                    let error = format!("value {text} on -t or --timeout is invalid");
                    return Err(Early::Fail(error));
                }
            },
            Id::Help => return Err(Early::Print(usage(program, dirs))),
            Id::Option => return Err(Early::Print(list(&table))),
            Id::Version => return Err(Early::Print(version_text(program) + "\n")),
            Id::Log(option) => option.apply(value, logger, dirs).map_err(Early::Fail)?,
        }
    }
    settings.command = pass.into_operands();
    Ok(settings)
}

/// What `--option` prints: each option's long name, and the letter below it.
fn list(table: &[Opt<Id>]) -> String {
    let mut text = String::new();
    for option in table {
        let (long, short) = match option.arg {
            base::getopt::ArgKind::None => ("", " "),
            base::getopt::ArgKind::Required => ("=ARG", " ARG"),
            base::getopt::ArgKind::Optional => ("=[ARG]", " [ARG]"),
        };
        text += &format!("--{}{long}\n", option.long);
        if let Some(letter) = option.short {
            text += &format!("-{letter}{short}\n");
        }
    }
    text
}

/// The text of `--help`.
pub(super) fn usage(program: &str, dirs: &Dirs) -> String {
    format!(
        "{program}: Open vSwitch datapath management utility\n\
         usage: {program} [OPTIONS] COMMAND [ARG...]\n{COMMANDS}{}{OPTIONS}",
        log_usage(program, dirs)
    )
}

const COMMANDS: &str = "  \
  add-dp DP [IFACE...]     add new datapath DP (with IFACEs)
  del-dp DP                delete local datapath DP
  add-if DP IFACE...       add each IFACE as a port on DP
  set-if DP IFACE...       reconfigure each IFACE within DP
  del-if DP IFACE...       delete each IFACE from DP
  dump-dps                 display names of all datapaths
  show                     show basic info on all datapaths
  show DP...               show basic info on each DP
  dump-flows [DP]          display flows in DP
  add-flow [DP] FLOW ACTIONS add FLOW with ACTIONS to DP
  add-flows [DP] FILE        add flows from FILE
  mod-flow [DP] FLOW ACTIONS change FLOW actions to ACTIONS in DP
  mod-flows [DP] FILE        change flows from FILE
  get-flow [DP] ufid:UFID    fetch flow corresponding to UFID
  del-flow [DP] FLOW         delete FLOW from DP
  del-flows [DP] [FILE]      delete all or specified flows from DP
  cache-get-size [DP]             Show the current size for all caches
  cache-set-size DP CACHE SIZE  Set cache size for a specific cache
  dump-conntrack [DP] [zone=ZONE]  display conntrack entries for ZONE
  flush-conntrack [DP] [zone=ZONE] [ct-tuple]delete matched conntrack entries in ZONE
  ct-stats-show [DP] [zone=ZONE] [verbose] CT connections grouped by protocol
  ct-bkts [DP] [gt=N] display connections per CT bucket
Each IFACE on add-dp, add-if, and set-if may be followed by
comma-separated options.  See ovs-dpctl(8) for syntax, or the
Interface table in ovs-vswitchd.conf.db(5) for an options list.
For COMMAND dump-flows, add-flow, add-flows, mod-flow,
mod-flows, del-flow and del-flows, DP is optional if there is
only one datapath.
";

const OPTIONS: &str = "
Options for show and mod-flow:
  -s,  --statistics           print statistics for port or flow

Options for dump-flows:
  -m, --more                  increase verbosity of output
  --names                     use port names in output

Options for mod-flow:
  --may-create                create flow if it doesn't exist
  --read-only                 do not run read/write commands
  --clear                     reset existing stats to zero

Other options:
  -t, --timeout=SECS          give up after SECS seconds
  -h, --help                  display this help message
  -V, --version               display version information
";
