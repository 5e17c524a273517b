//! Actions that choose by hash: `bundle`, `multipath`.

use net_flow::PortNo;

use net_flow::Subfield;

/// What of a packet is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashFields {
    /// The Ethernet source.
    EthSrc,
    /// Ethernet, VLAN, type, addresses and ports, the same in both directions.
    SymmetricL4,
    /// Addresses and ports of TCP and SCTP, addresses of others, symmetric.
    SymmetricL3L4,
    /// As `SymmetricL3L4`, with UDP ports too.
    SymmetricL3L4Udp,
    /// The network source.
    NwSrc,
    /// The network destination.
    NwDst,
    /// The network addresses, symmetric.
    SymmetricL3,
}

/// How `bundle` chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleAlgorithm {
    /// The first member that is live.
    ActiveBackup,
    /// The live member with the highest random weight.
    Hrw,
}

/// `bundle(...)` and `bundle_load(...)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bundle {
    /// What is hashed.
    pub fields: HashFields,
    /// Added to the hash.
    pub basis: u16,
    /// How to choose.
    pub algorithm: BundleAlgorithm,
    /// The ports to choose from.
    pub members: Box<[PortNo]>,
    /// Takes the chosen port; `None` sends the packet there.
    pub dst: Option<Subfield>,
}

/// How `multipath` turns a hash into a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MultipathAlgorithm {
    /// Hash modulo number of links.
    ModuloN,
    /// By ranges of the hash.
    HashThreshold,
    /// Highest random weight.
    Hrw,
    /// As `Hrw`, iterated.
    IterHash,
}

/// `multipath(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Multipath {
    /// What is hashed.
    pub fields: HashFields,
    /// Added to the hash.
    pub basis: u16,
    /// How to choose.
    pub algorithm: MultipathAlgorithm,
    /// The number of links less 1.
    pub max_link: u16,
    /// Argument of the algorithm.
    pub arg: u32,
    /// Takes the chosen link.
    pub dst: Subfield,
}
