//! Header views: each is made only over as many bytes as the header has, so that reading a
//! field cannot fail; multi-byte fields are given in host order.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::EthAddr;

/// Values of the Ethernet type field.
pub mod eth_type {
    /// Values below this are lengths (IEEE 802.3).
    pub const MIN: u16 = 0x0600;
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP (RFC 826).
    pub const ARP: u16 = 0x0806;
    /// Transparent Ethernet bridging.
    pub const TEB: u16 = 0x6558;
    /// Reverse ARP (RFC 903).
    pub const RARP: u16 = 0x8035;
    /// Customer VLAN tag (IEEE 802.1Q).
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// Slow protocols: LACP and marker (IEEE 802.3 annex 57A).
    pub const SLOW: u16 = 0x8809;
    /// MPLS unicast.
    pub const MPLS: u16 = 0x8847;
    /// MPLS multicast.
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// Service VLAN tag (IEEE 802.1ad).
    pub const VLAN_8021AD: u16 = 0x88a8;
    /// Link layer discovery (IEEE 802.1AB).
    pub const LLDP: u16 = 0x88cc;
    /// Connectivity fault management (IEEE 802.1ag).
    pub const CFM: u16 = 0x8902;
    /// Network service header (RFC 8300).
    pub const NSH: u16 = 0x894f;
    /// What the flow key holds for a frame that has no Ethernet type.
    pub const NONE: u16 = 0x05ff;

    /// Whether `value` is a VLAN tag's.
    pub const fn is_vlan(value: u16) -> bool {
        matches!(value, VLAN | VLAN_8021AD)
    }

    /// Whether `value` is MPLS's.
    pub const fn is_mpls(value: u16) -> bool {
        matches!(value, MPLS | MPLS_MULTICAST)
    }
}

/// Protocol numbers of IP.
pub mod ip_proto {
    /// Hop-by-hop options of IPv6.
    pub const HOPOPTS: u8 = 0;
    /// ICMP (RFC 792).
    pub const ICMP: u8 = 1;
    /// IGMP (RFC 3376).
    pub const IGMP: u8 = 2;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// Routing header of IPv6.
    pub const ROUTING: u8 = 43;
    /// Fragment header of IPv6.
    pub const FRAGMENT: u8 = 44;
    /// GRE (RFC 2784).
    pub const GRE: u8 = 47;
    /// Authentication header (RFC 4302).
    pub const AH: u8 = 51;
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// No next header of IPv6.
    pub const NONE: u8 = 59;
    /// Destination options of IPv6.
    pub const DSTOPTS: u8 = 60;
    /// SCTP (RFC 9260).
    pub const SCTP: u8 = 132;
    /// UDP-Lite (RFC 3828).
    pub const UDPLITE: u8 = 136;
    /// Mobility header of IPv6.
    pub const MOBILITY: u8 = 135;
}

/// How a field's bytes become its value.
trait FromBytes<const N: usize> {
    fn from_bytes(bytes: [u8; N]) -> Self;
}

macro_rules! from_bytes {
    ($($type:ty: $len:literal, $make:expr;)*) => {$(
        impl FromBytes<$len> for $type {
            fn from_bytes(bytes: [u8; $len]) -> Self {
                $make(bytes)
            }
        }
    )*};
}

from_bytes! {
    u8: 1, |bytes: [u8; 1]| bytes[0];
    u16: 2, u16::from_be_bytes;
    u32: 4, u32::from_be_bytes;
    EthAddr: 6, EthAddr;
    Ipv4Addr: 4, Ipv4Addr::from;
    Ipv6Addr: 16, Ipv6Addr::from;
}

