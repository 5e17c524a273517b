//! Frames from a hostile host.

use net_flow::FlowKey;
use net_flow::extract::extract;
use net_packet::{Packet, edit};

/// Edits that an action list may ask for, whatever the packet is.
const EDITS: &[fn(&mut Packet)] = &[
    |packet| edit::set_tcp_ports(packet, 1, 2),
    |packet| edit::set_udp_ports(packet, 1, 2),
    |packet| edit::set_sctp_ports(packet, 1, 2),
    |packet| edit::set_icmp(packet, 1, 2),
    |packet| edit::pop_eth(packet),
];

/// Extracts a flow key from a frame, and edits the frame.
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
    }
    // A field that a cut frame still has is as it was: nothing was read behind the end.
    let cut = key(&frame[..frame.len() / 2]);
    let (a, b) = (net_flow::slot::ETH_DST, net_flow::slot::ETH_SRC);
    if frame.len() / 2 >= 14 {
        assert_eq!((cut.get(a), cut.get(b)), (whole.get(a), whole.get(b)));
    }
}
