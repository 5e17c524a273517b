//! OpenFlow messages as values.

mod config;
mod flow;
mod group;
mod packet;
mod port;
mod table;

pub use config::{
    AsyncConfig, AsyncKind, ControllerRole, CtFlush, Desc, Features, RoleMessage, RoleStatus,
    SwitchConfig,
};
pub use flow::{
    AggregateStats, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
    FlowStats, FlowStatsRequest,
};
pub use group::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, BUCKET_MAX, Bucket, BundleControl, GROUP_ALL, GROUP_ANY,
    GROUP_MAX, Group, GroupCommand, GroupFeatures, GroupMod, GroupStats, GroupType, MeterBand,
    MeterMod, Selection,
};
pub use packet::{PacketIn, PacketInFormat, PacketInReason, PacketMetadata, PacketOut};
pub use port::{
    PortConfig, PortDesc, PortFeatures, PortMod, PortState, PortStats, PortStatus,
    PortStatusReason, QueueStats,
};
pub use table::{TableCaps, TableFeatures, TableMod, TableStats, Vacancy};

use net_flow::PortNo;

use crate::error::{ErrorCode, ErrorNumber};
use crate::version::{Version, VersionSet};

/// A whole message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The version in its header.
    pub version: Version,
    /// Transaction id: replies carry that of the request.
    pub xid: u32,
    /// What it says.
    pub body: Body,
}

/// What an error message carries.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorMessage {
    /// The error, or its number if no known error has it.
    pub code: Result<ErrorCode, ErrorNumber>,
    /// The beginning of the message that was wrong, or text for a failed hello.
    pub payload: Vec<u8>,
}

/// One part of a multipart message, or a whole one with `more` false.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    /// Further parts follow.
    pub more: bool,
    /// The entries of this part.
    pub entries: Vec<T>,
}

impl<T> Part<T> {
    /// The only, or last, part.
    pub const fn last(entries: Vec<T>) -> Self {
        Self {
            more: false,
            entries,
        }
    }
}

