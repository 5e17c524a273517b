//! What the switch asks of a datapath's connection tracker.

use dp_lang::{Connection, CtLimit};
use net_flow::CtMatch;

use crate::error::Error;

/// A connection tracker.  All calls may come from any thread.
pub trait Conntrack: Send + Sync {
    /// Hands connections, those of `zone` or all, to `visit` in no order, until it returns false.
    ///
    /// # Errors
    /// They cannot be listed.
    fn visit(
        &self,
        zone: Option<u16>,
        visit: &mut dyn FnMut(Connection) -> bool,
    ) -> Result<(), Error>;

    /// Forgets the connections of `zone`, or of all, that `of` means.  Where `of` names a single
    /// connection, no zone means zone 0.
    ///
    /// # Errors
    /// There is no such connection, where a single one is named; or they cannot be forgotten.
    fn flush(&self, zone: Option<u16>, of: &CtMatch) -> Result<(), Error>;

    /// Sets limits of zones; counts are not looked at.
    ///
    /// # Errors
    /// The tracker has no limits, or refuses.
    fn set_limits(&self, limits: &[CtLimit]) -> Result<(), Error>;

    /// The limits of these zones (none is the default), or of all that have one if none are named.
    ///
    /// # Errors
    /// The tracker has no limits, or refuses.
    fn limits(&self, zones: &[Option<u16>]) -> Result<Vec<CtLimit>, Error>;

    /// Lifts the limits of these zones; none is the default.
    ///
    /// # Errors
    /// The tracker has no limits, or refuses.
    fn delete_limits(&self, zones: &[Option<u16>]) -> Result<(), Error>;
}
