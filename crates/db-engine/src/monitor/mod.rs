//! Monitors (RFC 7047 section 4.1.5 and the conditional extensions of ovsdb-server(7)).
//!
//! Every commit is kept in a history.  A monitor has a position in it: what it was told.
//! Monitors that watch the same are one group, and what a group must be told of a stretch of
//! history is computed and serialised once, whoever asks first.

mod spec;
mod update;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use db_model::{Condition, Uuid};

pub use spec::{Select, Spec, TableSpec, Version, parse_conditions};

use crate::changes::Changes;
use crate::database::Database;

/// Commits that are kept for clients that come back (`monitor_cond_since`).
const HISTORY: usize = 100;
/// Commits that are kept for monitors that lag behind; older ones are merged per monitor.
const MAX_LAG: usize = 1000;

/// Identifies a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(u64);

#[derive(Debug)]
struct Entry {
    id: Uuid,
    changes: Arc<Changes>,
    /// Number of atoms in the changed rows, before and after.
    atoms: u64,
}

/// A stretch of history, from just after one commit up to another, and what it says.
type Told = (u64, u64, Option<Arc<str>>);

#[derive(Debug)]
struct Group {
    spec: Arc<Spec>,
    members: usize,
    /// The update that was computed last.
    told: Option<Told>,
    /// The initial contents, and at which commit.
    initial: Option<(u64, Arc<str>)>,
}

#[derive(Debug)]
struct Monitor {
    key: Arc<str>,
    /// The number of the last commit that it was told of.
    position: u64,
    /// What it was not told yet and has left the history.
    backlog: Option<Changes>,
}

/// What a new monitor is told first.
#[derive(Clone, Debug)]
pub struct Initial {
    /// The monitor.
    pub monitor: MonitorId,
    /// Whether the client's last transaction was found: then `updates` says only what came
    /// after it.
    pub found: bool,
    /// The id of the last transaction.
    pub last_id: Uuid,
    /// The table updates, serialised.
    pub updates: Arc<str>,
}

/// All monitors of one database.
#[derive(Debug, Default)]
pub struct Monitors {
    history: VecDeque<Entry>,
    /// Number of atoms in the history.
    history_atoms: u64,
    /// The number of the last commit; the history's first is `head - history.len() + 1`.
    head: u64,
    /// The id of the last commit that has left the history.
    left_id: Uuid,
    groups: HashMap<Arc<str>, Group>,
    monitors: HashMap<MonitorId, Monitor>,
    next: u64,
    /// Whether clients are told the ids of transactions, by which they can come back.
    tells_ids: bool,
}

impl Monitors {
    /// No monitors, no history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether clients are told the ids of transactions from now on, so that they can come
    /// back to where they were.  Else the id is all zeros, as standalone servers always had it.
    pub const fn tell_ids(&mut self, tell: bool) {
        self.tells_ids = tell;
    }

    fn told_id(&self) -> Uuid {
        if self.tells_ids {
            self.history.back().map_or(self.left_id, |entry| entry.id)
        } else {
            Uuid::nil()
        }
    }

    /// Number of monitors.
    pub fn len(&self) -> usize {
        self.monitors.len()
    }

    /// Whether there are no monitors.
    pub fn is_empty(&self) -> bool {
        self.monitors.is_empty()
    }

    fn join(&mut self, spec: Spec) -> Arc<str> {
        let key: Arc<str> = spec.key().into();
        let group = self
            .groups
            .entry(Arc::clone(&key))
            .or_insert_with(|| Group {
                spec: Arc::new(spec),
                members: 0,
                told: None,
                initial: None,
            });
        group.members += 1;
        key
    }

    fn leave(&mut self, key: &Arc<str>) {
        if let Some(group) = self.groups.get_mut(key) {
            group.members -= 1;
            if group.members == 0 {
                self.groups.remove(key);
            }
        }
    }

