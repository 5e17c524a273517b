//! What a worker does with packets: look-up, upcall, actions, output.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Instant;
use dp_api::{NewFlow, Upcall, UpcallKind};
use dp_lang::{Action, Effects, InFlight, Missing, PortNo, Userspace, execute};
use net_flow::types::{eth_type, ip_proto};
use net_flow::{FlowKey, slot};
use net_packet::{BATCH, Batch, Checksum, Packet, Pool, segment};

use crate::cache::Cache;
use crate::classifier::Classifier;
use crate::flow::{Counted, Matching, Megaflow, bump};
use crate::port::{Port, PortTable};
use crate::shared::{Command, Mailbox, Shared};
use base::hash::hash_words;

/// How often a packet is looked up or handed to the switch again at most.
const MAX_DEPTH: u8 = 6;

/// Packets for one port that wait to be sent.
#[derive(Debug)]
struct Pending {
    port: Arc<Port>,
    packets: Batch,
}

/// What one worker has to itself.
#[derive(Debug)]
pub(crate) struct Engine {
    worker: usize,
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    cache: Cache,
    classifier: Classifier,
    pub(crate) pool: Pool,
    /// There while packets are served: devices close when nobody has them.
    ports: Option<Arc<PortTable>>,
    max_vlans: u8,
    now: Instant,
    pending: Vec<Pending>,
    spare: Vec<Batch>,
    counting: Option<(Arc<Megaflow>, Counted)>,
    chance: u64,
    warned: bool,
    /// Its tables are its own and not those of the worker it acts for.
    is_guest: bool,
}

impl Engine {
    pub(crate) fn new(shared: &Arc<Shared>, worker: usize) -> Self {
        Self {
            worker,
            shared: shared.clone(),
            mailbox: shared.mailbox(worker),
            cache: Cache::default(),
            classifier: Classifier::new(shared.seed),
            pool: Pool::new(),
            ports: None,
            max_vlans: 1,
            now: Instant::ZERO,
            pending: Vec::new(),
            spare: Vec::new(),
            counting: None,
            chance: shared.seed | 1,
            warned: false,
            is_guest: false,
        }
    }

    /// An engine for one job of `worker`, whose own engine is busy.
    pub(crate) fn guest(shared: &Arc<Shared>, worker: usize) -> Self {
        Self {
            is_guest: true,
            ..Self::new(shared, worker)
        }
    }

    /// Brings the tables up to date; gives back the commands that are about ports.
    pub(crate) fn obey(&mut self) -> Vec<Command> {
        let mut others = Vec::new();
        for command in self.mailbox.take() {
            match command {
                Command::Insert(flow) => {
                    if !flow.is_dead() {
                        self.classifier.insert(flow);
                    }
                }
                Command::Remove(flow) => self.classifier.remove(&flow),
                Command::Sweep => {
                    self.classifier.sweep();
                    self.cache.sweep();
                }
                other => others.push(other),
            }
        }
        others
    }

    /// Installs the flows that packets of some ports meet here for worker `to` as well; those that it does not
    /// have in its tables yet.
    pub(crate) fn flows_from(&self, ports: &HashSet<PortNo>, to: usize) -> Vec<Arc<Megaflow>> {
        let mine = self.classifier.iter();
        let from_ports = mine.filter(|flow| ports.contains(&flow.in_port()));
        self.shared.copy_to(to, from_ports)
    }

    fn begin(&mut self, now: Instant) {
        self.now = now;
        self.ports = Some(self.shared.ports.load_full());
        self.max_vlans = self.shared.max_vlans.load(Ordering::Relaxed);
    }

    /// Serves packets that came in on a port, and leaves `batch` empty.
    pub(crate) fn receive(&mut self, batch: &mut Batch, from: PortNo, now: Instant) {
        self.begin(now);
        for mut packet in batch.drain(..) {
            packet.in_port = from.0;
            let mut key = FlowKey::new();
            key.set(slot::IN_PORT, u128::from(from.0));
            net_flow::extract(&mut packet, &mut key, self.max_vlans);
            self.serve(packet, &key, 0);
        }
        self.end();
    }

    /// Does actions to a packet that the switch sends.
    pub(crate) fn send(&mut self, packet: Packet, key: &FlowKey, actions: &[Action], now: Instant) {
        self.begin(now);
        let mut packet = packet;
        let mut extracted = net_flow::metadata(key);
        net_flow::extract(&mut packet, &mut extracted, self.max_vlans);
        self.execute(actions, packet, &extracted, 0);
        self.end();
    }

