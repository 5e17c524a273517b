//! Tracked connections that controllers have forgotten.

use dp_api::Error;
use of_wire::message::CtFlush;

use crate::switch::Switch;

impl Switch {
    /// Forgets tracked connections of the datapath that `bridge` is on.
    pub(crate) fn ct_flush(&mut self, bridge: &str, flush: &CtFlush) {
        let Some(owner) = self.bridges.get(bridge) else {
            return;
        };
        let Some(backer) = self.backers.get(&owner.kind) else {
            return;
        };
        let Some(tracker) = backer.datapath.conntrack() else {
            base::log_limited!(
                Warn,
                "ofproto_dpif",
                (1, 5),
                "{bridge}: connections cannot be forgotten, since datapath has no connection tracker"
            );
            return;
        };
        match tracker.flush(flush.zone, &flush.of) {
            // There was none.
            Ok(()) | Err(Error::NotFound(_)) => {}
            Err(error) => base::log_limited!(
                Warn,
                "ofproto_dpif",
                (1, 5),
                "{bridge}: connections were not forgotten: {error}"
            ),
        }
    }
}
