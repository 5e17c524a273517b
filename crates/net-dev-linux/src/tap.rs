//! Internal ports: taps, whose other end is the host's own stack.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use net_dev::{Device, DeviceState, DeviceStats, Features, Receiver, Sent, TxOffloads};
use net_nlsock::route::Routes;
use net_packet::segment::accept_virtio;
use net_packet::{Batch, EthAddr, Pool, VirtioHeader};
use sys::tap::Tap;

use crate::features;
use crate::link::{LinkHandle, device_stats};
use crate::system::Appetite;

/// A tap that we made.
#[derive(Debug)]
pub(crate) struct TapDevice {
    link: LinkHandle,
    tap: Arc<Tap>,
}

impl TapDevice {
    pub(crate) fn open(name: &str, routes: &Arc<Mutex<Routes>>) -> io::Result<Self> {
        let tap = Arc::new(Tap::open(name)?);
        let link = LinkHandle::open(name, routes)?;
        Ok(Self { link, tap })
    }

    pub(crate) const fn link(&self) -> &LinkHandle {
        &self.link
    }
}

struct TapReceiver {
    tap: Arc<Tap>,
    appetite: Appetite,
}

impl Receiver for TapReceiver {
    fn receive(&mut self, batch: &mut Batch, pool: &mut Pool) -> io::Result<()> {
        let (mut came, mut bytes) = (0, 0);
        while came < self.appetite.get() {
            let mut packet = pool.take();
            let mut header = VirtioHeader::default();
            match self.tap.receive(&mut header.0, packet.room_mut()) {
                Ok(Some(len)) => {
                    came += 1;
                    bytes += len;
                    packet.set_len(len);
                    if accept_virtio(&mut packet, &header).is_ok() {
                        batch.push(packet);
                    } else {
                        pool.give(packet);
                    }
                }
                Ok(None) => {
                    pool.give(packet);
                    break;
                }
                Err(e) => {
                    pool.give(packet);
                    return Err(e);
                }
            }
        }
        self.appetite.learn(came, bytes);
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.as_fd())
    }
}

impl Device for TapDevice {
    fn name(&self) -> &str {
        &self.link.name
    }

    fn kind(&self) -> &'static str {
        "tap"
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

    /// What the kernel receives on a tap is what we send to it: the directions are swapped.
    fn stats(&self) -> io::Result<DeviceStats> {
        let host = device_stats(&self.link.stats()?);
        Ok(DeviceStats {
            rx_packets: host.tx_packets,
            rx_bytes: host.tx_bytes,
            rx_errors: host.tx_errors,
            rx_dropped: host.tx_dropped,
            tx_packets: host.rx_packets,
            tx_bytes: host.rx_bytes,
            tx_errors: host.rx_errors,
            tx_dropped: host.rx_dropped,
            ..DeviceStats::default()
        })
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
        Ok(Box::new(TapReceiver {
            tap: self.tap.clone(),
            appetite: Appetite::default(),
        }))
    }

    fn send(&self, batch: &mut Batch, pool: &mut Pool) -> Sent {
        let mut sent = Sent::default();
        for packet in batch.iter() {
            let header = VirtioHeader::encode(&packet.offload);
            match self.tap.send(&header.0, packet.data()) {
                Ok(()) => sent.add(packet.len()),
                Err(_) => sent.dropped += 1,
            }
        }
        pool.give_all(batch);
        sent
    }
}
