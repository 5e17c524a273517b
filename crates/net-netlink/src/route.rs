//! The part of rtnetlink that the switch uses: links and addresses.

use std::net::IpAddr;

use crate::attr::Attrs;
use crate::msg::{Builder, Message, nl};

/// Message types.
pub mod kind {
    /// A link was made or changed, or is to be.
    pub const NEW_LINK: u16 = 16;
    /// A link is gone, or is to go.
    pub const DEL_LINK: u16 = 17;
    /// Asks for links.
    pub const GET_LINK: u16 = 18;
    /// What a link has counted.
    pub const NEW_STATS: u16 = 92;
    /// Asks for what a link has counted.
    pub const GET_STATS: u16 = 94;
    /// An address was added, or is to be.
    pub const NEW_ADDR: u16 = 20;
    /// An address is gone, or is to go.
    pub const DEL_ADDR: u16 = 21;
    /// Asks for addresses.
    pub const GET_ADDR: u16 = 22;
}

/// Multicast groups.
pub mod group {
    /// Changes of links.
    pub const LINK: u32 = 1;
    /// Changes of IPv4 addresses.
    pub const IPV4_ADDR: u32 = 5;
    /// Changes of IPv6 addresses.
    pub const IPV6_ADDR: u32 = 9;
}

/// Flags of a link.
pub mod flag {
    /// Administratively up.
    pub const UP: u32 = 0x1;
    /// Loopback.
    pub const LOOPBACK: u32 = 0x8;
    /// Operationally up: there is a carrier.
    pub const RUNNING: u32 = 0x40;
    /// Receives every frame.
    pub const PROMISCUOUS: u32 = 0x100;
    /// The driver signals a carrier.
    pub const LOWER_UP: u32 = 0x1_0000;
}

/// Length of `struct ifinfomsg`.
const LINK_HEADER: usize = 16;
/// Length of `struct ifaddrmsg`.
const ADDR_HEADER: usize = 8;

/// Length of `struct if_stats_msg`.
const STATS_HEADER: usize = 12;
const IFLA_STATS_LINK_64: u16 = 1;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_CARRIER_CHANGES: u16 = 35;
const IFLA_MIN_MTU: u16 = 50;
const IFLA_MAX_MTU: u16 = 51;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
/// The address is usable at once: no duplicate detection.
const IFA_F_NODAD: u32 = 0x02;
const AF_UNSPEC: u8 = 0;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// What a link has counted, as the kernel has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub struct LinkStats {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub multicast: u64,
    pub collisions: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub tx_aborted_errors: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
    pub tx_heartbeat_errors: u64,
    pub tx_window_errors: u64,
}

impl LinkStats {
    fn parse(bytes: &[u8]) -> Self {
        let mut words = bytes.as_chunks::<8>().0.iter();
        let mut next = || words.next().map_or(0, |b| u64::from_ne_bytes(*b));
        Self {
            rx_packets: next(),
            tx_packets: next(),
            rx_bytes: next(),
            tx_bytes: next(),
            rx_errors: next(),
            tx_errors: next(),
            rx_dropped: next(),
            tx_dropped: next(),
            multicast: next(),
            collisions: next(),
            rx_length_errors: next(),
            rx_over_errors: next(),
            rx_crc_errors: next(),
            rx_frame_errors: next(),
            rx_fifo_errors: next(),
            rx_missed_errors: next(),
            tx_aborted_errors: next(),
            tx_carrier_errors: next(),
            tx_fifo_errors: next(),
            tx_heartbeat_errors: next(),
            tx_window_errors: next(),
        }
    }
}

/// A link as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its flags ([`flag`]).
    pub flags: u32,
    /// Its hardware type; 1 is Ethernet.
    pub hardware: u16,
    /// Its address, if it is an Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The smallest and largest MTU that it takes, if the kernel says.
    pub mtu_range: Option<(u32, u32)>,
    /// The link that it belongs to (of a bridge or bond), by number.
    pub master: Option<u32>,
    /// What made it: `veth`, `tun` and so on; empty for hardware.
    pub kind: String,
    /// How often its carrier came or went.
    pub carrier_changes: u32,
    /// What it has counted, where the message has it.
    pub stats: Option<LinkStats>,
}