macro_rules! headers {
    ($(
        $(#[$doc:meta])* $name:ident[$len:literal] {
            $($(#[$fdoc:meta])* $field:ident: $type:ty = $at:literal, $flen:literal;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a>(&'a [u8; $len]);

        impl<'a> $name<'a> {
            /// Length of the fixed part.
            pub const LEN: usize = $len;

            /// A view of the header at the start of `bytes`, if all of its fixed part is there.
            pub fn new(bytes: &'a [u8]) -> Option<Self> {
                bytes.first_chunk().map(Self)
            }

            /// The bytes of the header.
            pub const fn bytes(self) -> &'a [u8; $len] {
                self.0
            }

            $(
                $(#[$fdoc])*
                pub fn $field(self) -> $type {
                    let mut bytes = [0; $flen];
                    bytes.copy_from_slice(&self.0[$at..$at + $flen]);
                    <$type as FromBytes<$flen>>::from_bytes(bytes)
                }
            )*
        }
    )*};
}

headers! {
    /// Ethernet II.
    Ethernet[14] {
        /// Destination.
        dst: EthAddr = 0, 6;
        /// Source.
        src: EthAddr = 6, 6;
        /// Ethernet type or length.
        eth_type: u16 = 12, 2;
    }
    /// What follows a VLAN tag's Ethernet type (IEEE 802.1Q).
    Vlan[4] {
        /// Priority (3 bits), drop eligible (1 bit), VLAN id (12 bits).
        tci: u16 = 0, 2;
        /// The next Ethernet type or length.
        eth_type: u16 = 2, 2;
    }
    /// IEEE 802.2 LLC with SNAP.
    LlcSnap[8] {
        /// Destination service access point.
        dsap: u8 = 0, 1;
        /// Source service access point.
        ssap: u8 = 1, 1;
        /// Control.
        control: u8 = 2, 1;
        /// Protocol type under OUI zero.
        eth_type: u16 = 6, 2;
    }
    /// One MPLS label stack entry (RFC 3032).
    Mpls[4] {
        /// Label (20 bits), traffic class (3 bits), bottom of stack (1 bit), TTL (8 bits).
        lse: u32 = 0, 4;
    }
    /// ARP for IPv4 over Ethernet.
    Arp[28] {
        /// Hardware type; 1 is Ethernet.
        hardware: u16 = 0, 2;
        /// Protocol type.
        protocol: u16 = 2, 2;
        /// Length of a hardware address.
        hardware_len: u8 = 4, 1;
        /// Length of a protocol address.
        protocol_len: u8 = 5, 1;
        /// Operation.
        op: u16 = 6, 2;
        /// Sender's hardware address.
        sha: EthAddr = 8, 6;
        /// Sender's protocol address.
        spa: Ipv4Addr = 14, 4;
        /// Target's hardware address.
        tha: EthAddr = 18, 6;
        /// Target's protocol address.
        tpa: Ipv4Addr = 24, 4;
    }
    /// IPv4 (RFC 791).
    Ipv4[20] {
        /// Version and header length.
        version_ihl: u8 = 0, 1;
        /// Type of service: DSCP (6 bits), ECN (2 bits).
        tos: u8 = 1, 1;
        /// Total length.
        total_len: u16 = 2, 2;
        /// Identification.
        id: u16 = 4, 2;
        /// Flags (3 bits) and fragment offset in 8-byte units (13 bits).
        fragment: u16 = 6, 2;
        /// Time to live.
        ttl: u8 = 8, 1;
        /// Protocol.
        proto: u8 = 9, 1;
        /// Header checksum.
        checksum: u16 = 10, 2;
        /// Source.
        src: Ipv4Addr = 12, 4;
        /// Destination.
        dst: Ipv4Addr = 16, 4;
    }
    /// IPv6 (RFC 8200).
    Ipv6[40] {
        /// Version (4 bits), traffic class (8 bits), flow label (20 bits).
        version_class_label: u32 = 0, 4;
        /// Payload length.
        payload_len: u16 = 4, 2;
        /// Next header.
        next_header: u8 = 6, 1;
        /// Hop limit.
        hop_limit: u8 = 7, 1;
        /// Source.
        src: Ipv6Addr = 8, 16;
        /// Destination.
        dst: Ipv6Addr = 24, 16;
    }
    /// The first bytes of an IPv6 extension header.
    Ipv6Extension[8] {
        /// Next header.
        next_header: u8 = 0, 1;
        /// Length; its unit depends on the header.
        length: u8 = 1, 1;
        /// Of a fragment header: offset in 8-byte units (13 bits), reserved (2 bits), more (1 bit).
        fragment: u16 = 2, 2;
        /// Of a fragment header: identification.
        id: u32 = 4, 4;
    }
    /// TCP (RFC 9293).
    Tcp[20] {
        /// Source port.
        src: u16 = 0, 2;
        /// Destination port.
        dst: u16 = 2, 2;
        /// Sequence number.
        seq: u32 = 4, 4;
        /// Acknowledgement number.
        ack: u32 = 8, 4;
        /// Data offset in 4-byte units (4 bits), reserved and flags (12 bits).
        offset_flags: u16 = 12, 2;
        /// Window.
        window: u16 = 14, 2;
        /// Checksum.
        checksum: u16 = 16, 2;
        /// Urgent pointer.
        urgent: u16 = 18, 2;
    }
    /// UDP (RFC 768).
    Udp[8] {
        /// Source port.
        src: u16 = 0, 2;
        /// Destination port.
        dst: u16 = 2, 2;
        /// Length of header and payload.
        length: u16 = 4, 2;
        /// Checksum; zero if there is none.
        checksum: u16 = 6, 2;
    }
    /// SCTP's common header (RFC 9260).
    Sctp[12] {
        /// Source port.
        src: u16 = 0, 2;
        /// Destination port.
        dst: u16 = 2, 2;
        /// Verification tag.
        tag: u32 = 4, 4;
    }
    /// ICMP (RFC 792) and the fixed part of ICMPv6's informational messages (RFC 4443).
    Icmp[8] {
        /// Type.
        kind: u8 = 0, 1;
        /// Code.
        code: u8 = 1, 1;
        /// Checksum.
        checksum: u16 = 2, 2;
        /// The rest of the header: of neighbour discovery the reserved or flags word.
        rest: u32 = 4, 4;
    }
    /// IGMP (RFC 2236).
    Igmp[8] {
        /// Type.
        kind: u8 = 0, 1;
        /// Maximum response time.
        code: u8 = 1, 1;
        /// Checksum.
        checksum: u16 = 2, 2;
        /// Group.
        group: Ipv4Addr = 4, 4;
    }
    /// Neighbour solicitation or advertisement (RFC 4861 sections 4.3 and 4.4).
    Nd[24] {
        /// Type.
        kind: u8 = 0, 1;
        /// Code.
        code: u8 = 1, 1;
        /// Checksum.
        checksum: u16 = 2, 2;
        /// Flags of an advertisement.
        rest: u32 = 4, 4;
        /// Target.
        target: Ipv6Addr = 8, 16;
    }
}

impl Ipv4<'_> {
    /// Header length in bytes, as the packet claims.
    pub fn header_len(self) -> usize {
        usize::from(self.version_ihl() & 0xf) * 4
    }

    /// Version.
    pub fn version(self) -> u8 {
        self.version_ihl() >> 4
    }
}

impl Tcp<'_> {
    /// Header length in bytes, as the packet claims.
    pub fn header_len(self) -> usize {
        usize::from(self.offset_flags() >> 12) * 4
    }

    /// The flags, low 12 bits.
    pub fn flags(self) -> u16 {
        self.offset_flags() & 0xfff
    }
}

/// Where an IPv6 packet's transport header is, after its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Upper {
    /// Protocol of the transport header (or the first header that is not known).
    pub proto: u8,
    /// Offset from the start of the IPv6 header.
    pub offset: usize,
    /// The offset-and-flags word of the fragment header, if there is one.
    pub fragment: Option<u16>,
}

