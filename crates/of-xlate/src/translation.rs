//! The entry: what a translation is given and what it returns.

use std::sync::Arc;

use base::Instant;
use dp_lang::{Action as DpAction, SlowPath, UserCookie, Userspace};
use net_flow::types::{eth_type, ip_proto};
use net_flow::{FlowKey, FlowMask, PortNo, slot};
use of_wire::Action;
use of_wire::action::Nat;

use crate::ctx::{Ctx, Position};
use crate::dependency::Dependencies;
use crate::effect::Effect;
use crate::error::XlateError;
use crate::finish;
use crate::flow::Flow;
use crate::freeze::TRACKED;
use crate::lookup::Query;
use crate::recirc::FrozenState;
use crate::trace::{NodeKind, Trace};
use crate::tunnel::PacketTypeMode;
use crate::view::{BridgeId, BridgeView, Port, SwitchView};
use crate::work::{Output, Work};

/// What a translation is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A packet that met no flow in the datapath.
    Upcall,
    /// A flow that is in the datapath is checked.
    Revalidate,
    /// A controller sent a packet with actions.
    PacketOut,
    /// An operator wants to know.
    Trace,
}

/// What a translation is given besides the view.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The bridge that the packet came in on.
    pub bridge: BridgeId,
    /// The packet's key; the input port is the OpenFlow number.
    pub key: &'a FlowKey,
    /// The packet, if there is one: then the translation sees its own effects, and
    /// remarks are worth logging.
    pub packet: Option<&'a [u8]>,
    /// Actions to carry out in place of a lookup in table 0.
    pub actions: Option<Arc<[Action]>>,
    /// The state to go on from, where that is not the one that the key's recirculation id
    /// names.
    pub resume: Option<Arc<FrozenState>>,
    /// What it is for.
    pub purpose: Purpose,
    /// The time.
    pub now: Instant,
}

/// Something for the log that a translation came upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Whether something is wrong, rather than odd.
    pub is_error: bool,
    /// The line.
    pub text: String,
}

/// What a translation came to.
#[derive(Debug)]
pub struct Translation {
    /// What the datapath does to the packet; nothing means that it is dropped.
    pub actions: Vec<DpAction>,
    /// The bits of the packet's key on which the actions depend.  A packet without VLAN
    /// tag matters as such.  The input port is exact, so the mask holds for keys with
    /// datapath port numbers too.
    pub mask: FlowMask,
    /// What else is to be done, in order.
    pub effects: Vec<Effect>,
    /// Why the datapath cannot do it alone, if it cannot.
    pub slow: SlowPath,
    /// Why it failed; then there are no actions.
    pub error: Option<XlateError>,
    /// What is worth a line in the log.
    pub remarks: Vec<Remark>,
    /// What it depends on.
    pub dependencies: Dependencies,
    /// The frozen states that the actions name; they live as long as these references.
    pub frozen: Vec<Arc<FrozenState>>,
    /// Copies of the packet that the tracker sends back, if the translation was traced.
    pub recirculations: Vec<Recirculation>,
    /// The packet's key at the end of the pipeline.
    pub(crate) final_key: FlowKey,
}

/// A copy of a packet that comes back from the connection tracker.
#[derive(Clone, Debug)]
pub struct Recirculation {
    /// Its recirculation id, which is in its key too.
    pub id: u32,
    /// Its key; what the tracker adds to it is not there.
    pub key: FlowKey,
    /// How its addresses are translated, if they are.
    pub nat: Option<Nat>,
}

impl Translation {
    /// Whether packets of the flow must come to the switch one by one.
    pub fn is_slow(&self) -> bool {
        self.slow != SlowPath::default()
    }

    /// What a flow in the datapath does, which is not [`Self::actions`] if the switch must
    /// handle each packet.
    pub fn flow_actions(&self) -> Vec<DpAction> {
        if !self.is_slow() {
            return self.actions.clone();
        }
        vec![DpAction::Userspace(Userspace {
            pid: 0,
            cookie: Some(UserCookie::SlowPath(self.slow)),
            egress_tunnel: None,
            actions: false,
        })]
    }

    fn failed(input: &Input<'_>, error: XlateError) -> Self {
        let (final_key, mask) = Flow::new(input.key).into_parts();
        Self {
            actions: Vec::new(),
            mask: finish::mask(mask, input.key, &final_key),
            effects: Vec::new(),
            slow: SlowPath::default(),
            error: Some(error),
            remarks: Vec::new(),
            dependencies: Dependencies::default(),
            frozen: Vec::new(),
            recirculations: Vec::new(),
            final_key,
        }
    }
}

/// Translates a packet.  `trace` takes what happens on the way.
pub fn translate(view: &SwitchView, input: &Input<'_>, trace: Option<&mut Trace>) -> Translation {
    let Some(bridge) = view.bridges.get(&input.bridge) else {
        return Translation::failed(input, XlateError::BridgeNotFound);
    };
    let mut ctx = Ctx {
        view,
        input,
        bridge: Arc::clone(bridge),
        flow: Flow::new(input.key),
        out: Vec::new(),
        outer: Vec::new(),
        effects: Vec::new(),
        slow: SlowPath::default(),
        error: None,
        remarks: Vec::new(),
        dependencies: Dependencies::default(),
        frozen: Vec::new(),
        work: Vec::new(),
        at: Position {
            table: 0,
            cookie: u64::MAX,
            internal: false,
            table_miss: false,
            depth: 0,
            in_bucket: false,
        },
        resubmits: 0,
        exit: false,
        action_set: Vec::new(),
        action_set_has_group: false,
        in_action_set: false,
        stack: Vec::new(),
        conntracked: input.key.get(slot::CT_STATE) & TRACKED != 0,
        was_mpls: false,
        is_resumed: false,
        gone: false,
        input_at: None,
        original_priority: input.key.get(slot::SKB_PRIORITY),
        mirrored: 0,
        snaplen: 0,
        learned: Vec::new(),
        recirculations: Vec::new(),
        trace,
    };
    let node = ctx.enter_node(NodeKind::Bridge, || bridge_text(bridge));
    ctx.translate();
    ctx.leave_node(node);
    ctx.finish()
}

