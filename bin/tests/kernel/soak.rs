//! Floods and changes of the configuration by turns, again and again: nothing grows, leaks or gets
//! lost.  `SLUICE_SOAK_MINUTES` says for how long; without it, a few rounds.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use testkit::Running;
use testkit::net::{Host, cable};

use crate::{answered, datapath_ports, host, inside, skip, start, until, vsctl};

/// Rounds without a wish for more.
const ROUNDS: usize = 2;
/// Rounds after which memory has what it needs.
const SETTLED: usize = 20;
/// Ports that come and go in each round.
const PORTS: usize = 6;
/// Packets of a flood, each of a flow of its own.
const FLOOD: u16 = 2000;
/// Rules that are replaced.
const RULES: u16 = 200;
/// What memory may vary by, whatever it was, in MiB: allocators keep some.
const SLACK: f64 = 3.0;

/// What must not grow.
#[derive(Clone, Copy, Debug)]
struct Usage {
    memory: f64,
    descriptors: usize,
    flows: usize,
}

struct Soak {
    running: Running,
    one: Host,
    two: Host,
}

impl Soak {
    fn new() -> Self {
        let running = start(&[]);
        let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
        // Each packet is a flow, so that each is handed over.
        running.appctl(&["upcall/disable-megaflows"]).unwrap();
        Self { running, one, two }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{}", self.running.report());
    }

    /// Ports that the datapath should have besides, and no others.
    fn has_ports(&self, more: &[String]) -> bool {
        let usual = ["ovs-system", "br0", "host1", "host2"].map(String::from);
        let wanted: BTreeSet<String> = usual.iter().chain(more).cloned().collect();
        let names = |line: &String| line.split(' ').nth(2).map(String::from);
        let there: BTreeSet<String> = datapath_ports(&self.running)
            .iter()
            .filter_map(names)
            .collect();
        wanted == there
    }

    fn flood(&self) {
        let send = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            for port in 0..FLOOD {
                // Answers that nobody listens come back as errors.
                let _ = socket.send_to(&[0; 18], SocketAddr::from((self.two.ip, 10_000 + port)));
            }
            std::io::Result::Ok(())
        };
        self.one.netns.run(send).unwrap().unwrap();
    }

    /// Rules that drop every second of some ports, beginning anew in each round.
    fn replace_rules(&self, round: usize) {
        let first = 10_000 + (round % 7) as u16 * 100;
        let drop = |n: u16| format!("priority=10,udp,tp_dst={} actions=drop\n", first + 2 * n);
        let mut rules: String = (0..RULES).map(drop).collect();
        rules += "priority=0 actions=normal\n";
        let file = self.running.folder.join("rules");
        std::fs::write(&file, rules).unwrap();
        let file = file.display().to_string();
        self.running
            .tool("ovs-ofctl", &["replace-flows", "br0", &file])
            .unwrap();
    }

    fn add_ports(&self, names: &[String]) {
        let mut args = Vec::new();
        for name in names {
            cable(&self.running.netns, [name, &format!("{name}x")]).unwrap();
            args.extend(["--", "add-port", "br0", name]);
        }
        vsctl(&self.running, &args[1..]);
    }

    fn rename(&self, old: &str, new: &str) {
        inside(&self.running, "/sbin/ip", &["link", "set", old, "down"]);
        inside(
            &self.running,
            "/sbin/ip",
            &["link", "set", old, "name", new],
        );
        inside(&self.running, "/sbin/ip", &["link", "set", new, "up"]);
        let change = ["del-port", "br0", old, "--", "add-port", "br0", new];
        vsctl(&self.running, &change);
    }

    fn round(&self, round: usize) {
        let mut names: Vec<String> = (0..PORTS)
            .map(|n| format!("p{}", round * PORTS + n))
            .collect();
        self.add_ports(&names);
        self.flood();
        self.replace_rules(round);
        for name in &mut names[..2] {
            let new = format!("r{name}");
            self.rename(name, &new);
            *name = new;
        }
        self.flood();
        if !self.has_ports(&names) {
            self.fail(&format!("round {round}: not the ports {names:?}"));
        }
        until("the hosts reach each other in a round", || {
            answered(&self.one, &self.two, 1) == 1
        });
        // Some devices go first, some ports do.
        let (devices_first, ports_first) = names.split_at(PORTS / 2);
        for name in devices_first {
            inside(&self.running, "/sbin/ip", &["link", "del", name]);
        }
        let mut args = Vec::new();
        for name in &names {
            args.extend(["--", "del-port", "br0", name]);
        }
        vsctl(&self.running, &args[1..]);
        for name in ports_first {
            inside(&self.running, "/sbin/ip", &["link", "del", name]);
        }
        until("the ports of a round are gone", || self.has_ports(&[]));
    }

    fn usage(&self) -> Usage {
        // What floods left behind goes first.
        self.running.appctl(&["revalidator/purge"]).unwrap();
        let folder = format!("/proc/{}/fd", self.running.switch_id());
        Usage {
            memory: self.running.switch_memory().unwrap(),
            descriptors: std::fs::read_dir(folder).unwrap().count(),
            flows: self
                .running
                .appctl(&["dpctl/dump-flows"])
                .unwrap()
                .lines()
                .count(),
        }
    }
}

#[test]
fn nothing_grows_leaks_or_gets_lost() {
    if skip("nothing_grows_leaks_or_gets_lost") {
        return;
    }
    let minutes = std::env::var("SLUICE_SOAK_MINUTES").ok();
    let time = minutes.map(|m| Duration::from_secs(60 * m.parse::<u64>().unwrap()));
    let (soak, start) = (Soak::new(), Instant::now());
    let mut usages: Vec<Usage> = Vec::new();
    let goes_on = |round: usize| time.map_or(round < ROUNDS, |time| start.elapsed() < time);
    let mut round = 0;
    while goes_on(round) {
        soak.round(round);
        usages.push(soak.usage());
        if round.is_power_of_two() || round % 50 == 0 {
            println!(
                "round {round}, {} s: {:?}",
                start.elapsed().as_secs(),
                usages[round]
            );
        }
        round += 1;
    }
    // What caches and threads take at first is taken after a quarter of the time.
    let (early, late) = (usages[round / 4], usages[round - 1]);
    println!("{round} rounds: {early:?}, {late:?}");
    assert!(late.descriptors <= early.descriptors, "{early:?}, {late:?}");
    // A few rounds say nothing of memory, which caches and threads take bit by bit.
    assert!(
        round < SETTLED || late.memory <= early.memory * 1.05 + SLACK,
        "{early:?}, {late:?}"
    );
    assert!(late.flows <= early.flows + 10, "{early:?}, {late:?}");
}
