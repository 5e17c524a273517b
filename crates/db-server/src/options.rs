//! The command line of `ovsdb-server`.

use std::path::PathBuf;

use base::Dirs;
use base::getopt::{Getopt, Opt, Order};
use base::log::Logger;
use io::daemon::{
    DAEMON_OPTIONS, DaemonOption, DaemonOptions, LOG_OPTIONS, LogOption, TLS_OPTIONS, TlsOption,
    connection_usage, daemon_usage, log_usage,
};
use io::tls::TlsConfig;

/// What the server is to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Database files.
    pub files: Vec<PathBuf>,
    /// Where clients connect, or whom to connect to.
    pub remotes: Vec<String>,
    /// A file that names databases and remotes, in place of both above.
    pub config_file: Option<PathBuf>,
    /// The active server of which all databases are backups.
    pub sync_from: Option<String>,
    /// Tables that backups leave alone: `DB:TABLE` between commas.
    pub sync_exclude: Option<String>,
    /// Whether databases do not follow the active server to begin with.
    pub active: bool,
    /// Whether a database file that is not there is made, with the Open_vSwitch schema.
    pub create: bool,
    /// Whether sets and maps are recorded as differences.
    pub column_differences: bool,
    /// Whether clusters are told all rows after a schema conversion.
    pub conversions_with_data: bool,
    /// Whether clients are told the ids of transactions.
    pub transaction_ids: bool,
    /// A command to run; the server ends when it does.
    pub run: Option<String>,
    /// TLS, where it is not taken from a database.
    pub tls: TlsConfig,
    /// Columns that TLS files are taken from: option and `db:DB,TABLE,COLUMN`.
    pub tls_columns: Vec<(TlsOption, String)>,
    /// How the daemon runs.
    pub daemon: DaemonOptions,
}

