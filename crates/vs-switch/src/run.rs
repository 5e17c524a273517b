//! One round of the main loop.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Clock, Instant};
use dp_lang::Features;
use io::{Interest, Poll, Token};
use net_flow::{FlowMask, PortNo};
use of_switch::{ConnId, Facts, Output, Request};
use of_wire::message::{CtFlush, PacketOut, PortStats, QueueStats};
use of_wire::{Action, ErrorCode};
use of_xlate::BridgeId;

use crate::backer::Backer;
use crate::bridge::Bridge;
use crate::events::Event;
use crate::interface::Interface;
use crate::support;
use crate::switch::Switch;

/// Events for a switch have tokens from here on.
pub const TOKEN_BASE: u64 = 1 << 48;
const WAKE: u64 = TOKEN_BASE;
const DEVICES: u64 = TOKEN_BASE + 1;

/// Rounds of packets of dummies that one round of the main loop serves.
const DATAPATH_ROUNDS: usize = 64;

/// Where the tokens of a bridge's endpoints begin.
pub(crate) const fn endpoint_base(id: BridgeId) -> Token {
    Token(TOKEN_BASE + (id.0 << 32))
}

/// What the OpenFlow model asks of the switch while it answers.
struct PortFacts<'a> {
    backer: Option<&'a Backer>,
    clock: &'a Clock,
    interfaces: &'a BTreeMap<String, Interface>,
    by_number: &'a BTreeMap<PortNo, String>,
    features: Features,
    now: Instant,
}

impl PortFacts<'_> {
    fn interface(&self, port: PortNo) -> Option<&Interface> {
        self.interfaces.get(self.by_number.get(&port)?)
    }

    /// Dummies have one queue, of which nothing is known.
    fn has_queue(&self, port: PortNo) -> bool {
        let device = self.interface(port).and_then(Interface::device);
        device.is_some_and(|d| d.kind().starts_with("dummy"))
    }
}

impl Facts for PortFacts<'_> {
    fn update_counters(&self) -> Result<(), Instant> {
        match self.backer {
            Some(backer) => backer.update_counters(self.now, self.clock),
            None => Ok(()),
        }
    }

    fn port_stats(&self, port: PortNo) -> Option<PortStats> {
        Some(self.interface(port)?.port_stats(port, self.now))
    }

    fn queue_stats(&self, port: PortNo, queue: Option<u32>) -> Vec<QueueStats> {
        if !self.has_queue(port) || queue.is_some_and(|q| q != 0) {
            return Vec::new();
        }
        vec![QueueStats {
            port,
            queue: 0,
            tx_bytes: u64::MAX,
            tx_packets: u64::MAX,
            tx_errors: u64::MAX,
            duration_sec: u32::MAX,
            duration_nsec: u32::MAX,
        }]
    }

    fn queues(&self, port: PortNo) -> Vec<(u32, Option<u16>, Option<u16>)> {
        if self.has_queue(port) {
            vec![(0, None, None)]
        } else {
            Vec::new()
        }
    }

    fn check_match(&self, mask: &FlowMask) -> Result<(), ErrorCode> {
        support::check_match(&self.features, mask)
    }

    fn check_actions(&self, actions: &[Action]) -> Result<(), ErrorCode> {
        support::check_actions(&self.features, actions)
    }
}

/// What a bridge's model wants done, with the bridge's name.
enum Wanted {
    PacketOut(String, ConnId, Request, Box<PacketOut>),
    PortConfig(String, PortNo, of_wire::message::PortConfig),
    CtFlush(String, Box<CtFlush>),
    Await(String, u64),
}

impl Switch {
    /// Joins the switch with the loop that drives it.
    fn attach(&mut self, poll: &mut Poll) {
        if self.waker.is_some() {
            return;
        }
        match poll.waker(Token(WAKE)) {
            Ok(waker) => {
                for backer in self.backers.values() {
                    backer.shared.events.set_waker(waker.clone());
                }
                self.waker = Some(waker);
            }
            Err(error) => log::error!(target: "bridge", "cannot wake the main loop: {error}"),
        }
        for provider in self.env.devices.iter() {
            if let Some(fd) = provider.events_fd()
                && let Err(error) = poll.add(fd, Token(DEVICES), Interest::READ)
            {
                log::error!(target: "bridge", "cannot follow devices: {error}");
            }
        }
    }

