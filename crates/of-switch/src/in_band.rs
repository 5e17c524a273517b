//! In-band control: hidden rules that carry the traffic between the switch and its
//! controllers and managers past whatever the controllers set up.
//!
//! They are as narrow as they can be: DHCP and ARP of the local port, ARP of the next hops and
//! of the remotes, and TCP with the remotes.

use std::net::{Ipv4Addr, SocketAddrV4};

use net_flow::types::{eth_type, ip_proto};
use net_flow::{Match, PortNo, slot};
use of_wire::Action;
use of_wire::action::Output;
use of_wire::message::FlowModFlags;

use crate::rule::RuleSpec;

/// What the rules depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InBand {
    /// Address of the local port, once it is known.
    pub local_mac: Option<[u8; 6]>,
    /// Addresses of the next hops on the way to the remotes, where known.
    pub next_hops: Vec<[u8; 6]>,
    /// The controllers and managers that are reached through the bridge.
    pub remotes: Vec<SocketAddrV4>,
    /// The queue for this traffic.
    pub queue: Option<u32>,
}

/// Priorities of the rules.
const FROM_LOCAL_DHCP: i32 = 180_000;
const TO_LOCAL_ARP: i32 = 180_001;
const FROM_LOCAL_ARP: i32 = 180_002;
const TO_NEXT_HOP_ARP: i32 = 180_003;
const FROM_NEXT_HOP_ARP: i32 = 180_004;
const TO_REMOTE_ARP: i32 = 180_005;
const FROM_REMOTE_ARP: i32 = 180_006;
const TO_REMOTE_TCP: i32 = 180_007;
const FROM_REMOTE_TCP: i32 = 180_008;

const ARP_REQUEST: u128 = 1;
const ARP_REPLY: u128 = 2;
const DHCP_CLIENT: u128 = 68;
const DHCP_SERVER: u128 = 67;

fn mac_value(mac: [u8; 6]) -> u128 {
    mac.iter()
        .fold(0, |value, byte| value << 8 | u128::from(*byte))
}

fn arp(operation: u128) -> Match {
    let mut matching = Match::any();
    matching
        .set(slot::ETH_TYPE, u128::from(eth_type::ARP))
        .set(slot::NW_PROTO, operation);
    matching
}

fn ip(protocol: u8) -> Match {
    let mut matching = Match::any();
    matching
        .set(slot::ETH_TYPE, u128::from(eth_type::IPV4))
        .set(slot::NW_PROTO, u128::from(protocol));
    matching
}

impl InBand {
    /// The rules.
    pub fn rules(&self) -> Vec<RuleSpec> {
        let mut rules = Vec::new();
        if self.remotes.is_empty() {
            return rules;
        }
        if let Some(mac) = self.local_mac {
            let mac = mac_value(mac);
            let mut dhcp = ip(ip_proto::UDP);
            dhcp.set(slot::IN_PORT, u128::from(PortNo::LOCAL.0))
                .set(slot::ETH_SRC, mac)
                .set(slot::TP_SRC, DHCP_CLIENT)
                .set(slot::TP_DST, DHCP_SERVER);
            rules.push(self.rule(FROM_LOCAL_DHCP, dhcp));
            rules.push(self.rule(TO_LOCAL_ARP, with(arp(ARP_REPLY), slot::ETH_DST, mac)));
            rules.push(self.rule(FROM_LOCAL_ARP, with(arp(ARP_REQUEST), slot::ETH_SRC, mac)));
        }
        for mac in &self.next_hops {
            let mac = mac_value(*mac);
            let to = with(arp(ARP_REPLY), slot::ETH_DST, mac);
            let from = with(arp(ARP_REQUEST), slot::ETH_SRC, mac);
            rules.push(self.rule(TO_NEXT_HOP_ARP, to));
            rules.push(self.rule(FROM_NEXT_HOP_ARP, from));
        }
        let mut addresses: Vec<Ipv4Addr> = self.remotes.iter().map(|r| *r.ip()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        for address in addresses {
            let address = u128::from(u32::from(address));
            let to = with(arp(ARP_REPLY), slot::NW_DST, address);
            let from = with(arp(ARP_REQUEST), slot::NW_SRC, address);
            rules.push(self.rule(TO_REMOTE_ARP, to));
            rules.push(self.rule(FROM_REMOTE_ARP, from));
        }
        for remote in &self.remotes {
            let address = u128::from(u32::from(*remote.ip()));
            let port = u128::from(remote.port());
            let to = with(ip(ip_proto::TCP), slot::NW_DST, address);
            let from = with(ip(ip_proto::TCP), slot::NW_SRC, address);
            rules.push(self.rule(TO_REMOTE_TCP, with(to, slot::TP_DST, port)));
            rules.push(self.rule(FROM_REMOTE_TCP, with(from, slot::TP_SRC, port)));
        }
        rules
    }

    fn rule(&self, priority: i32, matching: Match) -> RuleSpec {
        let normal = Action::Output(Output {
            port: PortNo::NORMAL,
            max_len: 0,
        });
        let queue = self.queue.map(Action::SetQueue);
        RuleSpec {
            table: 0,
            priority,
            matching,
            cookie: 0,
            actions: queue.into_iter().chain([normal]).collect(),
            flags: FlowModFlags::empty(),
            importance: 0,
            idle_timeout: 0,
            hard_timeout: 0,
        }
    }
}

fn with(mut matching: Match, slot: net_flow::Slot, value: u128) -> Match {
    matching.set(slot, value);
    matching
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_rules() {
        let mut in_band = InBand {
            local_mac: Some([2, 0, 0, 0, 0, 1]),
            ..InBand::default()
        };
        assert!(in_band.rules().is_empty(), "no remote, no rule");
        let remote = |port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), port);
        in_band.remotes = vec![remote(6653), remote(6640)];
        in_band.next_hops = vec![[2, 0, 0, 0, 0, 9]];
        let mut priorities: Vec<i32> = in_band.rules().iter().map(|r| r.priority).collect();
        priorities.sort_unstable();
        let wanted = [0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 8].map(|n| FROM_LOCAL_DHCP + n);
        assert_eq!(priorities, wanted);
        in_band.queue = Some(4);
        let actions = &in_band.rules()[0].actions;
        assert!(matches!(
            actions[..],
            [Action::SetQueue(4), Action::Output(_)]
        ));
    }
}
