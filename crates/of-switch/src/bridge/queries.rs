//! Queries of features and statistics.

use of_wire::message::{
    AggregateStats, Desc, Features, FlowStatsRequest, Part, PortDesc, PortStats, QueueStats,
};
use of_wire::{Action, Body, ErrorCode, Message, PortNo, Version};

use crate::bridge::Bridge;
use crate::bridge::dispatch::Asked;
use crate::bridge::{Facts, INTERNAL_TABLE};
use crate::conn::ConnId;
use crate::dump::{Dump, flow_stats};
use crate::rule::Rule;
use crate::tables::RuleFilter;
use crate::wire;

/// Flow, table and port statistics, queue statistics, ARP matching.
const CAPABILITIES_10: u32 = 0xc7;
/// Flow, table, port, group and queue statistics.
const CAPABILITIES_12: u32 = 0x4f;
/// Those, and ARP matching.
const CAPABILITIES_11: u32 = 0xcf;
/// Those of OpenFlow 1.2, and bundles.
const CAPABILITIES_14: u32 = 0x24f;
/// All actions of OpenFlow 1.0.
pub(super) const ACTIONS_10: u32 = 0xfff;

/// Entries in one message: so few that the message stays below 64 kB in every version.
const PORTS_PER_MESSAGE: usize = 400;
const PORT_STATS_PER_MESSAGE: usize = 150;
const QUEUES_PER_MESSAGE: usize = 400;
/// Bytes of rules, by an estimate that is several times too high, in one piece of an answer;
/// the codec cuts it into messages.
const RULE_BYTES_PER_PIECE: usize = 512 * 1024;

impl Bridge {
    pub(super) fn handle_features(&mut self, asked: &Asked<'_>) -> Result<(), ErrorCode> {
        let capabilities = match asked.version {
            Version::V10 => CAPABILITIES_10,
            Version::V11 => CAPABILITIES_11,
            Version::V12 | Version::V13 => CAPABILITIES_12,
            Version::V14 | Version::V15 => CAPABILITIES_14,
        };
        // What does not fit is cut off; from OpenFlow 1.3 on, ports have a query of their own.
        let ports = match asked.version {
            Version::V10 | Version::V11 | Version::V12 => {
                self.ports.values().take(1000).cloned().collect()
            }
            _ => Vec::new(),
        };
        let features = Features {
            datapath_id: self.config.datapath_id,
            n_buffers: 0,
            n_tables: INTERNAL_TABLE,
            auxiliary_id: 0,
            capabilities,
            actions: ACTIONS_10,
            ports,
        };
        let body = Body::FeaturesReply(Box::new(features));
        self.reply(asked.conn, &asked.answer(body));
        Ok(())
    }

    pub(super) fn handle_desc(&mut self, asked: &Asked<'_>) -> Result<(), ErrorCode> {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "None".to_owned());
        let desc = Desc {
            mfr: "Nicira, Inc.".to_owned(),
            hw: "Open vSwitch".to_owned(),
            sw: base::VERSION.to_owned(),
            serial: or_none(&self.config.serial),
            dp: or_none(&self.config.dp_desc),
        };
        let body = Body::DescReply(Box::new(desc));
        self.reply(asked.conn, &asked.answer(body));
        Ok(())
    }

    /// Begins a flow statistics answer, which [`Bridge::continue_dump`] makes.
    pub(super) fn handle_flow_stats(
        &mut self,
        asked: &Asked<'_>,
        request: &FlowStatsRequest,
    ) -> Result<(), ErrorCode> {
        let filter = filter(request);
        self.publish();
        let view = self.view().clone();
        let dialect = wire::stats_dialect(request.nicira, asked.version);
        if let Some(conn) = self.conns.get_mut(&asked.conn) {
            conn.dump = Some(Dump::new(view, filter, asked.xid, dialect));
        }
        self.continue_dump(asked.conn, asked.now);
        Ok(())
    }

