//! The tests: each does one thing to a switch with a few ports and reads its figures.

use std::process::{Command, Stdio};
use std::time::Duration;

use base::{Clock, Instant};
use testkit::{Running, Stack};

use super::meter::{Switches, netlink_sockets, received};
use super::traffic::{Addresses, Flood, Outcome, Probe};

/// What a test found.
pub(super) type Found = Vec<(&'static str, f64)>;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Probes of a row.
    pub(super) probes: u32,
    /// How long a flood lasts before and while figures are read.
    pub(super) flood: Duration,
    /// How long an idle switch is watched.
    pub(super) idle: Duration,
    /// Ports of the tests with many.
    pub(super) ports: usize,
}

impl Size {
    pub(super) const FULL: Self = Self {
        probes: 1000,
        flood: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        ports: 1000,
    };
    pub(super) const SHORT: Self = Self {
        probes: 200,
        flood: Duration::from_secs(4),
        idle: Duration::from_secs(10),
        ports: 100,
    };
}

/// Cables of the small tests.
const CABLES: usize = 8;

/// Devices besides that nothing is sent to.
const DUMMIES: usize = 40;

/// Time between probes, so that each finds the switch asleep.
const APART: Duration = Duration::from_millis(5);

/// A flood's time before anything is measured: what it makes the switch change has happened.
const LEAD: Duration = Duration::from_secs(5);

/// A switch that is measured.
pub(super) struct Bench {
    pub(super) running: Running,
    /// The far ends of the cables, from which packets are sent.
    pub(super) far: Vec<String>,
    pub(super) size: Size,
    /// The make can be told how to spread upcalls.
    pub(super) has_dispatch: bool,
}

/// A test of a switch with a few ports.
pub(super) struct Test {
    pub(super) name: &'static str,
    pub(super) run: fn(&Bench) -> Result<Found, String>,
}

/// All of them, in the order in which they run.
pub(super) const TESTS: &[Test] = &[
    Test {
        name: "enqueue",
        run: enqueue,
    },
    Test {
        name: "lone",
        run: lone,
    },
    Test {
        name: "round-trip",
        run: round_trip,
    },
    Test {
        name: "flood",
        run: flood,
    },
    Test {
        name: "same-cpu",
        run: same_cpu,
    },
    Test {
        name: "flooded-port",
        run: flooded_port,
    },
    Test {
        name: "sockets",
        run: sockets,
    },
];

