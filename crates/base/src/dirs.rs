//! The directories of an installation, which environment variables may move.

use std::path::{Path, PathBuf};

/// Where a daemon or tool finds and keeps its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// Sockets and pidfiles: `OVS_RUNDIR`, or `/var/run/openvswitch`.
    pub run: PathBuf,
    /// Log files: `OVS_LOGDIR`, or `/var/log/openvswitch`.
    pub log: PathBuf,
    /// Databases: `OVS_DBDIR`, or `/etc/openvswitch`.
    pub db: PathBuf,
    /// Configuration: `OVS_SYSCONFDIR`, or `/etc`.
    pub sysconf: PathBuf,
    /// Schemas and scripts: `OVS_PKGDATADIR`, or `/usr/share/openvswitch`.
    pub pkgdata: PathBuf,
    /// Programs: `OVS_BINDIR`, or `/usr/bin`.
    pub bin: PathBuf,
}

impl Dirs {
    /// The directories that the environment gives, Debian's where it says nothing.
    pub fn from_env() -> Self {
        Self::with(|name| std::env::var_os(name).map(PathBuf::from))
    }

    /// The directories that `variable` gives for the names of environment variables.
    pub fn with(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let dir = |name, default: &str| variable(name).unwrap_or_else(|| default.into());
        let sysconf = dir("OVS_SYSCONFDIR", "/etc");
        // A moved configuration directory takes the databases along.
        let db = variable("OVS_DBDIR").unwrap_or_else(|| sysconf.join("openvswitch"));
        Self {
            run: dir("OVS_RUNDIR", "/var/run/openvswitch"),
            log: dir("OVS_LOGDIR", "/var/log/openvswitch"),
            db,
            sysconf,
            pkgdata: dir("OVS_PKGDATADIR", "/usr/share/openvswitch"),
            bin: dir("OVS_BINDIR", "/usr/bin"),
        }
    }

    /// The path of `name`, which is relative to the run directory unless it is absolute.
    pub fn in_run(&self, name: impl AsRef<Path>) -> PathBuf {
        self.run.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_variables() {
        let dirs = Dirs::with(|name| (name == "OVS_SYSCONFDIR").then(|| "/x".into()));
        assert_eq!(dirs.db, Path::new("/x/openvswitch"));
        assert_eq!(
            dirs.in_run("a.pid"),
            Path::new("/var/run/openvswitch/a.pid")
        );
        assert_eq!(dirs.in_run("/a"), Path::new("/a"));
    }
}
