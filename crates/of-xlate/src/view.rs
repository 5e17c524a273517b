//! What translation reads: one immutable value over all bridges.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dp_lang::{Features, PortNo as DpPort};
use net_flow::{FlowKey, PortNo, slot};
use net_proto::mac_learning::MacTable;
use of_switch::TablesView;

use crate::bond::Bond;
use crate::mirror::Mirror;
use crate::recirc::RecircTable;
use crate::tunnel::{Tunnel, TunnelTable, is_tunnelled};

/// Identifies a bridge for its life; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BridgeId(pub u64);

/// Why it is not known where a packet came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocateError {
    /// No bridge has that datapath port.
    NoPort(DpPort),
    /// No tunnel port is configured for such packets.
    NoTunnelPort,
    /// The packet was recirculated, and its state is gone.
    NoRecirculationData(u32),
}

impl fmt::Display for LocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPort(port) => write!(f, "no OpenFlow port for datapath port {port}"),
            Self::NoTunnelPort => f.write_str("no OpenFlow tunnel port for this packet"),
            Self::NoRecirculationData(id) => {
                write!(f, "no recirculation data for recirc_id {id:#x}")
            }
        }
    }
}

impl std::error::Error for LocateError {}

/// All bridges of a switch, as of one version.
#[derive(Clone, Debug, Default)]
pub struct SwitchView {
    /// Counts up with each publication.
    pub version: u64,
    /// The bridges.
    pub bridges: BTreeMap<BridgeId, Arc<BridgeView>>,
    /// Whose each datapath port is: its bridge and its OpenFlow number there.
    pub datapath_ports: Arc<HashMap<DpPort, (BridgeId, PortNo)>>,
    /// The tunnel ports.
    pub tunnels: Arc<TunnelTable>,
    /// What the datapath can do.
    pub features: Features,
    /// The frozen states that all translations share.
    pub recirc: Arc<RecircTable>,
}

impl SwitchView {
    /// A bridge by its name.
    pub fn bridge(&self, name: &str) -> Option<&Arc<BridgeView>> {
        self.bridges.values().find(|b| *b.name == *name)
    }

    /// A port of a bridge.
    pub fn port(&self, bridge: BridgeId, port: PortNo) -> Option<&Arc<Port>> {
        self.bridges.get(&bridge)?.ports.get(&port)
    }

    /// Where a packet with this datapath key came in: the bridge, and the key with the
    /// OpenFlow number of the input port.
    ///
    /// # Errors
    /// No port is there for it, or it comes back with an id that stands for nothing.
    pub fn locate(&self, key: &FlowKey) -> Result<(BridgeId, FlowKey), LocateError> {
        let (bridge, number) = self.input_of(key)?;
        let mut key = key.clone();
        key.set(slot::IN_PORT, u128::from(number.0));
        Ok((bridge, key))
    }

    fn input_of(&self, key: &FlowKey) -> Result<(BridgeId, PortNo), LocateError> {
        let recirc = key.get(slot::RECIRC_ID) as u32;
        if recirc != 0 {
            // Its datapath port may have become another's since.
            let state = self.recirc.get(recirc);
            let state = state.ok_or(LocateError::NoRecirculationData(recirc))?;
            let known = state.input.filter(|(b, p)| self.port(*b, *p).is_some());
            if let Some(input) = known {
                return Ok(input);
            }
        }
        if is_tunnelled(key) {
            return self.tunnels.find(key).ok_or(LocateError::NoTunnelPort);
        }
        let port = DpPort(key.get(slot::IN_PORT) as u32);
        let input = self.datapath_ports.get(&port);
        input.copied().ok_or(LocateError::NoPort(port))
    }
}

/// What becomes of fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FragmentMode {
    /// They pass, matched as if they had no L4 ports.
    #[default]
    Normal,
    /// They are dropped.
    Drop,
    /// The first is matched with its ports, the others without (Nicira's mode).
    NxMatch,
}

