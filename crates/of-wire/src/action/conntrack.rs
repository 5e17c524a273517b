//! `ct(...)`, `nat(...)`.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use net_flow::text::num::{c_int, str_to_u16};
use net_flow::text::{KeyValues, addr, subfield};
use net_flow::{Names, Subfield};

use super::check::Outer;
use super::text::{parse_table, put_actions, put_table};
use super::{Action, Parser};

/// Translate the source.
pub const NAT_SRC: u16 = 1;
/// Translate the destination.
pub const NAT_DST: u16 = 1 << 1;
/// Keep the mapping over restarts.
pub const NAT_PERSISTENT: u16 = 1 << 2;
/// Choose the port by hash.
pub const NAT_HASH: u16 = 1 << 3;
/// Choose the port at random.
pub const NAT_RANDOM: u16 = 1 << 4;

/// L4 port of FTP.
pub const ALG_FTP: u16 = 21;
/// L4 port of TFTP.
pub const ALG_TFTP: u16 = 69;

/// Where a connection's zone comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CtZone {
    /// A constant.
    Constant(u16),
    /// From the packet.
    Field(Subfield),
}

/// `ct(...)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ct {
    /// Remember the connection.
    pub commit: bool,
    /// Replace a connection of the other direction.
    pub force: bool,
    /// The zone.
    pub zone: CtZone,
    /// Table in which the packet goes on once tracked; `None` for no recirculation.
    pub table: Option<u8>,
    /// L4 port of the application helper: 21 for FTP, 69 for TFTP, 0 for none.
    pub alg: u16,
    /// Address translation, and writes of `ct_mark` and `ct_label`.
    pub actions: Vec<Action>,
}

/// Addresses and ports to translate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NatRange {
    /// First address; `None` leaves addresses alone.
    pub addr_min: Option<IpAddr>,
    /// Last address; `None` for just the first.
    pub addr_max: Option<IpAddr>,
    /// First port, 0 for any.
    pub port_min: u16,
    /// Last port, 0 for just the first.
    pub port_max: u16,
}

/// `nat(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nat {
    /// `NX_NAT_F_*`: 1 source, 2 destination, 4 persistent, 8 hash, 16 random.
    pub flags: u16,
    /// What to translate to.
    pub range: NatRange,
}

pub(super) fn parse_ct(arg: &str, p: &mut Parser<'_>) -> Result<Action, String> {
    let mut a = Ct {
        commit: false,
        force: false,
        zone: CtZone::Constant(0),
        table: None,
        alg: 0,
        actions: Vec::new(),
    };
    for kv in KeyValues::new(arg) {
        match kv.key {
            "commit" => a.commit = true,
            "force" => a.force = true,
            "table" => {
                let table = parse_table(kv.value, p.names);
                let table = table.ok_or_else(|| format!("unknown table {}", kv.value))?;
                if table == 255 {
                    return Err("invalid table 0xff".to_owned());
                }
                a.table = Some(table);
            }
            "zone" => {
                a.zone = match str_to_u16(kv.value, "zone") {
                    Ok(zone) => CtZone::Constant(zone),
                    Err(_) => CtZone::Field(subfield::parse(kv.value)?),
                };
            }
            "alg" => {
                a.alg = match kv.value {
                    "ftp" => ALG_FTP,
                    "tftp" => ALG_TFTP,
                    other => return Err(format!("invalid conntrack helper \"{other}\"")),
                };
            }
            "nat" => a.actions.push(parse_nat(kv.value)?),
            "exec" => a.actions.extend(p.nested(kv.value, Outer::Ct)?),
            key => return Err(format!("invalid argument to \"ct\" action: `{key}'")),
        }
    }
    if a.force && !a.commit {
        return Err("\"force\" flag requires \"commit\" flag.".to_owned());
    }
    Ok(Action::Ct(Box::new(a)))
}

pub(super) fn put_ct(out: &mut String, a: &Ct, names: &Names) {
    out.push_str("ct(");
    if a.commit {
        out.push_str("commit,");
    }
    if a.force {
        out.push_str("force,");
    }
    if let Some(table) = a.table {
        out.push_str("table=");
        put_table(out, table, names);
        out.push(',');
    }
    match a.zone {
        CtZone::Constant(0) => {}
        CtZone::Constant(zone) => {
            let _ = write!(out, "zone={zone},");
        }
        CtZone::Field(part) => {
            out.push_str("zone=");
            subfield::put(out, part);
            out.push(',');
        }
    }
    let mut rest = &a.actions[..];
    if let [Action::Nat(nat), tail @ ..] = rest {
        put_nat(out, nat);
        out.push(',');
        rest = tail;
    }
    if !rest.is_empty() {
        out.push_str("exec(");
        put_actions(out, rest, names);
        out.push_str("),");
    }
    let _ = match a.alg {
        0 => Ok(()),
        ALG_FTP => write!(out, "alg=ftp,"),
        ALG_TFTP => write!(out, "alg=tftp,"),
        other => write!(out, "alg={other},"),
    };
    if out.ends_with(',') {
        out.pop();
    }
    out.push(')');
}

