//! From a request to what answers it.

use base::Instant;
use of_wire::message::{CtFlush, SwitchConfig};
use of_wire::{Body, ErrorCode, Formats, Message, Version};

use crate::async_config;
use crate::bridge::{Bridge, Facts, FragMode, Output, Request};
use crate::conn::{Barrier, ConnId, ConnKind, DEFAULT_MISS_SEND_LEN, Frame};

/// A request that is being handled.
pub(crate) struct Asked<'a> {
    /// Who asks.
    pub(crate) conn: ConnId,
    /// The version of the request, and so of the answers.
    pub(crate) version: Version,
    /// Its transaction id.
    pub(crate) xid: u32,
    /// All of it.
    pub(crate) frame: &'a Frame,
    /// The time.
    pub(crate) now: Instant,
}

impl Asked<'_> {
    /// The answer `body`.
    pub(crate) const fn answer(&self, body: Body) -> Message {
        Message::new(self.version, self.xid, body)
    }

    pub(crate) fn request(&self) -> Request {
        Request::new(self.version, self.frame)
    }
}

impl Bridge {
    pub(super) fn handle_request(
        &mut self,
        id: ConnId,
        version: Version,
        frame: &Frame,
        now: Instant,
        facts: &dyn Facts,
    ) {
        let Some(conn) = self.conns.get(&id) else {
            return;
        };
        let asked = Asked {
            conn: id,
            version,
            xid: frame.xid(),
            frame,
            now,
        };
        let decoded = Message::decode(&frame.bytes, conn.dialect);
        let result = decoded.and_then(|message| self.dispatch(&asked, message.body, facts));
        if let Err(code) = result {
            self.fail(id, &asked.request(), code);
        }
    }

    /// Handles one message; an error is sent to whom asked.
    fn dispatch(
        &mut self,
        asked: &Asked<'_>,
        body: Body,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        if is_change(&body) && self.conn(asked.conn).is_some_and(|c| c.is_secondary()) {
            return Err(ErrorCode::OfpbrcIsSecondary);
        }
        match body {
            Body::Hello(_) | Body::EchoReply(_) | Body::BarrierReply | Body::FlowAge => Ok(()),
            Body::Error(error) => {
                let name = self.conn(asked.conn).map_or("", |c| &c.config.name);
                log::debug!(target: "connmgr", "{name}: received error {:?}", error.code);
                Ok(())
            }
            Body::EchoRequest(data) => {
                self.reply(asked.conn, &asked.answer(Body::EchoReply(data)));
                Ok(())
            }
            Body::FeaturesRequest => self.handle_features(asked),
            Body::GetConfigRequest => self.handle_get_config(asked),
            Body::SetConfig(config) => self.handle_set_config(asked, config),
            Body::BarrierRequest => self.handle_barrier(asked),
            Body::FlowMod(flow_mod) => self.handle_flow_mod(asked, *flow_mod, facts),
            Body::PacketOut(packet) => self.handle_packet_out(asked, packet, facts),
            Body::PortMod(port_mod) => self.handle_port_mod(asked, &port_mod),
            Body::TableMod(table_mod) => self.handle_table_mod(asked, &table_mod),
            Body::GroupMod(request) => self.handle_group_mod(asked, *request, facts),
            Body::MeterMod(meter) => refuse_meter(meter.command, meter.id),
            Body::RoleRequest(request) => self.handle_role(asked, request),
            other => self.dispatch_settings(asked, other, facts),
        }
    }

