//! Ports and queues: descriptions, changes, counters.

use net_flow::PortNo;

use super::kind::Kind;
use super::{Decoded, Encoder, Head};
use crate::error::ErrorCode;
use crate::message::{
    Body, Part, PortConfig, PortDesc, PortFeatures, PortMod, PortState, PortStats, PortStatus,
    PortStatusReason, QueueStats,
};
use crate::version::Version;
use crate::wire::{Put, Reader, text};

/// The settings that OpenFlow 1.1 and later know.
const CONFIG11: PortConfig = PortConfig::PORT_DOWN
    .union(PortConfig::NO_RECV)
    .union(PortConfig::NO_FWD)
    .union(PortConfig::NO_PACKET_IN);

fn port11(r: &mut Reader<'_>) -> Result<PortNo, ErrorCode> {
    PortNo::from_of11(r.u32()?).ok_or(ErrorCode::OfpbacBadOutPort)
}

/// Features of OpenFlow 1.0 as those of later versions: the upper ones moved by four bits.
const fn features_from10(bits: u32) -> PortFeatures {
    PortFeatures::from_bits_truncate((bits & 0x7f) | ((bits & 0xf80) << 4))
}

const fn features_to10(features: PortFeatures) -> u32 {
    (features.bits() & 0x7f) | ((features.bits() >> 4) & 0xf80)
}

/// Reads a port's description.
pub(super) fn pull_desc(r: &mut Reader<'_>, version: Version) -> Result<PortDesc, ErrorCode> {
    match version {
        Version::V10 => pull_desc10(r),
        Version::V11 | Version::V12 | Version::V13 => pull_desc11(r),
        _ => pull_desc14(r),
    }
}

fn pull_desc10(r: &mut Reader<'_>) -> Result<PortDesc, ErrorCode> {
    let port = PortNo::from_of10(r.u16()?);
    let hw_addr = r.array()?;
    let name = text(r.take(16)?);
    let (config, state) = (r.u32()?, r.u32()?);
    let curr = features_from10(r.u32()?);
    let advertised = features_from10(r.u32()?);
    let supported = features_from10(r.u32()?);
    let peer = features_from10(r.u32()?);
    Ok(PortDesc {
        port,
        hw_addr,
        name,
        config: PortConfig::from_bits_truncate(config & 0x7f),
        state: PortState::from_bits_retain(state & 0x301),
        curr,
        advertised,
        supported,
        peer,
        curr_speed: speed_kbps(curr),
        max_speed: speed_kbps(supported),
    })
}

/// The highest speed among features, in kb/s; 0 if they name none.
pub(crate) fn speed_kbps(features: PortFeatures) -> u32 {
    let speeds = [
        (PortFeatures::FD_1TB, 1_000_000_000),
        (PortFeatures::FD_100GB, 100_000_000),
        (PortFeatures::FD_40GB, 40_000_000),
        (PortFeatures::FD_10GB, 10_000_000),
        (PortFeatures::FD_1GB | PortFeatures::HD_1GB, 1_000_000),
        (PortFeatures::FD_100MB | PortFeatures::HD_100MB, 100_000),
        (PortFeatures::FD_10MB | PortFeatures::HD_10MB, 10_000),
    ];
    let found = speeds.iter().find(|(f, _)| features.intersects(*f));
    found.map_or(0, |(_, kbps)| *kbps)
}

fn pull_desc11(r: &mut Reader<'_>) -> Result<PortDesc, ErrorCode> {
    let port = port11(r)?;
    r.skip(4)?;
    let hw_addr = r.array()?;
    r.skip(2)?;
    let name = text(r.take(16)?);
    let (config, state) = (r.u32()?, r.u32()?);
    let mut features = || r.u32().map(PortFeatures::from_bits_truncate);
    let (curr, advertised) = (features()?, features()?);
    let (supported, peer) = (features()?, features()?);
    Ok(PortDesc {
        port,
        hw_addr,
        name,
        config: PortConfig::from_bits_truncate(config) & CONFIG11,
        state: PortState::from_bits_truncate(state & 7),
        curr,
        advertised,
        supported,
        peer,
        curr_speed: r.u32()?,
        max_speed: r.u32()?,
    })
}

