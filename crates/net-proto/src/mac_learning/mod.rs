//! The MAC table of a bridge: which port the stations of each VLAN are behind.
//!
//! Handlers on several threads look up and refresh entries at once under shared locks;
//! only a new or moved station takes an exclusive one.  The generation counts up when a
//! packet may from now on be forwarded otherwise, and revalidation compares it.

mod index;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use base::Instant;

use index::Index;
pub use text::show;

/// Six bytes of an Ethernet address, as the low 48 bits.
pub type Mac = u64;

/// The port (a bundle of the bridge) that a station is behind; the bridge's owner chooses
/// the numbers.
pub type MacPort = u32;

/// How long an unused entry is kept unless told otherwise.
pub const DEFAULT_IDLE: Duration = Duration::from_secs(300);
/// How many entries there may be unless told otherwise.
pub const DEFAULT_MAX: usize = 8192;
/// How long gratuitous ARP over a bond is not believed after one was seen elsewhere.
pub const GRAT_ARP_LOCK: Duration = Duration::from_secs(5);

const SHARDS: usize = 16;
/// The expiry second of a static entry.
const NEVER: u64 = u64::MAX;

/// A station: its VLAN and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Station {
    /// VLAN id, 0 to 4095.
    pub vlan: u16,
    /// Address.
    pub mac: Mac,
}

#[derive(Debug)]
struct Entry {
    port: AtomicU32,
    /// Second at which it expires, or [`NEVER`].
    expires: AtomicU64,
    /// Second until which gratuitous ARP over a bond does not move it.
    lock_until: AtomicU64,
    /// Counts up with each use in the whole table.
    used: AtomicU64,
}

/// An entry as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whose it is.
    pub station: Station,
    /// Where it is.
    pub port: MacPort,
    /// Seconds since it was last refreshed; none for a static entry.
    pub age: Option<u64>,
}

/// What a table has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries now.
    pub entries: usize,
    /// Entries at most.
    pub max: usize,
    /// Static entries now.
    pub static_entries: usize,
    /// Entries learned.
    pub learned: u64,
    /// Entries that aged out.
    pub expired: u64,
    /// Entries that made room for others.
    pub evicted: u64,
    /// Entries that changed their port.
    pub moved: u64,
}

/// Who was seen sending where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The sender.
    pub station: Station,
    /// The port that it sent on.
    pub port: MacPort,
    /// Whether the packet was a gratuitous ARP.
    pub grat_arp: bool,
    /// Whether the port is a bond.
    pub bond: bool,
}

/// What only writers touch.
#[derive(Debug, Default)]
struct Slow {
    idle: u64,
    flood_vlans: BTreeSet<u16>,
    index: Index,
    stats: Stats,
}

/// The MAC table of one bridge.
#[derive(Debug)]
pub struct MacTable {
    shards: [RwLock<HashMap<Station, Entry>>; SHARDS],
    /// Taken before a shard's lock when both are needed.
    slow: Mutex<Slow>,
    /// Copies of the settings for those that do not hold `slow`.
    idle: AtomicU64,
    flood_vlans: RwLock<BTreeSet<u16>>,
    generation: AtomicU64,
    clock: AtomicU64,
}

impl Default for MacTable {
    fn default() -> Self {
        Self::new()
    }
}

const fn seconds(now: Instant) -> u64 {
    now.as_millis() / 1000
}

const fn is_multicast(mac: Mac) -> bool {
    mac >> 40 & 1 != 0
}

