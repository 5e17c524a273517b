//! `dec_ttl`.

use net_flow::slot;
use net_flow::types::eth_type;

use crate::actions::Next;
use crate::ctx::Ctx;
use crate::output::{ToController, reason};
use crate::trace::NodeKind;

impl Ctx<'_> {
    /// Decrements the time to live.  A packet whose time is up goes to `controllers`, or to
    /// controller 0, and no further in this list.
    pub(crate) fn dec_ttl(&mut self, controllers: &[u16]) -> Next {
        self.flow.mark(slot::NW_TTL);
        self.flow.mark(slot::NW_PROTO);
        if !self.flow.is_ip() {
            return Next::Continue;
        }
        let ttl = self.flow.read(slot::NW_TTL);
        if ttl > 1 {
            self.flow.write(slot::NW_TTL, ttl - 1, 0xff);
            return Next::Continue;
        }
        let default = [0];
        let controllers = if controllers.is_empty() {
            &default[..]
        } else {
            controllers
        };
        for controller_id in controllers {
            self.send_to_controller(&ToController {
                max_len: u16::MAX,
                reason: reason::INVALID_TTL,
                controller_id: *controller_id,
                userdata: &[],
            });
        }
        let version = if self.flow.eth_type() == eth_type::IPV4 {
            4
        } else {
            6
        };
        self.report(NodeKind::Warning, || {
            format!("IPv{version} decrement TTL exception")
        });
        Next::Stop
    }
}
