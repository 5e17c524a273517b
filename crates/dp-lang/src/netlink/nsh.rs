//! The network service header (RFC 8300) in keys and `set` actions.

use net_flow::FlowKey;
use net_flow::slot::{self, Slot};
use net_netlink::{AttrWriter, Attrs};

use super::{Error, attr, malformed};

const BASE: u16 = 1;
const MD1: u16 = 2;

const BASE_LEN: usize = 8;
const MD1_LEN: usize = 16;

/// The metadata type of four context words.
const FIXED_CONTEXT: u128 = 1;

const CONTEXT: [Slot; 4] = [slot::NSH_C1, slot::NSH_C2, slot::NSH_C3, slot::NSH_C4];

/// The base header's bytes.
pub(super) fn base(values: &FlowKey) -> [u8; BASE_LEN] {
    let byte = |slot| values.get(slot) as u8;
    let path = (values.get(slot::NSH_SPI) as u32) << 8 | values.get(slot::NSH_SI) as u32;
    let [p0, p1, p2, p3] = path.to_be_bytes();
    [
        byte(slot::NSH_FLAGS),
        byte(slot::NSH_TTL),
        byte(slot::NSH_MDTYPE),
        byte(slot::NSH_NP),
        p0,
        p1,
        p2,
        p3,
    ]
}

/// The context words' bytes.
pub(super) fn context(values: &FlowKey) -> [u8; MD1_LEN] {
    let mut bytes = [0; MD1_LEN];
    for (to, slot) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(CONTEXT) {
        *to = (values.get(slot) as u32).to_be_bytes();
    }
    bytes
}

/// Puts the header of `key`, or the part of a mask (`values`) that belongs to it.
pub(super) fn put(key: &FlowKey, values: &FlowKey, to: &mut AttrWriter) {
    let nest = to.open(attr::NSH);
    to.put(BASE, &base(values));
    if key.get(slot::NSH_MDTYPE) == FIXED_CONTEXT {
        to.put(MD1, &context(values));
    }
    to.close(nest);
}

/// Puts a header with its mask behind it, as `set` actions have it.
pub(super) fn put_masked(key: &FlowKey, mask: &FlowKey, to: &mut AttrWriter) {
    let nest = to.open(attr::NSH);
    to.put(BASE, &[base(key), base(mask)].concat());
    if CONTEXT.iter().any(|slot| mask.get(*slot) != 0) {
        to.put(MD1, &[context(key), context(mask)].concat());
    }
    to.close(nest);
}

/// Reads the header; `skip` bytes of each attribute are passed over.
pub(super) fn read(
    attrs: Attrs<'_>,
    skip: usize,
    mut set: impl FnMut(Slot, u128),
) -> Result<(), Error> {
    for attr in attrs {
        match attr.kind {
            BASE => {
                let bytes = attr.value.get(skip * BASE_LEN..);
                let [flags, ttl, md_type, np, path @ ..] = bytes
                    .and_then(|b| b.first_chunk::<BASE_LEN>())
                    .ok_or_else(|| malformed("nsh"))?;
                set(slot::NSH_FLAGS, u128::from(*flags));
                set(slot::NSH_TTL, u128::from(*ttl));
                set(slot::NSH_MDTYPE, u128::from(*md_type));
                set(slot::NSH_NP, u128::from(*np));
                let path = u32::from_be_bytes(*path);
                set(slot::NSH_SPI, u128::from(path >> 8));
                set(slot::NSH_SI, u128::from(path & 0xff));
            }
            MD1 => {
                let bytes = attr.value.get(skip * MD1_LEN..);
                let words = bytes
                    .and_then(|b| b.first_chunk::<MD1_LEN>())
                    .ok_or_else(|| malformed("nsh"))?;
                for (bytes, slot) in words.as_chunks::<4>().0.iter().zip(CONTEXT) {
                    set(slot, u128::from(u32::from_be_bytes(*bytes)));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
