//! Traces as Open vSwitch 3.7.1 prints them.  Frozen states' ids, which count up there over the
//! whole run, count up in each trace here.

use net_flow::text::KeyValues;
use net_flow::text::flags::CT_STATE;
use net_flow::{Formats, Names};
use of_wire::message::FlowModCommand;
use of_wire::text::{FlowCommand, parse_flow};

use super::*;

/// Random tables, and one file for each family of actions.
const GOLDEN: [(&str, &str); 2] = [
    ("tables", include_str!("golden/tables.txt")),
    ("conntrack", include_str!("golden/conntrack.txt")),
];

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

fn rules(text: &str) -> Vec<RuleSpec> {
    let rule = |line: &str| {
        let command = FlowCommand::Fixed(FlowModCommand::Add);
        let flow = parse_flow(line, command, &Names::default())
            .expect("a flow")
            .flow;
        RuleSpec {
            table: if flow.table == 255 { 0 } else { flow.table },
            priority: i32::from(flow.priority),
            matching: flow.matching,
            cookie: flow.new_cookie.unwrap_or(0),
            actions: flow.actions.as_slice().into(),
            ..rule_spec(0, 0, &Match::any(), &[])
        }
    };
    text.lines().map(rule).collect()
}

/// The bridge of the originals: ports 1 to 6 and the local port, which is datapath port 100.
fn original_bridge(rules: &[RuleSpec]) -> SwitchView {
    let mut br = bridge_of(1, 6, rules);
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

/// Numbers the frozen states anew, in the order in which a trace names them.
fn comparable(text: &str) -> String {
    let mut ids: Vec<&str> = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("recirc") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let head = ["recirc_id=", "recirc("]
            .into_iter()
            .find(|h| after.starts_with(h));
        let Some(head) = head else {
            out.push_str("recirc");
            rest = &after["recirc".len()..];
            continue;
        };
        out.push_str(head);
        let after = &after[head.len()..];
        let end = after.find([',', ')', '\n']).unwrap_or(after.len());
        // The datapath's text has decimal numbers.
        let id = after[..end].trim_start_matches("0x");
        if id == "0" {
            out.push('0');
        } else {
            let known = ids.iter().position(|i| *i == id);
            let n = known.unwrap_or_else(|| {
                ids.push(id);
                ids.len() - 1
            });
            out.push_str(&format!("#{n}"));
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    // How a rule says it depends on the OpenFlow version that it came by.
    out.replace("strip_vlan", "pop_vlan")
}

/// The trace that a head like `[--ct-next STATE]... FLOW` asks for.
fn trace_of(view: &SwitchView, head: &str) -> String {
    let mut next = Vec::new();
    let mut words = head.split(' ');
    let mut flow = "";
    while let Some(word) = words.next() {
        if word == "--ct-next" {
            let states = words.next().expect("a state").split(',');
            let bit = |name| CT_STATE.parse(&format!("+{name}")).expect("a flag").0;
            next.push(states.map(bit).sum());
        } else {
            flow = word;
        }
    }
    let names = TraceNames {
        ports: &PortNames::none(),
        openflow: &Names::default(),
    };
    trace(view, &looking(&key(flow)), names, &next).text
}

/// Packets of which the original's megaflows do not say all that was looked at: how many labels a
/// stack without a bottom has.
const NARROWER: [&str; 1] = [
    "mpls,in_port=2,dl_src=50:54:00:00:00:05,dl_dst=50:54:00:00:00:07,mpls_label=5,mpls_ttl=3,\
     mpls_bos=0",
];

#[test]
fn traces_are_the_originals() {
    for (name, text) in GOLDEN {
        let mut view = SwitchView::default();
        let mut count = 0;
        for block in text.split("=== ").skip(1) {
            let (head, body) = block.split_once('\n').expect("a head");
            if head == "flows" {
                view = original_bridge(&rules(body));
                continue;
            }
            let text = trace_of(&view, head);
            let (ours, theirs) = (comparable(text.trim()), comparable(body.trim()));
            assert_eq!(
                ours.lines().count(),
                theirs.lines().count(),
                "{name}: {head}"
            );
            for (our, their) in ours.lines().zip(theirs.lines()) {
                let is_narrower = our.starts_with("Megaflow: ") && NARROWER.contains(&head);
                assert_eq!(our == their, !is_narrower, "{name}: {head}\n{our}\n{their}");
            }
            count += 1;
        }
        assert!(count > 10, "{name}: {count}");
    }
}
