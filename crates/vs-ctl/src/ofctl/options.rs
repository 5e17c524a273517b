//! Options of `ovs-ofctl`.

use std::time::Duration;

use base::Dirs;
use base::getopt::{Getopt, Opt, Order};
use base::log::Logger;
use io::daemon::{
    DAEMON_OPTIONS, DaemonOption, DaemonOptions, LOG_OPTIONS, LogOption, TLS_OPTIONS, TlsOption,
    connection_usage, daemon_usage, log_usage, version_text,
};
use io::tls::TlsConfig;
use net_flow::{Field, Formats};
use of_wire::format_names::{formats_from_names, formats_names};
use of_wire::message::PacketInFormat;
use of_wire::version::formats_of_all;
use of_wire::{Version, VersionSet};

/// By what flows are sorted: a field, or the priority, rising or falling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Criterion {
    pub(super) field: Option<Field>,
    pub(super) falling: bool,
}

/// How `compose-packet` makes and shows its packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compose {
    /// As a capture file.
    pub(super) pcap: bool,
    /// As one line of hexadecimal digits.
    pub(super) bare: bool,
    /// With a wrong checksum of its IPv4 header.
    pub(super) bad_csum: bool,
}

/// What the options say.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) command: Vec<String>,
    pub(super) versions: VersionSet,
    pub(super) formats: Formats,
    pub(super) packet_in: Option<PacketInFormat>,
    pub(super) timeout: Option<Duration>,
    pub(super) verbosity: u8,
    pub(super) strict: bool,
    pub(super) readd: bool,
    pub(super) timestamp: bool,
    pub(super) read_only: bool,
    pub(super) bundle: bool,
    /// `mod-group` adds a group that is not there.
    pub(super) may_create: bool,
    /// `--names`, `--no-names`, or neither.
    pub(super) names: Option<bool>,
    pub(super) stats: bool,
    pub(super) raw: bool,
    pub(super) compose: Compose,
    pub(super) criteria: Vec<Criterion>,
    pub(super) daemon: DaemonOptions,
}

/// Why there is nothing to do, and how to end.
pub(super) enum Early {
    Print(String),
    Fail(String),
    /// Option errors have the program as it was called in front.
    Usage(String),
}

#[derive(Clone, Copy, PartialEq)]
enum Id {
    Timeout,
    Strict,
    Readd,
    FlowFormat,
    PacketInFormat,
    More,
    Timestamp,
    Sort,
    Rsort,
    Names,
    NoNames,
    Stats,
    NoStats,
    Help,
    Option,
    Bundle,
    Color,
    MayCreate,
    Pcap,
    Bare,
    BadCsum,
    Raw,
    ReadOnly,
    Version,
    Protocols,
    Log(LogOption),
    Tls(TlsOption),
    Daemon(DaemonOption),
}

fn table() -> Vec<Opt<Id>> {
    let mut options = vec![
        Opt::required("timeout", Some('t'), Id::Timeout),
        Opt::flag("strict", None, Id::Strict),
        Opt::flag("readd", None, Id::Readd),
        Opt::required("flow-format", Some('F'), Id::FlowFormat),
        Opt::required("packet-in-format", Some('P'), Id::PacketInFormat),
        Opt::flag("more", Some('m'), Id::More),
        Opt::flag("timestamp", None, Id::Timestamp),
        Opt::optional("sort", None, Id::Sort),
        Opt::optional("rsort", None, Id::Rsort),
        Opt::flag("names", None, Id::Names),
        Opt::flag("no-names", None, Id::NoNames),
        Opt::flag("stats", None, Id::Stats),
        Opt::flag("no-stats", None, Id::NoStats),
        Opt::flag("help", Some('h'), Id::Help),
        Opt::flag("option", Some('o'), Id::Option),
        Opt::flag("bundle", None, Id::Bundle),
        Opt::optional("color", None, Id::Color),
        Opt::flag("may-create", None, Id::MayCreate),
        Opt::flag("pcap", None, Id::Pcap),
        Opt::flag("bare", None, Id::Bare),
        Opt::flag("bad-csum", None, Id::BadCsum),
        Opt::flag("raw", None, Id::Raw),
        Opt::flag("read-only", None, Id::ReadOnly),
        Opt::flag("version", Some('V'), Id::Version),
        Opt::required("protocols", Some('O'), Id::Protocols),
    ];
    options.extend(DAEMON_OPTIONS.map(|option| option.map(Id::Daemon)));
    options.extend(LOG_OPTIONS.map(|option| option.map(Id::Log)));
    options.extend(TLS_OPTIONS.map(|option| option.map(Id::Tls)));
    options
}

