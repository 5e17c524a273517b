//! The text of `ofproto/trace`.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dp_lang::SlowPath;
use dp_lang::text::{PortNames, format_actions};
use net_flow::text::flags::CT_STATE;
use net_flow::text::put_match;
use net_flow::{FlowKey, Match, Names, PortNo, slot};

use of_wire::action::{NAT_DST, NAT_SRC, Nat};

use crate::finish;
use crate::freeze::TRACKED;
use crate::trace::{Trace, flow_text};
use crate::translation::{Input, Recirculation, Translation, translate};
use crate::view::SwitchView;

/// A trace: its text, and the translations that it is of.
#[derive(Debug)]
pub struct Report {
    /// What `ofproto/trace` prints.
    pub text: String,
    /// The translations, of the packet first and then each time that it came back; their
    /// effects have not been applied.
    pub translations: Vec<Translation>,
}

/// The names that a trace uses.
#[derive(Clone, Copy, Debug)]
pub struct TraceNames<'a> {
    /// Datapath ports.
    pub ports: &'a PortNames,
    /// OpenFlow ports.
    pub openflow: &'a Names,
}

/// How often a packet may come back in one trace.
const MAX_RECIRCULATIONS: usize = 4096;

/// A new connection.
const NEW_CONNECTION: u32 = TRACKED as u32 | 1;

/// Why a flow comes to the switch packet by packet, in words.
fn explain(slow: SlowPath) -> impl Iterator<Item = &'static str> {
    let reasons = [
        (slow.cfm, "Consists of CFM packets"),
        (slow.bfd, "Consists of BFD packets"),
        (slow.lacp, "Consists of LACP packets"),
        (slow.stp, "Consists of STP packets"),
        (slow.lldp, "Consists of LLDP packets"),
        (slow.action, "Uses action(s) not supported by datapath"),
        (slow.match_, "Datapath can't match specifically enough"),
    ];
    let given = reasons.into_iter().filter(|(is_so, _)| *is_so);
    given.map(|(_, text)| text)
}

/// Traces a packet through the tables, also when it comes back from the connection tracker;
/// what that then says are the states of `next`, one after the other, and new connections
/// when these are used up.
pub fn trace(view: &SwitchView, input: &Input<'_>, names: TraceNames<'_>, next: &[u32]) -> Report {
    let mut next = next.iter().copied();
    let mut text = String::new();
    let first = trace_one(view, input, names, &mut text);
    let mut waiting: VecDeque<Recirculation> = first.recirculations.iter().cloned().collect();
    let mut translations = vec![first];
    while let Some(mut back) = waiting.pop_front() {
        let line = "=".repeat(79);
        if translations.len() > MAX_RECIRCULATIONS {
            text.push_str(&format!(
                "\n\n{line}\nTrace reached the recirculation limit.  Sopping the trace here.\n\
                 Queued but not processed: {} recirculations.",
                waiting.len() + 1
            ));
            break;
        }
        text.push_str(&format!("\n\n{line}\nrecirc({:#x})", back.id));
        put_state(&mut text, &mut back.key, next.next());
        if let Some(nat) = &back.nat {
            put_nat(&mut text, &mut back.key, nat);
        }
        text.push_str(&format!("{line}\n\n"));
        let again = Input {
            key: &back.key,
            actions: None,
            resume: None,
            ..input.clone()
        };
        let translation = trace_one(view, &again, names, &mut text);
        waiting.extend(translation.recirculations.iter().cloned());
        translations.push(translation);
    }
    Report { text, translations }
}

/// What the tracker says of a packet that comes back.
fn put_state(text: &mut String, key: &mut FlowKey, state: Option<u32>) {
    let said = match state {
        None => " - resume conntrack with default ct_state=trk|new (use --ct-next to customize)"
            .to_owned(),
        Some(state) => {
            let mut said = " - resume conntrack with ct_state=".to_owned();
            CT_STATE.put_plain(&mut said, state, '|');
            said
        }
    };
    text.push_str(&format!("{said}\n"));
    let state = state.unwrap_or(NEW_CONNECTION);
    key.set(slot::CT_STATE, u128::from(state));
}

