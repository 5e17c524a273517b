//! Family `ovs_vport`.

use super::{begin, cmd, parts, words};
use crate::attr::Attrs;
use crate::msg::{Builder, Message, nl};

/// The version of the interface.
const VERSION: u8 = 1;

const PORT_NO: u16 = 1;
const TYPE: u16 = 2;
const NAME: u16 = 3;
const OPTIONS: u16 = 4;
const UPCALL_PID: u16 = 5;
const STATS: u16 = 6;
const IFINDEX: u16 = 8;
const NETNSID: u16 = 9;
const UPCALL_STATS: u16 = 10;
const UPCALL_SUCCESS: u16 = 0;
const UPCALL_FAIL: u16 = 1;

const TUNNEL_DST_PORT: u16 = 1;
const TUNNEL_EXTENSION: u16 = 2;
const VXLAN_GBP: u16 = 1;

/// Types of ports.
pub mod kind {
    /// A device that exists without the datapath.
    pub const NETDEV: u32 = 1;
    /// A device that the datapath makes, such as its local port.
    pub const INTERNAL: u32 = 2;
    /// GRE, made by the module itself.
    pub const GRE: u32 = 3;
    /// VXLAN, made by the module itself.
    pub const VXLAN: u32 = 4;
    /// Geneve, made by the module itself.
    pub const GENEVE: u32 = 5;
}

/// What a port has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub struct Stats {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

/// Packets of a port for the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpcallStats {
    /// That found room in its socket.
    pub success: u64,
    /// That did not.
    pub fail: u64,
}

/// Options of a tunnel that the module makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnel {
    /// Its UDP port.
    pub dst_port: Option<u16>,
    /// VXLAN: headers carry a group policy.
    pub gbp: bool,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vport {
    /// The datapath's number.
    pub dp: u32,
    /// The port's number in it.
    pub port: u32,
    /// Its [`kind`].
    pub kind: u32,
    /// Name of the device.
    pub name: String,
    /// Options of a tunnel that the module makes.
    pub tunnel: Tunnel,
    /// Sockets that its packets for the switch go to, one of them by hash; a single 0 is none.
    pub upcall_pids: Vec<u32>,
    /// What it has counted.
    pub stats: Option<Stats>,
    /// Packets for the switch, where the kernel counts them (from 6.3 on).
    pub upcalls: Option<UpcallStats>,
    /// Interface number of the device.
    pub ifindex: Option<u32>,
    /// The device is in another namespace.
    pub elsewhere: bool,
}

impl Vport {
    /// From a message about a port, and whether it is gone; `None` if it is malformed.
    pub fn parse(message: &Message<'_>) -> Option<(Self, bool)> {
        let parts = parts(message)?;
        let mut vport = Self {
            dp: parts.dp,
            ..Self::default()
        };
        for attr in parts.attrs {
            match attr.kind {
                PORT_NO => vport.port = attr.u32()?,
                TYPE => vport.kind = attr.u32()?,
                NAME => attr.text()?.clone_into(&mut vport.name),
                OPTIONS => vport.tunnel = tunnel(attr.nested()),
                UPCALL_PID => {
                    let pids = attr.value.as_chunks::<4>().0.iter();
                    vport.upcall_pids = pids.map(|b| u32::from_ne_bytes(*b)).collect();
                }
                STATS => vport.stats = Some(stats(attr.value)),
                UPCALL_STATS => {
                    let number = |kind| attr.nested().find(kind).and_then(|a| a.u64());
                    vport.upcalls = Some(UpcallStats {
                        success: number(UPCALL_SUCCESS).unwrap_or(0),
                        fail: number(UPCALL_FAIL).unwrap_or(0),
                    });
                }
                IFINDEX => vport.ifindex = attr.u32(),
                NETNSID => vport.elsewhere = true,
                _ => {}
            }
        }
        Some((vport, parts.command == cmd::DEL))
    }
}

fn stats(bytes: &[u8]) -> Stats {
    let [
        rx_packets,
        tx_packets,
        rx_bytes,
        tx_bytes,
        rx_errors,
        tx_errors,
        rx_dropped,
        tx_dropped,
    ] = words(bytes);
    Stats {
        rx_packets,
        tx_packets,
        rx_bytes,
        tx_bytes,
        rx_errors,
        tx_errors,
        rx_dropped,
        tx_dropped,
    }
}

fn tunnel(attrs: Attrs<'_>) -> Tunnel {
    let extension = attrs.find(TUNNEL_EXTENSION);
    Tunnel {
        dst_port: attrs.find(TUNNEL_DST_PORT).and_then(|p| p.u16()),
        gbp: extension.is_some_and(|e| e.nested().find(VXLAN_GBP).is_some()),
    }
}

/// A port that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewPort<'a> {
    /// Its [`kind`].
    pub kind: u32,
    /// Name of the device.
    pub name: &'a str,
    /// The number that it must get; else the kernel chooses one.
    pub port: Option<u32>,
    /// Sockets for its packets; a single 0 is none.
    pub upcall_pids: &'a [u32],
    /// Options of a tunnel that the module makes.
    pub tunnel: Option<Tunnel>,
}

fn put_pids(builder: &mut Builder, pids: &[u32]) {
    let bytes: Vec<u8> = pids.iter().flat_map(|pid| pid.to_ne_bytes()).collect();
    builder.put(UPCALL_PID, &bytes);
}

