//! Actions that hold others: `sample`, `clone`, `check_pkt_len`, `dec_ttl`.

use net_netlink::{AttrWriter, Attrs};

use super::action::{ActionContext, decode_list, encode_actions};
use super::{Error, malformed};
use crate::action::Action;

const SAMPLE_PROBABILITY: u16 = 1;
const SAMPLE_ACTIONS: u16 = 2;

const PKT_LEN: u16 = 1;
const IF_GREATER: u16 = 2;
const IF_LESS_EQUAL: u16 = 3;

const DEC_TTL_ACTION: u16 = 1;

/// Puts a list as an attribute.
pub(super) fn put_list(
    kind: u16,
    actions: &[Action],
    context: &ActionContext<'_>,
    to: &mut AttrWriter,
) -> Result<(), Error> {
    let nest = to.open(kind);
    let outcome = encode_actions(actions, context, to);
    to.close(nest);
    outcome
}

pub(super) fn put_sample(
    kind: u16,
    probability: u32,
    actions: &[Action],
    context: &ActionContext<'_>,
    to: &mut AttrWriter,
) -> Result<(), Error> {
    let nest = to.open(kind);
    to.put_u32(SAMPLE_PROBABILITY, probability);
    let outcome = put_list(SAMPLE_ACTIONS, actions, context, to);
    to.close(nest);
    outcome
}

pub(super) fn read_sample(attrs: Attrs<'_>, depth: usize) -> Result<Action, Error> {
    let probability = attrs.find(SAMPLE_PROBABILITY).and_then(|a| a.u32());
    let actions = attrs
        .find(SAMPLE_ACTIONS)
        .ok_or_else(|| malformed("sample"))?;
    Ok(Action::Sample {
        probability: probability.ok_or_else(|| malformed("sample"))?,
        actions: decode_list(actions.nested(), depth)?,
    })
}

pub(super) fn put_check_pkt_len(
    kind: u16,
    len: u16,
    (greater, less_equal): (&[Action], &[Action]),
    context: &ActionContext<'_>,
    to: &mut AttrWriter,
) -> Result<(), Error> {
    let nest = to.open(kind);
    to.put_u16(PKT_LEN, len);
    let outcome = put_list(IF_GREATER, greater, context, to)
        .and_then(|()| put_list(IF_LESS_EQUAL, less_equal, context, to));
    to.close(nest);
    outcome
}

pub(super) fn read_check_pkt_len(attrs: Attrs<'_>, depth: usize) -> Result<Action, Error> {
    let len = attrs.find(PKT_LEN).and_then(|a| a.u16());
    let list = |kind| match attrs.find(kind) {
        Some(attr) => decode_list(attr.nested(), depth),
        None => Err(malformed("check_pkt_len")),
    };
    Ok(Action::CheckPktLen {
        len: len.ok_or_else(|| malformed("check_pkt_len"))?,
        greater: list(IF_GREATER)?,
        less_equal: list(IF_LESS_EQUAL)?,
    })
}

pub(super) fn put_dec_ttl(
    kind: u16,
    actions: &[Action],
    context: &ActionContext<'_>,
    to: &mut AttrWriter,
) -> Result<(), Error> {
    let nest = to.open(kind);
    let outcome = put_list(DEC_TTL_ACTION, actions, context, to);
    to.close(nest);
    outcome
}

pub(super) fn read_dec_ttl(attrs: Attrs<'_>, depth: usize) -> Result<Action, Error> {
    let actions = match attrs.find(DEC_TTL_ACTION) {
        Some(attr) => decode_list(attr.nested(), depth)?,
        None => Vec::new(),
    };
    Ok(Action::DecTtl(actions))
}
