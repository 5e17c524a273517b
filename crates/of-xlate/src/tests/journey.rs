//! Packets on their way through a datapath that has the flows of their translations: what a
//! packet that meets flows made for others comes to is what it comes to alone.

use std::borrow::Cow;

use dp_lang::{Effects, InFlight, Missing, Userspace};
use net_flow::MiniKey;
use net_flow::compose::compose;
use net_packet::Packet;
use of_wire::action::{SetField, SetForm};
use proptest::prelude::*;

use super::property::{FIELDS, any_action, consistent, matching};
use super::*;

/// Tags that are looked at.
const TAGS: u8 = 2;

/// A flow in the datapath.
#[derive(Clone)]
pub(super) struct Installed {
    pub(super) key: FlowKey,
    pub(super) mask: FlowMask,
    actions: Vec<dp_lang::Action>,
    pub(super) lookups: Vec<crate::Lookup>,
    _frozen: Vec<Arc<crate::FrozenState>>,
}

/// What became of a packet: what left by which port, and the hand-overs to the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    sent: Vec<(u32, Vec<u8>)>,
    handed_over: Vec<(u8, Vec<u8>)>,
}

#[derive(Default)]
struct Run {
    fate: Fate,
    again: Vec<(Packet, FlowKey)>,
}

impl Effects for Run {
    fn output(&mut self, port: dp_lang::PortNo, packet: Packet) {
        self.fate.sent.push((port.0, packet.data().to_vec()));
    }
    fn userspace(&mut self, to: &Userspace, flight: InFlight<'_>, _rest: &[dp_lang::Action]) {
        let reason = match &to.cookie {
            Some(dp_lang::UserCookie::Controller(c)) => c.reason,
            _ => 0,
        };
        let bytes = flight.packet.data().to_vec();
        self.fate.handed_over.push((reason, bytes));
    }
    fn recirculate(&mut self, mut flight: InFlight<'_>) {
        let key = flight.fresh_key(TAGS);
        self.again.push((flight.packet, key));
    }
    fn random(&mut self) -> u32 {
        0
    }
    fn hash(&mut self, key: &FlowKey, _algorithm: u32, basis: u32) -> u32 {
        key.get(slot::NW_SRC) as u32 ^ basis
    }
    fn track(
        &mut self,
        ct: &dp_lang::action::Ct,
        flight: &mut InFlight<'_>,
    ) -> Result<(), Missing> {
        track(ct, &mut flight.key);
        Ok(())
    }
    fn missing(&mut self, missing: Missing) {
        panic!("{missing}");
    }
}

/// A connection tracker that makes the state up from the packet's source.
fn track(ct: &dp_lang::action::Ct, key: &mut Cow<'_, FlowKey>) {
    let key = key.to_mut();
    let odd = key.get(slot::NW_SRC) & 1;
    key.set(slot::CT_STATE, 0x20 | 1 << odd);
    key.set(slot::CT_ZONE, u128::from(ct.zone));
    // All connections were begun by one host.
    key.set(slot::CT_NW_PROTO, key.get(slot::NW_PROTO).max(1));
    key.set(slot::CT_NW_SRC, 0x0a00_0002);
    key.set(slot::CT_NW_DST, key.get(slot::NW_DST));
    key.set(slot::CT_TP_DST, key.get(slot::TP_SRC));
    if let Some((mark, mask)) = ct.mark {
        key.set_masked(slot::CT_MARK, u128::from(mark), u128::from(mask));
    }
}

/// A packet with the header fields of `key`, as the datapath sees it.
fn packet(key: &FlowKey) -> (Packet, FlowKey) {
    let mut packet = Packet::from_frame(&compose(key, 20));
    let mut seen = FlowKey::new();
    let port = view_port(key.get(slot::IN_PORT) as u32);
    seen.set(slot::IN_PORT, u128::from(port));
    net_flow::extract(&mut packet, &mut seen, TAGS);
    (packet, seen)
}

