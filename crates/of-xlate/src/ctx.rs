//! The state of a translation under way.

use std::sync::Arc;

use dp_lang::{Action as DpAction, SlowPath};
use net_flow::{FlowKey, Names, PortNo};
use net_proto::mac_learning::{MacPort, Sighting, Station};
use of_switch::Rule;
use of_wire::Action;

use crate::dependency::Dependencies;
use crate::effect::Effect;
use crate::error::XlateError;
use crate::flow::Flow;
use crate::mirror::MirrorSet;
use crate::recirc::{FrozenState, StackItem};
use crate::trace::{NodeId, NodeKind, Trace};
use crate::translation::{Input, Recirculation, Remark};
use crate::view::{BridgeId, BridgeView, Port, SwitchView};
use crate::work::Work;

/// Tables, clones and bridges may be nested so deep.
pub(crate) const MAX_DEPTH: u32 = 64;
/// So many table lookups may be made.
pub(crate) const MAX_RESUBMITS: u32 = 64 * 64;
/// So many bytes may be on the stack of `push`.
pub(crate) const MAX_STACK: usize = 65536;
/// So many bytes of datapath actions may come out of table lookups.
pub(crate) const MAX_ACTIONS_SIZE: usize = 65535;

/// What a table lookup came to.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Rule(Arc<Rule>),
    /// No rule; the packet goes to the controllers.
    Miss,
    /// No rule; the packet is dropped.
    NoPacketIn,
    /// A fragment, while fragments are dropped.
    Fragment,
}

/// Where in the tables the translation is.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) table: u8,
    pub(crate) cookie: u64,
    /// The rule's table is the switch's own.
    pub(crate) internal: bool,
    /// The rule is the table-miss flow: priority 0, matching everything.
    pub(crate) table_miss: bool,
    pub(crate) depth: u32,
    /// The actions are those of a group's bucket.
    pub(crate) in_bucket: bool,
}

pub(crate) struct Ctx<'a> {
    pub(crate) view: &'a SwitchView,
    pub(crate) input: &'a Input<'a>,
    pub(crate) bridge: Arc<BridgeView>,
    pub(crate) flow: Flow,
    pub(crate) out: Vec<DpAction>,
    /// The action lists around a clone that is being filled.
    pub(crate) outer: Vec<Vec<DpAction>>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) slow: SlowPath,
    pub(crate) error: Option<XlateError>,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) dependencies: Dependencies,
    pub(crate) frozen: Vec<Arc<FrozenState>>,
    pub(crate) work: Vec<Work>,
    pub(crate) at: Position,
    pub(crate) resubmits: u32,
    /// Actions are skipped up to the end of the bridge.
    pub(crate) exit: bool,
    pub(crate) action_set: Vec<Action>,
    pub(crate) action_set_has_group: bool,
    pub(crate) in_action_set: bool,
    pub(crate) stack: Vec<StackItem>,
    pub(crate) conntracked: bool,
    /// The last MPLS entry was popped: what is behind it, the datapath must tell.
    pub(crate) was_mpls: bool,
    /// The translation goes on where an earlier one was frozen.
    pub(crate) is_resumed: bool,
    /// The packet was sent away by the outermost list, so that nothing is left to do.
    pub(crate) gone: bool,
    /// The port that the packet first came in by, unless that was a patch port.
    pub(crate) input_at: Option<(BridgeId, PortNo)>,
    pub(crate) original_priority: u128,
    /// The mirrors of the current bridge that the packet has gone to.
    pub(crate) mirrored: MirrorSet,
    /// Bytes that the mirror that is being sent to wants at most; 0 is all.
    pub(crate) snaplen: u16,
    /// What this translation has learned and the tables may not know yet.
    pub(crate) learned: Vec<(BridgeId, Sighting)>,
    /// Packets that were sent through the datapath again; noted for traces only.
    pub(crate) recirculations: Vec<Recirculation>,
    pub(crate) trace: Option<&'a mut Trace>,
}

/// What comes back when a nested part of a translation ends.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) key: FlowKey,
    pub(crate) stack: Vec<StackItem>,
    pub(crate) action_set: Vec<Action>,
    pub(crate) action_set_has_group: bool,
}

impl Ctx<'_> {
    /// Sets the packet's key, stack and action set aside; stack and action set are empty
    /// until they are put back.
    pub(crate) fn save(&mut self) -> Saved {
        Saved {
            key: self.flow.key().clone(),
            stack: std::mem::take(&mut self.stack),
            action_set: std::mem::take(&mut self.action_set),
            action_set_has_group: std::mem::take(&mut self.action_set_has_group),
        }
    }

    pub(crate) fn restore(&mut self, saved: Saved) {
        self.flow.restore(saved.key);
        self.stack = saved.stack;
        self.action_set = saved.action_set;
        self.action_set_has_group = saved.action_set_has_group;
    }

    /// The port that the packet came in by, as the current bridge sees it.
    pub(crate) fn input_port(&self) -> Option<Arc<Port>> {
        self.bridge.ports.get(&self.flow.in_port()).cloned()
    }

    /// Whether this translation's effects are to be seen by itself.
    pub(crate) const fn has_side_effects(&self) -> bool {
        self.input.packet.is_some()
    }

    /// Where a station is, what was learned in this translation included.
    pub(crate) fn lookup_mac(&mut self, station: Station) -> Option<MacPort> {
        let id = self.bridge.id;
        self.dependencies.note_macs(id);
        let own = self.learned.iter().rev();
        let seen = own
            .into_iter()
            .find(|(b, s)| *b == id && s.station == station);
        match seen {
            Some((_, seen)) => Some(seen.port),
            None => self.bridge.macs.lookup(station),
        }
    }

    /// Adds a node to the trace.
    pub(crate) fn report(&mut self, kind: NodeKind, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.add(kind, text());
        }
    }

    /// Adds a node to the trace, below which those that follow stand until
    /// [`Self::leave_node`] is given what this returns.
    pub(crate) fn enter_node(&mut self, kind: NodeKind, text: impl FnOnce() -> String) -> NodeId {
        match &mut self.trace {
            Some(trace) => trace.enter(kind, text()),
            None => NodeId::ROOT,
        }
    }

    pub(crate) fn leave_node(&mut self, node: NodeId) {
        if let Some(trace) = &mut self.trace {
            trace.leave(node);
        }
    }

    /// Tells the operator of something wrong: in the trace, or as a remark for the log if a
    /// packet is at hand.
    pub(crate) fn warn(&mut self, text: String) {
        self.remark(NodeKind::Error, text);
    }

    /// Tells the operator of something odd.
    pub(crate) fn inform(&mut self, text: String) {
        self.remark(NodeKind::Warning, text);
    }

    /// Tells the log of something wrong, whatever the translation is made for.
    pub(crate) fn complain(&mut self, text: String) {
        let is_error = true;
        self.remarks.push(Remark { is_error, text });
    }

    fn remark(&mut self, kind: NodeKind, text: String) {
        let is_error = kind == NodeKind::Error;
        if let Some(trace) = &mut self.trace {
            trace.add(kind, text);
        } else if self.input.packet.is_some() {
            let flow = crate::trace::flow_text(&self.flow.base, &Names::default());
            let bridge = &self.bridge.name;
            let text = format!("{text} on bridge {bridge} while processing {flow}");
            self.remarks.push(Remark { is_error, text });
        }
    }
}
