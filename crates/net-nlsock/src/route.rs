//! Links and addresses of one network namespace.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use net_netlink::Message;
use net_netlink::route::{self, Address, Link, LinkRef, LinkStats, VethEnd};
use sys::netns::NetNs;

use crate::socket::{Protocol, Socket};

/// The links and addresses of the namespace of the thread that opened it.
#[derive(Debug)]
pub struct Routes(Socket);

impl Routes {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn open() -> io::Result<Self> {
        Socket::open(Protocol::Route).map(Self)
    }

    /// Opens a socket in another namespace.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn open_in(netns: &NetNs) -> io::Result<Self> {
        netns.run(Self::open)?
    }

    /// All links.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn links(&mut self) -> io::Result<Vec<Link>> {
        self.0.dump(&mut route::dump_links(), Link::parse)
    }

    /// One link.
    ///
    /// # Errors
    /// As the kernel gives them: "No such device" if there is none.
    pub fn link(&mut self, link: LinkRef<'_>) -> io::Result<Link> {
        let mut found = None;
        let keep = |message: &Message<'_>| found = Link::parse(message);
        self.0.transact(&mut route::get_link(link), keep)?;
        found.ok_or_else(|| io::Error::other("netlink answer without a link"))
    }

    /// What a link has counted.
    ///
    /// # Errors
    /// As the kernel gives them: "No such device" if there is none.
    pub fn stats(&mut self, index: u32) -> io::Result<LinkStats> {
        let mut found = None;
        let keep = |message: &Message<'_>| found = route::parse_stats(message);
        self.0.transact(&mut route::get_stats(index), keep)?;
        found.ok_or_else(|| io::Error::other("netlink answer without statistics"))
    }

    /// Makes a pair of virtual Ethernet links.
    ///
    /// # Errors
    /// As the kernel gives them: "File exists" if a name is taken.
    pub fn create_veth(&mut self, one: &VethEnd<'_>, other: &VethEnd<'_>) -> io::Result<()> {
        self.0.execute(&mut route::create_veth(one, other))
    }

    /// Takes a link away.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn delete_link(&mut self, link: LinkRef<'_>) -> io::Result<()> {
        self.0.execute(&mut route::delete_link(link))
    }

    /// Sets a link up or down.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn set_up(&mut self, link: LinkRef<'_>, up: bool) -> io::Result<()> {
        self.0.execute(&mut route::set_up(link, up))
    }

    /// Sets a link's MTU.
    ///
    /// # Errors
    /// As the kernel gives them: "Invalid argument" outside the device's range.
    pub fn set_mtu(&mut self, link: LinkRef<'_>, mtu: u32) -> io::Result<()> {
        self.0.execute(&mut route::set_mtu(link, mtu))
    }

    /// Sets a link's Ethernet address.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn set_mac(&mut self, link: LinkRef<'_>, mac: [u8; 6]) -> io::Result<()> {
        self.0.execute(&mut route::set_mac(link, mac))
    }

    /// Moves a link to another namespace.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn set_netns(&mut self, link: LinkRef<'_>, netns: &NetNs) -> io::Result<()> {
        let fd = netns.as_fd().as_raw_fd();
        self.0.execute(&mut route::set_netns(link, fd))
    }

    /// All addresses.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn addresses(&mut self) -> io::Result<Vec<Address>> {
        self.0.dump(&mut route::dump_addresses(), Address::parse)
    }

    /// Adds an address.
    ///
    /// # Errors
    /// As the kernel gives them: "File exists" if the link has it.
    pub fn add_address(&mut self, address: &Address) -> io::Result<()> {
        self.0.execute(&mut address.add())
    }

    /// Takes an address away.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn delete_address(&mut self, address: &Address) -> io::Result<()> {
        self.0.execute(&mut address.delete())
    }
}