/// One bridge.
#[derive(Clone, Debug)]
pub struct BridgeView {
    /// Its identity.
    pub id: BridgeId,
    /// Its name.
    pub name: Arc<str>,
    /// Its flow tables.
    pub tables: Arc<TablesView>,
    /// Its ports by OpenFlow number.
    pub ports: Arc<BTreeMap<PortNo, Arc<Port>>>,
    /// Its bundles in the order in which a flood sends to them.
    pub bundles: Arc<Vec<Arc<Bundle>>>,
    /// Its mirrors, [`MAX_MIRRORS`](crate::MAX_MIRRORS) at most.
    pub mirrors: Arc<[Mirror]>,
    /// Its MAC table.
    pub macs: Arc<MacTable>,
    /// Whether NORMAL forwards reserved multicast (`other_config:forward-bpdu`).
    pub forward_bpdu: bool,
    /// What becomes of fragments.
    pub fragments: FragmentMode,
    /// Whether DHCP replies must reach the local port too (in-band control).
    pub in_band: bool,
    /// Whether one of its controllers is connected.
    pub has_live_controller: bool,
    /// Whether the spanning tree protocol runs.
    pub stp: bool,
    /// Whether the rapid spanning tree protocol runs.
    pub rstp: bool,
}

impl BridgeView {
    /// A bridge without ports and with the default settings.
    pub fn new(id: BridgeId, name: &str, tables: Arc<TablesView>, macs: Arc<MacTable>) -> Self {
        Self {
            id,
            name: name.into(),
            tables,
            ports: Arc::default(),
            bundles: Arc::default(),
            mirrors: Arc::default(),
            macs,
            forward_bpdu: false,
            fragments: FragmentMode::Normal,
            in_band: false,
            has_live_controller: false,
            stp: false,
            rstp: false,
        }
    }

    /// The bundle with that number.
    pub fn bundle(&self, id: u32) -> Option<&Arc<Bundle>> {
        self.bundles.iter().find(|b| b.id == id)
    }

    /// The bundle of a port.
    pub fn bundle_of(&self, port: PortNo) -> Option<&Arc<Bundle>> {
        self.bundle(self.ports.get(&port)?.bundle?)
    }

    /// Whether NORMAL floods to a bundle: no member has flooding off or blocked.
    pub(crate) fn is_floodable(&self, bundle: &Bundle) -> bool {
        bundle.members.iter().all(|member| {
            self.ports
                .get(member)
                .is_none_or(|port| !port.flags.no_flood && port.spanning.forwards())
        })
    }
}

/// What a port does and does not do (`OFPPC_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFlags {
    /// Administratively down.
    pub down: bool,
    /// Drops spanning tree packets that it receives.
    pub no_recv_stp: bool,
    /// Drops other packets that it receives.
    pub no_recv: bool,
    /// Is left out of floods.
    pub no_flood: bool,
    /// Drops packets sent to it.
    pub no_fwd: bool,
    /// Sends no packet-ins for table misses.
    pub no_packet_in: bool,
}

/// Where a port stands in a spanning tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanningState {
    /// It is in none.
    #[default]
    Disabled,
    /// Nothing passes.
    Blocking,
    /// Only the protocol's packets pass.
    Listening,
    /// Addresses are learned, packets dropped.
    Learning,
    /// Packets pass.
    Forwarding,
}

impl SpanningState {
    /// Whether packets pass.
    pub const fn forwards(self) -> bool {
        matches!(self, Self::Disabled | Self::Forwarding)
    }

    /// Whether addresses are learned.
    pub const fn learns(self) -> bool {
        matches!(self, Self::Disabled | Self::Learning | Self::Forwarding)
    }

    /// Whether the protocol's packets are forwarded.
    pub const fn forwards_bpdu(self) -> bool {
        !matches!(self, Self::Blocking)
    }
}

/// A patch port's other end.
#[derive(Clone, Debug)]
pub struct Patch {
    /// The peer's bridge.
    pub bridge: BridgeId,
    /// The peer's number there.
    pub port: PortNo,
    /// What this port has counted.
    pub counters: Arc<PatchCounters>,
}

/// What a patch port counts; no datapath does it for it.
#[derive(Debug, Default)]
pub struct PatchCounters {
    rx_packets: AtomicU64,
    rx_bytes: AtomicU64,
    tx_packets: AtomicU64,
    tx_bytes: AtomicU64,
}

