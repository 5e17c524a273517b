//! Flows in the datapath are checked against the newest view, expire when they are not used,
//! and their statistics are credited to rules.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{Clock, Instant};
use dp_api::{FlowPut, FlowStats};
use dp_ctl::{DumpFormat, flow_text, stats_text};
use dp_lang::text::{FlowFormat, PortNames, format_actions, format_flow};
use dp_lang::{Action, Ufid};
use net_flow::{FlowKey, FlowMask, MiniKey};
use of_xlate::{Input, Purpose, SwitchView, translate};

use crate::backer::Backer;
use crate::changes::ViewChanges;
use crate::config::SwitchConfig;

/// How long an unused flow is kept when there are more flows than there should be.
const HURRIED_IDLE: Duration = Duration::from_millis(100);

/// The module under which operations on flows are logged.
const DPIF: &str = "dpif";

/// How the log shows flows.
const VERBOSE: DumpFormat = DumpFormat {
    more: true,
    after_ufid: "",
    origin: false,
    kernel: false,
};

/// A pass must not take more than this share of the main loop's time.
const PAUSE_FACTOR: u32 = 4;

/// When flows are looked at, and what that told.
#[derive(Debug)]
pub(crate) struct Revalidator {
    /// The view changed, and how: flows are to be checked.
    pending: Option<ViewChanges>,
    /// When statistics are credited next.
    next: Instant,
    /// Not before this are statistics credited because somebody asks for them.
    next_credit: Cell<Instant>,
    /// What the datapath had counted when statistics were credited last.
    credited: Cell<Option<(u64, u64)>>,
    /// Not before this are flows checked, unless somebody waits for it.
    not_before: Instant,
    dump: u64,
    max_idle: Duration,
    interval: Duration,
    /// Flows at the last dump, on average, and at most.
    pub(crate) current: usize,
    pub(crate) average: usize,
    pub(crate) max: usize,
    /// How long the last dump took.
    pub(crate) duration: Duration,
    /// Whether an operator has stopped it (`revalidator/pause`).
    pub(crate) paused: bool,
}

impl Default for Revalidator {
    fn default() -> Self {
        let settings = SwitchConfig::default();
        Self {
            pending: None,
            next: Instant::MAX,
            next_credit: Cell::new(Instant::ZERO),
            credited: Cell::new(None),
            not_before: Instant::ZERO,
            dump: 0,
            max_idle: settings.max_idle,
            interval: settings.max_revalidator,
            current: 0,
            average: 0,
            max: 0,
            duration: Duration::ZERO,
            paused: false,
        }
    }
}

impl Revalidator {
    /// When it wants to run.
    pub(crate) fn next_deadline(&self) -> Instant {
        if self.paused {
            Instant::MAX
        } else if self.pending.is_some() {
            self.not_before.min(self.next)
        } else {
            self.next
        }
    }

    /// Whether all flows are as the newest view wants them.
    pub(crate) const fn is_done(&self) -> bool {
        self.pending.is_none()
    }

    /// The view changed.
    pub(crate) fn request(&mut self, changes: ViewChanges) {
        self.pending.get_or_insert_default().join(changes);
    }

    /// Leaves the main loop's time to others for a while after a pass that took `took`.
    fn pause(&mut self, took: Duration, now: Instant, clock: &Clock) {
        // A clock that stands still would never reach the end of a pause.
        let pause = if clock.is_stopped() {
            Duration::ZERO
        } else {
            took * PAUSE_FACTOR
        };
        self.not_before = now + pause;
    }

    /// There are flows: their statistics are to be looked at.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.next = self.next.min(now + self.interval);
    }
}

/// What a flow should be.
pub(crate) enum Check {
    Keep,
    Modify,
    Delete,
    /// It is not there any more.
    Gone,
}

impl Backer {
    /// Takes over settings.
    pub(crate) fn configure(&mut self, settings: &SwitchConfig) {
        self.revalidator.max_idle = settings.max_idle;
        self.revalidator.interval = settings.max_revalidator;
        self.datapath.set_vlan_limit(settings.vlan_limit);
        self.datapath.set_dispatch(settings.upcall_dispatch);
        self.vlan_limit = settings.vlan_limit;
        let limit = settings.flow_limit as usize;
        self.shared.flow_limit.store(limit, Ordering::Relaxed);
    }

