//! Translations of small bridges.

mod dependencies;
mod golden;
mod groups;
mod journey;
mod mirrors;
mod property;
mod tunnels;

use std::collections::HashMap;
use std::sync::Arc;

use base::Instant;
use dp_lang::Features;
use dp_lang::text::{PortNames, format_actions};
use net_flow::{FlowKey, FlowMask, Match, PortNo, slot};
use net_proto::mac_learning::MacTable;
use of_switch::RuleSpec;
use of_switch::tables::Tables;
use of_wire::Action;
use of_wire::action::{Output, Resubmit};
use of_wire::message::FlowModFlags;

use crate::{
    BridgeId, BridgeView, Bundle, Input, Patch, Port, Purpose, SwitchView, TraceNames, Translation,
    VlanMode, trace, translate,
};

/// A rule: table, priority, match, actions.
type Spec = (u8, i32, Match, Vec<Action>);

fn output(port: PortNo) -> Action {
    Action::Output(Output {
        port,
        max_len: u16::MAX,
    })
}

fn resubmit(table: u8) -> Action {
    Action::Resubmit(Resubmit {
        in_port: PortNo::IN_PORT,
        table,
        with_ct_orig: false,
        plain: false,
    })
}

fn rule_spec(table: u8, priority: i32, matching: &Match, actions: &[Action]) -> RuleSpec {
    RuleSpec {
        table,
        priority,
        matching: matching.clone(),
        cookie: 0,
        actions: actions.into(),
        flags: FlowModFlags::default(),
        importance: 0,
        idle_timeout: 0,
        hard_timeout: 0,
    }
}

/// A bridge with ports 1 to `ports`, each a bundle of its own; datapath ports are numbered
/// from `100 * id`.
fn bridge(id: u64, ports: u32, rules: &[Spec]) -> BridgeView {
    let specs = rules.iter().map(|(t, p, m, a)| rule_spec(*t, *p, m, a));
    bridge_of(id, ports, &specs.collect::<Vec<_>>())
}

fn bridge_of(id: u64, ports: u32, rules: &[RuleSpec]) -> BridgeView {
    let mut tables = Tables::new();
    let mut changes = Vec::new();
    for spec in rules {
        tables.put(spec, Instant::ZERO, &mut changes);
    }
    let mut bridge = BridgeView::new(
        BridgeId(id),
        &format!("br{id}"),
        tables.publish(),
        Arc::new(MacTable::new()),
    );
    for n in 1..=ports {
        let number = dp_lang::PortNo(100 * id as u32 + n);
        let mut port = Port::new(PortNo(n), &format!("p{n}"), Some(number));
        port.bundle = Some(n);
        Arc::make_mut(&mut bridge.ports).insert(PortNo(n), Arc::new(port));
        let bundle = Bundle::new(n, &format!("p{n}"), PortNo(n));
        Arc::make_mut(&mut bridge.bundles).push(Arc::new(bundle));
    }
    bridge
}

fn bundle(bridge: &mut BridgeView, n: usize, change: impl FnOnce(&mut Bundle)) {
    let bundles = Arc::make_mut(&mut bridge.bundles);
    change(Arc::make_mut(&mut bundles[n - 1]));
}

fn port(bridge: &mut BridgeView, n: u32, change: impl FnOnce(&mut Port)) {
    let ports = Arc::make_mut(&mut bridge.ports);
    change(Arc::make_mut(ports.get_mut(&PortNo(n)).expect("port")));
}

fn switch(bridges: Vec<BridgeView>) -> SwitchView {
    let mut ports = HashMap::new();
    for bridge in &bridges {
        for port in bridge.ports.values() {
            if let Some(number) = port.datapath {
                ports.insert(number, (bridge.id, port.number));
            }
        }
    }
    SwitchView {
        version: 1,
        bridges: bridges.into_iter().map(|b| (b.id, Arc::new(b))).collect(),
        datapath_ports: Arc::new(ports),
        features: Features {
            recirc: true,
            ct_state: true,
            ct_clear: true,
            check_pkt_len: true,
            clone: true,
            max_hash_algorithm: 1,
            ..Features::default()
        },
        ..SwitchView::default()
    }
}