pub(super) fn parse_nat(arg: &str) -> Result<Action, String> {
    let mut flags = 0;
    let mut range = NatRange::default();
    for kv in KeyValues::new(arg) {
        match kv.key {
            "src" => flags |= NAT_SRC,
            "dst" => flags |= NAT_DST,
            "persistent" => flags |= NAT_PERSISTENT,
            "hash" => flags |= NAT_HASH,
            "random" => flags |= NAT_RANDOM,
            key => return Err(format!("invalid key \"{key}\" in \"nat\" argument")),
        }
        if kv.key == "src" || kv.key == "dst" {
            range = parse_range(kv.value)?;
        }
    }
    let both = NAT_SRC | NAT_DST;
    if flags & both == both {
        return Err("May only specify one of \"src\" or \"dst\".".to_owned());
    }
    if flags & both == 0 && flags != 0 {
        return Err("Flags allowed only with \"src\" or \"dst\".".to_owned());
    }
    if flags & NAT_HASH != 0 && flags & NAT_RANDOM != 0 {
        return Err("Both \"hash\" and \"random\" are not allowed.".to_owned());
    }
    Ok(Action::Nat(Box::new(Nat { flags, range })))
}

/// An address at the beginning of `s`, IPv6 with or without brackets.
fn address(s: &str) -> Option<(IpAddr, &str)> {
    if let Some((ip, rest)) = addr::ipv4_prefix(s) {
        return Some((IpAddr::V4(Ipv4Addr::from(ip)), rest));
    }
    let (inner, bracket) = match s.strip_prefix('[') {
        Some(inner) => (inner, true),
        None => (s, false),
    };
    let (ip, rest) = addr::ipv6_prefix(inner)?;
    let rest = if bracket {
        rest.strip_prefix(']')?
    } else {
        rest
    };
    Some((IpAddr::V6(Ipv6Addr::from(ip)), rest))
}

fn parse_range(s: &str) -> Result<NatRange, String> {
    let invalid = || format!("invalid nat range \"{s}\"");
    let mut range = NatRange::default();
    let mut rest = s;
    if let Some((min, tail)) = address(rest) {
        range.addr_min = Some(min);
        rest = tail;
        if let Some(tail) = rest.strip_prefix('-') {
            let (max, tail) = address(tail).ok_or_else(invalid)?;
            if max.is_ipv4() != min.is_ipv4() || max < min {
                return Err(invalid());
            }
            range.addr_max = Some(max);
            rest = tail;
        }
    }
    let port = |s| {
        let n = c_int(s, 10).filter(|n| !n.negative)?;
        Some((u16::try_from(n.magnitude).ok()?, n.rest))
    };
    if range.addr_min.is_some()
        && let Some(tail) = rest.strip_prefix(':')
    {
        (range.port_min, rest) = port(tail).ok_or_else(invalid)?;
        if let Some(tail) = rest.strip_prefix('-') {
            (range.port_max, rest) = port(tail).ok_or_else(invalid)?;
            if range.port_max < range.port_min {
                return Err(invalid());
            }
        }
    }
    if !rest.is_empty() {
        let at = s.len() - rest.len();
        return Err(format!(
            "garbage ({rest}) after nat range \"{s}\" (pos: {at})"
        ));
    }
    Ok(range)
}

pub(super) fn put_nat(out: &mut String, a: &Nat) {
    out.push_str("nat");
    if a.flags & (NAT_SRC | NAT_DST) == 0 {
        return;
    }
    out.push_str(if a.flags & NAT_SRC != 0 {
        "(src"
    } else {
        "(dst"
    });
    if let Some(min) = a.range.addr_min {
        let ports = a.range.port_min != 0;
        let put_addr = |out: &mut String, ip: IpAddr| match ip {
            IpAddr::V4(ip) => addr::put_ipv4(out, ip.into()),
            IpAddr::V6(ip) => {
                out.push_str(if ports { "[" } else { "" });
                addr::put_ipv6(out, ip.into());
                out.push_str(if ports { "]" } else { "" });
            }
        };
        out.push('=');
        put_addr(out, min);
        if let Some(max) = a.range.addr_max.filter(|max| *max != min) {
            out.push('-');
            put_addr(out, max);
        }
        if ports {
            let _ = write!(out, ":{}", a.range.port_min);
            if a.range.port_max != 0 && a.range.port_max != a.range.port_min {
                let _ = write!(out, "-{}", a.range.port_max);
            }
        }
        for (flag, name) in [
            (NAT_PERSISTENT, ",persistent"),
            (NAT_HASH, ",hash"),
            (NAT_RANDOM, ",random"),
        ] {
            if a.flags & flag != 0 {
                out.push_str(name);
            }
        }
    }
    out.push(')');
}
