use std::time::Duration;

use net_flow::{Field, FlowKey, FlowMask, Match, PortNo, slot};
use of_wire::action::Output;
use of_wire::message::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason};
use of_wire::{Action, ErrorCode, Subfield, Version};
use proptest::prelude::*;

use super::*;
use crate::tables::flow_mod::FlowModRules;

const OF10: FlowModRules = FlowModRules::of_version(Version::V10);
const OF13: FlowModRules = FlowModRules::of_version(Version::V13);

fn at(secs: u64) -> Instant {
    Instant::from_millis(secs * 1000)
}

fn output(port: u32) -> Vec<Action> {
    vec![Action::Output(Output {
        port: PortNo(port),
        max_len: 0,
    })]
}

fn in_port(port: u32) -> Match {
    let mut matching = Match::any();
    matching.set(slot::IN_PORT, u128::from(port));
    matching
}

fn add(matching: Match, out: u32) -> FlowMod {
    FlowMod {
        matching,
        new_cookie: Some(0),
        actions: output(out),
        ..FlowMod::new(FlowModCommand::Add)
    }
}

/// The ports that the rules of table 0 match, in rising order.
fn ports(tables: &Tables) -> Vec<u128> {
    let rules = tables.tables[0].view.rules();
    let mut ports: Vec<u128> = rules
        .map(|r| r.matching().key().get(slot::IN_PORT))
        .collect();
    ports.sort_unstable();
    ports
}

#[test]
fn a_published_version_does_not_change() {
    let mut tables = Tables::new();
    tables.apply(&add(in_port(1), 2), OF13, at(0)).unwrap();
    let one = tables.publish();
    let delete = FlowMod::new(FlowModCommand::Delete);
    let changes = tables.apply(&delete, OF13, at(1)).unwrap();
    assert!(matches!(
        changes[..],
        [Change::Removed(_, FlowRemovedReason::Delete)]
    ));
    let two = tables.publish();
    let mut key = FlowKey::new();
    key.set(slot::IN_PORT, 1);
    let mut mask = FlowMask::new();
    let rule = one.lookup(0, &key, &mut mask).unwrap();
    assert_eq!(rule.actions[..], output(2)[..]);
    assert!(rule.is_removed());
    assert_eq!(mask.get(slot::IN_PORT), slot::IN_PORT.max());
    assert!(two.lookup(0, &key, &mut mask).is_none());
    assert_eq!((one.version(), two.version()), (1, 2));
    assert_eq!(tables.publish().version(), 2);
}

#[test]
fn counters_outlive_a_modification_and_versions_decide_on_replacement() {
    for (rules, kept) in [(OF10, 0), (OF13, 3)] {
        let mut tables = Tables::new();
        tables.apply(&add(in_port(1), 2), rules, at(0)).unwrap();
        let rule = tables.select(&RuleFilter::all()).remove(0);
        rule.count(3, 300, at(5));
        let modify = FlowMod {
            command: FlowModCommand::Modify,
            new_cookie: None,
            ..add(Match::any(), 7)
        };
        tables.apply(&modify, rules, at(6)).unwrap();
        let rule = tables.select(&RuleFilter::all()).remove(0);
        assert_eq!(rule.actions[..], output(7)[..]);
        let counts = rule.counts();
        assert_eq!((counts.packets, counts.bytes, counts.used), (3, 300, at(5)));
        assert_eq!((rule.created, rule.modified), (at(0), at(6)));
        tables.apply(&add(in_port(1), 2), rules, at(8)).unwrap();
        let rule = tables.select(&RuleFilter::all()).remove(0);
        assert_eq!((rule.counts().packets, rule.created), (kept, at(8)));
    }
}

