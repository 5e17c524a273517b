//! The kinds of messages: which name has which number, in which versions, and how long
//! its body is.

use std::fmt;

/// How a message says its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// By its type, or as an experimenter's message.
    Message,
    /// As a multipart request, an experimenter's maybe.
    Request,
    /// As a multipart reply, an experimenter's maybe.
    Reply,
}

/// A row: kind, how it is said, experimenter or 0, number, first and last version, bytes of
/// the body at least, and what further bytes are a multiple of (0 for none).
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) class: Class,
    pub(crate) vendor: u32,
    pub(crate) number: u32,
    pub(crate) first: u8,
    pub(crate) last: u8,
    pub(crate) min: usize,
    pub(crate) multiple: usize,
}

macro_rules! kinds {
    ($($id:ident $name:literal)*) => {
        /// A kind of message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`.")] $id,)*
        }

        impl Kind {
            /// Its name, as `ovs-ofctl` prints it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$id => $name,)*
                }
            }
        }
    };
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

kinds! {
    OfptHello "OFPT_HELLO"
    OfptError "OFPT_ERROR"
    OfptEchoRequest "OFPT_ECHO_REQUEST"
    OfptEchoReply "OFPT_ECHO_REPLY"
    OfptFeaturesRequest "OFPT_FEATURES_REQUEST"
    OfptFeaturesReply "OFPT_FEATURES_REPLY"
    OfptGetConfigRequest "OFPT_GET_CONFIG_REQUEST"
    OfptGetConfigReply "OFPT_GET_CONFIG_REPLY"
    OfptSetConfig "OFPT_SET_CONFIG"
    OfptPacketIn "OFPT_PACKET_IN"
    NxtPacketIn "NXT_PACKET_IN"
    NxtPacketIn2 "NXT_PACKET_IN2"
    OfptFlowRemoved "OFPT_FLOW_REMOVED"
    NxtFlowRemoved "NXT_FLOW_REMOVED"
    OfptPortStatus "OFPT_PORT_STATUS"
    OfptPacketOut "OFPT_PACKET_OUT"
    OfptFlowMod "OFPT_FLOW_MOD"
    NxtFlowMod "NXT_FLOW_MOD"
    NxtGroupMod "NXT_GROUP_MOD"
    OfptGroupMod "OFPT_GROUP_MOD"
    OfptPortMod "OFPT_PORT_MOD"
    OfptTableMod "OFPT_TABLE_MOD"
    OfptBarrierRequest "OFPT_BARRIER_REQUEST"
    OfptBarrierReply "OFPT_BARRIER_REPLY"
    OfptQueueGetConfigRequest "OFPT_QUEUE_GET_CONFIG_REQUEST"
    OfptQueueGetConfigReply "OFPT_QUEUE_GET_CONFIG_REPLY"
    OfptRoleRequest "OFPT_ROLE_REQUEST"
    NxtRoleRequest "NXT_ROLE_REQUEST"
    OfptRoleReply "OFPT_ROLE_REPLY"
    NxtRoleReply "NXT_ROLE_REPLY"
    OfptGetAsyncRequest "OFPT_GET_ASYNC_REQUEST"
    OfptGetAsyncReply "OFPT_GET_ASYNC_REPLY"
    OfptSetAsync "OFPT_SET_ASYNC"
    NxtSetAsyncConfig "NXT_SET_ASYNC_CONFIG"
    NxtSetAsyncConfig2 "NXT_SET_ASYNC_CONFIG2"
    OfptMeterMod "OFPT_METER_MOD"
    OnftRoleStatus "ONFT_ROLE_STATUS"
    OfptRoleStatus "OFPT_ROLE_STATUS"
    OfptTableStatus "OFPT_TABLE_STATUS"
    NxtRequestforward "NXT_REQUESTFORWARD"
    OnftRequestforward "ONFT_REQUESTFORWARD"
    OfptRequestforward "OFPT_REQUESTFORWARD"
    OfptBundleControl "OFPT_BUNDLE_CONTROL"
    OnftBundleControl "ONFT_BUNDLE_CONTROL"
    OfptBundleAddMessage "OFPT_BUNDLE_ADD_MESSAGE"
    OnftBundleAddMessage "ONFT_BUNDLE_ADD_MESSAGE"
    OfpstDescRequest "OFPST_DESC request"
    OfpstDescReply "OFPST_DESC reply"
    OfpstFlowRequest "OFPST_FLOW request"
    NxstFlowRequest "NXST_FLOW request"
    OfpstFlowReply "OFPST_FLOW reply"
    NxstFlowReply "NXST_FLOW reply"
    OfpstAggregateRequest "OFPST_AGGREGATE request"
    NxstAggregateRequest "NXST_AGGREGATE request"
    OfpstAggregateReply "OFPST_AGGREGATE reply"
    NxstAggregateReply "NXST_AGGREGATE reply"
    OfpstTableRequest "OFPST_TABLE request"
    OfpstTableReply "OFPST_TABLE reply"
    OfpstPortRequest "OFPST_PORT request"
    OfpstPortReply "OFPST_PORT reply"
    OfpstQueueRequest "OFPST_QUEUE request"
    OfpstQueueReply "OFPST_QUEUE reply"
    NxstGroupRequest "NXST_GROUP request"
    OfpstGroupRequest "OFPST_GROUP request"
    NxstGroupReply "NXST_GROUP reply"
    OfpstGroupReply "OFPST_GROUP reply"
    NxstGroupDescRequest "NXST_GROUP_DESC request"
    OfpstGroupDescRequest "OFPST_GROUP_DESC request"
    NxstGroupDescReply "NXST_GROUP_DESC reply"
    OfpstGroupDescReply "OFPST_GROUP_DESC reply"
    NxstGroupFeaturesRequest "NXST_GROUP_FEATURES request"
    OfpstGroupFeaturesRequest "OFPST_GROUP_FEATURES request"
    NxstGroupFeaturesReply "NXST_GROUP_FEATURES reply"
    OfpstGroupFeaturesReply "OFPST_GROUP_FEATURES reply"
    OfpstMeterRequest "OFPST_METER request"
    OfpstMeterReply "OFPST_METER reply"
    OfpstMeterConfigRequest "OFPST_METER_CONFIG request"
    OfpstMeterConfigReply "OFPST_METER_CONFIG reply"
    OfpstMeterFeaturesRequest "OFPST_METER_FEATURES request"
    OfpstMeterFeaturesReply "OFPST_METER_FEATURES reply"
    OfpstTableFeaturesRequest "OFPST_TABLE_FEATURES request"
    OfpstTableFeaturesReply "OFPST_TABLE_FEATURES reply"
    OfpstTableDescRequest "OFPST_TABLE_DESC request"
    OfpstTableDescReply "OFPST_TABLE_DESC reply"
    OfpstPortDescRequest "OFPST_PORT_DESC request"
    OfpstPortDescReply "OFPST_PORT_DESC reply"
    OfpstQueueDescRequest "OFPST_QUEUE_DESC request"
    OfpstQueueDescReply "OFPST_QUEUE_DESC reply"
    OfpstFlowMonitorRequest "OFPST_FLOW_MONITOR request"
    OnfstFlowMonitorRequest "ONFST_FLOW_MONITOR request"
    NxstFlowMonitorRequest "NXST_FLOW_MONITOR request"
    OfpstFlowMonitorReply "OFPST_FLOW_MONITOR reply"
    OnfstFlowMonitorReply "ONFST_FLOW_MONITOR reply"
    NxstFlowMonitorReply "NXST_FLOW_MONITOR reply"
    OnftFlowMonitorCancel "ONFT_FLOW_MONITOR_CANCEL"
    NxtFlowMonitorCancel "NXT_FLOW_MONITOR_CANCEL"
    OnftFlowMonitorPaused "ONFT_FLOW_MONITOR_PAUSED"
    NxtFlowMonitorPaused "NXT_FLOW_MONITOR_PAUSED"
    OnftFlowMonitorResumed "ONFT_FLOW_MONITOR_RESUMED"
    NxtFlowMonitorResumed "NXT_FLOW_MONITOR_RESUMED"
    NxtSetFlowFormat "NXT_SET_FLOW_FORMAT"
    NxtFlowModTableId "NXT_FLOW_MOD_TABLE_ID"
    NxtSetPacketInFormat "NXT_SET_PACKET_IN_FORMAT"
    NxtFlowAge "NXT_FLOW_AGE"
    NxtSetControllerId "NXT_SET_CONTROLLER_ID"
    NxtTlvTableMod "NXT_TLV_TABLE_MOD"
    NxtTlvTableRequest "NXT_TLV_TABLE_REQUEST"
    NxtTlvTableReply "NXT_TLV_TABLE_REPLY"
    NxtResume "NXT_RESUME"
    NxtCtFlushZone "NXT_CT_FLUSH_ZONE"
    NxtCtFlush "NXT_CT_FLUSH"
    NxstIpfixBridgeRequest "NXST_IPFIX_BRIDGE request"
    NxstIpfixBridgeReply "NXST_IPFIX_BRIDGE reply"
    NxstIpfixFlowRequest "NXST_IPFIX_FLOW request"
    NxstIpfixFlowReply "NXST_IPFIX_FLOW reply"
}

