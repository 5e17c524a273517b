//! Packets between hosts.

use crate::{answered, datapath_ports, host, inside, skip, start, until, vsctl};

#[test]
fn hosts_reach_each_other() {
    if skip("hosts_reach_each_other") {
        return;
    }
    let running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    assert_eq!(answered(&one, &two, 10), 10, "{}", running.report());
    assert_eq!(
        datapath_ports(&running),
        [
            "port 0: ovs-system (internal)",
            "port 1: br0 (internal)",
            "port 2: host1",
            "port 3: host2",
        ]
    );
    // What the kernel forwards by itself is credited to the rule.
    until("the rule's counter shows the packets", || {
        let rules = running.tool("ovs-ofctl", &["dump-flows", "br0"]).unwrap();
        let count = rules
            .split("n_packets=")
            .nth(1)
            .and_then(|r| r.split(',').next());
        count
            .and_then(|c| c.parse().ok())
            .is_some_and(|c: u64| c >= 20)
    });
    vsctl(&running, &["del-port", "host2"]);
    assert_eq!(answered(&one, &two, 2), 0);
    assert_eq!(datapath_ports(&running).len(), 3);
    // The datapath goes with its last bridge.
    vsctl(&running, &["del-br", "br0"]);
    assert_eq!(inside(&running, "/usr/bin/ovs-dpctl", &["dump-dps"]), "");
}

#[test]
fn access_ports_and_trunks() {
    if skip("access_ports_and_trunks") {
        return;
    }
    let running = start(&[]);
    let one = host(&running, 1, &["tag=10"]);
    let two = host(&running, 2, &["tag=10"]);
    let three = host(&running, 3, &["tag=20"]);
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    assert_eq!(answered(&one, &three, 2), 0, "{}", running.report());
    vsctl(&running, &["set", "port", "host3", "tag=10"]);
    until("the hosts know each other", || {
        answered(&one, &three, 1) == 1
    });
    assert_eq!(answered(&one, &three, 5), 5, "{}", running.report());
    // Tags are pushed and popped on the way through another bridge.
    vsctl(
        &running,
        &[
            "add-br",
            "br1",
            "--",
            "set",
            "bridge",
            "br1",
            "datapath_type=system",
        ],
    );
    testkit::net::cable(&running.netns, ["trunk0", "trunk1"]).unwrap();
    vsctl(
        &running,
        &[
            "add-port", "br0", "trunk0", "--", "add-port", "br1", "trunk1",
        ],
    );
    let far = testkit::net::Host::new(
        &running.netns,
        "host4",
        std::net::Ipv4Addr::new(10, 1, 1, 4),
    )
    .unwrap();
    vsctl(&running, &["add-port", "br1", "host4", "tag=10"]);
    until("the hosts know each other", || answered(&one, &far, 1) == 1);
    assert_eq!(answered(&one, &far, 5), 5, "{}", running.report());
    let flows = running.appctl(&["dpctl/dump-flows"]).unwrap();
    assert!(flows.contains("push_vlan(vid=10,pcp=0)"), "{flows}");
    assert!(flows.contains("vlan(vid=10,pcp=0),encap("), "{flows}");
}

#[test]
fn packets_come_in_both_modes_of_dispatch() {
    if skip("packets_come_in_both_modes_of_dispatch") {
        return;
    }
    let running = start(&["upcall-dispatch=per-port"]);
    let one = host(&running, 1, &[]);
    for (n, mode) in [
        (2, "per-cpu"),
        (3, "per-port"),
        (4, "auto"),
        (5, "per-port"),
    ] {
        let dispatch = format!("other_config:upcall-dispatch={mode}");
        vsctl(&running, &["set", "Open_vSwitch", ".", &dispatch]);
        let other = host(&running, n, &[]);
        assert_eq!(answered(&one, &other, 5), 5, "{mode}\n{}", running.report());
        assert_eq!(answered(&other, &one, 5), 5, "{mode}\n{}", running.report());
        // Slow-path flows name sockets, which change with the mode.
        running
            .tool(
                "ovs-ofctl",
                &["add-flow", "br0", "icmp,actions=controller,normal"],
            )
            .unwrap();
        assert_eq!(answered(&one, &other, 5), 5, "{mode}\n{}", running.report());
    }
}

/// A connection that a stateful firewall allows.
const FIREWALL: [&str; 6] = [
    "table=0,priority=10,arp,actions=normal",
    "table=0,priority=1,ip,actions=ct(table=1,zone=5)",
    "table=1,priority=10,ip,ct_state=+trk+new,in_port=host1,actions=ct(commit,zone=5),normal",
    "table=1,priority=10,ip,ct_state=+trk+est,actions=normal",
    "table=1,priority=1,ip,ct_state=+trk+new,actions=drop",
    "table=0,priority=0,actions=drop",
];

#[test]
fn connections_are_tracked() {
    if skip("connections_are_tracked") {
        return;
    }
    let running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    running.tool("ovs-ofctl", &["del-flows", "br0"]).unwrap();
    for rule in FIREWALL {
        running
            .tool("ovs-ofctl", &["add-flow", "br0", rule])
            .unwrap();
    }
    assert_eq!(answered(&two, &one, 3), 0, "{}", running.report());
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    let rate = one.bulk_tcp(&two, std::time::Duration::from_millis(500));
    assert!(rate.unwrap() > 1e5, "{}", running.report());
    let flows = running.appctl(&["dpctl/dump-flows"]).unwrap();
    assert!(flows.contains("ct(commit,zone=5)"), "{flows}");
    assert!(flows.contains("ct_state(-new+est+trk)"), "{flows}");
}

