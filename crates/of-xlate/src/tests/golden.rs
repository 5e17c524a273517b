//! Traces of random tables as Open vSwitch 3.7.1 prints them.  Frozen states' ids, which
//! count up there over the whole run, are written `N`; rules have no cookies.

use net_flow::text::KeyValues;
use net_flow::{Formats, Names};
use of_wire::message::FlowModCommand;
use of_wire::text::{FlowCommand, parse_flow};

use super::*;

const GOLDEN: &str = include_str!("golden.txt");

/// A packet's key from text such as `tcp,in_port=1,tcp_src=80`.
fn key(text: &str) -> FlowKey {
    let mut m = Match::any();
    let mut formats = Formats::all();
    for item in KeyValues::new(text) {
        net_flow::text::apply_key(
            &mut m,
            item.key,
            item.value,
            &Names::default(),
            &mut formats,
        )
        .expect("a field")
        .expect("a value");
    }
    let mut key = m.key().clone();
    if key.get(slot::VLAN_TCI) != 0 {
        key.set(slot::VLAN_TPID, 0x8100);
    }
    key
}

fn rules(text: &str) -> Vec<Spec> {
    let rule = |line: &str| {
        let command = FlowCommand::Fixed(FlowModCommand::Add);
        let flow = parse_flow(line, command, &Names::default())
            .expect("a flow")
            .flow;
        let table = if flow.table == 255 { 0 } else { flow.table };
        (table, i32::from(flow.priority), flow.matching, flow.actions)
    };
    text.lines().map(rule).collect()
}

/// The bridge of the originals: ports 1 to 6 and the local port, which is datapath port 100.
fn original_bridge(rules: &[Spec]) -> SwitchView {
    let mut br = bridge(1, 6, rules);
    br.name = "br0".into();
    for n in 1..=6 {
        port(&mut br, n, |p| p.datapath = Some(dp_lang::PortNo(n)));
    }
    let mut local = Port::new(PortNo::LOCAL, "br0", Some(dp_lang::PortNo(100)));
    local.bundle = Some(0);
    let bundle = Bundle::new(0, "br0", PortNo::LOCAL);
    Arc::make_mut(&mut br.bundles).insert(0, Arc::new(bundle));
    Arc::make_mut(&mut br.ports).insert(PortNo::LOCAL, Arc::new(local));
    switch(vec![br])
}

/// Leaves out the ids of frozen states.
fn comparable(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("recirc_id=") {
        out.push_str(before);
        out.push_str("recirc_id=");
        let end = after.find(',').unwrap_or(after.len());
        out.push_str(if after[end..].starts_with(",rule") {
            "N"
        } else {
            &after[..end]
        });
        rest = &after[end..];
    }
    out.push_str(rest);
    // How a rule says it depends on the OpenFlow version that it came by.
    out.replace("strip_vlan", "pop_vlan")
}

#[test]
fn traces_are_the_originals() {
    let mut view = SwitchView::default();
    let mut count = 0;
    for block in GOLDEN.split("=== ").skip(1) {
        let (head, body) = block.split_once('\n').expect("a head");
        if head == "flows" {
            view = original_bridge(&rules(body));
            continue;
        }
        let text = traced(&view, &key(head));
        assert_eq!(comparable(text.trim()), comparable(body.trim()), "{head}");
        count += 1;
    }
    assert!(count > 10, "{count}");
}