fn view_port(of_port: u32) -> u32 {
    100 + of_port
}

/// Sends a packet into a datapath with `flows`, to which the switch adds.
pub(super) fn send(view: &SwitchView, flows: &mut Vec<Installed>, key: &FlowKey) -> Fate {
    let mut waiting = vec![packet(key)];
    let mut fate = Fate::default();
    let mut passes = 0;
    while let Some((packet, key)) = waiting.pop() {
        passes += 1;
        if passes > 50 {
            break;
        }
        let known = flows.iter().find(|f| f.key.equal_under(&key, &f.mask));
        let actions = match known {
            Some(flow) => flow.actions.clone(),
            None => {
                let flow = install(view, &key, &packet);
                flows.push(flow.clone());
                flow.actions
            }
        };
        let mut run = Run::default();
        dp_lang::execute(&actions, packet, &key, &mut run);
        fate.sent.extend(run.fate.sent);
        fate.handed_over.extend(run.fate.handed_over);
        waiting.extend(run.again.into_iter().rev());
    }
    fate
}

fn install(view: &SwitchView, key: &FlowKey, packet: &Packet) -> Installed {
    let (bridge, located) = view.locate(key).expect("a port");
    let input = Input {
        bridge,
        key: &located,
        packet: Some(packet.data()),
        actions: None,
        resume: None,
        purpose: Purpose::Upcall,
        now: Instant::ZERO,
    };
    let translation = translate(view, &input, None);
    let mut mask = translation.mask.clone();
    mask.set_exact(slot::IN_PORT);
    mask.set_exact(slot::RECIRC_ID);
    Installed {
        key: key.clone(),
        mask,
        actions: translation.actions,
        lookups: translation.dependencies.lookups,
        _frozen: translation.frozen,
    }
}

fn load(field: net_flow::Field, value: u128) -> Action {
    Action::SetField(Box::new(SetField {
        field,
        value,
        mask: field.full_mask(),
        form: SetForm::SetField,
        flow_has_vlan: false,
    }))
}

fn track_in(table: Option<u8>, zone: u8, actions: Vec<Action>) -> Action {
    Action::Ct(Box::new(of_wire::action::Ct {
        commit: !actions.is_empty(),
        force: false,
        zone: of_wire::action::CtZone::Constant(u16::from(zone)),
        table,
        alg: 0,
        actions,
    }))
}

/// Actions of all kinds, many of which freeze.
fn any_step() -> impl Strategy<Value = Action> {
    let freezing = (0..20u8, 0..3u8).prop_map(|(kind, n)| match kind {
        14..=16 => track_in(Some(n), n, Vec::new()),
        17 => track_in(None, 0, vec![load(net_flow::Field::CtMark, u128::from(n))]),
        18 => Action::CtClear,
        19 => Action::Resubmit(Resubmit {
            in_port: PortNo::IN_PORT,
            table: n,
            with_ct_orig: true,
            plain: false,
        }),
        0..=2 => Action::DebugRecirc,
        3 => Action::Clone(vec![Action::DebugRecirc, output(PortNo(u32::from(n) + 1))]),
        4 => Action::Clone(vec![load(net_flow::Field::IpTtl, 9), Action::DebugRecirc]),
        5 => Action::PushMpls(0x8847),
        6 => Action::PopMpls(0x0800),
        7 => Action::PopMpls(0x8847),
        8 => Action::SetMplsLabel(u32::from(n)),
        9 => Action::SetMplsTtl(n),
        10 => Action::DecMplsTtl,
        11 => load(net_flow::Field::Reg0, u128::from(n)),
        12 => load(net_flow::Field::Metadata, u128::from(n)),
        _ => Action::StackPop(net_flow::Subfield::whole(net_flow::Field::Reg0)),
    });
    prop_oneof![2 => any_action(), 2 => freezing]
}

type Parts = (
    u8,
    u8,
    Vec<(usize, usize, u8)>,
    Option<(u8, u8)>,
    Vec<Action>,
);

