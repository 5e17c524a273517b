//! `cargo xtask demo`: two hosts talk through a bridge of the userspace datapath, and what
//! an operator would look at is shown.  Everything happens in network namespaces of its
//! own, which the kernel removes with the last process that uses them.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sys::netns::NetNs;
use sys::signal::SignalFd;
use testkit::Scratch;
use testkit::net::{Host, quiet_netns};

use crate::layers;

/// How long the bulk transfer lasts.
const BULK: Duration = Duration::from_secs(3);
/// How many echo requests are sent.
const PINGS: u16 = 100;

/// Runs the demonstration from building to cleaning up.
pub(crate) fn run() -> Result<(), String> {
    preflight()?;
    step("building the release programs");
    build()?;
    let scratch = Scratch::new();
    let netns = quiet_netns().map_err(|e| format!("network namespace: {e}"))?;
    step("starting the switch with its embedded database (sluice up)");
    let signals = SignalFd::new(&[Signal::INT, Signal::TERM]).map_err(|e| e.to_string())?;
    let switch = Switch::start(&scratch, &netns)?;
    clean_up_when_interrupted(signals, switch.pid(), scratch.path().to_path_buf());
    let result = show(&switch, &netns);
    step("cleaning up");
    drop(switch);
    result
}

/// On Ctrl-C: ends the switch, whose namespaces then go by themselves, removes the scratch
/// folder and ends the process.
fn clean_up_when_interrupted(signals: SignalFd, switch: Option<Pid>, scratch: PathBuf) {
    std::thread::spawn(move || {
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], None);
        eprintln!("[demo] interrupted: cleaning up");
        if let Some(pid) = switch {
            let _ = kill_process(pid, Signal::TERM);
            for _ in 0..60 {
                // Gone, or another thread has collected it already.
                if !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let _ = std::fs::remove_dir_all(&scratch);
        std::process::exit(130);
    });
}

/// What is missing gets one line each time.
fn preflight() -> Result<(), String> {
    if !testkit::is_root() {
        return Err("demo: must run as root (it makes network namespaces)".into());
    }
    let tun = Path::new("/dev/net/tun");
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(tun);
    opened
        .map(drop)
        .map_err(|e| format!("demo: /dev/net/tun: {e} (modprobe tun)"))
}

fn step(what: &str) {
    println!("[demo] {what}");
}

/// Builds the release programs.
pub(crate) fn build() -> Result<(), String> {
    let status = layers::cargo()
        .args(["build", "--release", "--quiet", "-p", "sluice"])
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("the programs do not build".into())
    }
}

/// Where cargo puts release programs.
pub(crate) fn release() -> PathBuf {
    layers::target().join("release")
}

/// A running switch, ended when it is dropped.
struct Switch {
    child: Child,
    folder: PathBuf,
}

impl Switch {
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn start(scratch: &Scratch, netns: &NetNs) -> Result<Self, String> {
        let folder = scratch.path().to_path_buf();
        let log = std::fs::File::create(scratch.file("switch.log")).map_err(|e| e.to_string())?;
        let error_log = log.try_clone().map_err(|e| e.to_string())?;
        let mut command = Command::new(release().join("sluice"));
        command.args(["up", "--db"]).arg(scratch.file("conf.db"));
        command.stdin(Stdio::null()).stdout(log).stderr(error_log);
        environment(&mut command, &folder);
        let spawned = netns
            .run(|| command.spawn())
            .map_err(|e| format!("namespace: {e}"))?;
        let child = spawned.map_err(|e| format!("sluice: {e}"))?;
        let mut switch = Self { child, folder };
        switch.wait_until_it_answers()?;
        Ok(switch)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        for _ in 0..100 {
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = std::fs::read_to_string(self.folder.join("switch.log"));
                return Err(format!(
                    "sluice ended: {status}\n{}",
                    log.unwrap_or_default()
                ));
            }
            if self.folder.join("db.sock").exists() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("sluice does not answer".into())
    }

    /// Runs one of the tools and returns what it printed.
    fn tool(&self, name: &str, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(release().join(name));
        environment(&mut command, &self.folder);
        let output = command
            .args(args)
            .output()
            .map_err(|e| format!("{name}: {e}"))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{name} {}: {}", args.join(" "), error.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::TERM);
        }
        for _ in 0..60 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn environment(command: &mut Command, folder: &Path) {
    for name in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
        command.env(name, folder);
    }
}

/// The demonstration itself.
fn show(switch: &Switch, netns: &NetNs) -> Result<(), String> {
    step("adding bridge br0 with two ports, and a host in a namespace behind each");
    let host = |n: u8| Host::new(netns, &format!("host{n}"), Ipv4Addr::new(10, 1, 1, n));
    let [one, two] = [host(1), host(2)].map(|h| h.map_err(|e| format!("host: {e}")));
    let (one, two) = (one?, two?);
    let add = |port| switch.tool("ovs-vsctl", &["--timeout=10", "add-port", "br0", port]);
    let netdev = ["--", "set", "bridge", "br0", "datapath_type=netdev"];
    switch.tool(
        "ovs-vsctl",
        &[&["--timeout=10", "add-br", "br0"][..], &netdev].concat(),
    )?;
    add(&one.cable)?;
    add(&two.cable)?;
    print(&switch.tool("ovs-vsctl", &["show"])?);

    step(&format!(
        "pinging {} from {}, {PINGS} times",
        two.ip, one.ip
    ));
    one.ping(two.ip, 2, Duration::ZERO)
        .map_err(|e| format!("ping: {e}"))?;
    let mut times = one
        .ping(two.ip, PINGS, Duration::from_millis(2))
        .map_err(|e| format!("ping: {e}"))?;
    let lost = usize::from(PINGS) - times.len();
    times.sort();
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times
            .get(index.min(times.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    };
    if times.is_empty() {
        return Err("no ping was answered".into());
    }
    println!("    {} answered, {lost} lost", times.len());
    println!(
        "    round trip: median {:?}, 99th percentile {:?}",
        at(0.5),
        at(0.99)
    );

    step(&format!("moving bulk TCP data for {} s", BULK.as_secs()));
    let rate = one.bulk_tcp(&two, BULK).map_err(|e| format!("TCP: {e}"))?;
    println!("    {:.2} Gbit/s", rate / 1e9);

    step("OpenFlow rules (ovs-ofctl dump-flows br0)");
    print(&switch.tool("ovs-ofctl", &["dump-flows", "br0"])?);
    step("megaflows (ovs-appctl dpctl/dump-flows)");
    print(&switch.tool("ovs-appctl", &["dpctl/dump-flows"])?);
    if lost > 0 {
        Err(format!("{lost} pings were lost"))
    } else {
        Ok(())
    }
}

fn print(text: &str) {
    for line in text.lines() {
        println!("    {line}");
    }
}
