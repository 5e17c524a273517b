//! How a bridge is set up.

use std::collections::BTreeMap;

use of_wire::VersionSet;

use crate::tables::TableSettings;

/// What a bridge does while no controller is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// Switches like any learning switch.
    #[default]
    Standalone,
    /// Keeps to the rules it has.
    Secure,
}

/// How IP fragments are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum FragMode {
    /// Later fragments have L4 ports of zero.
    #[default]
    Normal = 0,
    /// Fragments are dropped.
    Drop = 1,
    /// First fragments have their L4 ports (Nicira's extension).
    NxMatch = 3,
}

impl FragMode {
    /// From the number on the wire; `None` for reassembly, which no datapath does.
    pub const fn from_wire(number: u16) -> Option<Self> {
        match number {
            0 => Some(Self::Normal),
            1 => Some(Self::Drop),
            3 => Some(Self::NxMatch),
            _ => None,
        }
    }
}

/// The settings of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Its name, for the log.
    pub name: String,
    /// Its id.
    pub datapath_id: u64,
    /// The OpenFlow versions that may be spoken.
    pub versions: VersionSet,
    /// What it does while no controller is connected.
    pub fail_mode: FailMode,
    /// Whether any primary controller is configured: without one a standalone bridge
    /// switches by a rule of its own, which controllers of other kinds may replace.
    pub has_controllers: bool,
    /// `other_config:dp-desc`.
    pub dp_desc: Option<String>,
    /// `other_config:dp-sn`.
    pub serial: Option<String>,
    /// Tables that are set up in their own way.
    pub tables: BTreeMap<u8, TableSettings>,
}

impl BridgeConfig {
    /// A bridge with the defaults of the database's columns.
    pub fn new(name: &str, datapath_id: u64) -> Self {
        Self {
            name: name.to_owned(),
            datapath_id,
            versions: VersionSet::ALL,
            fail_mode: FailMode::default(),
            has_controllers: false,
            dp_desc: None,
            serial: None,
            tables: BTreeMap::new(),
        }
    }
}
