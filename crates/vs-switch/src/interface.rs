//! One interface of a bridge: its device, its numbers, and how it shows.

use std::sync::Arc;

use base::Instant;
use dp_lang::PortNo as DpPort;
use net_dev::{Device, DeviceState, DeviceStats};
use net_flow::PortNo;
use net_packet::EthAddr;
use of_wire::message::{PortConfig as OfPortConfig, PortDesc, PortFeatures, PortState, PortStats};
use of_xlate::{PatchCounters, PortFlags, Tunnel};

use crate::config::InterfaceConfig;
use crate::status::{InterfaceStatistics, InterfaceStatus};
use crate::tunnels::TunnelCarrier;

/// What carries an interface's packets.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// Nothing: it could not be set up, for this reason.
    None(String),
    /// A port of the datapath.
    Datapath {
        /// Its number there.
        port: DpPort,
        /// Its device.
        device: Arc<dyn Device>,
    },
    /// A patch port's own counters; its packets never leave the switch.
    Patch(Arc<PatchCounters>),
    /// A tunnel, whose datapath port is others' too.
    Tunnel(TunnelCarrier),
}

/// An interface.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) config: InterfaceConfig,
    /// Name of the port that it belongs to.
    pub(crate) port: String,
    pub(crate) number: Option<PortNo>,
    pub(crate) carrier: Carrier,
    /// What a controller has set; the device says whether the port is down.
    pub(crate) of_config: OfPortConfig,
    pub(crate) created: Instant,
    /// Whether the device was there when it was last looked at.
    pub(crate) was_present: bool,
    /// The device's change count when it was last looked at.
    pub(crate) seen_changes: u64,
}

impl Interface {
    pub(crate) fn device(&self) -> Option<&Arc<dyn Device>> {
        match &self.carrier {
            Carrier::Datapath { device, .. } => Some(device),
            Carrier::None(_) | Carrier::Patch(_) | Carrier::Tunnel(_) => None,
        }
    }

    /// The datapath port by which its packets go.
    pub(crate) const fn datapath_port(&self) -> Option<DpPort> {
        match &self.carrier {
            Carrier::Tunnel(tunnel) => Some(tunnel.port),
            _ => self.own_datapath_port(),
        }
    }

    /// The datapath port that is its alone.
    pub(crate) const fn own_datapath_port(&self) -> Option<DpPort> {
        match &self.carrier {
            Carrier::Datapath { port, .. } => Some(*port),
            Carrier::None(_) | Carrier::Patch(_) | Carrier::Tunnel(_) => None,
        }
    }

