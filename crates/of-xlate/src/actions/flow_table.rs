//! Actions that concern flow tables.

use net_flow::PortNo;
use of_wire::action::{Resubmit, WriteMetadata};

use net_flow::slot;

use crate::ctx::Ctx;
use crate::lookup::Query;

impl Ctx<'_> {
    pub(crate) fn resubmit(&mut self, action: Resubmit, last: bool) {
        let in_port = match action.in_port {
            PortNo::IN_PORT => self.flow.in_port(),
            port => port,
        };
        let table = match action.table {
            255 => self.at.table,
            table => table,
        };
        // From the switch's own tables, a miss may still go to the controllers.
        let query = Query {
            table,
            in_port,
            may_packet_in: self.at.internal,
            honor_miss: self.at.internal,
            by_connection: action.with_ct_orig,
        };
        self.go_to_table(&query, last, false);
    }

    pub(crate) const fn write_metadata(&mut self, action: WriteMetadata) {
        let (value, mask) = (action.value as u128, action.mask as u128);
        self.flow.set_masked(slot::METADATA, value, mask);
    }
}
