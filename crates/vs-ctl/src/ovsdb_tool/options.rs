//! The command line of `ovsdb-tool`.

use base::getopt::{Getopt, Opt, Order};
use base::log::{Destination, Level, Logger, TOOL_MODULES};
use base::{Clock, Dirs};
use db_model::{Uuid, parse_uuid};
use io::daemon::{LOG_OPTIONS, LogOption, log_usage, version_text};

/// What the options say.
pub(super) struct Settings {
    /// How much `show-log` tells.
    pub(super) more: u32,
    /// The id of the cluster that a server is to join.
    pub(super) cid: Option<Uuid>,
    /// The election timer of a new cluster in milliseconds; 0 for the usual one.
    pub(super) election_timer: u64,
    /// The role that restricts transactions; empty for none.
    pub(super) role: String,
    /// The clock, for dates.
    pub(super) clock: Clock,
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
    More,
    Cluster,
    ElectionTimer,
    Role,
    Help,
    Version,
    Options,
    Log(LogOption),
}

pub(super) fn parse(program: &str, args: &[String], dirs: &Dirs) -> Result<Settings, Early> {
    let clock = Clock::new();
    let logger = Logger::new(program, &clock, TOOL_MODULES);
    logger.set_level(None, Some(Destination::Console), Level::Warn);
    logger.bind_thread("");
    let mut table = vec![
        Opt::flag("more", Some('m'), Id::More),
        Opt::required("rbac-role", None, Id::Role),
        Opt::required("cid", None, Id::Cluster),
        Opt::required("election-timer", None, Id::ElectionTimer),
        Opt::flag("help", Some('h'), Id::Help),
        Opt::flag("version", Some('V'), Id::Version),
        Opt::flag("option", Some('o'), Id::Options),
    ];
    table.extend(LOG_OPTIONS.map(|opt| opt.map(Id::Log)));
    let mut more = 0;
    let mut role = String::new();
    let (mut cid, mut election_timer) = (None, 0);
    let mut pass = Getopt::new(args, &table, Order::Permute);
    loop {
        let (id, value) = match pass.next() {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(error) => return Err(Early::Usage(format!("{}: {error}", pass.program()))),
        };
        match id {
            Id::More => more += 1,
            Id::Cluster => {
                cid = value.and_then(parse_uuid).filter(|cid| !cid.is_nil());
                if cid.is_none() {
                    let text = value.unwrap_or_default();
                    return Err(Early::Fail(format!("{text}: not a valid UUID")));
                }
            }
            Id::ElectionTimer => {
                let text = value.unwrap_or_default();
                election_timer = text.parse().unwrap_or(0);
                db_raft::check_election_timer(election_timer)
                    .map_err(|error| Early::Fail(error.to_string()))?;
            }
            Id::Role => role = value.unwrap_or_default().to_owned(),
            Id::Help => return Err(Early::Print(usage(program, dirs))),
            Id::Version => return Err(Early::Print(version_text(program) + "\n")),
            Id::Options => {
                let names = table.iter().filter(|opt| !opt.long.is_empty());
                let names = names.map(|opt| format!("--{}\n", opt.long));
                return Err(Early::Print(names.collect()));
            }
            Id::Log(option) => option.apply(value, &logger, dirs).map_err(Early::Fail)?,
        }
    }
    Ok(Settings {
        more,
        cid,
        election_timer,
        role,
        clock,
        operands: pass.into_operands(),
    })
}

/// The help text.
pub(super) fn usage(program: &str, dirs: &Dirs) -> String {
    let db = dirs.db.join("conf.db");
    let schema = dirs.pkgdata.join("vswitch.ovsschema");
    format!(
        "{program}: Open vSwitch database management utility\n\
         usage: {program} [OPTIONS] COMMAND [ARG...]\n  \
         create [DB [SCHEMA]]    create DB with the given SCHEMA\n  \
         [--election-timer=ms] create-cluster DB CONTENTS LOCAL\n    \
         create clustered DB with given CONTENTS and LOCAL address\n  \
         [--cid=UUID] join-cluster DB NAME LOCAL REMOTE...\n    \
         join clustered DB with given NAME and LOCAL and REMOTE addrs\n  \
         compact [DB [DST]]      compact DB in-place (or to DST)\n  \
         convert [DB [SCHEMA [DST]]]   convert DB to SCHEMA (to DST)\n  \
         db-name [DB]            report name of schema used by DB\n  \
         db-version [DB]         report version of schema used by DB\n  \
         db-cksum [DB]           report checksum of schema used by DB\n  \
         db-cid DB               report cluster ID of clustered DB\n  \
         db-sid DB               report server ID of clustered DB\n  \
         db-local-address DB     report local address of clustered DB\n  \
         db-is-clustered DB      test whether DB is clustered\n  \
         db-is-standalone DB     test whether DB is standalone\n  \
         schema-name [SCHEMA]    report SCHEMA's name\n  \
         schema-version [SCHEMA] report SCHEMA's schema version\n  \
         schema-cksum [SCHEMA]   report SCHEMA's checksum\n  \
         compare-versions A OP B  compare OVSDB schema version numbers\n  \
         query [DB] TRNS         execute read-only transaction on DB\n  \
         transact [DB] TRNS      execute read/write transaction on DB\n  \
         cluster-to-standalone DB DB    Convert clustered DB to\n      \
         standalone DB when cluster is down and cannot be\n        \
         revived\n  \
         [-m]... show-log [DB]   print DB's log entries\n\
         The default DB is {}.\n\
         The default SCHEMA is {}.\n{}\n\
         Other options:\n  \
         -m, --more                  increase show-log verbosity\n  \
         --rbac-role=ROLE            RBAC role for transact and query commands\n  \
         -h, --help                  display this help message\n  \
         -V, --version               display version information\n",
        db.display(),
        schema.display(),
        log_usage(program, dirs)
    )
}
