//! Coverage counters: how often rare and common things happened, by name, with rates
//! over the last seconds, minute and hour.  A registry is a value that `main` owns.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Instant;

/// How often the rates are brought up to date.
const INTERVAL: Duration = Duration::from_secs(5);
const PER_MINUTE: usize = 12;
const PER_HOUR: usize = 60;

/// One counter.  Clones count together; any thread may count.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// Counts one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Counts `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Entry {
    name: String,
    counter: Counter,
    seen: u64,
    minute: [u64; PER_MINUTE],
    hour: [u64; PER_HOUR],
}

#[derive(Debug, Default)]
struct Registry {
    entries: Vec<Entry>,
    /// Intervals that have ended.
    intervals: usize,
    next: Option<Instant>,
}

/// The counters of a daemon.  Clones are the same registry.
#[derive(Clone, Debug, Default)]
pub struct Coverage(Arc<Mutex<Registry>>);

impl Coverage {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counter called `name`, made if it is new.  For set-up, not for hot paths.
    pub fn counter(&self, name: &str) -> Counter {
        let mut registry = self.registry();
        if let Some(entry) = registry.entries.iter().find(|e| e.name == name) {
            return entry.counter.clone();
        }
        let counter = Counter::default();
        registry.entries.push(Entry {
            name: name.to_owned(),
            counter: counter.clone(),
            seen: 0,
            minute: [0; PER_MINUTE],
            hour: [0; PER_HOUR],
        });
        counter
    }

    /// What the counter called `name` has counted, if there is such a counter.
    pub fn read(&self, name: &str) -> Option<u64> {
        let registry = self.registry();
        let entry = registry.entries.iter().find(|e| e.name == name)?;
        Some(entry.counter.get())
    }

    /// Brings the rates up to date.  Returns when to do it next.
    pub fn run(&self, now: Instant) -> Instant {
        let mut registry = self.registry();
        let Some(mut next) = registry.next else {
            registry.next = Some(now + INTERVAL);
            return now + INTERVAL;
        };
        while next <= now {
            registry.end_interval();
            next += INTERVAL;
            if now.since(next) > Duration::from_secs(3600) {
                next = now + INTERVAL;
            }
        }
        registry.next = Some(next);
        next
    }

    /// The text of `coverage/show`.
    pub fn show(&self) -> String {
        let registry = self.registry();
        let hit = |e: &&Entry| e.counter.get() > 0;
        let mut hasher = std::hash::DefaultHasher::new();
        for entry in registry.entries.iter().filter(hit) {
            entry.name.hash(&mut hasher);
        }
        let mut text = format!(
            "Event coverage, avg rate over last: 5 seconds, last minute, last hour,  \
             hash={:08x}:\n",
            hasher.finish() as u32
        );
        let mut never = 0;
        for entry in &registry.entries {
            let total = entry.counter.get();
            if total == 0 {
                never += 1;
                continue;
            }
            let newest = (registry.intervals + PER_MINUTE - 1) % PER_MINUTE;
            let minute: u64 = entry.minute.iter().sum();
            let hour: u64 = entry.hour.iter().sum();
            let _ = writeln!(
                text,
                "{:<24} {:5.1}/sec {:9.3}/sec {:13.4}/sec   total: {total}",
                entry.name,
                entry.minute[newest] as f64 / 5.0,
                minute as f64 / 60.0,
                hour as f64 / 3600.0,
            );
        }
        let _ = writeln!(text, "{never} events never hit");
        text
    }
}

impl Registry {
    fn end_interval(&mut self) {
        let minute = self.intervals % PER_MINUTE;
        let hour = self.intervals / PER_MINUTE % PER_HOUR;
        for entry in &mut self.entries {
            let total = entry.counter.get();
            entry.minute[minute] = total - entry.seen;
            entry.seen = total;
            if minute == 0 {
                entry.hour[hour] = 0;
            }
            entry.hour[hour] += entry.minute[minute];
        }
        self.intervals += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_totals() {
        let coverage = Coverage::new();
        let counter = coverage.counter("flow_extract");
        coverage.counter("netlink_overflow");
        coverage.run(Instant::ZERO);
        coverage.counter("flow_extract").add(60);
        assert_eq!(
            coverage.run(Instant::from_millis(5000)),
            Instant::from_millis(10000)
        );
        let text = coverage.show();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "flow_extract              12.0/sec     1.000/sec        0.0167/sec   total: 60",
                "1 events never hit",
            ]
        );
        counter.inc();
        assert_eq!(coverage.read("flow_extract"), Some(61));
        assert_eq!(coverage.read("x"), None);
    }
}
