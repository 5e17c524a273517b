//! The options that daemons and tools have in common, as tables to be joined to their own.

use std::path::PathBuf;

use base::Dirs;
use base::getopt::Opt;
use base::log::Logger;

use super::user::NewUser;
use crate::tls::TlsConfig;

/// An option of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOption {
    /// `-v`, `--verbose`.
    Verbose,
    /// `--log-file`.
    LogFile,
    /// `--syslog-target`.
    SyslogTarget,
    /// `--syslog-method`.
    SyslogMethod,
}

/// The options of the log.
pub const LOG_OPTIONS: [Opt<LogOption>; 4] = [
    Opt::optional("verbose", Some('v'), LogOption::Verbose),
    Opt::optional("log-file", None, LogOption::LogFile),
    Opt::required("syslog-method", None, LogOption::SyslogMethod),
    Opt::required("syslog-target", None, LogOption::SyslogTarget),
];

impl LogOption {
    /// Applies the option.
    ///
    /// # Errors
    /// The text to end the program with, after its name.
    pub fn apply(self, value: Option<&str>, logger: &Logger, dirs: &Dirs) -> Result<(), String> {
        let text = value.unwrap_or_default();
        match self {
            Self::Verbose => logger
                .set(text)
                .map_err(|error| format!("processing \"{text}\": {error}")),
            Self::LogFile => {
                let default = || dirs.log.join(format!("{}.log", logger.program()));
                let path = value.map_or_else(default, PathBuf::from);
                // The program runs without a log file rather than not at all.
                let _ = logger.open_file(&path);
                Ok(())
            }
            Self::SyslogTarget => {
                logger.set_syslog_target(text)?;
                log::warn!(target: "vlog",
                    "--syslog-target flag is deprecated, use --syslog-method instead");
                Ok(())
            }
            Self::SyslogMethod => {
                logger.set_syslog_method(text);
                Ok(())
            }
        }
    }
}

/// An option of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsOption {
    /// `-p`, `--private-key`.
    PrivateKey,
    /// `-c`, `--certificate`.
    Certificate,
    /// `-C`, `--ca-cert`.
    CaCert,
    /// `--bootstrap-ca-cert`.
    BootstrapCaCert,
    /// `--peer-ca-cert`.
    PeerCaCert,
    /// `--ssl-protocols`.
    Protocols,
    /// `--ssl-ciphers`.
    Ciphers,
    /// `--ssl-ciphersuites`.
    Ciphersuites,
    /// `--ssl-server-name`.
    ServerName,
}

/// The options of TLS.
pub const TLS_OPTIONS: [Opt<TlsOption>; 9] = [
    Opt::required("private-key", Some('p'), TlsOption::PrivateKey),
    Opt::required("certificate", Some('c'), TlsOption::Certificate),
    Opt::required("ca-cert", Some('C'), TlsOption::CaCert),
    Opt::required("bootstrap-ca-cert", None, TlsOption::BootstrapCaCert),
    Opt::required("peer-ca-cert", None, TlsOption::PeerCaCert),
    Opt::required("ssl-protocols", None, TlsOption::Protocols),
    Opt::required("ssl-ciphers", None, TlsOption::Ciphers),
    Opt::required("ssl-ciphersuites", None, TlsOption::Ciphersuites),
    Opt::required("ssl-server-name", None, TlsOption::ServerName),
];

impl TlsOption {
    /// Applies the option.
    ///
    /// # Errors
    /// The text to end the program with, after its name.
    pub fn apply(self, value: Option<&str>, config: &mut TlsConfig) -> Result<(), String> {
        let text = value.unwrap_or_default().to_owned();
        match self {
            Self::PrivateKey => config.private_key = Some(text.into()),
            Self::Certificate => config.certificate = Some(text.into()),
            Self::CaCert => config.ca_cert = Some(text.into()),
            Self::BootstrapCaCert => {
                config.ca_cert = Some(text.into());
                config.bootstrap_ca_cert = true;
            }
            Self::PeerCaCert => config.peer_ca_cert = Some(text.into()),
            Self::Protocols => config.protocols = Some(text),
            Self::Ciphers => config.ciphers = Some(text),
            Self::Ciphersuites => config.ciphersuites = Some(text),
            Self::ServerName => config.server_name = Some(text),
        }
        Ok(())
    }
}