macro_rules! rows {
    ($($kind:ident $class:ident $vendor:literal $number:literal $first:literal..=$last:literal $min:literal $multiple:literal;)*) => {
        pub(crate) static ROWS: &[Row] = &[$(Row {
            kind: Kind::$kind,
            class: Class::$class,
            vendor: $vendor,
            number: $number,
            first: $first,
            last: $last,
            min: $min,
            multiple: $multiple,
        }),*];
    };
}

rows! {
    OfptHello Message 0x0 0 1..=255 0 1;
    OfptError Message 0x0 1 1..=255 4 1;
    OfptEchoRequest Message 0x0 2 1..=255 0 1;
    OfptEchoReply Message 0x0 3 1..=255 0 1;
    OfptFeaturesRequest Message 0x0 5 1..=6 0 0;
    OfptFeaturesReply Message 0x0 6 1..=1 24 48;
    OfptFeaturesReply Message 0x0 6 2..=3 24 64;
    OfptFeaturesReply Message 0x0 6 4..=6 24 0;
    OfptGetConfigRequest Message 0x0 7 1..=6 0 0;
    OfptGetConfigReply Message 0x0 8 1..=6 4 0;
    OfptSetConfig Message 0x0 9 1..=6 4 0;
    OfptPacketIn Message 0x0 10 1..=1 10 1;
    OfptPacketIn Message 0x0 10 2..=2 16 1;
    OfptPacketIn Message 0x0 10 3..=3 8 1;
    OfptPacketIn Message 0x0 10 4..=6 16 1;
    NxtPacketIn Message 0x2320 17 1..=6 24 1;
    NxtPacketIn2 Message 0x2320 30 1..=6 0 8;
    OfptFlowRemoved Message 0x0 11 1..=1 80 0;
    OfptFlowRemoved Message 0x0 11 2..=5 40 8;
    OfptFlowRemoved Message 0x0 11 6..=6 16 8;
    NxtFlowRemoved Message 0x2320 14 1..=6 40 8;
    OfptPortStatus Message 0x0 12 1..=1 56 0;
    OfptPortStatus Message 0x0 12 2..=4 72 0;
    OfptPortStatus Message 0x0 12 5..=6 48 8;
    OfptPacketOut Message 0x0 13 1..=1 8 1;
    OfptPacketOut Message 0x0 13 2..=5 16 1;
    OfptPacketOut Message 0x0 13 6..=6 8 1;
    OfptFlowMod Message 0x0 14 1..=1 64 8;
    OfptFlowMod Message 0x0 14 2..=6 40 8;
    NxtFlowMod Message 0x2320 13 1..=6 32 8;
    NxtGroupMod Message 0x2320 31 1..=1 16 8;
    OfptGroupMod Message 0x0 15 2..=5 8 8;
    OfptGroupMod Message 0x0 15 6..=6 16 8;
    OfptPortMod Message 0x0 15 1..=1 24 0;
    OfptPortMod Message 0x0 16 2..=4 32 0;
    OfptPortMod Message 0x0 16 5..=6 24 8;
    OfptTableMod Message 0x0 17 2..=4 8 0;
    OfptTableMod Message 0x0 17 5..=6 8 8;
    OfptBarrierRequest Message 0x0 18 1..=1 0 0;
    OfptBarrierRequest Message 0x0 20 2..=6 0 0;
    OfptBarrierReply Message 0x0 19 1..=1 0 0;
    OfptBarrierReply Message 0x0 21 2..=6 0 0;
    OfptQueueGetConfigRequest Message 0x0 20 1..=1 4 0;
    OfptQueueGetConfigRequest Message 0x0 22 2..=4 8 0;
    OfptQueueGetConfigReply Message 0x0 21 1..=1 8 8;
    OfptQueueGetConfigReply Message 0x0 23 2..=4 8 8;
    OfptRoleRequest Message 0x0 24 3..=6 16 0;
    NxtRoleRequest Message 0x2320 10 1..=6 4 0;
    OfptRoleReply Message 0x0 25 3..=6 16 0;
    NxtRoleReply Message 0x2320 11 1..=6 4 0;
    OfptGetAsyncRequest Message 0x0 26 4..=4 0 0;
    OfptGetAsyncRequest Message 0x0 26 5..=6 0 0;
    OfptGetAsyncReply Message 0x0 27 4..=4 24 0;
    OfptGetAsyncReply Message 0x0 27 5..=6 0 8;
    OfptSetAsync Message 0x0 28 4..=4 24 0;
    NxtSetAsyncConfig Message 0x2320 19 1..=6 24 0;
    NxtSetAsyncConfig2 Message 0x2320 27 1..=4 0 8;
    OfptSetAsync Message 0x0 28 5..=6 0 8;
    OfptMeterMod Message 0x0 29 4..=6 8 8;
    OnftRoleStatus Message 0x4f4e4600 1911 4..=4 16 8;
    OfptRoleStatus Message 0x0 30 5..=6 16 8;
    OfptTableStatus Message 0x0 31 5..=6 8 8;
    NxtRequestforward Message 0x2320 132 1..=3 8 8;
    OnftRequestforward Message 0x4f4e4600 2350 4..=4 8 8;
    OfptRequestforward Message 0x0 32 5..=6 8 8;
    OfptBundleControl Message 0x0 33 5..=6 8 8;
    OnftBundleControl Message 0x4f4e4600 2300 4..=4 8 8;
    OfptBundleAddMessage Message 0x0 34 5..=6 8 1;
    OnftBundleAddMessage Message 0x4f4e4600 2301 4..=4 8 1;
    OfpstDescRequest Request 0x0 0 1..=6 0 0;
    OfpstDescReply Reply 0x0 0 1..=6 1056 0;
    OfpstFlowRequest Request 0x0 1 1..=1 44 0;
    OfpstFlowRequest Request 0x0 1 2..=6 32 8;
    NxstFlowRequest Request 0x2320 0 1..=1 8 8;
    OfpstFlowReply Reply 0x0 1 1..=1 0 1;
    OfpstFlowReply Reply 0x0 1 2..=3 0 1;
    OfpstFlowReply Reply 0x0 1 4..=5 0 1;
    OfpstFlowReply Reply 0x0 1 6..=6 0 1;
    NxstFlowReply Reply 0x2320 0 1..=1 0 1;
    OfpstAggregateRequest Request 0x0 2 1..=1 44 0;
    OfpstAggregateRequest Request 0x0 2 2..=5 32 8;
    OfpstAggregateRequest Request 0x0 2 6..=6 32 8;
    NxstAggregateRequest Request 0x2320 1 1..=1 8 8;
    OfpstAggregateReply Reply 0x0 2 1..=5 24 0;
    OfpstAggregateReply Reply 0x0 2 6..=6 0 1;
    NxstAggregateReply Reply 0x2320 1 1..=1 24 0;
    OfpstTableRequest Request 0x0 3 1..=6 0 0;
    OfpstTableReply Reply 0x0 3 1..=1 0 64;
    OfpstTableReply Reply 0x0 3 2..=2 0 88;
    OfpstTableReply Reply 0x0 3 3..=3 0 128;
    OfpstTableReply Reply 0x0 3 4..=6 0 24;
    OfpstPortRequest Request 0x0 4 1..=1 8 0;
    OfpstPortRequest Request 0x0 4 2..=6 8 0;
    OfpstPortReply Reply 0x0 4 1..=1 0 104;
    OfpstPortReply Reply 0x0 4 2..=3 0 104;
    OfpstPortReply Reply 0x0 4 4..=4 0 112;
    OfpstPortReply Reply 0x0 4 5..=6 0 8;
    OfpstQueueRequest Request 0x0 5 1..=1 8 0;
    OfpstQueueRequest Request 0x0 5 2..=6 8 0;
    OfpstQueueReply Reply 0x0 5 1..=1 0 32;
    OfpstQueueReply Reply 0x0 5 2..=3 0 32;
    OfpstQueueReply Reply 0x0 5 4..=4 0 40;
    OfpstQueueReply Reply 0x0 5 5..=6 0 8;
    NxstGroupRequest Request 0x2320 7 1..=1 8 0;
    OfpstGroupRequest Request 0x0 6 2..=6 8 0;
    NxstGroupReply Reply 0x2320 7 1..=1 0 8;
    OfpstGroupReply Reply 0x0 6 2..=3 0 8;
    OfpstGroupReply Reply 0x0 6 4..=6 0 8;
    NxstGroupDescRequest Request 0x2320 8 1..=1 8 0;
    OfpstGroupDescRequest Request 0x0 7 2..=5 0 0;
    OfpstGroupDescRequest Request 0x0 7 6..=6 8 0;
    NxstGroupDescReply Reply 0x2320 8 1..=1 0 8;
    OfpstGroupDescReply Reply 0x0 7 2..=6 0 8;
    NxstGroupFeaturesRequest Request 0x2320 9 1..=2 0 0;
    OfpstGroupFeaturesRequest Request 0x0 8 3..=6 0 0;
    NxstGroupFeaturesReply Reply 0x2320 9 1..=2 40 0;
    OfpstGroupFeaturesReply Reply 0x0 8 3..=6 40 0;
    OfpstMeterRequest Request 0x0 9 4..=6 8 0;
    OfpstMeterReply Reply 0x0 9 4..=6 0 8;
    OfpstMeterConfigRequest Request 0x0 10 4..=6 8 0;
    OfpstMeterConfigReply Reply 0x0 10 4..=6 0 8;
    OfpstMeterFeaturesRequest Request 0x0 11 4..=6 0 0;
    OfpstMeterFeaturesReply Reply 0x0 11 4..=6 16 0;
    OfpstTableFeaturesRequest Request 0x0 12 4..=6 0 8;
    OfpstTableFeaturesReply Reply 0x0 12 4..=6 64 8;
    OfpstTableDescRequest Request 0x0 14 5..=6 0 0;
    OfpstTableDescReply Reply 0x0 14 5..=6 8 8;
    OfpstPortDescRequest Request 0x0 13 1..=5 0 0;
    OfpstPortDescRequest Request 0x0 13 6..=6 8 0;
    OfpstPortDescReply Reply 0x0 13 1..=1 0 48;
    OfpstPortDescReply Reply 0x0 13 2..=4 0 64;
    OfpstPortDescReply Reply 0x0 13 5..=6 0 8;
    OfpstQueueDescRequest Request 0x0 15 5..=6 8 0;
    OfpstQueueDescReply Reply 0x0 15 5..=6 0 8;
    OfpstFlowMonitorRequest Request 0x0 16 5..=6 0 8;
    OnfstFlowMonitorRequest Request 0x4f4e4600 1870 4..=4 0 8;
    NxstFlowMonitorRequest Request 0x2320 2 1..=3 0 8;
    OfpstFlowMonitorReply Reply 0x0 16 5..=6 0 8;
    OnfstFlowMonitorReply Reply 0x4f4e4600 1870 4..=4 0 8;
    NxstFlowMonitorReply Reply 0x2320 2 1..=3 0 8;
    OnftFlowMonitorCancel Message 0x4f4e4600 1870 4..=4 4 0;
    NxtFlowMonitorCancel Message 0x2320 21 1..=3 4 0;
    OnftFlowMonitorPaused Message 0x4f4e4600 1871 4..=4 0 0;
    NxtFlowMonitorPaused Message 0x2320 22 1..=3 0 0;
    OnftFlowMonitorResumed Message 0x4f4e4600 1872 4..=4 0 0;
    NxtFlowMonitorResumed Message 0x2320 23 1..=3 0 0;
    NxtSetFlowFormat Message 0x2320 12 1..=1 4 0;
    NxtFlowModTableId Message 0x2320 15 1..=6 8 0;
    NxtSetPacketInFormat Message 0x2320 16 1..=6 4 0;
    NxtFlowAge Message 0x2320 18 1..=6 0 0;
    NxtSetControllerId Message 0x2320 20 1..=6 8 0;
    NxtTlvTableMod Message 0x2320 24 1..=6 8 8;
    NxtTlvTableRequest Message 0x2320 25 1..=6 0 0;
    NxtTlvTableReply Message 0x2320 26 1..=6 16 8;
    NxtResume Message 0x2320 28 1..=6 0 8;
    NxtCtFlushZone Message 0x2320 29 1..=6 8 0;
    NxtCtFlush Message 0x2320 32 1..=6 8 8;
    NxstIpfixBridgeRequest Request 0x2320 3 1..=6 0 0;
    NxstIpfixBridgeReply Reply 0x2320 3 1..=6 88 0;
    NxstIpfixFlowRequest Request 0x2320 4 1..=6 0 0;
    NxstIpfixFlowReply Reply 0x2320 4 1..=6 0 88;
}
