//! Names that interfaces may not have, since datapaths make devices of these names.

/// Beginnings of the names of devices that tunnels are made of.
const TUNNELS: [&str; 9] = [
    "genev_sys",
    "gre_sys",
    "vxlan_sys",
    "erspan_sys",
    "ip6erspan_sys",
    "ip6gre_sys",
    "gtpu_sys",
    "udp_sys",
    "srv6_sys",
];

/// Whether no interface may be called `name`, with these types of datapaths: each has a device
/// `ovs-TYPE`.
pub(crate) fn is_reserved(name: &str, datapath_types: &[String]) -> bool {
    let datapath = name.strip_prefix("ovs-");
    TUNNELS.iter().any(|tunnel| name.starts_with(tunnel))
        || datapath.is_some_and(|kind| datapath_types.iter().any(|t| t == kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_tunnels_and_datapaths_are_reserved() {
        let types = ["netdev".to_owned()];
        for name in ["ovs-netdev", "vxlan_sys", "vxlan_sys_4789", "ip6gre_sys"] {
            assert!(is_reserved(name, &types), "{name}");
        }
        for name in ["ovs-system", "ovs-netdev0", "vxlan0", "br-vxlan_sys", "ovs"] {
            assert!(!is_reserved(name, &types), "{name}");
        }
    }
}