    /// Adds a monitor.  `since` is the last transaction that the client knows of, if it
    /// does.
    pub fn add(&mut self, db: &Database, spec: Spec, since: Option<Uuid>) -> Initial {
        let key = self.join(spec);
        let monitor = MonitorId(self.next);
        self.next += 1;
        let first = self.head - self.history.len() as u64 + 1;
        let known = since.and_then(|id| {
            let at = self.history.iter().rposition(|entry| entry.id == id)?;
            Some(first + at as u64)
        });
        let position = known.unwrap_or(self.head);
        self.monitors.insert(
            monitor,
            Monitor {
                key: Arc::clone(&key),
                position,
                backlog: None,
            },
        );
        let updates = if known.is_some() {
            self.flush(db, monitor).map(|(updates, _)| updates)
        } else {
            self.initial(db, &key)
        };
        Initial {
            monitor,
            found: known.is_some(),
            last_id: self.told_id(),
            updates: updates.unwrap_or_else(|| "{}".into()),
        }
    }

    fn initial(&mut self, db: &Database, key: &Arc<str>) -> Option<Arc<str>> {
        let group = self.groups.get_mut(key)?;
        match &group.initial {
            Some((at, text)) if *at == self.head => Some(Arc::clone(text)),
            _ => {
                let text: Arc<str> = update::initial(&group.spec, db).into();
                if group.members > 1 {
                    group.initial = Some((self.head, Arc::clone(&text)));
                }
                Some(text)
            }
        }
    }

    /// Ends a monitor.
    pub fn remove(&mut self, monitor: MonitorId) {
        if let Some(monitor) = self.monitors.remove(&monitor) {
            self.leave(&monitor.key);
        }
    }

    /// Takes note of a commit.
    pub fn committed(&mut self, id: Uuid, changes: &Changes) {
        if changes.is_empty() {
            return;
        }
        self.head += 1;
        let (old, new) = changes.atoms();
        let atoms = old + new;
        self.history_atoms += atoms;
        self.history.push_back(Entry {
            id,
            changes: Arc::new(changes.clone()),
            atoms,
        });
        for group in self.groups.values_mut() {
            group.initial = None;
        }
        self.trim();
    }

    /// Takes note of a commit that changed nothing here.
    pub fn passed(&mut self, id: Uuid) {
        self.head += 1;
        self.history.push_back(Entry {
            id,
            changes: Arc::default(),
            atoms: 0,
        });
        self.trim();
    }

    /// Number of commits that are kept for clients that come back, and of the atoms in them.
    pub fn history(&self) -> (usize, u64) {
        if self.tells_ids {
            (self.history.len(), self.history_atoms)
        } else {
            (0, 0)
        }
    }

    /// Lets commits go that are kept for clients that come back, until they are not larger than
    /// the database, which has `atoms` atoms: telling all of it again costs no more.
    pub fn limit_history(&mut self, atoms: u64) {
        if !self.tells_ids || self.history_atoms <= atoms {
            return;
        }
        let unneeded = self.unneeded().min(self.history.len().saturating_sub(1));
        let (mut left, mut count) = (self.history_atoms, 0);
        for entry in self.history.range(..unneeded) {
            if left <= atoms {
                break;
            }
            left -= entry.atoms;
            count += 1;
        }
        self.forget(count);
    }

    /// How many of the oldest commits all monitors were told of.
    fn unneeded(&self) -> usize {
        let slowest = self.monitors.values().map(|m| m.position).min();
        let first = self.head - self.history.len() as u64 + 1;
        let unneeded = slowest.map_or(u64::MAX, |p| p + 1).saturating_sub(first);
        unneeded.min(self.history.len() as u64) as usize
    }

    fn trim(&mut self) {
        if self.history.len() <= HISTORY {
            return;
        }
        // Commits that nobody waits for go, but for the last ones.
        let excess = self.history.len() - HISTORY;
        self.forget(self.unneeded().min(excess));
        if self.history.len() > MAX_LAG + HISTORY {
            self.merge_lag();
        }
    }

    /// Merges what lagging monitors must still be told, and lets the history go.
    fn merge_lag(&mut self) {
        let first = self.head - self.history.len() as u64 + 1;
        let cut = self.history.len() - HISTORY;
        let end = first + cut as u64 - 1;
        for monitor in self.monitors.values_mut().filter(|m| m.position < end) {
            let skip = (monitor.position + 1).saturating_sub(first) as usize;
            let mut backlog = monitor.backlog.take().unwrap_or_default();
            for entry in self.history.range(skip..cut) {
                backlog = backlog.merged(&entry.changes);
            }
            monitor.backlog = Some(backlog);
            monitor.position = end;
        }
        self.forget(cut);
    }

    /// Lets the first `count` commits of the history go.
    fn forget(&mut self, count: usize) {
        for gone in self.history.drain(..count) {
            self.left_id = gone.id;
            self.history_atoms -= gone.atoms;
        }
    }

