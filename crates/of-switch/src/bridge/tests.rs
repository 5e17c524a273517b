//! Scripts of requests and the answers that Open vSwitch 3.7.1 gives to them.
//!
//! In a script `#` is the title of what follows, `>` a request, `<` an answer to it in
//! hexadecimal, `+` milliseconds that pass.

use std::time::Duration;

use base::Instant;
use of_wire::codec::Dialect;
use of_wire::message::{
    ControllerRole, FlowMod, FlowModCommand, FlowModFlags, PacketIn, PacketInReason, PortConfig,
    PortDesc, PortFeatures, PortState, RoleMessage,
};
use of_wire::{Action, Body, ErrorCode, Message, PortNo, Version};

use super::*;
use crate::rule::RuleSpec;
use crate::tables::Change;

/// A switch without counters and queues.
struct Nothing;

impl Facts for Nothing {
    fn port_stats(&self, _: PortNo) -> Option<PortStats> {
        None
    }

    fn queue_stats(&self, _: PortNo, _: Option<u32>) -> Vec<QueueStats> {
        Vec::new()
    }

    fn queues(&self, _: PortNo) -> Vec<(u32, Option<u16>, Option<u16>)> {
        Vec::new()
    }

    fn check_match(&self, _: &FlowMask) -> Result<(), ErrorCode> {
        Ok(())
    }
    fn check_actions(&self, _: &[Action]) -> Result<(), ErrorCode> {
        Ok(())
    }
}

fn port(number: PortNo, name: &str, mac: [u8; 6]) -> PortDesc {
    PortDesc {
        port: number,
        hw_addr: mac,
        name: name.to_owned(),
        config: PortConfig::empty(),
        state: PortState::LIVE,
        curr: PortFeatures::empty(),
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        curr_speed: 0,
        max_speed: 0,
    }
}

/// A bridge with a local port, whose owner does at once what it is asked to, but for
/// barriers.
struct Lab {
    bridge: Bridge,
    now: Instant,
    outputs: Vec<Output>,
}

impl Lab {
    fn new() -> Self {
        let mut config = BridgeConfig::new("br1", 0xfedc_ba98_7654_3210);
        config.fail_mode = FailMode::Secure;
        let now = Instant::from_millis(1000);
        let mut bridge = Bridge::new(config, now);
        bridge.set_port(port(PortNo::LOCAL, "br1", [0xaa, 0x55, 0xaa, 0x55, 0, 0]));
        let mut lab = Self {
            bridge,
            now,
            outputs: Vec::new(),
        };
        lab.run();
        let version = lab.bridge.view().version();
        lab.bridge.datapath_passed(version);
        lab
    }

    /// Lets the bridge work until it has nothing more to do now.
    fn run(&mut self) {
        loop {
            self.bridge.run(self.now, &Nothing);
            while let Some(output) = self.bridge.poll_output() {
                self.outputs.push(output);
            }
            if self.bridge.next_deadline(self.now) > self.now {
                return;
            }
        }
    }

    fn connect(&mut self, kind: ConnKind, version: Version) -> ConnId {
        let id = self.bridge.open(ConnConfig::new("test", kind), self.now);
        self.bridge
            .receive(id, &[version as u8, 0, 0, 8, 0, 0, 0, 1]);
        self.run();
        assert_eq!(self.sent(id).len(), 1, "the hello");
        assert_eq!(self.bridge.conn_status(id).unwrap().version, Some(version));
        id
    }

    fn sent(&mut self, id: ConnId) -> Vec<Vec<u8>> {
        let bytes: Vec<u8> = std::iter::from_fn(|| self.bridge.poll_send(id))
            .flatten()
            .collect();
        let (messages, rest) = of_wire::codec::split(&bytes).unwrap();
        assert!(rest.is_empty());
        messages.into_iter().map(<[u8]>::to_vec).collect()
    }

    /// The bodies of what was sent.
    fn told(&mut self, id: ConnId, version: Version) -> Vec<Body> {
        let sent = self.sent(id);
        let decode = |m: Vec<u8>| Message::decode(&m, Dialect::of(version)).unwrap().body;
        sent.into_iter().map(decode).collect()
    }