impl Link {
    /// From a message about a link; `None` if it is another message or malformed.
    pub fn parse(message: &Message<'_>) -> Option<Self> {
        if !matches!(message.header.kind, kind::NEW_LINK | kind::DEL_LINK) {
            return None;
        }
        let header: &[u8; LINK_HEADER] = message.body.first_chunk()?;
        // Other families speak of the link's place in a bridge, not of the link.
        if header[0] != AF_UNSPEC {
            return None;
        }
        let mut link = Self {
            index: u32::from_ne_bytes(*header[4..].first_chunk()?),
            flags: u32::from_ne_bytes(*header[8..].first_chunk()?),
            hardware: u16::from_ne_bytes([header[2], header[3]]),
            ..Self::default()
        };
        let (mut min, mut max) = (None, None);
        for attr in message.attrs_after(LINK_HEADER) {
            match attr.kind {
                IFLA_IFNAME => attr.text()?.clone_into(&mut link.name),
                IFLA_ADDRESS => link.mac = attr.value.try_into().ok(),
                IFLA_MTU => link.mtu = attr.u32()?,
                IFLA_MASTER => link.master = attr.u32(),
                IFLA_LINKINFO => {
                    let kind = attr.nested().find(INFO_KIND).and_then(|k| k.text());
                    kind.unwrap_or_default().clone_into(&mut link.kind);
                }
                IFLA_STATS64 => link.stats = Some(LinkStats::parse(attr.value)),
                IFLA_CARRIER_CHANGES => link.carrier_changes = attr.u32()?,
                IFLA_MIN_MTU => min = attr.u32(),
                IFLA_MAX_MTU => max = attr.u32(),
                _ => {}
            }
        }
        link.mtu_range = min.zip(max);
        Some(link)
    }

    /// Administratively up.
    pub const fn is_up(&self) -> bool {
        self.flags & flag::UP != 0
    }

    /// Has a carrier.
    pub const fn has_carrier(&self) -> bool {
        self.flags & flag::LOWER_UP != 0
    }
}

/// Which link a request is about.
#[derive(Clone, Copy, Debug)]
pub enum LinkRef<'a> {
    /// By number.
    Index(u32),
    /// By name.
    Name(&'a str),
}

fn link_header(builder: &mut Builder, index: u32, flags: u32, change: u32) {
    let mut header = [0; LINK_HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&change.to_ne_bytes());
    builder.raw(&header);
}

fn link_request(kind: u16, flags: u16, link: LinkRef<'_>, set: (u32, u32)) -> Builder {
    let mut builder = Builder::new(kind, flags);
    match link {
        LinkRef::Index(index) => link_header(&mut builder, index, set.0, set.1),
        LinkRef::Name(name) => {
            link_header(&mut builder, 0, set.0, set.1);
            builder.put_text(IFLA_IFNAME, name);
        }
    }
    builder
}

/// Asks for one link.
pub fn get_link(link: LinkRef<'_>) -> Builder {
    link_request(kind::GET_LINK, 0, link, (0, 0))
}

/// Asks for all links.
pub fn dump_links() -> Builder {
    link_request(kind::GET_LINK, nl::DUMP, LinkRef::Index(0), (0, 0))
}

/// Asks for what a link has counted, and nothing else: much cheaper than the whole link.
pub fn get_stats(index: u32) -> Builder {
    let mut builder = Builder::new(kind::GET_STATS, 0);
    let mut header = [0; STATS_HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&(1u32 << (IFLA_STATS_LINK_64 - 1)).to_ne_bytes());
    builder.raw(&header);
    builder
}

/// What a link has counted, from the answer to [`get_stats`].
pub fn parse_stats(message: &Message<'_>) -> Option<LinkStats> {
    if message.header.kind != kind::NEW_STATS {
        return None;
    }
    let stats = message.attrs_after(STATS_HEADER).find(IFLA_STATS_LINK_64)?;
    Some(LinkStats::parse(stats.value))
}

/// Takes a link away.
pub fn delete_link(link: LinkRef<'_>) -> Builder {
    link_request(kind::DEL_LINK, nl::ACK, link, (0, 0))
}

/// Sets a link up or down.
pub fn set_up(link: LinkRef<'_>, up: bool) -> Builder {
    let flags = if up { flag::UP } else { 0 };
    link_request(kind::NEW_LINK, nl::ACK, link, (flags, flag::UP))
}

/// Sets a link's MTU.
pub fn set_mtu(link: LinkRef<'_>, mtu: u32) -> Builder {
    let mut builder = link_request(kind::NEW_LINK, nl::ACK, link, (0, 0));
    builder.put_u32(IFLA_MTU, mtu);
    builder
}

