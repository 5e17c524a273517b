//! `push_mpls`, `pop_mpls`, `set_mpls_label`, `set_mpls_tc`, `set_mpls_ttl`, `dec_mpls_ttl`, and
//! when a packet whose last label was popped must come back for more.

use net_flow::{Field, slot};
use of_wire::Action;

use crate::actions::Next;
use crate::ctx::Ctx;
use crate::error::XlateError;
use crate::mpls::{ENTRIES, is_mpls};
use crate::output::{ToController, reason};
use crate::trace::NodeKind;

/// What lies behind an MPLS stack is known only when the packet was looked at again.  Whether
/// an action can do without.
const fn needs_no_payload(action: &Action) -> bool {
    match action {
        Action::Output(_)
        | Action::OutputTrunc(_)
        | Action::Enqueue(_)
        | Action::OutputReg(_)
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetEthSrc(_)
        | Action::SetEthDst(_)
        | Action::SetTunnel { .. }
        | Action::SetQueue(_)
        | Action::Group(_) => true,
        Action::SetField(a) => (a.field as u8) < Field::Ipv4Src as u8,
        _ => false,
    }
}

impl Ctx<'_> {
    /// Whether the packet must be looked at again before `action`.
    pub(crate) const fn must_look_again(&self, action: &Action) -> bool {
        self.was_mpls && !needs_no_payload(action)
    }

    pub(crate) fn mpls(&mut self, action: &Action) -> Next {
        match action {
            Action::PushMpls(ethertype) => return self.push_mpls(*ethertype),
            Action::PopMpls(ethertype) => return self.pop_mpls(*ethertype),
            Action::SetMplsLabel(label) => self.flow.write_mpls(label << 12, 0xffff_f000),
            Action::SetMplsTc(tc) => self.flow.write_mpls(u32::from(*tc) << 9, 0xe00),
            Action::SetMplsTtl(ttl) => self.flow.write_mpls(u32::from(*ttl), 0xff),
            Action::DecMplsTtl => return self.dec_mpls_ttl(),
            _ => {}
        }
        Next::Continue
    }

    fn push_mpls(&mut self, ethertype: u16) -> Next {
        if self.flow.count_mpls() == 0 {
            // Behind the label, the datapath could change nothing any more.
            self.commit();
        }
        match self.flow.push_mpls(ethertype) {
            Ok(()) => Next::Continue,
            Err(_) => self.fail_too_deep("push"),
        }
    }

    fn pop_mpls(&mut self, ethertype: u16) -> Next {
        match self.flow.pop_mpls(ethertype) {
            Ok(popped) => {
                self.was_mpls |= popped && !is_mpls(ethertype) && self.view.features.recirc;
                Next::Continue
            }
            Err(_) => {
                self.out.clear();
                self.fail_too_deep("pop")
            }
        }
    }

    fn fail_too_deep(&mut self, what: &str) -> Next {
        if self.input.packet.is_some() {
            let most = ENTRIES.len();
            let why = if what == "push" {
                "would have more"
            } else {
                "has more"
            };
            self.warn(format!(
                "dropping packet on which an MPLS {what} action can't be performed as it \
                 {why} MPLS LSEs than the {most} supported."
            ));
        }
        self.error = Some(XlateError::TooManyMplsLabels);
        Next::Stop
    }

    fn dec_mpls_ttl(&mut self) -> Next {
        if is_mpls(self.flow.eth_type()) {
            let ttl = self.flow.read_bits(slot::MPLS_LSE, 0xff);
            if ttl > 1 {
                self.flow.write_mpls(ttl as u32 - 1, 0xff);
                return Next::Continue;
            }
            self.send_to_controller(&ToController {
                max_len: u16::MAX,
                reason: reason::INVALID_TTL,
                controller_id: 0,
                userdata: &[],
            });
        }
        self.report(NodeKind::Warning, || {
            "MPLS decrement TTL exception".to_owned()
        });
        Next::Stop
    }
}