fn pull_desc14(r: &mut Reader<'_>) -> Result<PortDesc, ErrorCode> {
    let bad = ErrorCode::OfpbrcBadLen;
    let mut head = *r;
    head.skip(4)?;
    let len = usize::from(head.u16()?);
    if len < 40 {
        return Err(bad);
    }
    let mut r = r.sub(len)?;
    let port = port11(&mut r)?;
    r.skip(4)?;
    let hw_addr = r.array()?;
    r.skip(2)?;
    let name = text(r.take(16)?);
    let (config, state) = (r.u32()?, r.u32()?);
    let none = PortFeatures::empty();
    let mut desc = PortDesc {
        port,
        hw_addr,
        name,
        config: PortConfig::from_bits_truncate(config) & CONFIG11,
        state: PortState::from_bits_truncate(state & 7),
        curr: none,
        advertised: none,
        supported: none,
        peer: none,
        curr_speed: 0,
        max_speed: 0,
    };
    while !r.is_empty() {
        let mut head = r;
        let (ty, len) = (head.u16()?, usize::from(head.u16()?));
        if len < 4 {
            return Err(ErrorCode::OfpbpcBadLen);
        }
        let mut p = r.sub(len.next_multiple_of(8))?;
        p.skip(4)?;
        if ty != 0 {
            continue;
        }
        if len != 32 {
            return Err(ErrorCode::OfpbpcBadLen);
        }
        p.skip(4)?;
        let mut features = || p.u32().map(PortFeatures::from_bits_truncate);
        desc.curr = features()?;
        desc.advertised = features()?;
        desc.supported = features()?;
        desc.peer = features()?;
        desc.curr_speed = p.u32()?;
        desc.max_speed = p.u32()?;
    }
    Ok(desc)
}

/// Appends a port's description.
pub(super) fn put_desc(out: &mut Vec<u8>, version: Version, d: &PortDesc) {
    if version == Version::V10 {
        out.u16(d.port.to_of10());
        out.extend_from_slice(&d.hw_addr);
        out.text(&d.name, 16);
        out.u32(d.config.bits() & 0x7f);
        out.u32(d.state.bits() & 0x301);
        for features in [d.curr, d.advertised, d.supported, d.peer] {
            out.u32(features_to10(features));
        }
        return;
    }
    let of14 = version >= Version::V14;
    out.u32(d.port.0);
    out.u16(if of14 { 72 } else { 0 });
    out.zeros(2);
    out.extend_from_slice(&d.hw_addr);
    out.zeros(2);
    out.text(&d.name, 16);
    out.u32((d.config & CONFIG11).bits());
    out.u32(d.state.bits() & 7);
    if of14 {
        out.u16(0);
        out.u16(32);
        out.zeros(4);
    }
    for features in [d.curr, d.advertised, d.supported, d.peer] {
        out.u32(features.bits());
    }
    out.u32(d.curr_speed);
    out.u32(d.max_speed);
}

pub(super) fn decode(head: Head<'_>) -> Decoded<'_> {
    let version = head.version;
    let mut r = head.body;
    Ok(Ok(match head.kind {
        Kind::OfptPortStatus => {
            let reason = match r.u8()? {
                0 => PortStatusReason::Add,
                1 => PortStatusReason::Delete,
                2 => PortStatusReason::Modify,
                _ => return Err(ErrorCode::NxbrcBadReason),
            };
            r.skip(7)?;
            let desc = pull_desc(&mut r, version)?;
            Body::PortStatus(Box::new(PortStatus { reason, desc }))
        }
        Kind::OfptPortMod => Body::PortMod(Box::new(decode_port_mod(version, r)?)),
        Kind::OfpstPortRequest => Body::PortStatsRequest(if version == Version::V10 {
            PortNo::from_of10(r.u16()?)
        } else {
            port11(&mut r)?
        }),
        Kind::OfpstPortReply => {
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(pull_stats(&mut r, version)?);
            }
            Body::PortStatsReply(Part {
                more: head.more,
                entries,
            })
        }
        Kind::OfpstPortDescRequest => Body::PortDescRequest(if version >= Version::V15 {
            port11(&mut r)?
        } else {
            PortNo::NONE
        }),
        Kind::OfpstPortDescReply => {
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(pull_desc(&mut r, version)?);
            }
            Body::PortDescReply(Part {
                more: head.more,
                entries,
            })
        }
        Kind::OfpstQueueRequest => {
            let port = if version == Version::V10 {
                let port = r.u16()?;
                r.skip(2)?;
                // OpenFlow 1.0 says "all ports" with the number of "all".
                if port == PortNo::ALL.to_of10() {
                    PortNo::NONE
                } else {
                    PortNo::from_of10(port)
                }
            } else {
                port11(&mut r)?
            };
            let queue = r.u32()?;
            Body::QueueStatsRequest { port, queue }
        }
        Kind::OfpstQueueReply => {
            let mut entries = Vec::new();
            while !r.is_empty() {
                entries.push(pull_queue_stats(&mut r, version)?);
            }
            Body::QueueStatsReply(Part {
                more: head.more,
                entries,
            })
        }
        Kind::OfptQueueGetConfigRequest => Body::QueueGetConfigRequest {
            port: if version == Version::V10 {
                PortNo::from_of10(r.u16()?)
            } else {
                port11(&mut r)?
            },
            queue: u32::MAX,
        },
        Kind::OfptQueueGetConfigReply => decode_queue_config(version, r)?,
        _ => return Ok(Err(head)),
    }))
}

