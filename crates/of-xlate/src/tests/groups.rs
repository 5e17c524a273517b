//! Groups: which buckets packets go to, what the datapath is told, and what that depends on.

use net_flow::Names;
use of_switch::tables::Tables;
use of_wire::group_text::{GroupTextCommand, parse_group_mod};
use of_wire::message::GroupCommand;

use super::*;
use crate::Effect;

/// Bridge 1 with four ports, whose packets all go to group 1.
fn grouped(groups: &[&str]) -> BridgeView {
    let mut tables = Tables::new();
    for text in groups {
        let command = GroupTextCommand::Fixed(GroupCommand::Add);
        let (mut request, _) = parse_group_mod(text, command, &Names::default()).expect("a group");
        for (bucket, id) in request.group.buckets.iter_mut().zip(0..) {
            bucket.id = id;
        }
        tables.apply_group(request, Instant::ZERO).expect("added");
    }
    let rule = rule_spec(0, 0, &everything(), &[Action::Group(1), output(PortNo(4))]);
    tables.put(&rule, Instant::ZERO, &mut Vec::new());
    let mut bridge = bridge(1, 4, &[]);
    bridge.tables = tables.publish();
    bridge
}

fn of(groups: &[&str]) -> Translation {
    run(&switch(vec![grouped(groups)]), &frame(1))
}

fn tcp(n: u32) -> FlowKey {
    let mut key = frame(1);
    key.set(slot::ETH_TYPE, 0x0800);
    key.set(slot::NW_PROTO, 6);
    key.set(slot::NW_SRC, u128::from(0x0a00_0000 + n));
    key.set(slot::TP_SRC, u128::from(n % 65536));
    key
}

#[test]
fn all_buckets_get_the_packet_as_it_was() {
    let text = "group_id=1,type=all,bucket=mod_vlan_vid:5,output:2,bucket=output:3";
    assert_eq!(
        actions(&of(&[text])),
        "push_vlan(vid=5,pcp=0),102,pop_vlan,103,104"
    );
    // An indirect group's changes do not last either.
    let text = "group_id=1,type=indirect,bucket=mod_vlan_vid:5,output:2";
    assert_eq!(
        actions(&of(&[text])),
        "push_vlan(vid=5,pcp=0),102,pop_vlan,104"
    );
    assert_eq!(actions(&of(&["group_id=1,type=all"])), "104");
}

#[test]
fn actions_of_a_bucket_are_a_set() {
    let text = "group_id=1,type=all,bucket=output:2,dec_ttl,mod_vlan_vid:5";
    let mut key = tcp(1);
    key.set(slot::NW_TTL, 64);
    let result = run(&switch(vec![grouped(&[text])]), &key);
    let text = actions(&result);
    assert!(
        text.starts_with("push_vlan(vid=5,pcp=0),set(ipv4(ttl=63)),102,")
            || text.starts_with("set(ipv4(ttl=63)),push_vlan(vid=5,pcp=0),102,"),
        "{text}"
    );
}

#[test]
fn groups_chain_but_not_in_circles() {
    let groups = [
        "group_id=2,type=all,bucket=output:2,bucket=output:3",
        "group_id=1,type=indirect,bucket=group:2",
    ];
    assert_eq!(actions(&of(&groups)), "102,103,104");
    let circle = of(&["group_id=1,type=all,bucket=group:1,bucket=output:2"]);
    assert!(circle.error.is_some());
    assert_eq!(actions(&circle), "drop");
}

/// Groups that use or watch two groups each, 40 deep, would take for ever.
#[test]
fn groups_that_multiply_end() {
    let chain = |link: &dyn Fn(u32) -> String| -> Vec<String> { (1..=40).map(link).collect() };
    let users = chain(&|n| {
        let next = n + 1;
        format!("group_id={n},type=all,bucket=group:{next},bucket=group:{next}")
    });
    let watchers = chain(&|n| {
        let next = n + 1;
        let bucket = format!("bucket=watch_group:{next},output:2");
        format!("group_id={n},type=ff,{bucket},{bucket}")
    });
    for groups in [users, watchers] {
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let result = of(&groups);
        assert!(result.effects.len() < 10_000);
        assert!(
            matches!(&*actions(&result), "drop" | "104"),
            "{}",
            actions(&result)
        );
    }
}

#[test]
fn fast_failover_follows_ports_and_groups() {
    let groups = [
        "group_id=2,type=ff,bucket=watch_port:3,output:3",
        "group_id=1,type=ff,bucket=watch_port:2,output:2,bucket=watch_group:2,group:2",
    ];
    let mut bridge = grouped(&groups);
    assert_eq!(
        actions(&run(&switch(vec![bridge.clone()]), &frame(1))),
        "102,104"
    );
    port(&mut bridge, 2, |p| p.is_live = false);
    assert_eq!(
        actions(&run(&switch(vec![bridge.clone()]), &frame(1))),
        "103,104"
    );
    port(&mut bridge, 3, |p| p.is_live = false);
    assert_eq!(
        actions(&run(&switch(vec![bridge.clone()]), &frame(1))),
        "104"
    );
    // Which is known to depend on both groups.
    let result = run(&switch(vec![bridge]), &frame(1));
    let mut groups: Vec<u32> = result
        .dependencies
        .groups
        .iter()
        .map(|(_, id)| *id)
        .collect();
    groups.sort_unstable();
    assert_eq!(groups, [1, 2]);
}

