//! The datapath against the kernel's module, in `cargo xtask vm`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::{Clock, Instant};
use dp_api::{
    Datapath, Dispatch, Error, FlowPut, NewFlow, PortSpec, Upcall, UpcallHandler, UpcallKind,
};
use dp_kernel::{KernelDatapath, Options};
use dp_lang::text::{
    FlowFormat, PortNames, format_actions, format_flow, parse_actions, parse_flow,
};
use dp_lang::{Action, PortNo};
use net_dev::Providers;
use net_dev_linux::LinuxProvider;
use net_flow::{FlowMask, MiniKey, slot};
use net_netlink::route::{LinkRef, VethEnd};
use net_nlsock::route::Routes;
use testkit::{Need, need};

const NAME: &str = "dp-test";

fn open() -> KernelDatapath {
    let linux = LinuxProvider::new().unwrap();
    let options = Options {
        name: NAME.to_owned(),
        devices: Providers::new(vec![Arc::new(linux)]),
        clock: Clock::new(),
    };
    KernelDatapath::open(options).unwrap()
}

fn skip(test: &str) -> bool {
    if !need(test, &[Need::KernelVm]) {
        return true;
    }
    // Devices that come up send nothing of their own.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    // What an earlier test left.
    let _ = dp_kernel::delete(NAME);
    false
}

fn port(name: &str, kind: &str) -> PortSpec {
    PortSpec {
        name: name.to_owned(),
        kind: kind.to_owned(),
        number: None,
        options: Vec::new(),
    }
}

/// Sends everything from one port to another, and keeps what it saw.
#[derive(Default)]
struct Patch {
    seen: Mutex<Vec<(u32, usize)>>,
    install: bool,
    to: u32,
}