    fn end(&mut self) {
        self.flush_counting();
        for index in 0..self.pending.len() {
            self.flush_port(index);
        }
        for pending in self.pending.drain(..) {
            self.spare.push(pending.packets);
        }
        self.ports = None;
    }

    fn flush_counting(&mut self) {
        if let Some((flow, counted)) = self.counting.take() {
            flow.count(&counted, self.now);
        }
    }

    fn flush_port(&mut self, index: usize) {
        let Pending { port, packets } = &mut self.pending[index];
        if packets.is_empty() {
            return;
        }
        let sent = port.device.send(packets, &mut self.pool);
        if sent.dropped > 0 {
            port.tx_dropped.fetch_add(sent.dropped, Ordering::Relaxed);
        }
    }

    /// Looks a packet up and does what its flow, or else the switch, says.
    fn serve(&mut self, packet: Packet, key: &FlowKey, depth: u8) {
        match self.find(key) {
            Some(flow) => {
                let actions = flow.actions();
                self.count(flow, &packet, key);
                self.execute(&actions, packet, key, depth);
            }
            None => self.miss(packet, key, depth),
        }
    }

    fn find(&mut self, key: &FlowKey) -> Option<Arc<Megaflow>> {
        let hash = hash_words(self.shared.seed, key.iter().map(|(_, word)| word));
        if let Some(flow) = self.cache.find(key, hash) {
            bump(&self.mailbox.stats.cache_hits, 1);
            bump(&self.mailbox.stats.hits, 1);
            return Some(flow.clone());
        }
        let before = self.classifier.visited;
        let found = self.classifier.find(key);
        let stats = &self.mailbox.stats;
        bump(&stats.visited, self.classifier.visited - before);
        if let Some(flow) = &found {
            bump(&stats.hits, 1);
            self.cache.insert(key, hash, flow);
        }
        found
    }

    fn count(&mut self, flow: Arc<Megaflow>, packet: &Packet, key: &FlowKey) {
        let bytes = packet.len() as u64;
        let tcp_flags = tcp_flags(key);
        match &mut self.counting {
            Some((last, counted)) if Arc::ptr_eq(last, &flow) => {
                counted.packets += 1;
                counted.bytes += bytes;
                counted.tcp_flags |= tcp_flags;
            }
            _ => {
                self.flush_counting();
                let counted = Counted {
                    packets: 1,
                    bytes,
                    tcp_flags,
                };
                self.counting = Some((flow, counted));
            }
        }
    }

    fn execute(&mut self, actions: &[Action], packet: Packet, key: &FlowKey, depth: u8) {
        let mut run = Run {
            engine: self,
            depth,
        };
        execute(actions, packet, key, &mut run);
    }

    /// The switch's decision on a packet: what is to be done with it, and the flow for those
    /// like it.
    fn upcall(&self, upcall: &Upcall<'_>) -> (Option<Arc<[Action]>>, Option<NewFlow>) {
        let handler = self.shared.handler.load();
        let Some(handler) = handler.as_ref() else {
            bump(&self.mailbox.stats.lost, 1);
            return (None, None);
        };
        let mut decided = None;
        let back = &mut |actions| decided = Some(actions);
        let flow = handler.0.upcall(upcall, self.now, back);
        (decided, flow)
    }

    fn miss(&mut self, mut packet: Packet, key: &FlowKey, depth: u8) {
        bump(&self.mailbox.stats.misses, 1);
        // What was counted so far must be visible to whoever decides.
        self.flush_counting();
        // The switch may show the packet to a controller, to which nothing may be left to be computed.
        let mut whole = None;
        if let Checksum::Partial { .. } = packet.offload.checksum {
            if packet.offload.gso.is_none() {
                segment::complete_checksum(&mut packet);
            } else {
                let mut copy = packet.clone();
                segment::complete_checksum(&mut copy);
                whole = Some(copy);
            }
        }
        let upcall = Upcall {
            kind: UpcallKind::Miss,
            packet: whole.as_ref().unwrap_or(&packet).data(),
            key,
            congested: false,
        };
        let (actions, flow) = self.upcall(&upcall);
        if let Some(flow) = flow {
            self.install(key, flow);
        }
        match actions {
            Some(actions) => self.execute(&actions, packet, key, depth),
            None => self.pool.give(packet),
        }
    }

    fn install(&mut self, key: &FlowKey, new: NewFlow) {
        let matching = Matching::new(key, &new.mask);
        let (flow, is_new) = self
            .shared
            .install(self.worker, new.ufid, matching, new.actions);
        if !is_new {
            return;
        }
        if self.is_guest {
            self.mailbox.send(Command::Insert(flow));
        } else {
            self.classifier.insert(flow);
        }
    }

