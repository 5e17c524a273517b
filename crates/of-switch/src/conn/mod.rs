//! One OpenFlow connection: framing, handshake, and what the controller at its other
//! end has asked for.

mod frame;
mod tally;

use std::collections::VecDeque;

use base::Instant;
use of_wire::message::{AsyncConfig, AsyncKind, ControllerRole};
use of_wire::{Body, Dialect, ErrorCode, Message, Version, VersionSet};

use crate::async_config;
use crate::bundle::Bundles;
use crate::dump::Dump;
use crate::packet_in_queue::PacketInQueue;

pub(crate) use frame::{Frame, FrameBuffer};
pub(crate) use tally::Tally;

/// Identifies a connection for the life of its bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnKind {
    /// To a controller, which decides with others what happens on failure.
    Primary,
    /// From anybody who wants to look or to configure.
    Service,
}

/// How a connection is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnConfig {
    /// What it is called in the log: `br0<->unix#3`.
    pub name: String,
    /// What it is for.
    pub kind: ConnKind,
    /// The versions that may be negotiated.
    pub versions: VersionSet,
    /// Packets a second for the controller at most, 0 for no limit.
    pub rate_limit: u32,
    /// Packets for the controller that may come in one burst.
    pub burst_limit: u32,
    /// Packets for the controller that may wait to be sent.
    pub queue_size: usize,
    /// Whether anything is sent unasked.
    pub enable_async: bool,
}

impl ConnConfig {
    /// A connection with the defaults of the `Controller` columns.
    pub fn new(name: &str, kind: ConnKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            versions: VersionSet::ALL,
            rate_limit: 0,
            burst_limit: 0,
            queue_size: 100,
            enable_async: true,
        }
    }
}

/// Bytes that may wait to be sent before requests are no longer read.
const SEND_LIMIT: usize = 256 * 1024;
/// Bytes that may wait to be sent before unasked messages are dropped.
const SEND_MAX: usize = 4 * 1024 * 1024;
/// Bytes that may wait to be handled before no more are read.
const RECEIVE_LIMIT: usize = 256 * 1024;

/// How many bytes of a packet that matches nothing are sent when no one said.
pub(crate) const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for the peer's hello.
    Hello,
    /// Speaking this version.
    Open(Version),
    /// To be closed once everything was sent.
    Closing,
}

/// A barrier that waits for the datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    pub(crate) xid: u32,
    /// The version of the tables that must have taken effect.
    pub(crate) version: u64,
}

/// A packet for the controller that waits for its turn.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    pub(crate) bytes: Vec<u8>,
}

/// Whether a message to be sent counts as a packet for the controller.
#[derive(Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    is_packet_in: bool,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) config: ConnConfig,
    pub(crate) phase: Phase,
    pub(crate) rx: FrameBuffer,
    outgoing: VecDeque<Outgoing>,
    outgoing_bytes: usize,
    packet_ins_waiting: usize,
    pub(crate) role: ControllerRole,
    pub(crate) async_config: AsyncConfig,
    pub(crate) miss_send_len: u16,
    pub(crate) controller_id: u16,
    /// How messages that have several forms are written.
    pub(crate) dialect: Dialect,
    pub(crate) barrier: Option<Barrier>,
    pub(crate) dump: Option<Dump>,
    /// Misses and everything else wait apart.
    pub(crate) packet_ins: [PacketInQueue<QueuedPacket>; 2],
    next_xid: u32,
    /// Packets for the controller dropped because too many waited to be sent.
    pub(crate) packet_ins_dropped: u64,
    pub(crate) connected_at: Instant,
    pub(crate) tally: Tally,
    pub(crate) bundles: Bundles,
}