const fn shard_of(station: Station) -> usize {
    let mixed = (station.mac ^ (station.vlan as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 60) as usize % SHARDS
}

impl MacTable {
    /// An empty table with the default limits.
    pub fn new() -> Self {
        let slow = Slow {
            idle: DEFAULT_IDLE.as_secs(),
            stats: Stats {
                max: DEFAULT_MAX,
                ..Stats::default()
            },
            ..Slow::default()
        };
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            idle: AtomicU64::new(slow.idle),
            slow: Mutex::new(slow),
            flood_vlans: RwLock::default(),
            generation: AtomicU64::new(0),
            clock: AtomicU64::new(0),
        }
    }

    fn slow(&self) -> MutexGuard<'_, Slow> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, station: Station) -> RwLockReadGuard<'_, HashMap<Station, Entry>> {
        let shard = &self.shards[shard_of(station)];
        shard.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, station: Station) -> RwLockWriteGuard<'_, HashMap<Station, Entry>> {
        let shard = &self.shards[shard_of(station)];
        shard.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Counts up with each change after which a packet may be forwarded otherwise.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How long unused entries are kept (15 s to 1 h).  Entries keep their age.
    pub fn set_idle(&self, idle: Duration) {
        let idle = idle.as_secs().clamp(15, 3600);
        let mut slow = self.slow();
        let before = std::mem::replace(&mut slow.idle, idle);
        if before == idle {
            return;
        }
        self.idle.store(idle, Ordering::Relaxed);
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            for (station, entry) in shard.iter() {
                let expires = entry.expires.load(Ordering::Relaxed);
                if expires != NEVER {
                    let new = (expires + idle).saturating_sub(before);
                    entry.expires.store(new, Ordering::Relaxed);
                    slow.index.set_expiry(*station, Some(new));
                }
            }
        }
    }

    /// How many entries there may be (10 to 1,000,000).
    pub fn set_max(&self, max: usize) {
        let mut slow = self.slow();
        slow.stats.max = max.clamp(10, 1_000_000);
        while slow.index.len() > slow.stats.max && self.evict(&mut slow) {}
    }

    /// In which VLANs nothing is learned.  Entries there are forgotten.
    pub fn set_flood_vlans(&self, vlans: BTreeSet<u16>) {
        let mut slow = self.slow();
        if slow.flood_vlans == vlans {
            return;
        }
        slow.flood_vlans.clone_from(&vlans);
        *self
            .flood_vlans
            .write()
            .unwrap_or_else(PoisonError::into_inner) = vlans;
        let flooded = slow.flood_vlans.clone();
        self.forget(&mut slow, |station, _| flooded.contains(&station.vlan));
        self.changed();
    }

    fn may_learn(&self, station: Station) -> bool {
        let flooded = self
            .flood_vlans
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        !is_multicast(station.mac) && !flooded.contains(&station.vlan)
    }

    /// The port that a station is behind, if that is known.
    pub fn lookup(&self, station: Station) -> Option<MacPort> {
        if !self.may_learn(station) {
            return None;
        }
        let shard = self.read(station);
        shard.get(&station).map(|e| e.port.load(Ordering::Relaxed))
    }

    /// Whether gratuitous ARP over a bond does not move this station now.
    pub fn is_grat_arp_locked(&self, station: Station, now: Instant) -> bool {
        let shard = self.read(station);
        let entry = shard.get(&station);
        entry.is_some_and(|e| e.lock_until.load(Ordering::Relaxed) > seconds(now))
    }

    /// Whether [`Self::learn`] would enter or move an entry.
    pub fn would_learn(&self, seen: Sighting, now: Instant) -> bool {
        if !self.may_learn(seen.station) {
            return false;
        }
        let shard = self.read(seen.station);
        let Some(entry) = shard.get(&seen.station) else {
            return true;
        };
        let locked = entry.lock_until.load(Ordering::Relaxed) > seconds(now);
        entry.expires.load(Ordering::Relaxed) != NEVER
            && !(seen.grat_arp && seen.bond && locked)
            && entry.port.load(Ordering::Relaxed) != seen.port
    }

    /// Takes note of who sent where.  Returns whether the station is new there.
    pub fn learn(&self, seen: Sighting, now: Instant) -> bool {
        if !self.may_learn(seen.station) {
            return false;
        }
        let now = seconds(now);
        let shard = self.read(seen.station);
        if let Some(entry) = shard.get(&seen.station) {
            if entry.expires.load(Ordering::Relaxed) == NEVER {
                return false;
            }
            let same = entry.port.load(Ordering::Relaxed) == seen.port;
            if same && !seen.grat_arp {
                self.refresh(entry, now);
                return false;
            }
        }
        drop(shard);
        self.learn_slowly(seen, now)
    }

    fn refresh(&self, entry: &Entry, now: u64) {
        let expires = now + self.idle.load(Ordering::Relaxed);
        entry.expires.store(expires, Ordering::Relaxed);
        entry.used.store(self.tick(), Ordering::Relaxed);
    }

    fn learn_slowly(&self, seen: Sighting, now: u64) -> bool {
        let mut slow = self.slow();
        let station = seen.station;
        if self.read(station).get(&station).is_none() {
            if slow.index.len() >= slow.stats.max && !self.evict(&mut slow) {
                return false;
            }
            let locked = if seen.grat_arp && !seen.bond {
                now + GRAT_ARP_LOCK.as_secs()
            } else {
                0
            };
            let expires = now + slow.idle;
            self.insert(&mut slow, station, seen.port, expires, locked);
            slow.stats.learned += 1;
            self.changed();
            return true;
        }
        let shard = self.read(station);
        let Some(entry) = shard.get(&station) else {
            return false;
        };
        if entry.expires.load(Ordering::Relaxed) == NEVER {
            return false;
        }
        self.refresh(entry, now);
        if seen.grat_arp {
            if !seen.bond {
                let until = now + GRAT_ARP_LOCK.as_secs();
                entry.lock_until.store(until, Ordering::Relaxed);
            } else if entry.lock_until.load(Ordering::Relaxed) > now {
                return false;
            }
        }
        let before = entry.port.swap(seen.port, Ordering::Relaxed);
        if before == seen.port {
            return false;
        }
        slow.index.set_port(station, seen.port);
        slow.stats.moved += 1;
        self.changed();
        true
    }

    fn insert(&self, slow: &mut Slow, station: Station, port: MacPort, expires: u64, locked: u64) {
        let used = self.tick();
        let entry = Entry {
            port: AtomicU32::new(port),
            expires: AtomicU64::new(expires),
            lock_until: AtomicU64::new(locked),
            used: AtomicU64::new(used),
        };
        self.write(station).insert(station, entry);
        slow.index.add(station, port, used);
        slow.index
            .set_expiry(station, (expires != NEVER).then_some(expires));
    }

    /// Takes the least recently used entry of the port that has most.
    fn evict(&self, slow: &mut Slow) -> bool {
        let used = |station: Station| {
            let shard = self.read(station);
            shard.get(&station).map(|e| e.used.load(Ordering::Relaxed))
        };
        let Some(victim) = slow.index.victim(used) else {
            return false;
        };
        self.take(slow, victim);
        slow.stats.evicted += 1;
        true
    }

    fn take(&self, slow: &mut Slow, station: Station) {
        if let Some(entry) = self.write(station).remove(&station) {
            slow.index.remove(station);
            if entry.expires.into_inner() == NEVER {
                slow.stats.static_entries -= 1;
            }
            self.changed();
        }
    }

    /// Forgets the entries whose time is up.
    pub fn run(&self, now: Instant) {
        let now = seconds(now);
        let mut slow = self.slow();
        while let Some(station) = slow.index.due(now) {
            let shard = self.read(station);
            let expires = shard
                .get(&station)
                .map(|e| e.expires.load(Ordering::Relaxed));
            drop(shard);
            match expires {
                Some(NEVER) | None => slow.index.set_expiry(station, None),
                Some(later) if later > now => slow.index.set_expiry(station, Some(later)),
                Some(_) => {
                    self.take(&mut slow, station);
                    slow.stats.expired += 1;
                }
            }
        }
    }

    /// When [`Self::run`] should be called next.
    pub fn next_deadline(&self) -> Instant {
        let next = self.slow().index.next_expiry();
        next.map_or(Instant::MAX, |s| Instant::from_millis(s * 1000))
    }

    /// Enters a station that neither ages nor moves.
    pub fn add_static(&self, station: Station, port: MacPort) -> bool {
        let mut slow = self.slow();
        let existing = self.read(station).get(&station).map(|e| {
            e.port.store(port, Ordering::Relaxed);
            e.used.store(self.tick(), Ordering::Relaxed);
            e.expires.swap(NEVER, Ordering::Relaxed)
        });
        match existing {
            Some(before) => {
                slow.index.set_port(station, port);
                slow.index.set_expiry(station, None);
                slow.stats.static_entries += usize::from(before != NEVER);
            }
            None => {
                if slow.index.len() >= slow.stats.max && !self.evict(&mut slow) {
                    return false;
                }
                self.insert(&mut slow, station, port, NEVER, 0);
                slow.stats.static_entries += 1;
            }
        }
        self.changed();
        true
    }

    /// Removes a static entry.  Returns whether there was one.
    pub fn remove_static(&self, station: Station) -> bool {
        let mut slow = self.slow();
        let expires = self
            .read(station)
            .get(&station)
            .map(|e| e.expires.load(Ordering::Relaxed));
        if expires != Some(NEVER) {
            return false;
        }
        self.take(&mut slow, station);
        true
    }

    /// Forgets all that was learned; static entries stay.
    pub fn flush(&self) {
        self.forget(&mut self.slow(), |_, entry| {
            entry.expires.load(Ordering::Relaxed) != NEVER
        });
    }

    /// Forgets the stations behind a port, and tells which they were.
    pub fn flush_port(&self, port: MacPort) -> Vec<Station> {
        let behind = |_, entry: &Entry| entry.port.load(Ordering::Relaxed) == port;
        self.forget(&mut self.slow(), behind)
    }

    /// Forgets the stations of a VLAN.
    pub fn flush_vlan(&self, vlan: u16) {
        self.forget(&mut self.slow(), |station, _| station.vlan == vlan);
    }

    /// Forgets one station.
    pub fn forget_station(&self, station: Station) {
        self.take(&mut self.slow(), station);
    }

    fn forget(&self, slow: &mut Slow, which: impl Fn(Station, &Entry) -> bool) -> Vec<Station> {
        let mut forgotten = Vec::new();
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            let chosen: Vec<Station> = shard
                .iter()
                .filter(|(s, e)| which(**s, e))
                .map(|(s, _)| *s)
                .collect();
            drop(shard);
            for station in &chosen {
                self.take(slow, *station);
            }
            forgotten.extend(chosen);
        }
        forgotten
    }

    /// All entries, the least recently used first.
    pub fn entries(&self, now: Instant) -> Vec<Shown> {
        let now = seconds(now);
        let idle = self.idle.load(Ordering::Relaxed);
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            for (station, entry) in shard.iter() {
                let expires = entry.expires.load(Ordering::Relaxed);
                let shown = Shown {
                    station: *station,
                    port: entry.port.load(Ordering::Relaxed),
                    age: (expires != NEVER).then(|| (now + idle).saturating_sub(expires)),
                };
                all.push((entry.used.load(Ordering::Relaxed), shown));
            }
        }
        all.sort_by_key(|(used, _)| *used);
        all.into_iter().map(|(_, shown)| shown).collect()
    }

    /// The entry of one station.
    pub fn entry(&self, station: Station, now: Instant) -> Option<Shown> {
        let idle = self.idle.load(Ordering::Relaxed);
        let shard = self.read(station);
        let entry = shard.get(&station)?;
        let expires = entry.expires.load(Ordering::Relaxed);
        Some(Shown {
            station,
            port: entry.port.load(Ordering::Relaxed),
            age: (expires != NEVER).then(|| (seconds(now) + idle).saturating_sub(expires)),
        })
    }

    /// What was counted.
    pub fn stats(&self) -> Stats {
        let slow = self.slow();
        Stats {
            entries: slow.index.len(),
            ..slow.stats
        }
    }

    /// Begins to count from zero.
    pub fn clear_stats(&self) {
        let stats = &mut self.slow().stats;
        *stats = Stats {
            max: stats.max,
            static_entries: stats.static_entries,
            ..Stats::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(n: u64) -> Station {
        Station { vlan: 0, mac: n }
    }

    fn seen(n: u64, port: MacPort) -> Sighting {
        Sighting {
            station: station(n),
            port,
            grat_arp: false,
            bond: false,
        }
    }

    fn at(secs: u64) -> Instant {
        Instant::from_millis(secs * 1000)
    }

    #[test]
    fn stations_are_learned_moved_and_aged() {
        let table = MacTable::new();
        assert!(table.learn(seen(1, 10), at(0)));
        assert!(!table.learn(seen(1, 10), at(100)));
        let generation = table.generation();
        table.run(at(399));
        assert_eq!(table.lookup(station(1)), Some(10));
        assert_eq!(table.generation(), generation);
        assert!(table.learn(seen(1, 11), at(399)));
        assert_ne!(table.generation(), generation);
        assert_eq!(table.entries(at(401))[0].age, Some(2));
        table.run(at(699));
        assert_eq!(table.lookup(station(1)), None);
        let stats = table.stats();
        assert_eq!((stats.learned, stats.moved, stats.expired), (1, 1, 1));
        assert_eq!(table.next_deadline(), Instant::MAX);
    }

    #[test]
    fn multicast_and_flooded_vlans_are_not_learned() {
        let table = MacTable::new();
        assert!(!table.learn(seen(0x0100_0000_0001, 1), at(0)));
        table.learn(seen(1, 1), at(0));
        table.set_flood_vlans(BTreeSet::from([0]));
        assert_eq!(table.lookup(station(1)), None);
        assert!(!table.learn(seen(2, 1), at(0)));
    }

    #[test]
    fn a_full_table_evicts_from_the_port_with_most() {
        let table = MacTable::new();
        table.set_max(10);
        table.learn(seen(100, 1), at(0));
        for n in 0..9 {
            table.learn(seen(n, 2), at(0));
        }
        table.learn(seen(0, 2), at(1));
        for n in 200..300 {
            table.learn(seen(n, 2), at(2));
        }
        assert_eq!(table.lookup(station(100)), Some(1));
        assert_eq!(table.lookup(station(0)), None);
        let stats = table.stats();
        assert_eq!((stats.entries, stats.evicted), (10, 100));
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let table = MacTable::new();
        table.set_max(10);
        for n in 0..10 {
            table.learn(seen(n, 2), at(0));
        }
        table.learn(seen(0, 2), at(1));
        table.learn(seen(50, 2), at(1));
        assert_eq!(table.lookup(station(0)), Some(2));
        assert_eq!(table.lookup(station(1)), None);
    }

    #[test]
    fn gratuitous_arp_over_a_bond_waits_for_the_lock() {
        let table = MacTable::new();
        let grat = |port, bond| Sighting {
            grat_arp: true,
            bond,
            ..seen(1, port)
        };
        assert!(table.learn(grat(1, false), at(0)));
        assert!(!table.learn(grat(2, true), at(4)));
        assert!(table.is_grat_arp_locked(station(1), at(4)));
        assert!(table.learn(grat(2, true), at(5)));
    }

    #[test]
    fn static_entries_neither_age_nor_move() {
        let table = MacTable::new();
        table.learn(seen(1, 1), at(0));
        assert!(table.add_static(station(1), 2));
        assert!(!table.learn(seen(1, 3), at(0)));
        table.run(at(10_000));
        assert_eq!(table.lookup(station(1)), Some(2));
        assert_eq!(table.stats().static_entries, 1);
        assert!(table.remove_static(station(1)));
        assert!(!table.remove_static(station(1)));
    }

    #[test]
    fn another_idle_time_keeps_ages() {
        let table = MacTable::new();
        table.learn(seen(1, 1), at(100));
        table.set_idle(Duration::from_secs(20));
        assert_eq!(table.entries(at(110))[0].age, Some(10));
        table.run(at(120));
        assert_eq!(table.lookup(station(1)), None);
    }

    #[test]
    fn flushing_a_port_leaves_the_others() {
        let table = MacTable::new();
        table.learn(seen(1, 1), at(0));
        table.learn(seen(2, 2), at(0));
        assert_eq!(table.flush_port(1), [station(1)]);
        assert_eq!(table.lookup(station(1)), None);
        assert_eq!(table.lookup(station(2)), Some(2));
        table.add_static(station(3), 3);
        table.flush();
        assert_eq!(table.lookup(station(2)), None);
        assert_eq!(table.lookup(station(3)), Some(3));
        table.forget_station(station(3));
        assert_eq!(table.stats().entries, 0);
    }
}
