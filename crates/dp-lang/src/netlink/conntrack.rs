//! The `ct` action.

use std::net::IpAddr;

use net_netlink::{Attr, AttrWriter, Attrs};

use super::{Error, malformed};
use crate::Features;
use crate::action::{Ct, Nat};

const COMMIT: u16 = 1;
const ZONE: u16 = 2;
const MARK: u16 = 3;
const LABELS: u16 = 4;
const HELPER: u16 = 5;
const NAT: u16 = 6;
const FORCE_COMMIT: u16 = 7;
const EVENTMASK: u16 = 8;
const TIMEOUT: u16 = 9;

const NAT_SRC: u16 = 1;
const NAT_DST: u16 = 2;
const NAT_IP_MIN: u16 = 3;
const NAT_IP_MAX: u16 = 4;
const NAT_PROTO_MIN: u16 = 5;
const NAT_PROTO_MAX: u16 = 6;
const NAT_PERSISTENT: u16 = 7;
const NAT_PROTO_HASH: u16 = 8;
const NAT_PROTO_RANDOM: u16 = 9;

pub(super) fn put(kind: u16, ct: &Ct, features: &Features, to: &mut AttrWriter) {
    let nest = to.open(kind);
    if ct.commit {
        to.put_flag(if ct.force { FORCE_COMMIT } else { COMMIT });
    }
    if let Some(events) = ct.eventmask.filter(|_| features.ct_eventmask) {
        to.put_u32(EVENTMASK, events);
    }
    if ct.zone != 0 {
        to.put_u16(ZONE, ct.zone);
    }
    if let Some((mark, mask)) = ct.mark {
        to.put(MARK, &[mark.to_ne_bytes(), mask.to_ne_bytes()].concat());
    }
    if let Some((label, mask)) = ct.label {
        to.put(LABELS, &[label.to_ne_bytes(), mask.to_ne_bytes()].concat());
    }
    if let Some(helper) = &ct.helper {
        to.put_text(HELPER, helper);
    }
    if let Some(timeout) = &ct.timeout {
        to.put_text(TIMEOUT, timeout);
    }
    if let Some(nat) = &ct.nat {
        put_nat(nat, to);
    }
    to.close(nest);
}

fn put_nat(nat: &Nat, to: &mut AttrWriter) {
    let nest = to.open(NAT);
    if let Some(source) = nat.source {
        to.put_flag(if source { NAT_SRC } else { NAT_DST });
        if let Some((low, high)) = nat.addresses {
            for (kind, address) in [(NAT_IP_MIN, low), (NAT_IP_MAX, high)] {
                match address {
                    IpAddr::V4(v4) => to.put(kind, &v4.octets()),
                    IpAddr::V6(v6) => to.put(kind, &v6.octets()),
                };
            }
        }
        if let Some((low, high)) = nat.ports {
            to.put_u16(NAT_PROTO_MIN, low).put_u16(NAT_PROTO_MAX, high);
        }
        for (on, kind) in [
            (nat.persistent, NAT_PERSISTENT),
            (nat.hash, NAT_PROTO_HASH),
            (nat.random, NAT_PROTO_RANDOM),
        ] {
            if on {
                to.put_flag(kind);
            }
        }
    }
    to.close(nest);
}

/// A value and its mask, of `N` bytes each.
fn masked<const N: usize>(attr: &Attr<'_>) -> Result<([u8; N], [u8; N]), Error> {
    let value = attr.value.first_chunk();
    let mask = attr.value.get(N..).and_then(|m| m.first_chunk());
    match (value, mask) {
        (Some(value), Some(mask)) => Ok((*value, *mask)),
        _ => Err(malformed("ct")),
    }
}

pub(super) fn read(attrs: Attrs<'_>) -> Result<Ct, Error> {
    let mut ct = Ct::default();
    let wrong = || malformed("ct");
    for attr in attrs {
        match attr.kind {
            COMMIT => ct.commit = true,
            FORCE_COMMIT => (ct.commit, ct.force) = (true, true),
            ZONE => ct.zone = attr.u16().ok_or_else(wrong)?,
            MARK => {
                let (mark, mask) = masked(&attr)?;
                ct.mark = Some((u32::from_ne_bytes(mark), u32::from_ne_bytes(mask)));
            }
            LABELS => {
                let (label, mask) = masked(&attr)?;
                ct.label = Some((u128::from_ne_bytes(label), u128::from_ne_bytes(mask)));
            }
            HELPER => ct.helper = Some(attr.text().ok_or_else(wrong)?.to_owned()),
            TIMEOUT => ct.timeout = Some(attr.text().ok_or_else(wrong)?.to_owned()),
            EVENTMASK => ct.eventmask = Some(attr.u32().ok_or_else(wrong)?),
            NAT => ct.nat = Some(read_nat(attr.nested())?),
            _ => {}
        }
    }
    Ok(ct)
}

fn address(attr: &Attr<'_>) -> Result<IpAddr, Error> {
    match attr.value.len() {
        4 => attr.value.first_chunk::<4>().map(|b| IpAddr::from(*b)),
        16 => attr.value.first_chunk::<16>().map(|b| IpAddr::from(*b)),
        _ => None,
    }
    .ok_or_else(|| malformed("nat"))
}

fn read_nat(attrs: Attrs<'_>) -> Result<Nat, Error> {
    let mut nat = Nat::default();
    let (mut low, mut high) = (None, None);
    let (mut first, mut last) = (None, None);
    let port = |attr: &Attr<'_>| attr.u16().ok_or_else(|| malformed("nat"));
    for attr in attrs {
        match attr.kind {
            NAT_SRC => nat.source = Some(true),
            NAT_DST => nat.source = Some(false),
            NAT_IP_MIN => low = Some(address(&attr)?),
            NAT_IP_MAX => high = Some(address(&attr)?),
            NAT_PROTO_MIN => first = Some(port(&attr)?),
            NAT_PROTO_MAX => last = Some(port(&attr)?),
            NAT_PERSISTENT => nat.persistent = true,
            NAT_PROTO_HASH => nat.hash = true,
            NAT_PROTO_RANDOM => nat.random = true,
            _ => {}
        }
    }
    nat.addresses = low.map(|low| (low, high.unwrap_or(low)));
    nat.ports = first.map(|first| (first, last.unwrap_or(first)));
    Ok(nat)
}