/// Bridge, table, match, registers to match, actions.
fn any_rule() -> impl Strategy<Value = Parts> {
    let part = (0..FIELDS.len(), 0usize..3, any::<u8>());
    (
        prop_oneof![3 => Just(0u8), 1 => Just(1)],
        0u8..3,
        prop::collection::vec(part, 0..3),
        prop::option::weighted(0.4, (0u8..6, 0u8..3)),
        prop::collection::vec(any_step(), 0..5),
    )
}

fn spec((_, table, parts, register, actions): &Parts, priority: i32) -> Spec {
    let mut matching = matching(parts);
    if let Some((which, value)) = register {
        let place = [
            slot::reg(0),
            slot::METADATA,
            slot::MPLS_LSE.part(12, 20),
            slot::CT_STATE.part(0, 2),
            slot::CT_ZONE,
            slot::CT_MARK,
        ][usize::from(*which)];
        matching.set(place, u128::from(*value));
    }
    let swaps = |action: &Action| matches!(action, Action::Resubmit(a) if a.with_ct_orig);
    if actions.iter().any(swaps) {
        // As such an action demands.
        matching.set_masked(slot::CT_STATE, 0x20, 0x30);
        matching.set(slot::ETH_TYPE, 0x0800);
    }
    (*table, priority, matching, actions.clone())
}

/// Two bridges that port 3 of the first and port 1 of the second join.
fn two_bridges(one: &[Spec], two: &[Spec]) -> SwitchView {
    let (mut one, mut two) = (bridge(1, 3, one), bridge(2, 3, two));
    for (br, n, peer, far) in [(&mut one, 3, 2, 1), (&mut two, 1, 1, 3)] {
        port(br, n, |p| {
            p.datapath = None;
            p.patch = Some(Patch {
                bridge: BridgeId(peer),
                port: PortNo(far),
                counters: Arc::default(),
            });
        });
    }
    switch(vec![one, two])
}

fn split(rules: &[Parts]) -> [Vec<Spec>; 2] {
    let of = |bridge: u8| {
        let numbered = rules.iter().zip(0..);
        let own = numbered.filter(|(rule, _)| rule.0 == bridge);
        own.map(|(rule, n)| spec(rule, n)).collect()
    };
    [of(0), of(1)]
}

