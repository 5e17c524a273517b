//! Connection names: `tcp:IP:PORT`, `punix:FILE` and their like.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

/// The port that OVSDB uses where a name gives none.
pub const OVSDB_PORT: u16 = 6640;
/// The port that OpenFlow uses where a name gives none.
pub const OPENFLOW_PORT: u16 = 6653;
/// The DSCP of control connections unless it is configured: internetwork control.
pub const DEFAULT_DSCP: u8 = 48;

/// Whom to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Active {
    Unix(PathBuf),
    Tcp(Host),
    Tls(Host),
    /// A listener within the process, by name.
    Memory(String),
}

/// A host and one of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Address(SocketAddr),
    /// By a name that is yet to be resolved.
    Name(String, u16),
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Passive {
    Unix(PathBuf),
    Tcp(SocketAddr),
    Tls(SocketAddr),
    Memory(String),
}

/// Whether `name` says whom to connect to (and not where to listen).
pub fn is_active(name: &str) -> bool {
    let class = name.split_once(':').map(|(class, _)| class);
    matches!(class, Some("unix" | "tcp" | "ssl" | "mem"))
}

/// Whether `name` says where to listen.
pub fn is_passive(name: &str) -> bool {
    let class = name.split_once(':').map(|(class, _)| class);
    matches!(class, Some("punix" | "ptcp" | "pssl" | "pmem"))
}

pub(crate) fn bad_family() -> io::Error {
    Errno::AFNOSUPPORT.into()
}

/// Reads whom to connect to.  What is wrong is logged; the error is the one that C gives.
pub(crate) fn parse_active(name: &str, default_port: u16, run: &Path) -> io::Result<Active> {
    let (class, rest) = name.split_once(':').ok_or_else(bad_family)?;
    let address = || {
        host_and_port(rest, default_port).map_err(|text| {
            log::error!(target: "socket_util", "{rest}: {text}");
            log::error!(target: if class == "tcp" { "stream_tcp" } else { "stream_ssl" },
                "{name}: connect: Address family not supported by protocol");
            bad_family()
        })
    };
    match class {
        "unix" => Ok(Active::Unix(run.join(rest))),
        "tcp" => Ok(Active::Tcp(address()?)),
        "ssl" => Ok(Active::Tls(address()?)),
        "mem" => Ok(Active::Memory(rest.to_owned())),
        _ => Err(bad_family()),
    }
}

/// Reads where to listen.
pub(crate) fn parse_passive(name: &str, default_port: u16, run: &Path) -> io::Result<Passive> {
    let (class, rest) = name.split_once(':').ok_or_else(bad_family)?;
    let address = || {
        port_and_host(rest, default_port).map_err(|text| {
            log::error!(target: "socket_util", "{rest}: {text}");
            bad_family()
        })
    };
    match class {
        "punix" => Ok(Passive::Unix(run.join(rest))),
        "ptcp" => Ok(Passive::Tcp(address()?)),
        "pssl" => Ok(Passive::Tls(address()?)),
        "pmem" => Ok(Passive::Memory(rest.to_owned())),
        _ => Err(bad_family()),
    }
}

/// Splits at colons that are not within brackets.
fn fields(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut fields) = (0u32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => {
                fields.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    fields.push(&text[start..]);
    fields
}

fn port(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("bad port number \"{text}\""))
}

fn host(text: &str) -> Result<(IpAddr, u32), String> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .ok_or_else(|| format!("bad IP address \"{text}\""))?,
        None => text,
    };
    if let Ok(v4) = bare.parse::<Ipv4Addr>() {
        return Ok((IpAddr::V4(v4), 0));
    }
    let (address, zone) = bare.split_once('%').unwrap_or((bare, ""));
    let v6: Ipv6Addr = address
        .parse()
        .map_err(|_| format!("bad IP address \"{bare}\""))?;
    let scope = match zone {
        "" => 0,
        name => interface_index(name).ok_or_else(|| format!("bad IPv6 scope \"{name}\""))?,
    };
    Ok((IpAddr::V6(v6), scope))
}

fn interface_index(name: &str) -> Option<u32> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = rustix::net::socket(family, kind, None).ok()?;
    rustix::net::netdevice::name_to_index(socket, name).ok()
}

