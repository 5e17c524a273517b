//! Help texts of the common options.

use std::fmt::Write as _;

use base::Dirs;

/// The section on daemon options.
pub fn daemon_usage(program: &str, dirs: &Dirs) -> String {
    let run = dirs.run.display();
    format!(
        "\nDaemon options:\n  \
         --detach                run in background as daemon\n  \
         --monitor               creates a process to monitor this daemon\n  \
         --user=username[:group] changes the effective daemon user:group\n  \
         --no-chdir              do not chdir to '/'\n  \
         --pidfile[=FILE]        create pidfile (default: {run}/{program}.pid)\n  \
         --overwrite-pidfile     with --pidfile, start even if already running\n"
    )
}

/// The section on logging options.
pub fn log_usage(program: &str, dirs: &Dirs) -> String {
    let log = dirs.log.display();
    format!(
        "\nLogging options:\n  \
         -vSPEC, --verbose=SPEC   set logging levels\n  \
         -v, --verbose            set maximum verbosity level\n  \
         --log-file[=FILE]        enable logging to specified FILE\n                           \
         (default: {log}/{program}.log)\n  \
         --syslog-method=(libc|unix:file|udp:ip:port)\n                           \
         specify how to send messages to syslog daemon\n  \
         --syslog-target=HOST:PORT  also send syslog msgs to HOST:PORT via UDP\n"
    )
}

/// The sections on ways to connect to or listen for `what`, and on TLS.
pub fn connection_usage(what: &str, active: bool, passive: bool, bootstrap: bool) -> String {
    let mut text = String::from("\n");
    if active {
        let _ = write!(
            text,
            "Active {what} connection methods:\n  \
             tcp:HOST:PORT           PORT at remote HOST\n  \
             ssl:HOST:PORT           SSL/TLS PORT at remote HOST\n  \
             unix:FILE               Unix domain socket named FILE\n"
        );
    }
    if passive {
        let _ = write!(
            text,
            "Passive {what} connection methods:\n  \
             ptcp:PORT[:IP]          listen to TCP PORT on IP\n  \
             pssl:PORT[:IP]          listen for SSL/TLS on PORT on IP\n  \
             punix:FILE              listen on Unix domain socket FILE\n"
        );
    }
    text += "PKI configuration (required to use SSL/TLS):\n  \
             -p, --private-key=FILE  file with private key\n  \
             -c, --certificate=FILE  file with certificate for private key\n  \
             -C, --ca-cert=FILE      file with peer CA certificate\n";
    if bootstrap {
        text += "  --bootstrap-ca-cert=FILE  file with peer CA certificate to read or create\n";
    }
    text += "SSL/TLS options:\n  \
             --ssl-protocols=PROTOS    range of SSL/TLS protocols to enable\n  \
             --ssl-ciphers=CIPHERS     list of SSL/TLS ciphers to enable\n                            \
             with TLSv1.2\n  \
             --ssl-ciphersuites=SUITES list of SSL/TLS ciphersuites to\n                            \
             enable with TLSv1.3 and later\n  \
             --ssl-server-name=NAME    server name for TLS Server Name\n                            \
             Indication (SNI)\n";
    text
}
