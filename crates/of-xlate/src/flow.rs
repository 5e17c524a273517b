//! The packet in translation: its key as the actions so far have made it, what the
//! datapath has been told of that, and the bits that were looked at.

use net_flow::field::Prereq;
use net_flow::types::{eth_type, icmpv6_type, ip_proto, tunnel_flag};
use net_flow::{Field, FlowKey, FlowMask, MiniKey, PortNo, Slot, Subfield, slot};

use crate::tunnel::is_tunnelled;
use crate::vlan::{CFI, PCP, VID};

/// The packet in translation.
#[derive(Debug)]
pub(crate) struct Flow {
    key: FlowKey,
    /// The key as the datapath has it after the actions that were emitted.
    pub(crate) base: FlowKey,
    mask: FlowMask,
    /// An action or a bundle has changed the VLAN tags, so that those that the packet has
    /// now may be like those that it had by chance.
    pub(crate) retagged: bool,
}

/// The namespace of packet types that are Ethernet types (OpenFlow 1.5 section 7.2.3.11).
const ETHERTYPE_NAMESPACE: u128 = 1 << 16;

/// Words that stand for no part of the packet.
const PIPELINE: [(u8, u8); 3] = [
    (slot::METADATA.word, slot::METADATA.word),
    (slot::ACTSET_OUTPUT.word, slot::ACTSET_OUTPUT.word),
    (slot::reg(0).word, slot::reg(31).word),
];

/// Protocol, addresses and ports of a packet, each with that of its connection's first packet.
pub(crate) const CONNECTION: [(Slot, Slot); 7] = [
    (slot::NW_PROTO, slot::CT_NW_PROTO),
    (slot::NW_SRC, slot::CT_NW_SRC),
    (slot::NW_DST, slot::CT_NW_DST),
    (slot::IPV6_SRC, slot::CT_IPV6_SRC),
    (slot::IPV6_DST, slot::CT_IPV6_DST),
    (slot::TP_SRC, slot::CT_TP_SRC),
    (slot::TP_DST, slot::CT_TP_DST),
];

/// Whether word `index` of a key stands for no part of the packet.
pub(crate) const fn is_pipeline_word(index: usize) -> bool {
    let mut n = 0;
    while n < PIPELINE.len() {
        let (first, last) = PIPELINE[n];
        if index >= first as usize && index <= last as usize {
            return true;
        }
        n += 1;
    }
    false
}

/// The words of the tunnel's fields.
pub(crate) fn tunnel_words() -> impl Iterator<Item = usize> {
    let fixed = slot::TUN_ID.word..=slot::TUN_GTPU_MSGTYPE.word;
    let metadata = slot::TUN_METADATA_PRESENT.word..=slot::TUN_METADATA_WORD + 31;
    fixed.chain(metadata).map(usize::from)
}

impl Flow {
    pub(crate) fn new(key: &FlowKey) -> Self {
        let mut base = key.clone();
        // A datapath does not keep a tunnel's fields unless it is told them anew.
        for word in tunnel_words() {
            base.set_word(word, 0);
        }
        let mut flow = Self {
            key: key.clone(),
            base,
            mask: FlowMask::new(),
            retagged: false,
        };
        for slot in [
            slot::RECIRC_ID,
            slot::IN_PORT,
            slot::PACKET_TYPE,
            slot::ETH_TYPE,
        ] {
            flow.mask.set_exact(slot);
        }
        if flow.is_ip() {
            flow.mask.add(slot::NW_FRAG, 3);
        }
        if is_tunnelled(key) {
            flow.mark_tunnel();
        }
        flow.key
            .set(slot::ACTSET_OUTPUT, u128::from(PortNo::UNSET.0));
        flow
    }

