//! Actions of OpenFlow 1.0 and 1.1 that write header fields, and those that push, pop
//! and decrement.

/// `mod_vlan_vid:VID` or `mod_vlan_pcp:PCP` (adds a tag if there is none), or their
/// OpenFlow 1.1 forms `set_vlan_vid` and `set_vlan_pcp` (which do not).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetVlan<T> {
    /// The value.
    pub value: T,
    /// Adds a tag to an untagged packet.
    pub push_if_needed: bool,
    /// The rule's match, or an action before, guarantees a tag.
    pub flow_has_vlan: bool,
}

/// `mod_tp_src:PORT`, `mod_tp_dst:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetL4Port {
    /// The port.
    pub port: u16,
    /// The IP protocol that the rule's match demands, 0 if none.
    pub ip_proto: u8,
}
