//! Coverage counters, under the original's names where it has them.

use base::{Counter, Coverage};

macro_rules! counters {
    ($($name:ident)*) => {
        /// The counters of a switch.
        #[derive(Clone, Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            pub(crate) fn new(coverage: &Coverage) -> Self {
                Self {
                    $($name: coverage.counter(stringify!($name)),)*
                }
            }
        }
    };
}

counters! {
    ofproto_packet_out
    ofproto_update_port
    rev_reconfigure
    rev_port_toggled
    rev_flow_table
    rev_mac_learning
    xlate_actions
    packet_in_overflow
    upcall_flow_deferred
    upcall_flow_limit_hit
}
