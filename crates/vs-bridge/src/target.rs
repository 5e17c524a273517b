//! The switch, as the configuration sees it.

use base::Instant;
use vs_switch::config::Step;
use vs_switch::status::{BridgeStatus, Changes, InterfaceStatistics, InterfaceStatus};

/// What carries out steps and reports.  The switch implements it; tests have their own.
pub trait Target {
    /// Carries out a step.  What fails inside it (a device that is not there) shows in the
    /// status of the interface concerned.
    ///
    /// # Errors
    /// The step as a whole could not be carried out.
    fn apply(&mut self, step: &Step, now: Instant) -> Result<(), String>;

    /// The whole configuration was carried out once.
    fn configured(&mut self) {}

    /// What may have changed since this was last asked.
    fn take_changes(&mut self) -> Changes;

    /// Where an interface stands.
    fn interface_status(&self, bridge: &str, interface: &str) -> Option<InterfaceStatus>;

    /// What an interface has counted.
    fn interface_statistics(&self, bridge: &str, interface: &str) -> Option<InterfaceStatistics>;

    /// What the mirrors of a bridge have copied: name, packets, bytes.
    fn mirror_statistics(&self, bridge: &str) -> Vec<(String, u64, u64)>;

    /// Where a bridge stands.
    fn bridge_status(&self, bridge: &str) -> Option<BridgeStatus>;

    /// Whether everything that steps changed is in force for packets that arrive now.
    fn is_settled(&self) -> bool;

    /// The types of datapaths and of interfaces that can be configured.
    fn types(&self) -> (Vec<String>, Vec<String>);
}
