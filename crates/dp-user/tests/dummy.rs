//! The datapath over dummy devices, with a switch that decides as the test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base::{Clock, Instant};
use dp_api::{
    Datapath, Error, Execute, FlowPut, NewFlow, PortSpec, Upcall, UpcallHandler, UpcallKind,
};
use dp_lang::text::{PortNames, parse_actions, parse_flow};
use dp_lang::{Action, PortNo};
use dp_user::{Options, UserDatapath};
use net_dev::{DummyLevel, DummyProvider, Providers};
use net_flow::compose::compose;
use net_flow::{FlowMask, slot};
use net_packet::Packet;

struct Bed {
    datapath: UserDatapath,
    dummies: Arc<DummyProvider>,
    clock: Clock,
}

fn bed() -> Bed {
    let dummies = Arc::new(DummyProvider::new(DummyLevel::Own));
    let clock = Clock::stopped(Instant::from_millis(1000));
    let datapath = UserDatapath::open(Options {
        kind: "dummy".into(),
        name: "ovs-dummy".into(),
        devices: Providers::new(vec![dummies.clone()]),
        clock: clock.clone(),
        dummy: true,
        threads: None,
    });
    let bed = Bed {
        datapath: datapath.unwrap(),
        dummies,
        clock,
    };
    for name in ["br0", "p1", "p2", "p3"] {
        let kind = if name == "br0" { "internal" } else { "dummy" };
        bed.datapath.port_add(&spec(name, kind)).unwrap();
    }
    bed
}

fn spec(name: &str, kind: &str) -> PortSpec {
    PortSpec {
        name: name.into(),
        kind: kind.into(),
        number: None,
        options: Vec::new(),
    }
}

fn frame(flow: &str) -> Vec<u8> {
    let flow = parse_flow(flow, &PortNames::none()).unwrap();
    compose(&flow.key, 64)
}

fn actions(text: &str) -> Arc<[Action]> {
    parse_actions(text, &PortNames::none()).unwrap().into()
}

const UDP: &str = "eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),\
    ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17,tos=0,ttl=64,frag=no),udp(src=8,dst=";

impl Bed {
    fn inject(&self, port: &str, udp_dst: u16) {
        let frame = frame(&format!("{UDP}{udp_dst})"));
        let dummy = self.dummies.find(port).unwrap();
        dummy.inject(Packet::from_frame(&frame));
        self.datapath.run(self.clock.now());
    }

    fn sent(&self, port: &str) -> u64 {
        let stats = self.datapath.port_stats(self.number(port)).unwrap();
        stats.tx_packets
    }

    fn number(&self, name: &str) -> PortNo {
        let ports = self.datapath.ports();
        ports.iter().find(|p| p.name == name).unwrap().number
    }

    fn put(&self, flow: &str, does: &str) -> Result<dp_lang::Ufid, Error> {
        let flow = parse_flow(flow, &PortNames::none()).unwrap();
        let mini = net_flow::MiniKey::new;
        self.datapath.flow_put(FlowPut {
            ufid: None,
            key: mini(&flow.key),
            mask: mini(flow.mask.as_key()),
            actions: actions(does),
            replace: false,
            zero_stats: false,
        })
    }
}

/// Sends every packet where its UDP port says, and notes what it was asked.
#[derive(Default)]
struct Switch {
    asked: AtomicUsize,
    kinds: Mutex<Vec<String>>,
}

impl UpcallHandler for Switch {
    fn upcall(
        &self,
        upcall: &Upcall<'_>,
        _now: Instant,
        back: &mut dyn FnMut(Arc<[Action]>),
    ) -> Option<NewFlow> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let kind = match upcall.kind {
            UpcallKind::Miss => "miss".to_owned(),
            UpcallKind::Action(_) => format!("action {}", upcall.packet.len()),
        };
        self.kinds.lock().unwrap().push(kind);
        let mut mask = FlowMask::new();
        mask.set_exact(slot::TP_DST);
        let to = upcall.key.get(slot::TP_DST) as u32;
        let recirc = upcall.key.get(slot::RECIRC_ID) as u32;
        let actions: Arc<[Action]> = match (upcall.kind, to, recirc) {
            (UpcallKind::Action(_), ..) => [].into(),
            (_, 99, 0) => actions("push_vlan(vid=5,pcp=0),recirc(0x7),2"),
            (_, 99, _) => actions("3"),
            (_, 98, _) => actions("userspace(pid=0),trunc(60),2,3"),
            (_, to, _) => [Action::Output(PortNo(to))].into(),
        };
        back(Arc::clone(&actions));
        Some(NewFlow::new(upcall.key, &mask, actions))
    }
}

