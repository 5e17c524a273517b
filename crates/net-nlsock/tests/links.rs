//! Links in a network namespace of the test's own.

use std::net::IpAddr;

use net_netlink::route::{Address, LinkRef, VethEnd, group};
use net_nlsock::route::Routes;
use net_nlsock::{EventSocket, Events, Protocol};
use sys::netns::NetNs;
use testkit::{Need, need};

#[test]
fn a_veth_pair_is_made_changed_and_deleted() {
    if !need("a_veth_pair_is_made_changed_and_deleted", &[Need::Netns]) {
        return;
    }
    let ns = NetNs::create().unwrap();
    let mut routes = Routes::open_in(&ns).unwrap();
    let listen = || EventSocket::open(Protocol::Route, &[group::LINK]);
    let mut events = ns.run(listen).unwrap().unwrap();
    let end = |name, mac| VethEnd {
        name,
        mac,
        netns: None,
    };
    let mac = [2, 0, 0, 0, 0, 7];
    let (one, other) = (end("one", Some(mac)), end("other", None));
    routes.create_veth(&one, &other).unwrap();
    let again = routes.create_veth(&one, &other).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    routes.set_mtu(LinkRef::Name("one"), 1400).unwrap();
    routes.set_up(LinkRef::Name("one"), true).unwrap();
    routes.set_up(LinkRef::Name("other"), true).unwrap();
    let link = routes.link(LinkRef::Name("one")).unwrap();
    assert_eq!((link.mac, link.mtu), (Some(mac), 1400));
    assert_eq!((link.kind.as_str(), link.has_carrier()), ("veth", true));
    assert!(link.stats.is_some());
    assert_eq!(routes.stats(link.index).unwrap().tx_dropped, 0);
    let address = Address {
        index: link.index,
        ip: "10.9.8.7".parse::<IpAddr>().unwrap(),
        prefix: 24,
    };
    routes.add_address(&address).unwrap();
    assert!(routes.addresses().unwrap().contains(&address));
    let inner = NetNs::create().unwrap();
    routes.set_netns(LinkRef::Name("other"), &inner).unwrap();
    let names = |routes: &mut Routes| -> Vec<String> {
        let links = routes.links().unwrap();
        links.into_iter().map(|l| l.name).collect()
    };
    assert_eq!(names(&mut routes), ["lo", "one"]);
    let mut inside = Routes::open_in(&inner).unwrap();
    assert_eq!(names(&mut inside), ["lo", "other"]);
    inside.delete_link(LinkRef::Name("other")).unwrap();
    assert_eq!(names(&mut routes), ["lo"]);
    let mut seen = 0;
    let outcome = events.read(|_| seen += 1).unwrap();
    assert_eq!(outcome, Events::Complete);
    assert!(seen > 4, "{seen} events");
    let missing = routes.link(LinkRef::Name("one")).unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(19));
}