impl Conn {
    pub(crate) fn new(config: ConnConfig, now: Instant) -> Self {
        let miss_send_len = match config.kind {
            ConnKind::Primary => DEFAULT_MISS_SEND_LEN,
            ConnKind::Service => 0,
        };
        let async_config = if config.enable_async {
            async_config::default_config()
        } else {
            AsyncConfig::default()
        };
        let mut conn = Self {
            phase: Phase::Hello,
            rx: FrameBuffer::default(),
            outgoing: VecDeque::new(),
            outgoing_bytes: 0,
            packet_ins_waiting: 0,
            role: ControllerRole::Equal,
            async_config,
            miss_send_len,
            controller_id: 0,
            dialect: Dialect::of(Version::V10),
            barrier: None,
            dump: None,
            packet_ins: Default::default(),
            next_xid: 1,
            packet_ins_dropped: 0,
            connected_at: now,
            tally: Tally::default(),
            bundles: Bundles::default(),
            config,
        };
        conn.limit_packet_ins();
        conn
    }

    /// Takes over the configured limits.
    pub(crate) fn limit_packet_ins(&mut self) {
        for queue in &mut self.packet_ins {
            queue.set_limit(self.config.rate_limit, self.config.burst_limit);
        }
    }

    /// Sums up in the log what flow-mods came.
    pub(crate) fn report_flow_mods(&mut self, now: Instant) {
        if let Some(text) = self.tally.report(now) {
            log::info!(target: "connmgr", "{}: {text}", self.config.name);
        }
    }

    /// The version that was negotiated.
    pub(crate) const fn version(&self) -> Option<Version> {
        match self.phase {
            Phase::Open(version) => Some(version),
            Phase::Hello | Phase::Closing => None,
        }
    }

    pub(crate) const fn is_secondary(&self) -> bool {
        matches!(self.role, ControllerRole::Secondary)
    }

    pub(crate) const fn take_xid(&mut self) -> u32 {
        let xid = self.next_xid;
        self.next_xid = self.next_xid.wrapping_add(1);
        xid
    }

    /// Whether more input should be read from the peer.
    pub(crate) fn wants_input(&self) -> bool {
        self.phase != Phase::Closing && self.rx.len() < RECEIVE_LIMIT
    }

    /// Whether the next request may be handled.
    pub(crate) fn is_ready(&self) -> bool {
        self.phase != Phase::Closing
            && self.barrier.is_none()
            && self.dump.is_none()
            && self.outgoing_bytes < SEND_LIMIT
    }

    /// Whether a piece of a long answer may be made.
    pub(crate) fn has_room(&self) -> bool {
        self.outgoing_bytes < SEND_LIMIT
    }

    /// Whether there is work that needs nothing from outside.
    pub(crate) fn has_work(&self) -> bool {
        (self.is_ready() && self.rx.has_frame())
            || (self.dump.is_some() && self.barrier.is_none() && self.has_room())
    }

    /// Sends bytes of a whole message.
    pub(crate) fn send_bytes(&mut self, bytes: Vec<u8>) {
        // What a version has no message for is not said.
        if bytes.is_empty() {
            return;
        }
        self.outgoing_bytes += bytes.len();
        self.outgoing.push_back(Outgoing {
            bytes,
            is_packet_in: false,
        });
    }

    /// Sends a message that nobody asked for, unless the peer reads too slowly.
    pub(crate) fn send_unasked(&mut self, bytes: Vec<u8>) {
        if self.outgoing_bytes < SEND_MAX {
            self.send_bytes(bytes);
        }
    }

    /// Sends a packet to the controller, unless too many wait already.
    pub(crate) fn send_packet_in(&mut self, bytes: Vec<u8>) {
        if self.packet_ins_waiting >= self.config.queue_size {
            self.packet_ins_dropped += 1;
            return;
        }
        self.packet_ins_waiting += 1;
        self.outgoing_bytes += bytes.len();
        self.outgoing.push_back(Outgoing {
            bytes,
            is_packet_in: true,
        });
    }

