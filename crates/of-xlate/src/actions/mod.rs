//! Carrying out actions: one file per family, as in `of-wire`.

pub(crate) mod action_set;
mod choose;
mod conntrack;
mod field;
mod flow_table;
pub(crate) mod group;
mod header;
mod mpls;
mod output;
mod queue;
mod stack;
mod ttl;
mod vlan;

use of_wire::Action;

use crate::ctx::Ctx;
use crate::error::XlateError;
use crate::freeze::Departure;
use crate::lookup::Query;

/// What follows an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next action of the list.
    Continue,
    /// The rest of the list is skipped.
    Stop,
}

/// Whether what these actions do to the packet can be undone without a copy of it in the
/// datapath.
pub(crate) fn are_reversible(actions: &[Action]) -> bool {
    !actions.iter().any(|action| {
        matches!(
            action,
            Action::Ct(_)
                | Action::Meter(_)
                | Action::Nat(_)
                | Action::OutputTrunc(_)
                | Action::Encap(_)
                | Action::Decap(_)
                | Action::DecNshTtl
        )
    })
}

impl Ctx<'_> {
    /// Carries out one action; `last` says that nothing is done to the packet afterwards.
    pub(crate) fn act(&mut self, action: &Action, last: bool) -> Next {
        match action {
            Action::Output(a) => self.output(a.port, a.max_len, true, last),
            Action::Controller(a) => return self.controller(a),
            Action::Enqueue(a) => self.enqueue(*a, last),
            Action::OutputReg(a) => self.output_reg(*a, last),
            Action::OutputTrunc(a) => self.output_truncated(*a, last),
            Action::SetField(a) => self.set_field(a),
            Action::Move(a) => self.move_field(*a),
            Action::SetVlanVid(a) => self.set_vlan_vid(*a),
            Action::SetVlanPcp(a) => self.set_vlan_pcp(*a),
            Action::StripVlan { .. } => self.flow.pop_vlan(),
            Action::PushVlan(tpid) => self.flow.push_vlan(*tpid),
            Action::SetEthSrc(_)
            | Action::SetEthDst(_)
            | Action::SetIpv4Src(_)
            | Action::SetIpv4Dst(_)
            | Action::SetIpDscp(_)
            | Action::SetIpEcn(_)
            | Action::SetIpTtl(_)
            | Action::SetL4SrcPort(_)
            | Action::SetL4DstPort(_)
            | Action::SetTunnel { .. } => self.set_header(action),
            Action::PushMpls(_)
            | Action::PopMpls(_)
            | Action::SetMplsLabel(_)
            | Action::SetMplsTc(_)
            | Action::SetMplsTtl(_)
            | Action::DecMplsTtl => return self.mpls(action),
            Action::DecTtl(controllers) => return self.dec_ttl(controllers),
            Action::StackPush(part) => self.stack_push(*part),
            Action::StackPop(part) => self.stack_pop(*part),
            Action::SetQueue(queue) => self.set_queue(*queue),
            Action::PopQueue => self.pop_queue(),
            Action::Resubmit(a) => self.resubmit(*a, last),
            Action::GotoTable(table) => {
                let query = Query {
                    table: *table,
                    in_port: self.flow.in_port(),
                    may_packet_in: true,
                    honor_miss: true,
                    by_connection: false,
                };
                self.go_to_table(&query, last, false);
            }
            Action::Clone(list) => self.clone_packet(list.as_slice().into(), last),
            Action::ClearActions => self.clear_actions(),
            Action::WriteActions(list) => self.write_actions(list),
            Action::WriteMetadata(a) => self.write_metadata(*a),
            Action::Note(_) => {}
            Action::Exit => self.exit = true,
            Action::Conjunction(_) => {
                self.warn("executing no-op conjunction action".to_string());
            }
            Action::DebugSlow => self.slow.action = true,
            Action::DebugRecirc => {
                self.freeze(&Departure::Recirculate);
                return Next::Stop;
            }
            Action::UnrollXlate { table, cookie } => self.unroll(*table, *cookie),
            Action::Ct(a) => return self.track(a),
            Action::CtClear => self.forget_connection(),
            Action::Bundle(a) => self.bundle(a, action, last),
            Action::Multipath(a) => self.multipath(a, action),
            Action::Group(id) => return self.use_group(*id, last),
            other => return self.unsupported(other),
        }
        Next::Continue
    }

    /// Fails because of an action that this version does not carry out.
    fn unsupported(&mut self, action: &Action) -> Next {
        let name = name(action);
        self.warn(format!("action \"{name}\" is not supported yet, dropping"));
        self.error = Some(XlateError::UnsupportedAction(name));
        Next::Stop
    }
}

/// The names of actions that are not carried out yet.
const fn name(action: &Action) -> &'static str {
    match action {
        Action::DecNshTtl => "dec_nsh_ttl",
        Action::DeleteField(_) => "delete_field",
        Action::Encap(_) => "encap",
        Action::Decap(_) => "decap",
        Action::FinTimeout(_) => "fin_timeout",
        Action::Learn(_) => "learn",
        Action::Sample(_) => "sample",
        Action::Nat(_) => "nat",
        Action::CheckPktLarger(_) => "check_pkt_larger",
        Action::Meter(_) => "meter",
        Action::Controller(_) => "controller(pause)",
        Action::SetField(_) | Action::Move(_) => "set_field of tunnel metadata",
        _ => "unknown",
    }
}

impl Ctx<'_> {
    pub(crate) fn fail_unsupported(&mut self, action: &Action) {
        self.unsupported(action);
    }
}