    /// What always matters of a packet that came out of a tunnel: it told the port by which it
    /// came in, and whether congestion is to be carried over.
    fn mark_tunnel(&mut self) {
        let addresses = if self.key.get(slot::TUN_DST) != 0 {
            [slot::TUN_SRC, slot::TUN_DST]
        } else {
            [slot::TUN_IPV6_SRC, slot::TUN_IPV6_DST]
        };
        for slot in addresses.into_iter().chain([slot::TUN_ID, slot::TUN_TOS]) {
            self.mask.set_exact(slot);
        }
        self.mask.add(slot::TUN_FLAGS, u128::from(tunnel_flag::KEY));
        if self.is_ip() && self.key.get(slot::TUN_TOS) & 3 == 3 {
            self.mask.add(slot::NW_TOS, 3);
        }
    }

    /// The value in `slot`, all of which now matters.
    pub(crate) const fn read(&mut self, slot: Slot) -> u128 {
        self.mask.set_exact(slot);
        self.key.get(slot)
    }

    /// The bits of `mask` in `slot`, which now matter.
    pub(crate) const fn read_bits(&mut self, slot: Slot, mask: u128) -> u128 {
        self.mask.add(slot, mask);
        self.key.get(slot) & mask
    }

    /// A field that always matters.
    const fn always(&self, slot: Slot) -> u128 {
        debug_assert!(self.mask.get(slot) == slot.max());
        self.key.get(slot)
    }

    pub(crate) const fn eth_type(&self) -> u16 {
        self.always(slot::ETH_TYPE) as u16
    }

    pub(crate) const fn in_port(&self) -> PortNo {
        PortNo(self.always(slot::IN_PORT) as u32)
    }

    pub(crate) const fn packet_type(&self) -> u32 {
        self.always(slot::PACKET_TYPE) as u32
    }

    /// Makes a frame a packet of the type that the frame carries.
    pub(crate) const fn strip_frame(&mut self) {
        if self.packet_type() == 0 {
            let kind = ETHERTYPE_NAMESPACE | self.eth_type() as u128;
            self.key.set(slot::PACKET_TYPE, kind);
        }
    }

    /// Gives a packet without one an empty Ethernet header.
    pub(crate) const fn add_frame(&mut self) {
        self.key.set(slot::PACKET_TYPE, 0);
        self.key.set(slot::ETH_SRC, 0);
        self.key.set(slot::ETH_DST, 0);
    }

    pub(crate) const fn is_ip(&self) -> bool {
        matches!(self.eth_type(), eth_type::IPV4 | eth_type::IPV6)
    }

    /// The fragment bits, which always matter for IP and are 0 for all else.
    pub(crate) const fn fragment(&self) -> u8 {
        (self.key.get(slot::NW_FRAG) & 3) as u8
    }

    /// Writes the bits of `mask` in `slot`.  They matter: whether the datapath must be told
    /// depends on what they were.
    pub(crate) const fn write(&mut self, slot: Slot, value: u128, mask: u128) {
        self.mask.add(slot, mask);
        self.key.set_masked(slot, value, mask);
    }

    /// Writes a pipeline or tunnel field, which the packet does not have.
    pub(crate) const fn set(&mut self, slot: Slot, value: u128) {
        self.key.set(slot, value);
    }

    /// Like [`Self::set`], for the bits of `mask`.
    pub(crate) const fn set_masked(&mut self, slot: Slot, value: u128, mask: u128) {
        self.key.set_masked(slot, value, mask);
    }

    /// The key, to look it up or to keep it.  What is read of it must be noted in the mask
    /// by other means.
    pub(crate) const fn key(&self) -> &FlowKey {
        &self.key
    }

    /// The key and the mask, for a lookup that notes what it reads.
    pub(crate) const fn parts(&mut self) -> (&mut FlowKey, &mut FlowMask) {
        (&mut self.key, &mut self.mask)
    }

    /// Puts back a key that was kept.
    pub(crate) fn restore(&mut self, key: FlowKey) {
        self.key = key;
    }

    /// Puts back the pipeline's and tunnel's fields and the input port.
    pub(crate) fn restore_metadata(&mut self, kept: &MiniKey) {
        for (word, bits) in metadata_mask().iter() {
            let now = self.key.word(word) & !bits | kept.word(word) & bits;
            self.key.set_word(word, now);
        }
    }

    pub(crate) const fn mask(&self) -> &FlowMask {
        &self.mask
    }