    /// Has endpoints follow the configuration.
    fn configure_endpoints(&mut self, poll: &Poll, now: Instant) {
        for bridge in self.bridges.values_mut().filter(|b| b.endpoints_stale) {
            bridge.endpoints_stale = false;
            let settings = bridge.endpoint_settings(&self.env.dirs);
            bridge
                .endpoints
                .configure(settings, now, &mut bridge.model, poll);
        }
    }

    /// Something is ready that has a token from [`TOKEN_BASE`] on.
    pub fn handle_event(&mut self, event: io::Event, now: Instant, poll: &Poll) {
        match event.token.0 {
            WAKE => {}
            DEVICES => self.follow_devices(now),
            token => {
                let id = BridgeId(token.saturating_sub(TOKEN_BASE) >> 32);
                let bridge = self.names.get(&id).and_then(|n| self.bridges.get_mut(n));
                if let Some(bridge) = bridge {
                    bridge
                        .endpoints
                        .handle_event(event, now, &mut bridge.model, poll);
                }
            }
        }
    }

    /// Does what is due: packets of dummies, OpenFlow requests, publication of changes,
    /// revalidation, answers.
    pub fn run(&mut self, poll: &mut Poll, now: Instant) {
        self.attach(poll);
        self.renumber_interfaces(now);
        self.settle_addresses(now);
        self.configure_endpoints(poll, now);
        self.run_datapaths(now);
        self.take_events(now);
        let mut wanted = Vec::new();
        for (name, bridge) in &mut self.bridges {
            bridge.macs.run(now);
            let backer = self.backers.get(&bridge.kind);
            run_model(bridge, backer, &self.env.clock, now);
            take_outputs(name, bridge, &mut wanted);
        }
        self.carry_out(wanted, now);
        self.settle(now);
        self.release_datapaths(now);
        for bridge in self.bridges.values_mut() {
            bridge.endpoints.run(now, &mut bridge.model, poll);
        }
        self.note_controllers(now);
    }

