//! The switch model of one bridge: what its connections ask, done to its tables and ports.
//!
//! The owner feeds bytes and time in and takes messages and effects out:
//!
//! - input: [`Bridge::open`], [`Bridge::receive`], [`Bridge::close`], [`Bridge::packet_in`],
//!   [`Bridge::set_port`], [`Bridge::datapath_passed`] and the settings;
//! - work: [`Bridge::run`] handles a bounded amount of what has arrived, [`Bridge::next_deadline`]
//!   says when it wants to be called again;
//! - output: [`Bridge::poll_output`] yields effects in the order in which they must be
//!   carried out, [`Bridge::poll_send`] the bytes for a connection.
//!
//! After each call of an input or of `run`, the owner takes the output.

mod bundles;
mod config;
mod dispatch;
mod flows;
mod groups;
mod notify;
mod ports;
mod queries;
mod roles;
mod settings;
mod tables;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use net_flow::FlowMask;
use of_wire::message::{
    ControllerRole, CtFlush, ErrorMessage, PacketOut, PortConfig, PortStats, QueueStats,
};
use of_wire::{Action, Body, ErrorCode, Message, PortNo, Version, VersionSet};

use crate::bundle::DEFAULT_IDLE_TIMEOUT;
use crate::conn::{Conn, ConnConfig, ConnId, ConnKind, Frame, Phase, refuse_hello};
use crate::in_band::InBand;
use crate::tables::{Changes, INTERNAL_TABLE, Tables, TablesView};
use crate::wire;

pub use config::{BridgeConfig, FailMode, FragMode};
pub use notify::PacketInEvent;

/// What the owner knows and the model asks for while it answers.
pub trait Facts {
    /// Brings the counters of rules up to date with what the datapath has counted.
    ///
    /// # Errors
    /// That would take too much of the owner's time now; the time from when on it may be asked
    /// again.  Counters are then as old as that they were brought up to date last.
    fn update_counters(&self) -> Result<(), Instant> {
        Ok(())
    }

    /// Counters of a port.
    fn port_stats(&self, port: PortNo) -> Option<PortStats>;

    /// Counters of the queues of `port`, or of its queue `queue` alone.
    fn queue_stats(&self, port: PortNo, queue: Option<u32>) -> Vec<QueueStats>;

    /// The queues of `port`, with their minimum and maximum rates in tenths of a percent.
    fn queues(&self, port: PortNo) -> Vec<(u32, Option<u16>, Option<u16>)>;

    /// Whether the datapath can tell packets apart by the bits of `mask`.
    ///
    /// # Errors
    /// What to tell the controller if it cannot.
    fn check_match(&self, mask: &FlowMask) -> Result<(), ErrorCode>;

    /// Whether the datapath can carry out `actions`.
    ///
    /// # Errors
    /// What to tell the controller if it cannot.
    fn check_actions(&self, actions: &[Action]) -> Result<(), ErrorCode>;
}

/// An effect that the owner carries out.
#[derive(Debug)]
pub enum Output {
    /// The tables changed: this version replaces the published one.
    TablesChanged {
        /// The new version.
        view: Arc<TablesView>,
        /// What changed in it.
        changes: Changes,
    },
    /// A controller wants to know when the datapath acts by this version of the tables, also
    /// for packets of flows that it has cached: the owner then calls [`Bridge::datapath_passed`].
    AwaitDatapath {
        /// The version of the tables.
        version: u64,
    },
    /// A packet to send through actions.  If that fails, the owner may answer with
    /// [`Bridge::fail`].
    PacketOut {
        /// The connection that asked.
        conn: ConnId,
        /// The request's header, for an error.
        request: Request,
        /// The packet.
        packet: Box<PacketOut>,
    },
    /// A controller set a port's configuration, which the model has taken over already.
    PortConfig {
        /// The port.
        port: PortNo,
        /// Its whole configuration.
        config: PortConfig,
    },
    /// Tracked connections are to be forgotten.
    CtFlush(Box<CtFlush>),
    /// The treatment of fragments changed.
    FragMode(FragMode),
    /// The connection has nothing more to say: the owner sends what waits and closes it.
    Close {
        /// The connection.
        conn: ConnId,
    },
}