    fn ask(&mut self, id: ConnId, version: Version, body: Body) {
        let request = Message::new(version, 7, body);
        self.bridge
            .receive(id, &request.encode(Dialect::of(version)));
        self.run();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |d: &[u8]| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// The entries of a long answer may come in any order.
fn in_order(answers: &[String]) -> Vec<String> {
    let mut answers = answers.to_vec();
    answers.sort();
    answers
}

fn replay(script: &str, version: Version) {
    let mut lab = Lab::new();
    let id = lab.connect(ConnKind::Service, version);
    let mut title = "";
    let mut request = String::new();
    let mut wanted = Vec::new();
    let mut wrong = Vec::new();
    for line in script.lines().chain(["#"]) {
        let (sign, rest) = line.split_at(1);
        if sign == "<" {
            wanted.push(rest.trim().to_owned());
            continue;
        }
        let got: Vec<String> = lab.sent(id).iter().map(|m| hex(m)).collect();
        if in_order(&got) != in_order(&wanted) {
            wrong.push(format!(
                "{title}\n> {request}\nwant {wanted:?}\ngot  {got:?}"
            ));
        }
        wanted.clear();
        match sign {
            "#" => title = rest.trim(),
            ">" => {
                request = rest.trim().to_owned();
                lab.bridge.receive(id, &unhex(&request));
                lab.run();
            }
            "+" => lab.now += Duration::from_millis(rest.trim().parse().unwrap()),
            _ => panic!("{line}"),
        }
        lab.run();
        let version = lab.bridge.view().version();
        lab.bridge.datapath_passed(version);
        lab.run();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn openflow_10_is_answered_as_by_the_original() {
    replay(include_str!("../../tests/golden/of10.txt"), Version::V10);
}

#[test]
fn openflow_13_is_answered_as_by_the_original() {
    replay(include_str!("../../tests/golden/of13.txt"), Version::V13);
}

fn add(in_port: u32, flags: FlowModFlags) -> Body {
    let mut flow = FlowMod::new(FlowModCommand::Add);
    flow.matching
        .set(net_flow::slot::IN_PORT, u128::from(in_port));
    flow.new_cookie = Some(0);
    flow.flags = flags;
    Body::FlowMod(Box::new(flow))
}

fn packet_in(reason: PacketInReason, in_port: u32) -> PacketInEvent {
    let mut metadata = net_flow::Match::any();
    metadata.set(net_flow::slot::IN_PORT, u128::from(in_port));
    PacketInEvent {
        packet: PacketIn {
            packet: vec![0; 60],
            total_len: 60,
            buffer_id: None,
            reason,
            table: 0,
            cookie: u64::MAX,
            metadata,
            userdata: Vec::new(),
            continuation: None,
        },
        controller_id: 0,
    }
}

#[test]
fn a_barrier_waits_for_the_datapath_and_what_follows_waits_for_it() {
    let mut lab = Lab::new();
    let v = Version::V13;
    let id = lab.connect(ConnKind::Primary, v);
    lab.ask(id, v, Body::BarrierRequest);
    assert_eq!(lab.told(id, v), [Body::BarrierReply], "nothing has changed");
    lab.outputs.clear();
    lab.ask(id, v, add(1, FlowModFlags::empty()));
    lab.ask(id, v, Body::BarrierRequest);
    lab.ask(id, v, Body::EchoRequest(vec![1]));
    assert_eq!(lab.told(id, v), []);
    let [
        Output::TablesChanged { view, changes },
        Output::AwaitDatapath { version },
    ] = &lab.outputs[..]
    else {
        panic!("{:?}", lab.outputs);
    };
    assert_eq!((view.version(), changes.len()), (*version, 1));
    let version = *version;
    lab.bridge.datapath_passed(version - 1);
    lab.run();
    assert_eq!(lab.told(id, v), []);
    lab.bridge.datapath_passed(version);
    lab.run();
    let echo = Body::EchoReply(vec![1]);
    assert_eq!(lab.told(id, v), [Body::BarrierReply, echo]);
}

#[test]
fn a_packet_out_comes_after_the_tables_that_it_is_to_meet() {
    let mut lab = Lab::new();
    let v = Version::V10;
    let id = lab.connect(ConnKind::Service, v);
    lab.outputs.clear();
    let packet = PacketOut {
        packet: vec![0; 60],
        buffer_id: None,
        metadata: packet_in(PacketInReason::Action, 3).packet.metadata,
        actions: Vec::new(),
    };
    let v10 = Dialect::of(v);
    let mut bytes = Message::new(v, 1, add(1, FlowModFlags::empty())).encode(v10);
    bytes.extend(Message::new(v, 2, Body::PacketOut(Box::new(packet))).encode(v10));
    lab.bridge.receive(id, &bytes);
    lab.run();
    assert!(matches!(
        &lab.outputs[..],
        [Output::TablesChanged { .. }, Output::PacketOut { packet, .. }]
            if packet.in_port() == PortNo(3)
    ));
}

#[test]
fn a_new_primary_makes_the_old_one_secondary() {
    let mut lab = Lab::new();
    let one = lab.connect(ConnKind::Primary, Version::V14);
    let two = lab.connect(ConnKind::Primary, Version::V10);
    let role = |role, generation_id| {
        Body::RoleRequest(RoleMessage {
            role,
            generation_id,
        })
    };
    let primary = ControllerRole::Primary;
    lab.ask(one, Version::V14, role(primary, Some(5)));
    assert_eq!(lab.told(one, Version::V14).len(), 1);
    lab.ask(two, Version::V10, role(primary, None));
    assert_eq!(lab.told(two, Version::V10).len(), 1);
    let told = lab.told(one, Version::V14);
    assert!(matches!(&told[..], [Body::RoleStatus(s)] if s.role == ControllerRole::Secondary));
    lab.ask(one, Version::V14, add(1, FlowModFlags::empty()));
    let told = lab.told(one, Version::V14);
    let secondary = Ok(ErrorCode::OfpbrcIsSecondary);
    assert!(matches!(&told[..], [Body::Error(e)] if e.code == secondary));
    lab.ask(one, Version::V14, role(primary, Some(4)));
    let told = lab.told(one, Version::V14);
    assert!(matches!(&told[..], [Body::Error(e)] if e.code == Ok(ErrorCode::OfprrfcStale)));
}

#[test]
fn removed_rules_are_told_to_who_wants_to_hear() {
    let mut lab = Lab::new();
    let v = Version::V13;
    let primary = lab.connect(ConnKind::Primary, v);
    let service = lab.connect(ConnKind::Service, v);
    let mut flow = FlowMod::new(FlowModCommand::Add);
    flow.idle_timeout = 10;
    flow.flags = FlowModFlags::SEND_FLOW_REM;
    lab.ask(service, v, Body::FlowMod(Box::new(flow)));
    lab.outputs.clear();
    assert_eq!(
        lab.bridge.next_deadline(lab.now),
        lab.now + Duration::from_secs(10)
    );
    lab.now += Duration::from_secs(10);
    lab.run();
    let told = lab.told(primary, v);
    assert!(matches!(&told[..], [Body::FlowRemoved(r)] if r.duration_sec == 10));
    assert_eq!(lab.told(service, v), []);
    let [Output::TablesChanged { changes, .. }] = &lab.outputs[..] else {
        panic!("{:?}", lab.outputs);
    };
    assert!(matches!(&changes[..], [Change::Removed(..)]));
}

#[test]
fn packets_go_to_the_controllers_that_they_are_for() {
    let mut lab = Lab::new();
    let old = lab.connect(ConnKind::Primary, Version::V10);
    let new = lab.connect(ConnKind::Primary, Version::V13);
    let service = lab.connect(ConnKind::Service, Version::V10);
    assert_eq!(lab.bridge.view().miss(0), crate::TableMiss::Controller);
    let send = |lab: &mut Lab, reason| {
        lab.bridge.packet_in(&packet_in(reason, 1), lab.now);
        [old, new, service].map(|id| lab.sent(id).len())
    };
    assert_eq!(send(&mut lab, PacketInReason::Action), [1, 1, 0]);
    assert_eq!(send(&mut lab, PacketInReason::ImplicitMiss), [1, 0, 0]);
    assert_eq!(send(&mut lab, PacketInReason::InvalidTtl), [0, 0, 0]);
    let config = of_wire::message::SwitchConfig {
        frag: 0,
        invalid_ttl_to_controller: Some(true),
        miss_send_len: 64,
    };
    lab.ask(service, Version::V10, Body::SetConfig(config));
    assert_eq!(send(&mut lab, PacketInReason::InvalidTtl), [0, 0, 1]);
    lab.ask(service, Version::V10, Body::SetControllerId(3));
    assert_eq!(send(&mut lab, PacketInReason::Action), [1, 1, 0]);
    lab.bridge.close(old, lab.now);
    lab.bridge.close(service, lab.now);
    assert_eq!(lab.bridge.view().miss(0), crate::TableMiss::Drop);
}

#[test]
fn packets_beyond_the_rate_wait_their_turn() {
    let mut lab = Lab::new();
    let config = ConnConfig {
        rate_limit: 100,
        burst_limit: 5,
        ..ConnConfig::new("test", ConnKind::Primary)
    };
    let id = lab.bridge.open(config, lab.now);
    lab.bridge.receive(id, &[4, 0, 0, 8, 0, 0, 0, 1]);
    lab.run();
    lab.sent(id);
    for _ in 0..8 {
        let event = packet_in(PacketInReason::Action, 1);
        lab.bridge.packet_in(&event, lab.now);
    }
    assert_eq!(lab.sent(id).len(), 5);
    assert_eq!(
        lab.bridge.next_deadline(lab.now),
        lab.now + Duration::from_millis(10)
    );
    lab.now += Duration::from_millis(10);
    lab.run();
    assert_eq!(lab.sent(id).len(), 1);
}

#[test]
fn ports_are_told_and_set() {
    let mut lab = Lab::new();
    let one = lab.connect(ConnKind::Primary, Version::V13);
    let two = lab.connect(ConnKind::Primary, Version::V13);
    let v = Version::V13;
    let mac = [2, 0, 0, 0, 0, 1];
    lab.bridge.set_port(port(PortNo(1), "p1", mac));
    lab.bridge.set_port(port(PortNo(1), "p1", mac));
    assert_eq!(lab.told(one, v).len(), 1);
    lab.sent(two);
    lab.outputs.clear();
    let request = of_wire::message::PortMod {
        port: PortNo(1),
        hw_addr: mac,
        config: PortConfig::PORT_DOWN | PortConfig::NO_FWD,
        mask: PortConfig::PORT_DOWN,
        advertise: PortFeatures::empty(),
    };
    lab.ask(one, v, Body::PortMod(Box::new(request)));
    assert_eq!(lab.told(one, v), [], "not told what it asked for");
    assert_eq!(lab.told(two, v).len(), 1);
    assert!(matches!(
        lab.outputs[..],
        [Output::PortConfig {
            config: PortConfig::PORT_DOWN,
            ..
        }]
    ));
    lab.bridge.remove_port(PortNo(1));
    let told = lab.told(one, v);
    assert!(matches!(&told[..], [Body::PortStatus(s)] if s.desc.name == "p1"));
}

#[test]
fn a_long_answer_waits_for_a_slow_reader() {
    let mut lab = Lab::new();
    let v = Version::V13;
    let id = lab.connect(ConnKind::Service, v);
    for n in 0..10_000 {
        let message = Message::new(v, n, add(n + 1, FlowModFlags::empty()));
        lab.bridge.receive(id, &message.encode(Dialect::of(v)));
        lab.run();
    }
    let request = of_wire::message::FlowStatsRequest {
        matching: net_flow::Match::any(),
        cookie: 0,
        cookie_mask: 0,
        out_port: PortNo::NONE,
        out_group: u32::MAX,
        table: 255,
        nicira: false,
    };
    lab.ask(id, v, Body::FlowStatsRequest(Box::new(request)));
    lab.ask(id, v, Body::BarrierRequest);
    let mut entries = 0;
    let mut rounds = 0;
    let mut last = false;
    while !last {
        rounds += 1;
        let told = lab.told(id, v);
        assert!(told.len() < 20, "bounded memory");
        for body in told {
            assert!(!last, "nothing comes before the answer's end");
            let Body::FlowStatsReply(part) = body else {
                panic!("{body:?}");
            };
            entries += part.entries.len();
            last = !part.more;
        }
        lab.run();
    }
    assert_eq!(entries, 10_000);
    assert!(rounds > 1, "not all at once");
}

#[test]
fn nonsense_ends_a_connection_and_nothing_else() {
    let mut lab = Lab::new();
    let id = lab
        .bridge
        .open(ConnConfig::new("x", ConnKind::Service), lab.now);
    lab.bridge.receive(id, &[4, 2, 0, 8, 0, 0, 0, 1]);
    lab.outputs.clear();
    lab.run();
    assert!(matches!(&lab.outputs[..], [Output::Close { conn }] if *conn == id));
    assert!(!lab.bridge.wants_input(id));
    let good = lab.connect(ConnKind::Service, Version::V10);
    lab.bridge.receive(good, &[2, 5, 0, 8, 0, 0, 0, 9]);
    lab.run();
    let sent = lab.sent(good);
    assert_eq!(hex(&sent[0]), "0201001400000009000100000205000800000009");
}

#[test]
fn a_standalone_bridge_without_controllers_switches_by_a_visible_rule() {
    let mut config = BridgeConfig::new("br0", 1);
    let now = Instant::ZERO;
    let mut bridge = Bridge::new(config.clone(), now);
    let len = |bridge: &Bridge| bridge.view().table(0).unwrap().len();
    assert_eq!(len(&bridge), 1);
    config.has_controllers = true;
    bridge.configure(config.clone(), now);
    assert_eq!(len(&bridge), 0);
    bridge.set_fail_open(true, now);
    assert_eq!(len(&bridge), 1);
    bridge.flush(now);
    assert_eq!(len(&bridge), 1);
    bridge.set_fail_open(false, now);
    assert_eq!(len(&bridge), 0);
    let remote = std::net::SocketAddrV4::new([10, 0, 0, 1].into(), 6653);
    let in_band = InBand {
        remotes: vec![remote],
        ..InBand::default()
    };
    bridge.set_in_band(in_band, now);
    bridge.flush(now);
    assert_eq!(len(&bridge), 4);
    bridge.set_in_band(InBand::default(), now);
    assert_eq!(len(&bridge), 0);
    config.has_controllers = false;
    bridge.configure(config, now);
    assert_eq!(len(&bridge), 1);
}

/// The ports that the rules of table 0 match.
fn in_ports(lab: &Lab) -> Vec<u128> {
    let table = lab.bridge.view().table(0).unwrap();
    let rules = table.rules();
    let mut ports: Vec<u128> = rules
        .map(|r| r.matching().key().get(net_flow::slot::IN_PORT))
        .collect();
    ports.sort_unstable();
    ports
}

fn bundle(lab: &mut Lab, id: ConnId, bodies: Vec<Body>) -> Vec<Body> {
    let v = Version::V14;
    let control = |kind| {
        Body::BundleControl(of_wire::message::BundleControl {
            id: 1,
            kind,
            flags: 3,
        })
    };
    lab.ask(id, v, control(0));
    for body in bodies {
        let message = Box::new(Message::new(v, 7, body));
        lab.ask(
            id,
            v,
            Body::BundleAdd {
                id: 1,
                flags: 3,
                message,
            },
        );
    }
    assert_eq!(lab.told(id, v).len(), 1, "the bundle is open");
    lab.ask(id, v, control(4));
    lab.told(id, v)
}

#[test]
fn a_bundle_is_carried_out_as_a_whole() {
    let mut lab = Lab::new();
    let id = lab.connect(ConnKind::Primary, Version::V14);
    lab.ask(id, Version::V14, add(9, FlowModFlags::SEND_FLOW_REM));
    lab.outputs.clear();
    let delete = Body::FlowMod(Box::new(FlowMod::new(FlowModCommand::Delete)));
    let one = add(1, FlowModFlags::empty());
    let told = bundle(&mut lab, id, vec![delete, one.clone(), one]);
    assert!(matches!(&told[..], [Body::FlowRemoved(_), Body::BundleControl(b)] if b.kind == 5));
    assert_eq!(in_ports(&lab), [1]);
    assert!(
        matches!(lab.outputs[..], [Output::TablesChanged { .. }]),
        "at once"
    );
}

#[test]
fn a_bundle_that_fails_leaves_everything_as_it_was() {
    let mut lab = Lab::new();
    let id = lab.connect(ConnKind::Primary, Version::V14);
    lab.ask(id, Version::V14, add(9, FlowModFlags::SEND_FLOW_REM));
    let delete = Body::FlowMod(Box::new(FlowMod::new(FlowModCommand::Delete)));
    let mut refused = FlowMod::new(FlowModCommand::Add);
    refused.table = 254;
    let refused = Body::FlowMod(Box::new(refused));
    let packet = PacketOut {
        packet: vec![0; 60],
        buffer_id: None,
        metadata: packet_in(PacketInReason::Action, 3).packet.metadata,
        actions: Vec::new(),
    };
    for with_packet in [false, true] {
        lab.outputs.clear();
        let mut bodies = vec![delete.clone(), add(9, FlowModFlags::empty())];
        if with_packet {
            bodies.push(Body::PacketOut(Box::new(packet.clone())));
        }
        bodies.extend([add(1, FlowModFlags::empty()), refused.clone()]);
        let told = bundle(&mut lab, id, bodies);
        let codes: Vec<_> = told
            .iter()
            .map(|body| match body {
                Body::Error(error) => error.code,
                _ => panic!("{body:?}"),
            })
            .collect();
        let wanted = [ErrorCode::OfpbrcEperm, ErrorCode::OfpbfcMsgFailed].map(Ok);
        assert_eq!(codes, wanted);
        assert_eq!(in_ports(&lab), [9]);
        let table = lab.bridge.view().table(0).unwrap();
        let rule = table.rules().next().unwrap();
        assert!(!rule.is_removed() && rule.flags == FlowModFlags::SEND_FLOW_REM);
        let sent = |output: &Output| matches!(output, Output::PacketOut { .. });
        assert!(!lab.outputs.iter().any(sent));
    }
}

#[test]
fn an_untouched_bundle_is_dropped() {
    let mut lab = Lab::new();
    let v = Version::V14;
    let id = lab.connect(ConnKind::Primary, v);
    let control = |kind| {
        Body::BundleControl(of_wire::message::BundleControl {
            id: 1,
            kind,
            flags: 2,
        })
    };
    lab.ask(id, v, control(0));
    lab.told(id, v);
    assert_eq!(
        lab.bridge.next_deadline(lab.now),
        lab.now + Duration::from_secs(10)
    );
    lab.now += Duration::from_secs(10);
    lab.run();
    let told = lab.told(id, v);
    assert!(matches!(&told[..], [Body::Error(e)] if e.code == Ok(ErrorCode::OfpbfcTimeout)));
    lab.ask(id, v, control(4));
    let told = lab.told(id, v);
    assert!(matches!(&told[..], [Body::Error(e)] if e.code == Ok(ErrorCode::OfpbfcBadId)));
}

/// Counters that can be had from some time on.
struct Busy(Instant);

impl Facts for Busy {
    fn update_counters(&self) -> Result<(), Instant> {
        Err(self.0)
    }

    fn port_stats(&self, port: PortNo) -> Option<PortStats> {
        Nothing.port_stats(port)
    }

    fn queue_stats(&self, port: PortNo, queue: Option<u32>) -> Vec<QueueStats> {
        Nothing.queue_stats(port, queue)
    }

    fn queues(&self, port: PortNo) -> Vec<(u32, Option<u16>, Option<u16>)> {
        Nothing.queues(port)
    }

    fn check_actions(&self, actions: &[Action]) -> Result<(), ErrorCode> {
        Nothing.check_actions(actions)
    }

    fn check_match(&self, mask: &FlowMask) -> Result<(), ErrorCode> {
        Nothing.check_match(mask)
    }
}

#[test]
fn no_rule_expires_while_nobody_knows_whether_it_was_used() {
    let mut lab = Lab::new();
    let spec = RuleSpec {
        table: 0,
        priority: 1,
        matching: net_flow::Match::any(),
        cookie: 0,
        actions: Vec::new().into(),
        flags: FlowModFlags::empty(),
        importance: 0,
        idle_timeout: 1,
        hard_timeout: 0,
    };
    lab.bridge.put_rule(&spec, lab.now);
    let rules = |lab: &Lab| lab.bridge.view().table(0).map_or(0, |t| t.len());
    lab.now += Duration::from_secs(2);
    let later = lab.now + Duration::from_millis(400);
    lab.bridge.run(lab.now, &Busy(later));
    assert_eq!(rules(&lab), 1);
    assert_eq!(lab.bridge.next_deadline(lab.now), later);
    lab.now = later;
    lab.run();
    assert_eq!(rules(&lab), 0);
}