    /// What concerns the connection itself, then queries.
    fn dispatch_settings(
        &mut self,
        asked: &Asked<'_>,
        body: Body,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let Some(conn) = self.conns.get_mut(&asked.conn) else {
            return Ok(());
        };
        match body {
            Body::GetAsyncRequest => {
                let config = async_config::shown(&conn.async_config, asked.version);
                let config = Box::new(config);
                self.reply(asked.conn, &asked.answer(Body::GetAsyncReply(config)));
                Ok(())
            }
            Body::SetAsync(config) => {
                conn.async_config = *config;
                if conn.config.kind == ConnKind::Service && conn.miss_send_len == 0 {
                    conn.miss_send_len = DEFAULT_MISS_SEND_LEN;
                }
                self.controllers_changed();
                Ok(())
            }
            Body::FlowModTableId(on) => {
                let is_nxm = conn.dialect.is_nxm();
                conn.dialect.format = format_10(is_nxm, on);
                Ok(())
            }
            Body::SetFlowFormat(format) => {
                let is_nxm = match format {
                    0 => false,
                    2 => true,
                    _ => return Err(ErrorCode::OfpbrcEperm),
                };
                conn.dialect.format = format_10(is_nxm, conn.dialect.has_table_id());
                Ok(())
            }
            Body::SetPacketInFormat(format) => {
                conn.dialect.packet_in = format;
                Ok(())
            }
            Body::CtFlushZone(zone) => {
                let flush = CtFlush {
                    zone: Some(zone),
                    ..CtFlush::default()
                };
                self.outputs.push_back(Output::CtFlush(Box::new(flush)));
                Ok(())
            }
            Body::CtFlush(flush) => {
                self.outputs.push_back(Output::CtFlush(flush));
                Ok(())
            }
            Body::SetControllerId(id) => {
                conn.controller_id = id;
                Ok(())
            }
            other => self.dispatch_query(asked, other, facts),
        }
    }

    fn dispatch_query(
        &mut self,
        asked: &Asked<'_>,
        body: Body,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        if let Body::FlowStatsRequest(_)
        | Body::AggregateStatsRequest(_)
        | Body::TableStatsRequest
        | Body::GroupStatsRequest(_) = &body
        {
            // Counters that cannot be had now are those of a moment ago.
            let _ = facts.update_counters();
        }
        match body {
            Body::DescRequest => self.handle_desc(asked),
            Body::FlowStatsRequest(request) => self.handle_flow_stats(asked, &request),
            Body::AggregateStatsRequest(request) => self.handle_aggregate(asked, &request),
            Body::TableStatsRequest => self.handle_table_stats(asked),
            Body::TableFeaturesRequest(part) => self.handle_table_features(asked, &part),
            Body::TableDescRequest => self.handle_table_desc(asked),
            Body::PortStatsRequest(port) => self.handle_port_stats(asked, port, facts),
            Body::PortDescRequest(port) => self.handle_port_desc(asked, port),
            Body::QueueStatsRequest { port, queue } => {
                self.handle_queue_stats(asked, port, queue, facts)
            }
            Body::QueueGetConfigRequest { port, queue } => {
                self.handle_queue_config(asked, port, queue, facts)
            }
            Body::GroupStatsRequest(id) => self.handle_group_stats(asked, id),
            Body::GroupDescRequest(id) => self.handle_group_desc(asked, id),
            Body::GroupFeaturesRequest => self.handle_group_features(asked),
            Body::BundleControl(control) => self.handle_bundle_control(asked, control, facts),
            Body::BundleAdd { id, flags, .. } => self.handle_bundle_add(asked, id, flags),
            Body::Unsupported { .. } => Err(unsupported(asked.frame, asked.version)),
            _ => Err(ErrorCode::OfpbrcBadType),
        }
    }

    fn handle_get_config(&mut self, asked: &Asked<'_>) -> Result<(), ErrorCode> {
        let Some(conn) = self.conns.get(&asked.conn) else {
            return Ok(());
        };
        let knows_ttl = asked.version < Version::V13;
        let ttl = async_config::invalid_ttl_to_controller(&conn.async_config);
        let config = SwitchConfig {
            frag: self.frag as u16,
            invalid_ttl_to_controller: knows_ttl.then_some(ttl),
            miss_send_len: conn.miss_send_len,
        };
        self.reply(asked.conn, &asked.answer(Body::GetConfigReply(config)));
        Ok(())
    }