/// A request, as an error about it carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Version of the message.
    pub version: Version,
    /// Transaction id.
    pub xid: u32,
    /// All of it, or what of it fits an error message.
    pub bytes: Vec<u8>,
}

impl Request {
    pub(crate) fn new(version: Version, frame: &Frame) -> Self {
        Self {
            version,
            xid: frame.xid(),
            bytes: frame.bytes[..frame.bytes.len().min(MAX_ERROR_DATA)].to_vec(),
        }
    }
}

/// What a connection looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnStatus {
    /// Its role.
    pub role: ControllerRole,
    /// The version that it speaks, once that is settled.
    pub version: Option<Version>,
    /// Since when it is connected.
    pub connected_at: Instant,
}

/// Bytes of a request that fit an error message with its longest header.
const MAX_ERROR_DATA: usize = 0xffff - 24;
/// Work for one connection before others have their turn, in requests of the cheapest kind.  The tables are
/// published once in a turn, which costs the less the more changed.
const WORK_PER_TURN: usize = 1000;
/// Rules that one call of `run` lets expire.
const EXPIRIES_PER_TURN: usize = 500;
/// Pieces of long answers that one call of `run` makes for a connection.
const PIECES_PER_TURN: usize = 4;

/// The switch model of one bridge.
#[derive(Debug)]
pub struct Bridge {
    config: BridgeConfig,
    tables: Tables,
    /// Changes since the tables were published last.
    changes: Changes,
    ports: BTreeMap<PortNo, of_wire::message::PortDesc>,
    conns: BTreeMap<ConnId, Conn>,
    next_conn: u64,
    generation: Option<u64>,
    frag: FragMode,
    /// The newest version of the tables that the datapath is known to act by.
    passed: u64,
    /// The newest version that the owner was asked to tell of.
    awaited: u64,
    /// Names that controllers gave to tables.
    table_names: BTreeMap<u8, String>,
    in_band: InBand,
    fails_open: bool,
    no_expiry_before: Instant,
    bundle_idle_timeout: Duration,
    outputs: VecDeque<Output>,
}

impl Bridge {
    /// A bridge without ports, rules and connections.
    pub fn new(config: BridgeConfig, now: Instant) -> Self {
        let mut bridge = Self {
            config,
            tables: Tables::new(),
            changes: Changes::new(),
            ports: BTreeMap::new(),
            conns: BTreeMap::new(),
            next_conn: 0,
            generation: None,
            frag: FragMode::Normal,
            passed: 0,
            awaited: 0,
            table_names: BTreeMap::new(),
            in_band: InBand::default(),
            fails_open: false,
            no_expiry_before: Instant::ZERO,
            bundle_idle_timeout: DEFAULT_IDLE_TIMEOUT,
            outputs: VecDeque::new(),
        };
        bridge.add_internal_rules(now);
        bridge.add_default_rule(now);
        bridge.publish();
        bridge
    }

    /// The newest published version of the tables.
    pub const fn view(&self) -> &Arc<TablesView> {
        self.tables.published()
    }

    /// How fragments are treated.
    pub const fn frag_mode(&self) -> FragMode {
        self.frag
    }

    /// The next effect to carry out.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// A connection was made or accepted: the hello is ready to be sent.
    pub fn open(&mut self, config: ConnConfig, now: Instant) -> ConnId {
        let id = ConnId(self.next_conn);
        self.next_conn += 1;
        let mut conn = Conn::new(config, now);
        let hello = conn.hello();
        conn.send_bytes(wire::encode(&hello));
        self.conns.insert(id, conn);
        id
    }