/// An Ethernet frame of no known type that came in by port `n`.
fn frame(n: u32) -> FlowKey {
    let mut key = FlowKey::new();
    key.set(slot::IN_PORT, u128::from(n));
    key.set(slot::ETH_SRC, 0x5054_0000_0001);
    key.set(slot::ETH_DST, 0x5054_0000_0002);
    key.set(slot::ETH_TYPE, 0x1234);
    key
}

fn run(view: &SwitchView, key: &FlowKey) -> Translation {
    let input = Input {
        bridge: BridgeId(1),
        key,
        packet: Some(&[]),
        actions: None,
        resume: None,
        purpose: Purpose::Upcall,
        now: Instant::ZERO,
    };
    translate(view, &input, None)
}

fn actions(translation: &Translation) -> String {
    format_actions(&translation.actions, &PortNames::none())
}

fn everything() -> Match {
    Match::any()
}

fn looking(key: &FlowKey) -> Input<'_> {
    Input {
        bridge: BridgeId(1),
        key,
        packet: None,
        actions: None,
        resume: None,
        purpose: Purpose::Trace,
        now: Instant::ZERO,
    }
}

fn traced(view: &SwitchView, key: &FlowKey) -> String {
    let names = TraceNames {
        ports: &PortNames::none(),
        openflow: &net_flow::Names::default(),
    };
    trace(view, &looking(key), names, &[]).text
}

#[test]
fn normal_floods_learns_and_forwards() {
    let view = switch(vec![bridge(
        1,
        3,
        &[(0, 0, everything(), vec![output(PortNo::NORMAL)])],
    )]);
    let first = run(&view, &frame(1));
    assert_eq!(actions(&first), "102,103");
    for effect in &first.effects {
        effect.apply(1, 60, Instant::ZERO);
    }
    let mut back = frame(2);
    back.set(slot::ETH_SRC, 0x5054_0000_0002);
    back.set(slot::ETH_DST, 0x5054_0000_0001);
    assert_eq!(actions(&run(&view, &back)), "101");
    let rule = view.bridges[&BridgeId(1)].tables.table(0).expect("table");
    let counts = rule.rules().next().expect("rule").counts();
    assert_eq!((counts.packets, counts.bytes), (1, 60));
}

#[test]
fn a_packet_to_its_own_source_sees_what_it_taught() {
    let view = switch(vec![bridge(
        1,
        3,
        &[(0, 0, everything(), vec![output(PortNo::NORMAL)])],
    )]);
    let mut key = frame(1);
    key.set(slot::ETH_DST, 0x5054_0000_0001);
    assert_eq!(actions(&run(&view, &key)), "drop");
}

#[test]
fn access_ports_and_trunks_tag_and_untag() {
    let mut br = bridge(1, 3, &[(0, 0, everything(), vec![output(PortNo::NORMAL)])]);
    bundle(&mut br, 1, |b| {
        b.vlan_mode = VlanMode::Access;
        b.tag = 10;
    });
    bundle(&mut br, 3, |b| {
        b.vlan_mode = VlanMode::NativeUntagged;
        b.tag = 10;
    });
    let view = switch(vec![br]);
    assert_eq!(
        actions(&run(&view, &frame(1))),
        "push_vlan(vid=10,pcp=0),102,pop_vlan,103"
    );
}

#[test]
fn reserved_addresses_are_forwarded_on_demand_only() {
    let mut br = bridge(1, 2, &[(0, 0, everything(), vec![output(PortNo::NORMAL)])]);
    let mut key = frame(1);
    key.set(slot::ETH_DST, 0x0180_c200_0000);
    assert_eq!(actions(&run(&switch(vec![br.clone()]), &key)), "drop");
    br.forward_bpdu = true;
    assert_eq!(actions(&run(&switch(vec![br]), &key)), "102");
}

