//! Tunnel links of rtnetlink whose outer headers come with each packet ("collect metadata"), as
//! datapaths use them.
//!
//! Source: the kernel's `linux/if_link.h` and `linux/if_tunnel.h`.

use crate::attr::Attrs;
use crate::msg::{Builder, Message, nl};
use crate::route::{self, kind};

/// For packets of every length that a link takes, and safe for all kinds.
pub const MTU: u32 = 65000;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;

const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT: u16 = 15;
const VXLAN_UDP_ZERO_CSUM6_RX: u16 = 20;
const VXLAN_GBP: u16 = 23;
const VXLAN_COLLECT_METADATA: u16 = 25;
const VXLAN_GPE: u16 = 27;
const GENEVE_PORT: u16 = 5;
const GENEVE_COLLECT_METADATA: u16 = 6;
const GENEVE_UDP_ZERO_CSUM6_RX: u16 = 10;
const GRE_COLLECT_METADATA: u16 = 18;

/// Length of `struct ifinfomsg`.
const LINK_HEADER: usize = 16;

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelKind {
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926).
    Geneve,
    /// GRE over IPv4 with Ethernet frames inside.
    Gretap,
    /// GRE over IPv4 with packets inside.
    Gre,
    /// GRE over IPv6 with Ethernet frames inside.
    Ip6Gretap,
    /// ERSPAN over IPv4.
    Erspan,
    /// ERSPAN over IPv6.
    Ip6Erspan,
}

impl TunnelKind {
    /// The kernel's name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Gretap => "gretap",
            Self::Gre => "gre",
            Self::Ip6Gretap => "ip6gretap",
            Self::Erspan => "erspan",
            Self::Ip6Erspan => "ip6erspan",
        }
    }

    /// Whether packets go to a UDP port.
    pub const fn has_port(self) -> bool {
        matches!(self, Self::Vxlan | Self::Geneve)
    }
}

/// A tunnel link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Its kind.
    pub kind: TunnelKind,
    /// The UDP port that it listens on; 0 for kinds without.
    pub port: u16,
    /// VXLAN: headers carry a group policy.
    pub gbp: bool,
    /// VXLAN: headers tell the protocol inside.
    pub gpe: bool,
}

impl Tunnel {
    fn put(&self, builder: &mut Builder) {
        match self.kind {
            TunnelKind::Vxlan => {
                builder
                    .put_u8(VXLAN_LEARNING, 0)
                    .put_u8(VXLAN_COLLECT_METADATA, 1)
                    .put_u8(VXLAN_UDP_ZERO_CSUM6_RX, 1);
                if self.gbp {
                    builder.put_flag(VXLAN_GBP);
                }
                if self.gpe {
                    builder.put_flag(VXLAN_GPE);
                }
                builder.put_be16(VXLAN_PORT, self.port);
            }
            TunnelKind::Geneve => {
                builder
                    .put_flag(GENEVE_COLLECT_METADATA)
                    .put_u8(GENEVE_UDP_ZERO_CSUM6_RX, 1)
                    .put_be16(GENEVE_PORT, self.port);
            }
            _ => {
                builder.put_flag(GRE_COLLECT_METADATA);
            }
        }
    }

    /// Asks for the link `name`, which is up at once.
    pub fn create(&self, name: &str) -> Builder {
        let flags = nl::ACK | nl::CREATE | nl::EXCLUSIVE;
        let mut builder = Builder::new(kind::NEW_LINK, flags);
        let mut header = [0; LINK_HEADER];
        header[8..12].copy_from_slice(&route::flag::UP.to_ne_bytes());
        header[12..16].copy_from_slice(&route::flag::UP.to_ne_bytes());
        builder.raw(&header);
        builder.put_text(IFLA_IFNAME, name).put_u32(IFLA_MTU, MTU);
        let info = builder.open(IFLA_LINKINFO);
        builder.put_text(INFO_KIND, self.kind.name());
        let data = builder.open(INFO_DATA);
        self.put(&mut builder);
        builder.close(data);
        builder.close(info);
        builder
    }

    /// Whether a message describes a link that is as good as this tunnel.
    pub fn is(&self, message: &Message<'_>) -> bool {
        let attrs = message.attrs_after(LINK_HEADER);
        let Some(info) = attrs.find(IFLA_LINKINFO) else {
            return false;
        };
        let name = info.nested().find(INFO_KIND).and_then(|k| k.text());
        let data = info.nested().find(INFO_DATA);
        name == Some(self.kind.name()) && data.is_some_and(|d| self.fits(d.nested()))
    }

    fn fits(&self, data: Attrs<'_>) -> bool {
        let has = |kind| data.find(kind).is_some();
        let byte = |kind| data.find(kind).and_then(|a| a.u8()).unwrap_or(0);
        let port = |kind| data.find(kind).and_then(|a| a.be16()) == Some(self.port);
        match self.kind {
            TunnelKind::Vxlan => {
                byte(VXLAN_COLLECT_METADATA) == 1
                    && byte(VXLAN_LEARNING) == 0
                    && byte(VXLAN_UDP_ZERO_CSUM6_RX) == 1
                    && port(VXLAN_PORT)
                    && has(VXLAN_GBP) == self.gbp
                    && has(VXLAN_GPE) == self.gpe
            }
            TunnelKind::Geneve => {
                has(GENEVE_COLLECT_METADATA)
                    && byte(GENEVE_UDP_ZERO_CSUM6_RX) == 1
                    && port(GENEVE_PORT)
            }
            _ => has(GRE_COLLECT_METADATA),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msg::Messages;

    const KINDS: [TunnelKind; 7] = [
        TunnelKind::Vxlan,
        TunnelKind::Geneve,
        TunnelKind::Gretap,
        TunnelKind::Gre,
        TunnelKind::Ip6Gretap,
        TunnelKind::Erspan,
        TunnelKind::Ip6Erspan,
    ];

    #[test]
    fn a_tunnel_is_known_by_what_it_was_made_with() {
        for kind in KINDS {
            let tunnel = Tunnel {
                kind,
                port: if kind.has_port() { 4789 } else { 0 },
                gbp: kind == TunnelKind::Vxlan,
                gpe: false,
            };
            let mut request = tunnel.create("t_sys");
            let bytes = request.finish(1).unwrap();
            let message = Messages::new(bytes).next().unwrap();
            assert!(tunnel.is(&message), "{kind:?}");
            let other = Tunnel {
                port: 4790,
                gbp: false,
                ..tunnel
            };
            assert_eq!(other.is(&message), !kind.has_port(), "{kind:?}");
            let kinds = KINDS.into_iter().filter(|k| *k != kind);
            for kind in kinds {
                assert!(!Tunnel { kind, ..tunnel }.is(&message));
            }
        }
    }
}