impl Patch {
    fn count(&self) -> usize {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

impl UpcallHandler for Patch {
    fn upcall(
        &self,
        upcall: &Upcall<'_>,
        _now: Instant,
        back: &mut dyn FnMut(Arc<[Action]>),
    ) -> Option<NewFlow> {
        assert!(matches!(
            upcall.kind,
            UpcallKind::Miss | UpcallKind::Action(_)
        ));
        let from = upcall.key.get(slot::IN_PORT) as u32;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((from, upcall.packet.len()));
        let mut mask = FlowMask::new();
        mask.set_exact(slot::ETH_TYPE);
        mask.set_exact(slot::ETH_SRC);
        let actions: Arc<[Action]> = Arc::new([Action::Output(PortNo(self.to))]);
        back(Arc::clone(&actions));
        self.install
            .then(|| NewFlow::new(upcall.key, &mask, actions))
    }
}

/// A pair of devices, of which `one` becomes a port and `other` sends.
fn veth(one: &str, other: &str) {
    let mut routes = Routes::open().unwrap();
    let _ = routes.delete_link(LinkRef::Name(one));
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

fn index(name: &str) -> u32 {
    let mut routes = Routes::open().unwrap();
    routes.link(LinkRef::Name(name)).unwrap().index
}

fn frame(source: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, source, 0x88, 0xb5]);
    frame.resize(100, source);
    frame
}

/// Sends a frame out of a device, to its peer.
fn send(device: &str, frame: &[u8]) {
    let socket = sys::packet_socket::PacketSocket::open(index(device)).unwrap();
    let frames = [frame.to_vec()];
    let sent = socket
        .send(&frames, |f| ([0; sys::packet_socket::HEADER], f))
        .unwrap();
    assert_eq!(sent, 1);
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

#[test]
fn ports_come_and_go() {
    if skip("ports_come_and_go") {
        return;
    }
    let datapath = open();
    assert_eq!((datapath.kind(), datapath.name()), ("system", NAME));
    assert_eq!(datapath.ports()[0].number, PortNo::LOCAL);
    veth("k1", "k1p");
    let one = datapath.port_add(&port("k1", "system")).unwrap();
    let two = datapath.port_add(&port("int1", "internal")).unwrap();
    assert_ne!(one, two);
    let again = datapath.port_add(&port("k1", "system")).unwrap_err();
    assert!(matches!(again, Error::Exists(_)), "{again}");
    let missing = datapath.port_add(&port("none", "system")).unwrap_err();
    assert!(matches!(missing, Error::NotFound(_)), "{missing}");
    let numbered = PortSpec {
        number: Some(PortNo(77)),
        ..port("int2", "internal")
    };
    assert_eq!(datapath.port_add(&numbered), Ok(PortNo(77)));
    for (kind, name) in [
        ("vxlan", "vxlan_sys_4789"),
        ("geneve", "genev_sys_6081"),
        ("gre", "gre_sys"),
        ("ip6gre", "ip6gre_sys"),
        ("erspan", "erspan_sys"),
        ("ip6erspan", "ip6erspan_sys"),
    ] {
        let number = datapath.port_add(&port(name, kind));
        assert!(number.is_ok(), "{kind}: {number:?}");
    }
    let kinds: Vec<String> = datapath.ports().into_iter().map(|p| p.kind).collect();
    assert_eq!(kinds.iter().filter(|k| *k == "internal").count(), 3);
    assert!(datapath.port_device(two).unwrap().state().present);
    datapath.port_stats(one).unwrap();
    for info in datapath
        .ports()
        .into_iter()
        .filter(|p| p.number != PortNo::LOCAL)
    {
        datapath.port_del(info.number).unwrap();
    }
    assert_eq!(datapath.ports().len(), 1);
    let mut routes = Routes::open().unwrap();
    assert!(routes.link(LinkRef::Name("k1")).is_ok());
    for gone in ["int1", "vxlan_sys_4789", "gre_sys"] {
        assert!(routes.link(LinkRef::Name(gone)).is_err(), "{gone}");
    }
}

#[test]
fn this_kernel_has_what_it_should() {
    if skip("this_kernel_has_what_it_should") {
        return;
    }
    let features = open().features();
    println!("{features:#?}");
    assert!(features.ufid && features.recirc && features.masked_set && features.trunc);
    assert!(features.ct_state && features.ct_zone && features.ct_mark && features.ct_label);
    assert!(features.ct_state_nat && features.ct_orig_tuple && features.ct_orig_tuple6);
    assert!(features.clone && features.ct_clear && features.ct_eventmask);
    assert!(features.check_pkt_len && features.ct_timeout && features.meters);
    assert_eq!((features.max_vlan_headers, features.max_mpls_depth), (2, 3));
    assert_eq!(features.sample_nesting, 10);
    assert!(!features.nd_extensions && features.outlives_process);
}

/// Flows as they are put and as the kernel gives them back.
const FLOWS: &[(&str, &str)] = &[
    (
        "recirc_id(0),in_port(1),eth(src=00:00:00:00:00:01),eth_type(0x88b5)",
        "2,1",
    ),
    (
        "recirc_id(0),in_port(1),eth(),eth_type(0x8100),vlan(vid=5,pcp=0/0),\
         encap(eth_type(0x0806),arp(sip=10.0.0.1,op=1))",
        "pop_vlan,push_vlan(vid=7,pcp=0),2",
    ),
    (
        "recirc_id(0),in_port(1),eth(),eth_type(0x0800),ipv4(src=10.0.0.0/255.0.0.0,proto=6,\
         tos=0/0x3,frag=no),tcp(dst=80),tcp_flags(+syn-ack)",
        "set(eth(dst=00:00:00:00:00:09)),set(ipv4(ttl=63)),set(tcp(src=81)),2",
    ),
    (
        "recirc_id(0),in_port(1),eth(),eth_type(0x86dd),ipv6(src=fe80::/ffff::,label=0/0,proto=58,\
         frag=no),icmpv6(type=135,code=0),nd(target=::1)",
        "userspace(pid=5,slow_path(action))",
    ),
    (
        "recirc_id(0x1),ct_state(+est+trk),ct_zone(0x5),ct_mark(0x1/0xff),ct_label(0x2/0xf),\
         in_port(1),eth(),eth_type(0x0800),ipv4(proto=17,frag=no),udp(src=53)",
        "ct(commit,zone=5,mark=0x1/0xff,nat(src=10.0.0.1-10.0.0.9:1000-2000)),recirc(0x2)",
    ),
    (
        "recirc_id(0),tunnel(tun_id=0x5,src=1.1.1.1,dst=2.2.2.2,ttl=64/0,\
         geneve({class=0x102,type=0x80,len=4,0xa/0xff}),flags(-df-csum+key)),in_port(1),eth(),\
         eth_type(0x0800),ipv4(frag=no)",
        "set(tunnel(tun_id=0x6,dst=3.3.3.3,ttl=64,geneve({class=0x102,type=0x80,len=4,0xb}),\
         flags(df|key))),2",
    ),
    (
        "recirc_id(0),in_port(1),eth(),eth_type(0x8847),mpls(label=5/0xfffff,tc=0/0,ttl=0/0x0,\
         bos=1/1)",
        "pop_mpls(eth_type=0x800),2",
    ),
    (
        "recirc_id(0),in_port(1),eth(),eth_type(0x0800),ipv4(proto=132,frag=no),sctp(dst=5)",
        "sample(sample=50.0%,actions(1)),check_pkt_len(size=200,gt(1),le(2)),clone(trunc(100),2)",
    ),
];

#[test]
fn flows_come_back_as_they_were_put() {
    if skip("flows_come_back_as_they_were_put") {
        return;
    }
    let datapath = open();
    let names = PortNames::none();
    for (text, actions) in FLOWS {
        let mut flow = parse_flow(text, &names).unwrap();
        // A tunnel's time to live is part of its key, whether or not it matters.
        if text.contains("ttl=64/0") {
            flow.key.set(slot::TUN_TTL, 64);
        }
        let put = FlowPut {
            ufid: None,
            key: MiniKey::under(&flow.key, &flow.mask),
            mask: MiniKey::new(flow.mask.as_key()),
            actions: parse_actions(actions, &names).unwrap().into(),
            replace: false,
            zero_stats: false,
        };
        let put = FlowPut {
            key: if text.contains("tunnel") {
                MiniKey::new(&flow.key)
            } else {
                put.key
            },
            ..put
        };
        let ufid = datapath
            .flow_put(put.clone())
            .unwrap_or_else(|e| panic!("{text}: {e}"));
        let exists = datapath.flow_put(put.clone()).unwrap_err();
        assert!(matches!(exists, Error::Exists(_)), "{text}: {exists}");
        let found = datapath.flow_get(ufid).unwrap();
        let (key, mask) = (found.key.expand(), found.mask.expand_mask());
        let format = FlowFormat::default();
        let back = format_flow(&key, Some(&mask), &names, format);
        println!("{back}, actions:{}", format_actions(&found.actions, &names));
        assert_eq!(format_actions(&found.actions, &names), *actions, "{text}");
        assert!(
            mask.contains(&flow.mask) || text.contains("ttl=64/0"),
            "{text}\n{back}"
        );
        let replaced = FlowPut {
            actions: parse_actions("2", &names).unwrap().into(),
            replace: true,
            ..put
        };
        assert_eq!(datapath.flow_put(replaced), Ok(ufid));
        assert_eq!(
            *datapath.flow_get(ufid).unwrap().actions,
            [Action::Output(PortNo(2))]
        );
    }
    let mut dumped = 0;
    datapath.flow_dump(&mut |flow| {
        dumped += 1;
        assert_eq!(*flow.actions, [Action::Output(PortNo(2))]);
        true
    });
    assert_eq!(dumped, FLOWS.len());
    let mut ids = Vec::new();
    datapath.flow_counts(&mut |ufid, stats| {
        assert_eq!((stats.packets, stats.used), (0, None));
        ids.push(ufid);
    });
    assert_eq!(ids.len(), FLOWS.len());
    datapath.flow_del(ids[0]).unwrap();
    assert!(matches!(datapath.flow_del(ids[0]), Err(Error::NotFound(_))));
    assert_eq!(datapath.stats().flows, FLOWS.len() as u64 - 1);
    datapath.flow_flush();
    assert_eq!(datapath.stats().flows, 0);
}

fn two_ports(datapath: &KernelDatapath) -> (PortNo, PortNo) {
    for n in 1..=2 {
        veth(&format!("k{n}"), &format!("k{n}p"));
    }
    let one = datapath.port_add(&port("k1", "system")).unwrap();
    let two = datapath.port_add(&port("k2", "system")).unwrap();
    (one, two)
}

#[test]
fn packets_are_handed_over_in_every_mode() {
    if skip("packets_are_handed_over_in_every_mode") {
        return;
    }
    let datapath = open();
    let (one, two) = two_ports(&datapath);
    let handler = Arc::new(Patch {
        to: two.0,
        install: true,
        ..Patch::default()
    });
    datapath.set_handler(handler.clone());
    assert_eq!(datapath.dispatch_mode().as_deref(), Some("per-cpu"));
    let mut source = 0;
    for dispatch in [
        Dispatch::PerCpu,
        Dispatch::PerPort,
        Dispatch::Auto,
        Dispatch::PerPort,
    ] {
        datapath.set_dispatch(dispatch);
        let before = handler.count();
        let received = || datapath.port_stats(two).unwrap().tx_packets;
        let sent = received();
        source += 1;
        send("k1p", &frame(source));
        until("the packet is forwarded", || received() > sent);
        assert_eq!(handler.count(), before + 1);
        // The flow takes the next.
        until("the flow is there", || {
            datapath.stats().flows == u64::from(source)
        });
        send("k1p", &frame(source));
        until("the flow forwards", || received() > sent + 1);
        assert_eq!(handler.count(), before + 1, "{dispatch:?}");
    }
    let seen = handler.seen.lock().unwrap().clone();
    assert!(seen.iter().all(|s| *s == (one.0, 100)), "{seen:?}");
    // A port that comes while ports have sockets of their own has one, too.
    let mode = datapath.dispatch_mode();
    assert_eq!(mode.as_deref(), Some("per-port"));
    veth("k3", "k3p");
    let three = datapath.port_add(&port("k3", "system")).unwrap();
    let before = handler.count();
    send("k3p", &frame(99));
    until("a new port's packet comes", || handler.count() > before);
    datapath.port_del(three).unwrap();
    datapath.quiesce();
}

#[test]
fn what_is_there_is_taken_over() {
    if skip("what_is_there_is_taken_over") {
        return;
    }
    let first = open();
    let (one, two) = two_ports(&first);
    let tunnel = first.port_add(&port("vxlan_sys_4789", "vxlan")).unwrap();
    let left = first.port_add(&port("left", "internal")).unwrap();
    let handler = Arc::new(Patch {
        to: two.0,
        install: true,
        ..Patch::default()
    });
    first.set_handler(handler);
    first.set_dispatch(Dispatch::PerPort);
    send("k1p", &frame(1));
    until("the flow is there", || first.stats().flows == 1);
    let device = index("vxlan_sys_4789");
    drop(first);
    let second = open();
    assert_eq!(second.stats().flows, 1);
    assert_eq!(second.ports().len(), 5);
    assert_eq!(second.port_add(&port("k1", "system")), Ok(one));
    assert_eq!(second.port_add(&port("k2", "system")), Ok(two));
    assert_eq!(
        second.port_add(&port("vxlan_sys_4789", "vxlan")),
        Ok(tunnel)
    );
    assert_eq!(index("vxlan_sys_4789"), device);
    assert_eq!(second.remove_leftovers(), ["left"]);
    assert!(matches!(second.port_stats(left), Err(Error::NotFound(_))));
    // Packets come to the new process.
    let handler = Arc::new(Patch {
        to: two.0,
        ..Patch::default()
    });
    second.set_handler(handler.clone());
    send("k1p", &frame(2));
    until("the packet comes", || handler.count() == 1);
    send("k1p", &frame(1));
    assert_eq!(second.stats().flows, 1);
}

#[test]
fn a_device_that_returns_is_the_same_port() {
    if skip("a_device_that_returns_is_the_same_port") {
        return;
    }
    let linux = Arc::new(LinuxProvider::new().unwrap());
    let providers = Providers::new(vec![linux]);
    let options = Options {
        name: NAME.to_owned(),
        devices: providers.clone(),
        clock: Clock::new(),
    };
    let datapath = KernelDatapath::open(options).unwrap();
    let (one, _) = two_ports(&datapath);
    let mut routes = Routes::open().unwrap();
    routes.delete_link(LinkRef::Name("k1")).unwrap();
    let follow = || {
        providers.iter().for_each(|p| drop(p.take_events()));
        datapath.run(Instant::ZERO);
    };
    until("the port is gone", || {
        follow();
        datapath.port_stats(one).is_err()
    });
    veth("k1", "k1p");
    until("the port is back", || {
        follow();
        datapath.port_stats(one).is_ok()
    });
    datapath.port_del(one).unwrap();
}

/// Takes its time over every packet, and keeps how long those of one port took.
struct Slow {
    served: AtomicUsize,
    flooded: PortNo,
    lone: Mutex<Vec<u32>>,
}

impl UpcallHandler for Slow {
    fn upcall(
        &self,
        upcall: &Upcall<'_>,
        _now: Instant,
        back: &mut dyn FnMut(Arc<[Action]>),
    ) -> Option<NewFlow> {
        std::thread::sleep(Duration::from_micros(300));
        self.served.fetch_add(1, Ordering::Relaxed);
        if upcall.key.get(slot::IN_PORT) as u32 != self.flooded.0 {
            let number = upcall
                .packet
                .last_chunk()
                .map_or(0, |b| u32::from_be_bytes(*b));
            self.lone.lock().unwrap().push(number);
        }
        None
    }
}

#[test]
fn a_flood_costs_its_neighbours_nothing() {
    if skip("a_flood_costs_its_neighbours_nothing") {
        return;
    }
    let clock = Clock::new();
    let linux = LinuxProvider::new().unwrap();
    let options = Options {
        name: NAME.to_owned(),
        devices: Providers::new(vec![Arc::new(linux)]),
        clock: clock.clone(),
    };
    let datapath = KernelDatapath::open(options).unwrap();
    let (one, _) = two_ports(&datapath);
    let handler = Arc::new(Slow {
        served: AtomicUsize::new(0),
        flooded: one,
        lone: Mutex::default(),
    });
    datapath.set_handler(handler.clone());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = sys::packet_socket::PacketSocket::open(index("k1p")).unwrap();
            let frames: Vec<Vec<u8>> = (0..32).map(frame).collect();
            while !stop.load(Ordering::Relaxed) {
                let _ = socket.send(&frames, |f| ([0; sys::packet_socket::HEADER], f));
            }
        });
        // The flood overflows the sockets that ports share, so each gets its own.
        until("ports have sockets of their own", || {
            datapath.dispatch_mode().as_deref() == Some("per-port")
        });
        let socket = sys::packet_socket::PacketSocket::open(index("k2p")).unwrap();
        for number in 0..100u32 {
            let mut lone = frame(200);
            lone.extend(number.to_be_bytes());
            let sent = socket.send(&[lone], |f| ([0; sys::packet_socket::HEADER], f));
            assert_eq!(sent.unwrap(), 1);
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
    });
    until("the lone packets are served", || {
        handler.lone.lock().unwrap().len() >= 100
    });
    assert_eq!(
        *handler.lone.lock().unwrap(),
        (0..100).collect::<Vec<u32>>()
    );
    println!(
        "served {}, {:?}, lost {}",
        handler.served.load(Ordering::Relaxed),
        datapath.upcalls(one),
        datapath.stats().lost
    );
    assert_eq!(datapath.upcalls(PortNo(2)).map(|u| u.lost), Some(0));
    // After a minute without an overflow CPUs have the sockets again.
    until("nothing waits", || {
        let before = handler.served.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        handler.served.load(Ordering::Relaxed) == before
    });
    clock.step(Duration::from_secs(61));
    datapath.set_dispatch(Dispatch::Auto);
    assert_eq!(datapath.dispatch_mode().as_deref(), Some("per-cpu"));
    let before = handler.served.load(Ordering::Relaxed);
    send("k2p", &frame(1));
    until("a packet comes", || {
        handler.served.load(Ordering::Relaxed) > before
    });
}