/// An option of daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonOption {
    /// `--detach`.
    Detach,
    /// `--monitor`.
    Monitor,
    /// `--no-chdir`.
    NoChdir,
    /// `--no-self-confinement`.
    NoSelfConfinement,
    /// `--pidfile`.
    Pidfile,
    /// `--overwrite-pidfile`.
    OverwritePidfile,
    /// `--user`.
    User,
    /// `--unixctl`.
    Unixctl,
}

/// The options of daemons.
pub const DAEMON_OPTIONS: [Opt<DaemonOption>; 8] = [
    Opt::flag("detach", None, DaemonOption::Detach),
    Opt::flag("monitor", None, DaemonOption::Monitor),
    Opt::flag("no-chdir", None, DaemonOption::NoChdir),
    Opt::flag("no-self-confinement", None, DaemonOption::NoSelfConfinement),
    Opt::optional("pidfile", None, DaemonOption::Pidfile),
    Opt::flag("overwrite-pidfile", None, DaemonOption::OverwritePidfile),
    Opt::required("user", None, DaemonOption::User),
    Opt::required("unixctl", None, DaemonOption::Unixctl),
];

/// How a daemon is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonOptions {
    /// In the background.
    pub detach: bool,
    /// With a process that starts it again when it crashes.
    pub monitor: bool,
    /// In the directory where it was started, even in the background.
    pub no_chdir: bool,
    /// Unix sockets that the database names may lie anywhere.
    pub no_self_confinement: bool,
    /// The pidfile, if one is wanted.
    pub pidfile: Option<PathBuf>,
    /// Even if the pidfile's process runs.
    pub overwrite_pidfile: bool,
    /// Whom it becomes before it does anything.
    pub user: Option<NewUser>,
    /// Whether it then still needs what working on a datapath needs.
    pub on_datapath: bool,
    /// The control socket, relative to the run directory, if not the usual one.
    pub unixctl: Option<String>,
    /// Standard error stays open in the background: the program's output goes there.
    pub keep_stderr: bool,
    /// Whether standard output stays as it is in the background: for programs whose output
    /// is what they are for.
    pub keep_stdout: bool,
}

impl DaemonOptions {
    /// Becomes another user at once, if that is wanted: for programs that may not become daemons.
    ///
    /// # Errors
    /// The text to end the program with, after its name.
    pub fn become_user(&mut self, logger: &Logger) -> Result<(), String> {
        match self.user.take() {
            Some(user) => user.switch(self.on_datapath, logger),
            None => Ok(()),
        }
    }

    /// Applies `option` of the daemon called `program`.
    ///
    /// # Errors
    /// The text to end the program with, after its name.
    pub fn apply(
        &mut self,
        option: DaemonOption,
        value: Option<&str>,
        program: &str,
        dirs: &Dirs,
    ) -> Result<(), String> {
        match option {
            DaemonOption::Detach => self.detach = true,
            DaemonOption::Monitor => self.monitor = true,
            DaemonOption::NoChdir => self.no_chdir = true,
            DaemonOption::NoSelfConfinement => self.no_self_confinement = true,
            DaemonOption::Pidfile => {
                let default = format!("{program}.pid");
                self.pidfile = Some(dirs.in_run(value.unwrap_or(&default)));
            }
            DaemonOption::OverwritePidfile => self.overwrite_pidfile = true,
            DaemonOption::User => {
                self.user = Some(NewUser::parse(value.unwrap_or_default(), program)?);
            }
            DaemonOption::Unixctl => self.unixctl = value.map(str::to_owned),
        }
        Ok(())
    }
}