    /// Looks at the flows if it is time to.
    pub(crate) fn run_revalidator(&mut self, now: Instant, clock: &Clock) {
        if self.revalidator.next_deadline() > now {
            return;
        }
        if self.revalidator.next > now {
            self.recheck(now, clock);
        } else {
            self.revalidate(now, clock);
        }
    }

    /// Checks the flows that depend on what changed in the view.  When this returns, packets
    /// are forwarded as the newest view wants it.
    pub(crate) fn recheck(&mut self, now: Instant, clock: &Clock) {
        let Some(changes) = self.revalidator.pending.take() else {
            return;
        };
        // All flows are looked at when they are not held any more.
        if self.is_held {
            return;
        }
        let start = clock.real();
        // Packets that are being translated with the old view install their flows first.
        self.datapath.quiesce();
        let view = self.shared.view.load();
        let megaflows = &self.shared.megaflows;
        let outdated = megaflows.outdated(view.version, &changes);
        for ufid in outdated {
            // What it counted so far belongs to the rules that it came from.
            if let Ok(flow) = self.datapath.flow_get(ufid) {
                self.credit_flow(ufid, &flow.stats, now);
            }
            let check = self.retranslate(ufid, &view, now);
            self.carry_out(ufid, &check, now);
        }
        self.revalidator
            .pause(clock.real().since(start), now, clock);
    }

    /// Brings the datapath's flow to what a check said.  Returns whether it stays.
    pub(crate) fn carry_out(&self, ufid: Ufid, check: &Check, now: Instant) -> bool {
        match check {
            Check::Keep => true,
            Check::Modify => self.modify(ufid),
            Check::Delete => {
                self.delete(ufid, now);
                false
            }
            Check::Gone => false,
        }
    }

    /// Checks all flows, credits their statistics, and removes those that were not used for
    /// long.  When this returns, packets are forwarded as the newest view wants it.
    pub(crate) fn revalidate(&mut self, now: Instant, clock: &Clock) {
        if self.is_held {
            return;
        }
        let start = clock.real();
        self.recheck(now, clock);
        let view = self.shared.view.load();
        self.revalidator.dump += 1;
        self.log_dump(now);
        let mut flows = Vec::new();
        self.datapath
            .flow_counts(&mut |ufid, stats| flows.push((ufid, *stats)));
        let idle = self.idle_limit(flows.len());
        let mut kept = 0;
        let mut unwanted = Vec::new();
        for (ufid, stats) in &flows {
            match self.check_flow(*ufid, stats, &view, idle, now) {
                Check::Delete => unwanted.push(*ufid),
                check => kept += usize::from(self.carry_out(*ufid, &check, now)),
            }
        }
        self.delete_all(&unwanted, now);
        let dump = self.revalidator.dump;
        self.shared.megaflows.sweep(dump, now);
        self.shared.flows.store(kept, Ordering::Relaxed);
        let took = clock.real().since(start);
        let state = &mut self.revalidator;
        state.pending = None;
        state.current = kept;
        state.max = state.max.max(flows.len());
        state.average = (state.average + flows.len()) / 2;
        state.duration = took;
        state.pause(took, now, clock);
        state.next = if kept == 0 && self.shared.megaflows.len() == 0 {
            Instant::MAX
        } else {
            // Many flows must not take the main loop's time from everything else.
            (now + state.interval).max(state.not_before)
        };
    }

    /// Credits rules with what the flows have counted up to now, unless nothing was counted
    /// since the last time.
    ///
    /// # Errors
    /// So little time has passed since that it would take too much of the main loop's; the time
    /// from when on it will not.
    pub(crate) fn update_counters(&self, now: Instant, clock: &Clock) -> Result<(), Instant> {
        let next = self.revalidator.next_credit.get();
        if next > now && !clock.is_stopped() {
            return Err(next);
        }
        let start = clock.real();
        let counted = self.counted();
        if self.revalidator.credited.replace(Some(counted)) == Some(counted) {
            return Ok(());
        }
        // Packets are counted all together before they are by flow; afterwards all of these are.
        self.datapath.quiesce();
        self.datapath
            .flow_counts(&mut |ufid, stats| self.credit_flow(ufid, stats, now));
        let pause = clock.real().since(start) * PAUSE_FACTOR;
        let next = now + pause.min(self.revalidator.interval);
        self.revalidator.next_credit.set(next);
        Ok(())
    }