/// Reads the options.
pub(super) fn parse(
    program: &str,
    args: &[String],
    logger: &Logger,
    dirs: &Dirs,
) -> Result<(Settings, TlsConfig), Early> {
    let options = table();
    let mut tls = TlsConfig::default();
    let mut settings = Settings {
        command: Vec::new(),
        versions: VersionSet::only(Version::V10),
        formats: Formats::ANY,
        packet_in: None,
        timeout: None,
        verbosity: 0,
        strict: false,
        readd: false,
        timestamp: false,
        read_only: false,
        bundle: false,
        may_create: false,
        names: None,
        stats: true,
        raw: false,
        compose: Compose::default(),
        criteria: Vec::new(),
        daemon: DaemonOptions::default(),
    };
    let mut pass = Getopt::new(args, &options, Order::Permute);
    loop {
        let next = pass
            .next()
            .map_err(|error| Early::Usage(format!("{}: {error}", pass.program())))?;
        let Some((id, value)) = next else { break };
        match id {
            Id::Help => return Err(Early::Print(usage(program, dirs))),
            Id::Version => {
                let text = version_text(program) + "\nOpenFlow versions 0x1:0x6\n";
                return Err(Early::Print(text));
            }
            Id::Option => return Err(Early::Print(crate::options::list_options(&options))),
            Id::Log(option) => option.apply(value, logger, dirs).map_err(Early::Fail)?,
            Id::Tls(option) => option.apply(value, &mut tls).map_err(Early::Fail)?,
            Id::Daemon(option) => settings
                .daemon
                .apply(option, value, program, dirs)
                .map_err(Early::Fail)?,
            id => settings.apply(id, value).map_err(Early::Fail)?,
        }
    }
    settings.command = pass.into_operands();
    settings.finish().map_err(Early::Fail)?;
    Ok((settings, tls))
}

impl Settings {
    fn apply(&mut self, id: Id, value: Option<&str>) -> Result<(), String> {
        let text = value.unwrap_or_default();
        match id {
            Id::Timeout => match text.parse::<u32>() {
                Ok(seconds) if seconds > 0 => {
                    self.timeout = Some(Duration::from_secs(u64::from(seconds)));
                }
                _ => return Err(format!("value {text} on -t or --timeout is invalid")),
            },
            Id::FlowFormat => self.formats = formats_from_names(text)?,
            Id::PacketInFormat => {
                self.packet_in = Some(match text {
                    "standard" | "openflow10" => PacketInFormat::Standard,
                    "nxt_packet_in" | "nxm" => PacketInFormat::Nxt,
                    "nxt_packet_in2" => PacketInFormat::Nxt2,
                    _ => return Err(format!("unknown packet-in format `{text}'")),
                });
            }
            Id::Protocols => {
                let versions = VersionSet::from_names(text);
                let versions = versions
                    .map_err(|name| format!("invalid OpenFlow version \"{name}\" in \"{text}\""))?;
                if versions.is_empty() {
                    return Err(format!("no OpenFlow version in \"{text}\""));
                }
                self.versions = versions;
            }
            Id::Sort | Id::Rsort => {
                let falling = id == Id::Rsort;
                self.add_criterion(falling, value)?;
            }
            Id::Color => match text.to_ascii_lowercase().as_str() {
                "never" | "no" | "none" => {}
                // Off a terminal there is no colour anyway.
                "" | "auto" | "tty" | "if-tty" => {}
                "always" | "yes" | "force" => {
                    return Err("--color=always is not supported yet".to_owned());
                }
                _ => return Err(format!("incorrect value `{text}' for --color")),
            },
            Id::MayCreate => self.may_create = true,
            Id::Pcap => self.compose.pcap = true,
            Id::Bare => self.compose.bare = true,
            Id::BadCsum => self.compose.bad_csum = true,
            _ => self.flag(id),
        }
        Ok(())
    }