    pub(crate) fn into_parts(self) -> (FlowKey, FlowMask) {
        (self.key, self.mask)
    }

    /// Makes the whole of `slot` matter.
    pub(crate) const fn mark(&mut self, slot: Slot) {
        self.mask.set_exact(slot);
    }

    /// Makes bits of a field's value matter.
    pub(crate) fn mark_field(&mut self, field: Field, bits: u128) {
        match field {
            Field::DlVlan => self.mask.add(slot::VLAN_TCI, bits & VID | CFI),
            Field::VlanVid => self.mask.add(slot::VLAN_TCI, bits & (VID | CFI)),
            Field::DlVlanPcp | Field::VlanPcp => {
                self.mask.add(slot::VLAN_TCI, bits << 13 & PCP | CFI);
            }
            Field::IpTos => self.mask.add(slot::NW_TOS, bits & 0xfc),
            _ => {
                if let Some(slot) = field.info().slot {
                    self.mask.add(slot, bits & slot.max());
                }
            }
        }
    }

    /// The value of a part of a field, which now matters; none for tunnel metadata.
    pub(crate) fn read_part(&mut self, part: Subfield) -> Option<u128> {
        self.mark_field(part.field, part.mask() << part.offset);
        part.read(&self.key)
    }

    /// Writes a part of a field, which now matters; none for tunnel metadata.
    pub(crate) fn write_part(&mut self, part: Subfield, value: u128) -> Option<()> {
        if !is_tunnel(part.field) {
            self.mark_field(part.field, part.mask() << part.offset);
        }
        let tags = self.tags_word();
        part.write(&mut self.key, value)?;
        self.fix_vlan(tags);
        Some(())
    }

    /// Writes the bits of `mask` of a field, which now matter; none for tunnel metadata.
    pub(crate) fn write_field(&mut self, field: Field, value: u128, mask: u128) -> Option<()> {
        if !is_tunnel(field) {
            self.mark_field(field, mask);
        }
        let old = field.value_in(&self.key)?;
        let tags = self.tags_word();
        field.write(&mut self.key, old & !mask | value & mask)?;
        self.fix_vlan(tags);
        Some(())
    }

    /// Gives a tag that was made or removed through its control information a protocol id.
    const fn fix_vlan(&mut self, before: u64) {
        if self.tags_word() == before {
            return;
        }
        self.retagged = true;
        let tci = self.key.get(slot::VLAN_TCI);
        if tci == 0 {
            self.key.set(slot::VLAN_TPID, 0);
        } else if self.key.get(slot::VLAN_TPID) == 0 {
            self.key.set(slot::VLAN_TPID, eth_type::VLAN as u128);
        }
    }

    /// Whether the packet has the fields of `prereq`; what that depends on now matters.
    pub(crate) fn has(&mut self, prereq: Prereq) -> bool {
        let ethertype = self.eth_type();
        match prereq {
            Prereq::None => true,
            Prereq::Ethernet => self.packet_type() == 0,
            Prereq::Arp => matches!(ethertype, eth_type::ARP | eth_type::RARP),
            Prereq::VlanVid => self.read_bits(slot::VLAN_TCI, CFI) != 0,
            Prereq::Ipv4 => ethertype == eth_type::IPV4,
            Prereq::Ipv6 => ethertype == eth_type::IPV6,
            Prereq::Ip => self.is_ip(),
            Prereq::Mpls => matches!(ethertype, eth_type::MPLS | eth_type::MPLS_MULTICAST),
            Prereq::Nsh => ethertype == eth_type::NSH,
            // A connection that is known is new, established or related.
            Prereq::Ct => self.read_bits(slot::CT_STATE, 7) != 0,
            Prereq::Tcp => self.is_l4(ip_proto::TCP),
            Prereq::Udp => self.is_l4(ip_proto::UDP),
            Prereq::Sctp => self.is_l4(ip_proto::SCTP),
            Prereq::Icmpv4 => ethertype == eth_type::IPV4 && self.proto() == ip_proto::ICMP,
            Prereq::Icmpv6 => self.is_icmpv6(),
            Prereq::Nd => self.nd_type().is_some(),
            Prereq::NdSolicit => self.nd_type() == Some(icmpv6_type::ND_SOLICIT),
            Prereq::NdAdvert => self.nd_type() == Some(icmpv6_type::ND_ADVERT),
        }
    }