    /// When [`Switch::run`] wants to be called.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        let backers = self.backers.values().map(|b| b.next_deadline(now));
        let bridges = self.bridges.values().map(|b| {
            let macs = b.macs.next_deadline();
            let model = b.model.next_deadline(now);
            macs.min(model).min(b.endpoints.next_deadline(now))
        });
        if !self.unsettled.is_empty() || !self.renumber.is_empty() {
            return now;
        }
        let earliest = backers.chain(bridges).min();
        earliest.unwrap_or(Instant::MAX)
    }

    fn run_datapaths(&mut self, now: Instant) {
        let datapaths = self.backers.values().map(|backer| &backer.datapath);
        for datapath in datapaths.chain(&self.spare_datapaths) {
            for _ in 0..DATAPATH_ROUNDS {
                if !datapath.run(now) {
                    break;
                }
            }
        }
    }

    fn take_events(&mut self, now: Instant) {
        for backer in self.backers.values_mut() {
            for event in backer.shared.events.take() {
                match event {
                    Event::FlowsExist => backer.revalidator.wake(now),
                    // Publication compares the tables' generations.
                    Event::Learned => {}
                    Event::PacketIn { bridge, packet } => {
                        let bridge = self.names.get(&bridge);
                        let bridge = bridge.and_then(|n| self.bridges.get_mut(n));
                        if let Some(bridge) = bridge {
                            bridge.model.packet_in(&packet, now);
                        }
                    }
                }
            }
        }
    }

    fn carry_out(&mut self, wanted: Vec<Wanted>, now: Instant) {
        let mut awaited = Vec::new();
        for wanted in wanted {
            match wanted {
                Wanted::PacketOut(bridge, conn, request, packet) => {
                    self.note_tables();
                    self.publish();
                    if let Err(code) = self.packet_out(&bridge, *packet, now)
                        && let Some(bridge) = self.bridges.get_mut(&bridge)
                    {
                        bridge.model.fail(conn, &request, code);
                    }
                }
                Wanted::PortConfig(bridge, port, config) => {
                    self.set_port_config(&bridge, port, config);
                }
                Wanted::CtFlush(bridge, flush) => self.ct_flush(&bridge, &flush),
                Wanted::Await(bridge, version) => awaited.push((bridge, version)),
            }
        }
        if awaited.is_empty() {
            return;
        }
        self.note_tables();
        self.publish();
        self.revalidate_all(now);
        for (bridge, version) in awaited {
            if let Some(bridge) = self.bridges.get_mut(&bridge) {
                bridge.model.datapath_passed(version);
            }
        }
    }

    /// Has the tables that changed published.
    fn note_tables(&mut self) {
        for bridge in self.bridges.values_mut().filter(|b| b.tables_changed()) {
            if let Some(backer) = self.backers.get_mut(&bridge.kind)
                && !backer.is_stale
            {
                self.counters.rev_flow_table.inc();
                backer.is_stale = true;
            }
        }
    }

    /// Publishes what changed, and checks flows if it is time to.
    pub(crate) fn settle(&mut self, now: Instant) {
        self.note_tables();
        self.publish();
        let clock = self.env.clock.clone();
        for backer in self.backers.values_mut() {
            backer.run_revalidator(now, &clock);
        }
    }

    /// Checks all flows against what is published.
    pub(crate) fn revalidate_all(&mut self, now: Instant) {
        let clock = self.env.clock.clone();
        for backer in self.backers.values_mut() {
            backer.recheck(now, &clock);
        }
    }

    /// Publishes what changed and checks every flow, whether it is time to or not: for
    /// `revalidator/wait`.
    pub fn force_revalidation(&mut self, now: Instant) {
        self.note_tables();
        self.publish();
        let clock = self.env.clock.clone();
        for backer in self.backers.values_mut() {
            backer.revalidate(now, &clock);
        }
    }

    /// Serves what waits in dummy devices, until nothing is left or the budget is used up.
    pub(crate) fn drain_datapaths(&mut self, now: Instant) {
        self.run_datapaths(now);
        self.take_events(now);
        self.settle(now);
    }

    fn note_controllers(&mut self, now: Instant) {
        if now < self.controllers_looked_at + Duration::from_millis(100) {
            return;
        }
        self.controllers_looked_at = now;
        for (name, bridge) in &mut self.bridges {
            let status = bridge.controller_status(now);
            let looks: Vec<_> = status
                .iter()
                .map(|c| (c.target.clone(), c.is_connected, c.role.clone()))
                .collect();
            if looks != bridge.controllers_seen {
                let was_live = bridge.has_live_controller();
                bridge.controllers_seen = looks;
                // Buckets of groups may watch the controllers.
                bridge.is_stale |= was_live != bridge.has_live_controller();
                self.changed_bridges.insert(name.clone());
            }
        }
    }
}

fn run_model(bridge: &mut Bridge, backer: Option<&Backer>, clock: &Clock, now: Instant) {
    let features = backer.map(|b| b.features).unwrap_or_default();
    let facts = PortFacts {
        backer,
        clock,
        interfaces: &bridge.interfaces,
        by_number: &bridge.by_number,
        features,
        now,
    };
    bridge.model.run(now, &facts);
}

fn take_outputs(name: &str, bridge: &mut Bridge, wanted: &mut Vec<Wanted>) {
    while let Some(output) = bridge.model.poll_output() {
        match output {
            // Publication takes the newest version.
            Output::TablesChanged { changes, .. } => bridge.table_changes.extend(changes),
            Output::AwaitDatapath { version } => {
                wanted.push(Wanted::Await(name.to_owned(), version));
            }
            Output::PacketOut {
                conn,
                request,
                packet,
            } => wanted.push(Wanted::PacketOut(name.to_owned(), conn, request, packet)),
            Output::PortConfig { port, config } => {
                wanted.push(Wanted::PortConfig(name.to_owned(), port, config));
            }
            Output::CtFlush(flush) => wanted.push(Wanted::CtFlush(name.to_owned(), flush)),
            Output::FragMode(_) => bridge.is_stale = true,
            Output::Close { conn } => bridge.endpoints.close(conn),
        }
    }
}
