//! Devices in network namespaces of the test's own.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use net_dev::{Device, Modes, Provider, Receiver};
use net_dev_linux::LinuxProvider;
use net_netlink::route::{Address, LinkRef, VethEnd};
use net_nlsock::route::Routes;
use net_packet::{Batch, Packet, Pool};
use sys::netns::NetNs;
use testkit::{Need, need};

fn veth(routes: &mut Routes, one: &str, other: &str) {
    let end = |name| VethEnd {
        name,
        mac: None,
        netns: None,
    };
    routes.create_veth(&end(one), &end(other)).unwrap();
    for name in [one, other] {
        routes.set_up(LinkRef::Name(name), true).unwrap();
    }
}

/// A namespace with the far end of a veth in it, under an address.
fn host(routes: &mut Routes, link: &str, ip: [u8; 4]) -> NetNs {
    let ns = NetNs::create().unwrap();
    routes.set_netns(LinkRef::Name(link), &ns).unwrap();
    let mut inside = Routes::open_in(&ns).unwrap();
    inside.set_up(LinkRef::Name(link), true).unwrap();
    let index = inside.link(LinkRef::Name(link)).unwrap().index;
    let ip = IpAddr::from(ip);
    inside
        .add_address(&Address {
            index,
            ip,
            prefix: 24,
        })
        .unwrap();
    ns
}

fn forward(
    receiver: &mut Box<dyn Receiver>,
    to: &Arc<dyn Device>,
    pool: &mut Pool,
    longest: &AtomicUsize,
) {
    let mut batch = Batch::new();
    receiver.receive(&mut batch, pool).unwrap();
    for packet in &batch {
        longest.fetch_max(packet.len(), Ordering::Relaxed);
    }
    to.send(&mut batch, pool);
}

#[test]
fn tcp_passes_whole_between_two_veths() {
    if !need("tcp_passes_whole_between_two_veths", &[Need::Netns]) {
        return;
    }
    let middle = NetNs::create().unwrap();
    let mut routes = Routes::open_in(&middle).unwrap();
    veth(&mut routes, "p1", "h1");
    veth(&mut routes, "p2", "h2");
    let one = host(&mut routes, "h1", [10, 0, 0, 1]);
    let two = host(&mut routes, "h2", [10, 0, 0, 2]);
    let provider = LinuxProvider::new_in(middle).unwrap();
    let p1 = provider.open("p1", "system").unwrap();
    let p2 = provider.open("p2", "system").unwrap();
    let mut from1 = p1.open_receiver().unwrap();
    let mut from2 = p2.open_receiver().unwrap();
    let (stop, longest) = (AtomicBool::new(false), AtomicUsize::new(0));
    let listener = two
        .run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 5001)))
        .unwrap()
        .unwrap();
    let data: Vec<u8> = (0..4_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let timeout = Duration::from_secs(20);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut pool = Pool::new();
            while !stop.load(Ordering::Relaxed) {
                forward(&mut from1, &p2, &mut pool, &longest);
                forward(&mut from2, &p1, &mut pool, &longest);
                thread::sleep(Duration::from_micros(50));
            }
        });
        let receive = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(timeout)).unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).map(|_| got)
        });
        let to = SocketAddr::from(([10, 0, 0, 2], 5001));
        let connect = || TcpStream::connect_timeout(&to, timeout);
        let mut stream = one.run(connect).unwrap().unwrap();
        stream.write_all(&data).unwrap();
        drop(stream);
        let got = receive.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(got.unwrap() == data, "data differ");
    });
    assert!(longest.into_inner() > 30_000, "packets were cut");
    let stats = p1.stats().unwrap();
    assert!(stats.rx_bytes.unwrap() > 4_000_000);
    assert_eq!(p1.state().carrier_resets, 0);
}

#[test]
fn a_device_that_vanishes_and_returns_delivers_again() {
    if !need(
        "a_device_that_vanishes_and_returns_delivers_again",
        &[Need::Netns],
    ) {
        return;
    }
    let ns = NetNs::create().unwrap();
    let mut routes = Routes::open_in(&ns).unwrap();
    veth(&mut routes, "p1", "peer");
    let provider = LinuxProvider::new_in(ns).unwrap();
    let missing = provider.open("p9", "system").unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(19));
    let device = provider.open("p1", "system").unwrap();
    let peer = provider.open("peer", "system").unwrap();
    let mut receiver = device.open_receiver().unwrap();
    let mut pool = Pool::new();
    let mut deliver = |peer: &Arc<dyn Device>| {
        let mut frame = vec![0xff; 14];
        frame.extend([0; 50]);
        peer.send(&mut vec![Packet::from_frame(&frame)], &mut pool);
        for _ in 0..200 {
            let mut batch = Batch::new();
            // The device going down is reported once.
            let _ = receiver.receive(&mut batch, &mut pool);
            if batch.iter().any(|p| p.data() == frame) {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    };
    assert!(deliver(&peer));
    routes.delete_link(LinkRef::Name("p1")).unwrap();
    assert!(provider.take_events().contains(&"p1".to_owned()));
    assert!(!device.state().present);
    veth(&mut routes, "p1", "peer");
    let changes = device.changes();
    provider.take_events();
    assert!(device.state().present && device.changes() > changes);
    assert!(deliver(&peer));
}

#[test]
fn a_tap_carries_the_hosts_packets_with_their_offloads() {
    let name = "a_tap_carries_the_hosts_packets_with_their_offloads";
    if !need(name, &[Need::Netns, Need::Tun]) {
        return;
    }
    let ns = NetNs::create().unwrap();
    let mut routes = Routes::open_in(&ns).unwrap();
    let provider = LinuxProvider::new_in(ns).unwrap();
    let device = provider.open("br0", "internal").unwrap();
    assert_eq!(device.kind(), "tap");
    let mac = net_packet::EthAddr([2, 0, 0, 0, 0, 9]);
    device.set_mac(mac).unwrap();
    device.set_mtu(1400).unwrap();
    device.set_up(true).unwrap();
    let state = device.state();
    assert_eq!((state.mac, state.mtu, state.up), (mac, 1400, true));
    let mut receiver = device.open_receiver().unwrap();
    let index = state.ifindex.unwrap();
    let ip = IpAddr::from([10, 1, 0, 1]);
    routes
        .add_address(&Address {
            index,
            ip,
            prefix: 24,
        })
        .unwrap();
    assert!(device.addresses().contains(&(ip, 24)));
    let mut batch = Batch::new();
    let mut pool = Pool::new();
    for _ in 0..500 {
        // The host announces itself when it comes up (router solicitation or multicast reports).
        receiver.receive(&mut batch, &mut pool).unwrap();
        if !batch.is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(batch.iter().any(|p| p.data()[6..12] == mac.0));
    let again = provider.open("br0", "system").unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn a_veth_tells_of_its_link() {
    if !need("a_veth_tells_of_its_link", &[Need::Netns]) {
        return;
    }
    let ns = NetNs::create().unwrap();
    let mut routes = Routes::open_in(&ns).unwrap();
    veth(&mut routes, "p1", "h1");
    let features = ns.run(|| {
        let provider = LinuxProvider::new().unwrap();
        provider.open("p1", "system").unwrap().features()
    });
    let features = features.unwrap();
    assert_eq!(features.speed, Some(10_000));
    assert_eq!(features.full_duplex, Some(true));
    assert_eq!(features.current, Modes(Modes::FULL_10G | Modes::COPPER));
}
