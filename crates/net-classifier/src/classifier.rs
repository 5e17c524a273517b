//! The classifier: subtables in falling order of priority, and the prefix tries.

use std::cmp::Reverse;
use std::sync::Arc;

use net_flow::{FlowKey, FlowMask, Match, MiniKey, Slot, slot};

use crate::conjunction::{Soft, complete};
use crate::subtable::{PrefixState, Prefixes, Subtable, SubtableId, at_top};
use crate::trie::Trie;
use crate::{MiniMatch, Rule};

/// The fields whose prefixes are tracked unless told otherwise.
pub const DEFAULT_PREFIXES: [Slot; 4] =
    [slot::NW_DST, slot::NW_SRC, slot::IPV6_DST, slot::IPV6_SRC];

/// How many fields' prefixes may be tracked.
pub const MAX_PREFIXES: usize = 4;

#[derive(Debug)]
struct Entry<T> {
    max_priority: i32,
    table: Arc<Subtable<T>>,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self {
            max_priority: self.max_priority,
            table: Arc::clone(&self.table),
        }
    }
}

#[derive(Debug)]
struct Inner<T> {
    /// In falling order of the highest priority.
    subtables: Vec<Entry<T>>,
    prefixes: Vec<Prefixes>,
    count: usize,
    next_id: u32,
}

impl<T> Clone for Inner<T> {
    fn clone(&self) -> Self {
        Self {
            subtables: self.subtables.clone(),
            prefixes: self.prefixes.clone(),
            count: self.count,
            next_id: self.next_id,
        }
    }
}

/// A set of rules, at most one for each pair of match and priority.
#[derive(Debug)]
pub struct Classifier<T> {
    inner: Arc<Inner<T>>,
}

impl<T> Clone for Classifier<T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<T: Rule> Default for Classifier<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Rule> Classifier<T> {
    /// An empty classifier that tracks [`DEFAULT_PREFIXES`].
    pub fn new() -> Self {
        let mut classifier = Self {
            inner: Arc::new(Inner {
                subtables: Vec::new(),
                prefixes: Vec::new(),
                count: 0,
                next_id: 0,
            }),
        };
        classifier.set_prefixes(&DEFAULT_PREFIXES);
        classifier
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.inner.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.inner.count == 0
    }

    /// How many different masks the rules have.
    pub fn subtables(&self) -> usize {
        self.inner.subtables.len()
    }

    /// The fields whose prefixes are tracked.
    pub fn prefixes(&self) -> impl Iterator<Item = Slot> {
        self.inner.prefixes.iter().map(|p| p.slot)
    }

    /// Tracks the prefixes of these fields, of which those beyond [`MAX_PREFIXES`] are left
    /// out.  Takes time in proportion to the number of rules, unless nothing changes.
    pub fn set_prefixes(&mut self, fields: &[Slot]) {
        let fields = &fields[..fields.len().min(MAX_PREFIXES)];
        if self.prefixes().eq(fields.iter().copied()) {
            return;
        }
        let inner = Arc::make_mut(&mut self.inner);
        inner.prefixes.clear();
        inner.prefixes.extend(fields.iter().map(|slot| Prefixes {
            slot: *slot,
            trie: Trie::default(),
        }));
        for entry in &mut inner.subtables {
            let table = Arc::make_mut(&mut entry.table);
            table.track(&inner.prefixes);
            for rule in table.iter() {
                let lengths = table.prefix_lengths();
                add_prefixes(&mut inner.prefixes, lengths, rule.mini_match());
            }
        }
    }

    /// The compact form of `full`, which shares its mask with the rules here that have it.
    pub fn mini_match(&self, full: &Match) -> MiniMatch {
        let mask = MiniKey::new(full.mask().as_key());
        match self.position(&mask) {
            Some(at) => {
                let mask = Arc::clone(&self.inner.subtables[at].table.mask);
                MiniMatch::with_mask(full.key(), mask)
            }
            None => MiniMatch::with_mask(full.key(), Arc::new(mask)),
        }
    }

    fn position(&self, mask: &MiniKey) -> Option<usize> {
        let tables = &self.inner.subtables;
        tables.iter().position(|e| *e.table.mask == *mask)
    }

