//! Actions.

use net_netlink::{Attr, AttrWriter, Attrs};

use super::{Error, conntrack, decode_cookie, encode_cookie, lists, malformed, set};
use crate::action::{Action, Userspace};
use crate::{Features, PortNo};

const OUTPUT: u16 = 1;
const USERSPACE: u16 = 2;
const SET: u16 = 3;
const PUSH_VLAN: u16 = 4;
const POP_VLAN: u16 = 5;
const SAMPLE: u16 = 6;
const RECIRC: u16 = 7;
const HASH: u16 = 8;
const PUSH_MPLS: u16 = 9;
const POP_MPLS: u16 = 10;
const SET_MASKED: u16 = 11;
const CT: u16 = 12;
const TRUNC: u16 = 13;
const PUSH_ETH: u16 = 14;
const POP_ETH: u16 = 15;
const CT_CLEAR: u16 = 16;
const METER: u16 = 19;
const CLONE: u16 = 20;
const CHECK_PKT_LEN: u16 = 21;
const DEC_TTL: u16 = 23;
const DROP: u16 = 24;

const USERSPACE_PID: u16 = 1;
const USERSPACE_USERDATA: u16 = 2;
const USERSPACE_EGRESS_TUN_PORT: u16 = 3;
const USERSPACE_ACTIONS: u16 = 4;

/// How deep the kernel lets actions be nested.
const MAX_DEPTH: usize = 16;

/// What actions are written for.
#[derive(Clone, Copy, Debug)]
pub struct ActionContext<'a> {
    /// What the datapath can do.
    pub features: &'a Features,
    /// The socket that `userspace` actions name where they do not name one themselves (0).
    pub pid: u32,
}

/// Puts the attributes of actions.
///
/// # Errors
/// An action that the kernel does not have, by name.
pub fn encode_actions(
    actions: &[Action],
    context: &ActionContext<'_>,
    to: &mut AttrWriter,
) -> Result<(), Error> {
    for action in actions {
        // What a drop is followed by is not done; without the action, the end of the list drops.
        if let Action::Drop(reason) = action {
            if context.features.explicit_drop {
                to.put_u32(DROP, *reason);
            }
            return Ok(());
        }
        encode_action(action, context, to)?;
    }
    Ok(())
}

/// Puts the attribute of one action.
fn encode_action(
    action: &Action,
    context: &ActionContext<'_>,
    to: &mut AttrWriter,
) -> Result<(), Error> {
    match action {
        Action::Output(port) => _ = to.put_u32(OUTPUT, port.0),
        Action::Userspace(userspace) => put_userspace(userspace, context.pid, to),
        Action::Set(field) => set::put(field, (SET, SET_MASKED), to),
        Action::PushVlan { tpid, tci } => {
            let bytes = [tpid.to_be_bytes(), tci.to_be_bytes()].concat();
            to.put(PUSH_VLAN, &bytes);
        }
        Action::PopVlan => _ = to.put_flag(POP_VLAN),
        Action::PushMpls { ethertype, lse } => {
            let [l0, l1, l2, l3] = lse.to_be_bytes();
            let [e0, e1] = ethertype.to_be_bytes();
            to.put(PUSH_MPLS, &[l0, l1, l2, l3, e0, e1, 0, 0]);
        }
        Action::PopMpls { ethertype } => _ = to.put_be16(POP_MPLS, *ethertype),
        Action::PushEth { src, dst } => {
            let (src, dst) = (src.to_be_bytes(), dst.to_be_bytes());
            to.put(PUSH_ETH, &[&src[2..], &dst[2..]].concat());
        }
        Action::PopEth => _ = to.put_flag(POP_ETH),
        Action::Recirc(id) => _ = to.put_u32(RECIRC, *id),
        Action::Hash { algorithm, basis } => {
            let bytes = [algorithm.to_ne_bytes(), basis.to_ne_bytes()].concat();
            to.put(HASH, &bytes);
        }
        Action::Trunc(len) => _ = to.put_u32(TRUNC, *len),
        Action::Sample {
            probability,
            actions,
        } => lists::put_sample(SAMPLE, *probability, actions, context, to)?,
        Action::Clone(actions) => lists::put_list(CLONE, actions, context, to)?,
        Action::CheckPktLen {
            len,
            greater,
            less_equal,
        } => lists::put_check_pkt_len(CHECK_PKT_LEN, *len, (greater, less_equal), context, to)?,
        Action::DecTtl(actions) => lists::put_dec_ttl(DEC_TTL, actions, context, to)?,
        Action::Ct(ct) => conntrack::put(CT, ct, context.features, to),
        Action::CtClear => _ = to.put_flag(CT_CLEAR),
        Action::Meter(id) => _ = to.put_u32(METER, *id),
        Action::Drop(reason) => _ = to.put_u32(DROP, *reason),
        Action::Other { kind, value } => _ = to.put(*kind, value),
        Action::TunnelPop(_) => {
            return Err(Error("the kernel has no tnl_pop action".to_owned()));
        }
    }
    Ok(())
}

