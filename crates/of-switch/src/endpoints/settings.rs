//! How the endpoints of a bridge are set up.

use std::time::Duration;

use ::io::stream::{DEFAULT_DSCP, is_active};

use crate::conn::{ConnConfig, ConnKind};

/// Probes of the management socket's connections.
const MANAGEMENT_PROBE: Duration = Duration::from_secs(60);

/// Where controllers are, or come from (a row of `Controller`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    /// Whom to connect to (`tcp:...`), or where to listen (`ptcp:...`).
    pub target: String,
    /// Serves anybody; never decides on failure.  What listens always does so.
    pub service: bool,
    /// The longest pause between attempts; zero for the default of 8 seconds.
    pub max_backoff: Duration,
    /// After how long without a sign of life the peer is probed; zero for never.
    pub inactivity_probe: Duration,
    /// Packets a second at most, 0 for no limit.
    pub rate_limit: u32,
    /// Packets in one burst.
    pub burst_limit: u32,
    /// Packets that may wait to be sent.
    pub queue_size: usize,
    /// Whether anything is sent unasked.
    pub enable_async: bool,
    /// Mark of the packets of TCP and TLS.
    pub dscp: u8,
}

impl ControllerSettings {
    /// The defaults of the database's columns.
    pub fn new(target: &str) -> Self {
        Self {
            target: target.to_owned(),
            service: false,
            max_backoff: Duration::ZERO,
            inactivity_probe: Duration::from_secs(5),
            rate_limit: 0,
            burst_limit: 0,
            queue_size: 100,
            enable_async: true,
            dscp: DEFAULT_DSCP,
        }
    }

    /// The management socket of a bridge.
    pub(super) fn management(path: &str) -> Self {
        Self {
            service: true,
            inactivity_probe: MANAGEMENT_PROBE,
            dscp: 0,
            ..Self::new(&format!("punix:{path}"))
        }
    }

    /// Whether it is a controller that decides, with others, on failure.
    pub fn is_primary(&self) -> bool {
        !self.service && is_active(&self.target)
    }

    pub(super) fn conn(&self, bridge: &str, peer: &str) -> ConnConfig {
        let kind = if self.is_primary() {
            ConnKind::Primary
        } else {
            ConnKind::Service
        };
        ConnConfig {
            rate_limit: self.rate_limit,
            burst_limit: self.burst_limit,
            queue_size: self.queue_size,
            enable_async: self.enable_async,
            ..ConnConfig::new(&format!("{bridge}<->{peer}"), kind)
        }
    }
}

/// The endpoints of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSettings {
    /// The bridge's name.
    pub bridge: String,
    /// Path of the management socket (`RUNDIR/BRIDGE.mgmt`).
    pub management: Option<String>,
    /// Path of the socket on which messages of controllers can be watched
    /// (`RUNDIR/BRIDGE.snoop`).
    pub snoop: Option<String>,
    /// The controllers.
    pub controllers: Vec<ControllerSettings>,
}