/// A packet that came in by port 1 or 2, perhaps with labels.
fn any_packet() -> impl Strategy<Value = FlowKey> {
    let seeds = prop::collection::vec(any::<u8>(), FIELDS.len());
    let stack = prop::collection::vec((0u32..3, 0u32..3), 1..4);
    (seeds, prop::option::weighted(0.3, stack)).prop_map(|(seeds, stack)| {
        let mut key = consistent(&seeds);
        key.set(slot::IN_PORT, key.get(slot::IN_PORT) % 2 + 1);
        if let Some(stack) = stack {
            key.set(slot::ETH_TYPE, 0x8847);
            let last = stack.len() - 1;
            for (n, (label, ttl)) in stack.into_iter().enumerate() {
                let bottom = u32::from(n == last) << 8;
                let entry = label << 12 | bottom | ttl;
                key.set(crate::mpls::ENTRIES[n], u128::from(entry));
            }
        }
        key
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::cases(1500)))]

    #[test]
    fn flows_made_for_others_treat_a_packet_as_its_own_would(
        rules in prop::collection::vec(any_rule(), 1..12),
        packets in prop::collection::vec(any_packet(), 6),
    ) {
        let [one, two] = split(&rules);
        let view = two_bridges(&one, &two);
        let mut flows = Vec::new();
        for key in &packets {
            let met = send(&view, &mut flows, key);
            let alone = send(&view, &mut Vec::new(), key);
            prop_assert_eq!(met, alone, "{:?}", key);
        }
    }

    /// A rule that no lookup of a packet's flows could have met changes nothing of what
    /// becomes of packets that meet only these flows.
    #[test]
    fn a_rule_that_no_lookup_could_meet_changes_no_journey(
        rules in prop::collection::vec(any_rule(), 1..10),
        new in any_rule(),
        priority in 0i32..12,
        packets in prop::collection::vec(any_packet(), 4),
    ) {
        let [one, two] = split(&rules);
        let view = two_bridges(&one, &two);
        let mut flows = Vec::new();
        let fates: Vec<Fate> = packets.iter().map(|key| send(&view, &mut flows, key)).collect();
        let id = BridgeId(u64::from(new.0) + 1);
        let rule = spec(&new, priority);
        let taken = |specs: &[Spec]| {
            specs.iter().any(|(t, p, m, _)| (*t, *p, m) == (rule.0, rule.1, &rule.2))
        };
        prop_assume!(!taken(if new.0 == 0 { &one } else { &two }));
        let is_met = |flow: &Installed| {
            let (key, mask) = (MiniKey::new(&flow.key), MiniKey::new(flow.mask.as_key()));
            flow.lookups.iter().any(|lookup| {
                lookup.bridge == id && lookup.table == rule.0 && rule.1 >= lookup.priority
                    && lookup.may_match(rule.2.key(), rule.2.mask().iter(), &key, &mask)
            })
        };
        if !flows.iter().any(is_met) {
            let [mut one, mut two] = [one, two];
            if new.0 == 0 { one.push(rule) } else { two.push(rule) }
            let changed = two_bridges(&one, &two);
            for (key, fate) in packets.iter().zip(fates) {
                prop_assert_eq!(send(&changed, &mut Vec::new(), key), fate);
            }
        }
    }
}

#[test]
fn a_packet_goes_on_in_the_bridge_and_with_the_state_that_it_had() {
    let reg = |n| Match::any().set(slot::reg(0), n).clone();
    let one = [(
        0,
        0,
        everything(),
        vec![
            Action::Clone(vec![
                load(net_flow::Field::Reg0, 7),
                Action::DebugRecirc,
                output(PortNo(3)),
            ]),
            output(PortNo(2)),
        ],
    )];
    let two = [
        (
            0,
            0,
            everything(),
            vec![
                load(net_flow::Field::Reg0, 5),
                Action::WriteActions(vec![output(PortNo(3))]),
                resubmit(1),
            ],
        ),
        (
            1,
            0,
            everything(),
            vec![
                Action::SetEthDst([2, 0, 0, 0, 0, 9]),
                Action::DebugRecirc,
                resubmit(2),
            ],
        ),
        (2, 1, reg(5), vec![output(PortNo(2))]),
    ];
    let view = two_bridges(&one, &two);
    let mut flows = Vec::new();
    let fate = send(&view, &mut flows, &frame(1));
    let ports: Vec<u32> = fate.sent.iter().map(|(port, _)| *port).collect();
    // The rest of the first bridge's list, then the second bridge's, then its action set.
    assert_eq!(ports, [102, 202, 203]);
    let texts: Vec<String> = flows
        .iter()
        .map(|f| format_actions(&f.actions, &PortNames::none()))
        .collect();
    assert_eq!(
        texts,
        [
            "recirc(0x1),102",
            "set(eth(dst=02:00:00:00:00:09)),recirc(0x2)",
            "202,203"
        ]
    );
}

#[test]
fn a_recirculated_packet_without_state_is_dropped() {
    let view = switch(vec![bridge(
        1,
        3,
        &[(0, 0, everything(), vec![output(PortNo(2))])],
    )]);
    let mut key = frame(1);
    key.set(slot::RECIRC_ID, 99);
    let result = run(&view, &key);
    assert_eq!(
        result.error,
        Some(crate::XlateError::NoRecirculationContext)
    );
    assert_eq!(actions(&result), "drop");
    assert_eq!(
        view.locate(&key).expect_err("no state").to_string(),
        "no recirculation data for recirc_id 0x63"
    );
}
