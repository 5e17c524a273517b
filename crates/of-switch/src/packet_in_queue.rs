//! The queue of packets for one controller, when their rate is limited.
//!
//! Each input port has its own queue and they are served in turn, so that a port that
//! floods delays and loses its own packets.  When all places are taken, the longest queue
//! loses a packet.

use std::collections::{BTreeMap, VecDeque};

use base::{Instant, RateLimiter};

/// Packets a second that a controller takes when only a burst is configured.
const DEFAULT_RATE: u32 = 1000;

/// What a queue has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInStats {
    /// Packets that did not have to wait.
    pub passed: u64,
    /// Packets that waited.
    pub queued: u64,
    /// Packets that were dropped because too many waited.
    pub dropped: u64,
}

/// Packets that wait for their turn, by input port.
#[derive(Debug)]
pub struct PacketInQueue<T> {
    limiter: Option<RateLimiter>,
    capacity: usize,
    waiting: BTreeMap<u32, VecDeque<T>>,
    len: usize,
    /// The port that was served last.
    last: u32,
    stats: PacketInStats,
}

impl<T> Default for PacketInQueue<T> {
    fn default() -> Self {
        Self {
            limiter: None,
            capacity: 0,
            waiting: BTreeMap::new(),
            len: 0,
            last: 0,
            stats: PacketInStats::default(),
        }
    }
}

impl<T> PacketInQueue<T> {
    /// Sets the limit: `rate` packets a second (0: none) after a burst of `burst`
    /// (0: a quarter of the rate).
    pub fn set_limit(&mut self, rate: u32, burst: u32) {
        if rate == 0 && burst == 0 {
            self.limiter = None;
            return;
        }
        let rate = if rate == 0 { DEFAULT_RATE } else { rate };
        let burst = if burst == 0 { rate / 4 } else { burst }.max(1);
        self.limiter = Some(RateLimiter::new(rate.saturating_mul(60), burst));
        self.capacity = burst as usize;
    }

    /// A packet that came in on `port`: returned if it may go at once, else kept.
    pub fn offer(&mut self, now: Instant, port: u32, packet: T) -> Option<T> {
        let Some(limiter) = &mut self.limiter else {
            self.stats.passed += 1;
            return Some(packet);
        };
        if self.len == 0 && limiter.allow(now) {
            self.stats.passed += 1;
            return Some(packet);
        }
        if self.len >= self.capacity {
            self.drop_from_longest();
        }
        self.waiting.entry(port).or_default().push_back(packet);
        self.len += 1;
        self.stats.queued += 1;
        None
    }

    /// Takes the next packet whose turn has come.
    pub fn take(&mut self, now: Instant) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        if let Some(limiter) = &mut self.limiter
            && !limiter.allow(now)
        {
            return None;
        }
        let after = self.waiting.range(self.last.saturating_add(1)..).next();
        let port = *after.or_else(|| self.waiting.iter().next())?.0;
        self.last = port;
        self.pop(port)
    }

    /// When [`PacketInQueue::take`] will have something.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        match &self.limiter {
            _ if self.len == 0 => Instant::MAX,
            Some(limiter) => limiter.ready_at(now),
            None => now,
        }
    }

    /// How many packets wait.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no packet waits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What was done so far.
    pub const fn stats(&self) -> PacketInStats {
        self.stats
    }

    fn pop(&mut self, port: u32) -> Option<T> {
        let queue = self.waiting.get_mut(&port)?;
        let packet = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&port);
        }
        self.len -= usize::from(packet.is_some());
        packet
    }

    fn drop_from_longest(&mut self) {
        let longest = self.waiting.iter().max_by_key(|(_, q)| q.len());
        if let Some(port) = longest.map(|(port, _)| *port) {
            self.pop(port);
            self.stats.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut queue = PacketInQueue::default();
        assert_eq!(queue.offer(Instant::ZERO, 1, "a"), Some("a"));
        assert_eq!(queue.next_deadline(Instant::ZERO), Instant::MAX);
    }

    #[test]
    fn a_flooding_port_loses_its_own_packets() {
        let mut queue = PacketInQueue::default();
        queue.set_limit(100, 4);
        let mut now = Instant::from_millis(1000);
        let at_once = (0..20).filter(|i| queue.offer(now, 1, *i).is_some());
        assert_eq!(at_once.count(), 4);
        assert_eq!(queue.offer(now, 2, 100), None);
        assert_eq!(queue.len(), 4);
        let mut served = Vec::new();
        while !queue.is_empty() {
            now = queue.next_deadline(now);
            served.extend(queue.take(now));
        }
        assert_eq!(served, [17, 100, 18, 19]);
        assert_eq!(queue.stats().dropped, 13);
    }
}