#[test]
fn rules_may_ask_not_to_be_counted() {
    let mut tables = Tables::new();
    let flags = FlowModFlags::NO_PKT_COUNTS | FlowModFlags::CHECK_OVERLAP;
    let flow = FlowMod {
        flags,
        ..add(in_port(1), 2)
    };
    tables.apply(&flow, OF13, at(0)).unwrap();
    let rule = tables.select(&RuleFilter::all()).remove(0);
    rule.count(1, 60, at(1));
    assert_eq!((rule.counts().packets, rule.counts().bytes), (0, 60));
    assert_eq!(rule.flags, FlowModFlags::NO_PKT_COUNTS);
}

#[test]
fn an_overlap_is_refused_but_not_a_replacement() {
    let mut tables = Tables::new();
    tables.apply(&add(in_port(1), 2), OF13, at(0)).unwrap();
    let mut wider = add(Match::any(), 2);
    wider.flags = FlowModFlags::CHECK_OVERLAP;
    let refused = tables.apply(&wider, OF13, at(0)).unwrap_err();
    assert_eq!(refused, ErrorCode::OfpfmfcOverlap);
    wider.priority = 5;
    tables.apply(&wider, OF13, at(0)).unwrap();
    let mut same = add(in_port(1), 3);
    same.flags = FlowModFlags::CHECK_OVERLAP;
    tables.apply(&same, OF13, at(0)).unwrap();
    assert_eq!(tables.len(), 2);
}

#[test]
fn a_modification_adds_only_in_old_versions_and_without_a_cookie() {
    let mut modify = add(in_port(1), 2);
    modify.command = FlowModCommand::ModifyStrict;
    let mut tables = Tables::new();
    tables.apply(&modify, OF13, at(0)).unwrap();
    assert!(tables.is_empty());
    modify.cookie_mask = 1;
    tables.apply(&modify, OF10, at(0)).unwrap();
    assert!(tables.is_empty());
    modify.cookie_mask = 0;
    tables.apply(&modify, OF10, at(0)).unwrap();
    assert_eq!(tables.len(), 1);
}

#[test]
fn deletion_looks_at_outputs_and_cookies() {
    let mut tables = Tables::new();
    for port in 1..=4 {
        let mut flow = add(in_port(port), port % 2);
        flow.new_cookie = Some(u64::from(port));
        tables.apply(&flow, OF13, at(0)).unwrap();
    }
    let mut delete = FlowMod::new(FlowModCommand::Delete);
    delete.table = 255;
    delete.out_port = PortNo(1);
    delete.cookie = 1;
    delete.cookie_mask = 3;
    tables.apply(&delete, OF13, at(0)).unwrap();
    assert_eq!(ports(&tables), [2, 3, 4]);
    delete.cookie_mask = 0;
    tables.apply(&delete, OF13, at(0)).unwrap();
    assert_eq!(ports(&tables), [2, 4]);
}

#[test]
fn the_switchs_own_rules_are_out_of_reach() {
    let mut tables = Tables::new();
    let mut changes = Changes::new();
    for (table, priority) in [(0, 0x1_0000), (INTERNAL_TABLE, 0)] {
        let spec = RuleSpec {
            table,
            priority,
            matching: Match::any(),
            cookie: 0,
            actions: output(1).into(),
            flags: FlowModFlags::empty(),
            importance: 0,
            idle_timeout: 0,
            hard_timeout: 0,
        };
        tables.put(&spec, at(0), &mut changes);
    }
    let mut delete = FlowMod::new(FlowModCommand::Delete);
    delete.table = 255;
    assert!(tables.apply(&delete, OF13, at(0)).unwrap().is_empty());
    delete.table = INTERNAL_TABLE;
    let refused = tables.apply(&delete, OF13, at(0)).unwrap_err();
    assert_eq!(refused, ErrorCode::OfpbrcEperm);
    tables.take(0, &Match::any(), 0x1_0000, &mut changes);
    assert_eq!(tables.len(), 1);
}

