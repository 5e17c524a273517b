//! Tracked connections as the kernel's tracker lists them and takes requests to forget them.
//!
//! Source: the kernel's `linux/netfilter/nfnetlink_conntrack.h` (values).

use net_flow::CtTuple;
use net_flow::connection::{Family, mapped_ipv4, unmapped_ipv4};
use net_flow::types::ip_proto;
use net_netlink::msg::nl;
use net_netlink::netfilter::{self, CONNTRACK, conntrack, family};
use net_netlink::{Attrs, Builder, Message};

use crate::connection::{Connection, CtCounters, ProtoInfo, TcpSide, TcpState};

const TUPLE_ORIG: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const STATUS: u16 = 3;
const PROTOINFO: u16 = 4;
const HELP: u16 = 5;
const TIMEOUT: u16 = 7;
const MARK: u16 = 8;
const COUNTERS_ORIG: u16 = 9;
const COUNTERS_REPLY: u16 = 10;
const ID: u16 = 12;
const TUPLE_MASTER: u16 = 14;
const ZONE: u16 = 18;
const TIMESTAMP: u16 = 20;
const LABELS: u16 = 22;

const TUPLE_IP: u16 = 1;
const TUPLE_PROTO: u16 = 2;

const IP_V4_SRC: u16 = 1;
const IP_V4_DST: u16 = 2;
const IP_V6_SRC: u16 = 3;
const IP_V6_DST: u16 = 4;

const PROTO_NUM: u16 = 1;
const PROTO_SRC_PORT: u16 = 2;
const PROTO_DST_PORT: u16 = 3;
const PROTO_ICMP_ID: u16 = 4;
const PROTO_ICMPV6_ID: u16 = 7;

const PROTOINFO_TCP: u16 = 1;
const PROTOINFO_SCTP: u16 = 3;

/// Bits of the status that have names here.
const KNOWN_STATUS: u32 = (1 << crate::connection::STATUS_FLAGS.len()) - 1;
/// Flags of a TCP connection's side that have names here.
const KNOWN_TCP_FLAGS: u8 = (1 << crate::connection::TCP_FLAGS.len()) - 1;

/// Where the ICMP attributes of a family begin.
const fn icmp_base(family: Family, proto: u8) -> Option<u16> {
    match (family, proto) {
        (Family::V4, ip_proto::ICMP) => Some(PROTO_ICMP_ID),
        (Family::V6, ip_proto::ICMPV6) => Some(PROTO_ICMPV6_ID),
        _ => None,
    }
}

fn tuple(attrs: Attrs<'_>, of: Family) -> Option<(u8, CtTuple)> {
    let ip = attrs.find(TUPLE_IP)?.nested();
    let proto = attrs.find(TUPLE_PROTO)?.nested();
    let address = |v4: u16, v6: u16| match of {
        Family::V4 => ip.find(v4).and_then(|a| a.be32()).map_or(0, mapped_ipv4),
        Family::V6 => ip
            .find(v6)
            .and_then(|a| a.value.first_chunk().copied())
            .map_or(0, u128::from_be_bytes),
    };
    let number = proto.find(PROTO_NUM)?.u8()?;
    let be16 = |kind: u16| proto.find(kind).and_then(|a| a.be16());
    let byte = |kind: u16| proto.find(kind).and_then(|a| a.u8());
    let mut found = CtTuple {
        src: address(IP_V4_SRC, IP_V6_SRC),
        dst: address(IP_V4_DST, IP_V6_DST),
        ..CtTuple::default()
    };
    if let Some(base) = icmp_base(of, number) {
        found.icmp_id = be16(base)?;
        found.icmp_type = byte(base + 1)?;
        found.icmp_code = byte(base + 2)?;
    } else if let (Some(src), Some(dst)) = (be16(PROTO_SRC_PORT), be16(PROTO_DST_PORT)) {
        found.src_port = src;
        found.dst_port = dst;
    }
    Some((number, found))
}

