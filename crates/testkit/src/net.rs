//! A small network of namespaces, made over netlink: hosts, each with one cable to the
//! switch's namespace, that ping and send bulk data.  Nothing outside is touched, and the
//! kernel removes it all with the last handle.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use base::Clock;
use net_netlink::route::{Address, LinkRef, VethEnd};
use net_nlsock::route::Routes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto};
use sys::netns::NetNs;

/// A namespace with one interface, `eth0`, whose other end is in the switch's namespace.
#[derive(Debug)]
pub struct Host {
    /// Its namespace.
    pub netns: NetNs,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Name of the cable's end in the switch's namespace.
    pub cable: String,
}

/// A namespace of its own with its loopback up and IPv6 silent.
///
/// # Errors
/// As the kernel gives them: without root.
pub fn quiet_netns() -> io::Result<NetNs> {
    let netns = NetNs::create()?;
    netns.run(|| {
        for scope in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            // A kernel without IPv6 has no such file, and is silent anyway.
            let _ = std::fs::write(path, "1");
        }
        Routes::open()?.set_up(LinkRef::Name("lo"), true)
    })??;
    Ok(netns)
}

/// Joins two new devices in `netns` by a cable, and sets both up.
///
/// # Errors
/// As the kernel gives them: without root, or when a name is taken.
pub fn cable(netns: &NetNs, names: [&str; 2]) -> io::Result<()> {
    let mut routes = Routes::open_in(netns)?;
    let [one, other] = names.map(|name| VethEnd {
        name,
        mac: None,
        netns: None,
    });
    routes.create_veth(&one, &other)?;
    names
        .iter()
        .try_for_each(|name| routes.set_up(LinkRef::Name(name), true))
}

/// Joins two new devices in different namespaces by a cable.
///
/// # Errors
/// As the kernel gives them: without root, or when a name is taken.
pub fn cable_between(here: &NetNs, one: &str, there: &NetNs, other: &str) -> io::Result<()> {
    let mut routes = Routes::open_in(here)?;
    let near = VethEnd {
        name: one,
        mac: None,
        netns: None,
    };
    let far = VethEnd {
        name: other,
        mac: None,
        netns: Some(there.as_fd().as_raw_fd()),
    };
    routes.create_veth(&near, &far)
}

impl Host {
    /// Makes a host with address `ip`/24, joined by a cable called `cable` to `switch`.
    ///
    /// # Errors
    /// As the kernel gives them: without root, or when the name is taken.
    pub fn new(switch: &NetNs, cable: &str, ip: Ipv4Addr) -> io::Result<Self> {
        let netns = quiet_netns()?;
        let mut routes = Routes::open_in(&netns)?;
        let far = switch.as_fd().as_raw_fd();
        let near = VethEnd {
            name: "eth0",
            mac: None,
            netns: None,
        };
        routes.create_veth(
            &near,
            &VethEnd {
                name: cable,
                mac: None,
                netns: Some(far),
            },
        )?;
        let index = routes.link(LinkRef::Name("eth0"))?.index;
        routes.add_address(&Address {
            index,
            ip: IpAddr::V4(ip),
            prefix: 24,
        })?;
        routes.set_up(LinkRef::Index(index), true)?;
        Routes::open_in(switch)?.set_up(LinkRef::Name(cable), true)?;
        Ok(Self {
            netns,
            ip,
            cable: cable.to_string(),
        })
    }

    /// Sends `count` ICMP echo requests, one every `interval`, and returns the round-trip
    /// time of each that was answered within a second.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn ping(&self, to: Ipv4Addr, count: u16, interval: Duration) -> io::Result<Vec<Duration>> {
        self.netns.run(|| ping(to, count, interval))?
    }

    /// Sends data to `to` over TCP for `time` and returns the bits a second that arrived.
    ///
    /// # Errors
    /// As the kernel gives them.
    pub fn bulk_tcp(&self, to: &Self, time: Duration) -> io::Result<f64> {
        let address = SocketAddr::from((to.ip, 5001));
        let listener = to.netns.run(|| TcpListener::bind(address))??;
        let receiver = std::thread::spawn(move || receive_all(&listener));
        let sent = self.netns.run(|| send_for(address, time))?;
        let received = receiver
            .join()
            .map_err(|_| io::Error::other("receiver panicked"))?;
        sent?;
        received
    }
}

