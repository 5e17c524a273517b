//! Packets through the switch.

use std::time::Duration;

use crate::harness::Harness;

const ONE: &str = "in_port(1),eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07),eth_type(0x0800),\
     ipv4(src=192.168.0.1,dst=192.168.0.2,proto=1,tos=0,ttl=64,frag=no),icmp(type=8,code=0)";
const OTHER: &str = "in_port(2),eth(src=50:54:00:00:00:07,dst=50:54:00:00:00:05),\
     eth_type(0x0800),ipv4(src=192.168.0.2,dst=192.168.0.1,proto=6,tos=0,ttl=64,frag=no),\
     tcp(src=8,dst=9),tcp_flags(0x012)";

#[test]
fn a_learning_switch_floods_and_then_knows() {
    let mut harness = Harness::with_bridge("learning", &["p1", "p2", "p3"]);
    assert_eq!(
        harness.command(&["netdev-dummy/receive", "p1", ONE]),
        Ok(String::new())
    );
    assert_eq!(
        harness.command(&["dpctl/dump-flows"]).unwrap(),
        "flow-dump from the main thread:\n\
         recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth(src=50:54:00:00:00:05,\
         dst=50:54:00:00:00:07),eth_type(0x0800),ipv4(frag=no), packets:0, bytes:0, used:never, \
         actions:100,2,3\n"
    );
    harness.warp(Duration::from_millis(1100));
    harness
        .command(&["netdev-dummy/receive", "p2", OTHER])
        .unwrap();
    harness
        .command(&["netdev-dummy/receive", "p2", OTHER])
        .unwrap();
    assert_eq!(
        harness.command(&["dpctl/dump-flows"]).unwrap(),
        "flow-dump from the main thread:\n\
         recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth(src=50:54:00:00:00:05,\
         dst=50:54:00:00:00:07),eth_type(0x0800),ipv4(frag=no), packets:0, bytes:0, used:never, \
         actions:2\n\
         recirc_id(0),in_port(2),packet_type(ns=0,id=0),eth(src=50:54:00:00:00:07,\
         dst=50:54:00:00:00:05),eth_type(0x0800),ipv4(frag=no), packets:1, bytes:54, used:0.000s, \
         flags:S., actions:1\n"
    );
    assert_eq!(
        harness.command(&["fdb/show", "br0"]).unwrap(),
        " port  VLAN  MAC                Age\n\
         \x20   1     0  50:54:00:00:00:05    1\n\
         \x20   2     0  50:54:00:00:00:07    0\n"
    );
    assert_eq!(
        harness.command(&["dpif/show"]).unwrap(),
        "dummy@ovs-dummy: hit:1 missed:2\n  br0:\n    br0 65534/100: (dummy-internal)\n    \
         p1 1/1: (dummy)\n    p2 2/2: (dummy)\n    p3 3/3: (dummy)\n"
    );
    harness.warp(Duration::from_secs(12));
    assert_eq!(harness.command(&["dpctl/dump-flows"]), Ok(String::new()));
}

#[test]
fn a_port_that_goes_takes_its_flows_along() {
    let mut harness = Harness::with_bridge("ports", &["p1", "p2"]);
    harness
        .command(&["netdev-dummy/receive", "p1", ONE])
        .unwrap();
    harness.apply(vs_switch::config::Step::DelPort {
        bridge: "br0".to_owned(),
        port: "p1".to_owned(),
    });
    harness.run();
    assert_eq!(harness.command(&["dpctl/dump-flows"]), Ok(String::new()));
    assert!(harness.switch.is_settled());
    let show = harness.command(&["dpctl/show"]).unwrap();
    assert!(!show.contains("p1"), "{show}");
}

#[test]
fn a_trace_prints_what_a_packet_would_meet() {
    let mut harness = Harness::with_bridge("trace", &["p1", "p2"]);
    let text = harness
        .command(&["ofproto/trace", "br0", "in_port=p1,tcp"])
        .unwrap();
    assert!(text.starts_with("Flow: tcp,in_port=1,"), "{text}");
    assert!(text.ends_with("\nDatapath actions: 100,2"), "{text}");
    assert_eq!(
        harness.command(&["ofproto/trace", "brx", "in_port=1"]),
        Err("brx: unknown bridge".to_owned())
    );
    assert_eq!(
        harness.command(&["ofproto/trace", "br0", "foo=1"]),
        Err("Bad openflow flow syntax: foo=1: unknown field foo".to_owned())
    );
}
