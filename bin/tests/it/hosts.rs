//! Hosts in namespaces talk through a bridge of the userspace datapath.

use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use testkit::net::Host;
use testkit::{Running, need};

use crate::{HOSTS, ours};

pub(crate) fn host(running: &Running, n: u8, settings: &[&str]) -> Host {
    let host = Host::new(
        &running.netns,
        &format!("host{n}"),
        Ipv4Addr::new(10, 1, 1, n),
    )
    .unwrap();
    let mut args = vec!["--timeout=20", "add-port", "br0", host.cable.as_str()];
    args.extend(settings);
    running.tool("ovs-vsctl", &args).unwrap();
    host
}

/// Pings until the hosts know each other's addresses: after a failure they ask again only
/// once a second.
fn acquaint(one: &Host, two: &Host) {
    (0..10).find(|_| answered(one, two, 1) == 1);
}

pub(crate) fn answered(one: &Host, two: &Host, count: u16) -> usize {
    one.ping(two.ip, count, Duration::from_millis(5))
        .unwrap()
        .len()
}

#[test]
fn a_new_bridge_carries_pings_and_bulk_data() {
    if !need("a_new_bridge_carries_pings_and_bulk_data", HOSTS) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    assert_eq!(answered(&one, &two, 20), 20, "{}", running.report());
    let rate = one.bulk_tcp(&two, Duration::from_millis(500)).unwrap();
    assert!(rate > 1e6, "{rate} bit/s\n{}", running.report());
    let learned = running.appctl(&["fdb/show", "br0"]).unwrap();
    assert!(learned.lines().count() >= 3, "{learned}");
    let megaflows = running.appctl(&["dpctl/dump-flows"]).unwrap();
    assert!(megaflows.contains("eth_type(0x0800)"), "{megaflows}");
}

#[test]
fn access_ports_of_different_vlans_are_apart() {
    if !need("access_ports_of_different_vlans_are_apart", HOSTS) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let one = host(&running, 1, &["tag=10"]);
    let two = host(&running, 2, &["tag=10"]);
    let three = host(&running, 3, &["tag=20"]);
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    assert_eq!(answered(&one, &three, 3), 0, "{}", running.report());
    // Moved into the same VLAN while it runs: the cached flows go.
    running
        .tool(
            "ovs-vsctl",
            &["--timeout=20", "set", "port", "host3", "tag=10"],
        )
        .unwrap();
    acquaint(&one, &three);
    assert_eq!(answered(&one, &three, 5), 5, "{}", running.report());
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
}

#[test]
fn a_secure_bridge_forwards_only_what_its_rules_say() {
    if !need("a_secure_bridge_forwards_only_what_its_rules_say", HOSTS) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    running
        .tool(
            "ovs-vsctl",
            &["--timeout=20", "set-fail-mode", "br0", "secure"],
        )
        .unwrap();
    running.tool("ovs-ofctl", &["del-flows", "br0"]).unwrap();
    assert_eq!(answered(&one, &two, 2), 0, "{}", running.report());
    for rule in ["in_port=1,actions=2", "in_port=2,actions=1"] {
        running
            .tool("ovs-ofctl", &["add-flow", "br0", rule])
            .unwrap();
    }
    acquaint(&one, &two);
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    running
        .tool(
            "ovs-ofctl",
            &["add-flow", "br0", "priority=65000,icmp,actions=drop"],
        )
        .unwrap();
    assert_eq!(answered(&one, &two, 2), 0, "{}", running.report());
    let rules = running.tool("ovs-ofctl", &["dump-flows", "br0"]).unwrap();
    assert!(
        rules.contains("priority=65000,icmp actions=drop"),
        "{rules}"
    );
}

