//! `set_field`, `load`, `move`.

use net_flow::types::eth_type;
use net_flow::{Field, Subfield, slot};
use of_wire::Action;
use of_wire::action::{Move, SetField};

use crate::ctx::Ctx;
use crate::trace::{NodeKind, subfield_text};

impl Ctx<'_> {
    pub(crate) fn set_field(&mut self, action: &SetField) {
        let field = action.field;
        if !self.flow.has(field.info().prereq) {
            self.report(NodeKind::Warning, || {
                let name = field.info().name;
                format!("unmet prerequisites for {name}, set_field ignored")
            });
            return;
        }
        self.mark_network_prereqs(field);
        if self
            .flow
            .write_field(field, action.value, action.mask)
            .is_none()
        {
            self.fail_unsupported(&Action::SetField(Box::new(*action)));
        }
    }

    /// The datapath writes fields of the network header only where there is one, which
    /// the protocol tells.
    fn mark_network_prereqs(&mut self, field: Field) {
        let in_ip = matches!(
            field,
            Field::Ipv4Src
                | Field::Ipv4Dst
                | Field::Ipv6Src
                | Field::Ipv6Dst
                | Field::Ipv6Label
                | Field::IpTos
                | Field::IpDscp
                | Field::IpEcn
                | Field::IpTtl
        );
        let in_arp = matches!(
            field,
            Field::ArpOp | Field::ArpSha | Field::ArpTha | Field::ArpSpa | Field::ArpTpa
        );
        if in_ip && self.flow.is_ip() || in_arp && self.flow.eth_type() == eth_type::ARP {
            self.flow.mark(slot::NW_PROTO);
        }
    }

    pub(crate) fn move_field(&mut self, action: Move) {
        let Move { src, dst, .. } = action;
        if self.flow.has(dst.field.info().prereq) && self.flow.has(src.field.info().prereq) {
            let value = self.flow.read_part(src);
            if value.and_then(|v| self.flow.write_part(dst, v)).is_none() {
                self.fail_unsupported(&Action::Move(action));
                return;
            }
        }
        self.report_part(dst);
    }

    /// Writes what `action` has computed into a field.
    pub(crate) fn write_result(&mut self, part: Subfield, value: u128, action: &Action) {
        if self.flow.write_part(part, value).is_some() {
            self.report_part(part);
        } else {
            self.fail_unsupported(action);
        }
    }

    /// Tells what a part of a field is now.
    pub(crate) fn report_part(&mut self, part: Subfield) {
        if self.trace.is_some() {
            let text = subfield_text(part, self.flow.key());
            self.report(NodeKind::Detail, || text);
        }
    }
}
