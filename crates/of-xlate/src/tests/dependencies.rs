//! What a translation says that it depends on is all that it depends on.

use net_flow::MiniKey;
use proptest::prelude::*;

use super::property::{FIELDS, agreeing, any_action, consistent, matching};
use super::*;
use crate::Lookup;

type Parts = (u8, Vec<(usize, usize, u8)>, Vec<Action>);

fn any_rule() -> impl Strategy<Value = Parts> {
    let part = (0..FIELDS.len(), 0usize..3, any::<u8>());
    (
        0u8..3,
        prop::collection::vec(part, 0..3),
        prop::collection::vec(any_action(), 0..5),
    )
}

fn specs(rules: &[Parts], first_priority: i32) -> Vec<Spec> {
    let numbered = rules.iter().zip(first_priority..);
    numbered
        .map(|((table, parts, actions), n)| (*table, n, matching(parts), actions.clone()))
        .collect()
}

fn is_affected(lookups: &[Lookup], rule: &Spec, key: &FlowKey, mask: &FlowMask) -> bool {
    let (key, mask) = (MiniKey::new(key), MiniKey::new(mask.as_key()));
    let (table, priority, matching, _) = rule;
    lookups.iter().any(|lookup| {
        lookup.table == *table
            && *priority >= lookup.priority
            && lookup.may_match(matching.key(), matching.mask().iter(), &key, &mask)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::cases(1500)))]

    /// A rule that no lookup could have met changes the actions of no packet of the flow.
    #[test]
    fn a_rule_that_no_lookup_could_meet_changes_nothing(
        rules in prop::collection::vec(any_rule(), 1..10),
        new in any_rule(),
        priority in 0i32..12,
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), FIELDS.len()), 6),
    ) {
        let mut all = specs(&rules, 0);
        let view = switch(vec![bridge(1, 3, &all)]);
        let first = consistent(&packets[0]);
        let before = run(&view, &first);
        let new = specs(&[new], priority).remove(0);
        // A rule with the same match and priority would replace the other.
        prop_assume!(!all.iter().any(|(t, p, m, _)| (*t, *p, m) == (new.0, new.1, &new.2)));
        let lookups = &before.dependencies.lookups;
        if !is_affected(lookups, &new, &first, &before.mask) {
            all.push(new);
            let changed = switch(vec![bridge(1, 3, &all)]);
            for seeds in &packets {
                let other = agreeing(&first, &before.mask, seeds);
                if first.equal_under(&other, &before.mask) {
                    let after = run(&changed, &other);
                    prop_assert_eq!(actions(&after), actions(&before));
                    prop_assert_eq!(after.is_slow(), before.is_slow());
                }
            }
        }
    }
}

#[test]
fn a_rule_for_a_rewritten_field_is_met_by_what_was_written() {
    let set = |n: u128| {
        Action::SetField(Box::new(of_wire::action::SetField {
            field: net_flow::Field::Reg0,
            value: n,
            mask: u128::from(u32::MAX),
            form: of_wire::action::SetForm::SetField,
            flow_has_vlan: false,
        }))
    };
    let rules = [
        (0, 1, everything(), vec![set(7), resubmit(1)]),
        (1, 1, everything(), vec![output(PortNo(2))]),
    ];
    let view = switch(vec![bridge(1, 3, &rules)]);
    let key = frame(1);
    let translation = run(&view, &key);
    let lookups = &translation.dependencies.lookups;
    let rule = |value| {
        let mut register = everything();
        register.set(slot::reg(0), value);
        (1, 5, register, Vec::new())
    };
    assert!(is_affected(lookups, &rule(7), &key, &translation.mask));
    assert!(!is_affected(lookups, &rule(8), &key, &translation.mask));
}
