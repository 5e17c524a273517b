//! Hashes of a packet's fields, which spread packets over alternatives.  They are the same in every
//! process, so that a restarted switch chooses as before.

use net_flow::types::{eth_type, ip_proto};
use net_flow::{Field, Slot, slot};
use of_wire::action::HashFields;

use crate::flow::Flow;
use crate::vlan::{CFI, VID};

/// A hash of words (a round of multiplication and folding for each).
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordHash(u64);

impl WordHash {
    pub(crate) const fn new(basis: u64) -> Self {
        Self(basis ^ 0x2545_f491_4f6c_dd1d)
    }

    pub(crate) const fn add(&mut self, word: u64) {
        let wide = (self.0 ^ word) as u128 * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide as u64 ^ (wide >> 64) as u64).wrapping_add(0xf39c_c060_5ced_c835);
    }

    pub(crate) const fn add_wide(&mut self, value: u128) {
        self.add(value as u64);
        self.add((value >> 64) as u64);
    }

    pub(crate) const fn finish(mut self) -> u32 {
        self.add(0);
        (self.0 >> 32) as u32
    }
}

impl Flow {
    /// A hash of these fields, which now matter.
    pub(crate) fn hash(&mut self, fields: HashFields, basis: u32) -> u32 {
        let mut hash = WordHash::new(u64::from(basis));
        match fields {
            HashFields::EthSrc => hash.add_wide(self.read(slot::ETH_SRC)),
            HashFields::SymmetricL4 => self.hash_symmetric(&mut hash),
            HashFields::SymmetricL3L4 => self.hash_l3(&mut hash, &[ip_proto::TCP, ip_proto::SCTP]),
            HashFields::SymmetricL3L4Udp => {
                let with_ports = [ip_proto::TCP, ip_proto::SCTP, ip_proto::UDP];
                self.hash_l3(&mut hash, &with_ports);
            }
            HashFields::SymmetricL3 => self.hash_addresses(&mut hash),
            HashFields::NwSrc => hash.add_wide(self.address(slot::NW_SRC, slot::IPV6_SRC)),
            HashFields::NwDst => hash.add_wide(self.address(slot::NW_DST, slot::IPV6_DST)),
        }
        hash.finish()
    }

    /// An address of either version of IP, 0 for other packets.
    const fn address(&mut self, ipv4: Slot, ipv6: Slot) -> u128 {
        match self.eth_type() {
            eth_type::IPV4 => self.read(ipv4),
            eth_type::IPV6 => self.read(ipv6),
            _ => 0,
        }
    }

    fn hash_both(&mut self, hash: &mut WordHash, src: Slot, dst: Slot) {
        hash.add_wide(self.read(src) ^ self.read(dst));
    }

    fn hash_addresses(&mut self, hash: &mut WordHash) {
        match self.eth_type() {
            eth_type::IPV4 => self.hash_both(hash, slot::NW_SRC, slot::NW_DST),
            eth_type::IPV6 => self.hash_both(hash, slot::IPV6_SRC, slot::IPV6_DST),
            _ => {}
        }
    }

    /// Ports of these protocols, both directions alike, and the protocol.
    fn hash_ports(&mut self, hash: &mut WordHash, protocols: &[u8]) {
        if protocols.contains(&self.proto()) && self.fragment() & 2 == 0 {
            self.hash_both(hash, slot::TP_SRC, slot::TP_DST);
        }
        hash.add(u64::from(self.proto()));
    }

    /// Addresses, and ports of these protocols.
    fn hash_l3(&mut self, hash: &mut WordHash, protocols: &[u8]) {
        if self.is_ip() {
            self.hash_addresses(hash);
            self.hash_ports(hash, protocols);
        }
    }

    fn hash_symmetric(&mut self, hash: &mut WordHash) {
        self.hash_both(hash, slot::ETH_SRC, slot::ETH_DST);
        if self.is_ip() {
            self.hash_addresses(hash);
            self.hash_ports(hash, &[ip_proto::TCP, ip_proto::SCTP]);
        }
        hash.add(u64::from(self.eth_type()));
        hash.add(self.read_bits(slot::VLAN_TCI, VID | CFI) as u64);
    }

    /// A hash of the bits of these fields that the packet has, which now matter.
    pub(crate) fn hash_fields(&mut self, fields: &[(Field, u128)], basis: u64) -> u32 {
        let mut hash = WordHash::new(basis);
        for (field, bits) in fields {
            if !self.has(field.info().prereq) {
                continue;
            }
            self.mark_field(*field, *bits);
            hash.add_wide(field.value_in(self.key()).unwrap_or(0) & bits);
        }
        hash.finish()
    }
}