    /// The next message to be sent.
    pub(crate) fn take_outgoing(&mut self) -> Option<Vec<u8>> {
        let next = self.outgoing.pop_front()?;
        self.outgoing_bytes -= next.bytes.len();
        self.packet_ins_waiting -= usize::from(next.is_packet_in);
        Some(next.bytes)
    }

    /// Whether a message of that kind and reason is sent unasked.
    pub(crate) fn wants(&self, kind: AsyncKind, reason: u8) -> bool {
        if self.config.kind == ConnKind::Service && self.miss_send_len == 0 {
            return false;
        }
        self.version().is_some()
            && async_config::wants(&self.async_config, self.is_secondary(), kind, reason)
    }

    /// The hello that opens the connection.
    pub(crate) fn hello(&mut self) -> Message {
        let versions = self.config.versions;
        let version = versions.highest().unwrap_or(Version::V10);
        Message::new(version, self.take_xid(), Body::Hello(versions))
    }

    /// The peer's hello: negotiates, or returns the text of the refusal.
    pub(crate) fn handle_hello(&mut self, theirs: VersionSet) -> Result<Version, String> {
        let ours = self.config.versions;
        match ours.intersection(theirs).highest() {
            Some(version) => {
                self.phase = Phase::Open(version);
                self.dialect = Dialect::of(version);
                Ok(version)
            }
            None => Err(format!(
                "We support {}, you support {}, no common versions.",
                describe(ours),
                describe(theirs)
            )),
        }
    }
}

/// A set of versions in words, by wire number.
fn describe(versions: VersionSet) -> String {
    let numbers: Vec<u8> = (0..32).filter(|n| versions.0 >> n & 1 != 0).collect();
    match numbers[..] {
        [] => "no versions".to_owned(),
        [only] => format!("version 0x{only:02x}"),
        [1, .., last] if numbers.len() == usize::from(last) => {
            format!("version 0x{last:02x} and earlier")
        }
        _ => {
            let numbers: Vec<String> = numbers.iter().map(|n| format!("0x{n:02x}")).collect();
            format!("versions {}", numbers.join(", "))
        }
    }
}

/// The error that refuses a hello; it is written in the newest version that both could read.
pub(crate) fn refuse_hello(theirs: VersionSet, text: &str) -> Message {
    let version = theirs.highest().unwrap_or(Version::V10);
    let mut message = Message::error(version, 0, ErrorCode::OfphfcIncompatible, &[]);
    if let Body::Error(error) = &mut message.body {
        error.payload = text.as_bytes().to_vec();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_words() {
        assert_eq!(describe(VersionSet::only(Version::V13)), "version 0x04");
        assert_eq!(describe(VersionSet::up_to(3)), "version 0x03 and earlier");
        assert_eq!(describe(VersionSet(0b1_0010)), "versions 0x01, 0x04");
    }

    #[test]
    fn the_newest_common_version_is_spoken() {
        let mut conn = Conn::new(ConnConfig::new("test", ConnKind::Primary), Instant::ZERO);
        assert_eq!(conn.handle_hello(VersionSet::up_to(4)), Ok(Version::V13));
        conn.config.versions = VersionSet::only(Version::V13);
        let text = "We support version 0x04, you support version 0x01, no common versions.";
        let refused = conn.handle_hello(VersionSet::only(Version::V10));
        assert_eq!(refused, Err(text.to_owned()));
    }

    #[test]
    fn a_slow_reader_loses_packets_not_replies() {
        let mut conn = Conn::new(ConnConfig::new("test", ConnKind::Primary), Instant::ZERO);
        conn.config.queue_size = 2;
        for n in 0..5 {
            conn.send_packet_in(vec![n]);
            conn.send_bytes(vec![100 + n]);
        }
        let sent: Vec<Vec<u8>> = std::iter::from_fn(|| conn.take_outgoing()).collect();
        assert_eq!(sent.concat(), [0, 100, 1, 101, 102, 103, 104]);
        assert_eq!(conn.packet_ins_dropped, 3);
    }
}