    /// Makes the next message of a long answer, if there is one and room for it.
    pub(super) fn continue_dump(&mut self, id: ConnId, now: base::Instant) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let (Some(version), true) = (conn.version(), conn.has_room()) else {
            return;
        };
        let Some(dump) = &mut conn.dump else {
            return;
        };
        let mut entries = Vec::new();
        let mut size = 0;
        let more = loop {
            if size >= RULE_BYTES_PER_PIECE {
                break true;
            }
            let Some(rule) = dump.next() else {
                break false;
            };
            size += estimated_size(&rule);
            entries.push(flow_stats(&rule, now));
        };
        let part = Part { more, entries };
        let reply = Message::new(version, dump.xid, Body::FlowStatsReply(part));
        let bytes = reply.encode(dump.dialect);
        if !more {
            conn.dump = None;
        }
        conn.send_bytes(bytes);
    }

    pub(super) fn handle_aggregate(
        &mut self,
        asked: &Asked<'_>,
        request: &FlowStatsRequest,
    ) -> Result<(), ErrorCode> {
        let mut stats = AggregateStats::default();
        for rule in self.tables.select(&filter(request)) {
            let counts = rule.counts();
            stats.packet_count = stats.packet_count.saturating_add(counts.packets);
            stats.byte_count = stats.byte_count.saturating_add(counts.bytes);
            stats.flow_count = stats.flow_count.saturating_add(1);
        }
        let dialect = wire::stats_dialect(request.nicira, asked.version);
        let bytes = asked
            .answer(Body::AggregateStatsReply(stats))
            .encode(dialect);
        if let Some(conn) = self.conns.get_mut(&asked.conn) {
            conn.send_bytes(bytes);
        }
        Ok(())
    }

    pub(super) fn handle_port_stats(
        &mut self,
        asked: &Asked<'_>,
        port: PortNo,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let ports = self.ports.keys().filter(|p| is_wanted(port, **p));
        let stats: Vec<PortStats> = ports.filter_map(|p| facts.port_stats(*p)).collect();
        self.reply_parts(asked, stats, PORT_STATS_PER_MESSAGE, Body::PortStatsReply);
        Ok(())
    }

    pub(super) fn handle_port_desc(
        &mut self,
        asked: &Asked<'_>,
        port: PortNo,
    ) -> Result<(), ErrorCode> {
        let ports = self.ports.values().filter(|p| is_wanted(port, p.port));
        let ports: Vec<PortDesc> = ports.cloned().collect();
        self.reply_parts(asked, ports, PORTS_PER_MESSAGE, Body::PortDescReply);
        Ok(())
    }

    pub(super) fn handle_queue_stats(
        &mut self,
        asked: &Asked<'_>,
        port: PortNo,
        queue: u32,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let ports: Vec<PortNo> = self.ports.keys().copied().collect();
        let ports = ports.into_iter().filter(|p| is_wanted(port, *p));
        let ports: Vec<PortNo> = ports.collect();
        if ports.is_empty() && !is_any(port) {
            return Err(ErrorCode::OfpqofcBadPort);
        }
        let queue = (queue != ALL_QUEUES).then_some(queue);
        let stats: Vec<QueueStats> = ports
            .iter()
            .flat_map(|p| facts.queue_stats(*p, queue))
            .collect();
        if stats.is_empty() && queue.is_some() {
            return Err(ErrorCode::OfpqofcBadQueue);
        }
        self.reply_parts(asked, stats, QUEUES_PER_MESSAGE, Body::QueueStatsReply);
        Ok(())
    }

    /// The queues of a port.
    pub(super) fn handle_queue_config(
        &mut self,
        asked: &Asked<'_>,
        port: PortNo,
        queue: u32,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let ports = self.ports.keys().filter(|p| is_wanted(port, **p));
        let ports: Vec<PortNo> = ports.copied().collect();
        if ports.is_empty() {
            return Err(ErrorCode::OfpqofcBadPort);
        }
        let queues: Vec<_> = ports
            .iter()
            .flat_map(|p| facts.queues(*p))
            .filter(|(id, _, _)| queue == ALL_QUEUES || *id == queue)
            .collect();
        let body = Body::QueueGetConfigReply { port, queues };
        self.reply(asked.conn, &asked.answer(body));
        Ok(())
    }

    /// Answers with `entries` in as many messages as it takes.
    pub(super) fn reply_parts<T>(
        &mut self,
        asked: &Asked<'_>,
        entries: Vec<T>,
        per_message: usize,
        body: impl Fn(Part<T>) -> Body,
    ) {
        let mut rest = entries.into_iter().peekable();
        loop {
            let entries: Vec<T> = rest.by_ref().take(per_message).collect();
            let more = rest.peek().is_some();
            let message = asked.answer(body(Part { more, entries }));
            self.reply(asked.conn, &message);
            if !more {
                return;
            }
        }
    }
}

/// In requests: all queues.
const ALL_QUEUES: u32 = 0xffff_ffff;

/// Whether a request about `port` is about all ports.
fn is_any(port: PortNo) -> bool {
    // OpenFlow 1.0 says `OFPP_ALL` where later versions say `OFPP_ANY`.
    port == PortNo::NONE || port == PortNo::ALL
}

fn is_wanted(asked: PortNo, port: PortNo) -> bool {
    is_any(asked) || asked == port
}

/// The rules that a statistics request is about.
fn filter(request: &FlowStatsRequest) -> RuleFilter {
    RuleFilter {
        table: request.table,
        matching: request.matching.clone(),
        strict: None,
        cookie: request.cookie,
        cookie_mask: request.cookie_mask,
        out_port: request.out_port,
        out_group: request.out_group,
    }
}

/// No less than the bytes that `rule` takes in a message.
fn estimated_size(rule: &Rule) -> usize {
    /// The fixed part of an entry.
    const FIXED: usize = 128;
    /// A field with its mask and header, for each word of the match.
    const WORD: usize = 48;
    let words = net_classifier::Rule::mini_match(rule).values().len();
    FIXED + words * WORD + actions_size(&rule.actions)
}

fn actions_size(actions: &[Action]) -> usize {
    /// The longest action without a part of variable length.
    const ACTION: usize = 64;
    actions
        .iter()
        .map(|action| {
            ACTION
                + match action {
                    Action::Note(bytes) => bytes.len(),
                    Action::Controller(controller) => controller.userdata.len(),
                    Action::DecTtl(ids) => ids.len() * 2,
                    Action::Bundle(bundle) => bundle.members.len() * 2,
                    Action::Learn(learn) => learn.specs.len() * 32,
                    Action::Encap(encap) => {
                        let props = encap.props.iter().map(|p| p.value.len() + 16);
                        props.sum()
                    }
                    Action::Ct(ct) => actions_size(&ct.actions),
                    Action::Clone(actions) | Action::WriteActions(actions) => actions_size(actions),
                    _ => 0,
                }
        })
        .sum()
}
