//! Key attributes: the groups of fields that one `set` action writes together.

use net_flow::slot::{self, Slot};

/// A group of fields of a packet or its metadata, as the datapath's key has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyAttr {
    /// `skb_priority`.
    Priority,
    /// `skb_mark`.
    Mark,
    /// `tunnel`: id, addresses, tos, ttl, ports, flags; and beside these slots the options
    /// ([`crate::tunnel`]).
    Tunnel,
    /// `eth`.
    Ethernet,
    /// `ipv4`.
    Ipv4,
    /// `ipv6`.
    Ipv6,
    /// `tcp`: ports.
    Tcp,
    /// `udp`: ports.
    Udp,
    /// `sctp`: ports.
    Sctp,
    /// `icmp`: type and code.
    Icmp,
    /// `icmpv6`: type and code.
    Icmpv6,
    /// `arp`.
    Arp,
    /// `nd`: target and link-layer addresses.
    Nd,
    /// `nd_ext`: reserved bits and options type.
    NdExtensions,
    /// `mpls`: the outermost label stack entry.
    Mpls,
    /// `nsh`.
    Nsh,
}

impl KeyAttr {
    /// All attributes, in the order in which a translation commits them.
    pub const ALL: [Self; 16] = [
        Self::Tunnel,
        Self::Ethernet,
        Self::Ipv4,
        Self::Ipv6,
        Self::Arp,
        Self::Icmp,
        Self::Icmpv6,
        Self::Nd,
        Self::NdExtensions,
        Self::Nsh,
        Self::Tcp,
        Self::Udp,
        Self::Sctp,
        Self::Mpls,
        Self::Priority,
        Self::Mark,
    ];

    /// Where the fields of this attribute lie in a flow key.
    pub const fn slots(self) -> &'static [Slot] {
        match self {
            Self::Priority => &[slot::SKB_PRIORITY],
            Self::Mark => &[slot::PKT_MARK],
            Self::Tunnel => &[
                slot::TUN_ID,
                slot::TUN_SRC,
                slot::TUN_DST,
                slot::TUN_IPV6_SRC,
                slot::TUN_IPV6_DST,
                slot::TUN_TOS,
                slot::TUN_TTL,
                slot::TUN_TP_SRC,
                slot::TUN_TP_DST,
                slot::TUN_FLAGS,
                slot::TUN_GBP_ID,
                slot::TUN_GBP_FLAGS,
                slot::TUN_ERSPAN_VER,
                slot::TUN_ERSPAN_IDX,
                slot::TUN_ERSPAN_DIR,
                slot::TUN_ERSPAN_HWID,
                slot::TUN_OPTIONS_LEN,
            ],
            Self::Ethernet => &[slot::ETH_SRC, slot::ETH_DST],
            Self::Ipv4 => &[slot::NW_SRC, slot::NW_DST, slot::NW_TOS, slot::NW_TTL],
            Self::Ipv6 => &[
                slot::IPV6_SRC,
                slot::IPV6_DST,
                slot::IPV6_LABEL,
                slot::NW_TOS,
                slot::NW_TTL,
            ],
            Self::Tcp | Self::Udp | Self::Sctp | Self::Icmp | Self::Icmpv6 => {
                &[slot::TP_SRC, slot::TP_DST]
            }
            Self::Arp => &[
                slot::NW_SRC,
                slot::NW_DST,
                slot::NW_PROTO,
                slot::ARP_SHA,
                slot::ARP_THA,
            ],
            Self::Nd => &[slot::ND_TARGET, slot::ARP_SHA, slot::ARP_THA],
            Self::NdExtensions => &[slot::IGMP_GROUP, slot::TCP_FLAGS],
            Self::Mpls => &[slot::MPLS_LSE],
            Self::Nsh => &[
                slot::NSH_FLAGS,
                slot::NSH_TTL,
                slot::NSH_SPI,
                slot::NSH_SI,
                slot::NSH_C1,
                slot::NSH_C2,
                slot::NSH_C3,
                slot::NSH_C4,
            ],
        }
    }
}
