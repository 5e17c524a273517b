//! Mirrors.

use super::*;
use crate::{Mirror, MirrorOutput};

fn mirror(output: MirrorOutput) -> Mirror {
    Mirror {
        name: "m".into(),
        sources: [1, 2, 3].into(),
        destinations: [1, 2, 3].into(),
        vlans: None,
        filter: None,
        output,
        snaplen: 0,
        counters: Arc::default(),
    }
}

fn mirrored(actions: Vec<Action>, mirrors: Vec<Mirror>) -> SwitchView {
    let mut br = bridge(1, 3, &[(0, 0, everything(), actions)]);
    br.mirrors = mirrors.into();
    switch(vec![br])
}

#[test]
fn a_packet_goes_to_a_mirror_once_and_first() {
    let mirror = mirror(MirrorOutput::Bundle(3));
    let counters = Arc::clone(&mirror.counters);
    let view = mirrored(vec![output(PortNo(2))], vec![mirror.clone(), mirror]);
    let result = run(&view, &frame(1));
    assert_eq!(actions(&result), "103,102");
    for effect in &result.effects {
        effect.apply(2, 120, Instant::ZERO);
    }
    assert_eq!(counters.read(), [2, 120]);
}

#[test]
fn a_changed_packet_goes_to_a_mirror_again() {
    let list = vec![
        Action::SetEthSrc([0x50, 0x54, 0, 0, 0, 3]),
        output(PortNo(2)),
    ];
    let view = mirrored(list, vec![mirror(MirrorOutput::Bundle(3))]);
    assert_eq!(
        actions(&run(&view, &frame(1))),
        "103,set(eth(src=50:54:00:00:00:03)),102,103"
    );
}

#[test]
fn a_mirrors_port_is_for_nothing_else() {
    let view = mirrored(
        vec![output(PortNo::NORMAL)],
        vec![mirror(MirrorOutput::Bundle(3))],
    );
    assert_eq!(actions(&run(&view, &frame(1))), "103,102");
    assert_eq!(actions(&run(&view, &frame(3))), "drop");
}

#[test]
fn a_mirror_may_send_to_a_vlan() {
    let mut only = mirror(MirrorOutput::Vlan(12));
    only.destinations.clear();
    let view = mirrored(vec![output(PortNo(2))], vec![only]);
    assert_eq!(
        actions(&run(&view, &frame(1))),
        "push_vlan(vid=12,pcp=0),101,102,103,pop_vlan,102"
    );
}

#[test]
fn a_mirror_cuts_packets_short_and_leaves_others_alone() {
    let mut short = mirror(MirrorOutput::Bundle(3));
    short.snaplen = 100;
    let view = mirrored(vec![output(PortNo(2))], vec![short]);
    assert_eq!(actions(&run(&view, &frame(1))), "trunc(100),103,102");
}

#[test]
fn filters_and_vlans_select_and_matter() {
    let mut one = mirror(MirrorOutput::Bundle(3));
    let mut fields = Match::any();
    fields.set(slot::ETH_TYPE, 0x0800).set(slot::NW_PROTO, 1);
    one.filter = Some(fields);
    let view = mirrored(vec![output(PortNo(2))], vec![one.clone()]);
    let mut icmp = frame(1);
    icmp.set(slot::ETH_TYPE, 0x0800);
    icmp.set(slot::NW_PROTO, 1);
    let result = run(&view, &icmp);
    assert_eq!(actions(&result), "103,102");
    assert_eq!(result.mask.get(slot::NW_PROTO), 0xff);
    icmp.set(slot::NW_PROTO, 6);
    assert_eq!(actions(&run(&view, &icmp)), "102");

    one.filter = None;
    one.vlans = Some(crate::VlanSet::new([5]));
    let view = mirrored(vec![output(PortNo(2))], vec![one]);
    assert_eq!(actions(&run(&view, &frame(1))), "102");
}