/// What a message says.  Where versions differ in form only, they share a variant.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// `OFPT_HELLO`: the versions that the sender speaks.
    Hello(VersionSet),
    /// `OFPT_ERROR`.
    Error(ErrorMessage),
    /// `OFPT_ECHO_REQUEST`.
    EchoRequest(Vec<u8>),
    /// `OFPT_ECHO_REPLY`.
    EchoReply(Vec<u8>),
    /// `OFPT_FEATURES_REQUEST`.
    FeaturesRequest,
    /// `OFPT_FEATURES_REPLY`.
    FeaturesReply(Box<Features>),
    /// `OFPT_GET_CONFIG_REQUEST`.
    GetConfigRequest,
    /// `OFPT_GET_CONFIG_REPLY`.
    GetConfigReply(SwitchConfig),
    /// `OFPT_SET_CONFIG`.
    SetConfig(SwitchConfig),
    /// `OFPT_PACKET_IN` and Nicira's.
    PacketIn(Box<PacketIn>),
    /// `OFPT_FLOW_REMOVED` and Nicira's.
    FlowRemoved(Box<FlowRemoved>),
    /// `OFPT_PORT_STATUS`.
    PortStatus(Box<PortStatus>),
    /// `OFPT_PACKET_OUT`.
    PacketOut(Box<PacketOut>),
    /// `OFPT_FLOW_MOD` and Nicira's.
    FlowMod(Box<FlowMod>),
    /// `OFPT_GROUP_MOD`.
    GroupMod(Box<GroupMod>),
    /// `OFPT_METER_MOD`.
    MeterMod(Box<MeterMod>),
    /// `OFPT_PORT_MOD`.
    PortMod(Box<PortMod>),
    /// `OFPT_TABLE_MOD`.
    TableMod(TableMod),
    /// `OFPT_BARRIER_REQUEST`.
    BarrierRequest,
    /// `OFPT_BARRIER_REPLY`.
    BarrierReply,
    /// `OFPT_QUEUE_GET_CONFIG_REQUEST`, and `OFPMP_QUEUE_DESC` request.
    QueueGetConfigRequest {
        /// Of this port.
        port: PortNo,
        /// Of this queue; 0xffffffff for all.
        queue: u32,
    },
    /// `OFPT_QUEUE_GET_CONFIG_REPLY`: the port, and each queue with its minimum and maximum rate
    /// in tenths of a percent, where set.
    QueueGetConfigReply {
        /// The port.
        port: PortNo,
        /// Queue, minimum rate, maximum rate.
        queues: Vec<(u32, Option<u16>, Option<u16>)>,
    },
    /// `OFPT_ROLE_REQUEST` and Nicira's.
    RoleRequest(RoleMessage),
    /// `OFPT_ROLE_REPLY` and Nicira's.
    RoleReply(RoleMessage),
    /// `OFPT_ROLE_STATUS`.
    RoleStatus(RoleStatus),
    /// `OFPT_GET_ASYNC_REQUEST`.
    GetAsyncRequest,
    /// `OFPT_GET_ASYNC_REPLY`.
    GetAsyncReply(Box<AsyncConfig>),
    /// `OFPT_SET_ASYNC` and Nicira's.
    SetAsync(Box<AsyncConfig>),

    /// `NXT_FLOW_MOD_TABLE_ID`: flow-mods carry a table id from now on.
    FlowModTableId(bool),
    /// `NXT_SET_FLOW_FORMAT`: 0 for OpenFlow 1.0's match, 2 for Nicira's.
    SetFlowFormat(u32),
    /// `NXT_SET_PACKET_IN_FORMAT`.
    SetPacketInFormat(PacketInFormat),
    /// `NXT_SET_CONTROLLER_ID`.
    SetControllerId(u16),
    /// `NXT_CT_FLUSH_ZONE`: forget the tracked connections of this zone.
    CtFlushZone(u16),
    /// `NXT_CT_FLUSH`: forget the tracked connections that are described.
    CtFlush(Box<CtFlush>),
    /// `NXT_FLOW_AGE`: nothing; still accepted.
    FlowAge,

    /// Description of the switch, request.
    DescRequest,
    /// Description of the switch.
    DescReply(Box<Desc>),
    /// Flow statistics, request, `NXST_FLOW` included.
    FlowStatsRequest(Box<FlowStatsRequest>),
    /// Flow statistics.
    FlowStatsReply(Part<FlowStats>),
    /// Aggregate flow statistics, request.
    AggregateStatsRequest(Box<FlowStatsRequest>),
    /// Aggregate flow statistics.
    AggregateStatsReply(AggregateStats),
    /// Table statistics, request.
    TableStatsRequest,
    /// Table statistics: what OpenFlow 1.0 to 1.2 say of features, and the counts.
    TableStatsReply(Part<(TableFeatures, TableStats)>),
    /// Table features, request; entries ask for a change.
    TableFeaturesRequest(Part<TableFeatures>),
    /// Table features.
    TableFeaturesReply(Part<TableFeatures>),
    /// Table descriptions, request (OpenFlow 1.4).
    TableDescRequest,
    /// Table descriptions.
    TableDescReply(Part<TableMod>),
    /// Port statistics, request; `PortNo::NONE` for all.
    PortStatsRequest(PortNo),
    /// Port statistics.
    PortStatsReply(Part<PortStats>),
    /// Queue statistics, request; `PortNo::NONE` for all ports, 0xffffffff for all queues.
    QueueStatsRequest {
        /// Of this port.
        port: PortNo,
        /// Of this queue.
        queue: u32,
    },
    /// Queue statistics.
    QueueStatsReply(Part<QueueStats>),
    /// Port descriptions, request; `PortNo::NONE` for all.
    PortDescRequest(PortNo),
    /// Port descriptions.
    PortDescReply(Part<PortDesc>),

    /// Group statistics, request; [`GROUP_ALL`] for all.
    GroupStatsRequest(u32),
    /// Group statistics.
    GroupStatsReply(Part<GroupStats>),
    /// Descriptions of groups, request; [`GROUP_ALL`] for all.
    GroupDescRequest(u32),
    /// Descriptions of groups.
    GroupDescReply(Part<Group>),
    /// What groups can do, request.
    GroupFeaturesRequest,
    /// What groups can do.
    GroupFeaturesReply(Box<GroupFeatures>),

    /// `OFPT_BUNDLE_CONTROL` and ONF's for 1.3.
    BundleControl(BundleControl),
    /// `OFPT_BUNDLE_ADD_MESSAGE`.
    BundleAdd {
        /// The bundle.
        id: u32,
        /// Its flags.
        flags: u16,
        /// The message in it.
        message: Box<Message>,
    },

    /// Another controller's change of a group or a meter, which a switch passes on
    /// (`OFPT_REQUESTFORWARD`, and its forms for older versions).
    RequestForward(Box<Message>),

    /// A known kind of message that has no value here yet: its name, and its bytes.
    /// A switch refuses it with `OFPBRC_BAD_TYPE` or `OFPBRC_BAD_STAT`.
    Unsupported {
        /// The kind, as `ovs-ofctl` names it.
        name: &'static str,
        /// The whole message.
        bytes: Vec<u8>,
    },
}

impl Message {
    /// A message.
    pub const fn new(version: Version, xid: u32, body: Body) -> Self {
        Self { version, xid, body }
    }

    /// An error message about `request`, of which it carries the first 64 bytes.
    pub fn error(version: Version, xid: u32, code: ErrorCode, request: &[u8]) -> Self {
        let payload = request[..request.len().min(64)].to_vec();
        let code = Ok(code);
        Self::new(version, xid, Body::Error(ErrorMessage { code, payload }))
    }
}