fn decode_port_mod(version: Version, mut r: Reader<'_>) -> Result<PortMod, ErrorCode> {
    let of10 = version == Version::V10;
    let port = if of10 {
        PortNo::from_of10(r.u16()?)
    } else {
        let port = port11(&mut r)?;
        r.skip(4)?;
        port
    };
    let hw_addr = r.array()?;
    r.skip(if of10 { 0 } else { 2 })?;
    let known = if of10 {
        PortConfig::from_bits_truncate(0x7f)
    } else {
        CONFIG11
    };
    let config = PortConfig::from_bits_truncate(r.u32()?) & known;
    let mask_bits = r.u32()?;
    let mask = PortConfig::from_bits_truncate(mask_bits) & known;
    let mut advertise = PortFeatures::empty();
    if of10 {
        advertise = features_from10(r.u32()?);
    } else if version < Version::V14 {
        advertise = PortFeatures::from_bits_truncate(r.u32()?);
    } else {
        while !r.is_empty() {
            let mut head = r;
            let (ty, len) = (head.u16()?, usize::from(head.u16()?));
            if len < 4 {
                return Err(ErrorCode::OfpbpcBadLen);
            }
            let mut p = r.sub(len.next_multiple_of(8))?;
            p.skip(4)?;
            match (ty, len) {
                (0, 8) => advertise = PortFeatures::from_bits_truncate(p.u32()?),
                (0, _) => return Err(ErrorCode::OfpbpcBadLen),
                _ => return Err(ErrorCode::OfpbpcBadType),
            }
        }
    }
    Ok(PortMod {
        port,
        hw_addr,
        config: config & mask,
        mask,
        advertise,
    })
}

fn pull_stats(r: &mut Reader<'_>, version: Version) -> Result<PortStats, ErrorCode> {
    if version >= Version::V14 {
        return pull_stats14(r);
    }
    let mut s = PortStats::default();
    if version == Version::V10 {
        s.port = PortNo::from_of10(r.u16()?);
        r.skip(6)?;
    } else {
        s.port = port11(r)?;
        r.skip(4)?;
    }
    pull_counters(r, &mut s)?;
    s.rx_frame_errors = r.u64()?;
    s.rx_over_errors = r.u64()?;
    s.rx_crc_errors = r.u64()?;
    s.collisions = r.u64()?;
    (s.duration_sec, s.duration_nsec) = (u32::MAX, u32::MAX);
    if version >= Version::V13 {
        s.duration_sec = r.u32()?;
        s.duration_nsec = r.u32()?;
    }
    Ok(s)
}

fn pull_counters(r: &mut Reader<'_>, s: &mut PortStats) -> Result<(), ErrorCode> {
    s.rx_packets = r.u64()?;
    s.tx_packets = r.u64()?;
    s.rx_bytes = r.u64()?;
    s.tx_bytes = r.u64()?;
    s.rx_dropped = r.u64()?;
    s.tx_dropped = r.u64()?;
    s.rx_errors = r.u64()?;
    s.tx_errors = r.u64()?;
    Ok(())
}

fn pull_stats14(r: &mut Reader<'_>) -> Result<PortStats, ErrorCode> {
    let mut head = *r;
    let len = usize::from(head.u16()?);
    if len < 80 {
        return Err(ErrorCode::OfpbrcBadLen);
    }
    let mut r = r.sub(len)?;
    r.skip(4)?;
    let mut s = PortStats {
        port: port11(&mut r)?,
        duration_sec: r.u32()?,
        duration_nsec: r.u32()?,
        rx_frame_errors: u64::MAX,
        rx_over_errors: u64::MAX,
        rx_crc_errors: u64::MAX,
        collisions: u64::MAX,
        ..PortStats::default()
    };
    pull_counters(&mut r, &mut s)?;
    while !r.is_empty() {
        let mut head = r;
        let (ty, len) = (head.u16()?, usize::from(head.u16()?));
        if len < 4 {
            return Err(ErrorCode::OfpbpcBadLen);
        }
        let mut p = r.sub(len.next_multiple_of(8))?;
        p.skip(8)?;
        if ty == 0 && len == 40 {
            s.rx_frame_errors = p.u64()?;
            s.rx_over_errors = p.u64()?;
            s.rx_crc_errors = p.u64()?;
            s.collisions = p.u64()?;
        }
    }
    Ok(s)
}

