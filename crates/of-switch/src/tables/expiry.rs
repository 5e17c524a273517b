//! When rules' timeouts run out.

use std::sync::Arc;

use base::Instant;
use hashbrown::HashMap;
use of_wire::message::FlowRemovedReason;

use crate::rule::{Rule, RuleId};
use crate::tables::{Changes, Tables};
use crate::timers::Timers;

/// The rules that have a timeout.
///
/// A packet that uses a rule does not move its deadline; when a deadline comes, the
/// rule is looked at, and stays if it was used meanwhile.  So a rule costs one look for
/// each of its idle timeouts, however many packets use it.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    timers: Timers<RuleId>,
    timed: HashMap<RuleId, (Instant, Arc<Rule>), foldhash::fast::FixedState>,
}

impl Expiry {
    /// Watches `rule`, if it has a timeout.
    pub(crate) fn add(&mut self, rule: &Arc<Rule>) {
        let at = rule.deadline();
        if at != Instant::MAX {
            self.timers.set(at, rule.id);
            self.timed.insert(rule.id, (at, Arc::clone(rule)));
        }
    }

    /// Watches `rule` no longer.
    pub(crate) fn cancel(&mut self, rule: &Rule) {
        if let Some((at, _)) = self.timed.remove(&rule.id) {
            self.timers.cancel(at, rule.id);
        }
    }

    fn next(&self) -> Instant {
        self.timers.next()
    }

    /// Takes the next rule that is due.
    fn take_due(&mut self, now: Instant) -> Option<Arc<Rule>> {
        let id = self.timers.take_due(now)?;
        self.timed.remove(&id).map(|(_, rule)| rule)
    }
}

impl Tables {
    /// When [`Tables::expire`] should be called next.
    pub fn next_deadline(&self) -> Instant {
        self.expiry.next()
    }

    /// Takes out rules whose timeout has run out, at most `budget` of them, so that the
    /// caller can do other work between; [`Tables::next_deadline`] tells whether some are left.
    ///
    /// The rules' counters should be up to date when this is called.
    pub fn expire(&mut self, now: Instant, budget: usize, changes: &mut Changes) {
        for _ in 0..budget {
            let Some(rule) = self.expiry.take_due(now) else {
                return;
            };
            if rule.deadline() > now {
                self.expiry.add(&rule);
                continue;
            }
            let reason = if rule.hard_deadline() <= now {
                FlowRemovedReason::HardTimeout
            } else {
                FlowRemovedReason::IdleTimeout
            };
            self.remove_rule(&rule, reason, changes);
        }
    }

    /// Lowers a rule's timeouts to these, in seconds, where they are 0 or higher (the
    /// `fin_timeout` action); 0 leaves one as it is.
    pub fn reduce_timeouts(&mut self, rule: &Arc<Rule>, idle: u16, hard: u16) {
        if rule.is_removed() {
            return;
        }
        let lower = |old: u16, new: u16| match (old, new) {
            (old, 0) => old,
            (0, new) => new,
            (old, new) => old.min(new),
        };
        let idle = lower(rule.idle_timeout(), idle);
        let hard = lower(rule.hard_timeout(), hard);
        if (idle, hard) != (rule.idle_timeout(), rule.hard_timeout()) {
            let current = self.expiry.timed.get(&rule.id);
            let current = current.map_or_else(|| Arc::clone(rule), |(_, r)| Arc::clone(r));
            self.expiry.cancel(rule);
            rule.set_timeouts(idle, hard);
            self.expiry.add(&current);
        }
    }
}
