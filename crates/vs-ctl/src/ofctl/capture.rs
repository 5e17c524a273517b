//! Capture files (`pcap`): `ofp-parse-pcap` prints the OpenFlow messages in one.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use base::WallTime;
use net_flow::types::{eth_type, ip_proto};
use net_flow::{FlowKey, slot};
use net_packet::Packet;
use net_packet::header::Tcp;
use of_wire::print::{Style, message_text};

use super::{Ctl, Outcome, fatal};

/// Bytes before the first packet.
const FILE_HEADER: usize = 24;
/// Bytes before each packet.
const PACKET_HEADER: usize = 16;
/// The ports that OpenFlow has, and had.
const PORTS: [u16; 2] = [6653, 6633];
/// Flags of TCP (RFC 9293 section 3.1).
mod flag {
    pub(super) const FIN: u16 = 1;
    pub(super) const SYN: u16 = 2;
    pub(super) const RST: u16 = 4;
}

/// When a packet was captured, and its bytes.
type Captured<'b> = (WallTime, &'b [u8]);

/// The packets in a capture file in either byte order, with the time of each.
///
/// # Errors
/// The packets before what is wrong, and what that is.
pub(super) fn packets(bytes: &[u8]) -> (Vec<Captured<'_>>, Result<(), &'static str>) {
    let mut found = Vec::new();
    let outcome = read_packets(bytes, &mut found);
    (found, outcome)
}

fn read_packets<'b>(bytes: &'b [u8], found: &mut Vec<Captured<'b>>) -> Result<(), &'static str> {
    let word = |at: usize, big: bool| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
        let word = word.ok_or("file is too short")?;
        Ok(match big {
            true => u32::from_be_bytes(*word),
            false => u32::from_le_bytes(*word),
        })
    };
    // A second has that many of what the file counts parts of seconds in.
    let (big, parts) = match word(0, true)? {
        0xa1b2_c3d4 => (true, 1_000_000),
        0xd4c3_b2a1 => (false, 1_000_000),
        0xa1b2_3c4d => (true, 1_000_000_000),
        0x4d3c_b2a1 => (false, 1_000_000_000),
        _ => return Err("not a capture file"),
    };
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        let (seconds, part) = (word(at, big)?, word(at + 4, big)?);
        let len = word(at + 8, big)? as usize;
        let start = at + PACKET_HEADER;
        let packet = bytes.get(start..).and_then(|rest| rest.get(..len));
        let packet = packet.ok_or("file ends in a packet")?;
        let millis = i64::from(seconds) * 1000 + i64::from(part) * 1000 / parts;
        found.push((WallTime(millis), packet));
        at = start + len;
    }
    Ok(())
}

/// Addresses and ports of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Direction {
    src: (Ipv4Addr, u16),
    dst: (Ipv4Addr, u16),
}

#[derive(Debug)]
struct Stream {
    /// The number of the byte that comes next.
    next: u32,
    /// What has come and was not taken.
    waiting: Vec<u8>,
}

/// Puts the bytes of TCP connections together.  What comes out of order is left out.
#[derive(Debug, Default)]
struct Reassembly(HashMap<Direction, Stream>);

impl Reassembly {
    /// Takes a segment.  Returns what waits in its direction, if it brought anything forward.
    fn take(&mut self, direction: Direction, tcp: Tcp<'_>, payload: &[u8]) -> Option<&mut Vec<u8>> {
        let flags = tcp.flags();
        let begins = flags & flag::SYN != 0;
        if flags & (flag::FIN | flag::RST) != 0 && !begins {
            self.0.remove(&direction);
            return None;
        }
        if begins {
            let stream = Stream {
                next: tcp.seq().wrapping_add(1),
                waiting: Vec::new(),
            };
            self.0.insert(direction, stream);
            return None;
        }
        if payload.is_empty() {
            return None;
        }
        let stream = self.0.entry(direction).or_insert_with(|| Stream {
            next: tcp.seq(),
            waiting: Vec::new(),
        });
        if tcp.seq() != stream.next {
            return None;
        }
        stream.next = stream.next.wrapping_add(payload.len() as u32);
        stream.waiting.extend_from_slice(payload);
        Some(&mut stream.waiting)
    }
}

/// The message at the beginning of `waiting`, which it is taken from.
fn take_message(waiting: &mut Vec<u8>) -> Option<Vec<u8>> {
    const HEADER: usize = 8;
    let length = usize::from(u16::from_be_bytes([*waiting.get(2)?, *waiting.get(3)?]));
    (length >= HEADER && length <= waiting.len()).then(|| waiting.drain(..length).collect())
}

/// The TCP segment in a frame: direction, header, payload.
fn segment(packet: &Packet, key: &FlowKey) -> Option<(Direction, usize, usize)> {
    let is_tcp = key.get(slot::ETH_TYPE) == u128::from(eth_type::IPV4)
        && key.get(slot::NW_PROTO) == u128::from(ip_proto::TCP);
    let l4 = usize::from(packet.layers.l4.filter(|_| is_tcp)?);
    let own = packet
        .len()
        .checked_sub(usize::from(packet.layers.padding))?;
    let tcp = Tcp::new(packet.data().get(l4..own)?)?;
    let payload = l4 + tcp.header_len();
    let address = |slot| Ipv4Addr::from_bits(key.get(slot) as u32);
    let direction = Direction {
        src: (address(slot::NW_SRC), tcp.src()),
        dst: (address(slot::NW_DST), tcp.dst()),
    };
    (payload >= l4 + Tcp::LEN && payload <= own).then_some((direction, l4, payload))
}

