//! Patch ports: one translation crosses bridges.

use std::sync::Arc;

use crate::ctx::Ctx;
use crate::effect::Effect;
use crate::lookup::Query;
use crate::trace::NodeKind;
use crate::translation::bridge_text;
use crate::view::Port;
use crate::work::{Visit, Work};

impl Ctx<'_> {
    /// Sends the packet through a patch port to its peer.
    pub(crate) fn output_to_patch(&mut self, port: &Port, last: bool) {
        let Some(patch) = &port.patch else { return };
        let view = self.view;
        let there = view.bridges.get(&patch.bridge);
        let Some((bridge, peer)) = there.and_then(|b| Some((b, b.ports.get(&patch.port)?))) else {
            return;
        };
        if let Some(back) = &peer.patch {
            self.effects.push(Effect::Patch {
                into: Arc::clone(&patch.counters),
                out_of: Arc::clone(&back.counters),
            });
        }
        let saved = self.save();
        self.flow.enter_bridge(peer.number);
        let node = self.enter_node(NodeKind::Bridge, || bridge_text(bridge));
        let from = std::mem::replace(&mut self.bridge, Arc::clone(bridge));
        let is_elsewhere = from.id != bridge.id;
        let mut visit = Box::new(Visit {
            saved,
            bridge: from,
            node,
            conntracked: std::mem::take(&mut self.conntracked),
            was_mpls: self.was_mpls,
            mirrored: self.mirrored,
            discard: None,
        });
        if is_elsewhere {
            self.mirrored = 0;
        }
        let enters = self.may_receive(peer);
        if enters && !peer.spanning.forwards() {
            visit.discard = Some((self.out.len(), self.flow.base.clone()));
        }
        let forwards = visit.discard.is_none();
        self.work.push(Work::EndBridge(visit));
        if enters {
            if forwards {
                self.work.push(Work::ActionSet);
            }
            let query = Query {
                table: 0,
                in_port: peer.number,
                may_packet_in: true,
                honor_miss: true,
                by_connection: false,
            };
            self.go_to_table(&query, last, true);
        }
    }

    pub(crate) fn leave_bridge(&mut self, visit: Visit) {
        if let Some((length, base)) = visit.discard {
            self.out.truncate(length);
            self.flow.base = base;
        }
        if self.bridge.id != visit.bridge.id {
            self.mirrored = visit.mirrored;
        }
        self.leave_node(visit.node);
        self.bridge = visit.bridge;
        self.restore(visit.saved);
        self.conntracked = visit.conntracked;
        self.was_mpls = visit.was_mpls;
        // Whether and how the other bridge stopped does not concern this one.
        self.exit = false;
        self.error = None;
    }
}
