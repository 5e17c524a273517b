//! Tunnel devices, made through rtnetlink.

use std::io;
use std::sync::Mutex;

use net_netlink::errno as number_of;
use net_netlink::route::{self, LinkRef};
use net_netlink::tunnel::{MTU, Tunnel, TunnelKind};
use net_nlsock::{Protocol, Socket};

use crate::kernel::{errno, lock};

/// An MTU that every device takes.
const SMALL_MTU: u32 = 1450;

/// The links of the process's namespace.
#[derive(Debug)]
pub(crate) struct Links(Mutex<Socket>);

impl Links {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self(Mutex::new(Socket::open(Protocol::Route)?)))
    }

    /// Makes sure that there is a device `name` which is this tunnel; one that is something else is
    /// replaced.
    ///
    /// # Errors
    /// As the kernel gives them: errno 95 if it has no such tunnels.
    pub(crate) fn ensure(&self, name: &str, tunnel: &Tunnel) -> io::Result<()> {
        let mut socket = lock(&self.0);
        match socket.execute(&mut tunnel.create(name)) {
            Err(e) if number_of(&e) == Some(errno::EEXIST) => {
                if is(&mut socket, name, tunnel)? {
                    return Ok(());
                }
                log::info!(target: "dpif_netlink", "{name}: device is not what it should be; making it anew");
                socket.execute(&mut route::delete_link(LinkRef::Name(name)))?;
                socket.execute(&mut tunnel.create(name))?;
            }
            other => other?,
        }
        if !is(&mut socket, name, tunnel)? {
            // A kernel that knows nothing of metadata makes some other tunnel.
            socket.execute(&mut route::delete_link(LinkRef::Name(name)))?;
            return Err(io::Error::from_raw_os_error(errno::EOPNOTSUPP));
        }
        if matches!(tunnel.kind, TunnelKind::Gretap | TunnelKind::Ip6Gretap) {
            widen(&mut socket, name);
        }
        Ok(())
    }

    /// Whether the device `name` is this tunnel.
    pub(crate) fn is(&self, name: &str, tunnel: &Tunnel) -> bool {
        is(&mut lock(&self.0), name, tunnel).unwrap_or(false)
    }

    /// Removes a device; one that is not there is no error.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let mut socket = lock(&self.0);
        match socket.execute(&mut route::delete_link(LinkRef::Name(name))) {
            Err(e) if number_of(&e) == Some(errno::ENODEV) => Ok(()),
            other => other,
        }
    }
}

fn is(socket: &mut Socket, name: &str, tunnel: &Tunnel) -> io::Result<bool> {
    let mut found = false;
    socket.transact(&mut route::get_link(LinkRef::Name(name)), |message| {
        found |= tunnel.is(message);
    })?;
    Ok(found)
}

/// GRE devices ignore the MTU that they are made with.
fn widen(socket: &mut Socket, name: &str) {
    let mut set = |mtu| socket.execute(&mut route::set_mtu(LinkRef::Name(name), mtu));
    if let Err(error) = set(MTU).or_else(|_| set(SMALL_MTU)) {
        let why = base::errno_text(&error);
        log::warn!(target: "dpif_netlink_rtnl", "setting MTU of tunnel {name} failed ({why})");
    }
}
