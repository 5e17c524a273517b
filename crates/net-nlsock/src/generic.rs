//! Families of generic netlink.

use std::io;

use net_netlink::genl::Family;

use crate::socket::Socket;

/// The family called `name`, on this boot.
///
/// # Errors
/// As the kernel gives them: "No such file or directory" if there is none.
pub fn family(socket: &mut Socket, name: &str) -> io::Result<Family> {
    let mut found = None;
    socket.transact(&mut Family::request(name), |message| {
        found = Family::parse(message);
    })?;
    found.ok_or_else(|| io::Error::other(format!("netlink answer without family {name}")))
}