    fn output(&mut self, number: PortNo, packet: Packet) {
        let at = self.pending.iter().position(|p| p.port.number == number);
        let at = match at {
            Some(at) => at,
            None => {
                let ports = self.ports.as_ref();
                let Some(port) = ports.and_then(|ports| ports.get(number)) else {
                    self.pool.give(packet);
                    return;
                };
                self.pending.push(Pending {
                    port: port.clone(),
                    packets: self.spare.pop().unwrap_or_default(),
                });
                self.pending.len() - 1
            }
        };
        self.pending[at].packets.push(packet);
        if self.pending[at].packets.len() >= BATCH {
            self.flush_port(at);
        }
    }

    fn random(&mut self) -> u32 {
        // Marsaglia's xorshift: good enough for sampling.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 32) as u32
    }
}

fn tcp_flags(key: &FlowKey) -> u16 {
    let is_tcp = key.get(slot::NW_PROTO) == u128::from(ip_proto::TCP);
    let kind = key.get(slot::ETH_TYPE) as u16;
    if is_tcp && matches!(kind, eth_type::IPV4 | eth_type::IPV6) {
        key.get(slot::TCP_FLAGS) as u16
    } else {
        0
    }
}

/// The hash of a packet's addresses, protocol and ports; with `symmetric`, of both directions alike.
fn flow_hash(key: &FlowKey, basis: u32, symmetric: bool) -> u32 {
    let wide = |slot| {
        let value = key.get(slot);
        (value >> 64) as u64 ^ value as u64
    };
    let src = wide(slot::IPV6_SRC) ^ wide(slot::NW_SRC);
    let dst = wide(slot::IPV6_DST) ^ wide(slot::NW_DST);
    let (src_port, dst_port) = (wide(slot::TP_SRC), wide(slot::TP_DST));
    let proto = wide(slot::NW_PROTO) | wide(slot::ETH_TYPE) << 8;
    let seed = u64::from(basis) ^ 0x51_7cc1_b727_220a;
    let words = if symmetric {
        [src ^ dst, proto, src_port ^ dst_port, 0, 0]
    } else {
        [src, dst, proto, src_port, dst_port]
    };
    hash_words(seed, words.into_iter()) as u32
}

/// A run of actions, at some depth of look-ups.
struct Run<'e> {
    engine: &'e mut Engine,
    depth: u8,
}

impl Effects for Run<'_> {
    fn copy(&mut self, packet: &Packet) -> Packet {
        let mut copy = self.engine.pool.take();
        copy.copy_from(packet);
        copy
    }

    fn release(&mut self, packet: Packet) {
        self.engine.pool.give(packet);
    }

    fn output(&mut self, port: PortNo, packet: Packet) {
        self.engine.output(port, packet);
    }

    fn userspace(&mut self, to: &Userspace, mut flight: InFlight<'_>, _rest: &[Action]) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.engine.flush_counting();
        let key = if flight.changed {
            flight.fresh_key(self.engine.max_vlans)
        } else {
            flight.key.into_owned()
        };
        let mut pieces = Vec::new();
        if segment::segment(flight.packet, &mut pieces).is_err() {
            bump(&self.engine.mailbox.stats.lost, 1);
        }
        for piece in pieces {
            let upcall = Upcall {
                kind: UpcallKind::Action(to.cookie.as_ref()),
                packet: piece.data(),
                key: &key,
                congested: false,
            };
            if let (Some(actions), _) = self.engine.upcall(&upcall) {
                let depth = self.depth + 1;
                self.engine.execute(&actions, piece, &key, depth);
            }
        }
    }

    fn recirculate(&mut self, mut flight: InFlight<'_>) {
        if self.depth >= MAX_DEPTH {
            self.engine.pool.give(flight.packet);
            return;
        }
        let key = flight.fresh_key(self.engine.max_vlans);
        self.engine.serve(flight.packet, &key, self.depth + 1);
    }

    fn random(&mut self) -> u32 {
        self.engine.random()
    }

    fn hash(&mut self, key: &FlowKey, algorithm: u32, basis: u32) -> u32 {
        flow_hash(key, basis, algorithm == 1)
    }

    fn missing(&mut self, missing: Missing) {
        if !self.engine.warned {
            self.engine.warned = true;
            log::warn!(target: "dpif_netdev", "{missing}; packets are dropped");
        }
    }
}
