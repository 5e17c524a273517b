//! Flows as the switch and as the kernel have them.

use std::sync::Arc;

use dp_api::{DumpedFlow, Error, FlowStats};
use dp_lang::netlink::{
    ActionContext, decode_actions, decode_key, decode_mask, encode_actions, encode_key,
    encode_mask, ufid_from_bytes, unmatchable,
};
use dp_lang::{Action, PortNo, SlowPath, Ufid, UserCookie, Userspace};
use net_flow::{FlowKey, FlowMask, MiniKey, slot};
use net_netlink::AttrWriter;
use net_netlink::ovs::flow;

use crate::shared::Shared;

/// The attributes of a flow.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) key: Vec<u8>,
    pub(crate) mask: Vec<u8>,
    pub(crate) actions: Vec<u8>,
}

fn bytes(writer: AttrWriter) -> Result<Vec<u8>, Error> {
    writer
        .into_bytes()
        .map_err(|e| Error::Invalid(e.to_string()))
}

/// Attributes of actions for packets from `port`.
pub(crate) fn encode_list(
    shared: &Shared,
    actions: &[Action],
    port: PortNo,
) -> Result<Vec<u8>, Error> {
    let context = ActionContext {
        features: &shared.features,
        pid: shared.pid(port),
    };
    let mut writer = AttrWriter::new();
    encode_actions(actions, &context, &mut writer)
        .map_err(|e| Error::Unsupported(e.to_string()))?;
    bytes(writer)
}

/// Has every packet looked at by the switch.
fn slow_path() -> [Action; 1] {
    let reason = SlowPath {
        match_: true,
        ..SlowPath::default()
    };
    [Action::Userspace(Userspace {
        pid: 0,
        cookie: Some(UserCookie::SlowPath(reason)),
        egress_tunnel: None,
        actions: false,
    })]
}

/// A flow's attributes; `raw_key` is the key as the kernel itself wrote it, where that is known.
///
/// A flow whose mask the kernel cannot express gets actions that hand every packet to the switch.
pub(crate) fn encode(
    shared: &Shared,
    key: &FlowKey,
    mask: &FlowMask,
    actions: &[Action],
    raw_key: Option<&[u8]>,
) -> Result<Encoded, Error> {
    let features = &shared.features;
    let key_bytes = match raw_key {
        Some(raw) => raw.to_vec(),
        None => {
            let mut writer = AttrWriter::new();
            encode_key(key, features, &mut writer);
            bytes(writer)?
        }
    };
    let mut writer = AttrWriter::new();
    encode_mask(key, mask, features, &mut writer);
    let mask_bytes = bytes(writer)?;
    let port = PortNo(key.get(slot::IN_PORT) as u32);
    let actions = if unmatchable(key, mask, features) {
        encode_list(shared, &slow_path(), port)?
    } else {
        encode_list(shared, actions, port)?
    };
    Ok(Encoded {
        key: key_bytes,
        mask: mask_bytes,
        actions,
    })
}

/// What a flow has counted.
pub(crate) fn stats(shared: &Shared, stats: &flow::Stats) -> FlowStats {
    FlowStats {
        packets: stats.packets,
        bytes: stats.bytes,
        used: stats.used.map(|used| shared.instant(used)),
        tcp_flags: u16::from(stats.tcp_flags),
    }
}

/// The id of a flow; one that was made without gets one from its key and mask.
pub(crate) fn ufid(flow: &flow::Flow<'_>) -> Option<Ufid> {
    if let Some(bytes) = &flow.ufid {
        return Some(ufid_from_bytes(bytes));
    }
    let (key, mask) = key_and_mask(flow)?;
    Some(Ufid::of(&MiniKey::new(&key), &MiniKey::new(mask.as_key())))
}

fn key_and_mask(flow: &flow::Flow<'_>) -> Option<(FlowKey, FlowMask)> {
    let key = decode_key(flow.key?).ok()?;
    let mask = match flow.mask {
        Some(mask) => decode_mask(mask, &key).ok()?,
        None => {
            let mut mask = FlowMask::new();
            for (word, _) in key.iter() {
                mask.set_word(word, u64::MAX);
            }
            mask
        }
    };
    Some((key, mask))
}

/// A flow as the switch has it; `None` if it cannot be read.
pub(crate) fn decode(shared: &Shared, flow: &flow::Flow<'_>) -> Option<DumpedFlow> {
    let (key, mask) = key_and_mask(flow)?;
    let actions: Arc<[Action]> = match flow.actions {
        Some(actions) => decode_actions(actions).ok()?.into(),
        None => Arc::new([]),
    };
    let mask = MiniKey::new(mask.as_key());
    Some(DumpedFlow {
        ufid: ufid(flow)?,
        key: MiniKey::new(&key),
        mask,
        actions,
        stats: stats(shared, &flow.stats),
    })
}

/// Whether actions hand packets to the switch.
pub(crate) fn has_userspace(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Userspace(_) => true,
        Action::Clone(inner) | Action::Sample { actions: inner, .. } | Action::DecTtl(inner) => {
            has_userspace(inner)
        }
        Action::CheckPktLen {
            greater,
            less_equal,
            ..
        } => has_userspace(greater) || has_userspace(less_equal),
        _ => false,
    })
}

/// Takes the sockets out of actions, so that the right ones are put in when they are written.
pub(crate) fn forget_pids(actions: &mut [Action]) {
    for action in actions {
        match action {
            Action::Userspace(userspace) => userspace.pid = 0,
            Action::Clone(inner)
            | Action::Sample { actions: inner, .. }
            | Action::DecTtl(inner) => forget_pids(inner),
            Action::CheckPktLen {
                greater,
                less_equal,
                ..
            } => {
                forget_pids(greater);
                forget_pids(less_equal);
            }
            _ => {}
        }
    }
}
