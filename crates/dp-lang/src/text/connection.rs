//! Tracked connections as `dpctl/dump-conntrack` prints them.

use std::fmt::Write as _;

use base::WallTime;
use base::log::date;
use net_flow::CtTuple;
use net_flow::connection::{is_icmp, put_address};

use crate::connection::{
    Connection, CtCounters, CtLimit, ProtoInfo, SCTP_STATES, STATUS_FLAGS, TCP_FLAGS, TcpSide,
};

/// What is printed beside the ends of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionFormat {
    /// `-m`: ids, status, both sides of a TCP connection.
    pub verbose: bool,
    /// `-s`: counters, times, what is left until it is forgotten.
    pub statistics: bool,
}

/// The name of an IP protocol, or its number.
fn put_proto(out: &mut String, proto: u8) {
    let name = match proto {
        1 => "icmp",
        2 => "igmp",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        58 => "icmpv6",
        132 => "sctp",
        136 => "udplite",
        _ => {
            let _ = write!(out, "{proto}");
            return;
        }
    };
    out.push_str(name);
}

fn put_tuple(out: &mut String, proto: u8, tuple: &CtTuple) {
    out.push_str("src=");
    put_address(out, tuple.src);
    out.push_str(",dst=");
    put_address(out, tuple.dst);
    let _ = if is_icmp(proto) {
        let (id, ty, code) = (tuple.icmp_id, tuple.icmp_type, tuple.icmp_code);
        write!(out, ",id={id},type={ty},code={code}")
    } else {
        write!(out, ",sport={},dport={}", tuple.src_port, tuple.dst_port)
    };
}

fn put_counters(out: &mut String, counters: CtCounters) {
    let CtCounters { packets, bytes } = counters;
    if packets != 0 || bytes != 0 {
        let _ = write!(out, ",packets={packets},bytes={bytes}");
    }
}

fn put_time(out: &mut String, name: &str, nanos: u64) {
    if nanos != 0 {
        let wall = WallTime((nanos / 1_000_000) as i64);
        let _ = write!(out, ",{name}=");
        out.push_str(&date::format_local("%Y-%m-%dT%H:%M:%S.###", wall));
    }
}

fn put_flags(out: &mut String, name: &str, flags: u32, names: &[&str]) {
    let _ = write!(out, ",{name}=");
    let set = names
        .iter()
        .enumerate()
        .filter(|(n, _)| flags >> n & 1 != 0);
    let set: Vec<&str> = set.map(|(_, name)| *name).collect();
    out.push_str(if set.is_empty() { "0" } else { "" });
    out.push_str(&set.join("|"));
}

fn put_tcp_sides(out: &mut String, orig: TcpSide, reply: TcpSide) {
    let (one, other) = (orig.state.name(), reply.state.name());
    let _ = write!(out, "state_orig={one},state_reply={other}");
    let (one, other) = (orig.window_scale, reply.window_scale);
    if one != 0 || other != 0 {
        let _ = write!(out, ",wscale_orig={one},wscale_reply={other}");
    }
    put_flags(out, "flags_orig", orig.flags.into(), &TCP_FLAGS);
    put_flags(out, "flags_reply", reply.flags.into(), &TCP_FLAGS);
}

fn put_info(out: &mut String, connection: &Connection, verbose: bool) {
    match connection.info {
        ProtoInfo::None => {}
        ProtoInfo::Tcp(orig, reply) => {
            out.push_str(",protoinfo=(");
            if verbose {
                put_tcp_sides(out, orig, reply);
            } else if let Some(state) = connection.tcp_state() {
                let _ = write!(out, "state={}", state.name());
            }
            out.push(')');
        }
        ProtoInfo::Sctp { state, vtags } => {
            let _ = match SCTP_STATES.get(usize::from(state)) {
                Some(name) => write!(out, ",protoinfo=(state={name}"),
                None => write!(out, ",protoinfo=(state=[{state}]"),
            };
            let _ = write!(out, ",vtag_orig={},vtag_reply={})", vtags.0, vtags.1);
        }
    }
}

/// A connection in one line.
pub fn format_connection(connection: &Connection, format: ConnectionFormat) -> String {
    let mut out = String::new();
    put_proto(&mut out, connection.proto);
    for (name, tuple, counters) in [
        ("orig", &connection.orig, connection.orig_counters),
        ("reply", &connection.reply, connection.reply_counters),
    ] {
        let _ = write!(out, ",{name}=(");
        put_tuple(&mut out, connection.proto, tuple);
        if format.statistics {
            put_counters(&mut out, counters);
        }
        out.push(')');
    }
    if format.statistics {
        put_time(&mut out, "start", connection.times.0);
        put_time(&mut out, "stop", connection.times.1);
    }
    if format.verbose {
        let _ = write!(out, ",id={}", connection.id);
    }
    if connection.zone != 0 {
        let _ = write!(out, ",zone={}", connection.zone);
    }
    if format.verbose {
        put_flags(&mut out, "status", connection.status, &STATUS_FLAGS);
    }
    if format.statistics {
        let _ = write!(out, ",timeout={}", connection.timeout);
    }
    if connection.mark != 0 {
        let _ = write!(out, ",mark={}", connection.mark);
    }
    if connection.labels != 0 {
        let _ = write!(out, ",labels={:#x}", connection.labels);
    }
    put_info(&mut out, connection, format.verbose);
    if let Some(helper) = &connection.helper {
        let _ = write!(out, ",helper={helper}");
    }
    if let Some((proto, tuple)) = connection.parent.as_ref().filter(|_| format.verbose) {
        out.push_str(",parent=(");
        put_tuple(&mut out, *proto, tuple);
        out.push(')');
    }
    out
}

