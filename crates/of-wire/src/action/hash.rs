//! Actions that choose by hash: `bundle`, `multipath`.

use std::fmt::Write;

use net_flow::text::subfield;
use net_flow::text::value::{parse_port, put_port};
use net_flow::{Names, PortNo, Subfield};

use super::text::atoi;
use super::{Action, Parser};
use crate::oxm::nxm_header;

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

/// Members that a bundle has at most.
pub(super) const MAX_MEMBERS: usize = 2048;

impl HashFields {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::EthSrc, "eth_src"),
        (Self::SymmetricL4, "symmetric_l4"),
        (Self::SymmetricL3L4, "symmetric_l3l4"),
        (Self::SymmetricL3L4Udp, "symmetric_l3l4+udp"),
        (Self::NwSrc, "nw_src"),
        (Self::NwDst, "nw_dst"),
        (Self::SymmetricL3, "symmetric_l3"),
    ];

    /// Its name in text.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }

    fn by_name(name: &str) -> Option<Self> {
        let same = |entry: &&(Self, &str)| entry.1.eq_ignore_ascii_case(name);
        Self::NAMES.iter().find(same).map(|entry| entry.0)
    }

    /// From its number on the wire.
    pub(super) fn from_wire(number: u16) -> Option<Self> {
        Self::NAMES.get(usize::from(number)).map(|entry| entry.0)
    }
}

impl MultipathAlgorithm {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::ModuloN, "modulo_n"),
        (Self::HashThreshold, "hash_threshold"),
        (Self::Hrw, "hrw"),
        (Self::IterHash, "iter_hash"),
    ];

    /// From its number on the wire.
    pub(super) fn from_wire(number: u16) -> Option<Self> {
        Self::NAMES.get(usize::from(number)).map(|entry| entry.0)
    }
}

fn need_nxm(arg: &str, text: &str, part: Subfield) -> Result<Subfield, String> {
    if nxm_header(part.field) == 0 {
        return Err(format!(
            "{arg}: experimenter OXM field '{text}' not supported"
        ));
    }
    Ok(part)
}

pub(super) fn parse_multipath(arg: &str) -> Result<Action, String> {
    let parts: Vec<&str> = arg.split([',', ' ']).filter(|s| !s.is_empty()).collect();
    let [fields, basis, algorithm, n_links, extra, dst_text, ..] = parts[..] else {
        return Err(format!("{arg}: not enough arguments to multipath action"));
    };
    let fields =
        HashFields::by_name(fields).ok_or_else(|| format!("{arg}: unknown fields `{fields}'"))?;
    let same = |e: &&(MultipathAlgorithm, &str)| e.1.eq_ignore_ascii_case(algorithm);
    let found = MultipathAlgorithm::NAMES.iter().find(same);
    let (algorithm, _) = *found.ok_or_else(|| format!("{arg}: unknown algorithm `{algorithm}'"))?;
    let n = atoi(n_links);
    if !(1..=65536).contains(&n) {
        return Err(format!(
            "{arg}: n_links {n} is not in valid range 1 to 65536"
        ));
    }
    let dst = need_nxm(arg, dst_text, subfield::parse(dst_text)?)?;
    if dst.bits < 16 && n > 1 << dst.bits {
        return Err(format!(
            "{arg}: {}-bit destination field has {} possible values, less than specified \
             n_links {n}",
            dst.bits,
            1 << dst.bits
        ));
    }
    Ok(Action::Multipath(Box::new(Multipath {
        fields,
        basis: atoi(basis) as u16,
        algorithm,
        max_link: (n - 1) as u16,
        arg: atoi(extra) as u32,
        dst,
    })))
}

pub(super) fn put_multipath(out: &mut String, a: &Multipath) {
    let _ = write!(
        out,
        "multipath({},{},{},{},{},",
        a.fields.name(),
        a.basis,
        MultipathAlgorithm::NAMES[a.algorithm as usize].1,
        u32::from(a.max_link) + 1,
        a.arg
    );
    subfield::put(out, a.dst);
    out.push(')');
}

pub(super) fn parse_bundle(arg: &str, load: bool, p: &Parser<'_>) -> Result<Action, String> {
    let mut parts = arg.split([',', ' ']).filter(|s| !s.is_empty());
    let fields = parts.next();
    let basis = parts.next();
    let algorithm = parts.next();
    let member_type = parts.next();
    let dst_text = if load { parts.next() } else { None };
    // The delimiter ends at the colon; what follows are members.
    let rest: Vec<&str> = parts.collect();
    let rest = rest.join(",");
    let end = rest.find([':', ',']).unwrap_or(rest.len());
    let (delimiter, members_text) = rest.split_at(end);
    let short = || format!("{arg}: not enough arguments to bundle action");
    if delimiter.is_empty() {
        return Err(short());
    }
    if !["members", "slaves"]
        .iter()
        .any(|d| d.eq_ignore_ascii_case(delimiter))
    {
        return Err(format!(
            "{arg}: missing member delimiter, expected `members', got `{delimiter}'"
        ));
    }
    let names = members_text.split([',', ' ', '[', ']', ':']);
    let mut members = Vec::new();
    for name in names.filter(|s| !s.is_empty()).take(MAX_MEMBERS) {
        let port = parse_port(name, p.names);
        members.push(port.ok_or_else(|| format!("{name}: bad port number"))?);
    }
    let fields = fields.ok_or_else(short)?;
    let fields =
        HashFields::by_name(fields).ok_or_else(|| format!("{arg}: unknown fields `{fields}'"))?;
    let algorithm = match algorithm.ok_or_else(short)? {
        a if a.eq_ignore_ascii_case("active_backup") => BundleAlgorithm::ActiveBackup,
        a if a.eq_ignore_ascii_case("hrw") => BundleAlgorithm::Hrw,
        a => return Err(format!("{arg}: unknown algorithm `{a}'")),
    };
    let member_type = member_type.ok_or_else(short)?;
    if !member_type.eq_ignore_ascii_case("ofport") {
        return Err(format!("{arg}: unknown member_type `{member_type}'"));
    }
    let dst = match dst_text {
        Some(text) => Some(need_nxm(arg, text, subfield::parse(text)?)?),
        None => None,
    };
    Ok(Action::Bundle(Box::new(Bundle {
        fields,
        basis: atoi(basis.unwrap_or("0")) as u16,
        algorithm,
        members: members.into(),
        dst,
    })))
}

pub(super) fn put_bundle(out: &mut String, a: &Bundle, names: &Names) {
    let name = if a.dst.is_some() {
        "bundle_load"
    } else {
        "bundle"
    };
    let algorithm = match a.algorithm {
        BundleAlgorithm::ActiveBackup => "active_backup",
        BundleAlgorithm::Hrw => "hrw",
    };
    let fields = a.fields.name();
    let _ = write!(out, "{name}({fields},{},{algorithm},ofport,", a.basis);
    if let Some(dst) = a.dst {
        subfield::put(out, dst);
        out.push(',');
    }
    out.push_str("members:");
    for (i, member) in a.members.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put_port(out, *member, names);
    }
    out.push(')');
}
