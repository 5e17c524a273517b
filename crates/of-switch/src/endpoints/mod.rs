//! The sockets of a bridge: controllers that it connects to, listeners, the management and
//! the snoop socket.  It joins the streams of crate `io` with the [`Bridge`].

mod link;
mod settings;
mod snoop;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use ::io::reconnect::{Action, Reconnect, Wording};
use ::io::stream::{OPENFLOW_PORT, is_passive};
use ::io::{Event, Interest, Listener, Net, Poll, Stream, Token};
use base::Instant;
use of_wire::message::ControllerRole;

use crate::bridge::{Bridge, FailMode};
use crate::conn::ConnId;
use link::Link;
use snoop::Snoop;

pub use settings::{ControllerSettings, EndpointSettings};

/// How many tokens one set of endpoints may use: from its base on.
pub const TOKENS: u64 = 1 << 32;

/// The least pause between attempts to connect.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Pause before listening is tried again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// Connections of one listener at a time.
const MAX_ACCEPTED: usize = if cfg!(test) { 32 } else { 512 };
/// Connections accepted in one turn.
const ACCEPTS_PER_TURN: usize = 16;

/// A controller to which we connect.
#[derive(Debug)]
struct Controller {
    settings: ControllerSettings,
    reconnect: Reconnect,
    /// The stream that is being connected.
    attempt: Option<(u64, Stream)>,
    link: Option<u64>,
    last_error: Option<String>,
}

/// A place where we listen.
#[derive(Debug)]
struct Service {
    settings: ControllerSettings,
    listener: Option<(u64, Listener)>,
    /// When to try again, if listening failed.
    again: Instant,
}

/// What a controller's row in the database shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Its target.
    pub target: String,
    /// Whether there is a connection.
    pub is_connected: bool,
    /// Its role, while connected.
    pub role: Option<ControllerRole>,
    /// `state`, `last_error`, `sec_since_connect`, `sec_since_disconnect`.
    pub status: Vec<(&'static str, String)>,
}

/// The endpoints of one bridge.
#[derive(Debug)]
pub struct Endpoints {
    settings: EndpointSettings,
    net: Net,
    base: u64,
    next_slot: u64,
    controllers: BTreeMap<String, Controller>,
    services: BTreeMap<String, Service>,
    links: BTreeMap<u64, Link>,
    snoop: Option<Snoop>,
    fails_open: bool,
}

impl Endpoints {
    /// No endpoint yet.  Tokens from `base` on, [`TOKENS`] of them, are for its use.
    pub fn new(net: &Net, base: Token) -> Self {
        Self {
            settings: EndpointSettings::default(),
            net: net.clone(),
            base: base.0,
            next_slot: 0,
            controllers: BTreeMap::new(),
            services: BTreeMap::new(),
            links: BTreeMap::new(),
            snoop: None,
            fails_open: false,
        }
    }

    /// Whether an event with `token` is for these endpoints.
    pub const fn owns(&self, token: Token) -> bool {
        token.0 >= self.base && token.0 - self.base < TOKENS
    }

    /// Takes over new settings; what stays the same is not disturbed.
    pub fn configure(
        &mut self,
        settings: EndpointSettings,
        now: Instant,
        bridge: &mut Bridge,
        poll: &Poll,
    ) {
        let mut wanted: BTreeMap<String, ControllerSettings> = BTreeMap::new();
        for controller in &settings.controllers {
            wanted.insert(controller.target.clone(), controller.clone());
        }
        if let Some(path) = &settings.management {
            let management = ControllerSettings::management(path);
            wanted.insert(management.target.clone(), management);
        }
        self.settings = settings;
        let gone = |known: &str| !wanted.contains_key(known);
        let targets = self.controllers.keys().chain(self.services.keys());
        let targets: Vec<String> = targets.filter(|t| gone(t)).cloned().collect();
        for target in targets {
            self.remove(&target, now, bridge);
        }
        for (target, settings) in wanted {
            self.set(target, settings, now, bridge);
        }
        match self.settings.snoop.clone() {
            None => self.snoop = None,
            Some(path) if self.snoop.as_ref().is_none_or(|s| s.path() != path) => {
                let slot = self.take_slot();
                self.snoop = Snoop::listen(&self.net, &path, self.token(slot), poll);
            }
            Some(_) => {}
        }
        for id in bridge.outdated_conns() {
            self.drop_conn(id, now, bridge);
        }
    }

