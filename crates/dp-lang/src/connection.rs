//! Tracked connections, as a datapath's connection tracker has them.

use net_flow::CtTuple;
use net_flow::connection::Family;

/// What one direction of a connection has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtCounters {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Where a TCP connection stands, in the order in which it goes through its states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TcpState {
    /// No connection.
    #[default]
    Closed,
    /// Waiting for one.
    Listen,
    /// One side has sent a SYN.
    SynSent,
    /// The other has answered it.
    SynRecv,
    /// Open.
    Established,
    /// The side that received a FIN has not sent its own.
    CloseWait,
    /// One side has sent a FIN.
    FinWait1,
    /// Both have, at the same time.
    Closing,
    /// The second FIN was sent.
    LastAck,
    /// The first FIN was acknowledged.
    FinWait2,
    /// Both FINs were.
    TimeWait,
}

impl TcpState {
    /// All states, in order.
    pub const ALL: [Self; 11] = [
        Self::Closed,
        Self::Listen,
        Self::SynSent,
        Self::SynRecv,
        Self::Established,
        Self::CloseWait,
        Self::FinWait1,
        Self::Closing,
        Self::LastAck,
        Self::FinWait2,
        Self::TimeWait,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN_SENT",
            Self::SynRecv => "SYN_RECV",
            Self::Established => "ESTABLISHED",
            Self::CloseWait => "CLOSE_WAIT",
            Self::FinWait1 => "FIN_WAIT_1",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST_ACK",
            Self::FinWait2 => "FIN_WAIT_2",
            Self::TimeWait => "TIME_WAIT",
        }
    }

    /// The state that stands for it where trackers tell states apart differently.
    #[must_use]
    pub const fn coarse(self) -> Self {
        match self {
            Self::FinWait2 => Self::TimeWait,
            Self::SynRecv => Self::Established,
            other => other,
        }
    }
}

/// What a tracker knows of one side of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSide {
    /// Its state.
    pub state: TcpState,
    /// Its window scale.
    pub window_scale: u8,
    /// Flags by the kernel's `IP_CT_TCP_FLAG_*`.
    pub flags: u8,
}

/// Names of [`TcpSide::flags`], the lowest first.
pub const TCP_FLAGS: [&str; 6] = [
    "WINDOW_SCALE",
    "SACK_PERM",
    "CLOSE_INIT",
    "BE_LIBERAL",
    "DATA_UNACKNOWLEDGED",
    "MAXACK_SET",
];

/// Names of the bits of [`Connection::status`] (the kernel's `IPS_*`), the lowest first.
pub const STATUS_FLAGS: [&str; 13] = [
    "EXPECTED",
    "SEEN_REPLY",
    "ASSURED",
    "CONFIRMED",
    "SRC_NAT",
    "DST_NAT",
    "SEQ_ADJUST",
    "SRC_NAT_DONE",
    "DST_NAT_DONE",
    "DYING",
    "FIXED_TIMEOUT",
    "TEMPLATE",
    "UNTRACKED",
];

/// Names of the states of an SCTP association.
pub const SCTP_STATES: [&str; 9] = [
    "CLOSED",
    "COOKIE_WAIT",
    "COOKIE_ECHOED",
    "ESTABLISHED",
    "SHUTDOWN_SENT",
    "SHUTDOWN_RECD",
    "SHUTDOWN_ACK_SENT",
    "HEARTBEAT_SENT",
    "HEARTBEAT_ACKED",
];

/// What a tracker knows of a connection's protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtoInfo {
    /// Nothing.
    #[default]
    None,
    /// The two sides of a TCP connection: who opened it, and the other.
    Tcp(TcpSide, TcpSide),
    /// An SCTP association.
    Sctp {
        /// Index into [`SCTP_STATES`].
        state: u8,
        /// Verification tags of both directions.
        vtags: (u32, u32),
    },
}

/// A tracked connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Whose addresses it has.
    pub family: Family,
    /// IP protocol.
    pub proto: u8,
    /// The direction of its first packet.
    pub orig: CtTuple,
    /// The direction of the answers, as they come in.
    pub reply: CtTuple,
    /// The connection that announced it, if one did: protocol and first direction.
    pub parent: Option<(u8, CtTuple)>,
    /// Zone.
    pub zone: u16,
    /// A number that no other connection has.
    pub id: u32,
    /// Flags by [`STATUS_FLAGS`].
    pub status: u32,
    /// Seconds until it is forgotten.
    pub timeout: u32,
    /// Mark.
    pub mark: u32,
    /// Label.
    pub labels: u128,
    /// What its first direction counted.
    pub orig_counters: CtCounters,
    /// What the other did.
    pub reply_counters: CtCounters,
    /// When it began and ended, in nanoseconds since 1970; 0 if that is not known.
    pub times: (u64, u64),
    /// What is known of its protocol.
    pub info: ProtoInfo,
    /// Name of its application helper.
    pub helper: Option<String>,
}

impl Connection {
    /// A connection of which only its ends are known.
    pub fn new(family: Family, proto: u8, orig: CtTuple, reply: CtTuple) -> Self {
        Self {
            family,
            proto,
            orig,
            reply,
            parent: None,
            zone: 0,
            id: 0,
            status: 0,
            timeout: 0,
            mark: 0,
            labels: 0,
            orig_counters: CtCounters::default(),
            reply_counters: CtCounters::default(),
            times: (0, 0),
            info: ProtoInfo::None,
            helper: None,
        }
    }

    /// Whether `wanted` means it.
    pub fn matches(&self, wanted: &net_flow::CtMatch) -> bool {
        (wanted.family.is_none_or(|f| f == self.family))
            && (wanted.proto == 0 || wanted.proto == self.proto)
            && wanted.orig.takes(&self.orig, wanted.proto)
            && wanted.reply.takes(&self.reply, wanted.proto)
            && (wanted.mark.0 ^ self.mark) & wanted.mark.1 == 0
            && (wanted.labels.0 ^ self.labels) & wanted.labels.1 == 0
    }

    /// The state of a TCP connection, as it is shown where the two sides are not told apart.
    pub fn tcp_state(&self) -> Option<TcpState> {
        match self.info {
            ProtoInfo::Tcp(orig, reply) => Some(orig.state.max(reply.state).coarse()),
            _ => None,
        }
    }
}

/// How many connections a zone may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtLimit {
    /// The zone; none is the limit of zones without one of their own.
    pub zone: Option<u16>,
    /// Connections at most; 0 is no limit.
    pub limit: u32,
    /// Connections that there are.
    pub count: u32,
}
