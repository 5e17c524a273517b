//! Dummy devices: packets are put into them by command, and what is sent to them is counted,
//! captured or handed to another dummy.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use net_packet::header::{Arp, Ethernet, eth_type};
use net_packet::segment::segment;
use net_packet::{BATCH, Batch, EthAddr, Packet, Pool};

use crate::pair::lock;
use crate::pcap::PcapWriter;
use crate::provider::unknown_kind;
use crate::{Device, DeviceState, DeviceStats, Features, Modes, Provider, Receiver, Sent};

/// Packets that wait in a receiver at most.
const QUEUE: usize = 100;

const MTU_MIN: u32 = 68;
const MTU_MAX: u32 = 65535;

/// Which real kinds the dummies stand in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DummyLevel {
    /// None: only the kinds `dummy`, `dummy-internal` and `dummy-pmd` exist.
    Own,
    /// `system` as well.
    System,
    /// All.
    All,
}

type Queue = Mutex<VecDeque<Packet>>;

/// How a dummy is joined to others: each end names a socket, which none is ever opened at.
#[derive(Debug, Default, PartialEq, Eq)]
struct Joint {
    /// The name under which others find it.
    passive: Option<String>,
    /// The name of the one that it looks for.
    active: Option<String>,
}

#[derive(Debug, Default)]
struct Inner {
    receivers: Vec<Weak<Queue>>,
    addresses: Vec<(IpAddr, u8)>,
    joint: Joint,
    /// The options that can be told later.
    options: Vec<(String, String)>,
    rx_capture: Option<PcapWriter>,
    tx_capture: Option<PcapWriter>,
    stats: [u64; 4],
}

/// A dummy device.
#[derive(Debug)]
pub struct DummyDevice {
    name: String,
    kind: String,
    state: Mutex<DeviceState>,
    changes: AtomicU64,
    inner: Mutex<Inner>,
    all: Arc<All>,
}

/// The dummies of one provider.
#[derive(Debug)]
struct All {
    devices: Mutex<BTreeMap<String, Weak<DummyDevice>>>,
    next_mac: AtomicU32,
}

impl All {
    fn live(&self) -> Vec<Arc<DummyDevice>> {
        let devices = lock(&self.devices);
        devices.values().filter_map(Weak::upgrade).collect()
    }
}

/// Opens dummy devices; one per process, so that dummies find each other.
#[derive(Debug)]
pub struct DummyProvider {
    level: DummyLevel,
    overridden: Vec<String>,
    all: Arc<All>,
}

/// The first dummy has aa:55:aa:55:00:00, the next ...:01, and so on.
const FIRST_MAC: u32 = 0xaa55_0000;

impl DummyProvider {
    /// Opens dummies for their own kinds and for those that `level` says.
    pub fn new(level: DummyLevel) -> Self {
        let all = All {
            devices: Mutex::default(),
            next_mac: AtomicU32::new(FIRST_MAC),
        };
        let overridden: &[&str] = match level {
            DummyLevel::Own => &[],
            DummyLevel::System => &["system"],
            DummyLevel::All => &["system", "tap", "internal"],
        };
        Self {
            level,
            overridden: overridden.iter().map(|k| (*k).to_owned()).collect(),
            all: Arc::new(all),
        }
    }

    /// Which real kinds its dummies stand in for.
    pub const fn level(&self) -> DummyLevel {
        self.level
    }

    /// The dummy called `name`, if it is open.
    pub fn find(&self, name: &str) -> Option<Arc<DummyDevice>> {
        lock(&self.all.devices).get(name)?.upgrade()
    }

    /// All open dummies, by name.
    pub fn devices(&self) -> Vec<Arc<DummyDevice>> {
        self.all.live()
    }
}

impl Provider for DummyProvider {
    fn kinds(&self) -> Vec<String> {
        let own = ["dummy", "dummy-internal", "dummy-pmd"];
        let own = own.iter().map(|k| (*k).to_owned());
        own.chain(self.overridden.iter().cloned()).collect()
    }