fn put_userspace(userspace: &Userspace, pid: u32, to: &mut AttrWriter) {
    let nest = to.open(USERSPACE);
    let own = if userspace.pid == 0 {
        pid
    } else {
        userspace.pid
    };
    to.put_u32(USERSPACE_PID, own);
    if let Some(cookie) = &userspace.cookie {
        to.put(USERSPACE_USERDATA, &encode_cookie(cookie));
    }
    if let Some(port) = userspace.egress_tunnel {
        to.put_u32(USERSPACE_EGRESS_TUN_PORT, port.0);
    }
    if userspace.actions {
        to.put_flag(USERSPACE_ACTIONS);
    }
    to.close(nest);
}

/// Actions from their attributes.  One that is not known is kept as its bytes are.
///
/// # Errors
/// An attribute is too short, or lists are nested too deep.
pub fn decode_actions(attrs: Attrs<'_>) -> Result<Vec<Action>, Error> {
    decode_list(attrs, MAX_DEPTH)
}

pub(super) fn decode_list(attrs: Attrs<'_>, depth: usize) -> Result<Vec<Action>, Error> {
    let deeper = depth
        .checked_sub(1)
        .ok_or_else(|| Error("actions are nested too deep".to_owned()))?;
    attrs.map(|attr| decode_action(&attr, deeper)).collect()
}

fn decode_action(attr: &Attr<'_>, depth: usize) -> Result<Action, Error> {
    let number = || attr.u32().ok_or_else(|| malformed("action"));
    let short = || attr.be16().ok_or_else(|| malformed("action"));
    Ok(match attr.kind {
        OUTPUT => Action::Output(PortNo(number()?)),
        USERSPACE => Action::Userspace(userspace(attr.nested())?),
        SET => Action::Set(set::read(attr.nested(), false)?),
        SET_MASKED => Action::Set(set::read(attr.nested(), true)?),
        PUSH_VLAN => {
            let [t0, t1, c0, c1] = *attr
                .value
                .first_chunk()
                .ok_or_else(|| malformed("action"))?;
            Action::PushVlan {
                tpid: u16::from_be_bytes([t0, t1]),
                tci: u16::from_be_bytes([c0, c1]),
            }
        }
        POP_VLAN => Action::PopVlan,
        PUSH_MPLS => {
            let [l0, l1, l2, l3, e0, e1] = *attr
                .value
                .first_chunk()
                .ok_or_else(|| malformed("action"))?;
            Action::PushMpls {
                ethertype: u16::from_be_bytes([e0, e1]),
                lse: u32::from_be_bytes([l0, l1, l2, l3]),
            }
        }
        POP_MPLS => Action::PopMpls {
            ethertype: short()?,
        },
        PUSH_ETH => {
            let addresses: &[u8; 12] = attr
                .value
                .first_chunk()
                .ok_or_else(|| malformed("action"))?;
            let mac = |at: usize| {
                let bytes = &addresses[at..at + 6];
                bytes.iter().fold(0, |mac, b| mac << 8 | u64::from(*b))
            };
            Action::PushEth {
                src: mac(0),
                dst: mac(6),
            }
        }
        POP_ETH => Action::PopEth,
        RECIRC => Action::Recirc(number()?),
        HASH => {
            let [a0, a1, a2, a3, basis @ ..] = *attr
                .value
                .first_chunk::<8>()
                .ok_or_else(|| malformed("action"))?;
            Action::Hash {
                algorithm: u32::from_ne_bytes([a0, a1, a2, a3]),
                basis: u32::from_ne_bytes(basis),
            }
        }
        TRUNC => Action::Trunc(number()?),
        SAMPLE => lists::read_sample(attr.nested(), depth)?,
        CLONE => Action::Clone(decode_list(attr.nested(), depth)?),
        CHECK_PKT_LEN => lists::read_check_pkt_len(attr.nested(), depth)?,
        DEC_TTL => lists::read_dec_ttl(attr.nested(), depth)?,
        CT => Action::Ct(Box::new(conntrack::read(attr.nested())?)),
        CT_CLEAR => Action::CtClear,
        METER => Action::Meter(number()?),
        DROP => Action::Drop(number()?),
        kind => Action::Other {
            kind,
            value: attr.value.into(),
        },
    })
}

fn userspace(attrs: Attrs<'_>) -> Result<Userspace, Error> {
    let pid = attrs.find(USERSPACE_PID).and_then(|a| a.u32());
    let port = attrs.find(USERSPACE_EGRESS_TUN_PORT);
    let cookie = attrs.find(USERSPACE_USERDATA);
    Ok(Userspace {
        pid: pid.ok_or_else(|| malformed("userspace"))?,
        cookie: cookie.map(|a| decode_cookie(a.value)),
        egress_tunnel: port.and_then(|a| a.u32()).map(PortNo),
        actions: attrs.find(USERSPACE_ACTIONS).is_some(),
    })
}
