//! The kernel's connection tracker: one for all datapaths of a network namespace.

use std::io;
use std::sync::{Arc, Mutex};

use dp_api::{Conntrack, Error};
use dp_lang::netlink::{
    decode_connection, forget_connection, forget_connections, list_connections,
};
use dp_lang::{Connection, CtLimit};
use net_flow::CtMatch;
use net_flow::connection::Family;
use net_netlink::errno as number_of;
use net_netlink::ovs::ct_limit::{self, ZoneLimit};
use net_nlsock::{Protocol, Socket, Train};

use crate::kernel::{errno, error, lock};
use crate::shared::Shared;

/// The first kernel that forgets the connections of one zone when asked for that; older ones forget
/// all.
const FLUSHES_ZONES: (u32, u32) = (6, 8);

/// The tracker.
pub(crate) struct Tracker {
    shared: Arc<Shared>,
    /// Opened when it is first needed.
    socket: Mutex<Option<Socket>>,
}

/// Version and patch level of the running kernel.
fn kernel_version() -> Option<(u32, u32)> {
    let name = rustix::system::uname();
    parse_version(name.release().to_str().ok()?)
}

fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

impl Tracker {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            socket: Mutex::new(None),
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut Socket) -> io::Result<T>) -> Result<T, Error> {
        let mut socket = lock(&self.socket);
        let run = || {
            let socket = match &mut *socket {
                Some(socket) => socket,
                empty => empty.insert(Socket::open(Protocol::Netfilter)?),
            };
            f(socket)
        };
        run().map_err(|e| error(&e))
    }

    /// All connections of a zone that `matches` takes.
    fn list(
        &self,
        zone: Option<u16>,
        mut matches: impl FnMut(&Connection) -> bool,
    ) -> Result<Vec<Connection>, Error> {
        let mut found = Vec::new();
        self.with(|socket| {
            // Connections come and go all the time: what is missing or twice does no harm.
            socket.visit(&mut list_connections(zone), |message| {
                let connection = decode_connection(message);
                let in_zone = |c: &Connection| zone.is_none_or(|zone| zone == c.zone);
                found.extend(connection.filter(|c| in_zone(c) && matches(c)));
            })
        })?;
        Ok(found)
    }

    /// Forgets these connections; those that are gone already are no error.
    fn forget(&self, connections: &[Connection]) -> Result<(), Error> {
        self.with(|socket| {
            let mut train = Train::new();
            for one in connections {
                let kind = (one.family, one.proto);
                let mut request = forget_connection(one.zone, kind, &one.orig, Some(one.id));
                train.push(&mut request)?;
            }
            socket.run(&mut train, |_, _| ())
        })
    }

    fn limit_family(&self) -> Result<u16, Error> {
        let family = self.shared.kernel.families.ct_limit;
        family.ok_or_else(|| Error::Unsupported("the kernel has no limits of connections".into()))
    }
}

impl Conntrack for Tracker {
    fn visit(
        &self,
        zone: Option<u16>,
        visit: &mut dyn FnMut(Connection) -> bool,
    ) -> Result<(), Error> {
        let mut go_on = true;
        self.with(|socket| {
            socket.visit(&mut list_connections(zone), |message| {
                if let Some(connection) = decode_connection(message)
                    && go_on
                    && zone.is_none_or(|zone| zone == connection.zone)
                {
                    go_on = visit(connection);
                }
            })
        })?;
        Ok(())
    }

    fn flush(&self, zone: Option<u16>, of: &CtMatch) -> Result<(), Error> {
        if of.is_five_tuple() {
            let family = of.family.unwrap_or(Family::V4);
            let kind = (family, of.proto);
            let mut request = forget_connection(zone.unwrap_or(0), kind, &of.orig, None);
            return self.with(|socket| socket.execute(&mut request));
        }
        let knows_zones = kernel_version().is_some_and(|v| v >= FLUSHES_ZONES);
        if of.is_any() && (zone.is_none() || knows_zones) {
            return self.with(
                |socket| match socket.execute(&mut forget_connections(zone)) {
                    // Nothing was tracked.
                    Err(e) if number_of(&e) == Some(errno::ENOENT) => Ok(()),
                    other => other,
                },
            );
        }
        let found = self.list(zone, |c| of.is_any() || c.matches(of))?;
        self.forget(&found)
    }

    fn set_limits(&self, limits: &[CtLimit]) -> Result<(), Error> {
        let limits: Vec<ZoneLimit> = limits.iter().map(to_kernel).collect();
        let mut request = ct_limit::set(self.limit_family()?, 0, &limits);
        let outcome = self.shared.kernel.execute(&mut request);
        outcome.map_err(|e| error(&e))
    }

    fn limits(&self, zones: &[Option<u16>]) -> Result<Vec<CtLimit>, Error> {
        let mut request = ct_limit::get(self.limit_family()?, 0, zones);
        let found = self.shared.kernel.ask(&mut request, ct_limit::parse);
        let found = found.map_err(|e| error(&e))?;
        Ok(found.iter().map(from_kernel).collect())
    }

    fn delete_limits(&self, zones: &[Option<u16>]) -> Result<(), Error> {
        let mut request = ct_limit::delete(self.limit_family()?, 0, zones);
        let outcome = self.shared.kernel.execute(&mut request);
        outcome.map_err(|e| error(&e))
    }
}

const fn to_kernel(limit: &CtLimit) -> ZoneLimit {
    ZoneLimit {
        zone: limit.zone,
        limit: limit.limit,
        count: 0,
    }
}

const fn from_kernel(limit: &ZoneLimit) -> CtLimit {
    CtLimit {
        zone: limit.zone,
        limit: limit.limit,
        count: limit.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_kernels() {
        assert_eq!(parse_version("6.1.0-57-amd64"), Some((6, 1)));
        assert_eq!(parse_version("6.12-rc1"), Some((6, 12)));
        assert_eq!(parse_version("next"), None);
        assert!(parse_version("6.10.3").is_some_and(|v| v >= FLUSHES_ZONES));
        assert!(parse_version("5.99.0").is_some_and(|v| v < FLUSHES_ZONES));
    }
}
