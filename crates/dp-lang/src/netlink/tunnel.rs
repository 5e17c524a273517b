//! The tunnel that a packet came through or goes into.

use net_flow::slot::{self, Slot};
use net_flow::types::tunnel_flag;
use net_flow::{FlowKey, FlowMask};
use net_netlink::{Attr, AttrWriter, Attrs};

use super::{Error, attr, malformed};
use crate::tunnel::{self, MAX_OPTIONS};

const ID: u16 = 0;
const IPV4_SRC: u16 = 1;
const IPV4_DST: u16 = 2;
const TOS: u16 = 3;
const TTL: u16 = 4;
const DONT_FRAGMENT: u16 = 5;
const CSUM: u16 = 6;
const OAM: u16 = 7;
const GENEVE_OPTS: u16 = 8;
const TP_SRC: u16 = 9;
const TP_DST: u16 = 10;
const VXLAN_OPTS: u16 = 11;
const IPV6_SRC: u16 = 12;
const IPV6_DST: u16 = 13;
const ERSPAN_OPTS: u16 = 15;

const VXLAN_GBP: u16 = 1;

/// Flags of a tunnel in a key.
const FLAG_DF: u128 = tunnel_flag::DONT_FRAGMENT as u128;
const FLAG_CSUM: u128 = tunnel_flag::CSUM as u128;
const FLAG_KEY: u128 = tunnel_flag::KEY as u128;
const FLAG_OAM: u128 = tunnel_flag::OAM as u128;

/// Length of `struct erspan_metadata`.
const ERSPAN_LEN: usize = 12;

/// Fields that are left out where they are zero, with the length of each in bytes.
const FIELDS: [(u16, Slot, usize); 8] = [
    (IPV4_SRC, slot::TUN_SRC, 4),
    (IPV4_DST, slot::TUN_DST, 4),
    (IPV6_SRC, slot::TUN_IPV6_SRC, 16),
    (IPV6_DST, slot::TUN_IPV6_DST, 16),
    (TOS, slot::TUN_TOS, 1),
    (TTL, slot::TUN_TTL, 1),
    (TP_SRC, slot::TUN_TP_SRC, 2),
    (TP_DST, slot::TUN_TP_DST, 2),
];

/// Attributes without a value, with their flag.
const FLAGS: [(u16, u128); 3] = [(DONT_FRAGMENT, FLAG_DF), (CSUM, FLAG_CSUM), (OAM, FLAG_OAM)];

/// Whether a key is that of a packet from a tunnel.
pub(super) fn is_tunnelled(key: &FlowKey) -> bool {
    [
        slot::TUN_SRC,
        slot::TUN_DST,
        slot::TUN_IPV6_SRC,
        slot::TUN_IPV6_DST,
    ]
    .iter()
    .any(|slot| key.get(*slot) != 0)
}

/// Puts the tunnel of `key`, or what a mask (`values`) says of it.
pub(super) fn put(key: &FlowKey, mask: Option<&FlowMask>, to: &mut AttrWriter) {
    let values = mask.map_or(key, FlowMask::as_key);
    let nest = to.open(attr::TUNNEL);
    let id = values.get(slot::TUN_ID) as u64;
    let flags = values.get(slot::TUN_FLAGS);
    if id != 0 || flags & FLAG_KEY != 0 {
        to.put_be64(ID, id);
    }
    for (kind, slot, len) in FIELDS {
        let value = values.get(slot);
        // The kernel wants a time to live, even zero.
        if value != 0 || (kind == TTL && mask.is_none()) {
            to.put(kind, &value.to_be_bytes()[16 - len..]);
        }
    }
    for (kind, flag) in FLAGS {
        if flags & flag != 0 {
            to.put_flag(kind);
        }
    }
    put_options(key, mask, to);
    to.close(nest);
}

fn put_options(key: &FlowKey, mask: Option<&FlowMask>, to: &mut AttrWriter) {
    let values = mask.map_or(key, FlowMask::as_key);
    let gbp = values.get(slot::TUN_GBP_FLAGS) << 16 | values.get(slot::TUN_GBP_ID);
    let has_gbp = key.get(slot::TUN_GBP_FLAGS) != 0 || key.get(slot::TUN_GBP_ID) != 0;
    if gbp != 0 && (has_gbp || mask.is_some()) {
        let nest = to.open(VXLAN_OPTS);
        to.put_u32(VXLAN_GBP, gbp as u32);
        to.close(nest);
    }
    if key.get(slot::TUN_OPTIONS_LEN) != 0 {
        let bytes = match mask {
            None => tunnel::options(key),
            Some(mask) => tunnel::options_mask(key, mask),
        };
        to.put(GENEVE_OPTS, &bytes);
    }
    if key.get(slot::TUN_ERSPAN_VER) != 0 {
        to.put(ERSPAN_OPTS, &erspan(key, values));
    }
}

