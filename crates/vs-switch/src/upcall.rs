//! Packets that the datapath has no flow for, or was told to hand over.  This runs on the
//! datapath's threads: it reads the published view and takes no lock that a slow step holds.

use std::cell::LazyCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Instant;
use dp_api::{NewFlow, Upcall, UpcallHandler, UpcallKind};
use dp_lang::text::{FlowFormat, PortNames, format_flow};
use dp_lang::{Action, Controller, UserCookie};
use net_flow::types::eth_type;
use net_flow::{FlowKey, FlowMask, Match, MiniKey, Names, Slot, slot};
use of_switch::PacketInEvent;
use of_wire::message::{PacketIn, PacketInReason};
use of_wire::print::put_packet_text;
use of_xlate::{
    Effect, FrozenState, Input, Purpose, Remark, SwitchView, TraceNames, Translation, XlateError,
    trace, translate,
};

use crate::backer::Shared;
use crate::events::Event;
use crate::megaflow::Megaflow;

impl UpcallHandler for Shared {
    fn upcall(
        &self,
        upcall: &Upcall<'_>,
        now: Instant,
        back: &mut dyn FnMut(Arc<[Action]>),
    ) -> Option<NewFlow> {
        self.log_upcall(upcall);
        let view = self.view.load();
        match &upcall.kind {
            UpcallKind::Miss => return self.miss(&view, upcall, now, back),
            UpcallKind::Action(Some(UserCookie::Controller(controller))) => {
                self.to_controller(&view, upcall, controller);
            }
            UpcallKind::Action(Some(UserCookie::SlowPath(_))) => {
                self.slow_path(&view, upcall, now, back);
            }
            UpcallKind::Action(_) => {}
        }
        None
    }
}

/// Actions as they are shared between packets and flows.
fn share(actions: Vec<Action>) -> Arc<[Action]> {
    actions.into()
}

impl Shared {
    /// Tells the log, if it wants that much, of a packet that was handed over.
    fn log_upcall(&self, upcall: &Upcall<'_>) {
        let (module, name) = (self.log_module, &self.log_name);
        if !log::log_enabled!(target: module, log::Level::Debug) {
            return;
        }
        let kind = match upcall.kind {
            UpcallKind::Miss => "miss",
            UpcallKind::Action(_) => "action",
        };
        let verbose = FlowFormat {
            verbose: true,
            ..FlowFormat::default()
        };
        let key = format_flow(upcall.key, None, &PortNames::none(), verbose);
        let mut packet = String::new();
        let packet_type = upcall.key.get(slot::PACKET_TYPE) as u32;
        put_packet_text(&mut packet, upcall.packet, packet_type);
        base::log_limited!(
            Debug,
            module,
            (600, 600),
            "{name}: {kind} upcall:\n{key}\n{}",
            packet.trim_end()
        );
    }

    fn translate(
        &self,
        view: &SwitchView,
        upcall: &Upcall<'_>,
        now: Instant,
    ) -> Option<Translation> {
        let (bridge, key) = view.locate(upcall.key).ok()?;
        self.counters.xlate_actions.inc();
        let input = Input {
            bridge,
            key: &key,
            packet: Some(upcall.packet),
            actions: None,
            resume: None,
            purpose: Purpose::Upcall,
            now,
        };
        let translation = translate(view, &input, None);
        log_remarks(&translation);
        if let Some(XlateError::RecursionTooDeep | XlateError::TooManyResubmits) = translation.error
        {
            log_endless(view, &input);
        }
        Some(translation)
    }

    fn miss(
        &self,
        view: &SwitchView,
        upcall: &Upcall<'_>,
        now: Instant,
        back: &mut dyn FnMut(Arc<[Action]>),
    ) -> Option<NewFlow> {
        let mut translation = self.translate(view, upcall, now)?;
        self.apply(&translation.effects, 1, upcall.packet.len() as u64, now);
        let actions = share(std::mem::take(&mut translation.actions));
        if !actions.is_empty() {
            back(Arc::clone(&actions));
        }
        self.flow_for(view, upcall, translation, actions, now)
    }

