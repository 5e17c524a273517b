//! Flow-mods, packets from controllers, expiry of rules.

use std::sync::Arc;

use base::Instant;
use net_flow::{FlowMask, KEY_WORDS, Match};
use of_wire::action::{CheckParams, Controller, Output as OutputAction, check};
use of_wire::message::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, PacketOut};
use of_wire::version::formats_of;
use of_wire::{Action, ErrorCode, PortNo, Version};

use crate::bridge::dispatch::Asked;
use crate::bridge::{Bridge, EXPIRIES_PER_TURN, Facts, FailMode, Output};
use crate::in_band::InBand;
use crate::rule::{Rule, RuleSpec};
use crate::tables::{Change, Changes, FlowModRules, INTERNAL_TABLE, check_table};

/// Priority of the rule by which a standalone bridge switches while its controllers are away.
pub(crate) const FAIL_OPEN_PRIORITY: i32 = 0xf0_f0f0;

impl Bridge {
    pub(super) fn handle_flow_mod(
        &mut self,
        asked: &Asked<'_>,
        mut flow_mod: FlowMod,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        self.check_flow_mod(asked, &mut flow_mod, facts)?;
        let rules = FlowModRules::of_version(asked.version);
        let changes = self.tables.apply(&flow_mod, rules, asked.now)?;
        update_counters_for(&changes, facts);
        self.note_changes(changes, asked.now);
        if let Some(conn) = self.conns.get_mut(&asked.conn) {
            conn.tally.note(flow_mod.command, asked.now);
        }
        Ok(())
    }

    /// Whether a flow-mod makes sense here.
    pub(super) fn check_flow_mod(
        &self,
        asked: &Asked<'_>,
        flow_mod: &mut FlowMod,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let rules = FlowModRules::of_version(asked.version);
        check_table(flow_mod, rules)?;
        check_actions(
            &mut flow_mod.actions,
            &flow_mod.matching,
            flow_mod.table,
            asked.version,
        )?;
        let is_delete = matches!(
            flow_mod.command,
            FlowModCommand::Delete | FlowModCommand::DeleteStrict
        );
        if flow_mod.buffer_id.is_some() && !is_delete {
            // No packet is ever buffered here.
            return Err(ErrorCode::OfpbrcBufferUnknown);
        }
        self.check_references(&flow_mod.actions)?;
        if !is_delete {
            facts.check_match(flow_mod.matching.mask())?;
        }
        facts.check_actions(&flow_mod.actions)
    }

    pub(super) fn handle_packet_out(
        &mut self,
        asked: &Asked<'_>,
        mut packet: Box<PacketOut>,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        self.check_packet_out(asked, &mut packet, facts)?;
        // The packet must meet the tables as they are now.
        self.publish();
        self.outputs.push_back(Output::PacketOut {
            conn: asked.conn,
            request: asked.request(),
            packet,
        });
        Ok(())
    }

    /// Whether a packet-out makes sense here.
    pub(super) fn check_packet_out(
        &self,
        asked: &Asked<'_>,
        packet: &mut PacketOut,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        if packet.buffer_id.is_some() {
            return Err(ErrorCode::OfpbrcBufferUnknown);
        }
        let port = packet.in_port();
        let is_known =
            port.is_physical() || [PortNo::LOCAL, PortNo::CONTROLLER, PortNo::NONE].contains(&port);
        if !is_known {
            return Err(ErrorCode::OfpbrcBadPort);
        }
        let matching = exact_match(packet);
        check_actions(&mut packet.actions, &matching, ANY_TABLE, asked.version)?;
        self.check_references(&packet.actions)?;
        facts.check_actions(&packet.actions)
    }