#[test]
fn ports_share_sockets_when_there_are_no_descriptors_left() {
    let name = "ports_share_sockets_when_there_are_no_descriptors_left";
    if skip(name) {
        return;
    }
    let datapath = open();
    let handler = Arc::new(Patch::default());
    datapath.set_handler(handler.clone());
    datapath.set_dispatch(Dispatch::PerPort);
    veth("k1", "k1p");
    datapath.port_add(&port("k1", "system")).unwrap();
    // Everything else that is opened from here on.
    let sender = sys::packet_socket::PacketSocket::open(index("k1p")).unwrap();
    veth("k2", "k2p");
    let other = sys::packet_socket::PacketSocket::open(index("k2p")).unwrap();
    let mut hoard = Vec::new();
    let limit = sys::thread::limit_files(200).unwrap();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        hoard.push(file);
    }
    let added = datapath.port_add(&port("k2", "system"));
    hoard.clear();
    sys::thread::limit_files(limit).unwrap();
    let two = added.unwrap();
    for socket in [&sender, &other] {
        let before = handler.count();
        let sent = socket.send(&[frame(1)], |f| ([0; sys::packet_socket::HEADER], f));
        assert_eq!(sent.unwrap(), 1);
        until("a packet comes", || handler.count() > before);
    }
    // The socket stays for the other port when one goes.
    datapath.port_del(two).unwrap();
    let before = handler.count();
    sender
        .send(&[frame(1)], |f| ([0; sys::packet_socket::HEADER], f))
        .unwrap();
    until("a packet comes", || handler.count() > before);
}