#[test]
fn tunnels_reach_the_other_side() {
    if skip("tunnels_reach_the_other_side") {
        return;
    }
    for kind in ["vxlan", "geneve", "gre"] {
        let (here, there) = (start(&[]), start(&[]));
        let (one, two) = (host(&here, 1, &[]), host(&there, 2, &[]));
        // An underlay between the two switches' namespaces.
        let underlay = |running: &testkit::Running, name: &str, ip: &str| {
            inside(running, "/usr/sbin/ip", &["addr", "add", ip, "dev", name]);
            inside(running, "/usr/sbin/ip", &["link", "set", name, "up"]);
        };
        testkit::net::cable_between(&here.netns, "under", &there.netns, "under").unwrap();
        underlay(&here, "under", "172.16.0.1/24");
        underlay(&there, "under", "172.16.0.2/24");
        for (running, remote) in [(&here, "172.16.0.2"), (&there, "172.16.0.1")] {
            let remote = format!("options:remote_ip={remote}");
            let kind = format!("type={kind}");
            let interface = [
                "--",
                "set",
                "interface",
                "tun",
                &kind,
                &remote,
                "options:key=7",
            ];
            vsctl(
                running,
                &[&["add-port", "br0", "tun"], &interface[..]].concat(),
            );
        }
        until("the hosts know each other", || answered(&one, &two, 1) == 1);
        assert_eq!(answered(&one, &two, 5), 5, "{kind}\n{}", here.report());
        let flows = here.appctl(&["dpctl/dump-flows"]).unwrap();
        assert!(
            flows.contains("set(tunnel(tun_id=0x7,dst=172.16.0.2"),
            "{flows}"
        );
        assert!(
            flows.contains("tunnel(tun_id=0x7,src=172.16.0.2"),
            "{flows}"
        );
    }
}

#[test]
fn actions_that_the_kernel_lacks() {
    if skip("actions_that_the_kernel_lacks") {
        return;
    }
    let running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    running.tool("ovs-ofctl", &["del-flows", "br0"]).unwrap();
    // An address that nobody has answers for host2.
    for rule in [
        "priority=10,in_port=host1,arp,arp_tpa=10.1.1.9,actions=set_field:10.1.1.2->arp_tpa,normal",
        "priority=10,in_port=host2,arp,arp_op=2,actions=set_field:10.1.1.9->arp_spa,normal",
        "priority=10,in_port=host1,ip,nw_dst=10.1.1.9,actions=mod_nw_dst:10.1.1.2,normal",
        "priority=10,in_port=host2,ip,actions=mod_nw_src:10.1.1.9,normal",
        "priority=1,actions=normal",
    ] {
        running
            .tool("ovs-ofctl", &["add-flow", "br0", rule])
            .unwrap();
    }
    let nobody = std::net::Ipv4Addr::new(10, 1, 1, 9);
    let interval = std::time::Duration::from_millis(20);
    let answers = || one.ping(nobody, 3, interval).unwrap().len();
    until("the address is answered", || answers() == 3);
    let packet_out = [
        "packet-out",
        "br0",
        "in_port=controller packet=ffffffffffff0202020202020806000108000604000102020202020a0a01010b\
         0000000000000a010102 actions=set_field:10.1.1.12->arp_spa,output:host2",
    ];
    running.tool("ovs-ofctl", &packet_out).unwrap();
    assert!(
        !running.report().contains("packet-out could not"),
        "{}",
        running.report()
    );
    drop(two);
}

#[test]
fn packets_longer_than_a_tunnel_takes() {
    if skip("packets_longer_than_a_tunnel_takes") {
        return;
    }
    let running = start(&[]);
    let _one = host(&running, 1, &[]);
    let mtu = |device: &str| {
        let text = inside(&running, "/usr/sbin/ip", &["-o", "link", "show", device]);
        let mut words = text.split_whitespace().skip_while(|w| *w != "mtu");
        words.nth(1).and_then(|n| n.parse::<u32>().ok())
    };
    let set = |device: &str, mtu: &str| {
        let args = ["link", "set", "dev", device, "mtu", mtu];
        inside(&running, "/usr/sbin/ip", &args);
    };
    // Somebody makes room for a tunnel's header, and it stays.
    set("br0", "1450");
    let _two = host(&running, 2, &[]);
    vsctl(&running, &["set", "bridge", "br0", "other_config:x=1"]);
    assert_eq!(mtu("br0"), Some(1450));
    // What does not fit in is cut down, and a new smallest is everybody's.
    set("host1", "1400");
    until("the bridge follows", || mtu("br0") == Some(1400));
}

#[test]
fn a_barrier_waits_for_the_kernel() {
    if skip("a_barrier_waits_for_the_kernel") {
        return;
    }
    let running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    let ofctl = |args: &[&str]| running.tool("ovs-ofctl", args).unwrap();
    for round in 0..5 {
        // Flows for pings are in the kernel when the rule comes, and when it goes.
        assert_eq!(answered(&one, &two, 3), 3, "{round}\n{}", running.report());
        ofctl(&["add-flow", "br0", "priority=50,icmp,actions=drop"]);
        assert_eq!(answered(&one, &two, 3), 0, "{round}\n{}", running.report());
        ofctl(&["del-flows", "br0", "icmp"]);
    }
}