    pub(crate) const fn proto(&mut self) -> u8 {
        self.read(slot::NW_PROTO) as u8
    }

    fn is_l4(&mut self, proto: u8) -> bool {
        self.is_ip() && self.proto() == proto && self.fragment() & 2 == 0
    }

    fn is_icmpv6(&mut self) -> bool {
        self.eth_type() == eth_type::IPV6 && self.proto() == ip_proto::ICMPV6
    }

    /// The type of a neighbour discovery message.
    fn nd_type(&mut self) -> Option<u8> {
        if !self.is_icmpv6() || self.read(slot::TP_DST) != 0 {
            return None;
        }
        let kind = self.read(slot::TP_SRC) as u8;
        matches!(kind, icmpv6_type::ND_SOLICIT | icmpv6_type::ND_ADVERT).then_some(kind)
    }

    /// Prepares for another bridge: pipeline, tunnel and connection fields are empty there.
    pub(crate) fn enter_bridge(&mut self, in_port: PortNo) {
        self.key.set(slot::IN_PORT, u128::from(in_port.0));
        for (first, last) in PIPELINE {
            for word in first..=last {
                self.key.set_word(usize::from(word), 0);
            }
        }
        for word in tunnel_words() {
            self.key.set_word(word, 0);
        }
        self.key
            .set(slot::ACTSET_OUTPUT, u128::from(PortNo::UNSET.0));
        self.clear_conntrack();
    }

    /// Exchanges addresses and ports with those of the connection's first packet; what matters
    /// of the ones then matters of the others.
    pub(crate) const fn swap_connection(&mut self) {
        let mut n = 0;
        while n < CONNECTION.len() {
            let (own, first) = CONNECTION[n];
            let (a, b) = (self.key.get(own), self.key.get(first));
            self.key.set(own, b);
            self.key.set(first, a);
            let (a, b) = (self.mask.get(own), self.mask.get(first));
            self.mask.set(own, b);
            self.mask.set(first, a);
            n += 1;
        }
    }

    /// Forgets the connection tracker's fields.
    pub(crate) fn clear_conntrack(&mut self) {
        let own = [
            slot::CT_STATE,
            slot::CT_ZONE,
            slot::CT_NW_PROTO,
            slot::CT_MARK,
            slot::CT_LABEL,
            slot::CT_NW_SRC,
            slot::CT_NW_DST,
            slot::CT_IPV6_SRC,
            slot::CT_IPV6_DST,
            slot::CT_TP_SRC,
            slot::CT_TP_DST,
        ];
        for slot in own {
            self.key.set(slot, 0);
        }
    }
}

/// Whether a field belongs to the tunnel header.  Writing one need not be noted: the
/// datapath is told all of them.
pub(crate) fn is_tunnel(field: Field) -> bool {
    (Field::TunId..=Field::TunGtpuMsgtype).contains(&field) || field.info().slot.is_none()
}

/// Clears what the pipeline alone has from a mask.
pub(crate) fn clear_pipeline(mask: &mut FlowMask) {
    for (first, last) in PIPELINE {
        for word in first..=last {
            mask.set_word(usize::from(word), 0);
        }
    }
    mask.set(slot::CONJ_ID, 0);
}

/// Clears the tunnel's fields from a mask.
pub(crate) fn clear_tunnel(mask: &mut FlowMask) {
    for word in tunnel_words() {
        mask.set_word(word, 0);
    }
}

/// The pipeline's and tunnel's fields and the input port of a key.
pub(crate) fn metadata_mask() -> FlowMask {
    let mut mask = FlowMask::new();
    mask.set_exact(slot::IN_PORT);
    mask.set_exact(slot::METADATA);
    for n in 0..16 {
        mask.set_exact(slot::xreg(n));
    }
    for word in tunnel_words() {
        mask.set_word(word, u64::MAX);
    }
    mask
}
