//! Where values lie in a flow key.
//!
//! Every value is kept in host order as an integer in a run of bits of one word, or of
//! two words (the first holds the upper half) for 128-bit values.  A field of the
//! wire format that is 48 bits long, say, is the integer of its bytes in wire order.

/// A run of bits in the words of a flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Index of the word, or of the upper of two words when `bits` exceeds 64.
    pub word: u8,
    /// Distance of the lowest bit from the least significant bit of the word.
    pub shift: u8,
    /// Width in bits, at most 128.
    pub bits: u8,
}

impl Slot {
    /// A slot of `bits` bits, `shift` above the bottom of word `word`.
    pub const fn new(word: u8, shift: u8, bits: u8) -> Self {
        Self { word, shift, bits }
    }

    /// The part of this slot that begins `offset` bits above its bottom.
    /// The part must lie in one word unless it is the whole slot.
    pub const fn part(self, offset: u8, bits: u8) -> Self {
        if self.bits > 64 {
            let word = if offset >= 64 {
                self.word
            } else {
                self.word + 1
            };
            Self::new(word, offset % 64, bits)
        } else {
            Self::new(self.word, self.shift + offset, bits)
        }
    }

    /// The largest value that fits, which is also the mask of an exact match.
    pub const fn max(self) -> u128 {
        if self.bits >= 128 {
            u128::MAX
        } else {
            (1 << self.bits) - 1
        }
    }
}

