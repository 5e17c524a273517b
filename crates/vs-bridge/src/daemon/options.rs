//! The command line of `ovs-vswitchd`.

use base::Dirs;
use base::getopt::{Getopt, Opt, Order};
use base::log::Logger;
use io::daemon::{
    DAEMON_OPTIONS, DaemonOption, DaemonOptions, LOG_OPTIONS, LogOption, TLS_OPTIONS, TlsOption,
    connection_usage, daemon_usage, log_usage, version_text,
};
use io::tls::TlsConfig;
use net_dev::DummyLevel;

use super::{Choice, PROGRAM};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Log(LogOption),
    Tls(TlsOption),
    Daemon(DaemonOption),
    Mlockall,
    EnableDummy,
    DisableSystem,
    DisableSystemRoute,
    DummyNuma,
    Dpdk,
    Help,
    Version,
}

/// How the daemon is to run.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) remote: String,
    pub(super) daemon: DaemonOptions,
    pub(super) tls: TlsConfig,
    pub(super) choice: Choice,
}

/// What the command line asks for.
pub(super) enum Parsed {
    Run(Box<Options>),
    Print(String),
}

fn table() -> Vec<Opt<Id>> {
    let mut options = vec![
        Opt::flag("mlockall", None, Id::Mlockall),
        Opt::optional("enable-dummy", None, Id::EnableDummy),
        Opt::flag("disable-system", None, Id::DisableSystem),
        Opt::flag("disable-system-route", None, Id::DisableSystemRoute),
        Opt::required("dummy-numa", None, Id::DummyNuma),
        Opt::optional("dpdk", None, Id::Dpdk),
        Opt::flag("help", Some('h'), Id::Help),
        Opt::flag("version", Some('V'), Id::Version),
    ];
    options.extend(LOG_OPTIONS.iter().map(|o| o.map(Id::Log)));
    options.extend(TLS_OPTIONS.iter().map(|o| o.map(Id::Tls)));
    options.extend(DAEMON_OPTIONS.iter().map(|o| o.map(Id::Daemon)));
    options
}

pub(super) fn parse(args: &[String], logger: &Logger, dirs: &Dirs) -> Result<Parsed, String> {
    let table = table();
    let mut pass = Getopt::new(args, &table, Order::Permute);
    let mut options = Options {
        remote: format!("unix:{}", dirs.in_run("db.sock").display()),
        daemon: DaemonOptions {
            on_datapath: true,
            ..DaemonOptions::default()
        },
        tls: TlsConfig::default(),
        choice: Choice::default(),
    };
    while let Some((id, value)) = pass.next().map_err(|e| e.to_string())? {
        match id {
            Id::Log(option) => option.apply(value, logger, dirs)?,
            Id::Tls(option) => option.apply(value, &mut options.tls)?,
            Id::Daemon(option) => options.daemon.apply(option, value, PROGRAM, dirs)?,
            Id::Mlockall => {
                log::warn!(target: "vswitchd", "--mlockall is not supported yet: memory may be \
                    swapped out");
            }
            Id::EnableDummy => {
                let level = match value {
                    None => DummyLevel::Own,
                    Some("system") => DummyLevel::System,
                    Some("override") => DummyLevel::All,
                    Some(other) => return Err(format!("{other}: unknown dummy level")),
                };
                options.choice.dummies = Some(level);
            }
            Id::DisableSystem => options.choice.disable_system = true,
            // There is no use of the system's routes that it could switch off.
            // Nor does where threads run depend on the machine's nodes.
            Id::DisableSystemRoute | Id::DummyNuma => {}
            Id::Dpdk => {
                return Err(
                    "--dpdk must be configured via the database (other_config:dpdk-init)"
                        .to_owned(),
                );
            }
            Id::Help => return Ok(Parsed::Print(usage(dirs))),
            Id::Version => {
                let text = format!("{}\n", version_text(PROGRAM));
                return Ok(Parsed::Print(text));
            }
        }
    }
    match pass.into_operands().as_slice() {
        [] => {}
        [remote] => options.remote.clone_from(remote),
        _ => {
            return Err(
                "at most one non-option argument accepted; use --help for usage".to_owned(),
            );
        }
    }
    Ok(Parsed::Run(Box::new(options)))
}

fn usage(dirs: &Dirs) -> String {
    let socket = dirs.in_run("db.sock");
    let mut text = format!(
        "{PROGRAM}: Open vSwitch daemon\n\
         usage: {PROGRAM} [OPTIONS] [DATABASE]\n\
         where DATABASE is a socket on which ovsdb-server is listening\n      \
         (default: \"unix:{}\").\n",
        socket.display()
    );
    text += &connection_usage("DATABASE", true, false, true);
    text += &daemon_usage(PROGRAM, dirs);
    text += &log_usage(PROGRAM, dirs);
    text += "\nOther options:\n  \
             --unixctl=SOCKET          override default control socket name\n  \
             --enable-dummy[=LEVEL]    dummy devices and datapaths, for tests\n  \
             --disable-system          no datapath of the kernel\n  \
             -h, --help                display this help message\n  \
             -V, --version             display version information\n";
    text
}

#[cfg(test)]
mod tests {
    use base::Clock;

    use super::*;

    fn run(line: &str) -> Result<Options, String> {
        let logger = Logger::new(PROGRAM, &Clock::new(), &["vconn"]);
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match parse(&args, &logger, &Dirs::from_env())? {
            Parsed::Run(options) => Ok(*options),
            Parsed::Print(text) => Err(text),
        }
    }

    #[test]
    fn what_test_suites_give() {
        let options = run("ovs-vswitchd --enable-dummy=override --disable-system \
                           --disable-system-route --detach --no-chdir --pidfile -vvconn tcp:1.2.3.4");
        let options = options.unwrap();
        assert_eq!(options.choice.dummies, Some(DummyLevel::All));
        assert!(options.choice.disable_system && options.daemon.detach);
        assert_eq!(options.remote, "tcp:1.2.3.4");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            run("x --version").unwrap_err(),
            "ovs-vswitchd (Open vSwitch) 3.7.1\n"
        );
        let error = run("x --enable-dummy=foo").unwrap_err();
        assert_eq!(error, "foo: unknown dummy level");
        assert!(run("x a b").unwrap_err().starts_with("at most one"));
        assert!(run("x --foo").unwrap_err().contains("'--foo'"));
    }
}