    fn handle_set_config(
        &mut self,
        asked: &Asked<'_>,
        config: SwitchConfig,
    ) -> Result<(), ErrorCode> {
        let Some(conn) = self.conns.get_mut(&asked.conn) else {
            return Ok(());
        };
        if let Some(on) = config.invalid_ttl_to_controller {
            async_config::set_invalid_ttl_to_controller(&mut conn.async_config, on);
        }
        conn.miss_send_len = config.miss_send_len;
        let may_change = !(conn.config.kind == ConnKind::Primary && conn.is_secondary());
        match FragMode::from_wire(config.frag) {
            Some(frag) if may_change && frag != self.frag => {
                self.frag = frag;
                self.outputs.push_back(Output::FragMode(frag));
            }
            Some(_) => {}
            None => {
                let bridge = &self.config.name;
                base::log_limited!(
                    Warn,
                    "ofproto",
                    (60, 5),
                    "{bridge}: fragment handling mode {} is not supported",
                    config.frag
                );
            }
        }
        self.controllers_changed();
        Ok(())
    }

    /// A barrier is answered once the datapath acts by all changes so far; what follows it on
    /// its connection waits for that too.
    fn handle_barrier(&mut self, asked: &Asked<'_>) -> Result<(), ErrorCode> {
        self.publish();
        let version = self.view().version();
        if version <= self.passed {
            self.reply(asked.conn, &asked.answer(Body::BarrierReply));
            return Ok(());
        }
        if let Some(conn) = self.conns.get_mut(&asked.conn) {
            conn.barrier = Some(Barrier {
                xid: asked.xid,
                version,
            });
        }
        if self.awaited < version {
            self.awaited = version;
            self.outputs.push_back(Output::AwaitDatapath { version });
        }
        Ok(())
    }

    pub(crate) fn conn(&self, id: ConnId) -> Option<&crate::conn::Conn> {
        self.conns.get(&id)
    }
}

/// Whether a request changes the switch, which the secondary role may not.
const fn is_change(body: &Body) -> bool {
    matches!(
        body,
        Body::FlowMod(_)
            | Body::PacketOut(_)
            | Body::PortMod(_)
            | Body::TableMod(_)
            | Body::GroupMod(_)
            | Body::MeterMod(_)
            | Body::BundleControl(_)
            | Body::BundleAdd { .. }
    )
}

/// The flow format of OpenFlow 1.0, with Nicira's match and with table ids or without.
const fn format_10(nxm: bool, table_ids: bool) -> Formats {
    match (nxm, table_ids) {
        (false, false) => Formats::OF10_STD,
        (false, true) => Formats::OF10_STD_TID,
        (true, false) => Formats::OF10_NXM,
        (true, true) => Formats::OF10_NXM_TID,
    }
}

/// The error for a kind of message that is known but not handled here.
fn unsupported(frame: &Frame, version: Version) -> ErrorCode {
    /// Statistics or multipart requests: 16 in OpenFlow 1.0, 18 later.
    const STATS_10: u8 = 16;
    const STATS_11: u8 = 18;
    let stats = if version == Version::V10 {
        STATS_10
    } else {
        STATS_11
    };
    if frame.kind() == stats {
        ErrorCode::OfpbrcBadStat
    } else {
        ErrorCode::OfpbrcBadType
    }
}

/// There are no meters yet: none can be added, and none is there to be changed.
fn refuse_meter(command: u16, id: u32) -> Result<(), ErrorCode> {
    /// All meters.
    const ALL: u32 = 0xffff_ffff;
    match command {
        0 => Err(ErrorCode::OfpmmfcOutOfMeters),
        2 if id == ALL => Ok(()),
        1 | 2 => Err(ErrorCode::OfpmmfcUnknownMeter),
        _ => Err(ErrorCode::OfpmmfcBadCommand),
    }
}
