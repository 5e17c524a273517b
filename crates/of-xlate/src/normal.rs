//! NORMAL: forwarding as a learning switch does.

use std::sync::Arc;

use net_flow::types::eth_type;
use net_flow::{PortNo, slot};
use net_proto::mac_learning::{Sighting, Station};

use crate::bond::Verdict;
use crate::ctx::Ctx;
use crate::effect::Effect;
use crate::trace::NodeKind;
use crate::view::{Bundle, PriorityTags};
use crate::vlan::{CFI, PCP, Tags, VID};
use crate::work::Work;

/// Operations of ARP (RFC 826).
const ARP_REQUEST: u8 = 1;
const ARP_REPLY: u8 = 2;
const BROADCAST: u128 = 0xffff_ffff_ffff;

/// Whether an address is one that bridges never forward (IEEE 802.1D table 7-10, and
/// those of other makers).
pub(crate) const fn is_reserved(mac: u64) -> bool {
    matches!(
        mac,
        0x0180_c200_0000..=0x0180_c200_000f
            | 0x00e0_2b00_0000
            | 0x00e0_2b00_0004
            | 0x00e0_2b00_0006
            | 0x0100_0c00_0000
            | 0x0100_0ccc_cccc
            | 0x0100_0ccc_cccd
            | 0x0100_0ccd_cdcd
            | 0x0100_0ccc_ccc0..=0x0100_0ccc_ccc7
    )
}

/// Where the packet came in, as NORMAL sees it.
enum Ingress {
    Bundle(Arc<Bundle>, PortNo),
    /// From a controller: no port, any VLAN.
    Controller,
}

impl Ingress {
    fn bundle(&self) -> Option<&Arc<Bundle>> {
        match self {
            Self::Bundle(bundle, _) => Some(bundle),
            Self::Controller => None,
        }
    }
}