fn counters(attrs: Attrs<'_>) -> CtCounters {
    let word = |kind: u16| attrs.find(kind).and_then(|a| a.be64()).unwrap_or(0);
    CtCounters {
        packets: word(1),
        bytes: word(2),
    }
}

/// The kernel's states of a TCP connection, by its numbers.
const TCP_STATES: [TcpState; 10] = [
    TcpState::Closed,
    TcpState::SynSent,
    TcpState::SynRecv,
    TcpState::Established,
    TcpState::FinWait1,
    TcpState::CloseWait,
    TcpState::LastAck,
    TcpState::TimeWait,
    TcpState::Closed,
    TcpState::SynSent,
];

fn info(attrs: Attrs<'_>) -> ProtoInfo {
    if let Some(tcp) = attrs.find(PROTOINFO_TCP) {
        let attrs = tcp.nested();
        let byte = |kind: u16| attrs.find(kind).and_then(|a| a.u8()).unwrap_or(0);
        let state = TCP_STATES.get(usize::from(byte(1)));
        // The kernel keeps one state for both sides.
        let side = |scale: u16, flags: u16| TcpSide {
            state: state.copied().unwrap_or_default(),
            window_scale: byte(scale),
            flags: byte(flags) & KNOWN_TCP_FLAGS,
        };
        return ProtoInfo::Tcp(side(2, 4), side(3, 5));
    }
    let Some(sctp) = attrs.find(PROTOINFO_SCTP) else {
        return ProtoInfo::None;
    };
    let attrs = sctp.nested();
    let word = |kind: u16| attrs.find(kind).and_then(|a| a.u32()).unwrap_or(0);
    let state = attrs.find(1).and_then(|a| a.u8()).unwrap_or(0);
    ProtoInfo::Sctp {
        // The kernel has "none" in front.
        state: if state > 9 {
            0
        } else {
            state.saturating_sub(1)
        },
        vtags: (word(2), word(3)),
    }
}

/// The connection in a message; nothing if it is another message or malformed.
pub fn decode_connection(message: &Message<'_>) -> Option<Connection> {
    let (kind, number, attrs) = netfilter::parts(message, CONNTRACK)?;
    let of = match number {
        family::IPV4 => Family::V4,
        family::IPV6 => Family::V6,
        _ => return None,
    };
    if kind != conntrack::NEW {
        return None;
    }
    let (proto, orig) = tuple(attrs.find(TUPLE_ORIG)?.nested(), of)?;
    let (_, reply) = tuple(attrs.find(TUPLE_REPLY)?.nested(), of)?;
    let mut found = Connection::new(of, proto, orig, reply);
    for attr in attrs {
        let word = || attr.be32().unwrap_or(0);
        match attr.kind {
            STATUS => found.status = word() & KNOWN_STATUS,
            PROTOINFO => found.info = info(attr.nested()),
            HELP => {
                let name = attr.nested().find(1);
                found.helper = name.and_then(|n| n.text()).map(str::to_owned);
            }
            TIMEOUT => found.timeout = word(),
            MARK => found.mark = word(),
            COUNTERS_ORIG => found.orig_counters = counters(attr.nested()),
            COUNTERS_REPLY => found.reply_counters = counters(attr.nested()),
            ID => found.id = word(),
            TUPLE_MASTER => found.parent = tuple(attr.nested(), of),
            ZONE => found.zone = attr.be16().unwrap_or(0),
            TIMESTAMP => {
                let word = |kind| attr.nested().find(kind).and_then(|a| a.be64());
                found.times = (word(1).unwrap_or(0), word(2).unwrap_or(0));
            }
            LABELS => {
                let mut bytes = [0; 16];
                let len = attr.value.len().min(16);
                bytes[..len].copy_from_slice(&attr.value[..len]);
                found.labels = u128::from_ne_bytes(bytes);
            }
            _ => {}
        }
    }
    Some(found)
}

/// Asks for all connections; newer kernels list those of `zone` alone, others list all.
pub fn list_connections(zone: Option<u16>) -> Builder {
    let mut request = netfilter::begin(CONNTRACK, conntrack::GET, nl::DUMP, family::ANY);
    if let Some(zone) = zone {
        request.put_be16(ZONE, zone);
    }
    request
}

