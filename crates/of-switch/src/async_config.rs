//! Which asynchronous messages a connection wants, by kind, reason and role
//! (OpenFlow 1.3.5, section 7.3.10).

/// A kind of message that the switch sends unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncKind {
    /// A packet for the controller.
    PacketIn = 0,
    /// A port came, went or changed.
    PortStatus = 1,
    /// A rule expired or was deleted.
    FlowRemoved = 2,
    /// The controller's role changed (OpenFlow 1.4).
    RoleStatus = 3,
    /// A table crossed a vacancy threshold (OpenFlow 1.4).
    TableStatus = 4,
    /// Another controller changed a group or meter (OpenFlow 1.4).
    RequestForward = 5,
}

/// How many kinds there are.
pub const KINDS: usize = 6;

/// Reasons of packet-in: no rule matched, by way of the table-miss rule.
pub const PACKET_IN_NO_MATCH: u8 = 0;
/// Reasons of packet-in: an action said so.
pub const PACKET_IN_ACTION: u8 = 1;
/// Reasons of packet-in: the time to live ran out.
pub const PACKET_IN_INVALID_TTL: u8 = 2;

/// For each kind a bitmap of the reasons for which the message is sent, apart for the
/// secondary role and for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// For the primary and equal roles.
    pub primary: [u32; KINDS],
    /// For the secondary role.
    pub secondary: [u32; KINDS],
}

impl AsyncConfig {
    /// What a connection begins with: packets but for an invalid time to live, flow removals and ports;
    /// in the secondary role only ports.
    pub const fn new() -> Self {
        let mut config = Self::none();
        config.primary[AsyncKind::PacketIn as usize] = 0b11_1011;
        config.primary[AsyncKind::FlowRemoved as usize] = 0b11_1111;
        config.primary[AsyncKind::PortStatus as usize] = 0b111;
        config.secondary[AsyncKind::PortStatus as usize] = 0b111;
        config
    }

    /// Nothing at all.
    pub const fn none() -> Self {
        Self {
            primary: [0; KINDS],
            secondary: [0; KINDS],
        }
    }

    /// Whether a message of `kind` for `reason` is wanted.
    pub const fn wants(&self, is_secondary: bool, kind: AsyncKind, reason: u8) -> bool {
        let masks = if is_secondary {
            &self.secondary
        } else {
            &self.primary
        };
        reason < 32 && masks[kind as usize] & (1 << reason) != 0
    }

    /// Switches one reason on or off for one role.
    pub const fn set(&mut self, is_secondary: bool, kind: AsyncKind, reason: u8, on: bool) {
        let masks = if is_secondary {
            &mut self.secondary
        } else {
            &mut self.primary
        };
        let bit = 1 << (reason & 31);
        if on {
            masks[kind as usize] |= bit;
        } else {
            masks[kind as usize] &= !bit;
        }
    }

    /// What `OFPC_INVALID_TTL_TO_CONTROLLER` of OpenFlow 1.1 and 1.2 switches.
    pub const fn invalid_ttl_to_controller(&self) -> bool {
        self.wants(false, AsyncKind::PacketIn, PACKET_IN_INVALID_TTL)
    }
}

impl Default for AsyncConfig {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secondary_role_hears_of_ports_alone() {
        let config = AsyncConfig::new();
        assert!(config.wants(true, AsyncKind::PortStatus, 0));
        assert!(!config.wants(true, AsyncKind::PacketIn, PACKET_IN_ACTION));
        assert!(config.wants(false, AsyncKind::FlowRemoved, 2));
        assert!(!config.invalid_ttl_to_controller());
        assert!(!config.wants(false, AsyncKind::PacketIn, 200));
    }

    #[test]
    fn one_reason_is_switched_alone() {
        let mut config = AsyncConfig::new();
        config.set(false, AsyncKind::PacketIn, PACKET_IN_INVALID_TTL, true);
        assert!(config.invalid_ttl_to_controller());
        config.set(false, AsyncKind::PacketIn, PACKET_IN_ACTION, false);
        assert!(!config.wants(false, AsyncKind::PacketIn, PACKET_IN_ACTION));
        assert!(config.wants(false, AsyncKind::PacketIn, PACKET_IN_NO_MATCH));
    }
}
