//! `compose-packet`: a packet made from a flow.

use std::io::IsTerminal as _;

use net_flow::compose::{DEFAULT_PAYLOAD, compose, compose_with};
use net_flow::extract::{MAX_VLANS, extract};
use net_flow::packet::put_packet;
use net_flow::text::exact_flow;
use net_flow::types::eth_type;
use net_flow::{FlowKey, Names, slot};
use net_packet::Packet;

use super::input::hex;
use super::{Ctl, Outcome, fatal};

pub(super) fn compose_packet(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let settings = ctl.settings.compose;
    if settings.pcap && settings.bare {
        return fatal("--bare and --pcap are mutually exclusive");
    }
    if settings.pcap && std::io::stdout().is_terminal() {
        return fatal(
            "not writing pcap data to stdout; redirect to a file or pipe to tcpdump instead",
        );
    }
    let key = match exact_flow(&args[0], &ctl.no_names) {
        Ok(flow) => flow.key().clone(),
        Err(text) => return fatal(text),
    };
    let mut packet = match args.get(1) {
        None => compose(&key, DEFAULT_PAYLOAD),
        Some(text) => match hex(text) {
            Some(payload) => compose_with(&key, &payload),
            None => return fatal(format!("{text}: trailing garbage in packet data")),
        },
    };
    if settings.bad_csum {
        spoil_checksum(&key, &mut packet);
    }
    if settings.pcap {
        // A tool that reads it goes on when it has enough.
        let _ = ctl.env.stdout.write_all(&capture(&packet));
    } else if settings.bare {
        let digits: String = packet.iter().map(|b| format!("{b:02x}")).collect();
        ctl.env.print(digits);
    } else {
        ctl.print_hex_dump(&packet);
    }
    let read = read_back(&packet);
    if key != read {
        let (said, found) = (shown(&key), shown(&read));
        let text =
            format!("specified and extracted flows differ:\nspecified: {said}\nextracted: {found}");
        let _ = write!(ctl.env.stderr, "{text}");
        return Err(super::Fail::Code(1));
    }
    Ok(())
}

/// What is read of the packet.
fn read_back(packet: &[u8]) -> FlowKey {
    let mut key = FlowKey::new();
    extract(&mut Packet::from_frame(packet), &mut key, MAX_VLANS);
    key
}

fn shown(key: &FlowKey) -> String {
    let mut text = String::new();
    put_packet(&mut text, key, &Names::default());
    text
}

/// A wrong checksum in the IPv4 header, if there is one.
fn spoil_checksum(key: &FlowKey, packet: &mut [u8]) {
    if key.get(slot::ETH_TYPE) as u16 != eth_type::IPV4 {
        return;
    }
    let tags = [slot::VLAN_TCI, slot::VLAN2_TCI];
    let tags = tags.iter().filter(|t| key.get(**t) & 0x1000 != 0).count();
    if let Some(byte) = packet.get_mut(14 + 4 * tags + 10) {
        *byte ^= 1;
    }
}

/// A capture file with this packet (libpcap's format, microseconds, Ethernet).
fn capture(packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(40 + packet.len());
    out.extend(0xa1b2_c3d4_u32.to_ne_bytes());
    out.extend(2u16.to_ne_bytes());
    out.extend(4u16.to_ne_bytes());
    for word in [0, 0, 1518, 1] {
        out.extend(u32::to_ne_bytes(word));
    }
    let len = packet.len() as u32;
    for word in [0, 0, len, len] {
        out.extend(u32::to_ne_bytes(word));
    }
    out.extend(packet);
    out
}

#[cfg(test)]
mod tests {
    use crate::{Env, Exit};

    fn run(args: &[&str]) -> (Exit, Vec<u8>, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut input: &[u8] = b"";
        let mut env = Env::new("ovs-ofctl", &mut input, &mut out, &mut err);
        let args: Vec<String> = ["ovs-ofctl", "compose-packet"]
            .iter()
            .chain(args)
            .map(|a| (*a).to_owned())
            .collect();
        let exit = super::super::run(&mut env, &args);
        (exit, out, String::from_utf8(err).unwrap())
    }

    const FLOW: &str = "eth_src=00:00:00:00:00:01,eth_dst=00:00:00:00:00:02,udp,nw_src=1.2.3.4,\
         nw_dst=5.6.7.8,nw_ttl=64,nw_frag=no,udp_src=1,udp_dst=2";
    const HEADERS: &str = "00000000000200000000000108004500";

    #[test]
    fn packets_are_shown_as_digits_or_captured() {
        let (exit, out, err) = run(&["--bare", FLOW, "cafe"]);
        assert_eq!((exit, err.as_str()), (Exit::SUCCESS, ""));
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with(HEADERS) && text.ends_with("cafe"),
            "{text}"
        );
        assert_eq!(text.len(), 2 * (14 + 20 + 8 + 2));
        let (_, spoilt, _) = run(&["--bare", "--bad-csum", FLOW, "cafe"]);
        let spoilt = String::from_utf8(spoilt).unwrap();
        let differ = text.bytes().zip(spoilt.bytes()).filter(|(a, b)| a != b);
        assert_eq!(differ.count(), 1);
        let (_, whole, _) = run(&["--bare", FLOW]);
        assert_eq!(whole.len(), 2 * (14 + 20 + 8 + 64));
        let (_, dump, _) = run(&[FLOW, "cafe"]);
        assert!(dump.starts_with(b"00000000  00 00 00 00 00 02 00 00-00 00 00 01 08 00 45 00"));
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        let (exit, _, err) = run(&["--bare", "udp,foo=1"]);
        assert_eq!(exit, Exit::FAILURE);
        assert_eq!(err, "ovs-ofctl: unknown field foo\n");
        let (_, _, err) = run(&["--bare", "--pcap", FLOW]);
        assert!(err.contains("--bare and --pcap are mutually exclusive"));
        let (_, _, err) = run(&["--bare", FLOW, "xy"]);
        assert!(err.contains("trailing garbage in packet data"), "{err}");
        // Packets of other operations have no addresses.
        let (exit, _, err) = run(&["--bare", "arp,arp_op=5,arp_spa=1.2.3.4"]);
        assert_ne!(exit, Exit::SUCCESS);
        assert!(
            err.contains("specified and extracted flows differ"),
            "{err}"
        );
    }
}