/// What the command line comes to.
#[derive(Debug)]
pub enum Parsed {
    /// Serve.
    Serve(Box<Options>),
    /// Print this and end well.
    Print(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Id {
    Remote,
    Run,
    NoDbs,
    ConfigFile,
    Create,
    TransactionIds,
    DisableColumnDiff,
    DisableNoDataConversion,
    SyncFrom,
    SyncExclude,
    Active,
    Unsupported(&'static str),
    Help,
    Version,
    Log(LogOption),
    Tls(TlsOption),
    Daemon(DaemonOption),
}

fn table() -> Vec<Opt<Id>> {
    let mut table = vec![
        Opt::required("remote", None, Id::Remote),
        Opt::required("run", None, Id::Run),
        Opt::flag("no-dbs", None, Id::NoDbs),
        Opt::flag("create", None, Id::Create),
        Opt::flag("transaction-ids", None, Id::TransactionIds),
        Opt::flag("disable-file-column-diff", None, Id::DisableColumnDiff),
        Opt::flag(
            "disable-file-no-data-conversion",
            None,
            Id::DisableNoDataConversion,
        ),
        Opt::required("sync-from", None, Id::SyncFrom),
        Opt::required("sync-exclude-tables", None, Id::SyncExclude),
        Opt::flag("active", None, Id::Active),
        Opt::required("config-file", None, Id::ConfigFile),
        Opt::optional("record", None, Id::Unsupported("record")),
        Opt::optional("replay", None, Id::Unsupported("replay")),
        Opt::flag("help", Some('h'), Id::Help),
        Opt::flag("version", Some('V'), Id::Version),
    ];
    table.extend(LOG_OPTIONS.map(|opt| opt.map(Id::Log)));
    table.extend(TLS_OPTIONS.map(|opt| opt.map(Id::Tls)));
    table.extend(DAEMON_OPTIONS.map(|opt| opt.map(Id::Daemon)));
    table
}

/// Reads the command line; options of the log take effect at once.
///
/// # Errors
/// The text to end with, after the program's name.
pub fn parse(args: &[String], logger: &Logger, dirs: &Dirs) -> Result<Parsed, String> {
    let program = logger.program().to_owned();
    let table = table();
    let mut options = Options {
        column_differences: true,
        ..Options::default()
    };
    let mut default_file = true;
    let mut pass = Getopt::new(args, &table, Order::Permute);
    while let Some((id, value)) = pass.next().map_err(|error| error.to_string())? {
        let text = || value.unwrap_or_default().to_owned();
        match id {
            Id::Remote => options.remotes.push(text()),
            Id::Run => options.run = Some(text()),
            Id::NoDbs => default_file = false,
            Id::ConfigFile => {
                options.config_file = Some(dirs.db.join(text()));
                default_file = false;
            }
            Id::Create => options.create = true,
            Id::TransactionIds => options.transaction_ids = true,
            Id::DisableColumnDiff => options.column_differences = false,
            Id::DisableNoDataConversion => options.conversions_with_data = true,
            Id::SyncFrom => options.sync_from = Some(text()),
            Id::SyncExclude => options.sync_exclude = Some(text()),
            Id::Active => options.active = true,
            Id::Unsupported(name) => return Err(format!("--{name} is not supported yet")),
            Id::Help => return Ok(Parsed::Print(usage(&program, dirs))),
            Id::Version => {
                return Ok(Parsed::Print(io::daemon::version_text(&program) + "\n"));
            }
            Id::Log(option) => option.apply(value, logger, dirs)?,
            Id::Tls(option) => match value {
                Some(column) if column.starts_with("db:") => {
                    options.tls_columns.push((option, column.to_owned()));
                }
                _ => option.apply(value, &mut options.tls)?,
            },
            Id::Daemon(option) => options.daemon.apply(option, value, &program, dirs)?,
        }
    }
    options.files = pass
        .into_operands()
        .into_iter()
        .map(PathBuf::from)
        .collect();
    if options.config_file.is_some() {
        if options.sync_from.is_some() || options.sync_exclude.is_some() || options.active {
            let text =
                "--config-file is mutually exclusive with --sync-from, --sync-exclude and --active";
            return Err(text.to_owned());
        }
        if !options.remotes.is_empty() {
            return Err("--config-file is mutually exclusive with --remote".to_owned());
        }
        if !options.files.is_empty() {
            return Err("Databases should be specified in a config file".to_owned());
        }
    }
    if options.files.is_empty() && default_file {
        options.files.push(dirs.db.join("conf.db"));
    }
    Ok(Parsed::Serve(Box::new(options)))
}

fn usage(program: &str, dirs: &Dirs) -> String {
    let mut text = format!(
        "{program}: Open vSwitch database server\n\
         usage: {program} [OPTIONS] [DATABASE...]\n\
         where each DATABASE is a database file in ovsdb format.\n\
         The default DATABASE, if none is given, is\n\
         {}/conf.db.\n\n\
         JSON-RPC options (may be specified any number of times):\n  \
         --remote=REMOTE         connect or listen to REMOTE\n",
        dirs.db.display()
    );
    text += &connection_usage("JSON-RPC", true, true, true);
    text += "\nConfiguration file:\n  \
             --config-file PATH      Use configuration file as a source of\n                          \
             database and JSON-RPC configuration.\n                          \
             Mutually exclusive with the DATABASE,\n                          \
             JSON-RPC and Syncing options.\n                          \
             Assumes --no-dbs.\n";
    text += &daemon_usage(program, dirs);
    text += &log_usage(program, dirs);
    text += "\nSyncing options:\n  \
             --sync-from=SERVER      sync DATABASE from active SERVER and start in\n                          \
             backup mode (except with --active)\n  \
             --sync-exclude-tables=DB:TABLE,...\n                          \
             exclude the TABLE in DB from syncing\n  \
             --active                with --sync-from, start in active mode\n";
    text += "\nOther options:\n  \
             --run COMMAND           run COMMAND as subprocess then exit\n  \
             --unixctl=SOCKET        override default control socket name\n  \
             --no-dbs                do not add default database\n  \
             --create                make a DATABASE that is not there, with the\n                          \
             Open_vSwitch schema\n  \
             --transaction-ids       tell clients ids of transactions, so that one\n                          \
             that reconnects gets only what is new\n  \
             --disable-file-column-diff\n                          \
             don't use column diff in database file\n  \
             -h, --help              display this help message\n  \
             -V, --version           display version information\n";
    text
}