    fn set(
        &mut self,
        target: String,
        settings: ControllerSettings,
        now: Instant,
        bridge: &mut Bridge,
    ) {
        let bridge_name = &self.settings.bridge;
        let name = format!("{bridge_name}<->{target}");
        if !(self.controllers.contains_key(&target) || self.services.contains_key(&target)) {
            let kind = if settings.is_primary() {
                "primary"
            } else {
                "service"
            };
            log::info!(target: "connmgr",
                "{bridge_name}: added {kind} controller \"{target}\"");
        }
        if is_passive(&target) {
            let new = Service {
                settings: settings.clone(),
                listener: None,
                again: Instant::ZERO,
            };
            let service = self.services.entry(target.clone()).or_insert(new);
            service.settings = settings;
        } else {
            let new = || Controller {
                settings: settings.clone(),
                reconnect: {
                    let mut reconnect = Reconnect::new(now);
                    reconnect.set_name(&name);
                    reconnect.set_wording(Wording::Rconn);
                    reconnect.enable(now);
                    reconnect
                },
                attempt: None,
                link: None,
                last_error: None,
            };
            let controller = self.controllers.entry(target.clone()).or_insert_with(new);
            controller.settings = settings;
            let settings = &controller.settings;
            controller
                .reconnect
                .set_backoff(MIN_BACKOFF, settings.max_backoff);
            controller
                .reconnect
                .set_probe_interval(settings.inactivity_probe);
        }
        for link in self.links.values_mut().filter(|l| l.target == target) {
            let settings = match self.services.get(&target) {
                Some(service) => &service.settings,
                None => match self.controllers.get(&target) {
                    Some(controller) => &controller.settings,
                    None => continue,
                },
            };
            if let Some(probes) = &mut link.probes {
                probes.set_probe_interval(settings.inactivity_probe);
            }
            let mut config = settings.conn(&self.settings.bridge, link.stream.name());
            config.versions = bridge.versions();
            bridge.set_conn_config(link.conn, config);
        }
    }

    /// Forgets a target with its connections.
    fn remove(&mut self, target: &str, now: Instant, bridge: &mut Bridge) {
        let name = &self.settings.bridge;
        let controller = self.controllers.remove(target);
        let is_primary = controller.is_some_and(|c| c.settings.is_primary());
        let kind = if is_primary { "primary" } else { "service" };
        log::info!(target: "connmgr", "{name}: removed {kind} controller \"{target}\"");
        self.services.remove(target);
        let links = self.links.iter().filter(|(_, l)| l.target == target);
        let links: Vec<u64> = links.map(|(slot, _)| *slot).collect();
        for slot in links {
            if let Some(link) = self.links.remove(&slot) {
                bridge.close(link.conn, now);
            }
        }
    }

    const fn take_slot(&mut self) -> u64 {
        self.next_slot += 1;
        self.next_slot
    }

    const fn token(&self, slot: u64) -> Token {
        Token(self.base + slot)
    }

    /// Something is ready.
    pub fn handle_event(&mut self, event: Event, now: Instant, bridge: &mut Bridge, poll: &Poll) {
        let slot = event.token.0 - self.base;
        if self.links.contains_key(&slot) {
            if event.readable {
                self.receive(slot, now, bridge);
            }
            if event.writable {
                self.send(slot, now, bridge);
            }
            return;
        }
        let controllers = self.controllers.iter();
        let attempt = controllers
            .filter(|(_, c)| c.attempt.as_ref().is_some_and(|(s, _)| *s == slot))
            .map(|(target, _)| target.clone())
            .next();
        if let Some(target) = attempt {
            self.go_on_connecting(&target, now, bridge, poll);
            return;
        }
        let services = self.services.iter();
        let listening = services
            .filter(|(_, s)| s.listener.as_ref().is_some_and(|(l, _)| *l == slot))
            .map(|(target, _)| target.clone())
            .next();
        if let Some(target) = listening {
            self.accept(&target, now, bridge);
            return;
        }
        if let Some(snoop) = &mut self.snoop {
            let next = self.base + self.next_slot + 1;
            if snoop.handle_event(event, Token(next), poll) {
                self.next_slot += 1;
            }
        }
    }

    /// Connects, probes, sends: whatever is due.  To be called after the bridge has run.
    pub fn run(&mut self, now: Instant, bridge: &mut Bridge, poll: &Poll) {
        self.run_controllers(now, bridge, poll);
        self.run_services(now, poll);
        self.run_probes(now, bridge);
        let slots: Vec<u64> = self.links.keys().copied().collect();
        for slot in slots {
            self.send(slot, now, bridge);
            let token = self.token(slot);
            let Some(link) = self.links.get_mut(&slot) else {
                continue;
            };
            if link.is_closing && link.outbox.is_empty() {
                self.lose(slot, Some(&ErrorKind::InvalidData.into()), now, bridge);
            } else if let Err(error) = link.watch(bridge, poll, token) {
                self.lose(slot, Some(&error), now, bridge);
            }
        }
        if let Some(snoop) = &mut self.snoop {
            let links = self.links.values_mut();
            let copies = links.filter_map(|l| l.tap.as_mut());
            for copy in copies.flat_map(|tap| tap.copies.drain(..)) {
                snoop.copy(&copy);
            }
            snoop.run(poll);
        }
        self.set_taps();
        self.decide_on_failure(now, bridge);
    }

