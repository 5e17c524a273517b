//! One rule of a flow table.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Instant;
use net_classifier::{Conjunction, MiniMatch};
use net_flow::Match;
use of_wire::Action;
use of_wire::message::FlowModFlags;

/// Identifies a rule for the life of its bridge; a modified rule keeps its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u64);

/// What a rule has counted.  It outlives changes of the rule's actions.
#[derive(Debug, Default)]
pub struct RuleStats {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// Microseconds of [`Instant`].
    used: AtomicU64,
    idle_timeout: AtomicU16,
    hard_timeout: AtomicU16,
    removed: AtomicBool,
    /// The counters of the rule that replaced this one and goes on counting: packets that were
    /// forwarded by this one and are told of later count there, too.
    successor: Mutex<Option<Arc<RuleStats>>>,
}

impl RuleStats {
    fn add(&self, packets: u64, bytes: u64) {
        self.packets.fetch_add(packets, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.removed.load(Ordering::Relaxed) {
            let mut next = self.successor();
            while let Some(stats) = next {
                stats.packets.fetch_add(packets, Ordering::Relaxed);
                stats.bytes.fetch_add(bytes, Ordering::Relaxed);
                next = stats.successor();
            }
        }
    }

    fn successor(&self) -> Option<Arc<Self>> {
        let successor = self.successor.lock();
        successor.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_successor(&self, successor: Option<Arc<Self>>) {
        let own = self.successor.lock();
        *own.unwrap_or_else(PoisonError::into_inner) = successor;
    }
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Packets.
    pub packets: u64,
    /// Bytes, Ethernet headers included.
    pub bytes: u64,
    /// When the last packet was seen, or the rule made.
    pub used: Instant,
}

/// A rule as one version of the tables has it.  A modification makes a new `Rule` that
/// shares the counters of the old one.
#[derive(Debug)]
pub struct Rule {
    /// Identity.
    pub id: RuleId,
    /// The table that it is in.
    pub table: u8,
    /// 0 to 65535; higher for hidden rules.
    pub priority: i32,
    matching: MiniMatch,
    conjunctions: Box<[Conjunction]>,
    /// The controller's mark.
    pub cookie: u64,
    /// Instructions and actions in the order in which they are carried out.
    pub actions: Arc<[Action]>,
    /// What the creator asked for, as far as it lasts.
    pub flags: FlowModFlags,
    /// Rules of less importance are evicted first.
    pub importance: u16,
    /// When the rule was made.
    pub created: Instant,
    /// When its actions were last set; the hard timeout counts from here.
    pub modified: Instant,
    stats: Arc<RuleStats>,
}

/// What a rule is made from.
#[derive(Clone, Debug)]
pub struct RuleSpec {
    /// The table.
    pub table: u8,
    /// The priority; above 65535 the rule is hidden.
    pub priority: i32,
    /// What it matches.
    pub matching: Match,
    /// The controller's mark.
    pub cookie: u64,
    /// Instructions and actions.
    pub actions: Arc<[Action]>,
    /// What the creator asked for, as far as it lasts.
    pub flags: FlowModFlags,
    /// Rules of less importance are evicted first.
    pub importance: u16,
    /// Seconds without a packet after which it goes, 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which it goes, 0 for never.
    pub hard_timeout: u16,
}

impl Rule {
    /// A new rule, with counters of its own; `matching` is the compact form of the one in
    /// `spec`.
    pub(crate) fn new(id: RuleId, spec: &RuleSpec, matching: MiniMatch, now: Instant) -> Self {
        let stats = RuleStats {
            used: AtomicU64::new(now.as_micros()),
            idle_timeout: AtomicU16::new(spec.idle_timeout),
            hard_timeout: AtomicU16::new(spec.hard_timeout),
            ..RuleStats::default()
        };
        Self {
            id,
            table: spec.table,
            priority: spec.priority,
            matching,
            conjunctions: conjunctions(&spec.actions),
            cookie: spec.cookie,
            actions: Arc::clone(&spec.actions),
            flags: spec.flags & LASTING,
            importance: spec.importance,
            created: now,
            modified: now,
            stats: Arc::new(stats),
        }
    }

    /// The same rule with other actions and, unless `None`, another cookie; counters go on.
    pub(crate) fn modified(
        &self,
        actions: Arc<[Action]>,
        cookie: Option<u64>,
        now: Instant,
    ) -> Self {
        Self {
            id: self.id,
            table: self.table,
            priority: self.priority,
            matching: self.matching.clone(),
            conjunctions: conjunctions(&actions),
            cookie: cookie.unwrap_or(self.cookie),
            actions,
            flags: self.flags,
            importance: self.importance,
            created: self.created,
            modified: now,
            stats: Arc::clone(&self.stats),
        }
    }

    /// What it matches.
    pub fn matching(&self) -> Match {
        self.matching.expand()
    }

    /// Whether controllers may not see or change it.
    pub const fn is_hidden(&self) -> bool {
        self.priority > u16::MAX as i32
    }

    /// Seconds without a packet after which it goes, 0 for never.
    pub fn idle_timeout(&self) -> u16 {
        self.stats.idle_timeout.load(Ordering::Relaxed)
    }

    /// Seconds after its last modification at which it goes, 0 for never.
    pub fn hard_timeout(&self) -> u16 {
        self.stats.hard_timeout.load(Ordering::Relaxed)
    }

    pub(crate) fn set_timeouts(&self, idle: u16, hard: u16) {
        self.stats.idle_timeout.store(idle, Ordering::Relaxed);
        self.stats.hard_timeout.store(hard, Ordering::Relaxed);
    }

    /// Counts packets that used this rule, of which the last came at `used`; honours the
    /// rule's wish not to have packets or bytes counted.
    pub fn count(&self, packets: u64, bytes: u64, used: Instant) {
        let unless = |flag: FlowModFlags, count: u64| {
            if self.flags.contains(flag) { 0 } else { count }
        };
        self.stats.add(
            unless(FlowModFlags::NO_PKT_COUNTS, packets),
            unless(FlowModFlags::NO_BYT_COUNTS, bytes),
        );
        if packets > 0 {
            self.stats
                .used
                .fetch_max(used.as_micros(), Ordering::Relaxed);
        }
    }

    /// What was counted.
    pub fn counts(&self) -> RuleCounts {
        RuleCounts {
            packets: self.stats.packets.load(Ordering::Relaxed),
            bytes: self.stats.bytes.load(Ordering::Relaxed),
            used: Instant::from_micros(self.stats.used.load(Ordering::Relaxed)),
        }
    }

    /// Begins with the counts of `old`, which it replaces, and counts what `old` still counts.
    pub(crate) fn continue_counts(&self, old: &Self) {
        let counts = old.counts();
        self.stats.packets.store(counts.packets, Ordering::Relaxed);
        self.stats.bytes.store(counts.bytes, Ordering::Relaxed);
        old.stats.set_successor(Some(Arc::clone(&self.stats)));
    }

    /// Counts from zero, apart from `old`, of which this is a later version.
    pub(crate) fn start_counting(&mut self, old: &Self) {
        self.stats = Arc::new(RuleStats {
            used: AtomicU64::new(old.counts().used.as_micros()),
            idle_timeout: AtomicU16::new(old.idle_timeout()),
            hard_timeout: AtomicU16::new(old.hard_timeout()),
            ..RuleStats::default()
        });
    }

    /// Whether the rule was removed from its table since this version of it was read.
    pub fn is_removed(&self) -> bool {
        self.stats.removed.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_removed(&self) {
        self.stats.removed.store(true, Ordering::Relaxed);
    }

    /// The removal was taken back.
    pub(crate) fn unmark_removed(&self) {
        self.stats.removed.store(false, Ordering::Relaxed);
        self.stats.set_successor(None);
    }

    /// When one of the timeouts runs out, as known now; [`Instant::MAX`] if it has none.
    pub fn deadline(&self) -> Instant {
        after(self.counts().used, self.idle_timeout()).min(self.hard_deadline())
    }

    pub(crate) fn hard_deadline(&self) -> Instant {
        after(self.modified, self.hard_timeout())
    }
}

/// `secs` after `start`, or never if that is 0.
fn after(start: Instant, secs: u16) -> Instant {
    match secs {
        0 => Instant::MAX,
        secs => start + Duration::from_secs(u64::from(secs)),
    }
}

/// The flags that a rule keeps.
const LASTING: FlowModFlags = FlowModFlags::SEND_FLOW_REM
    .union(FlowModFlags::NO_PKT_COUNTS)
    .union(FlowModFlags::NO_BYT_COUNTS);

fn conjunctions(actions: &[Action]) -> Box<[Conjunction]> {
    let clauses = actions.iter().filter_map(|action| match action {
        Action::Conjunction(c) => Some(Conjunction {
            id: c.id,
            clause: c.clause,
            clauses: c.n_clauses,
        }),
        _ => None,
    });
    clauses.collect()
}

impl net_classifier::Rule for Rule {
    fn priority(&self) -> i32 {
        self.priority
    }

    fn mini_match(&self) -> &MiniMatch {
        &self.matching
    }

    fn conjunctions(&self) -> &[Conjunction] {
        &self.conjunctions
    }
}
