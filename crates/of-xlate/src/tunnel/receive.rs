//! Which tunnel port a packet came by.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use dp_lang::PortNo as DpPort;
use net_flow::{FlowKey, PortNo, slot};

use super::{Local, Owner, PacketTypeMode, TunnelMatch, outer_dst, outer_src};
use crate::view::BridgeId;

/// The namespace of packet types that are Ethernet types.
const NS_ETHERTYPE: u32 = 1;

/// Whether a packet came out of a tunnel.
pub(crate) fn is_tunnelled(key: &FlowKey) -> bool {
    outer_dst(key).is_some()
}

/// The tunnel ports of a datapath, by what their packets look like.
#[derive(Clone, Debug, Default)]
pub struct TunnelTable(HashMap<TunnelMatch, Owner>);

impl TunnelTable {
    /// Adds a port.
    ///
    /// # Errors
    /// There is one that could not be told from it, which is returned.
    pub fn add(
        &mut self,
        matching: TunnelMatch,
        bridge: BridgeId,
        port: PortNo,
    ) -> Result<(), (BridgeId, PortNo)> {
        match self.0.entry(matching) {
            Entry::Occupied(place) => Err(*place.get()),
            Entry::Vacant(place) => {
                place.insert((bridge, port));
                Ok(())
            }
        }
    }

    /// The port with this configuration.
    pub fn get(&self, matching: &TunnelMatch) -> Option<(BridgeId, PortNo)> {
        self.0.get(matching).copied()
    }

    /// Removes a port.
    pub fn remove(&mut self, matching: &TunnelMatch) {
        self.0.remove(matching);
    }

    /// All ports, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = (&TunnelMatch, (BridgeId, PortNo))> {
        let mut all: Vec<_> = self.0.iter().map(|(m, owner)| (m, *owner)).collect();
        all.sort_by_key(|(m, owner)| (rank(m), *owner));
        all.into_iter()
    }

    /// The port by which a packet with this datapath key came in.
    pub(crate) fn find(&self, key: &FlowKey) -> Option<Owner> {
        if self.0.is_empty() {
            return None;
        }
        let legacy = if key.get(slot::PACKET_TYPE) as u32 >> 16 == NS_ETHERTYPE {
            PacketTypeMode::LegacyL3
        } else {
            PacketTypeMode::LegacyL2
        };
        let local = outer_dst(key).map_or(Local::Any, Local::Address);
        let id = key.get(slot::TUN_ID) as u64;
        let port = DpPort(key.get(slot::IN_PORT) as u32);
        for in_key in [Some(id), None] {
            for remote in [outer_src(key), None] {
                for local in [local, Local::Any, Local::Flow] {
                    for mode in [legacy, PacketTypeMode::Aware] {
                        let wanted = TunnelMatch {
                            in_key,
                            remote,
                            local,
                            port,
                            mode,
                        };
                        if let Some(owner) = self.0.get(&wanted) {
                            return Some(*owner);
                        }
                    }
                }
            }
        }
        None
    }
}

/// Where a port stands among those that are tried.
const fn rank(matching: &TunnelMatch) -> (bool, bool, u8) {
    let local = match matching.local {
        Local::Address(_) => 0,
        Local::Any => 1,
        Local::Flow => 2,
    };
    (matching.in_key.is_none(), matching.remote.is_none(), local)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::{TunnelConfig, TunnelKey};
    use super::*;

    fn config(remote: Option<&str>, local: Option<&str>, in_key: TunnelKey) -> TunnelConfig {
        let ip = |text: &str| -> IpAddr { text.parse().expect("an address") };
        TunnelConfig {
            remote: remote.map(ip),
            local: local.map_or(Local::Any, |l| match l {
                "flow" => Local::Flow,
                address => Local::Address(ip(address)),
            }),
            in_key,
            ..TunnelConfig::new("gre")
        }
    }

    fn packet(id: u64, src: u32, dst: u32) -> FlowKey {
        let mut key = FlowKey::new();
        key.set(slot::IN_PORT, 1);
        key.set(slot::TUN_ID, u128::from(id));
        key.set(slot::TUN_SRC, u128::from(src));
        key.set(slot::TUN_DST, u128::from(dst));
        key
    }

    #[test]
    fn the_most_exact_port_gets_a_packet() {
        let mut table = TunnelTable::default();
        let all = [
            config(Some("1.1.1.1"), None, TunnelKey::Absent),
            config(Some("1.1.1.1"), Some("2.2.2.2"), TunnelKey::Absent),
            config(Some("1.1.1.1"), None, TunnelKey::Value(5)),
            config(None, Some("2.2.2.2"), TunnelKey::Flow),
            config(None, Some("flow"), TunnelKey::Flow),
        ];
        for (n, config) in all.iter().enumerate() {
            let matching = TunnelMatch::new(config, DpPort(1));
            let number = PortNo(n as u32);
            table.add(matching, BridgeId(1), number).expect("new");
            assert!(table.add(matching, BridgeId(1), PortNo(9)).is_err());
        }
        let found = |id, src, dst| table.find(&packet(id, src, dst)).map(|(_, port)| port.0);
        let (one, two, three) = (0x0101_0101, 0x0202_0202, 0x0303_0303);
        assert_eq!(found(0, one, three), Some(0));
        assert_eq!(found(0, one, two), Some(1));
        assert_eq!(found(5, one, two), Some(2));
        assert_eq!(found(6, one, two), Some(3));
        assert_eq!(found(6, one, three), Some(4));
        let mut elsewhere = packet(6, one, two);
        elsewhere.set(slot::IN_PORT, 2);
        assert_eq!(table.find(&elsewhere), None);
        let mut without_frame = packet(0, one, two);
        without_frame.set(slot::PACKET_TYPE, 0x1_0800);
        assert_eq!(table.find(&without_frame), None);
    }

    #[test]
    fn ports_in_words() {
        let text = |config: &TunnelConfig| TunnelMatch::new(config, DpPort(4789)).to_string();
        assert_eq!(
            text(&config(Some("1.1.1.1"), None, TunnelKey::Value(5))),
            "::->1.1.1.1, key=0x5, legacy_l2, dp port=4789"
        );
        assert_eq!(
            text(&config(None, Some("flow"), TunnelKey::Flow)),
            "flow->flow, key=flow, legacy_l2, dp port=4789"
        );
        assert_eq!(
            text(&config(None, Some("2.2.2.2"), TunnelKey::Absent)),
            "2.2.2.2->flow, key=0, legacy_l2, dp port=4789"
        );
    }
}
