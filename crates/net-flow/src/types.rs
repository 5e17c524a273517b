//! Well-known values of fields.

/// Ethernet types.
pub mod eth_type {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Reverse ARP.
    pub const RARP: u16 = 0x8035;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// IEEE 802.1Q VLAN tag.
    pub const VLAN: u16 = 0x8100;
    /// IEEE 802.1ad service VLAN tag.
    pub const VLAN_8021AD: u16 = 0x88a8;
    /// MPLS unicast.
    pub const MPLS: u16 = 0x8847;
    /// MPLS multicast.
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// Link layer discovery.
    pub const LLDP: u16 = 0x88cc;
    /// Slow protocols such as LACP.
    pub const SLOW: u16 = 0x8809;
    /// Network service header.
    pub const NSH: u16 = 0x894f;
    /// What a frame without an Ethernet type is given (OpenFlow 1.0, section 3.4).
    pub const NONE: u16 = 0x05ff;
}

/// IP protocol numbers.
pub mod ip_proto {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IGMP.
    pub const IGMP: u8 = 2;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// Flags of a tunnel.
pub mod tunnel_flag {
    /// The packet is the tunnel's own operation, administration and management (Geneve).
    pub const OAM: u16 = 1;
    /// The outer packet must not be fragmented.
    pub const DONT_FRAGMENT: u16 = 1 << 1;
    /// The outer header has a checksum.
    pub const CSUM: u16 = 1 << 2;
    /// The tunnel id is there.
    pub const KEY: u16 = 1 << 3;
    /// All flags.
    pub const ALL: u16 = OAM | DONT_FRAGMENT | CSUM | KEY;
}

/// ICMPv6 types of neighbour discovery (RFC 4861).
pub mod icmpv6_type {
    /// Neighbour solicitation.
    pub const ND_SOLICIT: u8 = 135;
    /// Neighbour advertisement.
    pub const ND_ADVERT: u8 = 136;
}

/// In a VLAN tag's control information: set when there is a tag.
pub const VLAN_CFI: u16 = 0x1000;
/// The VLAN id's bits in a tag's control information.
pub const VLAN_VID_MASK: u16 = 0x0fff;
/// The priority's bits in a tag's control information.
pub const VLAN_PCP_MASK: u16 = 0xe000;
/// In the fragment field: the packet is a fragment.
pub const FRAG_ANY: u8 = 1;
/// In the fragment field: the fragment is not the first.
pub const FRAG_LATER: u8 = 2;