#[test]
fn ports_get_numbers_that_tests_foresee() {
    let bed = bed();
    let ports = bed.datapath.ports();
    let ports: Vec<_> = ports
        .iter()
        .map(|p| (p.number.0, p.name.as_str(), p.kind.as_str()))
        .collect();
    let expected = [
        (0, "ovs-dummy", "dummy-internal"),
        (1, "p1", "dummy"),
        (2, "p2", "dummy"),
        (3, "p3", "dummy"),
        (100, "br0", "dummy-internal"),
    ];
    assert_eq!(ports, expected);
    let again = bed.datapath.port_add(&spec("p1", "dummy"));
    assert!(matches!(again, Err(Error::Exists(_))));
    let unknown = bed.datapath.port_add(&spec("x", "nonesuch"));
    assert!(matches!(unknown, Err(Error::System(..))), "{unknown:?}");
    bed.datapath.port_del(PortNo(1)).unwrap();
    assert!(bed.dummies.find("p1").is_none(), "the device is still open");
    assert!(bed.datapath.port_del(PortNo(1)).is_err());
    assert_eq!(bed.datapath.port_add(&spec("p1", "dummy")), Ok(PortNo(1)));
}

#[test]
fn a_miss_is_translated_once_and_then_met() {
    let bed = bed();
    let switch = Arc::new(Switch::default());
    bed.inject("p1", 2);
    assert_eq!(bed.datapath.stats().lost, 1);
    bed.datapath.set_handler(switch.clone());
    for _ in 0..3 {
        bed.inject("p1", 2);
    }
    assert_eq!(switch.asked.load(Ordering::Relaxed), 1);
    assert_eq!(bed.sent("p2"), 3);
    bed.inject("p1", 3);
    bed.inject("p3", 2);
    assert_eq!(switch.asked.load(Ordering::Relaxed), 3);
    let stats = bed.datapath.stats();
    let seen = (stats.hits, stats.misses, stats.flows, stats.masks);
    assert_eq!(seen, (2, 4, 3, 1));
    let mut flows = Vec::new();
    bed.datapath.flow_dump(&mut |flow| {
        flows.push(flow);
        true
    });
    flows.sort_by_key(|f| f.stats.packets);
    let busy = &flows[2];
    assert_eq!((busy.stats.packets, busy.stats.bytes), (2, 212));
    assert_eq!(busy.stats.used, Some(Instant::from_millis(1000)));
    assert_eq!(flows[0].stats.used, None);
    // What is removed is met no more, and what is changed is done at once.
    bed.datapath.flow_del(busy.ufid).unwrap();
    assert!(bed.datapath.flow_del(busy.ufid).is_err());
    bed.inject("p1", 2);
    assert_eq!(switch.asked.load(Ordering::Relaxed), 4);
    bed.datapath.flow_flush();
    bed.inject("p1", 2);
    assert_eq!(switch.asked.load(Ordering::Relaxed), 5);
    assert_eq!(bed.datapath.stats().flows, 1);
}

#[test]
fn recirculation_truncation_and_userspace() {
    let bed = bed();
    let switch = Arc::new(Switch::default());
    bed.datapath.set_handler(switch.clone());
    for _ in 0..2 {
        bed.inject("p1", 99);
    }
    assert_eq!((bed.sent("p2"), bed.sent("p3")), (2, 2));
    assert_eq!(switch.kinds.lock().unwrap().as_slice(), ["miss", "miss"]);
    bed.inject("p1", 98);
    assert_eq!(switch.kinds.lock().unwrap()[2..], ["miss", "action 106"]);
    let bytes = |port| {
        let stats = bed.datapath.port_stats(bed.number(port)).unwrap();
        stats.tx_bytes
    };
    assert_eq!((bytes("p2"), bytes("p3")), (2 * 110 + 60, 2 * 110 + 106));
}

#[test]
fn static_flows_and_packets_that_the_switch_sends() {
    let bed = bed();
    let flow = "recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth_type(0x0800),ipv4(frag=no)";
    let ufid = bed
        .put(flow, "set(eth(dst=02:00:00:00:00:09)),2,3")
        .unwrap();
    assert!(matches!(bed.put(flow, "3"), Err(Error::Exists(_))));
    // A dummy takes what is for others to do, and packets end there.
    let tracked = bed.put("recirc_id(0),in_port(3)", "ct(commit),2");
    assert!(tracked.is_ok() && bed.datapath.features().ct_state);
    bed.inject("p3", 1);
    assert_eq!(bed.sent("p2"), 0);
    bed.inject("p1", 1);
    assert_eq!((bed.sent("p2"), bed.sent("p3")), (1, 1));
    assert_eq!(bed.datapath.flow_get(ufid).unwrap().stats.packets, 1);
    let text = format!("in_port(2),{UDP}7)");
    let key = parse_flow(&text, &PortNames::none()).unwrap().key;
    let execute = Execute {
        packet: compose(&key, 10),
        key,
        actions: actions("1,3"),
    };
    bed.datapath.execute(execute).unwrap();
    assert_eq!((bed.sent("p1"), bed.sent("p3")), (1, 2));
}