    /// Adds `rule`, and returns the rule of the same match and priority that it replaces.
    pub fn insert(&mut self, rule: Arc<T>) -> Option<Arc<T>> {
        let at = self.position(rule.mini_match().mask());
        let inner = Arc::make_mut(&mut self.inner);
        let at = at.unwrap_or_else(|| {
            let mask = Arc::clone(rule.mini_match().mask());
            let id = SubtableId(inner.next_id);
            inner.next_id = inner.next_id.wrapping_add(1);
            inner.subtables.push(Entry {
                max_priority: i32::MIN,
                table: Arc::new(Subtable::new(id, mask, &inner.prefixes)),
            });
            inner.subtables.len() - 1
        });
        let priority = rule.priority();
        let entry = &mut inner.subtables[at];
        let table = Arc::make_mut(&mut entry.table);
        let old = table.insert(Arc::clone(&rule));
        if old.is_none() {
            let lengths = table.prefix_lengths();
            add_prefixes(&mut inner.prefixes, lengths, rule.mini_match());
            inner.count += 1;
            if table.count == 1 || priority > entry.max_priority {
                entry.max_priority = priority;
                sort(&mut inner.subtables);
            }
        }
        old
    }

    /// Takes the rule of that match and priority out.
    pub fn remove(&mut self, key: &MiniMatch, priority: i32) -> Option<Arc<T>> {
        let at = self.position(key.mask())?;
        let table = &self.inner.subtables[at].table;
        table
            .with_values(key.values())
            .find(|r| r.priority() == priority)?;
        let inner = Arc::make_mut(&mut self.inner);
        let entry = &mut inner.subtables[at];
        let table = Arc::make_mut(&mut entry.table);
        let rule = table.remove(key.values(), priority)?;
        inner.count -= 1;
        for (field, length) in inner.prefixes.iter_mut().zip(table.prefix_lengths()) {
            if *length > 0 {
                let value = at_top(value_in(rule.mini_match(), field.slot), field.slot);
                field.trie.remove(value, *length);
            }
        }
        match table.max_priority() {
            None => {
                inner.subtables.swap_remove(at);
                sort(&mut inner.subtables);
            }
            Some(max) if max != entry.max_priority => {
                entry.max_priority = max;
                sort(&mut inner.subtables);
            }
            Some(_) => {}
        }
        Some(rule)
    }

    /// The rule of exactly that match and priority (OpenFlow's strict comparison).
    pub fn find(&self, key: &MiniMatch, priority: i32) -> Option<&Arc<T>> {
        let at = self.position(key.mask())?;
        let table = &self.inner.subtables[at].table;
        table
            .with_values(key.values())
            .find(|r| r.priority() == priority)
    }

