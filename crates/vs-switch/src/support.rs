//! What rules ask of a datapath, against what it can do.

use dp_lang::Features;
use net_flow::{Field, FlowMask, Slot, slot};
use of_wire::action::{Ct, CtZone};
use of_wire::{Action, ErrorCode};

/// Bits of `ct_state` that mean something.
const KNOWN_STATES: u128 = 0xff;
/// Those that tell of address translation.
const NAT_STATES: u128 = 0xc0;

/// Whether packets can be told apart by the bits of `mask`.
pub(crate) fn check_match(features: &Features, mask: &FlowMask) -> Result<(), ErrorCode> {
    let state = mask.get(slot::CT_STATE);
    if state & !KNOWN_STATES != 0 {
        return Err(ErrorCode::OfpbmcBadMask);
    }
    let any_tuple = features.ct_orig_tuple || features.ct_orig_tuple6;
    let needs: [(bool, bool); 7] = [
        (state != 0, features.ct_state),
        (state & NAT_STATES != 0, features.ct_state_nat),
        (matters(mask, &[slot::CT_ZONE]), features.ct_zone),
        (matters(mask, &[slot::CT_MARK]), features.ct_mark),
        (matters(mask, &[slot::CT_LABEL]), features.ct_label),
        (
            matters(mask, &[slot::CT_NW_SRC, slot::CT_NW_DST]),
            features.ct_orig_tuple,
        ),
        (
            matters(mask, &[slot::CT_IPV6_SRC, slot::CT_IPV6_DST]),
            features.ct_orig_tuple6,
        ),
    ];
    let upper = [slot::CT_NW_PROTO, slot::CT_TP_SRC, slot::CT_TP_DST];
    let lacks_tuple = matters(mask, &upper) && !any_tuple;
    if lacks_tuple || needs.iter().any(|(needed, is_there)| *needed && !is_there) {
        return Err(ErrorCode::NxbmcCtDatapathSupport);
    }
    Ok(())
}

fn matters(mask: &FlowMask, slots: &[Slot]) -> bool {
    slots.iter().any(|slot| mask.get(*slot) != 0)
}

/// Whether these actions can be carried out; says in the log what is missing.
pub(crate) fn check_actions(features: &Features, actions: &[Action]) -> Result<(), ErrorCode> {
    for action in actions {
        match action {
            Action::Ct(ct) => check_ct(features, ct)?,
            Action::Resubmit(a) if a.with_ct_orig && !features.ct_orig_tuple => {
                return Err(refuse("resubmit", "ct original direction tuple"));
            }
            Action::SetField(a)
                if !features.nd_extensions
                    && matches!(a.field, Field::NdReserved | Field::NdOptionsType) =>
            {
                warn("set field", "setting IPv6 ND Extensions fields");
                return Err(ErrorCode::OfpbacBadSetArgument);
            }
            Action::Clone(list) | Action::WriteActions(list) => check_actions(features, list)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_ct(features: &Features, ct: &Ct) -> Result<(), ErrorCode> {
    if !features.ct_state {
        return Err(refuse("ct", "ct action"));
    }
    if ct.zone != CtZone::Constant(0) && !features.ct_zone {
        return Err(refuse("ct", "ct zones"));
    }
    // Every datapath that has the one has the other.
    if ct.force && !features.ct_orig_tuple {
        return Err(refuse("ct", "force commit"));
    }
    for action in &ct.actions {
        if matches!(action, Action::Nat(_)) && !features.ct_state_nat {
            return Err(refuse("ct", "nat"));
        }
        let lacks = match action.written_field() {
            Some(Field::CtMark) => !features.ct_mark,
            Some(Field::CtLabel) => !features.ct_label,
            _ => false,
        };
        if lacks {
            return Err(refuse("ct", "setting mark and/or label"));
        }
    }
    Ok(())
}

fn warn(action: &str, detail: &str) {
    base::log_limited!(
        Warn,
        "ofproto_dpif",
        (1, 5),
        "Rejecting {action} action because datapath does not support {detail} (your kernel module \
         may be out of date)"
    );
}

fn refuse(action: &str, detail: &str) -> ErrorCode {
    warn(action, detail);
    ErrorCode::NxbacCtDatapathSupport
}

#[cfg(test)]
mod tests {
    use net_flow::Names;
    use of_wire::action::Parser;

    use super::*;

    fn actions(text: &str) -> Vec<Action> {
        Parser::new(&Names::default())
            .actions(text)
            .expect("actions")
    }

    #[test]
    fn what_a_datapath_lacks_is_refused() {
        let none = Features::default();
        let some = Features {
            ct_state: true,
            ct_zone: true,
            ..none
        };
        let refused = Err(ErrorCode::NxbacCtDatapathSupport);
        assert_eq!(check_actions(&none, &actions("ct(table=1)")), refused);
        assert_eq!(
            check_actions(&none, &actions("clone(ct(table=1))")),
            refused
        );
        assert_eq!(check_actions(&none, &actions("resubmit(,1,ct)")), refused);
        assert_eq!(check_actions(&some, &actions("ct(table=1,zone=5)")), Ok(()));
        for text in [
            "ct(commit,force)",
            "ct(commit,nat(src=10.0.0.1))",
            "ct(commit,exec(set_field:1->ct_mark))",
        ] {
            assert_eq!(check_actions(&some, &actions(text)), refused, "{text}");
        }
        let mut mask = FlowMask::new();
        assert_eq!(check_match(&none, &mask), Ok(()));
        mask.set(slot::CT_STATE, 0x21);
        let refused = Err(ErrorCode::NxbmcCtDatapathSupport);
        assert_eq!(check_match(&none, &mask), refused);
        assert_eq!(check_match(&some, &mask), Ok(()));
        mask.set(slot::CT_NW_PROTO, 0xff);
        assert_eq!(check_match(&some, &mask), refused);
        mask.set(slot::CT_STATE, 0x100);
        assert_eq!(check_match(&some, &mask), Err(ErrorCode::OfpbmcBadMask));
    }
}
