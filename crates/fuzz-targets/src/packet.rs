//! Frames from a hostile host.

use std::net::{Ipv4Addr, Ipv6Addr};

use net_flow::FlowKey;
use net_flow::compose::{DEFAULT_PAYLOAD, compose};
use net_flow::extract::extract;
use net_packet::edit::{self, ArpFields, Ipv4Fields, Ipv6Fields};
use net_packet::{EthAddr, Packet};

const SRC: EthAddr = EthAddr([2, 0, 0, 0, 0, 1]);
const DST: EthAddr = EthAddr([2, 0, 0, 0, 0, 2]);
const V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// Edits that an action list may ask for, whatever the packet is.
const EDITS: &[fn(&mut Packet)] = &[
    |packet| edit::set_tcp_ports(packet, 1, 2),
    |packet| edit::set_udp_ports(packet, 1, 2),
    |packet| edit::set_sctp_ports(packet, 1, 2),
    |packet| edit::set_icmp(packet, 1, 2),
    |packet| edit::pop_eth(packet),
    |packet| edit::push_eth(packet, SRC, DST, 0x0800),
    |packet| edit::set_eth(packet, SRC, DST),
    |packet| edit::push_vlan(packet, 0x88a8, 0x1005),
    |packet| edit::pop_vlan(packet),
    |packet| edit::set_vlan_tci(packet, 0x1005),
    |packet| edit::push_mpls(packet, 0x8847, 0x0000_5140),
    |packet| edit::pop_mpls(packet, 0x0800),
    |packet| edit::set_mpls_lse(packet, 0x0000_5140),
    |packet| {
        let (src, dst) = (V4, V4);
        edit::set_ipv4(
            packet,
            &Ipv4Fields {
                src,
                dst,
                tos: 3,
                ttl: 9,
            },
        );
    },
    |packet| edit::set_ipv6(packet, &ipv6_fields(6)),
    |packet| edit::set_ipv6(packet, &ipv6_fields(17)),
    |packet| edit::set_ipv6(packet, &ipv6_fields(58)),
    |packet| {
        let (spa, tpa, sha, tha) = (V4, V4, SRC, DST);
        edit::set_arp(
            packet,
            &ArpFields {
                op: 2,
                spa,
                tpa,
                sha,
                tha,
            },
        );
    },
    |packet| edit::set_nd(packet, V6, SRC, DST),
    |packet| edit::set_nd_reserved(packet, 0x8000_0000),
    |packet| edit::set_nd_option_type(packet, 2),
];

fn ipv6_fields(proto: u8) -> Ipv6Fields {
    Ipv6Fields {
        src: V6,
        dst: V6,
        proto,
        class: 5,
        label: 7,
        hop_limit: 9,
    }
}

/// Extracts a flow key from a frame, edits the frame, and makes a frame of the key.
///
/// # Panics
/// When what was read depends on more than the frame.
pub fn packet(frame: &[u8]) {
    if frame.len() > 65_000 {
        return;
    }
    let key = |frame: &[u8]| {
        let mut packet = Packet::from_frame(frame);
        let mut key = FlowKey::new();
        extract(&mut packet, &mut key, 2);
        assert_eq!(packet.data(), frame, "reading a frame must not change it");
        key
    };
    let whole = key(frame);
    assert!(whole == key(frame), "the same frame has the same key");
    for edit in EDITS {
        let mut packet = Packet::from_frame(frame);
        extract(&mut packet, &mut FlowKey::new(), 2);
        edit(&mut packet);
        extract(&mut packet, &mut FlowKey::new(), 2);
    }
    // A field that a cut frame still has is as it was: nothing was read behind the end.
    let cut = key(&frame[..frame.len() / 2]);
    let (a, b) = (net_flow::slot::ETH_DST, net_flow::slot::ETH_SRC);
    if frame.len() / 2 >= 14 {
        assert_eq!((cut.get(a), cut.get(b)), (whole.get(a), whole.get(b)));
    }
    key(&compose(&whole, DEFAULT_PAYLOAD));
}