#[test]
fn timeouts_count_from_use_and_from_modification() {
    let mut tables = Tables::new();
    let mut idle = add(in_port(1), 2);
    idle.idle_timeout = 10;
    tables.apply(&idle, OF13, at(0)).unwrap();
    let mut hard = add(in_port(2), 2);
    hard.hard_timeout = 15;
    tables.apply(&hard, OF13, at(0)).unwrap();
    let rule = tables.select(&RuleFilter::all()).into_iter();
    let rule = rule.into_iter().find(|r| r.idle_timeout() == 10).unwrap();
    rule.count(1, 60, at(7));
    let mut changes = Changes::new();
    assert_eq!(tables.next_deadline(), at(10));
    tables.expire(at(10), 10, &mut changes);
    assert!(changes.is_empty());
    assert_eq!(tables.next_deadline(), at(15));
    tables.expire(at(16), 10, &mut changes);
    assert_eq!(ports(&tables), [1]);
    tables.expire(at(17), 10, &mut changes);
    let reasons: Vec<_> = changes
        .iter()
        .map(|c| match c {
            Change::Removed(rule, reason) => (rule.idle_timeout(), *reason),
            _ => panic!("{c:?}"),
        })
        .collect();
    assert_eq!(
        reasons,
        [
            (0, FlowRemovedReason::HardTimeout),
            (10, FlowRemovedReason::IdleTimeout)
        ]
    );
    assert_eq!(tables.next_deadline(), Instant::MAX);
}

#[test]
fn a_reduced_timeout_is_kept() {
    let mut tables = Tables::new();
    tables.apply(&add(in_port(1), 2), OF13, at(0)).unwrap();
    let rule = tables.select(&RuleFilter::all()).remove(0);
    tables.reduce_timeouts(&rule, 5, 0);
    tables.reduce_timeouts(&rule, 9, 0);
    assert_eq!(tables.next_deadline(), at(5));
    let mut changes = Changes::new();
    tables.expire(at(5), 1, &mut changes);
    assert!(tables.is_empty());
}

#[test]
fn a_full_table_refuses_or_evicts_from_the_largest_group() {
    let mut tables = Tables::new();
    let mut settings = TableSettings {
        flow_limit: Some(4),
        ..TableSettings::default()
    };
    tables.configure(0, settings.clone());
    let flow = |port: u32, mac: u64, idle: u16| {
        let mut matching = in_port(port);
        matching.set(slot::ETH_SRC, u128::from(mac));
        FlowMod {
            idle_timeout: idle,
            ..add(matching, 1)
        }
    };
    for (port, mac, idle) in [(2, 4, 10), (1, 1, 20), (1, 2, 30), (1, 3, 40)] {
        tables.apply(&flow(port, mac, idle), OF13, at(0)).unwrap();
    }
    let refused = tables.apply(&flow(2, 5, 0), OF13, at(0)).unwrap_err();
    assert_eq!(refused, ErrorCode::OfpfmfcTableFull);
    settings.evict = true;
    settings.groups = vec![Subfield::whole(Field::InPort)];
    tables.configure(0, settings.clone());
    let changes = tables.apply(&flow(2, 5, 0), OF13, at(0)).unwrap();
    let Change::Removed(victim, FlowRemovedReason::Eviction) = &changes[0] else {
        panic!("{changes:?}");
    };
    assert_eq!(victim.idle_timeout(), 20);
    settings.flow_limit = Some(1);
    settings.groups.clear();
    assert_eq!(tables.configure(0, settings).len(), 3);
    assert_eq!(ports(&tables), [2]);
}

/// The slow, obvious twin: rules in a list.
#[derive(Default)]
struct Naive(Vec<(Match, u16, u32)>);