    fn flag(&mut self, id: Id) {
        match id {
            Id::Strict => self.strict = true,
            Id::Readd => self.readd = true,
            Id::More => self.verbosity = self.verbosity.saturating_add(1),
            Id::Timestamp => self.timestamp = true,
            Id::Names => self.names = Some(true),
            Id::NoNames => self.names = Some(false),
            Id::Stats => self.stats = true,
            Id::NoStats => self.stats = false,
            Id::Bundle => self.bundle = true,
            Id::Raw => self.raw = true,
            Id::ReadOnly => self.read_only = true,
            _ => {}
        }
    }

    fn add_criterion(&mut self, falling: bool, name: Option<&str>) -> Result<(), String> {
        let field = match name {
            Some(name) if !name.eq_ignore_ascii_case("priority") => {
                let field = Field::by_name(name);
                Some(field.ok_or_else(|| format!("{name}: unknown field name"))?)
            }
            _ => None,
        };
        self.criteria.push(Criterion { field, falling });
        Ok(())
    }

    /// Draws the conclusions from all options together.
    fn finish(&mut self) -> Result<(), String> {
        if !self.criteria.is_empty() {
            self.add_criterion(true, None)?;
        }
        let bundles = VersionSet(0b111_0000);
        if self.bundle {
            if self.versions.intersection(bundles).is_empty() {
                self.versions.insert(Version::V14);
            }
            self.versions = self.versions.intersection(bundles);
        }
        let version_formats = formats_of_all(self.versions);
        if !self.formats.intersects(version_formats) {
            return Err(format!(
                "None of the enabled OpenFlow versions ({}) supports any of the enabled flow \
                 formats ({}).  (Use -O to enable additional OpenFlow versions or -F to enable \
                 additional flow formats.)",
                version_names(self.versions),
                formats_names(self.formats)
            ));
        }
        self.formats &= version_formats;
        let usable = |v: &Version| self.formats.intersects(of_wire::version::formats_of(*v));
        let versions = Version::ALL
            .into_iter()
            .filter(|v| self.versions.contains(*v));
        self.versions = versions.filter(usable).collect();
        Ok(())
    }
}

/// The names of versions with commas between.
pub(super) fn version_names(versions: VersionSet) -> String {
    let known = Version::ALL.into_iter().filter(|v| versions.contains(*v));
    let names: Vec<&str> = known.map(Version::name).collect();
    names.join(", ")
}

const USAGE: &str = include_str!("usage.txt");

const OTHER_USAGE: &str = "
Other options:
  --strict                    use strict match for flow commands
  --read-only                 do not execute read/write commands
  --readd                     replace flows that haven't changed
  -F, --flow-format=FORMAT    force particular flow format
  -P, --packet-in-format=FRMT force particular packet in format
  -m, --more                  be more verbose printing OpenFlow
  --timestamp                 (monitor, snoop) print timestamps
  -t, --timeout=SECS          give up after SECS seconds
  --sort[=field]              sort in ascending order
  --rsort[=field]             sort in descending order
  --names                     show port names instead of numbers
  --no-names                  show port numbers, but not names
  --unixctl=SOCKET            set control socket name
  --color[=always|never|auto] control use of color in output
  -h, --help                  display this help message
  -V, --version               display version information
";

fn usage(program: &str, dirs: &Dirs) -> String {
    let all = version_names(VersionSet::ALL);
    USAGE.replace("{program}", program)
        + &connection_usage("OpenFlow", true, false, false)
        + &daemon_usage(program, dirs)
        + "\nOpenFlow version options:\n  -V, --version           display version information\n  \
           -O, --protocols         set allowed OpenFlow versions\n                          \
           (default: "
        + &all
        + ")\n"
        + &log_usage(program, dirs)
        + OTHER_USAGE
}