impl Ctx<'_> {
    fn drop_because(&mut self, kind: NodeKind, why: &str) {
        self.report(kind, || why.to_string());
    }

    pub(crate) fn normal(&mut self) {
        self.flow.mark(slot::ETH_SRC);
        self.flow.mark(slot::ETH_DST);
        self.flow.read_bits(slot::VLAN_TCI, VID | CFI);
        let Some(ingress) = self.ingress() else {
            self.drop_because(NodeKind::Warning, "no input bundle, dropping");
            return;
        };
        let ethertype = self.flow.eth_type();
        let is_tag = matches!(ethertype, eth_type::VLAN | eth_type::VLAN_8021AD);
        if is_tag && self.flow.read_bits(slot::VLAN_TCI, CFI) == 0 {
            if self.input.packet.is_some() {
                let name = ingress.bundle().map_or("none", |b| &b.name);
                let text = format!("dropping packet with partial VLAN tag received on port {name}");
                self.warn(text);
            }
            self.drop_because(NodeKind::Warning, "partial VLAN tag, dropping");
            return;
        }
        if ingress
            .bundle()
            .is_some_and(|b| self.is_mirror_output(b.id))
        {
            let why = "input port is mirror output port, dropping";
            self.drop_because(NodeKind::Warning, why);
            return;
        }
        let outside = self.flow.tags();
        let inside = match &ingress {
            Ingress::Controller => outside,
            Ingress::Bundle(bundle, _) => {
                if bundle.looks_at_customers() {
                    self.flow.mark(slot::VLAN2_TCI);
                }
                if let Some(why) = bundle.refuses(outside[0].vid) {
                    self.warn(why);
                    let why = "disallowed VLAN VID for this input port, dropping";
                    self.drop_because(NodeKind::Warning, why);
                    return;
                }
                bundle.tags_in(&outside)
            }
        };
        let vlan = inside[0].vid;
        if let Ingress::Bundle(bundle, port) = &ingress
            && !self.is_admissible(&Arc::clone(bundle), *port, vlan)
        {
            return;
        }
        let grat_arp = self.is_gratuitous_arp();
        if let Ingress::Bundle(bundle, _) = &ingress {
            self.learn(&Arc::clone(bundle), vlan, grat_arp);
        }
        self.forward(ingress.bundle(), &inside);
    }

    fn ingress(&mut self) -> Option<Ingress> {
        let number = self.flow.in_port();
        if let Some(bundle) = self.bridge.bundle_of(number) {
            return Some(Ingress::Bundle(Arc::clone(bundle), number));
        }
        if matches!(number, PortNo::CONTROLLER | PortNo::NONE) {
            return Some(Ingress::Controller);
        }
        self.warn(format!(
            "received packet on unknown port {}",
            number.to_of10()
        ));
        None
    }

    fn destination(&mut self) -> u64 {
        self.flow.read(slot::ETH_DST) as u64
    }

    fn is_admissible(&mut self, bundle: &Bundle, port: PortNo, vlan: u16) -> bool {
        let destination = self.destination();
        if !self.bridge.forward_bpdu && is_reserved(destination) {
            let why = "packet has reserved destination MAC, dropping";
            self.drop_because(NodeKind::Detail, why);
            return false;
        }
        let Some(bond) = &bundle.bond else {
            return true;
        };
        match bond.admits(port, destination) {
            Verdict::Accept => true,
            Verdict::Drop => {
                let why = "bonding refused admissibility, dropping";
                self.drop_because(NodeKind::Detail, why);
                false
            }
            Verdict::DropIfMoved => {
                let station = self.source(vlan);
                let known = self.lookup_mac(station);
                let moved = known.is_some_and(|known| known != bundle.id);
                let now = self.input.now;
                if moved
                    && (!self.is_gratuitous_arp()
                        || self.bridge.macs.is_grat_arp_locked(station, now))
                {
                    let why = "SLB bond thinks this packet looped back, dropping";
                    self.drop_because(NodeKind::Detail, why);
                    return false;
                }
                true
            }
        }
    }

    fn source(&mut self, vlan: u16) -> Station {
        Station {
            vlan,
            mac: self.flow.read(slot::ETH_SRC) as u64,
        }
    }

    fn is_gratuitous_arp(&mut self) -> bool {
        if self.flow.eth_type() != eth_type::ARP || self.flow.read(slot::ETH_DST) != BROADCAST {
            return false;
        }
        match self.flow.proto() {
            ARP_REPLY => true,
            ARP_REQUEST => self.flow.read(slot::NW_SRC) == self.flow.read(slot::NW_DST),
            _ => false,
        }
    }

    fn learn(&mut self, bundle: &Bundle, vlan: u16, grat_arp: bool) {
        if self.flow.packet_type() != 0 {
            return;
        }
        let seen = Sighting {
            station: self.source(vlan),
            port: bundle.id,
            grat_arp,
            bond: bundle.bond.is_some(),
        };
        let macs = Arc::clone(&self.bridge.macs);
        if self.has_side_effects() && macs.would_learn(seen, self.input.now) {
            let known = self.lookup_mac(seen.station);
            self.learned.push((self.bridge.id, seen));
            if known != Some(bundle.id) {
                let name = Arc::clone(&bundle.name);
                self.report(NodeKind::Detail, || {
                    let mut mac = String::new();
                    net_flow::text::addr::put_eth(&mut mac, seen.station.mac);
                    format!("learned that {mac} is on port {name} in VLAN {vlan}")
                });
            }
        }
        self.effects.push(Effect::Learn(macs, seen));
    }

    fn forward(&mut self, from: Option<&Arc<Bundle>>, tags: &Tags) {
        let station = Station {
            vlan: tags[0].vid,
            mac: self.destination(),
        };
        let from = from.map(|b| b.id);
        let Some(port) = self.lookup_mac(station) else {
            let why = "no learned MAC for destination, flooding";
            self.drop_because(NodeKind::Detail, why);
            self.flood_bundles(from, tags);
            return;
        };
        let bundle = self.bridge.bundle(port).cloned();
        match bundle {
            None => self.drop_because(NodeKind::Warning, "learned port is unknown, dropping"),
            Some(bundle) if self.is_mirror_output(bundle.id) => {
                let why = "learned port is a mirror port, dropping";
                self.drop_because(NodeKind::Warning, why);
            }
            Some(bundle) if Some(bundle.id) == from => {
                self.drop_because(NodeKind::Detail, "learned port is input port, dropping");
            }
            Some(bundle) => {
                self.drop_because(NodeKind::Detail, "forwarding to learned port");
                self.work.push(Work::OutputNormal(bundle, *tags));
            }
        }
    }

    fn flood_bundles(&mut self, from: Option<u32>, tags: &Tags) {
        let bridge = Arc::clone(&self.bridge);
        for bundle in bridge.bundles.iter().rev() {
            if Some(bundle.id) == from {
                continue;
            }
            if bundle.looks_at_customers() {
                self.flow.mark(slot::VLAN2_TCI);
            }
            if bundle.includes(tags)
                && bridge.is_floodable(bundle)
                && !self.is_mirror_output(bundle.id)
            {
                let bundle = Arc::clone(bundle);
                self.work.push(Work::OutputNormal(bundle, *tags));
            }
        }
    }

    /// Sends to a bundle a packet that has `tags` inside of the bridge.
    pub(crate) fn output_normal(&mut self, bundle: &Bundle, tags: &Tags) {
        if bundle.looks_at_customers() {
            self.flow.mark(slot::VLAN2_TCI);
        }
        let mut outside = bundle.tags_out(tags);
        if bundle.priority_tags != PriorityTags::Never {
            let pcp = self.flow.read_bits(slot::VLAN_TCI, PCP);
            outside[0].pcp = pcp as u16;
        }
        let port = match &bundle.bond {
            None => bundle.members.first().copied(),
            Some(bond) => bond.choose(&mut self.flow, outside[0].vid),
        };
        let Some(port) = port else { return };
        let before = self.flow.tags_word();
        self.flow.put_tags(&outside, bundle.priority_tags);
        self.work.push(Work::Tags(before));
        self.push_output(port, false, false);
    }
}