    /// Whether what the actions refer to exists; there are no meters yet.
    fn check_references(&self, actions: &[Action]) -> Result<(), ErrorCode> {
        for action in actions {
            match action {
                Action::Group(id) if self.tables.groups().get(*id).is_none() => {
                    return Err(ErrorCode::OfpbacBadOutGroup);
                }
                Action::Meter(_) => return Err(ErrorCode::OfpmmfcInvalidMeter),
                Action::WriteActions(list) | Action::Clone(list) => self.check_references(list)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Carries out a flow-mod of the switch itself, as for the `learn` action.
    ///
    /// # Errors
    /// What a controller would be told.
    pub fn apply(
        &mut self,
        flow_mod: &FlowMod,
        rules: FlowModRules,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let changes = self.tables.apply(flow_mod, rules, now)?;
        self.note_changes(changes, now);
        self.publish();
        Ok(())
    }

    /// Puts in a rule of the switch's own, visible or (with a priority above 65535) hidden.
    pub fn put_rule(&mut self, spec: &RuleSpec, now: Instant) {
        let mut changes = Changes::new();
        self.tables.put(spec, now, &mut changes);
        self.note_changes(changes, now);
        self.publish();
    }

    /// Takes out a rule that [`Bridge::put_rule`] put in.
    pub fn take_rule(&mut self, table: u8, matching: &Match, priority: i32, now: Instant) {
        let mut changes = Changes::new();
        self.tables.take(table, matching, priority, &mut changes);
        self.note_changes(changes, now);
        self.publish();
    }

    /// Takes out all rules, as when the controllers change; those of the switch itself are put
    /// in anew.
    pub fn flush(&mut self, now: Instant) {
        let mut changes = Changes::new();
        self.tables.flush(&mut changes);
        self.note_changes(changes, now);
        self.add_default_rule(now);
        for rule in self.in_band.rules() {
            self.put_rule(&rule, now);
        }
        if self.fails_open {
            self.put_fail_open_rule(now);
        }
        self.publish();
    }

    /// Lowers a rule's timeouts, as the `fin_timeout` action says.
    pub fn reduce_timeouts(&mut self, rule: &Arc<Rule>, idle: u16, hard: u16) {
        self.tables.reduce_timeouts(rule, idle, hard);
    }

    /// Takes out rules whose time has come, as far as that is known.
    pub(super) fn expire(&mut self, now: Instant, facts: &dyn Facts) {
        if self.next_expiry() > now {
            return;
        }
        if let Err(later) = facts.update_counters() {
            self.no_expiry_before = later;
            return;
        }
        let mut changes = Changes::new();
        self.tables.expire(now, EXPIRIES_PER_TURN, &mut changes);
        self.note_changes(changes, now);
    }

    /// Tells controllers of removed rules, and keeps the changes for the next publication.
    pub(super) fn note_changes(&mut self, changes: Changes, now: Instant) {
        self.tell_removals(&changes, now);
        self.changes.extend(changes);
    }

    /// Tells controllers of removed rules.
    pub(super) fn tell_removals(&mut self, changes: &Changes, now: Instant) {
        for change in changes {
            if let Some((rule, reason)) = told_removal(change) {
                self.send_flow_removed(rule, reason, now);
            }
        }
    }

    /// The rules of table 254: what becomes of packets that match nothing.  Register 0 of
    /// the packet is 1 for the controller, 2 for the drop, 3 for a dropped fragment.
    pub(super) fn add_internal_rules(&mut self, now: Instant) {
        let controller = Action::Controller(Box::new(Controller {
            reason: IMPLICIT_MISS,
            ..Controller::default()
        }));
        let mut changes = Changes::new();
        for (number, actions) in [(1, vec![controller]), (2, vec![]), (3, vec![])] {
            let mut matching = Match::any();
            matching.set(net_flow::slot::reg(0), number);
            self.tables
                .put(&internal(0, matching, actions), now, &mut changes);
        }
        // A packet that comes back with a recirculation id that nobody knows.
        let mut matching = Match::any();
        matching.set(net_flow::slot::RECIRC_ID, 0);
        self.tables
            .put(&internal(2, matching, Vec::new()), now, &mut changes);
        self.changes.extend(changes);
    }

    /// A standalone bridge without controllers switches by a rule that all can see.
    pub(super) fn add_default_rule(&mut self, now: Instant) {
        if self.config.fail_mode == FailMode::Secure || self.config.has_controllers {
            return;
        }
        let spec = RuleSpec {
            table: 0,
            ..internal(0, Match::any(), normal())
        };
        let mut changes = Changes::new();
        self.tables.put(&spec, now, &mut changes);
        self.changes.extend(changes);
    }

    /// Switches packets without the controllers, or no longer: the owner decides when.
    pub fn set_fail_open(&mut self, on: bool, now: Instant) {
        self.fails_open = on;
        if on {
            self.put_fail_open_rule(now);
        } else {
            self.take_rule(0, &Match::any(), FAIL_OPEN_PRIORITY, now);
        }
    }

    fn put_fail_open_rule(&mut self, now: Instant) {
        let spec = RuleSpec {
            table: 0,
            ..internal(FAIL_OPEN_PRIORITY, Match::any(), normal())
        };
        self.put_rule(&spec, now);
    }

    /// Sets which traffic of controllers and managers passes whatever they set up.
    pub fn set_in_band(&mut self, in_band: InBand, now: Instant) {
        if in_band == self.in_band {
            return;
        }
        let (old, new) = (self.in_band.rules(), in_band.rules());
        let is_in = |rules: &[RuleSpec], rule: &RuleSpec| {
            let mut same = rules.iter();
            same.any(|r| r.priority == rule.priority && r.matching == rule.matching)
        };
        for rule in old.iter().filter(|rule| !is_in(&new, rule)) {
            self.take_rule(rule.table, &rule.matching, rule.priority, now);
        }
        let same_queue = self.in_band.queue == in_band.queue;
        for rule in new.iter().filter(|r| !same_queue || !is_in(&old, r)) {
            self.put_rule(rule, now);
        }
        self.in_band = in_band;
    }
}

/// The rule that was removed, if controllers are told.
fn told_removal(change: &Change) -> Option<(&Arc<Rule>, FlowRemovedReason)> {
    match change {
        Change::Removed(rule, reason)
            if rule.flags.contains(FlowModFlags::SEND_FLOW_REM) && !rule.is_hidden() =>
        {
            Some((rule, *reason))
        }
        _ => None,
    }
}

/// Before controllers are told what removed rules have counted, they count all there is.
pub(super) fn update_counters_for(changes: &Changes, facts: &dyn Facts) {
    if changes.iter().any(|change| told_removal(change).is_some()) {
        // What cannot be known now would come too late.
        let _ = facts.update_counters();
    }
}

/// Reason of a packet that matched nothing where no rule says what to do.
const IMPLICIT_MISS: u8 = of_wire::message::PacketInReason::ImplicitMiss as u8;

/// A rule of table 254.
fn internal(priority: i32, matching: Match, actions: Vec<Action>) -> RuleSpec {
    RuleSpec {
        table: INTERNAL_TABLE,
        priority,
        matching,
        cookie: 0,
        actions: actions.into(),
        flags: FlowModFlags::empty(),
        importance: 0,
        idle_timeout: 0,
        hard_timeout: 0,
    }
}

fn normal() -> Vec<Action> {
    vec![Action::Output(OutputAction {
        port: PortNo::NORMAL,
        max_len: 0,
    })]
}

/// The match of just this packet.
fn exact_match(packet: &PacketOut) -> Match {
    let mut key = net_flow::extract::metadata(packet.metadata.key());
    let mut buffer = net_packet::Packet::from_frame(&packet.packet);
    net_flow::extract::extract(&mut buffer, &mut key, net_flow::extract::MAX_VLANS);
    let mut mask = FlowMask::new();
    for word in 0..KEY_WORDS {
        mask.set_word(word, u64::MAX);
    }
    Match::new(&key, mask)
}

/// The table of actions that belong to none.
const ANY_TABLE: u8 = 255;

/// Whether the actions make sense for packets of `matching`.
fn check_actions(
    actions: &mut [Action],
    matching: &Match,
    table: u8,
    version: Version,
) -> Result<(), ErrorCode> {
    let params = CheckParams {
        matching,
        max_ports: PortNo::MAX.0,
        table,
        n_tables: ANY_TABLE,
    };
    let formats = check(actions, &params)?;
    if formats.intersects(formats_of(version)) {
        Ok(())
    } else {
        Err(ErrorCode::OfpbacMatchInconsistent)
    }
}
