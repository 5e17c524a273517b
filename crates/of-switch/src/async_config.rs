//! Which asynchronous messages a connection wants, by kind, reason and role
//! (OpenFlow 1.3.5, section 7.3.10).

use of_wire::Version;
use of_wire::message::{AsyncConfig, AsyncKind, PacketInReason};

/// What a connection begins with: packets but for an invalid time to live, flow removals
/// and ports; in the secondary role only ports.
pub fn default_config() -> AsyncConfig {
    let mut config = AsyncConfig::default();
    config.primary[AsyncKind::PacketIn as usize] = 0b11_1011;
    config.primary[AsyncKind::FlowRemoved as usize] = 0b11_1111;
    config.primary[AsyncKind::PortStatus as usize] = 0b111;
    config.secondary[AsyncKind::PortStatus as usize] = 0b111;
    config
}

/// Whether `config` lets a message of `kind` for `reason` pass.
pub fn wants(config: &AsyncConfig, is_secondary: bool, kind: AsyncKind, reason: u8) -> bool {
    let masks = if is_secondary {
        &config.secondary
    } else {
        &config.primary
    };
    reason < 32 && masks[kind as usize] & (1 << reason) != 0
}

/// The part of `config` that `version` knows.
pub fn shown(config: &AsyncConfig, version: Version) -> AsyncConfig {
    let mut shown = *config;
    if version < Version::V14 {
        for masks in [&mut shown.primary, &mut shown.secondary] {
            masks[AsyncKind::PacketIn as usize] &= 0b111;
            masks[AsyncKind::FlowRemoved as usize] &= 0b1111;
        }
    }
    shown
}

/// What `OFPC_INVALID_TTL_TO_CONTROLLER` of OpenFlow 1.1 and 1.2 switches.
pub fn invalid_ttl_to_controller(config: &AsyncConfig) -> bool {
    wants(
        config,
        false,
        AsyncKind::PacketIn,
        PacketInReason::InvalidTtl as u8,
    )
}

/// Switches `OFPC_INVALID_TTL_TO_CONTROLLER`.
pub fn set_invalid_ttl_to_controller(config: &mut AsyncConfig, on: bool) {
    let bit = 1 << PacketInReason::InvalidTtl as u8;
    let mask = &mut config.primary[AsyncKind::PacketIn as usize];
    *mask = if on { *mask | bit } else { *mask & !bit };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secondary_role_hears_of_ports_alone() {
        let config = default_config();
        assert!(wants(&config, true, AsyncKind::PortStatus, 0));
        assert!(!wants(&config, true, AsyncKind::PacketIn, 1));
        assert!(wants(&config, false, AsyncKind::FlowRemoved, 2));
        assert!(!wants(&config, false, AsyncKind::PacketIn, 200));
    }

    #[test]
    fn invalid_ttl_is_off_at_first() {
        let mut config = default_config();
        assert!(!invalid_ttl_to_controller(&config));
        set_invalid_ttl_to_controller(&mut config, true);
        assert!(invalid_ttl_to_controller(&config));
        set_invalid_ttl_to_controller(&mut config, false);
        assert_eq!(config, default_config());
    }
}
