//! Levels and destinations of log messages.

use std::fmt;

/// How grave a message is; as a threshold, the least grave that is still logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As a threshold: nothing is logged.
    Off,
    /// A failure that ends the process.
    Emer,
    /// A high-level operation or a subsystem failed.
    Err,
    /// A low-level operation failed; higher levels may recover.
    Warn,
    /// What is of use when a problem is looked into later.
    Info,
    /// Details for those who know the system well.
    Dbg,
}

impl Level {
    const NAMES: [(&'static str, Self); 6] = [
        ("OFF", Self::Off),
        ("EMER", Self::Emer),
        ("ERR", Self::Err),
        ("WARN", Self::Warn),
        ("INFO", Self::Info),
        ("DBG", Self::Dbg),
    ];

    /// The level called `name`, in letters of any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        Some(names.find(|n| n.0.eq_ignore_ascii_case(name))?.1)
    }

    /// The name as log lines show it.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// The severity of RFC 5424, section 6.2.1.
    pub(crate) fn severity(self) -> u8 {
        match self {
            Self::Off | Self::Emer => 1,
            Self::Err => 3,
            Self::Warn => 4,
            Self::Info => 5,
            Self::Dbg => 7,
        }
    }

    pub(crate) fn filter(self) -> log::LevelFilter {
        match self {
            Self::Off | Self::Emer => log::LevelFilter::Off,
            Self::Err => log::LevelFilter::Error,
            Self::Warn => log::LevelFilter::Warn,
            Self::Info => log::LevelFilter::Info,
            Self::Dbg => log::LevelFilter::Trace,
        }
    }
}

impl From<log::Level> for Level {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Error => Self::Err,
            log::Level::Warn => Self::Warn,
            log::Level::Info => Self::Info,
            log::Level::Debug | log::Level::Trace => Self::Dbg,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The system log.
    Syslog,
    /// Standard error.
    Console,
    /// The log file, if one is open.
    File,
}

impl Destination {
    /// All destinations, in the order of `vlog/list-pattern`.
    pub const ALL: [Self; 3] = [Self::Syslog, Self::Console, Self::File];

    /// The name in capitals.
    pub fn name(self) -> &'static str {
        ["SYSLOG", "CONSOLE", "FILE"][self as usize]
    }

    /// The destination called `name`, in letters of any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|d| d.name().eq_ignore_ascii_case(name))
    }
}