    /// The flow for packets like this one, and takes note of it; none if it is not to be installed.
    fn flow_for(
        &self,
        view: &SwitchView,
        upcall: &Upcall<'_>,
        mut translation: Translation,
        actions: Arc<[Action]>,
        now: Instant,
    ) -> Option<NewFlow> {
        if self.flows.load(Ordering::Relaxed) >= self.flow_limit.load(Ordering::Relaxed) {
            self.counters.upcall_flow_limit_hit.inc();
            return None;
        }
        if !self.wildcards.load(Ordering::Relaxed) {
            translation.mask.union(&exact_mask(upcall.key));
        }
        if upcall.congested && !self.sightings.again(upcall.key, &translation.mask) {
            self.counters.upcall_flow_deferred.inc();
            return None;
        }
        let actions = if translation.is_slow() {
            share(translation.flow_actions())
        } else {
            actions
        };
        let flow = NewFlow::new(upcall.key, &translation.mask, actions);
        self.remember(view, upcall.key, &flow, translation, now);
        Some(flow)
    }

    /// Takes note of a flow that the datapath will install.
    fn remember(
        &self,
        view: &SwitchView,
        key: &FlowKey,
        flow: &NewFlow,
        translation: Translation,
        now: Instant,
    ) {
        let megaflow = Megaflow {
            key: Arc::new(MiniKey::new(key)),
            mask: Arc::new(MiniKey::new(flow.mask.as_key())),
            actions: Arc::clone(&flow.actions),
            version: view.version,
            dependencies: translation.dependencies,
            effects: translation.effects,
            frozen: translation.frozen,
            created: now,
            sequence: 0,
            credited: (0, 0),
            seen: 0,
        };
        self.megaflows.add(flow.ufid, megaflow);
        if self.flows.fetch_add(1, Ordering::Relaxed) == 0 {
            // The main loop does not look for flows while there is none.
            self.events.push(Event::FlowsExist);
        }
    }

    /// Applies effects; the main loop hears of it when that changes how packets are forwarded.
    fn apply(&self, effects: &[Effect], packets: u64, bytes: u64, now: Instant) {
        let mut learned = false;
        for effect in effects {
            if let Effect::Learn(macs, _) = effect {
                let before = macs.generation();
                effect.apply(packets, bytes, now);
                learned |= macs.generation() != before;
            } else {
                effect.apply(packets, bytes, now);
            }
        }
        if learned {
            self.events.push(Event::Learned);
        }
    }

    /// A packet of a flow that the datapath cannot handle alone.  The flow's statistics count
    /// it, so only learning is applied.
    fn slow_path(
        &self,
        view: &SwitchView,
        upcall: &Upcall<'_>,
        now: Instant,
        back: &mut dyn FnMut(Arc<[Action]>),
    ) {
        let Some(translation) = self.translate(view, upcall, now) else {
            return;
        };
        let mut learning = translation.effects;
        learning.retain(|e| matches!(e, Effect::Learn(..)));
        self.apply(&learning, 1, upcall.packet.len() as u64, now);
        if !translation.actions.is_empty() {
            back(share(translation.actions));
        }
    }

    fn to_controller(&self, view: &SwitchView, upcall: &Upcall<'_>, to: &Controller) {
        let Some(state) = view.recirc.get(to.recirc_id) else {
            return;
        };
        if to.dont_send {
            return;
        }
        let metadata = metadata(&state, upcall.key);
        let whole = upcall.packet.len();
        let len = whole.min(usize::from(to.max_len));
        let packet = PacketIn {
            packet: upcall.packet[..len].to_vec(),
            total_len: u32::try_from(whole).unwrap_or(u32::MAX),
            buffer_id: None,
            reason: reason(to.reason),
            table: state.table,
            cookie: to.rule_cookie,
            metadata,
            userdata: state.userdata.to_vec(),
            continuation: None,
        };
        let event = PacketInEvent {
            packet,
            controller_id: to.controller_id,
        };
        let event = Event::PacketIn {
            bridge: state.bridge,
            packet: Box::new(event),
        };
        if !self.events.push(event) {
            self.counters.packet_in_overflow.inc();
        }
    }
}

pub(crate) fn log_remarks(translation: &Translation) {
    for Remark { is_error, text } in &translation.remarks {
        if *is_error {
            base::log_limited!(Warn, "ofproto_dpif_xlate", (1, 5), "{text}");
        } else {
            base::log_limited!(Info, "ofproto_dpif_xlate", (1, 5), "{text}");
        }
    }
}

