//! Where servers of a cluster reach each other: `tcp:HOST:PORT`, `ssl:HOST:PORT`, and
//! `unix:PATH` for clusters on one machine.

use db_model::{Error, Result, Uuid};

use crate::short_id;

/// Host and port of `HOST:PORT` or `[IPv6]:PORT`.
fn host_and_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest.strip_prefix(':')?)
        }
        None => text
            .rsplit_once(':')
            .filter(|(host, _)| !host.contains(':'))?,
    };
    let is_port = port.parse::<u16>().is_ok() && !port.starts_with('+');
    (!host.is_empty() && is_port).then_some((host, port))
}

/// Checks that a server can have this address.
///
/// # Errors
/// It is of another kind, or lacks host or port.
pub fn check_address(address: &str) -> Result<()> {
    if address.starts_with("unix:") {
        return Ok(());
    }
    let rest = ["tcp:", "ssl:"]
        .iter()
        .find_map(|kind| address.strip_prefix(kind));
    match rest.map(host_and_port) {
        Some(Some(_)) => Ok(()),
        Some(None) => Err(Error::general(format!(
            "{address}: syntax error in address"
        ))),
        None => Err(Error::general(format!(
            "{address}: expected \"tcp\" or \"ssl\" address"
        ))),
    }
}

/// The name under which a server listens for others that connect to `address`.
pub fn passive_address(address: &str) -> String {
    let (kind, rest) = address.split_once(':').unwrap_or(("unix", address));
    match host_and_port(rest) {
        Some((host, port)) if kind != "unix" && host.contains(':') => {
            format!("p{kind}:{port}:[{host}]")
        }
        Some((host, port)) if kind != "unix" => format!("p{kind}:{port}:{host}"),
        _ => format!("p{address}"),
    }
}

/// What a server is called in log lines: the name of its socket up to the first dot, or the
/// beginning of its id.
pub fn nickname(address: &str, server: Uuid) -> String {
    let path = address.strip_prefix("unix:");
    let name = path.and_then(|path| path.rsplit('/').next());
    let name = name.and_then(|name| name.split('.').next());
    match name.filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => short_id(server),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        for good in [
            "unix:",
            "unix:s1.raft",
            "tcp:1.2.3.4:6643",
            "ssl:[::1]:6644",
            "tcp:db.example:1",
        ] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for (bad, said) in [
            ("xyz:1.2.3.4:1", "expected \"tcp\" or \"ssl\" address"),
            ("tcp:1.2.3.4", "syntax error in address"),
            ("ssl:::1:6644", "syntax error in address"),
            ("tcp:[::1:1", "syntax error in address"),
            ("tcp:a:99999", "syntax error in address"),
            ("", "expected \"tcp\" or \"ssl\" address"),
        ] {
            let error = check_address(bad).expect_err(bad).to_string();
            assert_eq!(error, format!("ovsdb error: {bad}: {said}"));
        }
    }

    #[test]
    fn passive_names_and_nicknames() {
        let sid = Uuid::from_u128(0xabcd_0123 << 96);
        for (address, passive, name) in [
            ("unix:/run/s1.raft", "punix:/run/s1.raft", "s1"),
            ("unix:.raft", "punix:.raft", "abcd"),
            ("tcp:1.2.3.4:5", "ptcp:5:1.2.3.4", "abcd"),
            ("ssl:[::1]:5", "pssl:5:[::1]", "abcd"),
        ] {
            assert_eq!(passive_address(address), passive);
            assert_eq!(nickname(address, sid), name);
        }
    }
}