#[test]
fn a_group_that_is_not_there_drops_and_is_waited_for() {
    let mut bridge = grouped(&[]);
    let result = run(&switch(vec![bridge.clone()]), &frame(1));
    assert_eq!(actions(&result), "drop");
    assert_eq!(result.dependencies.groups, [(BridgeId(1), 1)]);
    bridge.tables = grouped(&["group_id=1,type=all,bucket=output:2"]).tables;
    assert_eq!(actions(&run(&switch(vec![bridge]), &frame(1))), "102,104");
}

/// Both sides of a megaflow: packets that agree in what was read get the same bucket.
#[test]
fn fields_that_are_hashed_matter() {
    let text = "group_id=1,type=select,selection_method=hash,fields(ip_src),bucket=output:2,bucket=output:3";
    let view = switch(vec![grouped(&[text])]);
    let mut used = std::collections::BTreeMap::new();
    for n in 0..64 {
        let result = run(&view, &tcp(n));
        assert_eq!(result.mask.get(slot::NW_SRC), u128::from(u32::MAX));
        assert_eq!(result.mask.get(slot::TP_SRC), 0);
        *used.entry(actions(&result)).or_insert(0) += 1;
        let mut same = tcp(n);
        same.set(slot::TP_SRC, 9);
        assert_eq!(actions(&run(&view, &same)), actions(&result));
    }
    assert_eq!(used.keys().collect::<Vec<_>>(), ["102,104", "103,104"]);
    assert!(used.values().all(|n| *n > 16), "{used:?}");
}

#[test]
fn weights_are_shares_and_none_is_nothing() {
    let text = "group_id=1,type=select,selection_method=hash,fields(ip_src),bucket=weight:0,output:2,bucket=weight:3,output:3,bucket=weight:1,output:1";
    let view = switch(vec![grouped(&[text])]);
    let mut used = std::collections::BTreeMap::new();
    for n in 0..400 {
        *used.entry(actions(&run(&view, &tcp(n)))).or_insert(0) += 1;
    }
    assert!(!used.contains_key("102,104"), "{used:?}");
    assert!(used["103,104"] > 250, "{used:?}");
}

/// The datapath computes a hash, with which the packet comes back; then the megaflow matches
/// just the bits of it that choose.
#[test]
fn the_datapath_hashes_where_it_can() {
    let text = "group_id=1,type=select,selection_method=dp_hash,bucket=output:2,bucket=output:3";
    let view = switch(vec![grouped(&[text])]);
    let key = tcp(1);
    let result = run(&view, &key);
    let text = actions(&result);
    let id = text
        .strip_prefix("hash(l4(0)),recirc(0x")
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or_else(|| panic!("{text}"));
    let id = u32::from_str_radix(id, 16).expect("an id");
    let mut buckets = std::collections::BTreeSet::new();
    for hash in 1..32u32 {
        let mut back = key.clone();
        back.set(slot::RECIRC_ID, u128::from(id));
        back.set(slot::DP_HASH, u128::from(hash));
        let result = run(&view, &back);
        let mask = result.mask.get(slot::DP_HASH);
        assert!(mask == 0xf, "{mask:#x}");
        assert_eq!(result.mask.get(slot::NW_SRC), 0);
        buckets.insert(actions(&result));
        // What agrees in these bits gets the same.
        back.set(slot::DP_HASH, u128::from(hash | 0xabc0));
        let other = run(&view, &back);
        assert_eq!(actions(&other), actions(&run(&view, &back)));
    }
    assert_eq!(
        buckets.into_iter().collect::<Vec<_>>(),
        ["102,104", "103,104"]
    );
}

#[test]
fn what_a_group_carried_is_counted() {
    let text = "group_id=1,type=all,bucket=output:2,bucket=output:3";
    let view = switch(vec![grouped(&[text])]);
    for effect in &run(&view, &frame(1)).effects {
        effect.apply(2, 120, Instant::ZERO);
    }
    let group = view.bridges[&BridgeId(1)]
        .tables
        .groups()
        .get(1)
        .expect("there");
    assert_eq!(group.counts(), (2, 120));
    assert_eq!(group.bucket_counts(), [(2, 120), (2, 120)]);
    let text = "group_id=1,type=ff,bucket=watch_port:4,output:2,bucket=watch_port:3,output:3";
    let mut bridge = grouped(&[text]);
    port(&mut bridge, 4, |p| p.is_live = false);
    let view = switch(vec![bridge]);
    let effects = run(&view, &frame(1)).effects;
    assert_eq!(
        effects
            .iter()
            .filter(|e| matches!(e, Effect::Group(..)))
            .count(),
        1
    );
    for effect in &effects {
        effect.apply(1, 60, Instant::ZERO);
    }
    let group = view.bridges[&BridgeId(1)]
        .tables
        .groups()
        .get(1)
        .expect("there");
    assert_eq!(group.bucket_counts(), [(0, 0), (1, 60)]);
}