/// Forgets every connection; with a zone those in it, on kernels from 6.8 on: older ones take no
/// notice of the zone.
pub fn forget_connections(zone: Option<u16>) -> Builder {
    let mut request = netfilter::begin(CONNTRACK, conntrack::DELETE, nl::ACK, family::ANY);
    if let Some(zone) = zone {
        request.put_be16(ZONE, zone);
    }
    request
}

/// Forgets the connection whose first direction in `zone` is `orig`; only if it has the number `id`,
/// where one is given.
pub fn forget_connection(
    zone: u16,
    (of, proto): (Family, u8),
    orig: &CtTuple,
    id: Option<u32>,
) -> Builder {
    let number = match of {
        Family::V4 => family::IPV4,
        Family::V6 => family::IPV6,
    };
    let mut request = netfilter::begin(CONNTRACK, conntrack::DELETE, nl::ACK, number);
    request.put_be16(ZONE, zone);
    let nest = request.open_nested(TUPLE_ORIG);
    let ip = request.open_nested(TUPLE_IP);
    for (v4, v6, address) in [
        (IP_V4_SRC, IP_V6_SRC, orig.src),
        (IP_V4_DST, IP_V6_DST, orig.dst),
    ] {
        match of {
            Family::V4 => request.put_be32(v4, unmapped_ipv4(address).unwrap_or(0)),
            Family::V6 => request.put(v6, &address.to_be_bytes()),
        };
    }
    request.close(ip);
    let inner = request.open_nested(TUPLE_PROTO);
    request.put_u8(PROTO_NUM, proto);
    if let Some(base) = icmp_base(of, proto) {
        request.put_be16(base, orig.icmp_id);
        request.put_u8(base + 1, orig.icmp_type);
        request.put_u8(base + 2, orig.icmp_code);
    } else {
        request.put_be16(PROTO_SRC_PORT, orig.src_port);
        request.put_be16(PROTO_DST_PORT, orig.dst_port);
    }
    request.close(inner);
    request.close(nest);
    if let Some(id) = id {
        request.put_be32(ID, id);
    }
    request
}

#[cfg(test)]
mod tests {
    use net_netlink::Messages;

    use super::*;

    fn sent(mut builder: Builder) -> Vec<u8> {
        builder.finish(1).unwrap().to_vec()
    }

    /// A message as the kernel lists a connection.
    fn listed(
        of: Family,
        proto: u8,
        tuples: [&CtTuple; 2],
        more: impl Fn(&mut Builder),
    ) -> Vec<u8> {
        let number = match of {
            Family::V4 => family::IPV4,
            Family::V6 => family::IPV6,
        };
        let mut message = netfilter::begin(CONNTRACK, conntrack::NEW, nl::MULTI, number);
        for (kind, tuple) in [(TUPLE_ORIG, tuples[0]), (TUPLE_REPLY, tuples[1])] {
            // What a request to forget says of a direction is what the kernel lists of it.
            let request = sent(forget_connection(0, (of, proto), tuple, None));
            let request = Messages::new(&request).next().unwrap();
            let (_, _, attrs) = netfilter::parts(&request, CONNTRACK).unwrap();
            let value = attrs.find(TUPLE_ORIG).unwrap().value;
            message.put(kind, value);
        }
        more(&mut message);
        sent(message)
    }

    fn read(bytes: &[u8]) -> Option<Connection> {
        decode_connection(&Messages::new(bytes).next()?)
    }