    /// What the monitor was told of, to go back to by [`rewind`](Self::rewind); `None` if there is
    /// no way back from what it is told next.
    pub fn position(&self, monitor: MonitorId) -> Option<u64> {
        let monitor = self.monitors.get(&monitor)?;
        monitor.backlog.is_none().then_some(monitor.position)
    }

    /// Makes the last `count` commits undone; monitors that were told of them are to be rewound.
    /// False, with nothing done, if some of them have left the history.
    pub fn take_back(&mut self, count: usize) -> bool {
        let Some(left) = self.history.len().checked_sub(count) else {
            return false;
        };
        for gone in self.history.drain(left..) {
            self.history_atoms -= gone.atoms;
        }
        self.head -= count as u64;
        for group in self.groups.values_mut() {
            // Their numbers will be those of other commits.
            group.told = None;
            group.initial = None;
        }
        for monitor in self.monitors.values_mut() {
            monitor.position = monitor.position.min(self.head);
        }
        true
    }

    /// Goes back to where a monitor was: what it was told since has not reached anybody.  False if
    /// that has left the history.
    pub fn rewind(&mut self, monitor: MonitorId, position: u64) -> bool {
        let first = self.head - self.history.len() as u64 + 1;
        let Some(monitor) = self.monitors.get_mut(&monitor) else {
            // One that is gone wants to be told nothing.
            return true;
        };
        monitor.position = monitor.position.min(position);
        position + 1 >= first
    }

    /// Whether there are commits that the monitor was not told of (they may not concern it).
    pub fn is_pending(&self, monitor: MonitorId) -> bool {
        self.monitors
            .get(&monitor)
            .is_some_and(|m| m.position < self.head || m.backlog.is_some())
    }

    /// What the monitor must be told, serialised, with the id of the last transaction.
    /// `None` if nothing concerns it.
    pub fn flush(&mut self, db: &Database, monitor: MonitorId) -> Option<(Arc<str>, Uuid)> {
        let this = self.monitors.get_mut(&monitor)?;
        let from = this.position;
        let backlog = this.backlog.take();
        this.position = self.head;
        if from == self.head && backlog.is_none() {
            return None;
        }
        let group = self.groups.get_mut(&this.key)?;
        if backlog.is_none()
            && let Some((start, end, text)) = &group.told
            && (*start, *end) == (from, self.head)
        {
            let text = text.clone();
            return text.map(|text| (text, self.told_id()));
        }
        let first = self.head - self.history.len() as u64 + 1;
        let skip = (from + 1 - first) as usize;
        let mut entries = self.history.range(skip..).map(|entry| &entry.changes);
        let shared = backlog.is_none();
        let mut merged = match backlog {
            Some(backlog) => Arc::new(backlog),
            None => Arc::clone(entries.next()?),
        };
        for later in entries {
            merged = Arc::new(merged.merged(later));
        }
        let text: Option<Arc<str>> = update::update(&group.spec, db, &merged).map(Arc::from);
        if shared {
            group.told = Some((from, self.head, text.clone()));
        }
        text.map(|text| (text, self.told_id()))
    }

    /// What a monitor watches.
    pub fn spec(&self, monitor: MonitorId) -> Option<&Arc<Spec>> {
        let monitor = self.monitors.get(&monitor)?;
        Some(&self.groups.get(&monitor.key)?.spec)
    }

    /// Replaces conditions (table and condition) of a monitor that was flushed just before.
    /// Returns what it must be told about rows that come and go by this.
    pub fn change_conditions(
        &mut self,
        db: &Database,
        monitor: MonitorId,
        conditions: Vec<(usize, Condition)>,
    ) -> Option<(Arc<str>, Uuid)> {
        let old = Arc::clone(self.spec(monitor)?);
        // Monitors of RFC 7047 have no conditions.
        if old.version == Version::V1 {
            return None;
        }
        let mut new = (*old).clone();
        for (table, condition) in conditions {
            new.set_condition(table, condition);
        }
        let text = update::condition_change(&old, &new, db);
        let key = self.join(new);
        let this = self.monitors.get_mut(&monitor)?;
        let left = std::mem::replace(&mut this.key, key);
        self.leave(&left);
        text.map(|text| (text.into(), self.told_id()))
    }
}