/// Walks the extension headers of `packet`, which begins with an IPv6 header and ends with
/// its payload.  None if a header is cut short.  After a fragment header with an offset other than
/// zero nothing more is read.
pub fn ipv6_upper(packet: &[u8]) -> Option<Ipv6Upper> {
    let mut upper = Ipv6Upper {
        proto: Ipv6::new(packet)?.next_header(),
        offset: Ipv6::LEN,
        fragment: None,
    };
    loop {
        let known = matches!(
            upper.proto,
            ip_proto::HOPOPTS
                | ip_proto::ROUTING
                | ip_proto::DSTOPTS
                | ip_proto::AH
                | ip_proto::FRAGMENT
                | ip_proto::MOBILITY
        );
        if !known {
            return Some(upper);
        }
        let rest = packet.get(upper.offset..)?;
        let extension = Ipv6Extension::new(rest)?;
        let len = match upper.proto {
            ip_proto::FRAGMENT => 8,
            ip_proto::AH => (usize::from(extension.length()) + 2) * 4,
            _ => (usize::from(extension.length()) + 1) * 8,
        };
        if rest.len() < len {
            return None;
        }
        let fragment = (upper.proto == ip_proto::FRAGMENT).then(|| extension.fragment());
        upper.proto = extension.next_header();
        upper.offset += len;
        if let Some(fragment) = fragment {
            upper.fragment = Some(fragment);
            if fragment & !7 != 0 {
                return Some(upper);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_header_has_no_view() {
        assert!(Ipv4::new(&[0x45; 19]).is_none());
        assert_eq!(Ipv4::new(&[0x45; 20]).unwrap().header_len(), 20);
    }

    #[test]
    fn extension_headers_are_walked_and_never_past_the_end() {
        let mut packet = vec![0; 40];
        packet[6] = ip_proto::HOPOPTS;
        packet.extend([ip_proto::FRAGMENT, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend([ip_proto::TCP, 0, 0, 1, 0, 0, 0, 9]);
        let upper = ipv6_upper(&packet).unwrap();
        let expected = Ipv6Upper {
            proto: ip_proto::TCP,
            offset: 56,
            fragment: Some(1),
        };
        assert_eq!(upper, expected);
        for len in 40..56 {
            assert_eq!(ipv6_upper(&packet[..len]), None);
        }
        packet[41] = 255;
        assert_eq!(ipv6_upper(&packet), None);
    }
}
