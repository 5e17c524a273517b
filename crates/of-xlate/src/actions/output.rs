//! Actions that send the packet out, beyond plain output.

use dp_lang::Action as DpAction;
use net_flow::PortNo;
use of_wire::Action;
use of_wire::action::{Controller, Enqueue, OutputReg, OutputTrunc};

use crate::actions::Next;
use crate::ctx::Ctx;
use crate::output::ToController;
use crate::trace::NodeKind;

impl Ctx<'_> {
    pub(crate) fn controller(&mut self, action: &Controller) -> Next {
        if action.pause {
            self.fail_unsupported(&Action::Controller(Box::new(action.clone())));
            return Next::Stop;
        }
        self.send_to_controller(&ToController {
            max_len: action.max_len,
            reason: action.reason,
            controller_id: action.controller_id,
            userdata: &action.userdata,
        });
        Next::Continue
    }

    pub(crate) fn enqueue(&mut self, action: Enqueue, last: bool) {
        let port = match action.port {
            PortNo::IN_PORT => self.flow.in_port(),
            port if port == self.flow.in_port() => {
                self.read_priority();
                return;
            }
            port => port,
        };
        let before = self.set_priority(u128::from(action.queue));
        self.work.push(crate::work::Work::Priority(before));
        self.push_output(port, last, false);
    }

    pub(crate) fn output_reg(&mut self, action: OutputReg, last: bool) {
        let Some(port) = self.flow.read_part(action.src) else {
            self.fail_unsupported(&Action::OutputReg(action));
            return;
        };
        let Ok(number) = u16::try_from(port) else {
            self.report(NodeKind::Warning, || {
                format!("output port {port} is out of range")
            });
            return;
        };
        self.report(NodeKind::Detail, || format!("output port is {port}"));
        self.output(PortNo::from_of10(number), action.max_len, false, last);
    }

    pub(crate) fn output_truncated(&mut self, action: OutputTrunc, last: bool) {
        let port = action.port;
        match port {
            PortNo::TABLE
            | PortNo::NORMAL
            | PortNo::FLOOD
            | PortNo::ALL
            | PortNo::CONTROLLER
            | PortNo::NONE => {
                self.report(NodeKind::Warning, || {
                    format!("output_trunc does not support port: {port}")
                });
            }
            _ if port == self.flow.in_port() => self.skip_input_port(),
            _ => {
                let number = match port {
                    PortNo::IN_PORT => self.flow.in_port(),
                    port => port,
                };
                let target = self.bridge.ports.get(&number);
                if target.is_none_or(|p| p.datapath.is_none()) {
                    self.warn(format!("output_trunc does not support patch port {port}"));
                    return;
                }
                self.out.push(DpAction::Trunc(action.max_len));
                self.push_output(number, last, true);
            }
        }
    }
}
