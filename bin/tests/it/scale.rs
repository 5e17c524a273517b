//! Many ports, and a switch that is killed and started again under traffic.

use std::time::Duration;

use testkit::{Need, Running, eventually, need};

use crate::hosts::{answered, host};
use crate::{HOSTS, ours};

/// Numbers that the switch gave to ports.
fn numbers(running: &Running) -> Vec<u32> {
    let args = ["--bare", "--columns=ofport", "list", "interface"];
    let text = running.tool("ovs-vsctl", &args).unwrap();
    let numbers = text.lines().filter(|l| !l.is_empty());
    let mut numbers: Vec<u32> = numbers.map(|n| n.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// Ports that come one by one and go one by one leave nothing behind.
#[test]
fn five_hundred_ports_come_and_go() {
    let needs = [HOSTS, &[Need::Full]].concat();
    if !need("five_hundred_ports_come_and_go", &needs) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    let mut memory = Vec::new();
    for round in 0..3 {
        for n in 0..500 {
            let name = format!("many{n}");
            let add = ["--timeout=20", "add-port", "br0", &name, "--"];
            let set = ["set", "interface", &name, "type=internal"];
            let args = [&add[..], &set].concat();
            running.tool("ovs-vsctl", &args).unwrap();
        }
        let mut numbers = numbers(&running);
        assert_eq!(numbers.len(), 503, "round {round}");
        numbers.dedup();
        assert_eq!(
            numbers.len(),
            503,
            "round {round}: a number was given twice"
        );
        let shown = running.tool("ovs-ofctl", &["show", "br0"]).unwrap();
        assert_eq!(shown.matches("(many").count(), 500, "round {round}");
        assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
        memory.push(running.switch_memory().unwrap());
        for n in 0..500 {
            let name = format!("many{n}");
            let args = ["--timeout=20", "del-port", "br0", &name];
            running.tool("ovs-vsctl", &args).unwrap();
        }
        let shown = running.appctl(&["dpif/show"]).unwrap();
        assert!(!shown.contains("many"), "round {round}: {shown}");
        assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    }
    let grown = memory[2] - memory[0];
    assert!(grown < 16.0, "memory grows: {memory:?} MiB");
}

/// The numbers that controllers know the ports by.
fn identity(running: &Running) -> String {
    let columns = ["--bare", "--columns=name,ofport", "list", "interface"];
    running.tool("ovs-vsctl", &columns).unwrap()
}

/// A TCP connection outlives the switch, which comes back with the same numbers.
#[test]
fn a_switch_is_killed_and_started_again_under_traffic() {
    let needs = [HOSTS, &[Need::Full]].concat();
    if !need("a_switch_is_killed_and_started_again_under_traffic", &needs) {
        return;
    }
    let mut running = ours().start(&[]).unwrap();
    let hosts: Vec<_> = (1..=4).map(|n| host(&running, n, &[])).collect();
    assert_eq!(answered(&hosts[0], &hosts[1], 5), 5);
    let args = ["--timeout=20", "del-port", "br0", "host3"];
    running.tool("ovs-vsctl", &args).unwrap();
    let before = identity(&running);
    for round in 0..5 {
        std::thread::scope(|scope| {
            let traffic = scope.spawn(|| hosts[0].bulk_tcp(&hosts[1], Duration::from_secs(6)));
            eventually("the connection has a megaflow", || {
                let flows = running.appctl(&["dpctl/dump-flows"]).unwrap_or_default();
                flows.contains("proto=6") || flows.matches("eth_type(0x0800)").count() >= 2
            });
            running.kill_switch();
            running.start_switch().unwrap();
            let rate = traffic.join().unwrap();
            assert!(
                rate.is_ok(),
                "round {round}: {rate:?}\n{}",
                running.report()
            );
        });
        assert_eq!(identity(&running), before, "round {round}");
        eventually("pings pass", || answered(&hosts[0], &hosts[3], 1) == 1);
        assert_eq!(answered(&hosts[3], &hosts[0], 20), 20);
    }
}