/// Makes links in the switch's namespace: lines for `ip -batch`.
pub(super) fn make_links(running: &Running, lines: &str) -> Result<(), String> {
    let file = running.folder.join("links");
    std::fs::write(&file, lines).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut ip = Command::new("ip");
    ip.arg("-batch").arg(&file).stdin(Stdio::null());
    let output = running.netns.run(|| ip.output()).and_then(|o| o);
    let output = output.map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "ip: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

impl Bench {
    /// Starts a switch with the ports of the small tests.
    pub(super) fn start(stack: &Stack, size: Size, has_dispatch: bool) -> Result<Self, String> {
        let running = stack.start(&[])?;
        let mut links = String::from("link set br0 up\n");
        let mut args: Vec<String> = ["--timeout=300", "set-fail-mode", "br0", "secure"]
            .map(String::from)
            .to_vec();
        let mut add =
            |name: String| args.extend(["--".into(), "add-port".into(), "br0".into(), name]);
        let mut far = Vec::new();
        for n in 0..CABLES {
            links.push_str(&format!(
                "link add p{n} type veth peer name q{n}\nlink set p{n} up\nlink set q{n} up\n"
            ));
            add(format!("p{n}"));
            far.push(format!("q{n}"));
        }
        for n in 0..DUMMIES {
            links.push_str(&format!("link add d{n} type dummy\nlink set d{n} up\n"));
            add(format!("d{n}"));
        }
        make_links(&running, &links)?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        running.tool("ovs-vsctl", &args)?;
        let bench = Self {
            running,
            far,
            size,
            has_dispatch,
        };
        bench.settle();
        Ok(bench)
    }

    fn settle(&self) {
        std::thread::sleep(Duration::from_secs(2));
    }

    /// Has the switch do with all packets what `actions` say, with or without megaflows, and
    /// forget what it knew.
    fn prepare(&self, actions: &str, megaflows: bool) -> Result<(), String> {
        let wanted = if megaflows {
            "upcall/enable-megaflows"
        } else {
            "upcall/disable-megaflows"
        };
        self.running.appctl(&[wanted])?;
        self.running.tool("ovs-ofctl", &["del-flows", "br0"])?;
        self.running.tool(
            "ovs-ofctl",
            &["add-flow", "br0", &format!("actions={actions}")],
        )?;
        self.running.appctl(&["dpctl/del-flows"])?;
        self.settle();
        Ok(())
    }

    fn probe(
        &self,
        from: &[String],
        count: u32,
        addresses: Addresses,
        cpu: Option<usize>,
    ) -> Result<Outcome, String> {
        let probe = Probe {
            netns: &self.running.netns,
            to: "br0",
            from,
            count,
            interval: APART,
            addresses,
            cpu,
        };
        probe.run()
    }

    fn flood(&self, from: &[String], addresses: Addresses, cpu: usize) -> Result<Flood, String> {
        Flood::start(&self.running.netns, from, addresses, Some(cpu))
    }

    /// The share of a processor that the switch uses from two seconds after now.
    fn cpu_after(&self) -> Result<f64, String> {
        const WINDOW: Duration = Duration::from_secs(3);
        std::thread::sleep(Duration::from_secs(2));
        let before = self.running.switch_cpu()?;
        std::thread::sleep(WINDOW);
        Ok((self.running.switch_cpu()? - before) / WINDOW.as_secs_f64() * 100.0)
    }
}

/// Adds what is there: a test that lost all its probes has no times.
fn push(found: &mut Found, name: &'static str, value: Option<f64>) {
    found.extend(value.map(|v| (name, v)));
}

/// Published set: a copy goes to the switch and the kernel forwards by itself, so that what is
/// measured is what queueing the copy and waking its reader costs.
fn enqueue(bench: &Bench) -> Result<Found, String> {
    bench.prepare("CONTROLLER,LOCAL", true)?;
    let (first, others) = bench.far.split_at(1);
    let (count, fixed) = (bench.size.probes, Addresses::Fixed);
    let mut found = Found::new();
    let one = bench.probe(first, count, fixed, None)?;
    push(&mut found, "enqueue-one-port", one.mean());
    let all = bench.probe(&bench.far, count * 2, fixed, None)?;
    push(&mut found, "enqueue-all-ports", all.mean());
    push(&mut found, "enqueue-deviation", all.deviation());

    let flood = bench.flood(first, fixed, 0)?;
    std::thread::sleep(Duration::from_secs(1));
    let flooded = bench.probe(first, count, fixed, None)?;
    flood.stop()?;
    found.push(("enqueue-flooded-loss", flooded.loss()));

    let flood = bench.flood(others, fixed, 0)?;
    std::thread::sleep(Duration::from_secs(1));
    let idle = bench.probe(first, count, fixed, None)?;
    flood.stop()?;
    found.push(("enqueue-idle-loss", idle.loss()));
    push(&mut found, "enqueue-idle-mean", idle.mean());
    found.push(("enqueue-cpu-after", bench.cpu_after()?));
    Ok(found)
}

/// How often threads wake for an upcall that comes alone.
fn lone(bench: &Bench) -> Result<Found, String> {
    bench.prepare("LOCAL", false)?;
    let count = bench.size.probes;
    let before = Switches::of(&bench.running)?;
    let outcome = bench.probe(&bench.far[..1], count, Addresses::New, None)?;
    let after = Switches::of(&bench.running)?;
    if outcome.lost() == count {
        return Err("no packet came through".into());
    }
    // All were sent and woke somebody, whether they came back or not.
    let per = |n: u64, b: u64| n.saturating_sub(b) as f64 / f64::from(outcome.sent.max(1));
    Ok(vec![
        (
            "lone-handler-wakeups",
            per(after.named("handler"), before.named("handler")),
        ),
        ("lone-all-switches", per(after.all(), before.all())),
    ])
}

/// The way through the switch and back: no two packets are of one flow.
fn round_trip(bench: &Bench) -> Result<Found, String> {
    bench.prepare("LOCAL", false)?;
    let mut found = Found::new();
    let one = bench.probe(&bench.far[..1], bench.size.probes, Addresses::New, None)?;
    push(&mut found, "round-trip-mean", one.mean());
    push(&mut found, "round-trip-p99", one.p99());
    found.push(("round-trip-loss", one.loss()));
    let all = bench.probe(&bench.far, bench.size.probes * 2, Addresses::New, None)?;
    push(&mut found, "round-trip-deviation", all.deviation());
    Ok(found)
}

/// What is read at the begin and the end of a window.
struct Window {
    clock: Clock,
    cpu: f64,
    switches: Switches,
    received: u64,
}

/// What happened in a window.
struct Passed {
    seconds: f64,
    served: f64,
    cpu: f64,
    wakeups: f64,
}

impl Window {
    fn open(bench: &Bench) -> Result<Self, String> {
        Ok(Self {
            clock: Clock::new(),
            cpu: bench.running.switch_cpu()?,
            switches: Switches::of(&bench.running)?,
            received: received(&bench.running.netns, "br0")?,
        })
    }

    fn close(self, bench: &Bench) -> Result<Passed, String> {
        let served = received(&bench.running.netns, "br0")? - self.received;
        let switches = Switches::of(&bench.running)?;
        let woken = switches
            .named("handler")
            .saturating_sub(self.switches.named("handler"));
        Ok(Passed {
            seconds: self.clock.real().since(Instant::ZERO).as_secs_f64(),
            served: served as f64,
            cpu: bench.running.switch_cpu()? - self.cpu,
            wakeups: woken as f64,
        })
    }
}

impl Passed {
    fn rate(&self) -> f64 {
        self.served / self.seconds
    }

    fn cpu_per_10k(&self) -> Option<f64> {
        (self.served > 0.0).then(|| self.cpu / self.served * 1e4)
    }
}

/// All ports but one flood from the first processor, each packet an upcall; the other port
/// sends probes from the second.
fn flood(bench: &Bench) -> Result<Found, String> {
    bench.prepare("LOCAL", false)?;
    let (first, others) = bench.far.split_at(1);
    let begin = Clock::new();
    let flood = bench.flood(others, Addresses::New, 0)?;
    std::thread::sleep(LEAD);
    let window = Window::open(bench)?;
    std::thread::sleep(bench.size.flood);
    let passed = window.close(bench)?;
    let idle = bench.probe(first, bench.size.probes, Addresses::New, Some(1))?;
    let sent = flood.stop()? as f64;
    let seconds = begin.real().since(Instant::ZERO).as_secs_f64();
    let after = bench.cpu_after()?;
    let mut found = vec![
        ("flood-served", passed.rate()),
        ("flood-sent", sent / seconds),
        ("flood-cpu-after", after),
        ("flood-idle-loss", idle.loss()),
    ];
    let wakeups = (passed.served > 0.0).then(|| passed.wakeups / passed.served);
    push(&mut found, "flood-handler-wakeups", wakeups);
    push(&mut found, "flood-cpu", passed.cpu_per_10k());
    push(&mut found, "flood-idle-mean", idle.mean());
    push(&mut found, "flood-idle-p99", idle.p99());
    Ok(found)
}

/// The same with flood and probes from one processor, so that a socket for each keeps nothing
/// apart; measured from five seconds into the flood.
fn same_cpu(bench: &Bench) -> Result<Found, String> {
    bench.prepare("LOCAL", false)?;
    let (first, others) = bench.far.split_at(1);
    let unloaded = bench.probe(first, bench.size.probes, Addresses::New, Some(0))?;
    let flood = bench.flood(others, Addresses::New, 0)?;
    std::thread::sleep(LEAD);
    let idle = bench.probe(first, bench.size.probes, Addresses::New, Some(0))?;
    flood.stop()?;
    let mut found = vec![("same-cpu-idle-loss", idle.loss())];
    push(&mut found, "same-cpu-unloaded-p99", unloaded.p99());
    push(&mut found, "same-cpu-idle-p99", idle.p99());
    let slower = unloaded.p99().zip(idle.p99()).map(|(u, i)| i / u);
    push(&mut found, "same-cpu-idle-slower", slower);
    Ok(found)
}

/// One port floods, each packet an upcall.
fn flooded_port(bench: &Bench) -> Result<Found, String> {
    bench.prepare("LOCAL", false)?;
    let flood = bench.flood(&bench.far[..1], Addresses::New, 0)?;
    std::thread::sleep(LEAD);
    let window = Window::open(bench)?;
    std::thread::sleep(bench.size.flood);
    let passed = window.close(bench)?;
    flood.stop()?;
    let mut found = vec![("flooded-port-served", passed.rate())];
    push(&mut found, "flooded-port-cpu", passed.cpu_per_10k());
    Ok(found)
}

/// Netlink sockets in the usual mode, and with one for each port.
fn sockets(bench: &Bench) -> Result<Found, String> {
    let (usual, per_port) = sockets_in_both_modes(bench)?;
    let mut found = vec![("sockets", usual)];
    push(&mut found, "sockets-per-port", per_port);
    Ok(found)
}

/// Netlink sockets in the usual mode, and with one for each port if the make can be told so.
pub(super) fn sockets_in_both_modes(bench: &Bench) -> Result<(f64, Option<f64>), String> {
    let running = &bench.running;
    if !bench.has_dispatch {
        return Ok((netlink_sockets(running)? as f64, None));
    }
    let count = |mode: &str| {
        let setting = format!("other_config:upcall-dispatch={mode}");
        running.tool(
            "ovs-vsctl",
            &["--timeout=60", "set", "open_vswitch", ".", &setting],
        )?;
        // Sockets that are not needed any more are read for a while.
        std::thread::sleep(Duration::from_secs(3));
        netlink_sockets(running).map(|n| n as f64)
    };
    let (per_cpu, per_port) = (count("per-cpu")?, count("per-port")?);
    count("auto")?;
    Ok((per_cpu, Some(per_port)))
}
