//! The classifier against a twin that is a list, on random rules and keys.

use std::sync::Arc;

use net_flow::{FlowKey, FlowMask, Match, Slot, slot};
use proptest::prelude::*;

use crate::{Classifier, Conjunction, MiniMatch, Rule};

#[derive(Debug)]
struct TestRule {
    priority: i32,
    mini: MiniMatch,
    conjunctions: Vec<Conjunction>,
    tag: u32,
}

impl Rule for TestRule {
    fn priority(&self) -> i32 {
        self.priority
    }
    fn mini_match(&self) -> &MiniMatch {
        &self.mini
    }
    fn conjunctions(&self) -> &[Conjunction] {
        &self.conjunctions
    }
}

/// Fields of all stages, tracked and not.
const FIELDS: [Slot; 9] = [
    slot::IN_PORT,
    slot::METADATA,
    slot::ETH_DST,
    slot::VLAN_TCI,
    slot::NW_SRC,
    slot::NW_DST,
    slot::IPV6_DST,
    slot::TP_SRC,
    slot::TP_DST,
];

/// A value of few bits spread over the slot, so that random ones meet.
fn value(field: Slot, seed: u8) -> u128 {
    let top = field.bits - 2;
    u128::from(seed & 3) << top | u128::from(seed >> 2 & 3)
}

fn mask(field: Slot, shape: u8) -> u128 {
    let prefix = |n: u8| field.max() >> (field.bits - n) << (field.bits - n);
    match shape % 6 {
        0 | 1 => field.max(),
        2 => prefix(1),
        3 => prefix(2),
        4 => prefix(field.bits - 1),
        _ => 1 << (field.bits - 1) | 1,
    }
}

type Part = (usize, u8, u8);

fn parts() -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec((0..FIELDS.len(), any::<u8>(), any::<u8>()), 0..4)
}

fn to_match(parts: &[Part]) -> Match {
    let mut m = Match::any();
    for (field, seed, shape) in parts {
        let field = FIELDS[*field];
        m.set_masked(field, value(field, *seed), mask(field, *shape));
    }
    m
}

fn to_key(seeds: &[u8]) -> FlowKey {
    let mut key = FlowKey::new();
    for (field, seed) in FIELDS.iter().zip(seeds) {
        key.set(*field, value(*field, *seed));
    }
    key
}

/// The slow twin: the best of all rules that match.
fn naive(rules: &[Arc<TestRule>], key: &FlowKey) -> Option<i32> {
    let matching = rules.iter().filter(|r| r.mini.matches(key));
    matching.map(|r| r.priority).max()
}

/// Distinct priorities make the answer unique.
fn rules(specs: &[Vec<Part>]) -> Vec<Arc<TestRule>> {
    let rule = |(n, spec): (usize, &Vec<Part>)| {
        let priority = (n as i32 * 7919) % 1009;
        Arc::new(TestRule {
            priority,
            mini: MiniMatch::new(&to_match(spec)),
            conjunctions: Vec::new(),
            tag: n as u32,
        })
    };
    specs.iter().enumerate().map(rule).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::cases(400)))]

    #[test]
    fn the_answer_is_the_twins_and_the_mask_suffices(
        specs in prop::collection::vec(parts(), 1..40),
        removed in prop::collection::vec(any::<bool>(), 40),
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), FIELDS.len()), 8),
        noise in prop::collection::vec(any::<u128>(), FIELDS.len()),
    ) {
        let all = rules(&specs);
        let mut classifier = Classifier::new();
        for rule in &all {
            prop_assert!(classifier.insert(Arc::clone(rule)).is_none());
        }
        let whole = classifier.clone();
        let mut left = Vec::new();
        for (rule, gone) in all.iter().zip(removed) {
            if gone {
                let old = classifier.remove(&rule.mini, rule.priority);
                prop_assert_eq!(old.map(|r| r.tag), Some(rule.tag));
            } else {
                left.push(Arc::clone(rule));
            }
        }
        prop_assert_eq!(classifier.len(), left.len());
        for (classifier, rules) in [(&classifier, &left), (&whole, &all)] {
            for seeds in &keys {
                let key = to_key(seeds);
                let mut wc = FlowMask::new();
                let wanted = naive(rules, &key);
                prop_assert_eq!(classifier.lookup(&key, &mut wc).map(|r| r.priority), wanted);
                prop_assert_eq!(classifier.lookup_plain(&key).map(|r| r.priority), wanted);
                // Any key that agrees under the mask has the same answer.
                let mut other = FlowKey::new();
                for (field, noise) in FIELDS.iter().zip(&noise) {
                    let kept = wc.get(*field);
                    other.set(*field, key.get(*field) & kept | noise & !kept);
                }
                prop_assert_eq!(naive(rules, &other), wanted);
                for (other, flip) in keys.iter().zip(&noise) {
                    let mut near = key.clone();
                    for (field, seed) in FIELDS.iter().zip(other) {
                        if flip >> (seed & 63) & 1 != 0 {
                            near.set_masked(*field, value(*field, *seed), !wc.get(*field));
                        }
                    }
                    prop_assert_eq!(naive(rules, &near), wanted);
                }
            }
        }
    }

    #[test]
    fn selections_are_the_twins(
        specs in prop::collection::vec(parts(), 1..30),
        criterion in parts(),
    ) {
        let mut classifier = Classifier::new();
        let all = rules(&specs);
        for rule in &all {
            classifier.insert(Arc::clone(rule));
        }
        let wide = to_match(&criterion);
        let mut found: Vec<u32> = classifier.within(&wide).map(|r| r.tag).collect();
        found.sort_unstable();
        let twin = all.iter().filter(|r| r.mini.expand().is_within(&wide));
        let wanted: Vec<u32> = twin.map(|r| r.tag).collect();
        prop_assert_eq!(found, wanted);
        let mut each: Vec<u32> = classifier.iter().map(|r| r.tag).collect();
        each.sort_unstable();
        prop_assert_eq!(each, (0..all.len() as u32).collect::<Vec<_>>());
        for rule in &all {
            let found = classifier.find(&rule.mini, rule.priority).map(|r| r.tag);
            prop_assert_eq!(found, Some(rule.tag));
            let overlap = classifier.overlapping(&wide, rule.priority).next();
            prop_assert_eq!(overlap.is_some(), rule.mini.overlaps(&wide));
        }
    }
}

