//! What drivers say about links, in OpenFlow's terms.

use net_dev::{Features, Modes, TxOffloads};
use sys::ethtool;

/// Bits of ethtool's first word of link modes, with those of [`Modes`].
const MODES: [(u32, u32); 12] = [
    (0, 0),
    (1, 1),
    (2, 2),
    (3, 3),
    (4, 4),
    (5, 5),
    (12, 6),
    (23, 7),
    (24, 7),
    (7, 11),
    (10, 12),
    (6, 13),
];

fn modes(bits: u32) -> Modes {
    let set = MODES.iter().filter(|(from, _)| bits >> from & 1 != 0);
    Modes(set.fold(0, |all, (_, to)| all | 1 << to))
}

const PORT_TWISTED_PAIR: u8 = 0;
const PORT_FIBRE: u8 = 3;

/// The bit of a mode in use.
const fn current(speed: u32, full: bool) -> u32 {
    match (speed, full) {
        (10, false) => 1,
        (10, true) => 1 << 1,
        (100, false) => 1 << 2,
        (100, true) => 1 << 3,
        (1000, false) => 1 << 4,
        (1000, true) => 1 << 5,
        (10_000, _) => 1 << 6,
        (40_000, _) => 1 << 7,
        (100_000, _) => 1 << 8,
        (1_000_000, _) => 1 << 9,
        _ => Modes::OTHER,
    }
}

/// Asks the device's driver.
pub(crate) fn features(name: &str) -> Features {
    let Ok(link) = ethtool::link(name) else {
        return Features::default();
    };
    let full = link.full_duplex.unwrap_or(false);
    let speed = link.speed.map_or(0, |speed| current(speed, full));
    let port = match link.port {
        PORT_TWISTED_PAIR => Modes::COPPER,
        PORT_FIBRE => Modes::FIBER,
        _ => 0,
    };
    let autoneg = if link.autoneg { Modes::AUTONEG } else { 0 };
    Features {
        current: Modes(speed | port | autoneg),
        advertised: modes(link.advertising),
        supported: modes(link.supported),
        peer: modes(link.peer),
        speed: link.speed,
        full_duplex: link.full_duplex,
    }
}

/// Packets go to the kernel with a header that says what is still to be computed.
pub(crate) const TX_OFFLOADS: TxOffloads = TxOffloads {
    l4_checksum: true,
    tcp_segments: true,
};

/// The `status` column's part that the driver gives.
pub(crate) fn status(name: &str) -> Vec<(String, String)> {
    let Ok(driver) = ethtool::driver(name) else {
        return Vec::new();
    };
    vec![
        ("driver_name".to_owned(), driver.name),
        ("driver_version".to_owned(), driver.version),
        ("firmware_version".to_owned(), driver.firmware),
    ]
}
