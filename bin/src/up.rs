//! `sluice up`: database and switch in one process, in the foreground.  Both have their
//! usual control sockets and pidfiles in the run directory; the switch reaches the database
//! over an in-memory stream.  What ends either ends both, the switch first.

use std::ffi::OsString;
use std::io::{ErrorKind, empty, sink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::Dirs;
use base::log::{DATABASE_MODULES, Logger};
use db_server::{EmbedSettings, Embedded, Parsed, parse};
use vs_bridge::daemon::{Process, run_in};

/// The database's name among the in-memory streams.
const MEMORY: &str = "db";

const USAGE: &str = "usage: sluice up [--db FILE]";

/// Runs both until a signal or a control command ends them.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    sluice::prepare_switch();
    let process = Process::new();
    let outcome = parse_args(args, &process.dirs).and_then(|db| start(&process, db));
    match outcome {
        Ok(status) => status,
        Err(text) => {
            eprintln!("sluice up: {text}");
            ExitCode::FAILURE
        }
    }
}

/// The database file: the usual one unless the arguments name another.
fn parse_args(args: &[OsString], dirs: &Dirs) -> Result<PathBuf, String> {
    let mut file = dirs.db.join("conf.db");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        if text == "--db" {
            file = args
                .next()
                .ok_or_else(|| format!("--db needs a file\n{USAGE}"))?
                .into();
        } else if let Some(value) = text.strip_prefix("--db=") {
            file = value.into();
        } else {
            return Err(format!("unknown argument '{text}'\n{USAGE}"));
        }
    }
    Ok(file)
}

fn start(process: &Process, file: PathBuf) -> Result<ExitCode, String> {
    provide(&process.dirs.run, "set OVS_RUNDIR")?;
    if let Some(folder) = file.parent().filter(|f| !f.as_os_str().is_empty()) {
        provide(folder, "set OVS_DBDIR, or name another file with --db")?;
    }
    let database = start_database(process, &file)?;
    initialize(process)?;
    let args = ["ovs-vswitchd", "--pidfile", &format!("mem:{MEMORY}")].map(String::from);
    let status = run_in(process.clone(), &args, sluice::providers::inject);
    database.stop();
    Ok(status)
}

/// Makes a folder, if it is not there, in which files can be made.
///
/// # Errors
/// It cannot be had: why, and what else could be done.
fn provide(folder: &Path, otherwise: &str) -> Result<(), String> {
    let writable = || {
        std::fs::create_dir_all(folder)?;
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        Ok(rustix::fs::access(folder, access)?)
    };
    writable().map_err(|error: std::io::Error| {
        let why = base::errno_text(&error);
        let shown = folder.display();
        match error.kind() {
            ErrorKind::PermissionDenied => format!("{shown}: {why}; run as root, or {otherwise}"),
            _ => format!("{shown}: {why}; {otherwise}"),
        }
    })
}

fn start_database(process: &Process, file: &Path) -> Result<Embedded, String> {
    let logger = Logger::new("ovsdb-server", &process.clock, DATABASE_MODULES);
    let socket = process.dirs.in_run("db.sock");
    let args = [
        "ovsdb-server".to_string(),
        "--create".to_string(),
        "--pidfile".to_string(),
        format!("--remote=punix:{}", socket.display()),
        format!("--remote=pmem:{MEMORY}"),
        "--remote=db:Open_vSwitch,Open_vSwitch,manager_options".to_string(),
        "--private-key=db:Open_vSwitch,SSL,private_key".to_string(),
        "--certificate=db:Open_vSwitch,SSL,certificate".to_string(),
        "--bootstrap-ca-cert=db:Open_vSwitch,SSL,ca_cert".to_string(),
        file.display().to_string(),
    ];
    let Parsed::Serve(options) = parse(&args, &logger, &process.dirs)? else {
        return Err("the database server's options are of no use".into());
    };
    let settings = EmbedSettings {
        clock: process.clock.clone(),
        logger,
        dirs: process.dirs.clone(),
        net: process.net.clone(),
        options: *options,
    };
    Embedded::start(settings, end_the_switch)
}

/// Tells the switch to end, as an operator's signal would.
fn end_the_switch() {
    let own = rustix::process::getpid();
    // Of a process that is ending already nothing more is needed.
    let _ = rustix::process::kill_process(own, rustix::process::Signal::TERM);
}

/// Makes the one row of `Open_vSwitch` and writes the versions into it.
fn initialize(process: &Process) -> Result<(), String> {
    let (mut stdin, mut stdout, mut stderr) = (empty(), sink(), Vec::new());
    let mut env = vs_ctl::Env::new("ovs-vsctl", &mut stdin, &mut stdout, &mut stderr);
    let version = format!("ovs-version={}", base::VERSION);
    let db = format!("--db=unix:{}", process.dirs.in_run("db.sock").display());
    let args = [
        "ovs-vsctl",
        "--no-wait",
        "--no-syslog",
        "--timeout=10",
        &db,
        "init",
        "--",
        "set",
        "Open_vSwitch",
    ]
    .into_iter()
    .chain([".", &version, "db-version=8.8.0"])
    .map(String::from)
    .collect::<Vec<String>>();
    match vs_ctl::vsctl::run(&mut env, &args) {
        vs_ctl::Exit::Code(0) => Ok(()),
        _ => Err(String::from_utf8_lossy(&stderr).trim().to_string()),
    }
}
