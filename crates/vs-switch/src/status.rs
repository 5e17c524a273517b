//! What a switch reports back, in the terms of the database's columns.

use crate::config::Mac;

/// Where an interface stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceStatus {
    /// The OpenFlow port number, or none when it could not be set up (`ofport` is then -1).
    pub ofport: Option<u16>,
    /// Why it could not be set up; empty if only the log says it.
    pub error: Option<String>,
    /// Its MAC address.
    pub mac_in_use: Option<Mac>,
    /// Its MTU in bytes.
    pub mtu: Option<u32>,
    /// Index of the device in the system; 0 where there is none.
    pub ifindex: Option<u32>,
    /// Whether it is set up administratively.
    pub admin_up: Option<bool>,
    /// Whether its link is there.
    pub link_up: Option<bool>,
    /// How often its link was lost or found.
    pub link_resets: Option<u64>,
    /// Speed in bits a second.
    pub link_speed: Option<u64>,
    /// Whether the link is full duplex.
    pub full_duplex: Option<bool>,
    /// `status`: driver names and the like.
    pub status: Vec<(String, String)>,
}

/// Counters of an interface, by the names of the `statistics` column.
pub type InterfaceStatistics = Vec<(String, i64)>;

/// Where a connection to a controller stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerStatus {
    /// The controller's target.
    pub target: String,
    /// Whether it is connected.
    pub is_connected: bool,
    /// `other`, `master` (primary) or `slave` (secondary).
    pub role: Option<String>,
    /// `status`: `state`, `sec_since_connect`, `last_error` and so on.
    pub status: Vec<(String, String)>,
}

/// Where a bridge stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgeStatus {
    /// The datapath id in use.
    pub datapath_id: u64,
    /// Its controllers.
    pub controllers: Vec<ControllerStatus>,
}

/// What has changed since it was last asked: the names to look at again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Interfaces whose [`InterfaceStatus`] may differ, as (bridge, interface).
    pub interfaces: Vec<(String, String)>,
    /// Bridges whose [`BridgeStatus`] may differ.
    pub bridges: Vec<String>,
}

impl Changes {
    /// Whether nothing is to be looked at.
    pub const fn is_empty(&self) -> bool {
        self.interfaces.is_empty() && self.bridges.is_empty()
    }
}