#[test]
fn a_replaced_rule_stays_in_the_older_snapshot() {
    let rule = |tag| {
        Arc::new(TestRule {
            priority: 5,
            mini: MiniMatch::new(&to_match(&[(4, 1, 0)])),
            conjunctions: Vec::new(),
            tag,
        })
    };
    let mut classifier = Classifier::new();
    classifier.insert(rule(1));
    let old = classifier.clone();
    assert_eq!(classifier.insert(rule(2)).map(|r| r.tag), Some(1));
    let key = to_key(&[0, 0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(old.lookup_plain(&key).map(|r| r.tag), Some(1));
    assert_eq!(classifier.lookup_plain(&key).map(|r| r.tag), Some(2));
    assert_eq!(classifier.len(), 1);
}

#[test]
fn prefixes_keep_the_mask_short() {
    let mut classifier = Classifier::new();
    for (tag, net, length) in [(1u32, 0x0a00_0000u128, 8u32), (2, 0x0a01_0203, 32)] {
        let mut m = Match::any();
        m.set_masked(slot::NW_DST, net, u128::from(u32::MAX << (32 - length)));
        classifier.insert(Arc::new(TestRule {
            priority: length as i32,
            mini: MiniMatch::new(&m),
            conjunctions: Vec::new(),
            tag,
        }));
    }
    let mut key = FlowKey::new();
    key.set(slot::NW_DST, 0x0aff_0000);
    let mut wc = FlowMask::new();
    assert_eq!(classifier.lookup(&key, &mut wc).map(|r| r.tag), Some(1));
    assert_eq!(wc.get(slot::NW_DST), 0xff80_0000);
}

#[test]
fn a_conjunction_matches_when_all_its_clauses_do() {
    let mut classifier = Classifier::new();
    let mut add = |tag, priority, field: Slot, value: u128, clause: Option<u8>| {
        let mut m = Match::any();
        m.set(field, value);
        let clause = clause.map(|clause| Conjunction {
            id: 7,
            clause,
            clauses: 2,
        });
        classifier.insert(Arc::new(TestRule {
            priority,
            mini: MiniMatch::new(&m),
            conjunctions: clause.into_iter().collect(),
            tag,
        }));
    };
    add(1, 10, slot::NW_SRC, 1, Some(0));
    add(2, 10, slot::NW_DST, 2, Some(1));
    add(3, 10, slot::CONJ_ID, 7, None);
    add(4, 1, slot::NW_SRC, 1, None);
    let lookup = |src: u128, dst: u128| {
        let mut key = FlowKey::new();
        key.set(slot::NW_SRC, src);
        key.set(slot::NW_DST, dst);
        let mut wc = FlowMask::new();
        let tag = classifier.lookup(&key, &mut wc).map(|r| r.tag);
        assert_eq!(tag, classifier.lookup_plain(&key).map(|r| r.tag));
        assert_eq!(wc.get(slot::CONJ_ID) & !slot::CONJ_ID.max(), 0);
        tag
    };
    assert_eq!(lookup(1, 2), Some(3));
    assert_eq!(lookup(1, 3), Some(4));
    assert_eq!(lookup(2, 2), None);
}
