//! `ct`, `nat` inside of it, `ct_clear`.

use std::net::IpAddr;

use dp_lang::Action as DpAction;
use dp_lang::action::{Ct as DpCt, Nat as DpNat};
use net_flow::{Field, Subfield, slot};
use of_wire::Action;
use of_wire::action::{
    ALG_FTP, ALG_TFTP, Ct, CtZone, NAT_DST, NAT_HASH, NAT_PERSISTENT, NAT_RANDOM, NAT_SRC, Nat,
};

use crate::actions::Next;
use crate::ctx::Ctx;
use crate::flow::{is_pipeline_word, is_tunnel};
use crate::freeze::Departure;
use crate::trace::NodeKind;
use crate::translation::Recirculation;

/// The changes of a connection that whoever listens to the kernel hears of (`IPCT_*`): new,
/// related, destroyed, mark, label.
const REPORTED: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;

/// Bits that actions of a `ct` wrote.
#[derive(Default)]
struct Written {
    mark: u32,
    label: u128,
}

impl Written {
    fn note(&mut self, field: Field, bits: u128) {
        match field {
            Field::CtMark => self.mark |= bits as u32,
            Field::CtLabel => self.label |= bits,
            _ => {}
        }
    }
}

/// The bits that a part covers of its field.
const fn bits_of(part: Subfield) -> u128 {
    part.mask() << part.offset
}

/// The bits of a field that an action writes.
fn written(action: &Action) -> Option<(Field, u128)> {
    match action {
        Action::SetField(a) => Some((a.field, a.mask)),
        Action::Move(a) => Some((a.dst.field, bits_of(a.dst))),
        Action::StackPop(part) => Some((part.field, bits_of(*part))),
        _ => action.written_field().map(|f| (f, f.full_mask())),
    }
}

/// Whether a field is a part of the state that a frozen translation keeps.
fn is_kept(field: Field) -> bool {
    let in_pipeline = field
        .info()
        .slot
        .is_some_and(|s| is_pipeline_word(usize::from(s.word)) || s == slot::IN_PORT);
    in_pipeline || is_tunnel(field)
}

impl Ctx<'_> {
    pub(crate) fn track(&mut self, action: &Ct) -> Next {
        let zone = self.zone(action.zone);
        self.commit();
        let (written, nat) = self.run_nested(&action.actions);
        if self.error.is_some() {
            return Next::Stop;
        }
        let key = self.flow.key();
        let mark = key.get(slot::CT_MARK) as u32 & written.mark;
        let label = key.get(slot::CT_LABEL) & written.label;
        let reports = action.commit && self.view.features.ct_eventmask;
        let ct = DpCt {
            commit: action.commit,
            force: action.force,
            zone,
            mark: (written.mark != 0).then_some((mark, written.mark)),
            label: (written.label != 0).then_some((label, written.label)),
            helper: self.helper(action.alg),
            nat: nat.as_ref().map(datapath_nat),
            timeout: None,
            eventmask: reports.then_some(REPORTED),
        };
        self.out.push(DpAction::Ct(Box::new(ct)));
        if let Some(table) = action.table {
            self.conntracked = true;
            self.fork(table, zone, nat);
        }
        // What the tracker says is known only where the packet goes on.
        self.flow.clear_conntrack();
        self.conntracked = false;
        self.report(NodeKind::Detail, || {
            "Sets the packet to an untracked state, and clears all the conntrack fields.".to_owned()
        });
        Next::Continue
    }

    fn zone(&mut self, zone: CtZone) -> u16 {
        match zone {
            CtZone::Constant(zone) => zone,
            // With another value there, the packet would have come back with another id.
            CtZone::Field(part) if self.is_resumed && is_kept(part.field) => {
                part.read(self.flow.key()).unwrap_or(0) as u16
            }
            CtZone::Field(part) => self.flow.read_part(part).unwrap_or(0) as u16,
        }
    }

    /// Carries out what stands in a `ct`.  The bits of mark and label that it writes are the
    /// tracker's business; those that it reads matter.
    fn run_nested(&mut self, actions: &[Action]) -> (Written, Option<Nat>) {
        let mut all = Written::default();
        let mut nat = None;
        if actions.is_empty() {
            self.report(NodeKind::Action, || "drop".to_owned());
        }
        for action in actions {
            self.report(NodeKind::Action, || crate::trace::action_text(action));
            if let Action::Nat(a) = action {
                nat = Some(**a);
                continue;
            }
            let before = [slot::CT_MARK, slot::CT_LABEL].map(|s| (s, self.flow.mask().get(s)));
            self.act(action, false);
            let mask = self.flow.parts().1;
            for (slot, bits) in before {
                mask.set(slot, bits);
            }
            if let Action::Move(a) = action {
                self.flow.mark_field(a.src.field, bits_of(a.src));
            }
            if let Some((field, bits)) = written(action) {
                all.note(field, bits);
            }
        }
        (all, nat)
    }

    fn helper(&mut self, port: u16) -> Option<String> {
        match port {
            0 => None,
            ALG_FTP => Some("ftp".to_owned()),
            ALG_TFTP => Some("tftp".to_owned()),
            other => {
                self.warn(format!("cannot serialize ct_helper {other}"));
                None
            }
        }
    }

    /// Sends a copy of the packet through the datapath again, to go on in `table`.
    fn fork(&mut self, table: u8, zone: u16, nat: Option<Nat>) {
        let Some(id) = self.depart(table, Vec::new(), &Departure::Recirculate) else {
            return;
        };
        if self.trace.is_none() {
            return;
        }
        let mut key = self.flow.key().clone();
        key.set(slot::RECIRC_ID, u128::from(id));
        key.set(slot::CT_ZONE, u128::from(zone));
        self.recirculations.push(Recirculation { id, key, nat });
        self.report(NodeKind::Detail, || {
            format!(
                "A clone of the packet is forked to recirculate. The forked pipeline will be \
                 resumed at table {table}."
            )
        });
    }

    pub(crate) fn forget_connection(&mut self) {
        if self.is_conntracked() {
            self.conntracked = false;
            self.flow.clear_conntrack();
            if self.view.features.ct_clear {
                self.out.push(DpAction::CtClear);
            }
        }
    }
}

/// A translation as the datapath is asked for it.
fn datapath_nat(nat: &Nat) -> DpNat {
    let has = |flag| nat.flags & flag != 0;
    let source = (has(NAT_SRC) || has(NAT_DST)).then(|| has(NAT_SRC));
    let range = &nat.range;
    let highest = |low: IpAddr| range.addr_max.filter(|high| *high > low).unwrap_or(low);
    let addresses = range.addr_min.map(|low| (low, highest(low)));
    let (low, high) = (range.port_min, range.port_max);
    let has_ports = addresses.is_some() && low != 0;
    DpNat {
        source,
        addresses,
        ports: has_ports.then(|| (low, low.max(high))),
        persistent: source.is_some() && has(NAT_PERSISTENT),
        hash: source.is_some() && has(NAT_HASH),
        random: source.is_some() && has(NAT_RANDOM) && !has(NAT_HASH),
    }
}
