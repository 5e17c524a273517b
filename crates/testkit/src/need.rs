//! What a test needs of the machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To be root.
    Root,
    /// Network namespaces may be made.
    Netns,
    /// `/dev/net/tun` can be opened.
    Tun,
    /// Open vSwitch's own programs are installed.
    DebianOvs,
    /// Python with the package os-ken.
    OsKen,
    /// Python with the package ovs.
    PythonOvs,
    /// The central programs of OVN are installed.
    Ovn,
    /// The long cases were asked for.
    Full,
    /// To run in `cargo xtask vm`, whose kernel has the Open vSwitch module.
    KernelVm,
}

impl Need {
    const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Netns => "netns",
            Self::Tun => "tun",
            Self::DebianOvs => "debian-ovs",
            Self::OsKen => "os-ken",
            Self::PythonOvs => "python-ovs",
            Self::Ovn => "ovn",
            Self::Full => "full",
            Self::KernelVm => "kernel-vm",
        }
    }

    /// Why this machine does not have it, or nothing.
    fn missing(self) -> Option<String> {
        match self {
            Self::Root => (!is_root()).then(|| "not root".into()),
            Self::Netns => {
                let made = Command::new("unshare").args(["--net", "true"]).output();
                let ok = made.is_ok_and(|o| o.status.success());
                (!ok).then(|| "network namespaces cannot be made".into())
            }
            Self::Tun => {
                let tun = Path::new("/dev/net/tun");
                let opened = std::fs::OpenOptions::new().read(true).write(true).open(tun);
                opened.err().map(|e| format!("{}: {e}", tun.display()))
            }
            Self::DebianOvs => {
                let there = Path::new("/usr/sbin/ovs-vswitchd").exists();
                (!there).then(|| "no /usr/sbin/ovs-vswitchd".into())
            }
            Self::OsKen => lacks_python_package("os_ken"),
            Self::PythonOvs => lacks_python_package("ovs.db.idl"),
            Self::Ovn => {
                let northd = ovn_programs().join("bin/ovn-northd");
                (!northd.exists()).then(|| format!("no {}", northd.display()))
            }
            Self::Full => {
                let asked = std::env::var_os("SLUICE_FULL").is_some();
                (!asked).then(|| "long: runs with --full".into())
            }
            Self::KernelVm => {
                let inside = std::env::var_os("SLUICE_KERNEL_VM").is_some();
                (!inside).then(|| "runs in `cargo xtask vm` alone".into())
            }
        }
    }
}

/// The folder in whose `bin` and `share` OVN is: what `SLUICE_OVN` says, or `/usr`.
pub fn ovn_programs() -> PathBuf {
    std::env::var_os("SLUICE_OVN").map_or_else(|| "/usr".into(), PathBuf::from)
}

/// The Python that has the clients which some tests drive.
pub fn python() -> PathBuf {
    std::env::var_os("SLUICE_PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

fn lacks_python_package(name: &str) -> Option<String> {
    let imported = Command::new(python())
        .args(["-c", &format!("import {name}")])
        .output();
    let there = imported.is_ok_and(|o| o.status.success());
    (!there).then(|| format!("no Python package {name}"))
}

/// How often a test with random inputs tries: `usual`, or as many times that as
/// `SLUICE_CASES` says.  `cargo xtask test --full` sets it.
pub fn cases(usual: u32) -> u32 {
    let factor = std::env::var("SLUICE_CASES").ok();
    let factor = factor.and_then(|text| text.parse().ok()).unwrap_or(1);
    usual.saturating_mul(factor)
}

/// Whether the process may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the machine has all that `test` needs.  If not, the reason is written to the
/// file that `SLUICE_SKIP_LOG` names, and the test should return.
///
/// # Panics
/// When something is missing that `SLUICE_REQUIRE` (names with commas) says must be there.
pub fn need(test: &str, needs: &[Need]) -> bool {
    let required = std::env::var("SLUICE_REQUIRE").unwrap_or_default();
    for need in needs {
        let Some(why) = need.missing() else { continue };
        let name = need.name();
        assert!(
            !required.split(',').any(|r| r == name),
            "{test} needs {name}: {why}"
        );
        let line = format!("{test}: needs {name}: {why}\n");
        eprint!("skipped: {line}");
        if let Some(path) = std::env::var_os("SLUICE_SKIP_LOG") {
            let log = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            let written = log.and_then(|mut f| f.write_all(line.as_bytes()));
            assert!(
                written.is_ok(),
                "the list of skipped tests cannot be written: {written:?}"
            );
        }
        return false;
    }
    true
}