fn put_stats(out: &mut Vec<u8>, version: Version, s: &PortStats) {
    match version {
        Version::V10 => {
            out.u16(s.port.to_of10());
            out.zeros(6);
        }
        Version::V11 | Version::V12 | Version::V13 => {
            out.u32(s.port.0);
            out.zeros(4);
        }
        _ => {
            out.u16(120);
            out.zeros(2);
            out.u32(s.port.0);
            out.u32(s.duration_sec);
            out.u32(s.duration_nsec);
        }
    }
    for counter in [
        s.rx_packets,
        s.tx_packets,
        s.rx_bytes,
        s.tx_bytes,
        s.rx_dropped,
        s.tx_dropped,
        s.rx_errors,
        s.tx_errors,
    ] {
        out.u64(counter);
    }
    if version >= Version::V14 {
        out.u16(0);
        out.u16(40);
        out.zeros(4);
    }
    for counter in [
        s.rx_frame_errors,
        s.rx_over_errors,
        s.rx_crc_errors,
        s.collisions,
    ] {
        out.u64(counter);
    }
    if version == Version::V13 {
        out.u32(s.duration_sec);
        out.u32(s.duration_nsec);
    }
}

fn pull_queue_stats(r: &mut Reader<'_>, version: Version) -> Result<QueueStats, ErrorCode> {
    let mut r = if version >= Version::V14 {
        let mut head = *r;
        let len = usize::from(head.u16()?);
        let mut whole = r.sub(len)?;
        whole.skip(8)?;
        whole
    } else {
        r.sub(r.len().min(if version == Version::V13 { 40 } else { 32 }))?
    };
    let r = &mut r;
    let port = if version == Version::V10 {
        let port = PortNo::from_of10(r.u16()?);
        r.skip(2)?;
        port
    } else {
        port11(r)?
    };
    let mut s = QueueStats {
        port,
        queue: r.u32()?,
        tx_bytes: r.u64()?,
        tx_packets: r.u64()?,
        tx_errors: r.u64()?,
        duration_sec: u32::MAX,
        duration_nsec: u32::MAX,
    };
    if version >= Version::V13 {
        s.duration_sec = r.u32()?;
        s.duration_nsec = r.u32()?;
    }
    Ok(s)
}

fn put_queue_stats(out: &mut Vec<u8>, version: Version, s: &QueueStats) {
    if version >= Version::V14 {
        out.u16(48);
        out.zeros(6);
    }
    if version == Version::V10 {
        out.u16(s.port.to_of10());
        out.zeros(2);
    } else {
        out.u32(s.port.0);
    }
    out.u32(s.queue);
    out.u64(s.tx_bytes);
    out.u64(s.tx_packets);
    out.u64(s.tx_errors);
    if version >= Version::V13 {
        out.u32(s.duration_sec);
        out.u32(s.duration_nsec);
    }
}

fn decode_queue_config(version: Version, mut r: Reader<'_>) -> Result<Body, ErrorCode> {
    let of10 = version == Version::V10;
    let port = if of10 {
        let port = PortNo::from_of10(r.u16()?);
        r.skip(6)?;
        port
    } else {
        let port = port11(&mut r)?;
        r.skip(4)?;
        port
    };
    let mut queues = Vec::new();
    let short = version <= Version::V11;
    let header = if short { 8 } else { 16 };
    while !r.is_empty() {
        let mut head = r;
        let id = head.u32()?;
        head.skip(if short { 0 } else { 4 })?;
        let len = usize::from(head.u16()?);
        if len < header {
            return Err(ErrorCode::OfpbrcBadLen);
        }
        let mut queue = r.sub(len)?;
        queue.skip(header)?;
        let (mut min, mut max) = (None, None);
        while !queue.is_empty() {
            let mut head = queue;
            let (ty, len) = (head.u16()?, usize::from(head.u16()?));
            if len < 8 {
                return Err(ErrorCode::OfpbrcBadLen);
            }
            let mut p = queue.sub(len)?;
            p.skip(8)?;
            let rate = p.u16().ok().filter(|rate| *rate <= 1000);
            match ty {
                1 => min = rate,
                2 => max = rate,
                _ => {}
            }
        }
        queues.push((id, min, max));
    }
    Ok(Body::QueueGetConfigReply { port, queues })
}