pub(crate) fn bridge_text(bridge: &BridgeView) -> String {
    format!("bridge(\"{}\")", bridge.name)
}

impl Ctx<'_> {
    fn translate(&mut self) {
        // The port by which the packet came in last; a resumed packet has had another since.
        let port = self.input_port();
        let reserved = self.mirrors_only(port.as_deref());
        if let Some(port) = port.as_ref().filter(|p| p.patch.is_none()) {
            self.input_at = Some((self.bridge.id, port.number));
        }
        let state = self.frozen_state();
        if let Some(state) = &state {
            self.thaw(state);
        }
        if self.error.is_some() {
            return;
        }
        let is_l3 = |p: &Arc<Port>| {
            let tunnel = p.tunnel.as_ref();
            tunnel.is_some_and(|t| t.config.mode == PacketTypeMode::LegacyL3)
        };
        if self.flow.packet_type() != 0 && self.at.table == 0 && port.as_ref().is_some_and(is_l3) {
            self.flow.add_frame();
        }
        let actions = match (&self.input.actions, &state) {
            (Some(actions), _) => Arc::clone(actions),
            (None, Some(state)) if !state.actions.is_empty() => Arc::clone(&state.actions),
            _ => self.first_lookup(),
        };
        if let Some(name) = reserved {
            self.warn(format!(
                "dropping packet received on port {name}, which is reserved exclusively for \
                 mirroring"
            ));
            return;
        }
        if state.is_none() {
            self.count_receipt(port.as_deref());
        }
        if !self.take_over_congestion() {
            self.error = Some(XlateError::Congestion);
            return;
        }
        if port.as_ref().is_none_or(|p| self.may_receive(p)) {
            self.push_actions(actions, true);
            self.mirror_ingress();
            self.run();
            if self.error.is_none() {
                self.after_actions(port.as_deref());
            }
        }
        if self.error.is_none() && !self.gone {
            self.in_band_dhcp();
        }
    }

    /// Looks the packet up in the table where it begins or goes on, and returns the actions
    /// found.
    fn first_lookup(&mut self) -> Arc<[Action]> {
        let query = Query {
            table: self.at.table,
            in_port: self.flow.in_port(),
            may_packet_in: true,
            honor_miss: true,
            by_connection: false,
        };
        let (found, table) = self.look_up(&query);
        // What follows stands below the table's node to the end.
        self.enter_table(&found, table, table);
        self.actions_of(&found)
    }

    /// A tunnel port counts what it receives; its datapath port is others' too.
    fn count_receipt(&mut self, port: Option<&Port>) {
        if let Some(tunnel) = port.and_then(|p| p.tunnel.as_ref()) {
            let counters = Arc::clone(&tunnel.counters);
            self.effects.push(Effect::Received(counters));
        }
    }

    fn after_actions(&mut self, port: Option<&Port>) {
        if port.is_some_and(|p| !p.spanning.forwards()) {
            // NORMAL and the learning action have seen the packet; that is all.
            self.out.clear();
            self.action_set.clear();
            self.error = Some(XlateError::ForwardingDisabled);
            return;
        }
        if !self.gone {
            self.work.push(Work::ActionSet);
            self.run();
        }
    }

    /// Lets the local port have replies of DHCP servers, which in-band control needs.
    fn in_band_dhcp(&mut self) {
        if !self.bridge.in_band || self.flow.eth_type() != eth_type::IPV4 {
            return;
        }
        let is_reply = self.flow.read(slot::NW_PROTO) == u128::from(ip_proto::UDP)
            && self.flow.read(slot::TP_SRC) == 67
            && self.flow.read(slot::TP_DST) == 68;
        let local = self
            .bridge
            .ports
            .get(&PortNo::LOCAL)
            .and_then(|p| p.datapath);
        let reaches = self
            .out
            .iter()
            .any(|a| Some(a) == local.map(DpAction::Output).as_ref());
        if is_reply && !reaches {
            self.report(NodeKind::Detail, || {
                "outputting DHCP packet to local port for in-band control".to_string()
            });
            self.work.push(Work::Output(Output {
                port: PortNo::LOCAL,
                check_stp: true,
                last: false,
                truncated: false,
            }));
            self.run();
        }
    }

    fn finish(self) -> Translation {
        let (final_key, mask) = self.flow.into_parts();
        let mask = finish::mask(mask, self.input.key, &final_key);
        let failed = self.error.is_some();
        let mut actions = if failed { Vec::new() } else { self.out };
        if let Some(DpAction::Clone(_)) = actions.last()
            && let Some(DpAction::Clone(inner)) = actions.pop()
        {
            // Nothing follows, so no copy is needed.
            actions.extend(inner);
        }
        let mut slow = if failed {
            SlowPath::default()
        } else {
            self.slow
        };
        if finish::is_too_long(&actions) {
            slow.action = true;
        }
        Translation {
            actions,
            mask,
            effects: self.effects,
            slow,
            error: self.error.filter(|e| !e.is_plain_drop()),
            remarks: self.remarks,
            dependencies: self.dependencies,
            frozen: self.frozen,
            recirculations: self.recirculations,
            final_key,
        }
    }
}