    /// The connection is gone.  Nothing more is sent to it.
    pub fn close(&mut self, id: ConnId, now: Instant) {
        if let Some(mut conn) = self.conns.remove(&id) {
            conn.report_flow_mods(now);
            self.controllers_changed();
        }
    }

    /// Bytes that a connection's peer sent.
    pub fn receive(&mut self, id: ConnId, bytes: &[u8]) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.rx.push(bytes);
        }
    }

    /// Whether more bytes should be read from that peer now.
    pub fn wants_input(&self, id: ConnId) -> bool {
        self.conns.get(&id).is_some_and(Conn::wants_input)
    }

    /// The next message to be sent to that peer: whole, in order.
    pub fn poll_send(&mut self, id: ConnId) -> Option<Vec<u8>> {
        self.conns.get_mut(&id)?.take_outgoing()
    }

    /// What there is to know of a connection.
    pub fn conn_status(&self, id: ConnId) -> Option<ConnStatus> {
        let conn = self.conns.get(&id)?;
        Some(ConnStatus {
            role: conn.role,
            version: conn.version(),
            connected_at: conn.connected_at,
        })
    }

    /// Sends an echo request, to learn whether the peer is still there.
    pub fn probe(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id)
            && let Some(version) = conn.version()
        {
            let xid = conn.take_xid();
            let echo = Message::new(version, xid, Body::EchoRequest(Vec::new()));
            conn.send_bytes(wire::encode(&echo));
        }
    }

    /// New settings of a connection; versions count from the next handshake.
    pub fn set_conn_config(&mut self, id: ConnId, config: ConnConfig) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.config = config;
            conn.limit_packet_ins();
        }
    }

    /// Handles a bounded amount of what has arrived and of what is due.
    pub fn run(&mut self, now: Instant, facts: &dyn Facts) {
        self.expire(now, facts);
        let ids: Vec<ConnId> = self.conns.keys().copied().collect();
        for id in ids {
            self.run_conn(id, now, facts);
        }
        self.publish();
    }

    /// When [`Bridge::run`] wants to be called again: `now` if there is work left.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        let mut at = self.next_expiry();
        for conn in self.conns.values() {
            if conn.has_work() {
                return now;
            }
            let queues = conn.packet_ins.iter();
            let next = queues.map(|q| q.next_deadline(now)).min();
            at = at.min(next.unwrap_or(Instant::MAX));
            at = at.min(conn.tally.next_deadline());
            at = at.min(conn.bundles.next_deadline(self.bundle_idle_timeout));
        }
        at
    }

    /// When rules may expire next: not before their counters can be brought up to date.
    fn next_expiry(&self) -> Instant {
        self.tables.next_deadline().max(self.no_expiry_before)
    }

    /// The datapath acts by `version` of the tables, cached flows included.
    pub fn datapath_passed(&mut self, version: u64) {
        self.passed = self.passed.max(version);
        for conn in self.conns.values_mut() {
            if let Some(barrier) = conn.barrier
                && barrier.version <= self.passed
                && let Some(version) = conn.version()
            {
                conn.barrier = None;
                let reply = Message::new(version, barrier.xid, Body::BarrierReply);
                conn.send_bytes(wire::encode(&reply));
            }
        }
    }

    /// Answers a request with an error.
    pub fn fail(&mut self, id: ConnId, request: &Request, code: ErrorCode) {
        // More than the 64 bytes that are required, so that whoever reads it sees what
        // was wrong.
        let error = ErrorMessage {
            code: Ok(code),
            payload: request.bytes.clone(),
        };
        let error = Message::new(request.version, request.xid, Body::Error(error));
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.send_bytes(wire::encode(&error));
        }
    }

    fn reply(&mut self, id: ConnId, message: &Message) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.send_bytes(wire::encode(message));
        }
    }

    fn run_conn(&mut self, id: ConnId, now: Instant, facts: &dyn Facts) {
        for _ in 0..PIECES_PER_TURN {
            self.continue_dump(id, now);
        }
        let mut left = WORK_PER_TURN;
        while left > 0 {
            let Some(conn) = self.conns.get_mut(&id) else {
                return;
            };
            if !conn.is_ready() {
                break;
            }
            match conn.rx.next() {
                Ok(Some(frame)) => {
                    left = left.saturating_sub(frame.work());
                    self.handle_frame(id, &frame, now, facts);
                }
                Ok(None) => break,
                Err(_) => {
                    let name = &conn.config.name;
                    log::warn!(target: "vconn", "{name}: received too-short ofp_header");
                    self.shut(id);
                }
            }
        }
        self.release_packet_ins(id, now);
        self.expire_bundles(id, now);
        if let Some(conn) = self.conns.get_mut(&id)
            && conn.tally.next_deadline() <= now
        {
            conn.report_flow_mods(now);
        }
    }

    /// Stops listening to a connection; it is closed once everything was sent.
    fn shut(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.phase = Phase::Closing;
            self.outputs.push_back(Output::Close { conn: id });
        }
    }

    fn handle_frame(&mut self, id: ConnId, frame: &Frame, now: Instant, facts: &dyn Facts) {
        let Some(conn) = self.conns.get(&id) else {
            return;
        };
        match conn.phase {
            Phase::Closing => {}
            Phase::Hello => self.handle_hello(id, frame),
            Phase::Open(version) if frame.version() == version as u8 => {
                self.handle_request(id, version, frame, now, facts);
            }
            Phase::Open(version) => self.handle_other_version(id, version, frame),
        }
    }

    fn handle_hello(&mut self, id: ConnId, frame: &Frame) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let name = conn.config.name.clone();
        let Some(theirs) = wire::hello_versions(&frame.bytes) else {
            log::warn!(target: "vconn",
                "{name}: received message of type {} while expecting OFPT_HELLO", frame.kind());
            self.shut(id);
            return;
        };
        match conn.handle_hello(theirs) {
            Ok(version) => {
                log::debug!(target: "vconn", "{name}: negotiated {version}");
                self.controllers_changed();
            }
            Err(text) => {
                log::warn!(target: "vconn", "{name}: version negotiation failed ({text})");
                let refusal = refuse_hello(theirs, &text);
                conn.send_bytes(wire::encode(&refusal));
                self.shut(id);
            }
        }
    }

    /// A message in another version than the negotiated one: an error, unless it is one
    /// that needs no answer.
    fn handle_other_version(&mut self, id: ConnId, version: Version, frame: &Frame) {
        /// Types of hello, error, echo request and echo reply.
        const HARMLESS: std::ops::RangeInclusive<u8> = 0..=3;
        if HARMLESS.contains(&frame.kind()) {
            return;
        }
        let name = self.conns.get(&id).map_or("", |c| &c.config.name);
        base::log_limited!(
            Warn,
            "vconn",
            (600, 10),
            "{name}: received OpenFlow version 0x{:02x} != expected {:02x}",
            frame.version(),
            version as u8
        );
        let theirs = Version::from_wire(frame.version()).unwrap_or(version);
        let request = Request::new(theirs, frame);
        self.fail(id, &request, ErrorCode::OfpbrcBadVersion);
    }

    /// Makes the changes so far visible, and hands them to the owner.
    fn publish(&mut self) {
        if self.tables.is_changed() {
            let view = self.tables.publish();
            let changes = std::mem::take(&mut self.changes);
            self.outputs
                .push_back(Output::TablesChanged { view, changes });
        }
    }

    /// A controller came or went: what depends on which there are is set anew.
    fn controllers_changed(&mut self) {
        let mut versions = self.conns.values().filter_map(|c| {
            let counts = c.config.kind == ConnKind::Primary || c.miss_send_len > 0;
            c.version().filter(|_| counts)
        });
        let wants = versions.any(|v| v < Version::V13);
        self.tables.set_misses_to_controller(wants);
        self.publish();
    }

    /// The versions that connections may speak.
    pub const fn versions(&self) -> VersionSet {
        self.config.versions
    }
}