impl PatchCounters {
    /// Counts packets that came out of the port.
    pub fn received(&self, packets: u64, bytes: u64) {
        self.rx_packets.fetch_add(packets, Ordering::Relaxed);
        self.rx_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts packets that went into the port.
    pub fn sent(&self, packets: u64, bytes: u64) {
        self.tx_packets.fetch_add(packets, Ordering::Relaxed);
        self.tx_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Packets and bytes received, packets and bytes sent.
    pub fn read(&self) -> [u64; 4] {
        [
            &self.rx_packets,
            &self.rx_bytes,
            &self.tx_packets,
            &self.tx_bytes,
        ]
        .map(|c| c.load(Ordering::Relaxed))
    }
}

/// A port of a bridge.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its OpenFlow number.
    pub number: PortNo,
    /// Its name.
    pub name: Arc<str>,
    /// Its datapath port, which patch ports do not have.
    pub datapath: Option<DpPort>,
    /// The other end of a patch port.
    pub patch: Option<Patch>,
    /// What makes it a tunnel port; its datapath port is shared with others.
    pub tunnel: Option<Tunnel>,
    /// What it does and does not do.
    pub flags: PortFlags,
    /// Where it stands in the spanning tree.
    pub spanning: SpanningState,
    /// The number of its bundle.
    pub bundle: Option<u32>,
    /// Whether it is up and has a link.
    pub is_live: bool,
}

impl Port {
    /// A port that is nothing special.
    pub fn new(number: PortNo, name: &str, datapath: Option<DpPort>) -> Self {
        Self {
            number,
            name: name.into(),
            datapath,
            patch: None,
            tunnel: None,
            flags: PortFlags::default(),
            spanning: SpanningState::Disabled,
            bundle: None,
            is_live: true,
        }
    }
}

/// `vlan_mode` of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanMode {
    /// Carries one VLAN untagged.
    Access,
    /// Carries VLANs tagged.
    #[default]
    Trunk,
    /// A trunk that also carries its native VLAN, tagged.
    NativeTagged,
    /// A trunk that carries its native VLAN untagged.
    NativeUntagged,
    /// Wraps customers' VLANs into a service VLAN.
    Dot1qTunnel,
}

/// Which priority-tagged packets keep their tag on an access port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorityTags {
    /// None.
    #[default]
    Never,
    /// Those with a priority other than zero.
    IfNonzero,
    /// All.
    Always,
}

/// A set of VLAN ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanSet(Box<[u64; 64]>);

impl VlanSet {
    /// The set of these ids; those above 4095 are left out.
    pub fn new(ids: impl IntoIterator<Item = u16>) -> Self {
        let mut words = Box::new([0; 64]);
        for id in ids.into_iter().filter(|id| *id < 4096) {
            words[usize::from(id / 64)] |= 1 << (id % 64);
        }
        Self(words)
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: u16) -> bool {
        let word = self.0.get(usize::from(id / 64));
        word.is_some_and(|w| w >> (id % 64) & 1 != 0)
    }
}

/// A port of the database: one OpenFlow port, or several as a bond.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Its number in the bridge and its MAC table; never used again for another.
    pub id: u32,
    /// Its name.
    pub name: Arc<str>,
    /// How it treats VLANs.
    pub vlan_mode: VlanMode,
    /// The access, native or service VLAN; 0 if none.
    pub tag: u16,
    /// The VLANs that a trunk carries; none is all.
    pub trunks: Option<VlanSet>,
    /// The customers' VLANs that a tunnel carries; none is all.
    pub cvlans: Option<VlanSet>,
    /// Ethernet type of a tunnel's service tag.
    pub qinq_ethtype: u16,
    /// Which priority tags are kept.
    pub priority_tags: PriorityTags,
    /// Whether it exchanges no packets with other protected bundles.
    pub protected: bool,
    /// Its ports.
    pub members: Vec<PortNo>,
    /// How it chooses among several members.
    pub bond: Option<Bond>,
}

impl Bundle {
    /// A trunk with one member.
    pub fn new(id: u32, name: &str, member: PortNo) -> Self {
        Self {
            id,
            name: name.into(),
            vlan_mode: VlanMode::Trunk,
            tag: 0,
            trunks: None,
            cvlans: None,
            qinq_ethtype: 0x88a8,
            priority_tags: PriorityTags::Never,
            protected: false,
            members: vec![member],
            bond: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_vlans_holds_what_was_put_in() {
        let set = VlanSet::new([0, 5, 64, 4095, 5000]);
        let all: Vec<u16> = (0..5001).filter(|id| set.contains(*id)).collect();
        assert_eq!(all, [0, 5, 64, 4095]);
    }
}
