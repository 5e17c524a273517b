//! Cached flows against the rules that they came from, with dummy devices.

use testkit::{Need, Running, need};

use crate::ours;

/// A TCP packet into port `p1`, behind `tags`.
fn receive(running: &Running, tags: &str, tail: &str) {
    let ethernet = "in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a)";
    let ip = "eth_type(0x0800),ipv4(src=10.0.0.2,dst=10.0.0.1,proto=6,tos=0,ttl=64,frag=no)";
    let packet = format!("{ethernet},{tags}{ip},tcp(src=8,dst=9){tail}");
    running
        .appctl(&["netdev-dummy/receive", "p1", &packet])
        .unwrap();
}

fn sent(running: &Running) -> u64 {
    let text = running
        .tool("ovs-ofctl", &["dump-ports", "br0", "p2"])
        .unwrap();
    let count = text
        .split("tx pkts=")
        .nth(1)
        .and_then(|t| t.split(',').next());
    count
        .and_then(|n| n.trim().parse().ok())
        .unwrap_or_else(|| panic!("{text}"))
}

/// When the command that changes a rule has returned, which it does after a barrier, no
/// packet may be treated as the old rule wanted, whatever the cache held and whether or
/// not the rule looked at the packet's tags.
#[test]
fn after_a_barrier_no_packet_meets_an_old_rule() {
    if !need(
        "after_a_barrier_no_packet_meets_an_old_rule",
        &[Need::Root, Need::Netns],
    ) {
        return;
    }
    let running = ours().with_dummies().start(&[]).unwrap();
    for port in ["p1", "p2"] {
        running
            .tool("ovs-vsctl", &["--timeout=20", "add-port", "br0", port])
            .unwrap();
    }
    let packets = [
        ("", ""),
        ("eth_type(0x8100),vlan(vid=7,pcp=1),encap(", ")"),
        ("eth_type(0x8100),vlan(vid=0,pcp=0),encap(", ")"),
    ];
    for (tags, tail) in packets {
        for round in 0..5 {
            running.tool("ovs-ofctl", &["del-flows", "br0"]).unwrap();
            let before = sent(&running);
            receive(&running, tags, tail);
            assert_eq!(sent(&running), before, "no rule, {tags} round {round}");
            running
                .tool(
                    "ovs-ofctl",
                    &["add-flow", "br0", "in_port=1,actions=output:2"],
                )
                .unwrap();
            for _ in 0..2 {
                receive(&running, tags, tail);
            }
            assert_eq!(
                sent(&running),
                before + 2,
                "with a rule, {tags} round {round}"
            );
        }
    }
}

/// What a cached flow counted before its rule went belongs to that rule, not to the one
/// that comes after it.
#[test]
fn a_new_rule_does_not_inherit_what_the_old_one_counted() {
    let name = "a_new_rule_does_not_inherit_what_the_old_one_counted";
    if !need(name, &[Need::Root, Need::Netns]) {
        return;
    }
    let running = ours().with_dummies().start(&[]).unwrap();
    for port in ["p1", "p2"] {
        running
            .tool("ovs-vsctl", &["--timeout=20", "add-port", "br0", port])
            .unwrap();
    }
    for round in 0..5 {
        running.tool("ovs-ofctl", &["del-flows", "br0"]).unwrap();
        running
            .tool(
                "ovs-ofctl",
                &["add-flow", "br0", "in_port=1,actions=output:2"],
            )
            .unwrap();
        for _ in 0..3 {
            receive(&running, "", "");
        }
        running.tool("ovs-ofctl", &["del-flows", "br0"]).unwrap();
        running
            .tool(
                "ovs-ofctl",
                &["add-flow", "br0", "in_port=1,actions=output:2"],
            )
            .unwrap();
        running.appctl(&["revalidator/wait"]).unwrap();
        let rules = running.tool("ovs-ofctl", &["dump-flows", "br0"]).unwrap();
        assert!(rules.contains("n_packets=0,"), "round {round}: {rules}");
    }
}
