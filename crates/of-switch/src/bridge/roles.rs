//! Roles: which controller may change the switch.

use of_wire::message::{ControllerRole, RoleMessage, RoleStatus};
use of_wire::{Body, ErrorCode, Message, Version};

use crate::bridge::Bridge;
use crate::bridge::dispatch::Asked;
use crate::conn::ConnId;
use crate::wire;

/// Reason of a role status: another controller became the primary one.
const PRIMARY_REQUEST: u8 = 0;

/// The election number that stands for none.
const NO_GENERATION: u64 = u64::MAX;

impl Bridge {
    pub(super) fn handle_role(
        &mut self,
        asked: &Asked<'_>,
        request: RoleMessage,
    ) -> Result<(), ErrorCode> {
        let takes_part = matches!(
            request.role,
            ControllerRole::Primary | ControllerRole::Secondary
        );
        if let (true, Some(generation)) = (takes_part, request.generation_id) {
            self.elect(generation)?;
        }
        if request.role != ControllerRole::NoChange {
            self.set_role(asked.conn, request.role);
        }
        let Some(conn) = self.conns.get(&asked.conn) else {
            return Ok(());
        };
        let generation = self.generation.unwrap_or(NO_GENERATION);
        let reply = RoleMessage {
            role: conn.role,
            generation_id: request.generation_id.map(|_| generation),
        };
        self.reply(asked.conn, &asked.answer(Body::RoleReply(reply)));
        Ok(())
    }

    /// Takes over a newer election number (OpenFlow 1.3.5, section 6.3.6).
    fn elect(&mut self, generation: u64) -> Result<(), ErrorCode> {
        if let Some(current) = self.generation
            && (generation.wrapping_sub(current) as i64) < 0
        {
            return Err(ErrorCode::OfprrfcStale);
        }
        self.generation = Some(generation);
        Ok(())
    }

    fn set_role(&mut self, id: ConnId, role: ControllerRole) {
        if role == ControllerRole::Primary {
            let generation = self.generation.unwrap_or(NO_GENERATION);
            for (other, conn) in &mut self.conns {
                if *other != id && conn.role == ControllerRole::Primary {
                    conn.role = ControllerRole::Secondary;
                    let has_message = |v: &Version| *v >= Version::V13;
                    let Some(version) = conn.version().filter(has_message) else {
                        continue;
                    };
                    let status = RoleStatus {
                        role: ControllerRole::Secondary,
                        reason: PRIMARY_REQUEST,
                        generation_id: generation,
                    };
                    let xid = conn.take_xid();
                    let message = Message::new(version, xid, Body::RoleStatus(status));
                    conn.send_unasked(wire::encode(&message));
                }
            }
        }
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.role = role;
        }
    }
}
