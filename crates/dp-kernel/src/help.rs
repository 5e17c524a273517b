//! Actions that the kernel's module lacks are done here, between what it does.

use dp_lang::{Action, Effects, InFlight, KeyAttr, PortNo, Userspace};
use net_flow::FlowKey;
use net_flow::extract::MAX_VLANS;
use net_packet::Packet;

/// A packet, and what the kernel is to do to it.
pub(crate) type Part = (Vec<u8>, Vec<Action>);

/// Whether the kernel has no such action.
fn is_lacking(action: &Action) -> bool {
    match action {
        Action::Set(field) => matches!(
            field.attr,
            KeyAttr::Arp | KeyAttr::Icmp | KeyAttr::Icmpv6 | KeyAttr::Nd | KeyAttr::NdExtensions
        ),
        Action::Clone(inner) => needs_help(inner),
        _ => false,
    }
}

/// Whether some of these actions are not the kernel's.
pub(crate) fn needs_help(actions: &[Action]) -> bool {
    actions.iter().any(is_lacking)
}

/// Whether an action changes the packet itself.
const fn changes_packet(action: &Action) -> bool {
    match action {
        Action::Set(field) => !is_metadata(field.attr),
        Action::PushVlan { .. }
        | Action::PopVlan
        | Action::PushMpls { .. }
        | Action::PopMpls { .. }
        | Action::PushEth { .. }
        | Action::PopEth => true,
        _ => false,
    }
}

const fn is_metadata(attr: KeyAttr) -> bool {
    matches!(attr, KeyAttr::Priority | KeyAttr::Mark | KeyAttr::Tunnel)
}

/// What goes with the packet without being in it, and so is still to be done to its later forms.
fn carried_on(actions: &[Action]) -> impl Iterator<Item = Action> {
    let sets = actions.iter().filter(|action| match action {
        Action::Set(field) => is_metadata(field.attr),
        _ => false,
    });
    // A cut is for the next output, which may be among the actions that follow.
    let mut cut = None;
    for action in actions {
        match action {
            Action::Trunc(_) => cut = Some(action),
            Action::Output(_) | Action::Userspace(_) => cut = None,
            _ => {}
        }
    }
    sets.chain(cut).cloned()
}

/// Whether there is more in these actions than changes of packet and metadata.
fn has_effect(actions: &[Action]) -> bool {
    let is_set = |action: &Action| matches!(action, Action::Set(_) | Action::Trunc(_));
    actions
        .iter()
        .any(|action| !is_set(action) && !changes_packet(action))
}

/// Keeps what comes out of the interpreter.
struct Kept(Option<Packet>);

impl Effects for Kept {
    fn output(&mut self, _port: PortNo, packet: Packet) {
        self.0 = Some(packet);
    }

