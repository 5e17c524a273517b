//! Nicira's messages about tracked connections.

use net_flow::connection::{Family, is_icmp, unmapped_ipv4};
use net_flow::{CtMatch, CtTuple};

use super::kind::Kind;
use super::{Decoded, Encoder, Head};
use crate::action::{pull_property, put_property};
use crate::error::ErrorCode;
use crate::message::{Body, CtFlush};
use crate::wire::{OrCode, Put, Reader};

/// Properties of `NXT_CT_FLUSH`.
mod property {
    pub(super) const ORIG: u16 = 0;
    pub(super) const REPLY: u16 = 1;
    pub(super) const ZONE: u16 = 2;
    pub(super) const MARK: u16 = 3;
    pub(super) const MARK_MASK: u16 = 4;
    pub(super) const LABELS: u16 = 5;
    pub(super) const LABELS_MASK: u16 = 6;
}

/// Properties of a direction in it.
mod tuple {
    pub(super) const SRC: u16 = 0;
    pub(super) const DST: u16 = 1;
    pub(super) const SRC_PORT: u16 = 2;
    pub(super) const DST_PORT: u16 = 3;
    pub(super) const ICMP_ID: u16 = 4;
    pub(super) const ICMP_TYPE: u16 = 5;
    pub(super) const ICMP_CODE: u16 = 6;
}

const BAD_LEN: ErrorCode = ErrorCode::OfpbpcBadLen;