pub(super) fn ofp_parse_pcap(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let file = &args[0];
    let bytes = ctl.read_all(file);
    let bytes = bytes
        .or_else(|error| fatal(format!("{file}: open failed ({})", io::error_text(&error))))?;
    // As C's `atoi`: what is no number is port 0, which nobody has.
    let ports: Vec<u16> = match &args[1..] {
        [] => PORTS.to_vec(),
        given => given.iter().map(|p| p.parse().unwrap_or(0)).collect(),
    };
    let (packets, outcome) = packets(&bytes);
    let mut streams = Reassembly::default();
    let mut is_first = true;
    for (when, frame) in packets {
        let mut packet = Packet::from_frame(frame);
        let mut key = FlowKey::new();
        net_flow::extract(&mut packet, &mut key, net_flow::extract::MAX_VLANS);
        let Some((direction, l4, payload)) = segment(&packet, &key) else {
            continue;
        };
        if !(ports.contains(&direction.src.1) || ports.contains(&direction.dst.1)) {
            continue;
        }
        let own = packet.len() - usize::from(packet.layers.padding);
        let data = &packet.data()[..own];
        let Some(tcp) = Tcp::new(&data[l4..]) else {
            continue;
        };
        let Some(waiting) = streams.take(direction, tcp, &data[payload..]) else {
            continue;
        };
        while let Some(message) = take_message(waiting) {
            if !std::mem::take(&mut is_first) {
                ctl.env.print("\n");
            }
            show(ctl, when, &direction, &message);
        }
    }
    outcome.or_else(|why| fatal(format!("{file}: read failed ({why})")))
}

fn show(ctl: &mut Ctl<'_, '_>, when: WallTime, direction: &Direction, message: &[u8]) {
    if ctl.settings.timestamp {
        let time = base::log::date::format("%H:%M:%S.###", when, 0);
        ctl.env.print(format_args!("{time} "));
    }
    let Direction { src, dst } = direction;
    let style = Style {
        names: &ctl.no_names.clone(),
        verbosity: ctl.settings.verbosity.saturating_add(1),
    };
    let text = message_text(message, style);
    ctl.env.print(format_args!(
        "{}.{} > {}.{}:\n{text}",
        src.0, src.1, dst.0, dst.1
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTION: Direction = Direction {
        src: (Ipv4Addr::LOCALHOST, 6653),
        dst: (Ipv4Addr::LOCALHOST, 1),
    };

    fn header(seq: u32, flags: u8) -> [u8; Tcp::LEN] {
        let mut header = [0; Tcp::LEN];
        header[4..8].copy_from_slice(&seq.to_be_bytes());
        header[12..14].copy_from_slice(&[0x50, flags]);
        header
    }

    #[test]
    fn segments_in_order_are_put_together() {
        let mut streams = Reassembly::default();
        let mut take = |seq: u32, flags: u8, payload: &[u8]| {
            let header = header(seq, flags);
            let waiting = streams.take(DIRECTION, Tcp::new(&header).unwrap(), payload);
            waiting.map(|waiting| waiting.clone())
        };
        assert_eq!(take(u32::MAX, 2, b""), None);
        assert_eq!(take(0, 0x18, b"ab"), Some(b"ab".to_vec()));
        assert_eq!(take(5, 0x18, b"lost"), None);
        assert_eq!(take(2, 0x10, b""), None);
        assert_eq!(take(2, 0x18, b"c"), Some(b"abc".to_vec()));
        assert_eq!(take(3, 0x11, b"d"), None, "the end");
        // One whose beginning was not captured.
        assert_eq!(take(900, 0x18, b"x"), Some(b"x".to_vec()));
    }

    #[test]
    fn messages_are_taken_whole() {
        let mut waiting = [4, 2, 0, 9, 0, 0, 0, 1, 7, 4, 0, 0, 8, 0, 0].to_vec();
        assert_eq!(take_message(&mut waiting).map(|m| m.len()), Some(9));
        assert_eq!(take_message(&mut waiting), None);
        assert_eq!(waiting.len(), 6);
        waiting.extend([0, 0]);
        assert_eq!(take_message(&mut waiting).map(|m| m.len()), Some(8));
        let mut short = vec![4, 2, 0, 7, 0, 0, 0, 0, 0];
        assert_eq!(take_message(&mut short), None);
    }

    #[test]
    fn what_comes_before_a_fault_is_read() {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1];
        file.resize(FILE_HEADER, 0);
        file.extend([1, 0, 0, 0, 0xd0, 7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 8, 9]);
        let (found, outcome) = packets(&file);
        assert_eq!(found, [(WallTime(1002), &[8, 9][..])]);
        assert_eq!(outcome, Ok(()));
        file.extend([0; 15]);
        let (found, outcome) = packets(&file);
        assert_eq!(found.len(), 1);
        assert!(outcome.is_err());
        for cut in 0..file.len() {
            let _ = packets(&file[..cut]);
        }
    }
}
