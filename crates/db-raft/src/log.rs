//! The log in memory: a snapshot and the entries after it.

use std::collections::VecDeque;

use db_model::Uuid;

use crate::entry::Entry;
use crate::servers::Servers;

/// Entries `start` to `end - 1`, and the snapshot of what was before.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// What the database was at `start - 1`; always committed.
    pub(crate) snap: Entry,
    start: u64,
    entries: VecDeque<Entry>,
}

impl Log {
    /// An empty log after a snapshot that covers entries up to `index`.
    pub(crate) const fn new(snap: Entry, index: u64) -> Self {
        Self {
            snap,
            start: index + 1,
            entries: VecDeque::new(),
        }
    }

    /// Index of the first entry.
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// Index of the last entry plus 1.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// Index of the last entry; of the snapshot if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.end() - 1
    }

    fn position(&self, index: u64) -> Option<usize> {
        usize::try_from(index.checked_sub(self.start)?).ok()
    }

    /// An entry.
    pub(crate) fn get(&self, index: u64) -> Option<&Entry> {
        self.entries.get(self.position(index)?)
    }

    /// An entry, to be changed.
    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut Entry> {
        let position = self.position(index)?;
        self.entries.get_mut(position)
    }

    /// The term of an entry, or of the snapshot.
    pub(crate) fn term_at(&self, index: u64) -> Option<u64> {
        if index + 1 == self.start {
            return Some(self.snap.term);
        }
        self.get(index).map(|entry| entry.term)
    }

    /// The term of the last entry.
    pub(crate) fn last_term(&self) -> u64 {
        self.entries.back().unwrap_or(&self.snap).term
    }

    /// Entries from an index on.
    pub(crate) fn from(&self, index: u64) -> impl DoubleEndedIterator<Item = (u64, &Entry)> {
        let skip = self.position(index).unwrap_or(0).min(self.entries.len());
        let first = self.start + skip as u64;
        let entries = self.entries.range(skip..).enumerate();
        entries.map(move |(offset, entry)| (first + offset as u64, entry))
    }

    /// Adds an entry.  Returns its index.
    pub(crate) fn push(&mut self, entry: Entry) -> u64 {
        self.entries.push_back(entry);
        self.last()
    }

    /// Removes entries from `end` on.  Returns whether one of them named servers.
    pub(crate) fn truncate(&mut self, end: u64) -> bool {
        let keep = self.position(end).unwrap_or(0).min(self.entries.len());
        let mut gone = self.entries.drain(keep..);
        gone.any(|entry| entry.servers.is_some())
    }

    /// The id of the last data up to `index`.
    pub(crate) fn eid_at(&self, index: u64) -> Uuid {
        let mut entries = self.from(self.start).rev();
        let found = entries.find(|(at, entry)| *at <= index && entry.data.is_some());
        found.map_or(self.snap.eid, |(_, entry)| entry.eid)
    }

    /// The cluster's servers as of `index`.
    pub(crate) fn servers_at(&self, index: u64) -> Servers {
        let mut entries = self.from(self.start).rev();
        let found = entries.find(|(at, entry)| *at <= index && entry.servers.is_some());
        let entry = found.map_or(&self.snap, |(_, entry)| entry);
        entry.servers.clone().unwrap_or_default()
    }

    /// Whether the snapshot or an entry names a server.
    pub(crate) fn ever_names(&self, sid: Uuid) -> bool {
        let mut all = std::iter::once(&self.snap).chain(&self.entries);
        all.any(|entry| entry.servers.as_ref().is_some_and(|s| s.contains(sid)))
    }

    /// The election timer as of `index`, if one was set.
    pub(crate) fn election_timer_at(&self, index: u64) -> Option<u64> {
        let mut entries = self.from(self.start).rev();
        let found = entries.find(|(at, entry)| *at <= index && entry.election_timer != 0);
        let entry = found.map_or(&self.snap, |(_, entry)| entry);
        Some(entry.election_timer).filter(|timer| *timer != 0)
    }

    /// Puts a snapshot in the place of the entries before `start`.
    pub(crate) fn compact(&mut self, snap: Entry, start: u64) {
        let gone = self.position(start).unwrap_or(0).min(self.entries.len());
        self.entries.drain(..gone);
        self.start = start;
        self.snap = snap;
    }
}
