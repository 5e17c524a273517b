//! Counters of rules that somebody asks for are those of this moment.

use std::time::Duration;

use net_flow::{Match, PortNo};
use of_wire::message::FlowStatsRequest;
use of_wire::{Body, Version};
use proptest::prelude::*;

use crate::controller::Controller;
use crate::harness::Harness;

fn all() -> Box<FlowStatsRequest> {
    Box::new(FlowStatsRequest {
        matching: Match::any(),
        cookie: 0,
        cookie_mask: 0,
        out_port: PortNo::NONE,
        out_group: u32::MAX,
        table: u8::MAX,
        nicira: false,
    })
}

const PACKET_LEN: u64 = 106;

fn send(harness: &mut Harness, port: u8, host: u8) {
    let packet = format!(
        "in_port(1),eth(src=50:54:00:00:00:0{port},dst=50:54:00:00:00:00),eth_type(0x0800),\
         ipv4(src=10.0.0.{port},dst=10.0.0.{host},proto=17,tos=0,ttl=64,frag=no),udp(src=1,dst=2)"
    );
    let name = format!("p{port}");
    let command = ["netdev-dummy/receive", &name, &packet, "--len", "106"];
    harness.command(&command).unwrap();
}

/// What the rules have counted, with those that are gone.
struct Totals {
    controller: Controller,
    packets: u64,
    bytes: u64,
}

impl Totals {
    fn new(harness: &mut Harness, version: Version) -> Self {
        let mut controller = Controller::connect(harness, version);
        controller.flow_mod("delete");
        controller.flow_mod("add send_flow_rem,priority=0,actions=drop");
        controller.barrier(harness);
        controller.unasked.clear();
        Self {
            controller,
            packets: 0,
            bytes: 0,
        }
    }

    fn count(&mut self, harness: &mut Harness) -> (u64, u64) {
        let request = Body::AggregateStatsRequest(all());
        let Body::AggregateStatsReply(sum) = self.controller.ask(harness, request) else {
            panic!("another answer");
        };
        for body in self.controller.unasked.drain(..) {
            if let Body::FlowRemoved(removed) = body {
                self.packets += removed.packet_count;
                self.bytes += removed.byte_count;
            }
        }
        (self.packets + sum.packet_count, self.bytes + sum.byte_count)
    }
}

#[test]
fn counters_are_those_of_this_moment() {
    let mut harness = Harness::with_bridge("counters", &["p1", "p2"]);
    let mut totals = Totals::new(&mut harness, Version::V13);
    for n in 1..20 {
        send(&mut harness, 1, 1);
        assert_eq!(totals.count(&mut harness), (n, n * PACKET_LEN));
        let rules = harness.command(&["bridge/dump-flows", "br0"]).unwrap();
        let shown = format!("n_packets={n}, n_bytes={}, priority=0", n * PACKET_LEN);
        assert!(rules.contains(&shown), "{rules}");
    }
    let request = Body::FlowStatsRequest(all());
    let Body::FlowStatsReply(flows) = totals.controller.ask(&mut harness, request) else {
        panic!("another answer");
    };
    assert_eq!(flows.entries[0].packet_count, 19);
    send(&mut harness, 1, 1);
    let Body::TableStatsReply(tables) =
        totals.controller.ask(&mut harness, Body::TableStatsRequest)
    else {
        panic!("another answer");
    };
    assert_eq!(tables.entries[0].1.matched_count, 20);
    send(&mut harness, 1, 1);
    totals.controller.flow_mod("delete");
    assert_eq!(totals.count(&mut harness), (21, 21 * PACKET_LEN));
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8, u8),
    Add(u8, u8, u8),
    Modify(u8, u8),
    Delete(u8),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u8..3, 1u8..5).prop_map(|(port, host)| Step::Send(port, host)),
        2 => (1u8..5, 0u8..3, 0u8..3).prop_map(|(host, out, idle)| Step::Add(host, out, idle)),
        1 => (1u8..5, 0u8..3).prop_map(|(host, out)| Step::Modify(host, out)),
        1 => (1u8..5).prop_map(Step::Delete),
        1 => (1u16..3000).prop_map(Step::Wait),
    ]
}

fn actions(out: u8) -> String {
    match out {
        0 => "drop".to_owned(),
        port => format!("output:{port}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever rules come, change, expire and go: each packet is counted once.
    #[test]
    fn every_packet_is_counted_once(
        steps in prop::collection::vec(step(), 1..60),
        seed in 0u64..u64::MAX,
    ) {
        let name = format!("sum-{seed:x}");
        let mut harness = Harness::with_bridge(&name, &["p1", "p2"]);
        let mut totals = Totals::new(&mut harness, Version::V13);
        let mut sent = 0;
        for step in steps {
            match step {
                Step::Send(port, host) => {
                    send(&mut harness, port, host);
                    sent += 1;
                    continue;
                }
                Step::Wait(millis) => harness.warp(Duration::from_millis(millis.into())),
                Step::Add(host, out, idle) => totals.controller.flow_mod(&format!(
                    "add send_flow_rem,idle_timeout={idle},ip,nw_dst=10.0.0.{host},actions={}",
                    actions(out)
                )),
                Step::Modify(host, out) => totals.controller.flow_mod(&format!(
                    "modify_strict ip,nw_dst=10.0.0.{host},actions={}",
                    actions(out)
                )),
                Step::Delete(host) => {
                    let text = format!("delete_strict ip,nw_dst=10.0.0.{host}");
                    totals.controller.flow_mod(&text);
                }
            }
            prop_assert_eq!(totals.count(&mut harness), (sent, sent * PACKET_LEN));
        }
        prop_assert_eq!(totals.count(&mut harness), (sent, sent * PACKET_LEN));
    }
}
