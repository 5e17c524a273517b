//! The switch ends at once and starts again while packets flow.

use std::time::Duration;

use testkit::Running;
use testkit::net::Host;

use crate::{answered, datapath_ports, host, inside, skip, start, until, vsctl};

/// Pings while `during` is done; how many of how many were answered.
fn while_pinging(one: &Host, two: &Host, during: impl FnOnce()) -> (usize, usize) {
    const COUNT: u16 = 400;
    let interval = Duration::from_millis(20);
    std::thread::scope(|scope| {
        let pings = scope.spawn(|| one.ping(two.ip, COUNT, interval).unwrap().len());
        std::thread::sleep(Duration::from_millis(500));
        during();
        (pings.join().unwrap(), usize::from(COUNT))
    })
}

fn device_numbers(running: &Running) -> Vec<String> {
    let text = inside(running, "/usr/sbin/ip", &["-o", "link"]);
    let number = |line: &str| {
        let mut words = line.split(':').map(str::trim);
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    text.lines().filter_map(number).collect()
}

#[test]
fn a_learning_switch_loses_nothing() {
    if skip("a_learning_switch_loses_nothing") {
        return;
    }
    let mut running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    let tunnel = [
        "--",
        "set",
        "interface",
        "tun",
        "type=vxlan",
        "options:remote_ip=flow",
    ];
    vsctl(
        &running,
        &[&["add-port", "br0", "tun"], &tunnel[..]].concat(),
    );
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    let (ports, devices) = (datapath_ports(&running), device_numbers(&running));
    let (answered, sent) = while_pinging(&one, &two, || {
        running.kill_switch();
        std::thread::sleep(Duration::from_millis(300));
        running.start_switch().unwrap();
        until("the switch is back", || {
            running.appctl(&["version"]).is_ok()
        });
        std::thread::sleep(Duration::from_secs(2));
    });
    assert_eq!(answered, sent, "{}", running.report());
    assert_eq!(datapath_ports(&running), ports);
    assert_eq!(device_numbers(&running), devices);
    // It is a switch again: it learns, and follows changes.
    let three = host(&running, 3, &[]);
    assert_eq!(crate::answered(&three, &one, 5), 5, "{}", running.report());
}

/// Rules with connection tracking, and so packets that come back to the datapath.
const RULES: &str = "\
table=0,priority=10,arp actions=normal
table=0,priority=1,ip actions=ct(table=1,zone=9)
table=1,priority=10,ip,ct_state=+trk+new actions=ct(commit,zone=9),resubmit(,2)
table=1,priority=10,ip,ct_state=+trk+est actions=resubmit(,2)
table=2,priority=1,ip actions=normal
";

#[test]
fn restored_rules_lose_nothing() {
    if skip("restored_rules_lose_nothing") {
        return;
    }
    let mut running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    vsctl(&running, &["set-fail-mode", "br0", "secure"]);
    let rules = running.folder.join("rules");
    std::fs::write(&rules, RULES).unwrap();
    let rules = rules.display().to_string();
    let load = |running: &Running| {
        running
            .tool("ovs-ofctl", &["add-flows", "br0", &rules])
            .unwrap();
    };
    load(&running);
    until("the hosts know each other", || answered(&one, &two, 1) == 1);
    let ports = datapath_ports(&running);
    let (answered, sent) = while_pinging(&one, &two, || {
        running.kill_switch();
        let setting = "other_config:flow-restore-wait=true";
        vsctl_no_wait(&running, &["set", "Open_vSwitch", ".", setting]);
        running.start_switch().unwrap();
        until("the switch is back", || {
            running.appctl(&["version"]).is_ok()
        });
        std::thread::sleep(Duration::from_secs(1));
        load(&running);
        let key = "flow-restore-wait";
        vsctl(
            &running,
            &["remove", "Open_vSwitch", ".", "other_config", key],
        );
        std::thread::sleep(Duration::from_secs(1));
    });
    assert_eq!(answered, sent, "{}", running.report());
    assert_eq!(datapath_ports(&running), ports);
}

fn vsctl_no_wait(running: &Running, args: &[&str]) {
    let args = [&["--timeout=60", "--no-wait"], args].concat();
    running.tool("ovs-vsctl", &args).unwrap();
}

#[test]
fn what_nobody_wants_any_more_goes() {
    if skip("what_nobody_wants_any_more_goes") {
        return;
    }
    let mut running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    running.kill_switch();
    vsctl_no_wait(&running, &["del-port", "host2"]);
    running.start_switch().unwrap();
    until("the port is gone", || datapath_ports(&running).len() == 3);
    assert_eq!(answered(&one, &two, 2), 0, "{}", running.report());
    until("no flow leads there", || {
        let flows = running.appctl(&["dpctl/dump-flows"]).unwrap_or_default();
        !flows.is_empty() && flows.lines().all(|l| !l.contains("actions:3"))
    });
}
