//! Before a packet leaves: tells the datapath what the actions so far have changed.

use dp_lang::{Action, KeyAttr, SetField};
use net_flow::types::{eth_type, ip_proto};
use net_flow::{FlowMask, Slot, slot};

use crate::ctx::Ctx;
use crate::mpls::is_mpls;
use crate::vlan::TagChange;

/// How much of an attribute a `set` writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The fields that changed.
    Changed,
    /// All fields: the datapath has no partial write of it.
    Whole,
}

impl Ctx<'_> {
    /// Emits what is needed to bring the datapath's packet to the current key.
    pub(crate) fn commit(&mut self) {
        self.commit_frame();
        if self.flow.packet_type() == 0 {
            self.commit_attr(KeyAttr::Ethernet, Extent::Changed);
        }
        let pops_last =
            is_mpls(self.flow.base.get(slot::ETH_TYPE) as u16) && !is_mpls(self.flow.eth_type());
        if pops_last {
            // What is behind the labels can be written only when they are gone.
            self.commit_mpls();
        }
        // Behind labels nothing is known.
        if !is_mpls(self.flow.eth_type()) {
            self.commit_network();
            self.commit_transport();
        }
        if !pops_last {
            self.commit_mpls();
        }
        for change in self.flow.commit_tags() {
            self.out.push(match change {
                TagChange::Pop => Action::PopVlan,
                TagChange::Push { tpid, tci } => Action::PushVlan { tpid, tci },
            });
        }
        self.commit_attr(KeyAttr::Priority, Extent::Changed);
        self.commit_attr(KeyAttr::Mark, Extent::Changed);
    }

    /// Adds or removes the Ethernet header.
    fn commit_frame(&mut self) {
        let kind = self.flow.packet_type();
        let had_frame = self.flow.base.get(slot::PACKET_TYPE) == 0;
        let has_frame = kind == 0;
        if had_frame == has_frame {
            return;
        }
        let places = [slot::ETH_SRC, slot::ETH_DST];
        let [src, dst] = if has_frame {
            places.map(|place| self.flow.key().get(place))
        } else {
            [0, 0]
        };
        self.out.push(if has_frame {
            let (src, dst) = (src as u64, dst as u64);
            Action::PushEth { src, dst }
        } else {
            Action::PopEth
        });
        let base = &mut self.flow.base;
        base.set(slot::PACKET_TYPE, u128::from(kind));
        base.set(slot::ETH_SRC, src);
        base.set(slot::ETH_DST, dst);
    }

    fn commit_mpls(&mut self) {
        let changes = self.flow.commit_mpls();
        self.out.extend(changes);
    }

    fn commit_network(&mut self) {
        match self.flow.base.get(slot::ETH_TYPE) as u16 {
            eth_type::IPV4 => self.commit_ip(KeyAttr::Ipv4),
            eth_type::IPV6 => {
                self.commit_ip(KeyAttr::Ipv6);
                if self.differs(KeyAttr::NdExtensions) || self.differs(KeyAttr::Nd) {
                    self.commit_nd();
                }
            }
            eth_type::ARP => self.commit_arp(),
            _ => {}
        }
    }

    fn commit_arp(&mut self) {
        if self.differs(KeyAttr::Arp) && self.flow.proto() != 0 {
            self.commit_attr(KeyAttr::Arp, Extent::Changed);
            self.slow.action = true;
        }
    }

    fn commit_ip(&mut self, attr: KeyAttr) {
        // A packet with protocol 0 may be cut short before what the action would write.
        if self.differs(attr) && self.flow.proto() != 0 {
            self.commit_attr(attr, Extent::Changed);
        }
    }

    fn commit_nd(&mut self) {
        if self.flow.proto() != ip_proto::ICMPV6 {
            return;
        }
        for attr in [KeyAttr::NdExtensions, KeyAttr::Nd] {
            if self.differs(attr) {
                self.commit_attr(attr, Extent::Changed);
                self.slow.action = true;
            }
        }
    }

    fn commit_transport(&mut self) {
        let ethertype = self.flow.base.get(slot::ETH_TYPE) as u16;
        let is_ip = matches!(ethertype, eth_type::IPV4 | eth_type::IPV6);
        if !is_ip || !self.differs(KeyAttr::Tcp) {
            return;
        }
        match (self.flow.proto(), ethertype) {
            (ip_proto::TCP, _) => self.commit_attr(KeyAttr::Tcp, Extent::Changed),
            (ip_proto::UDP, _) => self.commit_attr(KeyAttr::Udp, Extent::Changed),
            (ip_proto::SCTP, _) => self.commit_attr(KeyAttr::Sctp, Extent::Changed),
            (ip_proto::ICMP, eth_type::IPV4) => {
                self.commit_attr(KeyAttr::Icmp, Extent::Whole);
                self.slow.action = true;
            }
            (ip_proto::ICMPV6, eth_type::IPV6) => {
                self.commit_attr(KeyAttr::Icmpv6, Extent::Whole);
                self.slow.action = true;
            }
            _ => {}
        }
    }

    fn slot_differs(&self, slot: Slot) -> bool {
        self.flow.key().get(slot) != self.flow.base.get(slot)
    }

    fn differs(&self, attr: KeyAttr) -> bool {
        attr.slots().iter().any(|slot| self.slot_differs(*slot))
    }

    /// Emits a write of what differs in `attr`.  The bits that are written matter already,
    /// because actions wrote them.
    fn commit_attr(&mut self, attr: KeyAttr, extent: Extent) {
        if !self.differs(attr) {
            return;
        }
        let mut mask = FlowMask::new();
        for slot in attr.slots() {
            if extent == Extent::Whole {
                let width = if matches!(attr, KeyAttr::Icmp | KeyAttr::Icmpv6) {
                    0xff
                } else {
                    slot.max()
                };
                mask.set(*slot, width);
                self.flow.read(*slot);
            } else if self.slot_differs(*slot) {
                let changed = self.flow.key().get(*slot) ^ self.flow.base.get(*slot);
                mask.set(*slot, self.flow.mask().get(*slot) | changed);
            }
        }
        let set = SetField::new(attr, self.flow.key(), &mask);
        self.out.push(Action::Set(set));
        for slot in attr.slots() {
            let value = self.flow.key().get(*slot);
            self.flow.base.set(*slot, value);
        }
    }
}