pub(super) fn decode(head: Head<'_>) -> Decoded<'_> {
    let mut r = head.body;
    Ok(Ok(match head.kind {
        Kind::NxtCtFlushZone => {
            if r.take(6)?.iter().any(|b| *b != 0) {
                return Err(ErrorCode::NxbrcMustBeZero);
            }
            Body::CtFlushZone(r.u16()?)
        }
        Kind::NxtCtFlush => Body::CtFlush(Box::new(decode_flush(r)?)),
        _ => return Ok(Err(head)),
    }))
}

/// A number of `n` bytes that is the whole of a property.
fn whole(p: &mut Reader<'_>, n: usize) -> Result<u128, ErrorCode> {
    if p.len() != n {
        return Err(BAD_LEN);
    }
    p.uint(n).or_code(BAD_LEN)
}

fn decode_flush(mut r: Reader<'_>) -> Result<CtFlush, ErrorCode> {
    let mut flush = CtFlush::default();
    flush.of.proto = r.u8()?;
    if r.take(7)?.iter().any(|b| *b != 0) {
        return Err(ErrorCode::NxbrcMustBeZero);
    }
    // A value without a mask matters whole.
    let (mut mark, mut labels) = ([None; 2], [None; 2]);
    while !r.is_empty() {
        let (ty, mut p) = pull_property(&mut r)?;
        match ty {
            property::ORIG => flush.of.orig = decode_tuple(&mut flush.of.family, p)?,
            property::REPLY => flush.of.reply = decode_tuple(&mut flush.of.family, p)?,
            property::ZONE => flush.zone = Some(p.u16().or_code(BAD_LEN)?),
            property::MARK => mark[0] = Some(whole(&mut p, 4)? as u32),
            property::MARK_MASK => mark[1] = Some(whole(&mut p, 4)? as u32),
            property::LABELS => labels[0] = Some(whole(&mut p, 16)?),
            property::LABELS_MASK => labels[1] = Some(whole(&mut p, 16)?),
            _ => return Err(ErrorCode::OfpbpcBadType),
        }
    }
    let all = |value: Option<u32>| value.map_or(0, |_| u32::MAX);
    flush.of.mark = (mark[0].unwrap_or(0), mark[1].unwrap_or(all(mark[0])));
    let all = |value: Option<u128>| value.map_or(0, |_| u128::MAX);
    flush.of.labels = (labels[0].unwrap_or(0), labels[1].unwrap_or(all(labels[0])));
    Ok(flush)
}

fn decode_tuple(family: &mut Option<Family>, mut r: Reader<'_>) -> Result<CtTuple, ErrorCode> {
    let mut found = CtTuple::default();
    // Nested properties begin at a multiple of eight bytes.
    r.skip(4).or_code(BAD_LEN)?;
    while !r.is_empty() {
        let (ty, mut p) = pull_property(&mut r)?;
        match ty {
            tuple::SRC => found.src = decode_address(family, p)?,
            tuple::DST => found.dst = decode_address(family, p)?,
            tuple::SRC_PORT => found.src_port = p.u16().or_code(BAD_LEN)?,
            tuple::DST_PORT => found.dst_port = p.u16().or_code(BAD_LEN)?,
            tuple::ICMP_ID => found.icmp_id = p.u16().or_code(BAD_LEN)?,
            tuple::ICMP_TYPE => found.icmp_type = p.u8().or_code(BAD_LEN)?,
            tuple::ICMP_CODE => found.icmp_code = p.u8().or_code(BAD_LEN)?,
            _ => return Err(ErrorCode::OfpbpcBadType),
        }
    }
    Ok(found)
}

fn decode_address(family: &mut Option<Family>, mut p: Reader<'_>) -> Result<u128, ErrorCode> {
    let ip = p.uint(16).or_code(BAD_LEN)?;
    let own = match unmapped_ipv4(ip) {
        _ if ip == 0 => None,
        Some(_) => Some(Family::V4),
        None => Some(Family::V6),
    };
    if let (Some(one), Some(other)) = (*family, own)
        && one != other
    {
        return Err(ErrorCode::OfpbpcBadValue);
    }
    *family = own.or(*family);
    Ok(ip)
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    match body {
        Body::CtFlushZone(zone) => e.message(Kind::NxtCtFlushZone, |out| {
            out.zeros(6);
            out.u16(*zone);
        }),
        Body::CtFlush(flush) => e.message(Kind::NxtCtFlush, |out| put_flush(out, flush)),
        _ => return false,
    }
    true
}

/// A number of 16 bits as properties have it.
fn padded(n: u16) -> [u8; 4] {
    (u32::from(n) << 16).to_be_bytes()
}

fn put_flush(out: &mut Vec<u8>, flush: &CtFlush) {
    let CtMatch {
        proto,
        orig,
        reply,
        mark,
        labels,
        ..
    } = flush.of;
    out.u8(proto);
    out.zeros(7);
    put_tuple(out, property::ORIG, proto, &orig);
    put_tuple(out, property::REPLY, proto, &reply);
    if let Some(zone) = flush.zone {
        put_property(out, property::ZONE, &padded(zone));
    }
    let (mark, mask) = mark;
    if mask != 0 {
        put_property(out, property::MARK, &mark.to_be_bytes());
        if mask != u32::MAX {
            put_property(out, property::MARK_MASK, &mask.to_be_bytes());
        }
    }
    let (labels, mask) = labels;
    if mask != 0 {
        put_property(out, property::LABELS, &labels.to_be_bytes());
        if mask != u128::MAX {
            put_property(out, property::LABELS_MASK, &mask.to_be_bytes());
        }
    }
}

fn put_tuple(out: &mut Vec<u8>, ty: u16, proto: u8, direction: &CtTuple) {
    let mut inner = Vec::new();
    for (ty, ip) in [(tuple::SRC, direction.src), (tuple::DST, direction.dst)] {
        if ip != 0 {
            put_property(&mut inner, ty, &ip.to_be_bytes());
        }
    }
    if is_icmp(proto) {
        put_property(&mut inner, tuple::ICMP_ID, &padded(direction.icmp_id));
        put_property(&mut inner, tuple::ICMP_TYPE, &[direction.icmp_type]);
        put_property(&mut inner, tuple::ICMP_CODE, &[direction.icmp_code]);
    } else {
        for (ty, port) in [
            (tuple::SRC_PORT, direction.src_port),
            (tuple::DST_PORT, direction.dst_port),
        ] {
            if port != 0 {
                put_property(&mut inner, ty, &padded(port));
            }
        }
    }
    if !inner.is_empty() {
        let mut value = vec![0; 4];
        value.extend(inner);
        put_property(out, ty, &value);
    }
}

#[cfg(test)]
mod tests {
    use crate::Version;
    use crate::codec::Dialect;
    use crate::message::Message;

    use super::*;

    fn flush(args: &[&str]) -> Body {
        let (zone, of) = CtMatch::parse(args).unwrap();
        Body::CtFlush(Box::new(CtFlush { zone, of }))
    }

    fn decoded(bytes: &[u8], version: Version) -> Result<Body, ErrorCode> {
        Message::decode(bytes, Dialect::of(version)).map(|m| m.body)
    }

    #[test]
    fn flushes_go_there_and_back() {
        for body in [
            Body::CtFlushZone(13),
            flush(&[]),
            flush(&["zone=0"]),
            flush(&["zone=5", "mark=5/7", "labels=0x100000000000000000/0xf0"]),
            flush(&["mark=5", "labels=1"]),
            flush(&[
                "ct_nw_src=10.0.0.1,ct_nw_proto=6,ct_tp_src=5",
                "ct_nw_dst=10.0.0.2",
            ]),
            flush(&["ct_ipv6_src=fe80::1,ct_nw_proto=58,icmp_type=128,icmp_id=7"]),
        ] {
            for version in Version::ALL {
                let message = Message::new(version, 3, body.clone());
                let bytes = message.encode(Dialect::of(version));
                assert_eq!(decoded(&bytes, version), Ok(body.clone()), "{body:?}");
            }
        }
    }

    #[test]
    fn bytes_of_a_flush() {
        let message = Message::new(Version::V10, 3, flush(&["zone=13", "mark=0xab"]));
        let bytes = message.encode(Dialect::of(Version::V10));
        let mut expected = vec![1, 4, 0, 0x28, 0, 0, 0, 3, 0, 0, 0x23, 0x20, 0, 0, 0, 0x20];
        expected.extend([0; 8]);
        expected.extend([0, 2, 0, 8, 0, 13, 0, 0, 0, 3, 0, 8, 0, 0, 0, 0xab]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = Message::new(Version::V10, 3, flush(&["zone=13"]));
        let good = good.encode(Dialect::of(Version::V10));
        for (at, value, error) in [
            (17, 1, ErrorCode::NxbrcMustBeZero),
            (25, 9, ErrorCode::OfpbpcBadType),
            (27, 3, ErrorCode::OfpbpcBadLen),
            (27, 5, ErrorCode::OfpbpcBadLen),
            (27, 9, ErrorCode::OfpbpcBadLen),
        ] {
            let mut bytes = good.clone();
            bytes[at] = value;
            assert_eq!(decoded(&bytes, Version::V10), Err(error), "{at}");
        }
        let both = CtFlush {
            zone: None,
            of: CtMatch {
                orig: CtTuple {
                    src: 1,
                    dst: net_flow::connection::mapped_ipv4(1),
                    ..CtTuple::default()
                },
                ..CtMatch::default()
            },
        };
        let message = Message::new(Version::V10, 3, Body::CtFlush(Box::new(both)));
        let bytes = message.encode(Dialect::of(Version::V10));
        assert_eq!(
            decoded(&bytes, Version::V10),
            Err(ErrorCode::OfpbpcBadValue)
        );
    }
}