    fn open(&self, name: &str, kind: &str) -> io::Result<Arc<dyn Device>> {
        if !self.kinds().iter().any(|k| k == kind) {
            return Err(unknown_kind(kind));
        }
        let mut devices = lock(&self.all.devices);
        if let Some(device) = devices.get(name).and_then(Weak::upgrade) {
            return Ok(device);
        }
        let n = self.all.next_mac.fetch_add(1, Ordering::Relaxed);
        let [a, b, c, d] = n.to_be_bytes();
        let state = DeviceState {
            present: true,
            ifindex: None,
            mac: EthAddr([0xaa, 0x55, a, b, c, d]),
            mtu: 1500,
            up: true,
            carrier: true,
            carrier_resets: 0,
        };
        let device = Arc::new(DummyDevice {
            name: name.to_owned(),
            kind: kind.to_owned(),
            state: Mutex::new(state),
            changes: AtomicU64::new(1),
            inner: Mutex::default(),
            all: self.all.clone(),
        });
        devices.insert(name.to_owned(), Arc::downgrade(&device));
        Ok(device)
    }
}

impl Drop for DummyDevice {
    fn drop(&mut self) {
        let mut devices = lock(&self.all.devices);
        if devices
            .get(&self.name)
            .is_some_and(|d| d.strong_count() == 0)
        {
            devices.remove(&self.name);
        }
    }
}