/// Logs how a translation went that did not come to an end.
fn log_endless(view: &SwitchView, input: &Input<'_>) {
    // The trace is long to make and to read, so it is not made for a line that is not logged.
    let text = LazyCell::new(|| {
        let input = Input {
            purpose: Purpose::Trace,
            ..input.clone()
        };
        let names = TraceNames {
            ports: &PortNames::none(),
            openflow: &Names::default(),
        };
        trace(view, &input, names, &[]).text
    });
    base::log_limited!(Warn, "ofproto_dpif_upcall", (1, 1), "{}", *text);
}

fn reason(number: u8) -> PacketInReason {
    match number {
        0 => PacketInReason::NoMatch,
        2 => PacketInReason::InvalidTtl,
        3 => PacketInReason::ActionSet,
        4 => PacketInReason::Group,
        5 => PacketInReason::PacketOut,
        6 => PacketInReason::ExplicitMiss,
        7 => PacketInReason::ImplicitMiss,
        _ => PacketInReason::Action,
    }
}

/// The fields that go with a packet to a controller: the pipeline's from the frozen state,
/// the datapath's from the packet's key.
fn metadata(state: &FrozenState, key: &FlowKey) -> Match {
    let frozen = &state.metadata.expand();
    let mut fields = Match::any();
    let in_port = frozen.get(slot::IN_PORT);
    fields.set(slot::IN_PORT, in_port);
    let mut copy = |from: &FlowKey, slot: Slot| {
        let value = from.get(slot);
        if value != 0 {
            fields.set(slot, value);
        }
    };
    copy(frozen, slot::METADATA);
    for n in 0..32 {
        copy(frozen, slot::reg(n));
    }
    for tunnel in [
        slot::TUN_ID,
        slot::TUN_SRC,
        slot::TUN_DST,
        slot::TUN_IPV6_SRC,
        slot::TUN_IPV6_DST,
        slot::TUN_FLAGS,
        slot::TUN_GBP_ID,
        slot::TUN_GBP_FLAGS,
        slot::TUN_ERSPAN_VER,
        slot::TUN_ERSPAN_IDX,
        slot::TUN_ERSPAN_DIR,
        slot::TUN_ERSPAN_HWID,
    ] {
        copy(frozen, tunnel);
    }
    copy(key, slot::PKT_MARK);
    if !state.conntracked {
        return fields;
    }
    for own in [slot::CT_STATE, slot::CT_ZONE, slot::CT_MARK, slot::CT_LABEL] {
        copy(key, own);
    }
    if key.get(slot::CT_STATE) != 0 {
        connection_fields(&mut fields, key);
    }
    fields
}

/// The tuple of the connection that a tracked packet belongs to, and the Ethernet type, which says how
/// to read it.
fn connection_fields(fields: &mut Match, key: &FlowKey) {
    let ethertype = key.get(slot::ETH_TYPE);
    fields.set(slot::ETH_TYPE, ethertype);
    let addresses = match ethertype as u16 {
        eth_type::IPV4 => [slot::CT_NW_SRC, slot::CT_NW_DST],
        eth_type::IPV6 => [slot::CT_IPV6_SRC, slot::CT_IPV6_DST],
        _ => return,
    };
    if key.get(slot::CT_NW_PROTO) == 0 {
        return;
    }
    let upper = [slot::CT_NW_PROTO, slot::CT_TP_SRC, slot::CT_TP_DST];
    for slot in addresses.into_iter().chain(upper) {
        fields.set(slot, key.get(slot));
    }
}

