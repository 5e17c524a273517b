//! Freezing: a translation stops, and what is left of it waits under a recirculation id until
//! the packet comes back.
//!
//! What is left are the lists on the work stack, up to the next point where the packet is put
//! back to what it was (the end of a clone, of a stay in another bridge, of the translation).
//! The part beyond that point goes on here and now.

use std::sync::Arc;

use dp_lang::{Action as DpAction, Controller as DpController, UserCookie, Userspace};
use net_flow::{Field, MiniKey, PortNo, slot};
use of_wire::Action;
use of_wire::action::{Controller, Resubmit, SetField, SetForm};

use crate::ctx::Ctx;
use crate::flow::metadata_mask;
use crate::recirc::FrozenState;
use crate::translation::Purpose;
use crate::view::BridgeId;
use crate::work::Work;

/// How a frozen packet leaves.
#[derive(Clone, Debug)]
pub(crate) enum Departure {
    /// It goes through the datapath again.
    Recirculate,
    /// The same, with a hash computed first.
    Hash { algorithm: u32, basis: u32 },
    /// A controller gets it and says when to go on.
    #[expect(dead_code, reason = "continuations come next")]
    Pause(Box<Controller>),
}

/// Actions that are left to do, as they are frozen.
#[derive(Default)]
struct Remainder {
    actions: Vec<Action>,
    /// The table and cookie that the last action will find itself in.
    unrolled: Option<(u8, u64)>,
}

impl Remainder {
    /// Adds an action of a rule in `table` with `cookie`.
    fn push(&mut self, action: &Action, table: u8, cookie: u64) {
        let shows_rule = match action {
            Action::OutputReg(_)
            | Action::OutputTrunc(_)
            | Action::Group(_)
            | Action::Output(_)
            | Action::Controller(_)
            | Action::DecMplsTtl
            | Action::DecNshTtl
            | Action::DecTtl(_) => true,
            Action::Resubmit(a) => a.table == 255,
            _ => false,
        };
        if shows_rule && self.unrolled != Some((table, cookie)) {
            self.unrolled = Some((table, cookie));
            self.actions.push(Action::UnrollXlate { table, cookie });
        }
        self.actions.push(match action {
            // These two are instructions, which must not stand among actions.
            Action::GotoTable(table) => Action::Resubmit(Resubmit {
                in_port: PortNo::IN_PORT,
                table: *table,
                with_ct_orig: false,
                plain: false,
            }),
            Action::WriteMetadata(a) => Action::SetField(Box::new(SetField {
                field: Field::Metadata,
                value: u128::from(a.value),
                mask: u128::from(a.mask),
                form: SetForm::SetField,
                flow_has_vlan: false,
            })),
            Action::Note(_) | Action::Conjunction(_) => return,
            action => action.clone(),
        });
    }
}

impl Ctx<'_> {
    /// Freezes the translation up to the next point where the packet is put back.
    pub(crate) fn freeze(&mut self, departure: &Departure) {
        let mut rest = Remainder::default();
        while let Some(work) = self.work.pop() {
            match work {
                Work::Actions { list, next, .. } => {
                    for action in &list[next..] {
                        rest.push(action, self.at.table, self.at.cookie);
                    }
                }
                Work::EndTable(at, node) => {
                    self.at = at;
                    self.leave_node(node);
                }
                Work::EndActionSet(node) => {
                    self.in_action_set = false;
                    self.leave_node(node);
                }
                // The action set is a part of the state.
                Work::ActionSet => {}
                boundary => {
                    self.work.push(boundary);
                    break;
                }
            }
        }
        self.commit();
        self.depart(0, rest.actions, departure);
        // What lies below the boundary acts on another packet.
        self.gone = self.work.is_empty();
    }

    /// Sends the packet away to come back in `table` or with `actions`; the caller goes on with
    /// it.  Returns the recirculation id, if the packet is recirculated.
    pub(crate) fn depart(
        &mut self,
        table: u8,
        actions: Vec<Action>,
        departure: &Departure,
    ) -> Option<u32> {
        let userdata = match departure {
            Departure::Pause(controller) => controller.userdata.clone(),
            _ => Box::default(),
        };
        let state = FrozenState {
            bridge: self.bridge.id,
            table,
            metadata: MiniKey::under(self.flow.key(), &metadata_mask()),
            stack: self.stack.clone(),
            mirrors: self.mirrored,
            action_set: self.action_set.clone(),
            actions: actions.into(),
            userdata,
            conntracked: self.is_conntracked(),
            was_mpls: self.was_mpls,
            hashed: matches!(departure, Departure::Hash { .. })
                || self.flow.key().get(slot::DP_HASH) != 0,
            input: self.input_at,
        };
        let id = self.intern(state);
        match departure {
            Departure::Pause(controller) => {
                if !self.is_looking_only() {
                    let (to, cookie) = (&**controller, self.at.cookie);
                    self.out.push(controller_action(DpController {
                        reason: to.reason,
                        dont_send: false,
                        continuation: true,
                        recirc_id: id,
                        rule_cookie: cookie,
                        controller_id: to.controller_id,
                        max_len: to.max_len,
                    }));
                }
                None
            }
            Departure::Hash { algorithm, basis } => {
                self.out.push(DpAction::Hash {
                    algorithm: *algorithm,
                    basis: *basis,
                });
                self.out.push(DpAction::Recirc(id));
                Some(id)
            }
            Departure::Recirculate => {
                self.out.push(DpAction::Recirc(id));
                Some(id)
            }
        }
    }

    /// Gives a state its id, and keeps it as long as what comes of this translation.
    pub(crate) fn intern(&mut self, state: FrozenState) -> u32 {
        let view = self.view;
        let name_of = |id: BridgeId| match view.bridges.get(&id) {
            Some(bridge) => Arc::clone(&bridge.name),
            None => Arc::default(),
        };
        let (id, state) = view.recirc.intern(state, &name_of);
        self.frozen.push(state);
        id
    }

    /// Whether the translation is for an operator's eyes, without a packet.
    pub(crate) fn is_looking_only(&self) -> bool {
        self.input.packet.is_none() && self.input.purpose == Purpose::Trace
    }

    /// Whether the packet has been through the connection tracker.  One that came in by a port
    /// may have been before it reached the datapath; then that matters.
    pub(crate) const fn is_conntracked(&mut self) -> bool {
        if self.conntracked && !self.is_resumed {
            self.flow.read_bits(slot::CT_STATE, TRACKED);
        }
        self.conntracked
    }
}

/// The bit of `ct_state` that says that the packet was tracked.
pub(crate) const TRACKED: u128 = 0x20;

/// Hands the packet to the switch for a controller.
pub(crate) const fn controller_action(to: DpController) -> DpAction {
    DpAction::Userspace(Userspace {
        pid: 0,
        cookie: Some(UserCookie::Controller(to)),
        egress_tunnel: None,
        actions: false,
    })
}
