//! Bundles carried out: all of their messages or none.

use std::time::Duration;

use base::Instant;
use of_wire::message::{BundleControl, FlowModCommand, GroupMod};
use of_wire::{Body, ErrorCode, Message};

use crate::bridge::dispatch::Asked;
use crate::bridge::flows::update_counters_for;
use crate::bridge::{Bridge, Facts, Output, Request};
use crate::bundle::Control;
use crate::conn::{ConnId, Frame};
use crate::tables::{Changes, FlowModRules};

/// Flag of a bundle: readers see all of it or nothing.
const ATOMIC: u16 = 1;
/// Bytes before the message inside a bundle-add message, by its own type and by that of an
/// experimenter's.
const BEFORE_INNER: usize = 16;
const BEFORE_INNER_EXPERIMENTER: usize = 24;
/// Type of experimenters' messages.
const EXPERIMENTER: u8 = 4;

/// What has been done of a bundle.
#[derive(Default)]
struct Progress {
    /// Changes, to be taken back if it fails.
    changes: Changes,
    /// How many of them are part of a version that was published for a packet-out.
    published: usize,
    /// What is told to the owner if it succeeds.
    outputs: Vec<Output>,
    /// What is done once nothing can fail any more.
    port_mods: Vec<of_wire::message::PortMod>,
    commands: Vec<FlowModCommand>,
    /// Group-mods with their transaction ids and what they changed.
    group_mods: Vec<(u32, GroupMod, Changes)>,
}

impl Bridge {
    /// Sets after how long an untouched bundle is dropped.
    pub const fn set_bundle_idle_timeout(&mut self, timeout: Duration) {
        self.bundle_idle_timeout = timeout;
    }

    pub(super) fn handle_bundle_control(
        &mut self,
        asked: &Asked<'_>,
        control: BundleControl,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let Some(conn) = self.conns.get_mut(&asked.conn) else {
            return Ok(());
        };
        let done = conn.bundles.control(control, asked.request(), asked.now)?;
        if let Control::Commit { flags, messages } = done {
            self.commit(asked, flags, &messages, facts)?;
        }
        let reply = BundleControl {
            id: control.id,
            kind: control.kind + 1,
            flags: 0,
        };
        self.reply(asked.conn, &asked.answer(Body::BundleControl(reply)));
        Ok(())
    }

    pub(super) fn handle_bundle_add(
        &mut self,
        asked: &Asked<'_>,
        id: u32,
        flags: u16,
    ) -> Result<(), ErrorCode> {
        let before = if asked.frame.kind() == EXPERIMENTER {
            BEFORE_INNER_EXPERIMENTER
        } else {
            BEFORE_INNER
        };
        let rest = asked.frame.bytes.get(before..).unwrap_or_default();
        let len = of_wire::codec::claimed_len(rest).unwrap_or(0);
        let inner = rest.get(..len).ok_or(ErrorCode::OfpbfcMsgBadLen)?;
        let Some(conn) = self.conns.get_mut(&asked.conn) else {
            return Ok(());
        };
        conn.bundles
            .add(id, flags, inner, asked.request(), asked.now)
    }

    /// Carries out the messages of a bundle.  What is wrong with one of them is told about
    /// that message, and that the bundle has failed about the commit.
    fn commit(
        &mut self,
        asked: &Asked<'_>,
        flags: u16,
        messages: &[Vec<u8>],
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        self.publish();
        let before = self.view().version();
        let mut progress = Progress::default();
        for bytes in messages {
            let frame = Frame {
                bytes: bytes.clone(),
            };
            let inner = Asked {
                frame: &frame,
                xid: frame.xid(),
                ..*asked
            };
            if let Err(code) = self.carry_out(&inner, flags, &mut progress, facts) {
                self.tables.undo(progress.changes);
                if self.view().version() != before {
                    // Versions that were made on the way are no more; readers go on with one
                    // that is as it was.
                    self.changes.clear();
                    self.publish();
                }
                self.fail(asked.conn, &Request::new(asked.version, &frame), code);
                return Err(ErrorCode::OfpbfcMsgFailed);
            }
        }
        let rest = progress.changes.split_off(progress.published);
        self.outputs.extend(progress.outputs);
        update_counters_for(&progress.changes, facts);
        update_counters_for(&rest, facts);
        self.tell_removals(&progress.changes, asked.now);
        self.note_changes(rest, asked.now);
        for port_mod in progress.port_mods {
            self.handle_port_mod(asked, &port_mod)?;
        }
        for (xid, request, changes) in &progress.group_mods {
            self.forward_group_mod(asked.conn, *xid, request, changes);
        }
        if let Some(conn) = self.conns.get_mut(&asked.conn) {
            for command in progress.commands {
                conn.tally.note(command, asked.now);
            }
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        asked: &Asked<'_>,
        flags: u16,
        progress: &mut Progress,
        facts: &dyn Facts,
    ) -> Result<(), ErrorCode> {
        let Some(conn) = self.conns.get(&asked.conn) else {
            return Ok(());
        };
        let message = Message::decode(&asked.frame.bytes, conn.dialect)?;
        match message.body {
            Body::FlowMod(mut flow_mod) => {
                self.check_flow_mod(asked, &mut flow_mod, facts)?;
                let rules = FlowModRules::of_version(asked.version);
                let changes = self.tables.apply(&flow_mod, rules, asked.now)?;
                progress.changes.extend(changes);
                progress.commands.push(flow_mod.command);
            }
            Body::PacketOut(mut packet) => {
                self.check_packet_out(asked, &mut packet, facts)?;
                if self.tables.is_changed() {
                    let view = self.tables.publish();
                    let changes = progress.changes[progress.published..].to_vec();
                    progress.published = progress.changes.len();
                    progress
                        .outputs
                        .push(Output::TablesChanged { view, changes });
                }
                progress.outputs.push(Output::PacketOut {
                    conn: asked.conn,
                    request: asked.request(),
                    packet,
                });
            }
            Body::PortMod(port_mod) => {
                if flags & ATOMIC != 0 {
                    return Err(ErrorCode::OfpbfcMsgUnsup);
                }
                self.check_port_mod(&port_mod)?;
                progress.port_mods.push(*port_mod);
            }
            Body::GroupMod(request) => {
                let changes = self.apply_group(&request, asked.now, facts)?;
                progress
                    .group_mods
                    .push((asked.xid, *request, changes.clone()));
                progress.changes.extend(changes);
            }
            _ => return Err(ErrorCode::OfpbfcMsgUnsup),
        }
        Ok(())
    }

    /// Drops bundles that nobody has touched for long.
    pub(super) fn expire_bundles(&mut self, id: ConnId, now: Instant) {
        let timeout = self.bundle_idle_timeout;
        let conn = self.conns.get_mut(&id);
        let dropped = conn.map(|c| c.bundles.expire(timeout, now));
        for request in dropped.unwrap_or_default() {
            self.fail(id, &request, ErrorCode::OfpbfcTimeout);
        }
    }
}