/// Sets a link's Ethernet address.
pub fn set_mac(link: LinkRef<'_>, mac: [u8; 6]) -> Builder {
    let mut builder = link_request(kind::NEW_LINK, nl::ACK, link, (0, 0));
    builder.put(IFLA_ADDRESS, &mac);
    builder
}

/// Moves a link to the network namespace that the descriptor `netns` stands for.
pub fn set_netns(link: LinkRef<'_>, netns: i32) -> Builder {
    let mut builder = link_request(kind::NEW_LINK, nl::ACK, link, (0, 0));
    builder.put(IFLA_NET_NS_FD, &netns.to_ne_bytes());
    builder
}

/// One end of a pair of virtual Ethernet links to be made.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address; the kernel chooses one if none is given.
    pub mac: Option<[u8; 6]>,
    /// The descriptor of the namespace that it is made in; else that of the socket.
    pub netns: Option<i32>,
}

impl VethEnd<'_> {
    fn put(&self, builder: &mut Builder) {
        builder.put_text(IFLA_IFNAME, self.name);
        if let Some(mac) = self.mac {
            builder.put(IFLA_ADDRESS, &mac);
        }
        if let Some(netns) = self.netns {
            builder.put(IFLA_NET_NS_FD, &netns.to_ne_bytes());
        }
    }
}

/// Makes a pair of virtual Ethernet links.
pub fn create_veth(one: &VethEnd<'_>, other: &VethEnd<'_>) -> Builder {
    let flags = nl::ACK | nl::CREATE | nl::EXCLUSIVE;
    let mut builder = Builder::new(kind::NEW_LINK, flags);
    link_header(&mut builder, 0, 0, 0);
    one.put(&mut builder);
    let info = builder.open(IFLA_LINKINFO);
    builder.put(INFO_KIND, b"veth");
    let data = builder.open(INFO_DATA);
    let peer = builder.open(VETH_PEER);
    link_header(&mut builder, 0, 0, 0);
    other.put(&mut builder);
    builder.close(peer);
    builder.close(data);
    builder.close(info);
    builder
}

/// An address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The link's number.
    pub index: u32,
    /// The address.
    pub ip: IpAddr,
    /// Length of the network's prefix in bits.
    pub prefix: u8,
}

impl Address {
    /// From a message about an address; `None` if it is another message or malformed.
    pub fn parse(message: &Message<'_>) -> Option<Self> {
        if !matches!(message.header.kind, kind::NEW_ADDR | kind::DEL_ADDR) {
            return None;
        }
        let header: &[u8; ADDR_HEADER] = message.body.first_chunk()?;
        let attrs: Attrs<'_> = message.attrs_after(ADDR_HEADER);
        let value = attrs.find(IFA_LOCAL).or_else(|| attrs.find(IFA_ADDRESS))?;
        let ip = match header[0] {
            AF_INET => IpAddr::from(<[u8; 4]>::try_from(value.value).ok()?),
            AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(value.value).ok()?),
            _ => return None,
        };
        Some(Self {
            index: u32::from_ne_bytes(*header[4..].first_chunk()?),
            ip,
            prefix: header[1],
        })
    }

    fn request(&self, kind: u16, flags: u16) -> Builder {
        let mut builder = Builder::new(kind, flags);
        let family = if self.ip.is_ipv4() { AF_INET } else { AF_INET6 };
        let mut header = [family, self.prefix, 0, 0, 0, 0, 0, 0];
        header[4..].copy_from_slice(&self.index.to_ne_bytes());
        builder.raw(&header);
        match self.ip {
            IpAddr::V4(ip) => {
                builder.put(IFA_LOCAL, &ip.octets());
                builder.put(IFA_ADDRESS, &ip.octets());
            }
            IpAddr::V6(ip) => {
                builder.put(IFA_LOCAL, &ip.octets());
                builder.put_u32(IFA_FLAGS, IFA_F_NODAD);
            }
        }
        builder
    }

    /// Adds the address; an IPv6 address is usable at once, without duplicate detection.
    pub fn add(&self) -> Builder {
        let flags = nl::ACK | nl::CREATE | nl::EXCLUSIVE;
        self.request(kind::NEW_ADDR, flags)
    }

    /// Takes the address away.
    pub fn delete(&self) -> Builder {
        self.request(kind::DEL_ADDR, nl::ACK)
    }
}

/// Asks for all addresses.
pub fn dump_addresses() -> Builder {
    let mut builder = Builder::new(kind::GET_ADDR, nl::DUMP);
    builder.raw(&[0; ADDR_HEADER]);
    builder
}