#[test]
fn a_device_that_is_not_there_is_reported_and_hurts_nobody() {
    if !need(
        "a_device_that_is_not_there_is_reported_and_hurts_nobody",
        HOSTS,
    ) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    let refused = running.tool("ovs-vsctl", &["--timeout=20", "add-port", "br0", "nosuch"]);
    assert!(refused.is_err(), "exit status 65 was expected");
    let port = running
        .tool("ovs-vsctl", &["get", "interface", "nosuch", "ofport"])
        .unwrap();
    assert_eq!(port.trim(), "-1");
    let error = running
        .tool("ovs-vsctl", &["get", "interface", "nosuch", "error"])
        .unwrap();
    assert!(
        error.contains("nosuch") && error.contains("No such device"),
        "{error}"
    );
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
}

#[test]
fn links_and_mirrors_are_reported() {
    if !need("links_and_mirrors_are_reported", HOSTS) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let id = |running: &Running| {
        let column = ["get", "bridge", "br0", "datapath_id"];
        running.tool("ovs-vsctl", &column).unwrap()
    };
    let before = id(&running);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    // Nobody gave out the address of such a pair, so the bridge does not take it over.
    assert_eq!(id(&running), before);
    let of_port = |columns: &[&str]| {
        let words: Vec<&str> = ["get", "interface", "host1"]
            .iter()
            .chain(columns)
            .copied()
            .collect();
        running.tool("ovs-vsctl", &words).unwrap()
    };
    assert_eq!(
        of_port(&["duplex", "link_speed", "status:tx_tcp_seg_offload"]),
        "full\n10000000000\n\"true\"\n"
    );
    let _three = host(&running, 3, &[]);
    let mirror = [
        "--id=@p",
        "get",
        "port",
        "host3",
        "--",
        "--id=@m",
        "create",
        "mirror",
        "name=m",
        "select_all=true",
        "output_port=@p",
        "--",
        "set",
        "bridge",
        "br0",
        "mirrors=@m",
    ];
    running.tool("ovs-vsctl", &mirror).unwrap();
    acquaint(&one, &two);
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    // Ten packets of pings at least, all of which were copied; written every five seconds.
    let wait = [
        "--timeout=20",
        "wait-until",
        "mirror",
        "m",
        "statistics:tx_packets>=10",
    ];
    running
        .tool("ovs-vsctl", &wait)
        .unwrap_or_else(|e| panic!("{e}\n{}", running.report()));
}

/// Whether everybody may make taps, as is usual: others than root need it for bridges of real
/// ports.
fn everybody_may_make_taps() -> bool {
    let mode = std::fs::metadata("/dev/net/tun").map(|m| m.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o006 == 0o006)
}

/// `--user`: the switch works with few of root's powers.
#[test]
fn a_switch_need_not_be_root() {
    if !need("a_switch_need_not_be_root", HOSTS) {
        return;
    }
    let real = everybody_may_make_taps();
    let mut stack = ours();
    if real {
        stack.switch_args = &["--disable-system", "--user=nobody"];
    } else {
        stack = stack.with_dummies();
        stack.switch_args = &["--enable-dummy=override", "--user=nobody"];
    }
    let mut running = stack.start_server().unwrap();
    // The run directory and the database are another's as well then.
    let open = |path: &Path| {
        let mode = Permissions::from_mode(0o777);
        std::fs::set_permissions(path, mode).unwrap();
    };
    open(&running.folder);
    open(&running.folder.join("db.sock"));
    running.start_switch().unwrap();
    running
        .tool("ovs-vsctl", &["--timeout=20", "add-br", "br0"])
        .unwrap();
    if real {
        let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
        acquaint(&one, &two);
        assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    }
    let pid = std::fs::read_to_string(running.folder.join("ovs-vswitchd.pid")).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap();
    let line = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name));
        line.unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(line("Uid:"), ["65534"; 4], "{status}");
    assert_eq!(line("Groups:"), [""; 0], "{status}");
    // CAP_NET_BIND_SERVICE, CAP_NET_BROADCAST, CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK.
    let kept = format!("{:016x}", 0x7c00);
    for set in ["CapEff:", "CapPrm:"] {
        assert_eq!(line(set), [&kept[..]], "{status}");
    }
    for set in ["CapInh:", "CapAmb:"] {
        assert_eq!(line(set), ["0000000000000000"], "{status}");
    }
}