/// Asks for a port; the answer describes it if [`nl::ECHO`] is among the flags.
pub fn create(family: u16, dp: u32, port: &NewPort<'_>) -> Builder {
    let mut builder = begin(family, cmd::NEW, VERSION, nl::ACK | nl::ECHO, dp);
    if let Some(number) = port.port {
        builder.put_u32(PORT_NO, number);
    }
    builder.put_u32(TYPE, port.kind).put_text(NAME, port.name);
    put_pids(&mut builder, port.upcall_pids);
    if let Some(tunnel) = &port.tunnel {
        let options = builder.open(OPTIONS);
        if let Some(number) = tunnel.dst_port {
            builder.put_u16(TUNNEL_DST_PORT, number);
        }
        if tunnel.gbp {
            let extension = builder.open(TUNNEL_EXTENSION);
            builder.put_flag(VXLAN_GBP);
            builder.close(extension);
        }
        builder.close(options);
    }
    builder
}

/// Changes the sockets of a port.
pub fn set_pids(family: u16, dp: u32, port: u32, pids: &[u32]) -> Builder {
    let mut builder = begin(family, cmd::SET, VERSION, nl::ACK, dp);
    builder.put_u32(PORT_NO, port);
    put_pids(&mut builder, pids);
    builder
}

/// Removes a port; a device that the datapath made goes with it.
pub fn delete(family: u16, dp: u32, port: u32) -> Builder {
    let mut builder = begin(family, cmd::DEL, VERSION, nl::ACK, dp);
    builder.put_u32(PORT_NO, port);
    builder
}

/// Asks for a port by its number.
pub fn get(family: u16, dp: u32, port: u32) -> Builder {
    let mut builder = begin(family, cmd::GET, VERSION, 0, dp);
    builder.put_u32(PORT_NO, port);
    builder
}

/// Asks for a port by its name, in whichever datapath of the namespace it is.
pub fn get_by_name(family: u16, name: &str) -> Builder {
    let mut builder = begin(family, cmd::GET, VERSION, 0, 0);
    builder.put_text(NAME, name);
    builder
}

/// Asks for all ports of a datapath.
pub fn dump(family: u16, dp: u32) -> Builder {
    begin(family, cmd::GET, VERSION, nl::DUMP, dp)
}

#[cfg(test)]
mod tests {
    use super::super::{only, sent, shorten};
    use super::*;

    #[test]
    fn a_port_is_read() {
        let mut builder = begin(32, cmd::DEL, VERSION, 0, 7);
        let counted = [1u64, 2, 3, 4, 5, 6, 7, 8].map(u64::to_ne_bytes).concat();
        builder
            .put_u32(PORT_NO, 3)
            .put_u32(TYPE, kind::VXLAN)
            .put_text(NAME, "vxlan_sys_4789")
            .put(UPCALL_PID, &[9, 0, 0, 0, 10, 0, 0, 0])
            .put(STATS, &counted)
            .put_u32(IFINDEX, 12);
        let options = builder.open(OPTIONS);
        builder.put_u16(TUNNEL_DST_PORT, 4789);
        let extension = builder.open(TUNNEL_EXTENSION);
        builder.put_flag(VXLAN_GBP);
        builder.close(extension);
        builder.close(options);
        let upcalls = builder.open(UPCALL_STATS);
        builder.put(UPCALL_SUCCESS, &20u64.to_ne_bytes());
        builder.put(UPCALL_FAIL, &21u64.to_ne_bytes());
        builder.close(upcalls);
        let bytes = sent(builder);
        let (vport, gone) = Vport::parse(&only(&bytes)).unwrap();
        assert!(gone);
        assert_eq!(
            vport,
            Vport {
                dp: 7,
                port: 3,
                kind: kind::VXLAN,
                name: "vxlan_sys_4789".into(),
                tunnel: Tunnel {
                    dst_port: Some(4789),
                    gbp: true,
                },
                upcall_pids: vec![9, 10],
                stats: Some(Stats {
                    rx_packets: 1,
                    tx_packets: 2,
                    rx_bytes: 3,
                    tx_bytes: 4,
                    rx_errors: 5,
                    tx_errors: 6,
                    rx_dropped: 7,
                    tx_dropped: 8,
                }),
                upcalls: Some(UpcallStats {
                    success: 20,
                    fail: 21,
                }),
                ifindex: Some(12),
                elsewhere: false,
            }
        );
        shorten(&bytes, |m| {
            let _ = Vport::parse(m);
        });
    }

    #[test]
    fn what_is_asked_for_reads_back() {
        let tunnel = Tunnel {
            dst_port: Some(6081),
            gbp: false,
        };
        let port = NewPort {
            kind: kind::GENEVE,
            name: "genev_sys_6081",
            port: Some(5),
            upcall_pids: &[0],
            tunnel: Some(tunnel),
        };
        let bytes = sent(create(32, 7, &port));
        let (vport, _) = Vport::parse(&only(&bytes)).unwrap();
        assert_eq!((vport.port, vport.kind), (5, kind::GENEVE));
        assert_eq!((vport.tunnel, vport.upcall_pids), (tunnel, vec![0]));
        let bytes = sent(set_pids(32, 7, 5, &[1, 2]));
        let (vport, _) = Vport::parse(&only(&bytes)).unwrap();
        assert_eq!(vport.upcall_pids, [1, 2]);
    }
}