impl DummyDevice {
    fn change(&self, f: impl FnOnce(&mut DeviceState)) {
        let mut state = lock(&self.state);
        let before = state.clone();
        f(&mut state);
        if *state != before {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Puts a packet into the device, to be received by whoever has a receiver open.
    pub fn inject(&self, packet: Packet) {
        let mut inner = lock(&self.inner);
        if let Some(capture) = &mut inner.rx_capture {
            // A capture file that cannot be written must not stop the traffic.
            let _ = capture.write(packet.data());
        }
        inner.receivers.retain(|r| r.strong_count() > 0);
        for receiver in inner.receivers.iter().filter_map(Weak::upgrade) {
            let mut queue = lock(&receiver);
            if queue.len() < QUEUE {
                queue.push_back(packet.clone());
            }
        }
    }

    /// Gives the device an IP address, which it answers ARP requests for.
    pub fn add_address(&self, ip: IpAddr, prefix: u8) {
        lock(&self.inner).addresses.push((ip, prefix));
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it is joined to another dummy; none if it is not to be.
    pub fn is_connected(&self) -> Option<bool> {
        let (active, passive) = {
            let inner = lock(&self.inner);
            if inner.joint == Joint::default() {
                return None;
            }
            (inner.joint.active.is_some(), inner.joint.passive.is_some())
        };
        let joined = !self.peers().is_empty();
        // A passive end alone has no state of its own.
        (active || (passive && joined)).then_some(joined)
    }

    /// The dummies joined to this one.
    fn peers(&self) -> Vec<Arc<Self>> {
        let (passive, active) = {
            let inner = lock(&self.inner);
            (inner.joint.passive.clone(), inner.joint.active.clone())
        };
        if passive.is_none() && active.is_none() {
            return Vec::new();
        }
        let mut peers = self.all.live();
        peers.retain(|peer| {
            if peer.name == self.name {
                return false;
            }
            let joint = &lock(&peer.inner).joint;
            let found = |one: &Option<String>, other: &Option<String>| {
                one.is_some() && one.as_ref() == other.as_ref()
            };
            found(&joint.passive, &active) || found(&joint.active, &passive)
        });
        peers
    }

    /// The answer to an ARP request for one of the device's addresses.
    fn arp_reply(&self, frame: &[u8], addresses: &[(IpAddr, u8)]) -> Option<Packet> {
        let eth = Ethernet::new(frame)?;
        let arp = Arp::new(frame.get(Ethernet::LEN..)?)?;
        if eth.eth_type() != eth_type::ARP || arp.op() != 1 {
            return None;
        }
        let wanted = IpAddr::V4(arp.tpa());
        addresses.iter().find(|(ip, _)| *ip == wanted)?;
        let mac = lock(&self.state).mac;
        Some(arp_reply(mac, arp.tpa(), eth.src(), arp.spa()))
    }
}

fn arp_reply(sha: EthAddr, spa: Ipv4Addr, tha: EthAddr, tpa: Ipv4Addr) -> Packet {
    let mut frame = Vec::with_capacity(42);
    frame.extend(tha.0);
    frame.extend(sha.0);
    frame.extend(eth_type::ARP.to_be_bytes());
    frame.extend([0, 1, 8, 0, 6, 4, 0, 2]);
    frame.extend(sha.0);
    frame.extend(spa.octets());
    frame.extend(tha.0);
    frame.extend(tpa.octets());
    Packet::from_frame(&frame)
}

struct DummyReceiver(Arc<Queue>);

impl Receiver for DummyReceiver {
    fn receive(&mut self, batch: &mut Batch, _pool: &mut Pool) -> io::Result<()> {
        let mut queue = lock(&self.0);
        let count = queue.len().min(BATCH);
        batch.extend(queue.drain(..count));
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A receiver that counts what it hands out.
struct Counting {
    receiver: DummyReceiver,
    device: Weak<DummyDevice>,
}

impl Receiver for Counting {
    fn receive(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        let before = batch.len();
        self.receiver.receive(batch, pool)?;
        if batch.len() > before
            && let Some(device) = self.device.upgrade()
        {
            let mut inner = lock(&device.inner);
            for packet in &batch[before..] {
                inner.stats[0] += 1;
                inner.stats[1] += packet.len() as u64;
            }
        }
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Device for DummyDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn state(&self) -> DeviceState {
        lock(&self.state).clone()
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn set_up(&self, up: bool) -> io::Result<()> {
        // Nothing is plugged in or out: the carrier is there while the device is up.
        self.change(|state| (state.up, state.carrier) = (up, up));
        Ok(())
    }

    fn set_mac(&self, mac: EthAddr) -> io::Result<()> {
        self.change(|state| state.mac = mac);
        Ok(())
    }

    fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        if !(MTU_MIN..=MTU_MAX).contains(&mtu) {
            return Err(io::Error::from_raw_os_error(22));
        }
        self.change(|state| state.mtu = mtu);
        Ok(())
    }

    fn stats(&self) -> io::Result<DeviceStats> {
        let [rx_packets, rx_bytes, tx_packets, tx_bytes] = lock(&self.inner).stats;
        Ok(DeviceStats {
            rx_packets: Some(rx_packets),
            rx_bytes: Some(rx_bytes),
            tx_packets: Some(tx_packets),
            tx_bytes: Some(tx_bytes),
            ..DeviceStats::default()
        })
    }

    fn custom_stats(&self) -> Vec<(String, u64)> {
        let received = lock(&self.inner).stats[0];
        let names = ["rx_custom_packets_1", "rx_custom_packets_2"];
        names.map(|n| (n.to_owned(), received)).to_vec()
    }

    fn features(&self) -> Features {
        Features {
            current: Modes::default(),
            ..Features::default()
        }
    }

    fn addresses(&self) -> Vec<(IpAddr, u8)> {
        lock(&self.inner).addresses.clone()
    }

    fn set_options(&self, options: &[(String, String)]) -> Result<(), String> {
        let get = |name: &str| {
            let found = options.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.clone())
        };
        let capture = |name: &str| match get(name) {
            Some(path) => {
                let opened = PcapWriter::append(Path::new(&path));
                opened.map(Some).map_err(|e| format!("{name}={path}: {e}"))
            }
            None => Ok(None),
        };
        let ifindex = match get("ifindex") {
            Some(text) => {
                let number = text.parse().ok();
                Some(number.ok_or_else(|| format!("ifindex={text}: not a number"))?)
            }
            None => None,
        };
        let both = if get("pcap").is_some() { "pcap" } else { "" };
        let (rx, tx) = match both {
            "" => ("rxq_pcap", "tx_pcap"),
            both => (both, both),
        };
        let (rx_capture, tx_capture) = (capture(rx)?, capture(tx)?);
        // The address part names the joint; how it would be reached does not matter here.
        let place = |text: String| {
            let (_, place) = text.split_once(':').unwrap_or(("", &text));
            place.to_owned()
        };
        let joint = Joint {
            passive: get("pstream").map(place),
            active: get("stream").map(place),
        };
        self.change(|state| state.ifindex = ifindex);
        let mut inner = lock(&self.inner);
        inner.rx_capture = rx_capture;
        inner.tx_capture = tx_capture;
        inner.joint = joint;
        let told =
            |(key, _): &&(String, String)| matches!(&key[..], "ifindex" | "pstream" | "stream");
        inner.options = options.iter().filter(told).cloned().collect();
        Ok(())
    }

    fn options(&self) -> Vec<(String, String)> {
        lock(&self.inner).options.clone()
    }

    fn open_receiver(&self) -> io::Result<Box<dyn Receiver>> {
        let queue = Arc::new(Queue::default());
        lock(&self.inner).receivers.push(Arc::downgrade(&queue));
        let device = lock(&self.all.devices).get(&self.name).cloned();
        Ok(Box::new(Counting {
            receiver: DummyReceiver(queue),
            device: device.unwrap_or_default(),
        }))
    }

    fn send(&self, batch: &mut Batch, _pool: &mut Pool) -> Sent {
        let mut sent = Sent::default();
        let mtu = lock(&self.state).mtu as usize;
        let mut pieces = Vec::with_capacity(batch.len());
        for packet in batch.drain(..) {
            sent.dropped += u64::from(segment(packet, &mut pieces).is_err());
        }
        let peers = self.peers();
        for packet in pieces {
            let frame = packet.data();
            let tagged = Ethernet::new(frame).is_some_and(|eth| eth.eth_type() == eth_type::VLAN);
            let max = mtu + Ethernet::LEN + if tagged { 4 } else { 0 };
            if frame.len() < Ethernet::LEN || frame.len() > max {
                sent.dropped += 1;
                continue;
            }
            sent.add(frame.len());
            let addresses = {
                let mut inner = lock(&self.inner);
                inner.stats[2] += 1;
                inner.stats[3] += frame.len() as u64;
                if let Some(capture) = &mut inner.tx_capture {
                    // As for injected packets.
                    let _ = capture.write(frame);
                }
                inner.addresses.clone()
            };
            if let Some(reply) = self.arp_reply(frame, &addresses) {
                self.inject(reply);
            }
            for peer in &peers {
                peer.inject(packet.clone());
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(receiver: &mut Box<dyn Receiver>) -> Vec<Vec<u8>> {
        let mut batch = Batch::new();
        receiver.receive(&mut batch, &mut Pool::new()).unwrap();
        batch.iter().map(|p| p.data().to_vec()).collect()
    }

    #[test]
    fn injected_packets_are_received_in_order_and_counted() {
        let provider = DummyProvider::new(DummyLevel::Own);
        let device = provider.open("p1", "dummy").unwrap();
        assert_eq!(device.state().mac.to_string(), "aa:55:aa:55:00:00");
        let mut receiver = device.open_receiver().unwrap();
        let dummy = provider.find("p1").unwrap();
        for n in 0..3 {
            dummy.inject(Packet::from_frame(&[n; 20]));
        }
        let frames = receive(&mut receiver);
        assert_eq!(frames, [vec![0; 20], vec![1; 20], vec![2; 20]]);
        assert_eq!(device.stats().unwrap().rx_bytes, Some(60));
        drop((dummy, device, receiver));
        assert!(provider.find("p1").is_none());
    }

    #[test]
    fn joined_dummies_receive_what_the_other_sends() {
        let provider = DummyProvider::new(DummyLevel::Own);
        let one = provider.open("one", "dummy").unwrap();
        let other = provider.open("other", "dummy").unwrap();
        let option = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
        one.set_options(&option("pstream", "punix:/x.sock"))
            .unwrap();
        assert_eq!(provider.find("one").unwrap().is_connected(), None);
        other
            .set_options(&option("stream", "unix:/x.sock"))
            .unwrap();
        assert_eq!(provider.find("other").unwrap().is_connected(), Some(true));
        let mut receiver = one.open_receiver().unwrap();
        let mut batch = vec![Packet::from_frame(&[9; 60]), Packet::from_frame(&[9; 2000])];
        let sent = other.send(&mut batch, &mut Pool::new());
        assert_eq!((sent.packets, sent.dropped), (1, 1));
        assert_eq!(receive(&mut receiver), [vec![9; 60]]);
    }

    #[test]
    fn arp_for_its_address_is_answered() {
        let provider = DummyProvider::new(DummyLevel::All);
        let device = provider.open("p0", "system").unwrap();
        let mut receiver = device.open_receiver().unwrap();
        let ip = Ipv4Addr::new(10, 0, 0, 1);
        provider.find("p0").unwrap().add_address(ip.into(), 24);
        let mut request = arp_reply(EthAddr([2; 6]), [10, 0, 0, 2].into(), EthAddr::ZERO, ip);
        request.data_mut()[21] = 1;
        device.send(&mut vec![request], &mut Pool::new());
        let frames = receive(&mut receiver);
        let arp = Arp::new(&frames[0][14..]).unwrap();
        assert_eq!((arp.op(), arp.spa(), arp.tha()), (2, ip, EthAddr([2; 6])));
    }
}
