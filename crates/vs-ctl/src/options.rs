//! Options that many tools share: logging and TLS.

use std::path::PathBuf;

use base::Dirs;
use base::getopt::Opt;
use base::log::{Level, Logger};
use io::tls::TlsConfig;

/// An option of logging or of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonOption {
    /// `-v`, `--verbose`.
    Verbose,
    /// `--log-file`.
    LogFile,
    /// `--syslog-method`.
    SyslogMethod,
    /// `--syslog-target`.
    SyslogTarget,
    /// `-p`, `--private-key`.
    PrivateKey,
    /// `-c`, `--certificate`.
    Certificate,
    /// `-C`, `--ca-cert`.
    CaCert,
    /// `--ssl-protocols`.
    SslProtocols,
    /// `--ssl-ciphers`.
    SslCiphers,
    /// `--ssl-ciphersuites`.
    SslCiphersuites,
    /// `--ssl-server-name`.
    SslServerName,
    /// `--bootstrap-ca-cert`.
    BootstrapCaCert,
    /// `--peer-ca-cert`.
    PeerCaCert,
}

/// The logging options, in the order in which `--options` lists them.
pub const LOG_OPTIONS: [Opt<CommonOption>; 4] = [
    Opt::optional("verbose", Some('v'), CommonOption::Verbose),
    Opt::optional("log-file", None, CommonOption::LogFile),
    Opt::required("syslog-method", None, CommonOption::SyslogMethod),
    Opt::required("syslog-target", None, CommonOption::SyslogTarget),
];

/// The TLS options of a tool, in the order in which `--options` lists them.
pub const TLS_OPTIONS: [Opt<CommonOption>; 9] = [
    Opt::required("private-key", Some('p'), CommonOption::PrivateKey),
    Opt::required("certificate", Some('c'), CommonOption::Certificate),
    Opt::required("ca-cert", Some('C'), CommonOption::CaCert),
    Opt::required("ssl-protocols", None, CommonOption::SslProtocols),
    Opt::required("ssl-ciphers", None, CommonOption::SslCiphers),
    Opt::required("ssl-ciphersuites", None, CommonOption::SslCiphersuites),
    Opt::required("ssl-server-name", None, CommonOption::SslServerName),
    Opt::required("bootstrap-ca-cert", None, CommonOption::BootstrapCaCert),
    Opt::required("peer-ca-cert", None, CommonOption::PeerCaCert),
];

/// What the shared options set up.
#[derive(Debug)]
pub struct Common {
    /// The tool's log.
    pub logger: Logger,
    /// The TLS configuration, to be handed to `io::Net`.
    pub tls: TlsConfig,
}

impl Common {
    /// With `logger` and no TLS.
    pub fn new(logger: Logger) -> Self {
        Self {
            logger,
            tls: TlsConfig::default(),
        }
    }

    /// Takes in one option.
    ///
    /// # Errors
    /// The message to print.
    pub fn set(
        &mut self,
        option: CommonOption,
        value: Option<&str>,
        dirs: &Dirs,
    ) -> Result<(), String> {
        let text = value.unwrap_or_default();
        let path = || Some(PathBuf::from(text));
        match option {
            CommonOption::Verbose => match value {
                None => self.logger.set_level(None, None, Level::Dbg),
                Some(spec) => {
                    let set = self.logger.set(spec);
                    set.map_err(|error| format!("processing \"{spec}\": {error}"))?;
                }
            },
            CommonOption::LogFile => {
                let file = match value {
                    Some(file) => dirs.log.join(file),
                    None => dirs.log.join(format!("{}.log", self.logger.program())),
                };
                // The failure is logged.
                self.logger
                    .open_file(&file)
                    .map_err(|error| format!("{}: {error}", file.display()))?;
            }
            CommonOption::SyslogMethod => {
                let known = matches!(text, "libc" | "null")
                    || text.starts_with("unix:")
                    || text.starts_with("udp:");
                if !known {
                    return Err(format!("unsupported syslog method '{text}'"));
                }
                self.logger.set_syslog_method(text);
            }
            CommonOption::SyslogTarget => self.logger.set_syslog_target(text)?,
            CommonOption::PrivateKey => self.tls.private_key = path(),
            CommonOption::Certificate => self.tls.certificate = path(),
            CommonOption::CaCert => {
                self.tls.ca_cert = path();
                self.tls.bootstrap_ca_cert = false;
            }
            CommonOption::BootstrapCaCert => {
                self.tls.ca_cert = path();
                self.tls.bootstrap_ca_cert = true;
            }
            CommonOption::PeerCaCert => self.tls.peer_ca_cert = path(),
            CommonOption::SslProtocols => self.tls.protocols = Some(text.to_owned()),
            CommonOption::SslCiphers => self.tls.ciphers = Some(text.to_owned()),
            CommonOption::SslCiphersuites => self.tls.ciphersuites = Some(text.to_owned()),
            CommonOption::SslServerName => self.tls.server_name = Some(text.to_owned()),
        }
        Ok(())
    }
}

/// What `--options` prints: each option's long name, and the letter below it.
pub fn list_options<T>(options: &[Opt<T>]) -> String {
    let mut text = String::new();
    for option in options {
        let takes = option.arg != base::getopt::ArgKind::None;
        text += &format!("--{}{}\n", option.long, if takes { "=ARG" } else { "" });
        if let Some(short) = option.short {
            text += &format!("-{short}{}\n", if takes { " ARG" } else { "" });
        }
    }
    text
}