    /// What tells whether flows have counted anything: packets with and without a flow.
    fn counted(&self) -> (u64, u64) {
        let stats = self.datapath.stats();
        (stats.hits, stats.misses)
    }

    fn credit_flow(&self, ufid: Ufid, stats: &FlowStats, now: Instant) {
        if let Some(megaflow) = self.shared.megaflows.shard(ufid).get_mut(&ufid) {
            megaflow.credit(stats.packets, stats.bytes, stats.used.unwrap_or(now));
        }
    }

    fn log_dump(&self, now: Instant) {
        if log::log_enabled!(target: DPIF, log::Level::Debug) {
            let (name, names) = (self.display_name(), PortNames::none());
            let format = DumpFormat {
                kernel: !self.datapath.is_userspace(),
                ..VERBOSE
            };
            self.datapath.flow_dump(&mut |flow| {
                let text = flow_text(&flow, &names, format, now);
                base::log_limited!(Debug, DPIF, (600, 600), "{name}: flow_dump {text}");
                true
            });
        }
    }

    /// How long unused flows are kept while there are `count`; none if all must go.
    fn idle_limit(&self, count: usize) -> Option<Duration> {
        let limit = self.flow_limit();
        if count > limit.saturating_mul(2) {
            None
        } else if count > limit {
            Some(HURRIED_IDLE.min(self.revalidator.max_idle))
        } else {
            Some(self.revalidator.max_idle)
        }
    }

    /// Checks one flow.
    fn check_flow(
        &self,
        ufid: Ufid,
        stats: &FlowStats,
        view: &SwitchView,
        idle: Option<Duration>,
        now: Instant,
    ) -> Check {
        let dump = self.revalidator.dump;
        let mut shard = self.shared.megaflows.shard(ufid);
        if !shard.contains_key(&ufid) {
            drop(shard);
            if !self.adopt(ufid, now) {
                return Check::Gone;
            }
            shard = self.shared.megaflows.shard(ufid);
        }
        let Some(megaflow) = shard.get_mut(&ufid) else {
            return Check::Gone;
        };
        megaflow.seen = dump;
        let used = stats.used.unwrap_or(megaflow.created);
        megaflow.credit(stats.packets, stats.bytes, used);
        let is_current = self.shared.megaflows.is_current(megaflow, view.version);
        drop(shard);
        let is_idle = idle.is_none_or(|idle| used + idle <= now);
        if is_idle {
            Check::Delete
        } else if !is_current {
            self.retranslate(ufid, view, now)
        } else {
            Check::Keep
        }
    }

    /// Translates a flow anew and takes note of what it depends on now.
    pub(crate) fn retranslate(&self, ufid: Ufid, view: &SwitchView, now: Instant) -> Check {
        let Some((mut key, mask)) = self.key_and_mask(ufid) else {
            return Check::Delete;
        };
        self.limit_vlans(&mut key);
        let Ok((bridge, located)) = view.locate(&key) else {
            return Check::Delete;
        };
        let input = Input {
            bridge,
            key: &located,
            packet: None,
            actions: None,
            resume: None,
            purpose: Purpose::Revalidate,
            now,
        };
        self.shared.counters.xlate_actions.inc();
        let translation = translate(view, &input, None);
        if translation.error.is_some() || !mask.contains(&translation.mask) {
            return Check::Delete;
        }
        let actions: Arc<[Action]> = translation.flow_actions().into();
        let mut shard = self.shared.megaflows.shard(ufid);
        let Some(megaflow) = shard.get_mut(&ufid) else {
            return Check::Delete;
        };
        let same = *actions == *megaflow.actions;
        let megaflows = &self.shared.megaflows;
        let before = megaflows.renew(megaflow, translation, view.version);
        if !same {
            view.recirc.linger(&before);
        }
        if same {
            Check::Keep
        } else {
            megaflow.actions = actions;
            Check::Modify
        }
    }

