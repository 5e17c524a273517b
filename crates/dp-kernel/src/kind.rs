//! Types of ports: how the switch calls them and what they are to the kernel.

use dp_api::{Error, PortSpec};
use net_netlink::ovs::vport;
use net_netlink::tunnel::{Tunnel, TunnelKind};

/// What a port is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortKind {
    /// A device that exists without the datapath.
    Netdev,
    /// A device that the datapath makes.
    Internal,
    /// A tunnel.
    Tunnel(Tunnel),
}

/// The types of tunnels, with what the names of their devices begin with and their UDP port, if it is
/// not said.
const TUNNELS: [(&str, TunnelKind, &str, u16); 6] = [
    ("vxlan", TunnelKind::Vxlan, "vxlan_sys", 4789),
    ("geneve", TunnelKind::Geneve, "genev_sys", 6081),
    ("gre", TunnelKind::Gretap, "gre_sys", 0),
    ("ip6gre", TunnelKind::Ip6Gretap, "ip6gre_sys", 0),
    ("erspan", TunnelKind::Erspan, "erspan_sys", 0),
    ("ip6erspan", TunnelKind::Ip6Erspan, "ip6erspan_sys", 0),
];

impl PortKind {
    /// What a port of this specification is.
    ///
    /// # Errors
    /// There is no such type here, or an option makes no sense.
    pub(crate) fn of(spec: &PortSpec) -> Result<Self, Error> {
        match spec.kind.as_str() {
            "" | "system" | "tap" => return Ok(Self::Netdev),
            "internal" => return Ok(Self::Internal),
            _ => {}
        }
        let found = TUNNELS.iter().find(|(name, ..)| *name == spec.kind);
        let Some((_, kind, _, port)) = found else {
            let what = format!("the kernel datapath has no ports of type {}", spec.kind);
            return Err(Error::Unsupported(what));
        };
        let option = |name: &str| {
            let mut options = spec.options.iter();
            options
                .find(|(n, _)| n == name)
                .map(|(_, value)| value.as_str())
        };
        let port = match option("dst_port") {
            Some(text) if kind.has_port() => text
                .parse::<u16>()
                .map_err(|_| Error::Invalid(format!("dst_port={text} is not a port")))?,
            _ => *port,
        };
        // Several interfaces share a tunnel's device, so it is whatever one of them needs.
        let extensions = option("exts").unwrap_or_default();
        let has = |name: &str| extensions.split(',').any(|e| e.trim() == name);
        Ok(Self::Tunnel(Tunnel {
            kind: *kind,
            port,
            gbp: has("gbp"),
            gpe: has("gpe"),
        }))
    }

    /// The number of its type for the kernel, when the module makes the port itself.
    pub(crate) const fn vport(self) -> Option<u32> {
        match self {
            Self::Netdev => Some(vport::kind::NETDEV),
            Self::Internal => Some(vport::kind::INTERNAL),
            Self::Tunnel(tunnel) => match tunnel.kind {
                TunnelKind::Vxlan => Some(vport::kind::VXLAN),
                TunnelKind::Geneve => Some(vport::kind::GENEVE),
                TunnelKind::Gretap => Some(vport::kind::GRE),
                _ => None,
            },
        }
    }
}

/// How the switch calls the type of a port that is in the kernel.
pub(crate) fn type_of(vport: &vport::Vport) -> &'static str {
    match vport.kind {
        vport::kind::INTERNAL => "internal",
        vport::kind::GRE => "gre",
        vport::kind::VXLAN => "vxlan",
        vport::kind::GENEVE => "geneve",
        _ => {
            let is_device = |prefix: &str, has_port: bool| match vport.name.strip_prefix(prefix) {
                Some("") => !has_port,
                Some(rest) => has_port && rest.starts_with('_'),
                None => false,
            };
            let mut tunnels = TUNNELS.iter();
            let found = tunnels.find(|(_, kind, prefix, _)| is_device(prefix, kind.has_port()));
            found.map_or("system", |(name, ..)| name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: &str, options: &[(&str, &str)]) -> PortSpec {
        PortSpec {
            name: "p".into(),
            kind: kind.into(),
            number: None,
            options: options
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
        }
    }

    #[test]
    fn types_as_the_kernel_has_them() {
        assert_eq!(PortKind::of(&spec("", &[])), Ok(PortKind::Netdev));
        let vxlan = PortKind::of(&spec("vxlan", &[("exts", "gbp")])).unwrap();
        let expected = Tunnel {
            kind: TunnelKind::Vxlan,
            port: 4789,
            gbp: true,
            gpe: false,
        };
        assert_eq!(vxlan, PortKind::Tunnel(expected));
        let geneve = PortKind::of(&spec("geneve", &[("dst_port", "7000")])).unwrap();
        assert!(matches!(geneve, PortKind::Tunnel(t) if t.port == 7000));
        assert!(PortKind::of(&spec("patch", &[])).is_err());
        let error = PortKind::of(&spec("vxlan", &[("dst_port", "x")])).unwrap_err();
        assert_eq!(error.to_string(), "dst_port=x is not a port");
    }

    #[test]
    fn tunnels_are_known_by_their_devices() {
        let vport = |kind, name: &str| vport::Vport {
            kind,
            name: name.into(),
            ..vport::Vport::default()
        };
        let netdev = vport::kind::NETDEV;
        for (name, expected) in [
            ("vxlan_sys_4789", "vxlan"),
            ("genev_sys_6081", "geneve"),
            ("gre_sys", "gre"),
            ("ip6gre_sys", "ip6gre"),
            ("vxlan_sys", "system"),
            ("eth0", "system"),
        ] {
            assert_eq!(type_of(&vport(netdev, name)), expected, "{name}");
        }
        assert_eq!(type_of(&vport(vport::kind::INTERNAL, "br0")), "internal");
    }
}