    fn userspace(&mut self, _to: &Userspace, _packet: InFlight<'_>, _rest: &[Action]) {}

    fn recirculate(&mut self, _packet: InFlight<'_>) {}

    fn random(&mut self) -> u32 {
        0
    }

    fn hash(&mut self, _key: &FlowKey, _algorithm: u32, _basis: u32) -> u32 {
        0
    }
}

/// The packet as these actions change it.
fn changed(packet: &[u8], key: &FlowKey, actions: &[Action]) -> Vec<u8> {
    let changes = actions.iter().filter(|action| changes_packet(action));
    let mut list: Vec<Action> = changes.cloned().collect();
    list.push(Action::Output(PortNo::NONE));
    let mut kept = Kept(None);
    let mut packet = Packet::from_frame(packet);
    // The interpreter wants to know where the headers are.
    let mut fresh = net_flow::metadata(key);
    net_flow::extract(&mut packet, &mut fresh, MAX_VLANS);
    dp_lang::execute(&list, packet, &fresh, &mut kept);
    kept.0.map_or_else(Vec::new, |p| p.data().to_vec())
}

/// Divides actions into parts that the kernel has, with the packet as it is before each.
pub(crate) fn divide(packet: &[u8], key: &FlowKey, actions: &[Action]) -> Vec<Part> {
    let mut parts = Vec::new();
    divide_into(&mut parts, packet.to_vec(), key, actions);
    parts
}

fn divide_into(parts: &mut Vec<Part>, packet: Vec<u8>, key: &FlowKey, actions: &[Action]) {
    let Some(at) = actions.iter().position(is_lacking) else {
        if has_effect(actions) {
            parts.push((packet, actions.to_vec()));
        }
        return;
    };
    let (before, rest) = actions.split_at(at);
    let carried: Vec<Action> = carried_on(before).collect();
    let now = changed(&packet, key, before);
    if has_effect(before) {
        parts.push((packet, before.to_vec()));
    }
    let Some((lacking, rest)) = rest.split_first() else {
        return;
    };
    let follow = |list: &[Action]| [&carried[..], list].concat();
    if let Action::Clone(inner) = lacking {
        divide_into(parts, now.clone(), key, &follow(inner));
        divide_into(parts, now, key, &follow(rest));
    } else {
        let now = changed(&now, key, std::slice::from_ref(lacking));
        divide_into(parts, now, key, &follow(rest));
    }
}

#[cfg(test)]
mod tests {
    use dp_lang::text::{PortNames, format_actions, parse_actions, parse_flow};
    use net_flow::compose::compose;

    use super::*;

    /// An ARP packet, and the parts that actions are divided into, as text.
    fn parts(text: &str) -> Vec<(String, String)> {
        let names = PortNames::none();
        let flow = "in_port(1),eth(src=00:00:00:00:00:01,dst=00:00:00:00:00:02),\
             eth_type(0x0806),arp(sip=1.1.1.1,tip=2.2.2.2,op=1,sha=00:00:00:00:00:03,\
             tha=00:00:00:00:00:04)";
        let key = parse_flow(flow, &names).unwrap().key;
        let actions = parse_actions(text, &names).unwrap();
        let shown = divide(&compose(&key, 0), &key, &actions);
        let shown = shown.into_iter().map(|(packet, actions)| {
            let sender = &packet[packet.len() - 14..packet.len() - 10];
            let sender: Vec<String> = sender.iter().map(u8::to_string).collect();
            (sender.join("."), format_actions(&actions, &names))
        });
        shown.collect()
    }

    fn expect(text: &str, wanted: &[(&str, &str)]) {
        let found = parts(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        assert_eq!(found, wanted, "{text}");
    }

    #[test]
    fn the_kernel_gets_what_it_has() {
        expect("2,3", &[("1.1.1.1", "2,3")]);
        expect("set(arp(sip=9.9.9.9)),2", &[("9.9.9.9", "2")]);
        expect(
            "3,set(arp(sip=9.9.9.9)),2,set(arp(sip=8.8.8.8)),4",
            &[("1.1.1.1", "3"), ("9.9.9.9", "2"), ("8.8.8.8", "4")],
        );
        // What nobody gets is not even changed.
        expect("set(arp(sip=9.9.9.9))", &[]);
        expect("2,set(arp(sip=9.9.9.9))", &[("1.1.1.1", "2")]);
    }

    #[test]
    fn metadata_and_cuts_go_with_the_packet() {
        let tunnel = "set(tunnel(dst=5.5.5.5,ttl=64,flags(0)))";
        expect(
            &format!("{tunnel},set(skb_mark(0x7)),3,set(arp(sip=9.9.9.9)),2"),
            &[
                ("1.1.1.1", &format!("{tunnel},set(skb_mark(0x7)),3")),
                ("9.9.9.9", &format!("{tunnel},set(skb_mark(0x7)),2")),
            ],
        );
        expect(
            "trunc(30),set(arp(sip=9.9.9.9)),2",
            &[("9.9.9.9", "trunc(30),2")],
        );
        expect(
            "trunc(30),3,set(arp(sip=9.9.9.9)),2",
            &[("1.1.1.1", "trunc(30),3"), ("9.9.9.9", "2")],
        );
    }

    #[test]
    fn what_a_clone_changes_stays_in_it() {
        expect(
            "clone(set(arp(sip=9.9.9.9)),2),3",
            &[("9.9.9.9", "2"), ("1.1.1.1", "3")],
        );
        expect(
            "set(arp(sip=7.7.7.7)),clone(4,set(arp(sip=9.9.9.9)),2),3",
            &[("7.7.7.7", "4"), ("9.9.9.9", "2"), ("7.7.7.7", "3")],
        );
        expect("clone(2),3", &[("1.1.1.1", "clone(2),3")]);
    }
}