/// `struct erspan_metadata`: the version, then an index or a structure of bit fields.
fn erspan(key: &FlowKey, values: &FlowKey) -> [u8; ERSPAN_LEN] {
    let mut bytes = [0; ERSPAN_LEN];
    let version = values.get(slot::TUN_ERSPAN_VER) as u32;
    bytes[..4].copy_from_slice(&version.to_ne_bytes());
    if key.get(slot::TUN_ERSPAN_VER) == 1 {
        let index = values.get(slot::TUN_ERSPAN_IDX) as u32;
        bytes[4..8].copy_from_slice(&index.to_be_bytes());
    } else {
        let hwid = values.get(slot::TUN_ERSPAN_HWID) as u8;
        let dir = values.get(slot::TUN_ERSPAN_DIR) as u8 & 1;
        // Timestamp, group tag; then two bytes as they are on the wire.
        bytes[10] = hwid >> 4 & 3;
        bytes[11] = (hwid & 0xf) << 4 | dir << 3;
    }
    bytes
}

/// What is read of a tunnel.
struct Reader<S> {
    set: S,
    flags: u128,
}

impl<S: FnMut(Slot, u128)> Reader<S> {
    fn attr(&mut self, attr: &Attr<'_>) -> Result<(), Error> {
        let wrong = || malformed("tunnel");
        if let Some((_, slot, len)) = FIELDS.iter().find(|f| f.0 == attr.kind) {
            let value = attr.value.get(..*len).ok_or_else(wrong)?;
            let number = value.iter().fold(0, |n, b| n << 8 | u128::from(*b));
            (self.set)(*slot, number);
            return Ok(());
        }
        if let Some((_, flag)) = FLAGS.iter().find(|f| f.0 == attr.kind) {
            self.flags |= flag;
            return Ok(());
        }
        match attr.kind {
            ID => {
                let id = attr.be64().ok_or_else(wrong)?;
                (self.set)(slot::TUN_ID, u128::from(id));
                self.flags |= FLAG_KEY;
            }
            VXLAN_OPTS => {
                if let Some(gbp) = attr.nested().find(VXLAN_GBP) {
                    let gbp = gbp.u32().ok_or_else(wrong)?;
                    (self.set)(slot::TUN_GBP_ID, u128::from(gbp & 0xffff));
                    (self.set)(slot::TUN_GBP_FLAGS, u128::from(gbp >> 16 & 0xff));
                }
            }
            GENEVE_OPTS if attr.value.len() > MAX_OPTIONS => return Err(wrong()),
            _ => {}
        }
        Ok(())
    }
}

/// Reads `struct erspan_metadata`; whether its version is 1 is told by the key's.
fn read_erspan(
    bytes: &[u8],
    first_version: impl Fn(u128) -> bool,
    mut set: impl FnMut(Slot, u128),
) -> Result<(), Error> {
    let bytes: &[u8; ERSPAN_LEN] = bytes.first_chunk().ok_or_else(|| malformed("tunnel"))?;
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let version = u128::from(u32::from_ne_bytes(word(0)));
    set(slot::TUN_ERSPAN_VER, version);
    if first_version(version) {
        set(
            slot::TUN_ERSPAN_IDX,
            u128::from(u32::from_be_bytes(word(4))),
        );
    } else {
        let hwid = (bytes[10] & 3) << 4 | bytes[11] >> 4;
        set(slot::TUN_ERSPAN_HWID, u128::from(hwid));
        set(slot::TUN_ERSPAN_DIR, u128::from(bytes[11] >> 3 & 1));
    }
    Ok(())
}

/// Reads the tunnel of a key.
pub(super) fn read_key(attrs: Attrs<'_>, key: &mut FlowKey) -> Result<(), Error> {
    for attr in attrs {
        match attr.kind {
            GENEVE_OPTS if attr.value.len() <= MAX_OPTIONS => {
                tunnel::set_options(key, attr.value);
            }
            ERSPAN_OPTS => {
                read_erspan(attr.value, |v| v == 1, |slot, v| key.set(slot, v))?;
            }
            _ => {
                let mut reader = Reader {
                    set: |slot, value| key.set(slot, value),
                    flags: 0,
                };
                reader.attr(&attr)?;
                let flags = reader.flags;
                let all = key.get(slot::TUN_FLAGS) | flags;
                key.set(slot::TUN_FLAGS, all);
            }
        }
    }
    Ok(())
}

/// Reads what a mask says of the tunnel of `key`.
pub(super) fn read_mask(attrs: Attrs<'_>, key: &FlowKey, mask: &mut FlowMask) -> Result<(), Error> {
    for attr in attrs {
        match attr.kind {
            GENEVE_OPTS if attr.value.len() <= MAX_OPTIONS => {
                tunnel::set_options_mask(mask, attr.value);
            }
            ERSPAN_OPTS => {
                let first = key.get(slot::TUN_ERSPAN_VER) == 1;
                read_erspan(attr.value, |_| first, |slot, bits| mask.set(slot, bits))?;
            }
            _ => {
                let mut reader = Reader {
                    set: |slot, bits| mask.set(slot, bits),
                    flags: 0,
                };
                reader.attr(&attr)?;
                let flags = reader.flags;
                mask.add(slot::TUN_FLAGS, flags);
            }
        }
    }
    Ok(())
}