#[test]
fn patch_ports_join_bridges() {
    let mut one = bridge(
        1,
        2,
        &[(
            0,
            0,
            everything(),
            vec![output(PortNo(2)), output(PortNo(1))],
        )],
    );
    let mut two = bridge(2, 2, &[(0, 0, everything(), vec![output(PortNo(2))])]);
    for (br, n, peer, far) in [(&mut one, 2, 2, 1), (&mut two, 1, 1, 2)] {
        port(br, n, |p| {
            p.datapath = None;
            p.patch = Some(Patch {
                bridge: BridgeId(peer),
                port: PortNo(far),
                counters: Arc::default(),
            });
        });
    }
    let view = switch(vec![one, two]);
    let key = frame(1);
    let result = run(&view, &key);
    assert_eq!(actions(&result), "202");
    for effect in &result.effects {
        effect.apply(2, 120, Instant::ZERO);
    }
    let counted = |id, n| {
        let port = view.port(BridgeId(id), PortNo(n)).expect("port");
        port.patch.as_ref().expect("patch").counters.read()
    };
    assert_eq!(counted(1, 2), [0, 0, 2, 120]);
    assert_eq!(counted(2, 1), [2, 120, 0, 0]);
    let text = traced(&view, &key);
    assert!(
        text.contains("\n    bridge(\"br2\")\n    -------------\n         0. priority 0\n            output:2\n"),
        "{text}"
    );
}

#[test]
fn endless_resubmits_end() {
    let view = switch(vec![bridge(
        1,
        1,
        &[(0, 0, everything(), vec![resubmit(0)])],
    )]);
    let result = run(&view, &frame(1));
    assert_eq!(result.error, Some(crate::XlateError::RecursionTooDeep));
    assert_eq!(actions(&result), "drop");
    assert!(
        result.remarks[0]
            .text
            .starts_with("over max translation depth 64 on bridge br1 while processing in_port=1,")
    );
    let many: Vec<Spec> = (0..64)
        .map(|t| (t, 0, everything(), vec![resubmit(t + 1), resubmit(t + 1)]))
        .collect();
    let view = switch(vec![bridge(1, 1, &many)]);
    let result = run(&view, &frame(1));
    assert_eq!(result.error, Some(crate::XlateError::TooManyResubmits));
}

#[test]
fn deep_tables_need_no_native_stack() {
    let rules: Vec<Spec> = (0..253)
        .map(|t| {
            let mut actions = vec![resubmit(t + 1)];
            if t == 252 {
                actions = vec![output(PortNo(1)), resubmit(0)];
            }
            (t, 0, everything(), actions)
        })
        .collect();
    let view = switch(vec![bridge(1, 2, &rules)]);
    let result = run(&view, &frame(2));
    assert_eq!(result.error, Some(crate::XlateError::TooManyResubmits));
}

#[test]
fn a_trace_reads_like_the_originals() {
    let mut m = Match::any();
    m.set(slot::IN_PORT, 1);
    let view = switch(vec![bridge(
        1,
        2,
        &[
            (0, 5, m, vec![resubmit(1), output(PortNo(7))]),
            (1, 0, everything(), vec![output(PortNo(2))]),
        ],
    )]);
    let text = traced(&view, &frame(1));
    let tail = text.split_once("bridge(").expect("bridge").1;
    assert_eq!(
        tail,
        "\"br1\")\n-------------\n 0. in_port=1, priority 5\n    resubmit(,1)\n     1. priority 0\n\
         \x20           output:2\n    output:7\n     >> Nonexistent output port\n\n\
         Final flow: unchanged\n\
         Megaflow: recirc_id=0,eth,in_port=1,dl_type=0x1234\n\
         Datapath actions: 102"
    );
}

#[test]
fn a_tag_that_comes_out_as_it_was_matters_as_a_whole() {
    let rules = [(
        0,
        0,
        everything(),
        vec![Action::StripVlan { pop: false }, output(PortNo::NORMAL)],
    )];
    let mut br = bridge(1, 2, &rules);
    bundle(&mut br, 1, |b| {
        b.vlan_mode = VlanMode::Access;
        b.tag = 5;
    });
    let view = switch(vec![br]);
    let mut key = frame(1);
    key.set(slot::VLAN_TPID, 0x8100);
    key.set(slot::VLAN_TCI, 0x1005);
    let result = run(&view, &key);
    assert_eq!(actions(&result), "102");
    assert_eq!(result.mask.get(slot::VLAN_TCI), 0xffff);
}