    #[test]
    fn connections_are_read() {
        let orig = CtTuple {
            src: mapped_ipv4(0x0a01_0101),
            dst: mapped_ipv4(0x0a01_0102),
            src_port: 40000,
            dst_port: 80,
            ..CtTuple::default()
        };
        let reply = CtTuple {
            src: orig.dst,
            dst: orig.src,
            src_port: 80,
            dst_port: 40000,
            ..CtTuple::default()
        };
        let bytes = listed(Family::V4, 6, [&orig, &reply], |message| {
            message.put_be16(ZONE, 9);
            message.put_be32(MARK, 3);
            message.put_be32(ID, 77);
            message.put_be32(STATUS, 0xffff_000e);
            message.put_be32(TIMEOUT, 120);
            message.put(LABELS, &5u128.to_ne_bytes());
            let nest = message.open(PROTOINFO);
            let tcp = message.open(PROTOINFO_TCP);
            message.put_u8(1, 7).put_u8(2, 3).put(4, &[0xa3, 0]);
            message.close(tcp);
            message.close(nest);
            let nest = message.open(COUNTERS_ORIG);
            message.put_be64(1, 4).put_be64(2, 5);
            message.close(nest);
            let nest = message.open(HELP);
            message.put_text(1, "ftp");
            message.close(nest);
        });
        let side = |window_scale, flags| TcpSide {
            state: TcpState::TimeWait,
            window_scale,
            flags,
        };
        let expected = Connection {
            zone: 9,
            mark: 3,
            id: 77,
            status: 0xe,
            timeout: 120,
            labels: 5,
            info: ProtoInfo::Tcp(side(3, 0x23), side(0, 0)),
            orig_counters: CtCounters {
                packets: 4,
                bytes: 5,
            },
            helper: Some("ftp".to_owned()),
            ..Connection::new(Family::V4, 6, orig, reply)
        };
        assert_eq!(read(&bytes), Some(expected));
        for len in 0..bytes.len() - 16 {
            let mut short = bytes[..16 + len].to_vec();
            short[..4].copy_from_slice(&(16 + len as u32).to_ne_bytes());
            // It is read or not, and nothing worse.
            let _ = read(&short);
        }
    }

    #[test]
    fn both_families_of_icmp() {
        for (of, proto, other) in [(Family::V4, 1, 58), (Family::V6, 58, 1)] {
            let src = match of {
                Family::V4 => mapped_ipv4(1),
                Family::V6 => 1 << 64,
            };
            let ping = CtTuple {
                src,
                dst: src + 1,
                icmp_id: 7,
                icmp_type: 8,
                icmp_code: 2,
                ..CtTuple::default()
            };
            let bytes = listed(of, proto, [&ping, &ping], |_| ());
            assert_eq!(read(&bytes).map(|c| (c.family, c.orig)), Some((of, ping)));
            // A protocol of the other family is one without ports or types.
            let bytes = listed(of, other, [&ping, &ping], |_| ());
            let plain = CtTuple {
                src: ping.src,
                dst: ping.dst,
                ..CtTuple::default()
            };
            assert_eq!(read(&bytes).map(|c| c.orig), Some(plain));
        }
    }

    #[test]
    fn a_request_to_forget_one_names_it() {
        let orig = CtTuple {
            src: mapped_ipv4(0x0102_0304),
            dst: mapped_ipv4(0x0506_0708),
            src_port: 0x1112,
            dst_port: 0x2122,
            ..CtTuple::default()
        };
        let bytes = sent(forget_connection(
            0x3132,
            (Family::V4, 17),
            &orig,
            Some(0x4142_4344),
        ));
        assert_eq!(bytes[4..6], 0x0102u16.to_ne_bytes());
        let mut expected = vec![2, 0, 0, 0];
        expected.extend([6, 0, 18, 0, 0x31, 0x32, 0, 0]);
        expected.extend([52, 0, 1, 0x80, 20, 0, 1, 0x80]);
        expected.extend([8, 0, 1, 0, 1, 2, 3, 4, 8, 0, 2, 0, 5, 6, 7, 8]);
        expected.extend([28, 0, 2, 0x80, 5, 0, 1, 0, 17, 0, 0, 0]);
        expected.extend([6, 0, 2, 0, 0x11, 0x12, 0, 0, 6, 0, 3, 0, 0x21, 0x22, 0, 0]);
        expected.extend([8, 0, 12, 0, 0x41, 0x42, 0x43, 0x44]);
        assert_eq!(bytes[16..], expected);
    }
}