/// Limits as `dpctl/ct-get-limits` prints them: the default first, then a line for each zone.
pub fn format_limits(limits: &[CtLimit]) -> String {
    let mut out = String::new();
    for default in limits.iter().filter(|l| l.zone.is_none()) {
        let _ = write!(out, "default limit={}", default.limit);
    }
    for CtLimit { zone, limit, count } in limits {
        if let Some(zone) = zone {
            let _ = write!(out, "\nzone={zone},limit={limit},count={count}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use net_flow::connection::{Family, mapped_ipv4};

    use super::*;
    use crate::connection::TcpState;

    fn tuple(ends: (u32, u32), ports: (u16, u16)) -> CtTuple {
        CtTuple {
            src: mapped_ipv4(ends.0),
            dst: mapped_ipv4(ends.1),
            src_port: ports.0,
            dst_port: ports.1,
            ..CtTuple::default()
        }
    }

    fn tcp() -> Connection {
        let side = TcpSide {
            state: TcpState::FinWait2,
            window_scale: 7,
            flags: 0b10_0011,
        };
        let (one, other) = (0x0a01_0101, 0x0a01_0102);
        let orig = tuple((one, other), (40000, 80));
        let reply = tuple((other, one), (80, 40000));
        Connection {
            zone: 3,
            mark: 5,
            labels: 0x1_0000,
            id: 77,
            status: 0b1110,
            timeout: 119,
            orig_counters: CtCounters {
                packets: 2,
                bytes: 120,
            },
            info: ProtoInfo::Tcp(side, TcpSide::default()),
            helper: Some("ftp".to_owned()),
            parent: Some((6, tuple((other, one), (21, 9)))),
            ..Connection::new(Family::V4, 6, orig, reply)
        }
    }

    #[test]
    fn connections_are_printed() {
        let brief = ConnectionFormat::default();
        assert_eq!(
            format_connection(&tcp(), brief),
            "tcp,orig=(src=10.1.1.1,dst=10.1.1.2,sport=40000,dport=80),\
             reply=(src=10.1.1.2,dst=10.1.1.1,sport=80,dport=40000),zone=3,mark=5,\
             labels=0x10000,protoinfo=(state=TIME_WAIT),helper=ftp"
        );
        let whole = ConnectionFormat {
            verbose: true,
            statistics: true,
        };
        assert_eq!(
            format_connection(&tcp(), whole),
            "tcp,orig=(src=10.1.1.1,dst=10.1.1.2,sport=40000,dport=80,packets=2,bytes=120),\
             reply=(src=10.1.1.2,dst=10.1.1.1,sport=80,dport=40000),id=77,zone=3,\
             status=SEEN_REPLY|ASSURED|CONFIRMED,timeout=119,mark=5,labels=0x10000,\
             protoinfo=(state_orig=FIN_WAIT_2,state_reply=CLOSED,wscale_orig=7,wscale_reply=0,\
             flags_orig=WINDOW_SCALE|SACK_PERM|MAXACK_SET,flags_reply=0),helper=ftp,\
             parent=(src=10.1.1.2,dst=10.1.1.1,sport=21,dport=9)"
        );
        let ping = CtTuple {
            src: 1,
            dst: 2,
            icmp_id: 9,
            icmp_type: 128,
            ..CtTuple::default()
        };
        let answer = CtTuple {
            icmp_type: 129,
            ..ping
        };
        let ping = Connection::new(Family::V6, 58, ping, answer);
        assert_eq!(
            format_connection(&ping, brief),
            "icmpv6,orig=(src=::1,dst=::2,id=9,type=128,code=0),\
             reply=(src=::1,dst=::2,id=9,type=129,code=0)"
        );
        let sctp = Connection {
            info: ProtoInfo::Sctp {
                state: 3,
                vtags: (1, 2),
            },
            ..Connection::new(Family::V4, 132, tcp().orig, tcp().reply)
        };
        let text = format_connection(&sctp, brief);
        assert!(text.ends_with("protoinfo=(state=ESTABLISHED,vtag_orig=1,vtag_reply=2)"));
    }

    #[test]
    fn limits_are_printed() {
        let limit = |zone, limit, count| CtLimit { zone, limit, count };
        let limits = [
            limit(Some(4), 5, 1),
            limit(None, 10, 0),
            limit(Some(0), 3, 2),
        ];
        assert_eq!(
            format_limits(&limits),
            "default limit=10\nzone=4,limit=5,count=1\nzone=0,limit=3,count=2"
        );
    }

    #[test]
    fn connections_are_found_by_what_is_said_of_them() {
        let of = |text: &str| {
            let args: Vec<&str> = text.split(' ').collect();
            net_flow::CtMatch::parse(&args).unwrap().1
        };
        for (text, expected) in [
            ("ct_nw_src=10.1.1.1", true),
            ("ct_nw_src=10.1.1.3", false),
            ("ct_ipv6_src=::1", false),
            ("ct_nw_proto=6", true),
            ("ct_nw_proto=17", false),
            ("ct_nw_proto=6,ct_tp_dst=80", true),
            ("mark=4/4", true),
            ("mark=2/2", false),
            ("labels=0x10000/0xf0000", true),
            ("labels=0/0xf0000", false),
            ("ct_nw_proto=6 ct_tp_dst=40000", true),
            ("ct_nw_proto=6 ct_tp_dst=40001", false),
        ] {
            assert_eq!(tcp().matches(&of(text)), expected, "{text}");
        }
    }
}
