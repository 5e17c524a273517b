//! Installs what some tests need: Open vSwitch's own programs as a second make to talk to,
//! Python's clients in an environment of their own under `target`, and a virtual machine whose
//! kernel has the Open vSwitch module.  What cannot be installed is named, and the tests that
//! need it say that they were skipped.

use std::path::PathBuf;
use std::process::Command;

use crate::{layers, vm};

/// Debian's packages, by a program that each brings.
const PACKAGES: [(&str, &str); 7] = [
    ("/usr/sbin/ovs-vswitchd", "openvswitch-switch"),
    ("/usr/bin/ovn-northd", "ovn-central"),
    ("/usr/bin/unshare", "util-linux"),
    ("/usr/sbin/ethtool", "ethtool"),
    ("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
    ("/usr/bin/busybox", "busybox-static"),
    ("/usr/bin/kmod", "kmod"),
];

/// Python's packages, with the versions that the tests were written against.
const PYTHON_PACKAGES: [&str; 2] = ["ovs==3.7.1", "os-ken==2.11.2"];

/// Where Python's clients are.
fn environment() -> PathBuf {
    layers::root().join("target/python")
}

/// The Python that has the clients, or the system's.
pub(crate) fn python() -> PathBuf {
    let own = environment().join("bin/python3");
    if own.exists() { own } else { "python3".into() }
}

/// Installs what is missing, as far as this machine lets it.
pub(crate) fn install() {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(program, _)| !PathBuf::from(program).exists())
        .map(|(_, package)| *package)
        .collect();
    if !missing.is_empty() {
        attempt("apt-get", &["update", "-qq"]);
        let options = ["install", "-y", "-qq", "--no-install-recommends"];
        attempt("apt-get", &[&options[..], &missing].concat());
    }
    if !python_has_clients() {
        let folder = environment().display().to_string();
        let make = || attempt("python3", &["-m", "venv", &folder]);
        let more = [
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
            "python3-venv",
        ];
        if make() || (attempt("apt-get", &more) && make()) {
            let pip = environment().join("bin/pip").display().to_string();
            attempt(
                &pip,
                &[&["install", "--quiet"][..], &PYTHON_PACKAGES].concat(),
            );
        }
    }
    if let Err(error) = vm::fetch_kernel() {
        println!("xtask: {error}");
    }
}

fn python_has_clients() -> bool {
    let mut command = Command::new(python());
    let output = command.args(["-c", "import ovs.db.idl, os_ken"]).output();
    output.is_ok_and(|o| o.status.success())
}

/// Runs a command and says if it failed.
fn attempt(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("RUNLEVEL", "1");
    match command.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            println!("xtask: {program} {}: {}", args.join(" "), error.trim());
            false
        }
        Err(error) => {
            println!("xtask: {program}: {error}");
            false
        }
    }
}