impl Naive {
    fn apply(&mut self, command: FlowModCommand, matching: &Match, priority: u16, out: u32) {
        let is = |rule: &(Match, u16, u32), strict: bool| {
            if strict {
                rule.0 == *matching && rule.1 == priority
            } else {
                rule.0.is_within(matching)
            }
        };
        let strict = !matches!(command, FlowModCommand::Modify | FlowModCommand::Delete);
        let found: Vec<usize> = (0..self.0.len())
            .filter(|i| is(&self.0[*i], strict))
            .collect();
        match command {
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
                self.0.retain(|rule| !is(rule, strict));
            }
            _ if found.is_empty() => {
                if command == FlowModCommand::Add {
                    self.0.push((matching.clone(), priority, out));
                }
            }
            _ => found.into_iter().for_each(|i| self.0[i].2 = out),
        }
    }

    fn outputs(&self) -> Vec<(u16, u32, String)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|(m, p, o)| (*p, *o, format!("{m:?}")))
            .collect();
        all.sort();
        all
    }
}

fn arb_match() -> impl Strategy<Value = Match> {
    let field = |slot| {
        prop_oneof![
            Just(None),
            (0u128..3, 1u128..4).prop_map(move |v| Some((slot, v)))
        ]
    };
    (
        field(slot::IN_PORT),
        field(slot::ETH_SRC),
        field(slot::METADATA),
    )
        .prop_map(|(a, b, c)| {
            let mut matching = Match::any();
            for (slot, (value, mask)) in [a, b, c].into_iter().flatten() {
                matching.set_masked(slot, value, mask);
            }
            matching
        })
}

fn arb_command() -> impl Strategy<Value = FlowModCommand> {
    prop_oneof![
        4 => Just(FlowModCommand::Add),
        1 => Just(FlowModCommand::Modify),
        1 => Just(FlowModCommand::ModifyStrict),
        1 => Just(FlowModCommand::Delete),
        1 => Just(FlowModCommand::DeleteStrict),
    ]
}

proptest! {
    #[test]
    fn flow_mods_do_what_a_list_does(
        steps in prop::collection::vec((arb_command(), arb_match(), 0u16..3, 0u32..9), 1..40)
    ) {
        let mut tables = Tables::new();
        let mut naive = Naive::default();
        for (command, matching, priority, out) in steps {
            naive.apply(command, &matching, priority, out);
            let flow = FlowMod { command, priority, ..add(matching, out) };
            tables.apply(&flow, OF13, at(1)).unwrap();
            let mut all: Vec<_> = tables
                .select(&RuleFilter::all())
                .iter()
                .map(|r| {
                    let Action::Output(o) = &r.actions[0] else { panic!() };
                    (r.priority as u16, o.port.0, format!("{:?}", r.matching()))
                })
                .collect();
            all.sort();
            prop_assert_eq!(all, naive.outputs());
        }
    }

    #[test]
    fn each_rule_expires_once_and_on_time(
        rules in prop::collection::vec((0u16..6, 0u16..6, 0u64..10), 1..30)
    ) {
        let mut tables = Tables::new();
        let mut due = Vec::new();
        for (n, (idle, hard, used)) in rules.iter().enumerate() {
            let flow = FlowMod {
                idle_timeout: *idle,
                hard_timeout: *hard,
                ..add(in_port(n as u32), 1)
            };
            tables.apply(&flow, OF13, at(0)).unwrap();
            let filter = RuleFilter {
                strict: Some(32768),
                matching: in_port(n as u32),
                ..RuleFilter::all()
            };
            tables.select(&filter)[0].count(1, 1, at(*used));
            let idle_at = if *idle == 0 { u64::MAX } else { used + u64::from(*idle) };
            let hard_at = if *hard == 0 { u64::MAX } else { u64::from(*hard) };
            due.push(idle_at.min(hard_at));
        }
        let mut now = Instant::ZERO;
        loop {
            let mut changes = Changes::new();
            while tables.next_deadline() <= now {
                tables.expire(now, 3, &mut changes);
            }
            let expected = due.iter().filter(|d| **d > now.as_millis() / 1000).count();
            prop_assert_eq!(tables.len(), expected);
            if tables.next_deadline() == Instant::MAX {
                break;
            }
            now += Duration::from_secs(1);
        }
    }
}
