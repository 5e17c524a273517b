//! What the owner of a MAC table keeps of it to age and evict: by expiry and by port.
//!
//! Readers refresh entries without telling; so the orders here may be behind, and are put
//! right when an entry comes to the front.

use std::collections::{BTreeSet, HashMap};

use crate::mac_learning::{MacPort, Station};

#[derive(Debug)]
struct Known {
    port: MacPort,
    /// The use count under which it stands in its port's order.
    used: u64,
    /// The second under which it stands in the order of expiry.
    expires: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    known: HashMap<Station, Known>,
    by_expiry: BTreeSet<(u64, Station)>,
    by_port: HashMap<MacPort, BTreeSet<(u64, Station)>>,
    by_count: BTreeSet<(usize, MacPort)>,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn add(&mut self, station: Station, port: MacPort, used: u64) {
        self.known.insert(
            station,
            Known {
                port,
                used,
                expires: None,
            },
        );
        self.enter(station, port, used);
    }

    fn enter(&mut self, station: Station, port: MacPort, used: u64) {
        let order = self.by_port.entry(port).or_default();
        self.by_count.remove(&(order.len(), port));
        order.insert((used, station));
        self.by_count.insert((order.len(), port));
    }

    fn leave(&mut self, station: Station, port: MacPort, used: u64) {
        let Some(order) = self.by_port.get_mut(&port) else {
            return;
        };
        self.by_count.remove(&(order.len(), port));
        order.remove(&(used, station));
        if order.is_empty() {
            self.by_port.remove(&port);
        } else {
            self.by_count.insert((order.len(), port));
        }
    }

    pub(crate) fn remove(&mut self, station: Station) {
        if let Some(known) = self.known.remove(&station) {
            self.leave(station, known.port, known.used);
            if let Some(expires) = known.expires {
                self.by_expiry.remove(&(expires, station));
            }
        }
    }

    pub(crate) fn set_port(&mut self, station: Station, port: MacPort) {
        if let Some(known) = self.known.get_mut(&station) {
            let (before, used) = (known.port, known.used);
            known.port = port;
            self.leave(station, before, used);
            self.enter(station, port, used);
        }
    }

    pub(crate) fn set_expiry(&mut self, station: Station, expires: Option<u64>) {
        if let Some(known) = self.known.get_mut(&station) {
            if let Some(before) = known.expires {
                self.by_expiry.remove(&(before, station));
            }
            known.expires = expires;
            if let Some(expires) = expires {
                self.by_expiry.insert((expires, station));
            }
        }
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    /// A station whose time, as known here, is up.
    pub(crate) fn due(&self, now: u64) -> Option<Station> {
        let (expires, station) = self.by_expiry.first()?;
        (*expires <= now).then_some(*station)
    }

    /// The least recently used station of the port that has most; `used` tells when one
    /// was used last.
    pub(crate) fn victim(&mut self, used: impl Fn(Station) -> Option<u64>) -> Option<Station> {
        let (_, port) = *self.by_count.last()?;
        loop {
            let (stood, station) = *self.by_port.get(&port)?.first()?;
            match used(station) {
                Some(now) if now != stood => {
                    self.leave(station, port, stood);
                    self.enter(station, port, now);
                    if let Some(known) = self.known.get_mut(&station) {
                        known.used = now;
                    }
                }
                _ => return Some(station),
            }
        }
    }
}
