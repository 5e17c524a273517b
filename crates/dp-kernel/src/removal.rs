//! Many flows removed by few calls.

use dp_api::{Error, FlowStats};
use dp_lang::Ufid;
use dp_lang::netlink::ufid_to_bytes;
use net_netlink::errno as number_of;
use net_netlink::ovs::flow::{self, FlowRef, omit};
use net_nlsock::{Answer, Train};

use crate::datapath::no_flow;
use crate::flow as flows;
use crate::kernel::{errno, error};
use crate::shared::Shared;

/// Flows that are removed together at most, so that others get at the datapath in between.
pub(crate) const CHUNK: usize = 1024;

/// Removes flows, of which those with a key are known to the kernel by it alone.
pub(crate) fn remove(
    shared: &Shared,
    wanted: &[(Ufid, Option<Vec<u8>>)],
    visit: &mut dyn FnMut(Ufid, Result<FlowStats, Error>),
) {
    let mut train = Train::new();
    let family = shared.kernel.families.flow;
    let leave_out = omit::KEY | omit::MASK | omit::ACTIONS;
    for (ufid, key) in wanted {
        let id = ufid_to_bytes(*ufid);
        let which = key.as_deref().map_or(FlowRef::Ufid(&id), FlowRef::Key);
        let pushed = train.push(&mut flow::delete(family, shared.dp, which, leave_out));
        // An id and a key that the kernel told are never too long for a message.
        debug_assert!(pushed.is_ok());
    }
    let mut counted = vec![FlowStats::default(); wanted.len()];
    let mut told = vec![false; wanted.len()];
    let outcome = shared.kernel.with(|socket| {
        socket.run(&mut train, |index, answer| {
            let Some((ufid, _)) = wanted.get(index) else {
                return;
            };
            match answer {
                Answer::Message(message) => {
                    if let Some(flow) = flow::Flow::parse(message) {
                        counted[index] = flows::stats(shared, &flow.stats);
                    }
                }
                Answer::Outcome(outcome) => {
                    told[index] = true;
                    let result = match outcome {
                        Ok(()) => Ok(std::mem::take(&mut counted[index])),
                        Err(e) if number_of(&e) == Some(errno::ENOENT) => Err(no_flow(*ufid)),
                        Err(e) => Err(error(&e)),
                    };
                    visit(*ufid, result);
                }
            }
        })
    });
    if let Err(e) = outcome {
        let untold = wanted.iter().zip(told).filter(|(_, told)| !told);
        untold.for_each(|((ufid, _), _)| visit(*ufid, Err(error(&e))));
    }
}
