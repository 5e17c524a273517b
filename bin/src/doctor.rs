//! `sluice doctor`: which datapaths and features this machine offers, and what is in the
//! way of those that it does not.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use base::Dirs;

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    /// Nothing is in the way, or what is and what to do about it.
    obstacle: Result<String, String>,
    /// Whether the switch is of no use without it.
    needed: bool,
}

/// Prints a line per feature; fails when something that is needed is missing.
pub(crate) fn run() -> ExitCode {
    let findings = [
        Finding {
            what: "privileges",
            obstacle: privileges(),
            needed: true,
        },
        Finding {
            what: "run directory",
            obstacle: run_directory(),
            needed: true,
        },
        Finding {
            what: "userspace datapath (netdev)",
            obstacle: packet_sockets(),
            needed: true,
        },
        Finding {
            what: "internal ports (tap)",
            obstacle: taps(),
            needed: false,
        },
        Finding {
            what: "kernel datapath (system)",
            obstacle: kernel_datapath(),
            needed: false,
        },
        Finding {
            what: "open files",
            obstacle: open_files(),
            needed: false,
        },
    ];
    let mut usable = true;
    for finding in &findings {
        match &finding.obstacle {
            Ok(detail) => println!("ok       {}: {detail}", finding.what),
            Err(obstacle) => {
                usable &= !finding.needed;
                let word = if finding.needed {
                    "missing "
                } else {
                    "without "
                };
                println!("{word} {}: {obstacle}", finding.what);
            }
        }
    }
    if usable {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn privileges() -> Result<String, String> {
    if rustix::process::geteuid().is_root() {
        Ok("root".into())
    } else {
        Err("not root: devices cannot be opened; run as root".into())
    }
}

fn run_directory() -> Result<String, String> {
    let dir = Dirs::from_env().run;
    let shown = dir.display();
    if !dir.is_dir() {
        return match std::fs::create_dir_all(&dir) {
            Ok(()) => Ok(format!("{shown} (made)")),
            Err(error) => {
                let why = base::errno_text(&error);
                Err(format!("{shown}: {why}; set OVS_RUNDIR"))
            }
        };
    }
    rustix::fs::access(&dir, rustix::fs::Access::WRITE_OK)
        .map(|()| shown.to_string())
        .map_err(|error| {
            let why = base::errno_text(&error.into());
            format!("{shown}: {why}; set OVS_RUNDIR")
        })
}

fn packet_sockets() -> Result<String, String> {
    use rustix::net::{AddressFamily, SocketType, socket};
    socket(AddressFamily::PACKET, SocketType::RAW, None)
        .map(|_| "packet sockets with virtio-net headers".to_string())
        .map_err(|error| {
            let why = base::errno_text(&error.into());
            format!("packet sockets: {why} (needs CAP_NET_RAW)")
        })
}

fn taps() -> Result<String, String> {
    let path = Path::new("/dev/net/tun");
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map(|_| path.display().to_string())
        .map_err(|error| format!("{}: {}", path.display(), with_advice(&error, "tun")))
}

/// An error of what module `module` provides, with what to do about it.
fn with_advice(error: &Error, module: &str) -> String {
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => "run as root".to_owned(),
        _ => format!("try: modprobe {module}"),
    };
    format!("{} ({advice})", base::errno_text(error))
}

fn kernel_datapath() -> Result<String, String> {
    match dp_kernel::find_module() {
        Ok(()) => Ok("module openvswitch; bridges without a datapath_type get this one".into()),
        Err(error) => Err(format!(
            "module openvswitch: {}; bridges get the userspace datapath",
            with_advice(&error, "openvswitch")
        )),
    }
}

fn open_files() -> Result<String, String> {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current;
    match limit {
        Some(files) if files < 4096 => Err(format!(
            "at most {files}: about 3 per bridge and 1 per port"
        )),
        Some(files) => Ok(format!("at most {files}")),
        None => Ok("no limit".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_reason() {
        for (number, text) in [
            (1, "Operation not permitted (run as root)"),
            (13, "Permission denied (run as root)"),
            (2, "No such file or directory (try: modprobe tun)"),
            (19, "No such device (try: modprobe tun)"),
        ] {
            let error = Error::from_raw_os_error(number);
            assert_eq!(with_advice(&error, "tun"), text);
        }
    }
}
