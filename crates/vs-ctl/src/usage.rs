//! Parts of `--help` texts that several tools share.

/// The formatting options of tables.
pub const TABLE: &str = "\
Output formatting options:
  -f, --format=FORMAT         set output formatting to FORMAT
                              (\"table\", \"html\", \"csv\", or \"json\")
  -d, --data=FORMAT           set table cell output formatting to
                              FORMAT (\"string\", \"bare\", or \"json\")
  --no-headings               omit table heading row
  --pretty                    pretty-print JSON in output
  --bare                      equivalent to \"--format=list --data=bare --no-headings\"
";

/// The logging options; `{program}` and `{logdir}` stand for the program's name and the
/// directory of log files.
pub const LOGGING: &str = "\
Logging options:
  -vSPEC, --verbose=SPEC   set logging levels
  -v, --verbose            set maximum verbosity level
  --log-file[=FILE]        enable logging to specified FILE
                           (default: {logdir}/{program}.log)
  --syslog-method=(libc|unix:file|udp:ip:port)
                           specify how to send messages to syslog daemon
  --syslog-target=HOST:PORT  also send syslog msgs to HOST:PORT via UDP
";

/// How a database is reached, both ways.
pub const DATABASE_STREAMS: &str = "\
Active database connection methods:
  tcp:HOST:PORT           PORT at remote HOST
  ssl:HOST:PORT           SSL/TLS PORT at remote HOST
  unix:FILE               Unix domain socket named FILE
Passive database connection methods:
  ptcp:PORT[:IP]          listen to TCP PORT on IP
  pssl:PORT[:IP]          listen for SSL/TLS on PORT on IP
  punix:FILE              listen on Unix domain socket FILE
PKI configuration (required to use SSL/TLS):
  -p, --private-key=FILE  file with private key
  -c, --certificate=FILE  file with certificate for private key
  -C, --ca-cert=FILE      file with peer CA certificate
";

/// The option after [`DATABASE_STREAMS`] of tools whose `--help` tells of it.
pub const BOOTSTRAP: &str =
    "  --bootstrap-ca-cert=FILE  file with peer CA certificate to read or create\n";

/// The options of TLS connections, which follow [`DATABASE_STREAMS`].
pub const SSL_OPTIONS: &str = "\
SSL/TLS options:
  --ssl-protocols=PROTOS    range of SSL/TLS protocols to enable
  --ssl-ciphers=CIPHERS     list of SSL/TLS ciphers to enable
                            with TLSv1.2
  --ssl-ciphersuites=SUITES list of SSL/TLS ciphersuites to
                            enable with TLSv1.3 and later
  --ssl-server-name=NAME    server name for TLS Server Name
                            Indication (SNI)
";

/// The last options of every program.
pub const OTHER: &str = "\
Other options:
  -h, --help                  display this help message
  -V, --version               display version information
";