    /// Drops the connections to controllers and makes them anew.
    pub fn reconnect(&mut self, now: Instant) {
        for controller in self.controllers.values_mut() {
            controller.reconnect.force_reconnect(now);
        }
    }

    /// The bridge wants a connection closed ([`crate::Output::Close`]).
    pub fn close(&mut self, id: ConnId) {
        if let Some(link) = self.links.values_mut().find(|l| l.conn == id) {
            link.is_closing = true;
        }
    }

    /// When [`Endpoints::run`] wants to be called.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        let links = self.links.values().map(|l| l.next_deadline(now));
        let controllers = self.controllers.values();
        let controllers = controllers.map(|c| c.reconnect.next_deadline(now));
        let services = self.services.values().filter(|s| s.listener.is_none());
        let services = services.map(|s| s.again);
        let all = links.chain(controllers).chain(services);
        all.min()
            .unwrap_or(Instant::MAX)
            .min(self.fail_open_at(now))
    }

    fn run_controllers(&mut self, now: Instant, bridge: &mut Bridge, poll: &Poll) {
        let targets: Vec<String> = self.controllers.keys().cloned().collect();
        for target in targets {
            let Some(controller) = self.controllers.get_mut(&target) else {
                continue;
            };
            match controller.reconnect.run(now) {
                Some(Action::Connect) => self.connect(&target, now, bridge, poll),
                Some(Action::Probe) => {
                    let link = controller.link.and_then(|slot| self.links.get(&slot));
                    if let Some(link) = link {
                        bridge.probe(link.conn);
                    }
                }
                Some(Action::Disconnect) => {
                    if let Some(slot) = controller.link {
                        self.lose(slot, Some(&ErrorKind::TimedOut.into()), now, bridge);
                    } else {
                        controller.attempt = None;
                        let error = Error::from(ErrorKind::TimedOut);
                        fail(controller, &error, now);
                    }
                }
                None => {}
            }
        }
    }

    fn connect(&mut self, target: &str, now: Instant, bridge: &mut Bridge, poll: &Poll) {
        let slot = self.take_slot();
        let Some(controller) = self.controllers.get_mut(target) else {
            return;
        };
        controller.reconnect.connecting(now);
        let dscp = controller.settings.dscp;
        match self.net.connect(target, OPENFLOW_PORT, dscp) {
            Ok(stream) => {
                controller.attempt = Some((slot, stream));
                self.go_on_connecting(target, now, bridge, poll);
            }
            Err(error) => fail(controller, &error, now),
        }
    }

    fn go_on_connecting(&mut self, target: &str, now: Instant, bridge: &mut Bridge, poll: &Poll) {
        let base = self.base;
        let Some(controller) = self.controllers.get_mut(target) else {
            return;
        };
        let Some((slot, mut stream)) = controller.attempt.take() else {
            return;
        };
        let watched = match stream.connect() {
            Ok(()) => {
                controller.reconnect.connected(now);
                controller.link = Some(slot);
                let mut config = controller.settings.conn(&self.settings.bridge, target);
                config.versions = bridge.versions();
                let conn = bridge.open(config, now);
                self.links.insert(slot, Link::new(stream, conn, target));
                return;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stream.watch(poll, Token(base + slot), Interest::BOTH)
            }
            Err(error) => Err(error),
        };
        match watched {
            Ok(()) => controller.attempt = Some((slot, stream)),
            Err(error) => fail(controller, &error, now),
        }
    }

    fn run_services(&mut self, now: Instant, poll: &Poll) {
        let (base, mut next) = (self.base, self.next_slot);
        for (target, service) in &mut self.services {
            if service.listener.is_some() || now < service.again {
                continue;
            }
            next += 1;
            let opened = self
                .net
                .listen(target, OPENFLOW_PORT, service.settings.dscp);
            let watched = opened.and_then(|mut listener| {
                listener.watch(poll, Token(base + next), Interest::READ)?;
                Ok(listener)
            });
            match watched {
                Ok(listener) => service.listener = Some((next, listener)),
                Err(error) => {
                    service.again = now + LISTEN_AGAIN;
                    base::log_limited!(
                        Error,
                        "connmgr",
                        (60, 5),
                        "failed to listen on {target}: {}",
                        base::errno_text(&error)
                    );
                }
            }
        }
        self.next_slot = next;
    }

    fn accept(&mut self, target: &str, now: Instant, bridge: &mut Bridge) {
        let links = self.links.values().filter(|l| l.target == target);
        let mut open = links.count();
        for _ in 0..ACCEPTS_PER_TURN {
            let slot = self.take_slot();
            let Some(service) = self.services.get_mut(target) else {
                return;
            };
            let Some((_, listener)) = &mut service.listener else {
                return;
            };
            let stream = match listener.accept() {
                Ok(stream) => stream,
                Err(error) => {
                    if error.kind() != ErrorKind::WouldBlock {
                        base::log_limited!(
                            Warn,
                            "connmgr",
                            (60, 5),
                            "{target}: accepting a connection failed: {}",
                            base::errno_text(&error)
                        );
                    }
                    return;
                }
            };
            if open >= MAX_ACCEPTED && self.drop_half_open(target, now, bridge) {
                open -= 1;
            }
            if open >= MAX_ACCEPTED {
                base::log_limited!(
                    Warn,
                    "connmgr",
                    (60, 5),
                    "{target}: refused a connection, as there are {open} already"
                );
                continue;
            }
            open += 1;
            let Some(service) = self.services.get(target) else {
                return;
            };
            let mut config = service.settings.conn(&self.settings.bridge, stream.name());
            config.versions = bridge.versions();
            let mut probes = Reconnect::new(now);
            probes.set_name(&config.name);
            probes.set_wording(Wording::Rconn);
            probes.set_quiet(true);
            probes.set_probe_interval(service.settings.inactivity_probe);
            probes.connected(now);
            let conn = bridge.open(config, now);
            let mut link = Link::new(stream, conn, target);
            link.probes = Some(probes);
            self.links.insert(slot, link);
        }
    }

    /// Ends that connection of a listener which is there longest without having said which
    /// versions it speaks, if there is one: who opens connections and says nothing must not lock
    /// others out.
    fn drop_half_open(&mut self, target: &str, now: Instant, bridge: &mut Bridge) -> bool {
        let is_half_open = |link: &Link| {
            let status = bridge.conn_status(link.conn);
            link.target == target && status.is_some_and(|status| status.version.is_none())
        };
        // Slots grow, so the first is the oldest.
        let oldest = self.links.iter().find(|(_, link)| is_half_open(link));
        let oldest = oldest.map(|(slot, _)| *slot);
        if let Some(slot) = oldest {
            self.lose(slot, None, now, bridge);
        }
        oldest.is_some()
    }

    fn run_probes(&mut self, now: Instant, bridge: &mut Bridge) {
        let mut dead = Vec::new();
        for (slot, link) in &mut self.links {
            let action = link.probes.as_mut().and_then(|p| p.run(now));
            match action {
                Some(Action::Probe) => bridge.probe(link.conn),
                Some(Action::Disconnect) => dead.push(*slot),
                Some(Action::Connect) | None => {}
            }
        }
        for slot in dead {
            self.lose(slot, Some(&ErrorKind::TimedOut.into()), now, bridge);
        }
    }

    fn receive(&mut self, slot: u64, now: Instant, bridge: &mut Bridge) {
        let Some(link) = self.links.get_mut(&slot) else {
            return;
        };
        let received = link.receive(bridge);
        let machine = match &mut link.probes {
            Some(probes) => Some(probes),
            None => {
                let controller = self.controllers.get_mut(&link.target);
                controller.map(|c| &mut c.reconnect)
            }
        };
        if let Some(machine) = machine {
            machine.receive_attempted(Instant::MAX);
            if matches!(received, Ok(true)) {
                machine.activity(now);
            }
        }
        if let Err(error) = received {
            self.lose(slot, Some(&error), now, bridge);
        }
    }

    fn send(&mut self, slot: u64, now: Instant, bridge: &mut Bridge) {
        if let Some(link) = self.links.get_mut(&slot)
            && let Err(error) = link.send(bridge)
        {
            self.lose(slot, Some(&error), now, bridge);
        }
    }

    /// A connection is gone.
    fn lose(&mut self, slot: u64, error: Option<&Error>, now: Instant, bridge: &mut Bridge) {
        let Some(link) = self.links.remove(&slot) else {
            return;
        };
        bridge.close(link.conn, now);
        if let Some(controller) = self.controllers.get_mut(&link.target)
            && controller.link == Some(slot)
        {
            controller.link = None;
            match error {
                Some(error) => fail(controller, error, now),
                None => controller.reconnect.disconnected(now, None),
            }
        }
    }

    fn drop_conn(&mut self, id: ConnId, now: Instant, bridge: &mut Bridge) {
        let slot = self.links.iter().find(|(_, l)| l.conn == id);
        if let Some(slot) = slot.map(|(slot, _)| *slot) {
            self.lose(slot, None, now, bridge);
        }
    }

    /// Copies the messages of primary controllers while someone snoops.
    fn set_taps(&mut self) {
        let wanted = self.snoop.as_ref().is_some_and(Snoop::has_listeners);
        for link in self.links.values_mut() {
            let controller = self.controllers.get(&link.target);
            let is_primary = controller.is_some_and(|c| c.settings.is_primary());
            if !(wanted && is_primary) {
                link.tap = None;
            } else if link.tap.is_none() {
                link.tap = Some(link::Tap::default());
            }
        }
    }

    /// When a standalone bridge begins to switch by itself: three times the longest probe
    /// interval after the last controller was lost.
    fn fail_open_at(&self, now: Instant) -> Instant {
        if self.fails_open {
            return Instant::MAX;
        }
        let primaries = || {
            self.controllers
                .values()
                .filter(|c| c.settings.is_primary())
        };
        if primaries().any(|c| c.reconnect.is_connected()) {
            return Instant::MAX;
        }
        let lost = primaries().map(|c| {
            let stats = c.reconnect.stats(now);
            stats.last_disconnected.unwrap_or(stats.created)
        });
        let interval = primaries().map(|c| c.settings.inactivity_probe).max();
        match (lost.max(), interval) {
            (Some(lost), Some(interval)) => lost + interval * 3,
            _ => Instant::MAX,
        }
    }

    fn decide_on_failure(&mut self, now: Instant, bridge: &mut Bridge) {
        let is_standalone = bridge.config().fail_mode == FailMode::Standalone;
        let mut primaries = self.controllers.values();
        let is_alone = !primaries.any(|c| c.settings.is_primary() && c.reconnect.is_connected());
        let name = &self.settings.bridge;
        if self.fails_open {
            let has_primaries = bridge.config().has_controllers;
            if !is_standalone || !is_alone || !has_primaries {
                log::warn!(target: "fail_open", "{name}: No longer in fail-open mode");
                self.fails_open = false;
                bridge.set_fail_open(false, now);
            }
        } else if is_standalone && self.fail_open_at(now) <= now {
            log::warn!(target: "fail_open",
                "{name}: Could not connect to controller (or switch failed controller's \
                 post-connection admission control policy), failing open");
            self.fails_open = true;
            bridge.set_fail_open(true, now);
        }
    }

    /// What the database shows of the controllers.
    pub fn status(&self, now: Instant, bridge: &Bridge) -> Vec<ControllerStatus> {
        let role = |slot: u64| {
            let link = self.links.get(&slot)?;
            bridge.conn_status(link.conn).map(|status| status.role)
        };
        let mut all = Vec::new();
        for (target, controller) in &self.controllers {
            let stats = controller.reconnect.stats(now);
            let mut status = vec![("state", stats.state.name().to_owned())];
            let mut since = |name, at: Option<Instant>| {
                if let Some(at) = at {
                    status.push((name, now.since(at).as_secs().to_string()));
                }
            };
            since("sec_since_connect", stats.last_connected);
            since("sec_since_disconnect", stats.last_disconnected);
            if let Some(error) = &controller.last_error {
                status.push(("last_error", error.clone()));
            }
            all.push(ControllerStatus {
                target: target.clone(),
                is_connected: controller.link.is_some(),
                role: controller.link.and_then(role),
                status,
            });
        }
        for target in self.services.keys() {
            let slot = self.links.iter().find(|(_, l)| l.target == *target);
            let slot = slot.map(|(slot, _)| *slot);
            all.push(ControllerStatus {
                target: target.clone(),
                is_connected: slot.is_some(),
                role: slot.and_then(role),
                status: Vec::new(),
            });
        }
        all
    }

    /// Whether any primary controller is connected.
    pub fn is_any_controller_connected(&self) -> bool {
        let mut controllers = self.controllers.values();
        controllers.any(|c| c.settings.is_primary() && c.reconnect.is_connected())
    }
}

/// An attempt or a connection has failed.
fn fail(controller: &mut Controller, error: &Error, now: Instant) {
    controller.last_error = Some(::io::error_text(error));
    controller.reconnect.disconnected(now, Some(error));
}