/// The mask of a flow that matches every field of `key`.
fn exact_mask(key: &FlowKey) -> FlowMask {
    let mut mask = FlowMask::new();
    let mut add = |slots: &[Slot]| slots.iter().for_each(|slot| mask.set_exact(*slot));
    add(&[
        slot::RECIRC_ID,
        slot::DP_HASH,
        slot::IN_PORT,
        slot::SKB_PRIORITY,
        slot::PKT_MARK,
        slot::CT_ZONE,
        slot::CT_MARK,
        slot::CT_LABEL,
        slot::PACKET_TYPE,
        slot::ETH_SRC,
        slot::ETH_DST,
        slot::ETH_TYPE,
        slot::VLAN_TCI,
    ]);
    if key.get(slot::VLAN_TCI) != 0 {
        add(&[slot::VLAN_TPID, slot::VLAN2_TCI]);
    }
    // The other bits of the state mean nothing yet.
    mask.set(slot::CT_STATE, 0xff);
    let mut add = |slots: &[Slot]| slots.iter().for_each(|slot| mask.set_exact(*slot));
    const IP: &[Slot] = &[
        slot::NW_PROTO,
        slot::NW_TOS,
        slot::NW_TTL,
        slot::NW_FRAG,
        slot::TP_SRC,
        slot::TP_DST,
    ];
    match key.get(slot::ETH_TYPE) as u16 {
        eth_type::IPV4 => {
            add(&[slot::NW_SRC, slot::NW_DST]);
            add(IP);
        }
        eth_type::IPV6 => {
            add(&[slot::IPV6_SRC, slot::IPV6_DST, slot::IPV6_LABEL]);
            add(IP);
        }
        eth_type::ARP | eth_type::RARP => add(&[
            slot::NW_SRC,
            slot::NW_DST,
            slot::NW_PROTO,
            slot::ARP_SHA,
            slot::ARP_THA,
        ]),
        eth_type::MPLS | eth_type::MPLS_MULTICAST => add(&[slot::MPLS_LSE]),
        _ => {}
    }
    for (index, _) in key.iter() {
        // What else the packet has, such as TCP flags or what ND carries.
        if mask.word(index) == 0 {
            mask.set_word(index, u64::MAX);
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    use base::{Coverage, Published};
    use of_xlate::BridgeId;

    use super::*;
    use crate::counters::Counters;
    use crate::events::Events;
    use crate::megaflow::Megaflows;
    use crate::sightings::Sightings;

    /// What the datapaths' threads share, without a datapath.
    fn shared() -> Shared {
        Shared {
            log_name: "test".into(),
            log_module: "dpif",
            view: Published::new(SwitchView::default()),
            megaflows: Megaflows::default(),
            events: Events::default(),
            counters: Counters::new(&Coverage::new()),
            flow_limit: AtomicUsize::new(3),
            flows: AtomicUsize::new(0),
            sightings: Sightings::default(),
            wildcards: AtomicBool::new(false),
        }
    }

    #[test]
    fn in_a_flood_the_second_packet_makes_the_flow() {
        let shared = shared();
        let view = shared.view.load();
        let mut key = FlowKey::new();
        let mut ask = |source: u128, congested| {
            key.set(slot::ETH_SRC, source);
            let upcall = Upcall {
                kind: UpcallKind::Miss,
                packet: &[],
                key: &key,
                congested,
            };
            let input = Input {
                bridge: BridgeId(0),
                key: &key,
                packet: None,
                actions: None,
                resume: None,
                purpose: Purpose::Upcall,
                now: Instant::ZERO,
            };
            let translation = translate(&view, &input, None);
            let flow = shared.flow_for(&view, &upcall, translation, [].into(), Instant::ZERO);
            flow.map(|flow| flow.ufid)
        };
        assert!(ask(1, false).is_some());
        assert_eq!((ask(2, true), ask(3, true)), (None, None));
        let (second, third) = (ask(2, true), ask(3, false));
        assert!(second.is_some() && third.is_some() && second != third);
        assert_eq!(shared.megaflows.len(), 3);
        // There is no room for more.
        assert_eq!(
            (ask(4, false), ask(5, true), ask(5, true)),
            (None, None, None)
        );
        assert_eq!(shared.megaflows.len(), 3);
    }

    #[test]
    fn a_tracked_packet_tells_its_connection_whole() {
        let mut key = FlowKey::new();
        key.set(slot::ETH_TYPE, u128::from(eth_type::IPV4));
        for (slot, value) in [
            (slot::CT_STATE, 0x22),
            (slot::CT_NW_SRC, 0x0a01_0101),
            (slot::CT_NW_DST, 0x0a01_0102),
            (slot::CT_NW_PROTO, 17),
            (slot::CT_TP_SRC, 1),
        ] {
            key.set(slot, value);
        }
        let mut fields = Match::any();
        connection_fields(&mut fields, &key);
        // A port of zero is one, too, and without the Ethernet type nobody could read the rest.
        for slot in [slot::CT_TP_DST, slot::ETH_TYPE, slot::CT_NW_SRC] {
            assert_eq!(fields.mask().get(slot), slot.max());
        }
        assert_eq!(fields.mask().get(slot::CT_IPV6_SRC), 0);
        key.set(slot::CT_NW_PROTO, 0);
        let mut fields = Match::any();
        connection_fields(&mut fields, &key);
        assert_eq!(fields.mask().get(slot::CT_NW_SRC), 0);
    }
}
