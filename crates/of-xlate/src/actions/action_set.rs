//! The action set (OpenFlow 1.1 and later, section 5.10 of 1.3.1).

use net_flow::{PortNo, slot};
use of_wire::Action;

use crate::ctx::Ctx;
use crate::trace::{NodeKind, actions_text};

/// Where an action stands when the set is carried out; of those with one place, the last
/// that was written counts.
const fn place(action: &Action) -> Option<usize> {
    Some(match action {
        Action::StripVlan { .. } => 0,
        Action::PopMpls(_) => 1,
        Action::Decap(_) => 2,
        Action::Encap(_) => 3,
        Action::PushMpls(_) => 4,
        Action::PushVlan(_) => 5,
        Action::DecTtl(_) => 6,
        Action::DecMplsTtl => 7,
        Action::DecNshTtl => 8,
        _ => return None,
    })
}

const PLACES: usize = 9;

/// The rank of an action that ends the set: the highest one counts, and without any the
/// set does nothing.
const fn final_rank(action: &Action) -> Option<u8> {
    Some(match action {
        Action::Ct(_) => 0,
        Action::CtClear => 1,
        Action::Resubmit(_) => 2,
        Action::Output(_) => 3,
        Action::Group(_) => 4,
        _ => return None,
    })
}

/// Whether an action writes a field; all of these are carried out, in order.
const fn is_set(action: &Action) -> bool {
    matches!(
        action,
        Action::SetField(_)
            | Action::Move(_)
            | Action::SetEthDst(_)
            | Action::SetEthSrc(_)
            | Action::SetIpDscp(_)
            | Action::SetIpEcn(_)
            | Action::SetIpTtl(_)
            | Action::SetIpv4Dst(_)
            | Action::SetIpv4Src(_)
            | Action::SetL4DstPort(_)
            | Action::SetL4SrcPort(_)
            | Action::SetMplsLabel(_)
            | Action::SetMplsTc(_)
            | Action::SetMplsTtl(_)
            | Action::SetQueue(_)
            | Action::SetTunnel { .. }
            | Action::SetVlanPcp(_)
            | Action::SetVlanVid(_)
    )
}

/// The set as a list, in the order in which it is carried out.
pub(crate) fn in_order(set: &[Action]) -> Vec<Action> {
    let mut places: [Option<&Action>; PLACES] = [None; PLACES];
    let mut last: Option<(u8, &Action)> = None;
    for action in set {
        if let Some(at) = place(action) {
            places[at] = Some(action);
        } else if let Some(rank) = final_rank(action)
            && last.is_none_or(|(known, _)| rank >= known)
        {
            last = Some((rank, action));
        }
    }
    let Some((_, last)) = last else {
        return Vec::new();
    };
    let sets = set.iter().filter(|a| is_set(a));
    let list = places.into_iter().flatten().chain(sets).chain([last]);
    list.cloned().collect()
}

impl Ctx<'_> {
    pub(crate) fn clear_actions(&mut self) {
        self.report_action_set("was");
        self.action_set.clear();
        self.action_set_has_group = false;
        self.set_actset_output(PortNo::UNSET);
    }

    pub(crate) fn write_actions(&mut self, list: &[Action]) {
        self.merge_actions(list);
        self.report_action_set("is");
    }

    /// Adds to the action set.
    pub(crate) fn merge_actions(&mut self, list: &[Action]) {
        for action in list {
            match action {
                _ if self.action_set_has_group => break,
                Action::Output(output) => self.set_actset_output(output.port),
                Action::Group(_) => {
                    self.set_actset_output(PortNo::UNSET);
                    self.action_set_has_group = true;
                }
                _ => {}
            }
        }
        self.action_set.extend_from_slice(list);
    }

    fn set_actset_output(&mut self, port: PortNo) {
        self.flow.set(slot::ACTSET_OUTPUT, u128::from(port.0));
    }

    fn report_action_set(&mut self, verb: &str) {
        if self.trace.is_none() {
            return;
        }
        let list = in_order(&self.action_set);
        let text = if list.is_empty() {
            format!("action set {verb} empty")
        } else {
            format!("action set {verb}: {}", actions_text(&list))
        };
        self.report(NodeKind::Detail, || text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use of_wire::action::Output;

    fn output(port: u32) -> Action {
        Action::Output(Output {
            port: PortNo(port),
            max_len: 0,
        })
    }

    #[test]
    fn the_set_has_its_own_order() {
        let set = [
            output(1),
            Action::SetQueue(5),
            Action::PushVlan(0x8100),
            Action::StripVlan { pop: false },
            output(2),
        ];
        let list = in_order(&set);
        let wanted = [
            Action::StripVlan { pop: false },
            Action::PushVlan(0x8100),
            Action::SetQueue(5),
            output(2),
        ];
        assert_eq!(list, wanted);
        assert!(in_order(&set[1..4]).is_empty());
    }
}
