//! What a datapath can do.  Keys and actions that one datapath lacks must not be asked of it, so
//! a translation looks here first.

/// What a datapath can do, as it was found out when it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `set` actions with a mask.
    pub masked_set: bool,
    /// Tunnels that the datapath encapsulates and decapsulates itself (`tnl_push`, `tnl_pop`).
    pub tunnel_push_pop: bool,
    /// Flows named by unique ids.
    pub ufid: bool,
    /// The `trunc` action.
    pub trunc: bool,
    /// The `clone` action.
    pub clone: bool,
    /// How deep `sample` actions may be nested.
    pub sample_nesting: usize,
    /// Event masks in `ct` actions.
    pub ct_eventmask: bool,
    /// The `ct_clear` action.
    pub ct_clear: bool,
    /// The highest algorithm of the `hash` action; 0 is the L4 hash, 1 the symmetric one.
    pub max_hash_algorithm: u32,
    /// The `check_pkt_len` action.
    pub check_pkt_len: bool,
    /// Timeout policies in `ct` actions.
    pub ct_timeout: bool,
    /// The `drop` action, which counts a reason.
    pub explicit_drop: bool,
    /// The `lb_output` action.
    pub lb_output: bool,
    /// Source translation to the address zero, which only avoids port collisions.
    pub ct_zero_snat: bool,
    /// The `add_mpls` action.
    pub add_mpls: bool,
    /// The `psample` action.
    pub psample: bool,
    /// VLAN tags in a key.
    pub max_vlan_headers: usize,
    /// MPLS label stack entries in a key.
    pub max_mpls_depth: usize,
    /// The `recirc` action, and `recirc_id` and `dp_hash` in keys.
    pub recirc: bool,
    /// `ct_state` in keys; without it there is no connection tracking.
    pub ct_state: bool,
    /// `ct_zone` in keys.
    pub ct_zone: bool,
    /// `ct_mark` in keys.
    pub ct_mark: bool,
    /// `ct_label` in keys.
    pub ct_label: bool,
    /// The bits of `ct_state` that tell of address translation.
    pub ct_state_nat: bool,
    /// `ct_tuple4` in keys: the connection's original direction.
    pub ct_orig_tuple: bool,
    /// `ct_tuple6` in keys.
    pub ct_orig_tuple6: bool,
    /// `nd_ext` in keys: flags and options of neighbour discovery.
    pub nd_extensions: bool,
    /// Ports that are tunnels.
    pub tunnels: bool,
    /// Meters.
    pub meters: bool,
    /// Flows and ports stay when the process ends that made them, so that a later one finds
    /// them.
    pub outlives_process: bool,
}
