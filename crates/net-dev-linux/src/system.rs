//! System ports: devices that exist without us, through packet sockets.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, OnceLock};

use net_dev::{Device, DeviceState, DeviceStats, Features, Receiver, Sent, TxOffloads};
use net_netlink::route::Link;
use net_nlsock::route::Routes;
use net_packet::segment::accept_virtio;
use net_packet::{BATCH, Batch, EthAddr, Packet, Pool, VirtioHeader, edit};
use sys::netns::NetNs;
use sys::packet_socket::{self, PacketSocket, Received};

use crate::features;
use crate::link::{LinkHandle, device_stats};

/// A device that exists without us.
#[derive(Debug)]
pub(crate) struct SystemDevice {
    link: LinkHandle,
    netns: Option<Arc<NetNs>>,
    /// Opened with the first use: a port that the kernel serves needs none.
    socket: OnceLock<Arc<PacketSocket>>,
}

impl SystemDevice {
    /// The device in the namespace `netns`, or in that of the process.
    pub(crate) fn open(
        name: &str,
        routes: &Arc<Mutex<Routes>>,
        netns: Option<Arc<NetNs>>,
    ) -> io::Result<Self> {
        Ok(Self {
            link: LinkHandle::open(name, routes)?,
            netns,
            socket: OnceLock::new(),
        })
    }

    fn socket(&self) -> io::Result<&Arc<PacketSocket>> {
        if let Some(socket) = self.socket.get() {
            return Ok(socket);
        }
        let index = self.link.ifindex().unwrap_or_default();
        let socket = match &self.netns {
            Some(netns) => netns.run(|| PacketSocket::open(index))?,
            None => PacketSocket::open(index),
        }?;
        Ok(self.socket.get_or_init(|| Arc::new(socket)))
    }

    pub(crate) const fn link(&self) -> &LinkHandle {
        &self.link
    }

    /// Takes over what the kernel says of the link; if it is a new device under the old name, the socket moves to it.
    pub(crate) fn update(&self, link: &Link) {
        if self.link.update(link)
            && let Some(socket) = self.socket.get()
            && socket.rebind(link.index).is_err()
        {
            // It is gone again; the event that says so comes next.
            self.link.vanish();
        }
    }
}

/// Bytes that a batch should have at most: what was read should be in the cache when it is
/// sent.
const BATCH_BYTES: usize = 256 << 10;

/// Buffers offered to the kernel: as many as lately came, and some more, because each costs time.
#[derive(Debug)]
pub(crate) struct Appetite(usize);

impl Default for Appetite {
    fn default() -> Self {
        Self(4)
    }
}

impl Appetite {
    pub(crate) const fn get(&self) -> usize {
        self.0
    }

    /// Takes note of a batch of `came` packets with `bytes` in all.
    pub(crate) fn learn(&mut self, came: usize, bytes: usize) {
        if bytes > BATCH_BYTES {
            self.0 = (self.0 / 2).max(1);
        } else if came >= self.0 && bytes <= BATCH_BYTES / 2 {
            self.0 = (self.0 * 2).min(BATCH);
        } else if came * 4 < self.0 {
            self.0 = (self.0 / 2).max(4);
        }
    }
}

struct SystemReceiver {
    socket: Arc<PacketSocket>,
    appetite: Appetite,
}

impl Receiver for SystemReceiver {
    fn receive(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        let before = batch.len();
        let want = self.appetite.get();
        batch.extend((0..want).map(|_| pool.take()));
        let buffers = &mut batch[before..];
        let result = self.socket.receive(buffers, Packet::room_mut, fill);
        let count = *result.as_ref().unwrap_or(&0);
        let bytes = batch[before..before + count].iter().map(Packet::len).sum();
        self.appetite.learn(count, bytes);
        for packet in batch.drain(before + count..) {
            pool.give(packet);
        }
        // What could not be used was left empty.
        let mut at = before;
        while at < batch.len() {
            if batch[at].is_empty() {
                pool.give(batch.remove(at));
            } else {
                at += 1;
            }
        }
        result.map(|_| ())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

/// Completes a packet whose bytes were received; leaves it empty if it is unusable.
fn fill(packet: &mut Packet, received: Received) {
    packet.set_len(received.len);
    let header = VirtioHeader(received.header);
    if received.truncated || accept_virtio(packet, &header).is_err() {
        packet.set_len(0);
        return;
    }
    if let Some((tpid, tci)) = received.vlan {
        edit::push_vlan(packet, tpid, tci);
    }
}

fn frame(packet: &Packet) -> ([u8; packet_socket::HEADER], &[u8]) {
    (VirtioHeader::encode(&packet.offload).0, packet.data())
}

impl Device for SystemDevice {
    fn name(&self) -> &str {
        &self.link.name
    }

    fn kind(&self) -> &'static str {
        "system"
    }

    fn state(&self) -> DeviceState {
        self.link.state()
    }

    fn changes(&self) -> u64 {
        self.link.changes()
    }

    fn set_up(&self, up: bool) -> io::Result<()> {
        self.link.set_up(up)
    }

    fn set_mac(&self, mac: EthAddr) -> io::Result<()> {
        self.link.set_mac(mac)
    }

    fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        self.link.set_mtu(mtu)
    }

    fn stats(&self) -> io::Result<DeviceStats> {
        Ok(device_stats(&self.link.stats()?))
    }

    fn features(&self) -> Features {
        features::features(&self.link.name)
    }

    fn tx_offloads(&self) -> TxOffloads {
        features::TX_OFFLOADS
    }

    fn status(&self) -> Vec<(String, String)> {
        features::status(&self.link.name)
    }

    fn addresses(&self) -> Vec<(IpAddr, u8)> {
        self.link.addresses()
    }

    fn open_receiver(&self) -> io::Result<Box<dyn Receiver>> {
        Ok(Box::new(SystemReceiver {
            socket: self.socket()?.clone(),
            appetite: Appetite::default(),
        }))
    }

    fn send(&self, batch: &mut Batch, pool: &mut Pool) -> Sent {
        let mut sent = Sent::default();
        let Ok(socket) = self.socket() else {
            sent.dropped = batch.len() as u64;
            pool.give_all(batch);
            return sent;
        };
        let mut at = 0;
        while at < batch.len() {
            match socket.send(&batch[at..], frame) {
                Ok(count) => {
                    for packet in &batch[at..at + count] {
                        sent.add(packet.len());
                    }
                    at += count;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    sent.dropped += (batch.len() - at) as u64;
                    break;
                }
                // Only this packet is refused: too long, or dropped by the device's queue.
                Err(_) => {
                    sent.dropped += 1;
                    at += 1;
                }
            }
        }
        pool.give_all(batch);
        sent
    }
}
