//! `parse-actions` and `normalize-actions`, which need no datapath.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dp_lang::text::{
    FlowFormat, PortNames, format_actions, format_flow, parse_actions, parse_flow,
};
use dp_lang::{Action, PortNo};
use net_flow::types::eth_type;
use net_flow::{FlowKey, slot};

use crate::commands::{Call, INVALID, Outcome};

pub(crate) fn parse_actions_of(
    call: &mut Call<'_>,
    text: &str,
    names: &PortNames,
) -> Outcome<Vec<Action>> {
    match parse_actions(text, names) {
        Ok(actions) => Ok(actions),
        Err(_) => call.fail_with("odp_actions_from_string", INVALID),
    }
}

/// Prints each list of actions as dumps show it.
pub(crate) fn parse_actions_command(call: &mut Call<'_>) -> Outcome {
    let names = PortNames::none();
    for text in call.operands {
        let actions = parse_actions_of(call, text, &names)?;
        call.print(format_actions(&actions, &names) + "\n");
    }
    Ok(())
}

/// A tag: type and control information.
type Tag = (u16, u16);

const TAGS: [(slot::Slot, slot::Slot); 2] = [
    (slot::VLAN_TPID, slot::VLAN_TCI),
    (slot::VLAN2_TPID, slot::VLAN2_TCI),
];

/// The tags of a packet while its actions are followed, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Tags(Vec<Tag>);

impl Tags {
    fn of(key: &FlowKey) -> Self {
        let tags = TAGS.map(|(tpid, tci)| (key.get(tpid) as u16, key.get(tci) as u16));
        Self(tags.into_iter().take_while(|(_, tci)| *tci != 0).collect())
    }

    fn push(&mut self, tag: Tag) {
        self.0.insert(0, tag);
        self.0.truncate(TAGS.len());
    }

    fn pop(&mut self) {
        if !self.0.is_empty() {
            self.0.remove(0);
        }
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            return "no vlan: ".to_owned();
        }
        let mut text = String::new();
        for (tpid, tci) in &self.0 {
            text += "vlan(";
            if *tpid != eth_type::VLAN {
                let _ = write!(text, "tpid=0x{tpid:04x},");
            }
            let _ = write!(text, "vid={},pcp={}): ", tci & 0xfff, tci >> 13);
        }
        text
    }
}

/// `NAME=NUMBER`.
fn port(text: &str) -> Option<(&str, PortNo)> {
    let (name, number) = text.split_once('=')?;
    Some((name, PortNo(number.parse().ok()?)))
}

/// Puts outputs that follow each other in the order of their ports.
fn sort_outputs(actions: &mut [Action]) {
    let is_output = |action: &Action| matches!(action, Action::Output(_));
    for run in actions.chunk_by_mut(|one, other| is_output(one) && is_output(other)) {
        run.sort_by_key(|action| match action {
            Action::Output(port) => *port,
            _ => PortNo::LOCAL,
        });
    }
}

/// Prints what is done with the packet under each VLAN tag that it gets, so that lists of
/// actions that do the same in another order look the same.
pub(crate) fn normalize_actions(call: &mut Call<'_>) -> Outcome {
    let mut names = PortNames::none();
    for text in &call.operands[2..] {
        match port(text) {
            Some((name, number)) => names.insert(number, name),
            None => return call.fail(format!("{text}: expected NAME=NUMBER")),
        }
    }
    let flow = match parse_flow(call.operands[0], &names) {
        Ok(flow) => flow,
        Err(error) => {
            return call.fail_with(&format!("odp_flow_key_from_string ({error})"), INVALID);
        }
    };
    let none = PortNames::none();
    let shown = format_flow(&flow.key, Some(&flow.mask), &none, FlowFormat::default());
    call.print(format!("input flow: {shown}\n"));
    let actions = parse_actions_of(call, call.operands[1], &names)?;
    if call.options.more {
        call.print(format!(
            "input actions: {}\n",
            format_actions(&actions, &none)
        ));
    }
    let mut tags = Tags::of(&flow.key);
    let mut by_tags: BTreeMap<Tags, Vec<Action>> = BTreeMap::new();
    for action in actions {
        match action {
            Action::PopVlan => tags.pop(),
            Action::PushVlan { tpid, tci } => tags.push((tpid, tci)),
            other => by_tags.entry(tags.clone()).or_default().push(other),
        }
    }
    let mpls = mpls_text(&flow.key);
    for (tags, mut actions) in by_tags {
        sort_outputs(&mut actions);
        let text = format_actions(&actions, &none);
        call.print(format!("{}{mpls}{text}", tags.text()));
    }
    Ok(())
}

fn mpls_text(key: &FlowKey) -> String {
    let kind = key.get(slot::ETH_TYPE) as u16;
    if !matches!(kind, eth_type::MPLS | eth_type::MPLS_MULTICAST) {
        return "no mpls: ".to_owned();
    }
    let lse = key.get(slot::MPLS_LSE) as u32;
    let (label, tc, ttl) = (lse >> 12, lse >> 9 & 7, lse & 0xff);
    format!("mpls(label={label},tc={tc},ttl={ttl}): ")
}

#[cfg(test)]
mod tests {
    use crate::{Caller, NoDatapaths, Options, find, run};

    fn normalized(operands: &[&str]) -> Result<String, String> {
        let command = find("normalize-actions").unwrap();
        let options = Options::default();
        let report = run(command, &mut NoDatapaths, Caller::Tool, options, operands);
        report.into_result("ovs-dpctl")
    }

    /// Golden texts of Open vSwitch 3.7.1.
    #[test]
    fn actions_by_vlan() {
        let flow = "in_port(1),eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07),eth_type(0x0800),\
                    ipv4(src=192.168.0.1,dst=192.168.0.2,proto=1,tos=0,ttl=64,frag=no),\
                    icmp(type=8,code=0)";
        let text = normalized(&[flow, "1,push_vlan(vid=3,pcp=0),4,3,pop_vlan,5,2"]).unwrap();
        let want =
            format!("input flow: {flow}\nno vlan: no mpls: 1,2,5vlan(vid=3,pcp=0): no mpls: 3,4");
        assert_eq!(text, want);
        let named = flow.replace("in_port(1)", "in_port(p)");
        let text = normalized(&[&named, "p,q", "p=3", "q=4"]).unwrap();
        assert!(text.contains("input flow: in_port(3),eth(") && text.ends_with("no mpls: 3,4"));
    }

    #[test]
    fn faults() {
        let cases: &[(&[&str], &str)] = &[
            (
                &["in_port(1),foo", "1"],
                "ovs-dpctl: odp_flow_key_from_string (syntax error at foo) (Invalid argument)\n",
            ),
            (
                &["in_port(1),eth(),eth_type(0x1234)", "foo"],
                "input flow: in_port(1),eth(),eth_type(0x1234)\n\
                 ovs-dpctl: odp_actions_from_string (Invalid argument)\n",
            ),
            (
                &["in_port(1),eth_type(0x1234)", "1", "x"],
                "ovs-dpctl: x: expected NAME=NUMBER\n",
            ),
        ];
        for (operands, want) in cases {
            assert_eq!(normalized(operands).unwrap_err(), *want);
        }
    }
}
