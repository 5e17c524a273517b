//! `ovsdb-tool`: works on database files.

mod check_cluster;
pub(crate) mod cluster;
mod cluster_log;
pub(crate) mod commands;
mod log;
mod options;

use std::path::PathBuf;

use base::Dirs;

pub(crate) use self::log::date_text;
use self::options::{Early, Settings, parse};
use crate::{Env, Exit};

/// A command: its name, arguments as help shows them, how many it takes, what it does.
struct Command {
    name: &'static str,
    usage: &'static str,
    min: usize,
    max: usize,
    run: fn(&mut Env<'_>, &Call<'_>) -> Result<Exit, String>,
}

/// A command that was called.
struct Call<'a> {
    args: &'a [String],
    settings: &'a Settings,
    dirs: &'a Dirs,
}

impl Call<'_> {
    /// The database file: argument `index`, or the usual one.
    fn db(&self, index: usize) -> (PathBuf, String) {
        let path = match self.args.get(index) {
            Some(name) => PathBuf::from(name),
            None => self.dirs.db.join("conf.db"),
        };
        let shown = path.display().to_string();
        (path, shown)
    }

    /// The schema file: argument `index`, or the usual one.
    fn schema_path(&self, index: usize) -> PathBuf {
        match self.args.get(index) {
            Some(name) => PathBuf::from(name),
            None => self.dirs.pkgdata.join("vswitch.ovsschema"),
        }
    }
}

const COMMANDS: [Command; 25] = [
    Command::new("create", "[db [schema]]", 0, 2, commands::create),
    Command::new("create-cluster", "db contents local", 3, 3, cluster::create),
    Command::new(
        "join-cluster",
        "db name local remote...",
        4,
        usize::MAX,
        cluster::join,
    ),
    Command::new("compact", "[db [dst]]", 0, 2, commands::compact),
    Command::new("convert", "[db [schema [dst]]]", 0, 3, commands::convert),
    Command::new("needs-conversion", "", 0, 2, commands::needs_conversion),
    Command::new("db-name", "[db]", 0, 1, commands::db_name),
    Command::new("db-version", "[db]", 0, 1, commands::db_version),
    Command::new("db-cksum", "[db]", 0, 1, commands::db_cksum),
    Command::new("db-cid", "db", 1, 1, cluster::cid),
    Command::new("db-sid", "db", 1, 1, cluster::sid),
    Command::new("db-local-address", "db", 1, 1, cluster::local_address),
    Command::new("db-is-clustered", "db", 1, 1, commands::is_clustered),
    Command::new("db-is-standalone", "db", 1, 1, commands::is_standalone),
    Command::new("schema-name", "[schema]", 0, 1, commands::schema_name),
    Command::new("schema-version", "[schema]", 0, 1, commands::schema_version),
    Command::new("schema-cksum", "[schema]", 0, 1, commands::schema_cksum),
    Command::new("query", "[db] trns", 1, 2, commands::query),
    Command::new("transact", "[db] trns", 1, 2, commands::transact),
    Command::new("show-log", "[db]", 0, 1, log::show),
    Command::new(
        "check-cluster",
        "db...",
        1,
        usize::MAX,
        check_cluster::check,
    ),
    Command::new(
        "compare-versions",
        "a op b",
        3,
        3,
        commands::compare_versions,
    ),
    Command::new("help", "", 0, usize::MAX, commands::help),
    Command::new("list-commands", "", 0, usize::MAX, commands::list),
    Command::new(
        "cluster-to-standalone",
        "db clusterdb",
        2,
        2,
        cluster::to_standalone,
    ),
];

impl Command {
    const fn new(
        name: &'static str,
        usage: &'static str,
        min: usize,
        max: usize,
        run: fn(&mut Env<'_>, &Call<'_>) -> Result<Exit, String>,
    ) -> Self {
        Self {
            name,
            usage,
            min,
            max,
            run,
        }
    }
}

/// Runs the tool.
pub fn run(env: &mut Env<'_>, args: &[String]) -> Exit {
    let dirs = Dirs::with(|name| env.var(name).map(PathBuf::from));
    let settings = match parse(&env.program, args, &dirs) {
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
    let Some((name, rest)) = settings.operands.split_first() else {
        return env.fatal("missing command name; use --help for help");
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return env.fatal(format!("unknown command '{name}'; use --help for help"));
    };
    if rest.len() < command.min {
        let min = command.min;
        return env.fatal(format!(
            "'{name}' command requires at least {min} arguments"
        ));
    }
    if rest.len() > command.max {
        let max = command.max;
        return env.fatal(format!("'{name}' command takes at most {max} arguments"));
    }
    let call = Call {
        args: rest,
        settings: &settings,
        dirs: &dirs,
    };
    match (command.run)(env, &call) {
        Ok(exit) => exit,
        Err(error) => env.fatal(error),
    }
}
