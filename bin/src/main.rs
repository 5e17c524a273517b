//! `sluice`: every program of Sluice in one, chosen by its own name or first argument.
#![forbid(unsafe_code)]

mod doctor;
mod up;

use std::ffi::OsString;
use std::process::ExitCode;

const USAGE: &str = "\
sluice: a virtual switch that speaks as Open vSwitch does
usage: sluice COMMAND [ARG...]

  up [--db FILE]     database and switch in one process, in the foreground
  doctor             which datapaths and features this machine offers
  PROGRAM [ARG...]   one of the programs below, also by a link of that name

programs:
";

/// How a program is called.
enum Program {
    Tool(vs_ctl::Tool),
    Daemon(fn(&[String]) -> ExitCode),
}

const PROGRAMS: &[(&str, Program)] = &[
    ("ovs-vswitchd", Program::Daemon(sluice::switch)),
    ("ovsdb-server", Program::Daemon(db_server::run)),
    ("ovs-vsctl", Program::Tool(vs_ctl::vsctl::run)),
    ("ovs-dpctl", Program::Tool(sluice::kernel_host::dpctl)),
    ("ovs-ofctl", Program::Tool(vs_ctl::ofctl::run)),
    ("ovsdb-client", Program::Tool(vs_ctl::ovsdb_client::run)),
    ("ovs-appctl", Program::Tool(vs_ctl::appctl::run)),
    ("ovsdb-tool", Program::Tool(vs_ctl::ovsdb_tool::run)),
    ("vtep-ctl", Program::Tool(vs_ctl::vtep_ctl::run)),
];

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let own_name = args.first().map(base_name).unwrap_or_default();
    if program(&own_name).is_none() && !args.is_empty() {
        args.remove(0);
    }
    let name = args.first().map(base_name).unwrap_or_default();
    match (name.as_str(), program(&name)) {
        (_, Some(Program::Tool(tool))) => vs_ctl::main_with(*tool, args),
        (_, Some(Program::Daemon(daemon))) => match base::getopt::utf8_args(args) {
            Ok(args) => daemon(&args),
            Err(text) => fail(&format!("{name}: {text}")),
        },
        ("up", None) => up::run(&args[1..]),
        ("doctor", None) => doctor::run(),
        ("help" | "--help" | "-h", None) => {
            print!("{}", usage());
            ExitCode::SUCCESS
        }
        ("version" | "--version" | "-V", None) => {
            println!(
                "sluice {} (Open vSwitch {})",
                env!("CARGO_PKG_VERSION"),
                base::VERSION
            );
            ExitCode::SUCCESS
        }
        ("", None) => fail(&usage()),
        (other, None) => fail(&format!("sluice: unknown command '{other}'\n{}", usage())),
    }
}

fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|(n, _)| *n == name).map(|(_, p)| p)
}

/// The last part of a path.
fn base_name(path: &OsString) -> String {
    let path = path.to_string_lossy();
    path.rsplit('/').next().unwrap_or("").to_string()
}

fn usage() -> String {
    let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
    format!("{USAGE}  {}\n", names.join(" "))
}

fn fail(text: &str) -> ExitCode {
    eprintln!("{}", text.trim_end());
    ExitCode::FAILURE
}