fn socket_address((ip, scope): (IpAddr, u32), port: u16) -> SocketAddr {
    match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, port),
        IpAddr::V6(v6) => std::net::SocketAddrV6::new(v6, port, 0, scope).into(),
    }
}

/// Whether this could be the name of a host: labels of letters, digits, hyphens and
/// underscores, of which the last does not begin with a digit as an address would.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len()) && label.chars().all(fits) && !label.starts_with('-')
    };
    let bare = text.strip_suffix('.').unwrap_or(text);
    let last = bare.rsplit('.').next().unwrap_or_default();
    bare.len() < 254
        && bare.split('.').all(is_label)
        && !last.starts_with(|c: char| c.is_ascii_digit())
}

/// `HOST[:PORT]`.
fn host_and_port(text: &str, default_port: u16) -> Result<Host, String> {
    let (h, port) = match fields(text).as_slice() {
        ["", ..] => return Err("host must be specified".to_owned()),
        [h] if default_port == 0 => return Err(format!("port must be specified ({h})")),
        [h] => (*h, default_port),
        [h, p] => (*h, port(p)?),
        _ => return Err("port must be specified".to_owned()),
    };
    match host(h) {
        Ok(ip) => Ok(Host::Address(socket_address(ip, port))),
        Err(_) if is_name(h) => Ok(Host::Name(h.to_owned(), port)),
        Err(error) => Err(error),
    }
}

/// `[PORT][:HOST]`.
fn port_and_host(text: &str, default_port: u16) -> Result<SocketAddr, String> {
    let any = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let port = |text: &str| match text {
        "" => Ok(default_port),
        _ => port(text),
    };
    match fields(text).as_slice() {
        [p] => Ok(socket_address(any, port(p)?)),
        [p, ""] => Ok(socket_address(any, port(p)?)),
        [p, h] => Ok(socket_address(host(h)?, port(p)?)),
        _ => Err("trailing garbage after host".to_owned()),
    }
}

/// An address as connection names have it: IPv6 in brackets.
pub(crate) struct Shown(pub(crate) SocketAddr);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SocketAddr::V4(v4) => write!(f, "{}:{}", v4.ip(), v4.port()),
            SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
                Some(v4) => write!(f, "{v4}:{}", v6.port()),
                None => write!(f, "[{}]:{}", v6.ip(), v6.port()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_to_connect_to() {
        let check = |name, expected: Result<&str, &str>| {
            let got = host_and_port(name, 6640).map(|host| match host {
                Host::Address(address) => Shown(address).to_string(),
                Host::Name(name, port) => format!("{name} {port}"),
            });
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{name}");
        };
        check("1.2.3.4", Ok("1.2.3.4:6640"));
        check("1.2.3.4:5", Ok("1.2.3.4:5"));
        check("[::1]:3", Ok("[::1]:3"));
        check("[fe80::1]", Ok("[fe80::1]:6640"));
        check("", Err("host must be specified"));
        check("1.2.3.4:x", Err("bad port number \"x\""));
        check("1.2.3.4:99999", Err("bad port number \"99999\""));
        check("1.2.3.4:1:2", Err("port must be specified"));
        check("::1:3", Err("host must be specified"));
        check("abc:1", Ok("abc 1"));
        check("db-1.example.org.", Ok("db-1.example.org. 6640"));
        check("a b:1", Err("bad IP address \"a b\""));
        check("-a:1", Err("bad IP address \"-a\""));
        check("1.2.3.400:1", Err("bad IP address \"1.2.3.400\""));
        check("a..b:1", Err("bad IP address \"a..b\""));
    }

    #[test]
    fn where_to_listen() {
        let check = |name, expected: Result<&str, &str>| {
            let got = port_and_host(name, 6640).map(|a| Shown(a).to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{name}");
        };
        check("", Ok("0.0.0.0:6640"));
        check("0:127.0.0.1", Ok("127.0.0.1:0"));
        check("7:[::]", Ok("[::]:7"));
        check(":1.1.1.1", Ok("1.1.1.1:6640"));
        check("x", Err("bad port number \"x\""));
        let parse = |name| parse_passive(name, 6640, Path::new("/run"));
        assert_eq!(parse("punix:a").unwrap(), Passive::Unix("/run/a".into()));
        assert_eq!(parse("foo:1").unwrap_err().raw_os_error(), Some(97));
        assert!(is_active("unix:x") && is_passive("pssl:") && !is_active("ptcp:"));
    }
}