    pub(crate) const fn tunnel(&self) -> Option<&TunnelCarrier> {
        match &self.carrier {
            Carrier::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }

    pub(crate) fn is_patch(&self) -> bool {
        self.config.kind == "patch"
    }

    /// The name of the other end of a patch port.
    pub(crate) fn peer(&self) -> Option<&str> {
        if !self.is_patch() {
            return None;
        }
        self.config.options.get("peer").map(String::as_str)
    }

    /// Whether it takes part in forwarding: it was set up, and its device is there.
    pub(crate) fn is_up_and_running(&self) -> bool {
        self.number.is_some() && !matches!(self.carrier, Carrier::None(_)) && self.was_present
    }

    fn state(&self) -> Option<DeviceState> {
        self.device().map(|d| d.state())
    }

    /// Its Ethernet address, as far as it has one.
    pub(crate) fn mac(&self) -> [u8; 6] {
        match self.tunnel() {
            Some(tunnel) => tunnel.mac,
            None => self.state().map_or([0; 6], |s| s.mac.0),
        }
    }

    pub(crate) fn is_admin_up(&self) -> bool {
        self.state().is_none_or(|s| s.up)
    }

    /// How it behaves in translation.
    pub(crate) fn flags(&self) -> PortFlags {
        let has = |flag| self.of_config.contains(flag);
        PortFlags {
            down: !self.is_admin_up() || has(OfPortConfig::PORT_DOWN),
            no_recv_stp: has(OfPortConfig::NO_RECV_STP),
            no_recv: has(OfPortConfig::NO_RECV),
            no_flood: has(OfPortConfig::NO_FLOOD),
            no_fwd: has(OfPortConfig::NO_FWD),
            no_packet_in: has(OfPortConfig::NO_PACKET_IN),
        }
    }

    /// Whether it is up and has a link.
    pub(crate) fn is_live(&self) -> bool {
        self.state().is_none_or(|s| s.up && s.carrier)
    }

    /// How controllers see it.
    pub(crate) fn desc(&self, number: PortNo) -> PortDesc {
        let features = self.device().map(|d| d.features()).unwrap_or_default();
        let bits = |modes: net_dev::Modes| PortFeatures::from_bits_truncate(modes.0);
        let (up, carrier) = self.state().map_or((true, true), |s| (s.up, s.carrier));
        let mut config = self.of_config;
        config.set(OfPortConfig::PORT_DOWN, !up);
        let mut state = PortState::empty();
        state.set(PortState::LINK_DOWN, !carrier);
        state.set(PortState::LIVE, self.is_live());
        let speed = features.speed.map_or(0, |mbps| mbps.saturating_mul(1000));
        PortDesc {
            port: number,
            hw_addr: self.mac(),
            name: self.config.name.clone(),
            config,
            state,
            curr: bits(features.current),
            advertised: bits(features.advertised),
            supported: bits(features.supported),
            peer: bits(features.peer),
            curr_speed: speed,
            max_speed: max_speed(bits(features.supported)),
        }
    }

    /// Its counters as OpenFlow has them.
    pub(crate) fn port_stats(&self, number: PortNo, now: Instant) -> PortStats {
        let age = now.since(self.created);
        let mut stats = PortStats {
            port: number,
            duration_sec: u32::try_from(age.as_secs()).unwrap_or(u32::MAX),
            duration_nsec: age.subsec_nanos(),
            ..unknown_stats()
        };
        match &self.carrier {
            Carrier::Patch(counters)
            | Carrier::Tunnel(TunnelCarrier {
                tunnel: Tunnel { counters, .. },
                ..
            }) => {
                [
                    stats.rx_packets,
                    stats.rx_bytes,
                    stats.tx_packets,
                    stats.tx_bytes,
                ] = counters.read();
            }
            Carrier::Datapath { device, .. } => {
                if let Ok(counted) = device.stats() {
                    fill(&mut stats, &counted);
                }
            }
            Carrier::None(_) => {}
        }
        stats
    }

    /// The columns of its row.
    pub(crate) fn status(&self) -> InterfaceStatus {
        let number = self.number.filter(|_| self.is_up_and_running());
        let error = match &self.carrier {
            Carrier::None(why) => Some(why.clone()),
            _ if !self.was_present => Some(gone(&self.config.name)),
            _ => None,
        };
        let mut status = InterfaceStatus {
            ofport: number.map(PortNo::to_of10),
            error,
            ..InterfaceStatus::default()
        };
        if let Carrier::Patch(_) | Carrier::Tunnel(_) = self.carrier {
            status.mac_in_use = self.tunnel().map(|t| EthAddr(t.mac).to_u64());
            status.admin_up = Some(true);
            status.link_up = Some(true);
            status.link_resets = Some(0);
            status.ifindex = Some(0);
            return status;
        }
        let Some(device) = self.device().filter(|_| self.was_present) else {
            return status;
        };
        let state = device.state();
        let features = device.features();
        status.mac_in_use = Some(state.mac.to_u64());
        status.mtu = Some(state.mtu);
        status.ifindex = Some(state.ifindex.unwrap_or(0));
        status.admin_up = Some(state.up);
        status.link_up = Some(state.carrier);
        status.link_resets = Some(state.carrier_resets);
        status.link_speed = features.speed.map(|mbps| u64::from(mbps) * 1_000_000);
        status.full_duplex = features.full_duplex;
        status.status = device.status();
        status
    }

    /// What of the `status` column tells which work the device does in packets that it sends.
    pub(crate) fn offload_status(&self) -> Vec<(String, String)> {
        // Of taps the original does not tell.
        let told = |device: &&Arc<dyn Device>| self.was_present && device.kind() != "tap";
        let Some(device) = self.device().filter(told) else {
            return Vec::new();
        };
        let offloads = device.tx_offloads();
        let all = [
            ("ip_csum", false),
            ("tcp_csum", offloads.l4_checksum),
            ("udp_csum", offloads.l4_checksum),
            ("sctp_csum", false),
            ("tcp_seg", offloads.tcp_segments),
            ("vxlan_tso", false),
            ("gre_tso", false),
            ("geneve_tso", false),
            ("out_ip_csum", false),
            ("out_udp_csum", false),
        ];
        let pair =
            |(name, is_there): (&str, bool)| (format!("tx_{name}_offload"), is_there.to_string());
        all.map(pair).to_vec()
    }

    /// The `statistics` column.
    pub(crate) fn statistics(&self) -> InterfaceStatistics {
        let mut column = InterfaceStatistics::new();
        let mut put = |name: &str, value: Option<u64>| {
            if let Some(value) = value {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                column.push((name.to_owned(), value));
            }
        };
        match &self.carrier {
            Carrier::None(_) => {}
            Carrier::Patch(counters)
            | Carrier::Tunnel(TunnelCarrier {
                tunnel: Tunnel { counters, .. },
                ..
            }) => {
                let names = ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes"];
                for (name, value) in names.iter().zip(counters.read()) {
                    put(name, Some(value));
                }
            }
            Carrier::Datapath { device, .. } => {
                let s = device.stats().unwrap_or_default();
                for (name, value) in named(&s) {
                    put(name, value);
                }
                for (name, value) in device.custom_stats() {
                    put(&name, Some(value));
                }
            }
        }
        column.sort();
        column
    }
}

/// What is said of a device that is not there.
pub(crate) fn gone(name: &str) -> String {
    format!("could not open network device {name} (No such device)")
}

fn named(s: &DeviceStats) -> [(&'static str, Option<u64>); 21] {
    [
        ("rx_packets", s.rx_packets),
        ("tx_packets", s.tx_packets),
        ("rx_bytes", s.rx_bytes),
        ("tx_bytes", s.tx_bytes),
        ("rx_errors", s.rx_errors),
        ("tx_errors", s.tx_errors),
        ("rx_dropped", s.rx_dropped),
        ("tx_dropped", s.tx_dropped),
        ("rx_multicast_packets", s.multicast),
        ("collisions", s.collisions),
        ("rx_length_err", s.rx_length_errors),
        ("rx_over_err", s.rx_over_errors),
        ("rx_crc_err", s.rx_crc_errors),
        ("rx_frame_err", s.rx_frame_errors),
        ("rx_fifo_err", s.rx_fifo_errors),
        ("rx_missed_errors", s.rx_missed_errors),
        ("tx_aborted_errors", s.tx_aborted_errors),
        ("tx_carrier_errors", s.tx_carrier_errors),
        ("tx_fifo_errors", s.tx_fifo_errors),
        ("tx_heartbeat_errors", s.tx_heartbeat_errors),
        ("tx_window_errors", s.tx_window_errors),
    ]
}

/// Counters of which none is kept.
fn unknown_stats() -> PortStats {
    const UNKNOWN: u64 = u64::MAX;
    PortStats {
        rx_packets: UNKNOWN,
        tx_packets: UNKNOWN,
        rx_bytes: UNKNOWN,
        tx_bytes: UNKNOWN,
        rx_dropped: UNKNOWN,
        tx_dropped: UNKNOWN,
        rx_errors: UNKNOWN,
        tx_errors: UNKNOWN,
        rx_frame_errors: UNKNOWN,
        rx_over_errors: UNKNOWN,
        rx_crc_errors: UNKNOWN,
        collisions: UNKNOWN,
        ..PortStats::default()
    }
}

fn fill(stats: &mut PortStats, counted: &DeviceStats) {
    for (to, from) in [
        (&mut stats.rx_packets, counted.rx_packets),
        (&mut stats.tx_packets, counted.tx_packets),
        (&mut stats.rx_bytes, counted.rx_bytes),
        (&mut stats.tx_bytes, counted.tx_bytes),
        (&mut stats.rx_dropped, counted.rx_dropped),
        (&mut stats.tx_dropped, counted.tx_dropped),
        (&mut stats.rx_errors, counted.rx_errors),
        (&mut stats.tx_errors, counted.tx_errors),
        (&mut stats.rx_frame_errors, counted.rx_frame_errors),
        (&mut stats.rx_over_errors, counted.rx_over_errors),
        (&mut stats.rx_crc_errors, counted.rx_crc_errors),
        (&mut stats.collisions, counted.collisions),
    ] {
        if let Some(value) = from {
            *to = value;
        }
    }
}

/// The highest speed among these modes, in kb/s.
fn max_speed(modes: PortFeatures) -> u32 {
    let by_speed = [
        (PortFeatures::FD_1TB, 1_000_000_000),
        (PortFeatures::FD_100GB, 100_000_000),
        (PortFeatures::FD_40GB, 40_000_000),
        (PortFeatures::FD_10GB, 10_000_000),
        (PortFeatures::HD_1GB.union(PortFeatures::FD_1GB), 1_000_000),
        (
            PortFeatures::HD_100MB.union(PortFeatures::FD_100MB),
            100_000,
        ),
        (PortFeatures::HD_10MB.union(PortFeatures::FD_10MB), 10_000),
    ];
    let fastest = by_speed.iter().find(|(bits, _)| modes.intersects(*bits));
    fastest.map_or(0, |(_, kbps)| *kbps)
}
