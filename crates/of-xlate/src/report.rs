//! The text of `ofproto/trace`.

use dp_lang::SlowPath;
use dp_lang::text::{PortNames, format_actions};
use net_flow::text::put_match;
use net_flow::{FlowKey, Match, Names, PortNo, slot};

use crate::finish;
use crate::trace::{Trace, flow_text};
use crate::translation::{Input, Translation, translate};
use crate::view::SwitchView;

/// A trace: its text, and the translation that it is of.
#[derive(Debug)]
pub struct Report {
    /// What `ofproto/trace` prints.
    pub text: String,
    /// The translation; its effects have not been applied.
    pub translation: Translation,
}

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

/// Traces a packet through the tables.  Datapath ports go by `ports`, OpenFlow's by `names`.
pub fn trace(view: &SwitchView, input: &Input<'_>, ports: &PortNames, names: &Names) -> Report {
    let mut tree = Trace::new(names.clone());
    let translation = translate(view, input, Some(&mut tree));
    let mut text = format!("Flow: {}\n", flow_text(input.key, names));
    text.push_str(&tree.text());
    let last = if is_unchanged(input.key, &translation.final_key) {
        "unchanged".to_string()
    } else {
        flow_text(&translation.final_key, names)
    };
    let mask = finish::shown(&translation.mask, input.key);
    let mut megaflow = String::new();
    let of_flow = Match::new(input.key, mask);
    put_match(&mut megaflow, &of_flow, 32768, names);
    let actions = format_actions(&translation.actions, ports);
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
    Report { text, translation }
}

/// Whether the pipeline left the key as it was; the action set's output is not a part of it.
fn is_unchanged(first: &FlowKey, last: &FlowKey) -> bool {
    let mut first = first.clone();
    first.set(slot::ACTSET_OUTPUT, u128::from(PortNo::UNSET.0));
    first == *last
}