    /// All rules, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.inner.subtables.iter().flat_map(|e| e.table.iter())
    }

    /// The rules that match only packets that `criterion` matches too (OpenFlow's non-strict
    /// comparison).
    pub fn within<'a>(&'a self, criterion: &'a Match) -> impl Iterator<Item = &'a Arc<T>> {
        let tables = self.inner.subtables.iter().filter(|e| {
            let mut words = criterion.mask().iter();
            words.all(|(i, w)| w & !mask_word(&e.table.mask, i) == 0)
        });
        tables
            .flat_map(|e| e.table.iter())
            .filter(|r| r.mini_match().is_within(criterion))
    }

    /// The rules of that priority for which some packet could match both.
    pub fn overlapping<'a>(
        &'a self,
        full: &'a Match,
        priority: i32,
    ) -> impl Iterator<Item = &'a Arc<T>> {
        let tables = &self.inner.subtables;
        tables
            .iter()
            .take_while(move |e| e.max_priority >= priority)
            .flat_map(|e| e.table.iter())
            .filter(move |r| r.priority() == priority && r.mini_match().overlaps(full))
    }

    /// The rule of highest priority that matches `key`, without a report of what mattered.
    pub fn lookup_plain(&self, key: &FlowKey) -> Option<&Arc<T>> {
        let mut best: Option<&Arc<T>> = None;
        let mut floor = i64::MIN;
        for entry in &self.inner.subtables {
            if i64::from(entry.max_priority) <= floor {
                break;
            }
            let Some(rule) = entry.table.lookup_plain(key) else {
                continue;
            };
            if !rule.conjunctions().is_empty() {
                return self.lookup(key, &mut FlowMask::new());
            }
            if i64::from(rule.priority()) > floor {
                floor = i64::from(rule.priority());
                best = Some(rule);
            }
        }
        best
    }

    /// The rule of highest priority that matches `key`.  The bits that mattered are added to
    /// `wc`: any key that agrees with `key` in them has the same answer.
    pub fn lookup(&self, key: &FlowKey, wc: &mut FlowMask) -> Option<&Arc<T>> {
        self.lookup_noting(key, wc, &mut |_| {})
    }

    /// Like [`Self::lookup`]; `consulted` is told each subtable that was searched.
    pub fn lookup_noting(
        &self,
        key: &FlowKey,
        wc: &mut FlowMask,
        consulted: &mut dyn FnMut(SubtableId),
    ) -> Option<&Arc<T>> {
        self.search(key, wc, consulted, true)
    }

    fn search<'a>(
        &'a self,
        key: &FlowKey,
        wc: &mut FlowMask,
        consulted: &mut dyn FnMut(SubtableId),
        conjunctive: bool,
    ) -> Option<&'a Arc<T>> {
        let mut state: [PrefixState; MAX_PREFIXES] = Default::default();
        let mut hard: Option<&Arc<T>> = None;
        let mut floor = i64::MIN;
        let mut soft: Vec<Soft<'a, T>> = Vec::new();
        for entry in &self.inner.subtables {
            if i64::from(entry.max_priority) <= floor {
                break;
            }
            consulted(entry.table.id);
            let found = entry
                .table
                .lookup(key, &self.inner.prefixes, &mut state, wc);
            let Some(rule) = found else { continue };
            if i64::from(rule.priority()) <= floor {
                continue;
            }
            if rule.conjunctions().is_empty() {
                floor = i64::from(rule.priority());
                hard = Some(rule);
            } else if conjunctive {
                let rules = entry.table.with_values(rule.mini_match().values());
                soft.push(Soft {
                    rules: rules.collect(),
                });
            }
        }
        if soft.is_empty() {
            return hard;
        }
        self.conjunctive(key, wc, consulted, hard, soft)
    }

    /// The answer when rules that are parts of conjunctions matched.
    fn conjunctive<'a>(
        &'a self,
        key: &FlowKey,
        wc: &mut FlowMask,
        consulted: &mut dyn FnMut(SubtableId),
        mut hard: Option<&'a Arc<T>>,
        mut soft: Vec<Soft<'a, T>>,
    ) -> Option<&'a Arc<T>> {
        loop {
            let floor = hard.map_or(i64::MIN, |r| i64::from(r.priority()));
            soft.retain(|s| !s.rules.is_empty() && i64::from(s.priority()) > floor);
            let Some(priority) = soft.iter().map(Soft::priority).max() else {
                return hard;
            };
            for id in complete(&soft, priority) {
                let mut with_id = key.clone();
                with_id.set(slot::CONJ_ID, u128::from(id));
                // The id is not a part of any packet, so it must not reach the mask.
                let before = wc.get(slot::CONJ_ID);
                let rule = self.search(&with_id, wc, consulted, false);
                wc.set(slot::CONJ_ID, before);
                if rule.is_some() {
                    return rule;
                }
            }
            for part in soft.iter_mut().filter(|s| s.priority() == priority) {
                part.rules.remove(0);
                if let Some(next) = part.rules.first().copied()
                    && next.conjunctions().is_empty()
                {
                    if hard.is_none_or(|h| next.priority() > h.priority()) {
                        hard = Some(next);
                    }
                    part.rules.clear();
                }
            }
        }
    }
}

/// Sorts subtables by falling priority; those of equal priority keep their order.
fn sort<T>(subtables: &mut [Entry<T>]) {
    subtables.sort_by_key(|e| Reverse(e.max_priority));
}

fn mask_word(mask: &MiniKey, index: usize) -> u64 {
    if mask.map() >> index & 1 == 0 {
        return 0;
    }
    let below = mask.map() & ((1 << index) - 1);
    mask.words()[below.count_ones() as usize]
}

/// The value of a slot in a compact match.
fn value_in(rule: &MiniMatch, slot: Slot) -> u128 {
    let word = |index: u8| {
        let mut words = rule.words();
        let found = words.find(|(i, _, _)| *i == usize::from(index));
        found.map_or(0, |(_, _, value)| u128::from(value))
    };
    if slot.bits > 64 {
        word(slot.word) << 64 | word(slot.word + 1)
    } else {
        word(slot.word) >> slot.shift & slot.max()
    }
}

fn add_prefixes(prefixes: &mut [Prefixes], lengths: &[u8], rule: &MiniMatch) {
    for (field, length) in prefixes.iter_mut().zip(lengths) {
        if *length > 0 {
            let value = at_top(value_in(rule, field.slot), field.slot);
            field.trie.insert(value, *length);
        }
    }
}