    fn key_and_mask(&self, ufid: Ufid) -> Option<(FlowKey, FlowMask)> {
        let shard = self.shared.megaflows.shard(ufid);
        let megaflow = shard.get(&ufid)?;
        Some((megaflow.key.expand(), megaflow.mask.expand_mask()))
    }

    /// Puts a flow's new actions into the datapath.
    fn modify(&self, ufid: Ufid) -> bool {
        let Some(put) = self.put_of(ufid) else {
            return false;
        };
        self.log_modified(ufid);
        match self.datapath.flow_put(put) {
            Ok(_) => true,
            Err(error) => {
                base::log_limited!(
                    Warn,
                    "ofproto_dpif_upcall",
                    (1, 5),
                    "failed to modify datapath flow: {error}"
                );
                false
            }
        }
    }

    fn log_modified(&self, ufid: Ufid) {
        if !log::log_enabled!(target: DPIF, log::Level::Debug) {
            return;
        }
        let shard = self.shared.megaflows.shard(ufid);
        if let Some(megaflow) = shard.get(&ufid) {
            let (key, mask) = (megaflow.key.expand(), megaflow.mask.expand_mask());
            let names = PortNames::none();
            let flow = format_flow(
                &key,
                Some(&mask),
                &names,
                FlowFormat {
                    verbose: true,
                    kernel: !self.datapath.is_userspace(),
                },
            );
            let actions = format_actions(&megaflow.actions, &names);
            let name = self.display_name();
            base::log_limited!(
                Debug,
                DPIF,
                (600, 600),
                "{name}: put[modify] ufid:{ufid} {flow}, actions:{actions}"
            );
        }
    }

    fn put_of(&self, ufid: Ufid) -> Option<FlowPut> {
        let shard = self.shared.megaflows.shard(ufid);
        let megaflow = shard.get(&ufid)?;
        let mask = megaflow.mask.expand_mask();
        Some(FlowPut {
            ufid: Some(ufid),
            key: MiniKey::under(&megaflow.key.expand(), &mask),
            mask: (*megaflow.mask).clone(),
            actions: Arc::clone(&megaflow.actions),
            replace: true,
            zero_stats: false,
        })
    }

    /// Removes a flow, after what it counted was credited.
    pub(crate) fn delete(&self, ufid: Ufid, now: Instant) {
        // A flow that is gone already is what was wanted.
        let _ = self.try_delete(ufid, now);
    }

    /// The same; what it had counted, unless the datapath had no such flow.
    pub(crate) fn try_delete(&self, ufid: Ufid, now: Instant) -> Result<FlowStats, dp_api::Error> {
        let stats = self.datapath.flow_del(ufid);
        self.deleted(ufid, &stats, now);
        stats
    }

    /// Removes many flows.
    fn delete_all(&self, ufids: &[Ufid], now: Instant) {
        let visit = &mut |ufid, stats| self.deleted(ufid, &stats, now);
        self.datapath.flow_del_all(ufids, visit);
    }

    /// A flow was removed from the datapath, or was not there any more.
    fn deleted(&self, ufid: Ufid, stats: &Result<FlowStats, dp_api::Error>, now: Instant) {
        if log::log_enabled!(target: DPIF, log::Level::Debug) {
            let (name, stats) = (self.display_name(), stats.clone().unwrap_or_default());
            let stats = stats_text(&stats, now);
            base::log_limited!(
                Debug,
                DPIF,
                (600, 600),
                "{name}: flow_del ufid:{ufid} , {stats}"
            );
        }
        let Some(mut megaflow) = self.shared.megaflows.remove(ufid) else {
            return;
        };
        self.shared.view.load().recirc.linger(&megaflow.frozen);
        if let Ok(stats) = &stats {
            megaflow.credit(stats.packets, stats.bytes, stats.used.unwrap_or(now));
        }
    }

    /// Removes every flow, after what they counted was credited.
    pub(crate) fn purge(&mut self, now: Instant) {
        self.datapath.quiesce();
        let mut ids = Vec::new();
        self.datapath.flow_dump(&mut |flow| {
            ids.push(flow.ufid);
            true
        });
        self.delete_all(&ids, now);
        self.shared.megaflows.sweep(u64::MAX, now);
        self.shared.flows.store(0, Ordering::Relaxed);
        self.revalidator.current = 0;
    }
}
