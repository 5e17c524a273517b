//! Resuming a translation where it was frozen.

use std::sync::Arc;

use net_flow::{PortNo, slot};
use of_wire::Action;

use crate::ctx::Ctx;
use crate::error::XlateError;
use crate::recirc::FrozenState;
use crate::trace::{NodeKind, actions_text};

impl Ctx<'_> {
    /// The state in which the packet was when it left, if it comes back.
    pub(crate) fn frozen_state(&mut self) -> Option<Arc<FrozenState>> {
        if let Some(state) = &self.input.resume {
            return Some(Arc::clone(state));
        }
        let id = self.input.key.get(slot::RECIRC_ID) as u32;
        if id == 0 {
            return None;
        }
        let state = self.view.recirc.get(id);
        if state.is_none() {
            self.warn(format!("Recirculation context not found for ID {id:x}"));
            self.error = Some(XlateError::NoRecirculationContext);
        }
        state
    }

    /// Goes back to where the translation was frozen.
    pub(crate) fn thaw(&mut self, state: &FrozenState) {
        let node = self.enter_node(NodeKind::Thaw, || "thaw".to_owned());
        self.restore_state(state);
        self.leave_node(node);
    }

    fn restore_state(&mut self, state: &FrozenState) {
        if self.input.actions.is_some() {
            self.warn("Recirculation conflict (actions)!".to_owned());
            self.error = Some(XlateError::RecirculationConflict);
            return;
        }
        self.is_resumed = true;
        if state.bridge != self.bridge.id {
            let Some(bridge) = self.view.bridges.get(&state.bridge) else {
                self.warn("Frozen bridge no longer exists.".to_owned());
                self.error = Some(XlateError::BridgeNotFound);
                return;
            };
            self.bridge = Arc::clone(bridge);
        }
        self.at.table = state.table;
        let table = state.table;
        self.report(NodeKind::Thaw, || format!("Resuming from table {table}"));
        self.conntracked = state.conntracked;
        if !state.conntracked {
            self.flow.clear_conntrack();
        }
        self.flow.restore_metadata(&state.metadata);
        self.input_at = state.input;
        self.stack.clone_from(&state.stack);
        self.mirrored = state.mirrors;
        if !state.action_set.is_empty() {
            self.report_restored("action set", &state.action_set);
            self.flow
                .set(slot::ACTSET_OUTPUT, u128::from(PortNo::UNSET.0));
            self.merge_actions(&state.action_set);
        }
        if !state.actions.is_empty() {
            self.report_restored("actions", &state.actions);
        }
    }

    fn report_restored(&mut self, what: &str, actions: &[Action]) {
        self.report(NodeKind::Thaw, || {
            format!("Restoring {what}: {}", actions_text(actions))
        });
    }

    /// `unroll_xlate`: the rule whose actions follow.
    pub(crate) fn unroll(&mut self, table: u8, cookie: u64) {
        self.at.table = table;
        self.at.cookie = cookie;
        self.report(NodeKind::Thaw, || {
            let cookie = if cookie == 0 {
                "0".to_owned()
            } else {
                format!("{cookie:#x}")
            };
            format!("restored state: table={table}, cookie={cookie}")
        });
    }
}