fn ping(to: Ipv4Addr, count: u16, interval: Duration) -> io::Result<Vec<Duration>> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))?;
    let address = SocketAddr::from((to, 0));
    let clock = Clock::new();
    let id = (std::process::id() as u16) ^ (clock.wall().0 as u16);
    let mut times = Vec::new();
    for sequence in 0..count {
        let begin = clock.real();
        rustix::net::sendto(
            &socket,
            &echo_request(id, sequence),
            SendFlags::empty(),
            &address,
        )?;
        while let Some(left) = Duration::from_secs(1).checked_sub(clock.real().since(begin)) {
            let Some(packet) = receive(&socket, left)? else {
                break;
            };
            if is_reply(&packet, id, sequence) {
                times.push(clock.real().since(begin));
                break;
            }
        }
        std::thread::sleep(interval);
    }
    Ok(times)
}

/// An ICMP echo request (RFC 792) of 64 bytes.
fn echo_request(id: u16, sequence: u16) -> Vec<u8> {
    let mut packet = vec![8, 0, 0, 0];
    packet.extend(id.to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.extend(0..56u8);
    let sum: u32 = packet
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[2..4].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The next packet, with its IPv4 header, or none within `timeout`.
fn receive(socket: &impl AsFd, timeout: Duration) -> io::Result<Option<Vec<u8>>> {
    let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout))? == 0 {
        return Ok(None);
    }
    let mut buffer = vec![0u8; 2048];
    let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
    buffer.truncate(length);
    Ok(Some(buffer))
}

fn is_reply(packet: &[u8], id: u16, sequence: u16) -> bool {
    let header = packet.first().map_or(0, |b| usize::from(b & 15) * 4);
    let Some(icmp) = packet.get(header..header + 8) else {
        return false;
    };
    icmp[0] == 0 && icmp[4..6] == id.to_be_bytes() && icmp[6..8] == sequence.to_be_bytes()
}

fn send_for(address: SocketAddr, time: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let (clock, buffer) = (Clock::new(), vec![0x5a; 128 * 1024]);
    while clock.real() < base::Instant::ZERO + time {
        stream.write_all(&buffer)?;
    }
    Ok(())
}

fn receive_all(listener: &TcpListener) -> io::Result<f64> {
    let timeout = Timespec::try_from(Duration::from_secs(8)).map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout))? == 0 {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "no connection arrived",
        ));
    }
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_secs(8)))?;
    let clock = Clock::new();
    let (mut buffer, mut bytes) = (vec![0; 256 * 1024], 0u64);
    loop {
        match stream.read(&mut buffer)? {
            0 => {
                return Ok(
                    bytes as f64 * 8.0 / clock.real().since(base::Instant::ZERO).as_secs_f64()
                );
            }
            n => bytes += n as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Need, need};

    #[test]
    fn two_namespaces_on_one_cable_reach_each_other() {
        if !need(
            "two_namespaces_on_one_cable_reach_each_other",
            &[Need::Root, Need::Netns],
        ) {
            return;
        }
        let far = quiet_netns().unwrap();
        let host = Host::new(&far, "cable", Ipv4Addr::new(10, 9, 0, 1)).unwrap();
        let mut routes = Routes::open_in(&far).unwrap();
        let index = routes.link(LinkRef::Name("cable")).unwrap().index;
        let ip = Ipv4Addr::new(10, 9, 0, 2);
        routes
            .add_address(&Address {
                index,
                ip: IpAddr::V4(ip),
                prefix: 24,
            })
            .unwrap();
        // What is sent before the cable's ends have noticed each other is lost.
        let reached = || host.ping(ip, 1, Duration::ZERO).unwrap().len() == 1;
        assert!((0..10).any(|_| reached()), "no ping is answered");
        assert_eq!(host.ping(ip, 3, Duration::ZERO).unwrap().len(), 3);
        assert_eq!(
            host.ping(Ipv4Addr::new(10, 9, 0, 9), 1, Duration::ZERO)
                .unwrap()
                .len(),
            0
        );
        let other = Host {
            netns: far,
            ip,
            cable: String::new(),
        };
        assert!(host.bulk_tcp(&other, Duration::from_millis(50)).unwrap() > 0.0);
    }
}