/// Translates addresses and ports to the first of those given.
fn put_nat(text: &mut String, key: &mut FlowKey, nat: &Nat) {
    text.push_str("Replacing src/dst IP/ports to simulate NAT:\n Initial flow: ");
    put_addresses(text, key, nat.range.addr_min);
    let v4 = (slot::NW_SRC, slot::NW_DST);
    let v6 = (slot::IPV6_SRC, slot::IPV6_DST);
    let (address, places) = match nat.range.addr_min {
        Some(IpAddr::V4(ip)) => (u128::from(ip.to_bits()), v4),
        Some(IpAddr::V6(ip)) => (ip.to_bits(), v6),
        None => (0, v4),
    };
    for (flag, place, port) in [
        (NAT_SRC, places.0, slot::TP_SRC),
        (NAT_DST, places.1, slot::TP_DST),
    ] {
        if nat.flags & flag == 0 || nat.range.addr_min.is_none() {
            continue;
        }
        key.set(place, address);
        if nat.range.port_min != 0 {
            key.set(port, u128::from(nat.range.port_min));
        }
    }
    text.push_str(" Modified flow: ");
    put_addresses(text, key, nat.range.addr_min);
}

/// Addresses of the family of `like`, and ports.
fn put_addresses(text: &mut String, key: &FlowKey, like: Option<IpAddr>) {
    let (src_port, dst_port) = (key.get(slot::TP_SRC), key.get(slot::TP_DST));
    let v4 = |place| Ipv4Addr::from_bits(key.get(place) as u32);
    let v6 = |place| Ipv6Addr::from_bits(key.get(place));
    let line = match like {
        Some(IpAddr::V4(_)) => format!(
            "nw_src={},tp_src={src_port},nw_dst={},tp_dst={dst_port}",
            v4(slot::NW_SRC),
            v4(slot::NW_DST)
        ),
        Some(IpAddr::V6(_)) => format!(
            "ipv6_src=[{}],tp_src={src_port},ipv6_dst=[{}],tp_dst={dst_port}",
            v6(slot::IPV6_SRC),
            v6(slot::IPV6_DST)
        ),
        None => String::new(),
    };
    text.push_str(&format!("{line}\n"));
}

fn trace_one(
    view: &SwitchView,
    input: &Input<'_>,
    names: TraceNames<'_>,
    text: &mut String,
) -> Translation {
    let openflow = names.openflow;
    let mut tree = Trace::new(openflow.clone());
    let translation = translate(view, input, Some(&mut tree));
    text.push_str(&format!("Flow: {}\n", flow_text(input.key, openflow)));
    text.push_str(&tree.text());
    let last = if is_unchanged(input.key, &translation.final_key) {
        "unchanged".to_string()
    } else {
        flow_text(&translation.final_key, openflow)
    };
    let mask = finish::shown(&translation.mask, input.key);
    let mut megaflow = String::new();
    let of_flow = Match::new(input.key, mask);
    put_match(&mut megaflow, &of_flow, 32768, openflow);
    let actions = format_actions(&translation.actions, names.ports);
    text.push_str(&format!(
        "\nFinal flow: {last}\nMegaflow: {megaflow}\nDatapath actions: {actions}"
    ));
    if let Some(error) = translation.error {
        text.push_str(&format!(
            "\nTranslation failed ({error}), packet is dropped.\n"
        ));
    } else if translation.is_slow() {
        text.push_str("\nThis flow is handled by the userspace slow path because it:");
        for reason in explain(translation.slow) {
            text.push_str(&format!("\n  - {reason}."));
        }
    }
    translation
}

/// Whether the pipeline left the key as it was; the action set's output is not a part of it.
fn is_unchanged(first: &FlowKey, last: &FlowKey) -> bool {
    let mut first = first.clone();
    first.set(slot::ACTSET_OUTPUT, u128::from(PortNo::UNSET.0));
    first == *last
}
