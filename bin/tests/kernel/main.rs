//! Our daemons with the kernel's datapath, in `cargo xtask vm`.

mod conntrack;
mod forwarding;
mod restart;
mod scale;
mod soak;
mod texts;
mod tool;

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::net::Host;
use testkit::{Need, Running, Stack, need};

/// Whether a test cannot run here.
fn skip(test: &str) -> bool {
    !need(test, &[Need::KernelVm])
}

/// Our programs, in a namespace of their own, with a bridge `br0` of the kernel's datapath.
fn start(settings: &[&str]) -> Running {
    let folder = Path::new(env!("CARGO_BIN_EXE_ovs-vswitchd"))
        .parent()
        .unwrap_or_else(|| Path::new("/"));
    let stack = Stack::ours(folder).with_kernel();
    stack.start(settings).unwrap()
}

fn vsctl(running: &Running, args: &[&str]) -> String {
    let args = [&["--timeout=60"], args].concat();
    running
        .tool("ovs-vsctl", &args)
        .unwrap_or_else(|e| panic!("{e}\n{}", running.report()))
}

/// A host whose cable is a port of `br0` with these settings.
fn host(running: &Running, n: u8, settings: &[&str]) -> Host {
    let (name, ip) = (format!("host{n}"), Ipv4Addr::new(10, 1, 1, n));
    let host = Host::new(&running.netns, &name, ip).unwrap();
    vsctl(running, &[&["add-port", "br0", &name], settings].concat());
    host
}

/// How many of `count` echo requests are answered.
fn answered(one: &Host, two: &Host, count: u16) -> usize {
    let interval = Duration::from_millis(20);
    one.ping(two.ip, count, interval).unwrap().len()
}

/// Runs a program in the daemons' namespace.
fn inside(running: &Running, program: &str, args: &[&str]) -> String {
    let run = || Command::new(program).args(args).output();
    let output = running.netns.run(run).unwrap().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Ports of the datapath with their numbers, as Debian's tool lists them.
fn datapath_ports(running: &Running) -> Vec<String> {
    let text = inside(running, "/usr/bin/ovs-dpctl", &["show"]);
    let lines = text.lines().map(str::trim);
    lines
        .filter(|l| l.starts_with("port "))
        .map(String::from)
        .collect()
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..300 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}");
}