fn put_queue_config(
    out: &mut Vec<u8>,
    version: Version,
    port: PortNo,
    queues: &[(u32, Option<u16>, Option<u16>)],
) {
    let of10 = version == Version::V10;
    if of10 {
        out.u16(port.to_of10());
        out.zeros(6);
    } else {
        out.u32(port.0);
        out.zeros(4);
    }
    for (id, min, max) in queues {
        let start = out.len();
        out.u32(*id);
        let short = version <= Version::V11;
        if !short {
            out.u32(port.0);
        }
        let len_at = out.len();
        out.u16(0);
        out.zeros(if short { 2 } else { 6 });
        for (ty, rate) in [(1, min), (2, max)] {
            if let Some(rate) = rate {
                out.u16(ty);
                out.u16(16);
                out.zeros(4);
                out.u16(*rate);
                out.zeros(6);
            }
        }
        let len = out.len() - start;
        out.set_u16(len_at, len as u16);
    }
}

fn put_port_mod(out: &mut Vec<u8>, version: Version, m: &PortMod) {
    if version == Version::V10 {
        out.u16(m.port.to_of10());
        out.extend_from_slice(&m.hw_addr);
        out.u32(m.config.bits() & 0x7f);
        out.u32(m.mask.bits() & 0x7f);
        out.u32(features_to10(m.advertise));
        out.zeros(4);
        return;
    }
    out.u32(m.port.0);
    out.zeros(4);
    out.extend_from_slice(&m.hw_addr);
    out.zeros(2);
    out.u32((m.config & CONFIG11).bits());
    out.u32((m.mask & CONFIG11).bits());
    if version < Version::V14 {
        out.u32(m.advertise.bits());
        out.zeros(4);
    } else if !m.advertise.is_empty() {
        out.u16(0);
        out.u16(8);
        out.u32(m.advertise.bits());
    }
}

pub(super) fn encode(e: &mut Encoder<'_>, body: &Body) -> bool {
    let version = e.version;
    let of10 = version == Version::V10;
    let put_port = |out: &mut Vec<u8>, port: PortNo, pad: usize| {
        if of10 {
            out.u16(port.to_of10());
            out.zeros(pad);
        } else {
            out.u32(port.0);
        }
    };
    match body {
        Body::PortStatus(s) => e.message(Kind::OfptPortStatus, |out| {
            out.u8(s.reason as u8);
            out.zeros(7);
            put_desc(out, version, &s.desc);
        }),
        Body::PortMod(m) => e.message(Kind::OfptPortMod, |out| put_port_mod(out, version, m)),
        Body::PortStatsRequest(port) => e.message(Kind::OfpstPortRequest, |out| {
            put_port(out, *port, 6);
            out.zeros(if of10 { 0 } else { 4 });
        }),
        Body::PortStatsReply(part) => {
            e.parts(Kind::OfpstPortReply, part.more, &part.entries, |out, s| {
                put_stats(out, version, s);
            });
        }
        Body::PortDescRequest(port) => e.message(Kind::OfpstPortDescRequest, |out| {
            if version >= Version::V15 {
                out.u32(port.0);
                out.zeros(4);
            }
        }),
        Body::PortDescReply(part) => {
            e.parts(
                Kind::OfpstPortDescReply,
                part.more,
                &part.entries,
                |out, d| {
                    put_desc(out, version, d);
                },
            );
        }
        Body::QueueStatsRequest { port, queue } => e.message(Kind::OfpstQueueRequest, |out| {
            let all = of10 && *port == PortNo::NONE;
            put_port(out, if all { PortNo::ALL } else { *port }, 2);
            out.u32(*queue);
        }),
        Body::QueueStatsReply(part) => {
            e.parts(Kind::OfpstQueueReply, part.more, &part.entries, |out, s| {
                put_queue_stats(out, version, s);
            });
        }
        Body::QueueGetConfigRequest { port, .. } => {
            e.message(Kind::OfptQueueGetConfigRequest, |out| {
                put_port(out, *port, 2);
                out.zeros(if of10 { 0 } else { 4 });
            });
        }
        Body::QueueGetConfigReply { port, queues } => {
            e.message(Kind::OfptQueueGetConfigReply, |out| {
                put_queue_config(out, version, *port, queues);
            });
        }
        _ => return false,
    }
    true
}