macro_rules! slots {
    ($($(#[doc = $doc:literal])+ $name:ident $word:literal $shift:literal $bits:literal;)*) => {
        $($(#[doc = $doc])+ pub const $name: Slot = Slot::new($word, $shift, $bits);)*
    };
}

slots! {
    /// Recirculation id; 0 for a packet that has just arrived.
    RECIRC_ID 0 32 32;
    /// Hash that the datapath computed.
    DP_HASH 0 0 32;
    /// Input port: an OpenFlow port number in matches, a datapath port number in datapath keys.
    IN_PORT 1 32 32;
    /// Priority of the packet for queueing.
    SKB_PRIORITY 1 0 32;
    /// Mark of the packet.
    PKT_MARK 2 32 32;
    /// Packet type: namespace in the upper, type in the lower 16 bits; 0 is Ethernet.
    PACKET_TYPE 2 0 32;
    /// Connection tracking state bits.
    CT_STATE 3 32 32;
    /// Connection tracking zone.
    CT_ZONE 3 16 16;
    /// IP protocol of the connection's original direction.
    CT_NW_PROTO 3 0 8;
    /// Connection mark.
    CT_MARK 4 32 32;
    /// Id of a conjunction; in matches only.
    CONJ_ID 4 0 32;
    /// Connection label.
    CT_LABEL 5 0 128;
    /// OpenFlow metadata.
    METADATA 7 0 64;
    /// Output port in the action set.
    ACTSET_OUTPUT 8 0 32;
    /// Tunnel id.
    TUN_ID 25 0 64;
    /// Outer IPv4 source.
    TUN_SRC 26 32 32;
    /// Outer IPv4 destination.
    TUN_DST 26 0 32;
    /// Outer IPv6 source.
    TUN_IPV6_SRC 27 0 128;
    /// Outer IPv6 destination.
    TUN_IPV6_DST 29 0 128;
    /// Tunnel flags.
    TUN_FLAGS 31 48 16;
    /// Outer type of service.
    TUN_TOS 31 40 8;
    /// Outer time to live.
    TUN_TTL 31 32 8;
    /// Outer L4 source port.
    TUN_TP_SRC 31 16 16;
    /// Outer L4 destination port.
    TUN_TP_DST 31 0 16;
    /// VXLAN group policy id.
    TUN_GBP_ID 32 48 16;
    /// VXLAN group policy flags.
    TUN_GBP_FLAGS 32 40 8;
    /// ERSPAN version.
    TUN_ERSPAN_VER 32 32 8;
    /// ERSPAN index.
    TUN_ERSPAN_IDX 32 0 32;
    /// ERSPAN direction.
    TUN_ERSPAN_DIR 33 56 8;
    /// ERSPAN hardware id.
    TUN_ERSPAN_HWID 33 48 8;
    /// GTP-U flags.
    TUN_GTPU_FLAGS 33 40 8;
    /// GTP-U message type.
    TUN_GTPU_MSGTYPE 33 32 8;
    /// Ethernet destination.
    ETH_DST 34 16 48;
    /// Ethernet type of the payload; 0x05ff when the frame has no type.
    ETH_TYPE 34 0 16;
    /// Ethernet source.
    ETH_SRC 35 16 48;
    /// Outer VLAN tag: protocol id.
    VLAN_TPID 36 48 16;
    /// Outer VLAN tag: control information, with bit 12 set when a tag is there.
    VLAN_TCI 36 32 16;
    /// Inner VLAN tag: protocol id.
    VLAN2_TPID 36 16 16;
    /// Inner VLAN tag: control information, with bit 12 set when a tag is there.
    VLAN2_TCI 36 0 16;
    /// Outermost MPLS label stack entry.
    MPLS_LSE 37 32 32;
    /// Second MPLS label stack entry.
    MPLS_LSE1 37 0 32;
    /// Third MPLS label stack entry.
    MPLS_LSE2 38 32 32;
    /// IPv4 source, or the sender protocol address of ARP.
    NW_SRC 39 32 32;
    /// IPv4 destination, or the target protocol address of ARP.
    NW_DST 39 0 32;
    /// IPv6 source.
    IPV6_SRC 40 0 128;
    /// IPv6 destination.
    IPV6_DST 42 0 128;
    /// IPv6 flow label, in the low 20 bits.
    IPV6_LABEL 44 32 32;
    /// Fragment bits: 1 any fragment, 2 a later fragment.
    NW_FRAG 44 24 8;
    /// Type of service or traffic class.
    NW_TOS 44 16 8;
    /// Time to live or hop limit.
    NW_TTL 44 8 8;
    /// IP protocol, or the low 8 bits of an ARP operation.
    NW_PROTO 44 0 8;
    /// Target of IPv6 neighbour discovery.
    ND_TARGET 45 0 128;
    /// Sender hardware address of ARP, source link-layer address of ND.
    ARP_SHA 47 16 48;
    /// TCP flags, or the type of the ND options.
    TCP_FLAGS 47 0 16;
    /// Target hardware address of ARP, target link-layer address of ND.
    ARP_THA 48 16 48;
    /// TCP, UDP or SCTP source port, or the type of ICMP, ICMPv6, IGMP.
    TP_SRC 49 48 16;
    /// TCP, UDP or SCTP destination port, or the code of ICMP, ICMPv6, IGMP.
    TP_DST 49 32 16;
    /// Group of IGMP, or the reserved bits of ND.
    IGMP_GROUP 49 0 32;
    /// IPv4 source of the connection's original direction.
    CT_NW_SRC 50 32 32;
    /// IPv4 destination of the connection's original direction.
    CT_NW_DST 50 0 32;
    /// IPv6 source of the connection's original direction.
    CT_IPV6_SRC 51 0 128;
    /// IPv6 destination of the connection's original direction.
    CT_IPV6_DST 53 0 128;
    /// L4 source port of the connection's original direction.
    CT_TP_SRC 55 48 16;
    /// L4 destination port of the connection's original direction.
    CT_TP_DST 55 32 16;
    /// NSH flags.
    NSH_FLAGS 56 56 8;
    /// NSH time to live.
    NSH_TTL 56 48 8;
    /// NSH metadata type.
    NSH_MDTYPE 56 40 8;
    /// NSH next protocol.
    NSH_NP 56 32 8;
    /// NSH service path id.
    NSH_SPI 56 8 24;
    /// NSH service index.
    NSH_SI 56 0 8;
    /// First NSH context word.
    NSH_C1 57 32 32;
    /// Second NSH context word.
    NSH_C2 57 0 32;
    /// Third NSH context word.
    NSH_C3 58 32 32;
    /// Fourth NSH context word.
    NSH_C4 58 0 32;
    /// Which tunnel metadata fields are present, one bit each; in a pipeline's keys.
    TUN_METADATA_PRESENT 59 0 64;
    /// Length of the Geneve options in bytes; in a datapath's keys, where the options fill the
    /// words of the tunnel metadata as they are on the wire.
    TUN_OPTIONS_LEN 59 0 16;
}

/// The first of the 32 words that hold tunnel metadata, 8 bytes each.
pub const TUN_METADATA_WORD: u8 = 60;

/// The slot of 32-bit register `n`, below 32.
pub const fn reg(n: u8) -> Slot {
    Slot::new(9 + n / 2, if n.is_multiple_of(2) { 32 } else { 0 }, 32)
}

/// The slot of 64-bit register `n`, below 16: registers `2n` (upper half) and `2n + 1`.
pub const fn xreg(n: u8) -> Slot {
    Slot::new(9 + n, 0, 64)
}

/// The slot of 128-bit register `n`, below 8: registers `4n` (uppermost) to `4n + 3`.
pub const fn xxreg(n: u8) -> Slot {
    Slot::new(9 + 2 * n, 0, 128)
}
