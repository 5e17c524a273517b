//! What system ports and taps have in common: a link of the kernel and what is known of it.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use net_dev::{DeviceState, DeviceStats};
use net_netlink::route::{Link, LinkRef, LinkStats};
use net_nlsock::route::Routes;
use net_packet::EthAddr;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error number of "No such device".
const ENODEV: i32 = 19;

/// A link of the kernel.
#[derive(Debug)]
pub(crate) struct LinkHandle {
    pub(crate) name: String,
    routes: Arc<Mutex<Routes>>,
    state: Mutex<DeviceState>,
    /// How often the kernel had seen the carrier come or go when this was last told.
    seen_resets: AtomicU64,
    changes: AtomicU64,
}

/// The state but for the carrier's resets, which count from when we began to look.
fn state_of(link: &Link) -> DeviceState {
    DeviceState {
        present: true,
        ifindex: Some(link.index),
        mac: link.mac.map_or(EthAddr::ZERO, EthAddr),
        mtu: link.mtu,
        up: link.is_up(),
        carrier: link.has_carrier(),
        carrier_resets: 0,
    }
}

impl LinkHandle {
    /// The link called `name`.
    pub(crate) fn open(name: &str, routes: &Arc<Mutex<Routes>>) -> io::Result<Self> {
        let link = lock(routes).link(LinkRef::Name(name))?;
        Ok(Self {
            name: name.to_owned(),
            routes: routes.clone(),
            state: Mutex::new(state_of(&link)),
            seen_resets: AtomicU64::new(link.carrier_changes.into()),
            changes: AtomicU64::new(1),
        })
    }

    pub(crate) fn state(&self) -> DeviceState {
        lock(&self.state).clone()
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(crate) fn ifindex(&self) -> Option<u32> {
        lock(&self.state).ifindex
    }

    /// Takes over what the kernel says of the link; true if it is another device than before.
    pub(crate) fn update(&self, link: &Link) -> bool {
        let mut new = state_of(link);
        let mut state = lock(&self.state);
        let other = state.ifindex != new.ifindex;
        let resets = u64::from(link.carrier_changes);
        let before = self.seen_resets.swap(resets, Ordering::Relaxed);
        let since = if other {
            u64::from(state.carrier != new.carrier)
        } else {
            resets.saturating_sub(before)
        };
        new.carrier_resets = state.carrier_resets + since;
        if *state != new {
            *state = new;
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        other
    }

    /// The link is gone.
    pub(crate) fn vanish(&self) {
        let mut state = lock(&self.state);
        if state.present {
            state.present = false;
            state.ifindex = None;
            state.carrier = false;
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes a change and reads the link anew.
    fn change(&self, f: impl FnOnce(&mut Routes, LinkRef<'_>) -> io::Result<()>) -> io::Result<()> {
        let index = self.index()?;
        let mut routes = lock(&self.routes);
        f(&mut routes, LinkRef::Index(index))?;
        let link = routes.link(LinkRef::Index(index))?;
        drop(routes);
        self.update(&link);
        Ok(())
    }

    fn index(&self) -> io::Result<u32> {
        let gone = || io::Error::from_raw_os_error(ENODEV);
        self.ifindex().ok_or_else(gone)
    }

    pub(crate) fn set_up(&self, up: bool) -> io::Result<()> {
        self.change(|routes, link| routes.set_up(link, up))
    }

    pub(crate) fn set_mac(&self, mac: EthAddr) -> io::Result<()> {
        self.change(|routes, link| routes.set_mac(link, mac.0))
    }

    pub(crate) fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        self.change(|routes, link| routes.set_mtu(link, mtu))
    }

    pub(crate) fn stats(&self) -> io::Result<LinkStats> {
        let index = self.index()?;
        lock(&self.routes).stats(index)
    }

    pub(crate) fn addresses(&self) -> Vec<(IpAddr, u8)> {
        let (Ok(index), Ok(all)) = (self.index(), lock(&self.routes).addresses()) else {
            return Vec::new();
        };
        let own = all.into_iter().filter(|a| a.index == index);
        own.map(|a| (a.ip, a.prefix)).collect()
    }
}

/// Counters as the kernel has them.
pub(crate) fn device_stats(stats: &LinkStats) -> DeviceStats {
    DeviceStats {
        rx_packets: Some(stats.rx_packets),
        tx_packets: Some(stats.tx_packets),
        rx_bytes: Some(stats.rx_bytes),
        tx_bytes: Some(stats.tx_bytes),
        rx_errors: Some(stats.rx_errors),
        tx_errors: Some(stats.tx_errors),
        rx_dropped: Some(stats.rx_dropped),
        tx_dropped: Some(stats.tx_dropped),
        multicast: Some(stats.multicast),
        collisions: Some(stats.collisions),
        rx_length_errors: Some(stats.rx_length_errors),
        rx_over_errors: Some(stats.rx_over_errors),
        rx_crc_errors: Some(stats.rx_crc_errors),
        rx_frame_errors: Some(stats.rx_frame_errors),
        rx_fifo_errors: Some(stats.rx_fifo_errors),
        rx_missed_errors: Some(stats.rx_missed_errors),
        tx_aborted_errors: Some(stats.tx_aborted_errors),
        tx_carrier_errors: Some(stats.tx_carrier_errors),
        tx_fifo_errors: Some(stats.tx_fifo_errors),
        tx_heartbeat_errors: Some(stats.tx_heartbeat_errors),
        tx_window_errors: Some(stats.tx_window_errors),
        upcall_packets: None,
        upcall_errors: None,
    }
}
