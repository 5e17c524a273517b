//! Links in a network namespace of the test's own.

use std::net::IpAddr;

use net_netlink::route::{self, Address, Link, LinkRef, VethEnd, group};
use net_nlsock::route::Routes;
use net_nlsock::{
    Answer, Completeness, EventSocket, Events, Protocol, Socket, Train, generic, port_id,
};
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

#[test]
fn a_train_brings_the_outcome_of_each_request() {
    let name = "a_train_brings_the_outcome_of_each_request";
    if !need(name, &[Need::Netns]) {
        return;
    }
    let ns = NetNs::create().unwrap();
    let open = || Socket::open(Protocol::Route);
    let mut socket = ns.run(open).unwrap().unwrap();
    let mut train = Train::new();
    let names: Vec<(String, String)> = (0..200)
        .map(|n| (format!("a{}", n % 150), format!("b{}", n % 150)))
        .collect();
    for (one, other) in &names {
        let end = |name| VethEnd {
            name,
            mac: None,
            netns: None,
        };
        let mut request = route::create_veth(&end(one), &end(other));
        train.push(&mut request).unwrap();
    }
    train
        .push(&mut route::get_link(LinkRef::Name("a7")))
        .unwrap();
    let mut outcomes = vec![None; 200];
    let mut links = Vec::new();
    socket
        .run(&mut train, |index, answer| match answer {
            Answer::Outcome(outcome) => {
                let outcome = outcome.map_err(|e| e.kind());
                assert!(outcomes[index].replace(outcome).is_none());
            }
            Answer::Message(message) => links.extend(Link::parse(message)),
        })
        .unwrap();
    assert!(train.is_empty());
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let expected = if n < 150 {
            Ok(())
        } else {
            Err(std::io::ErrorKind::AlreadyExists)
        };
        assert_eq!(outcome, Some(expected), "{n}");
    }
    assert_eq!(links.len(), 1);
    assert_eq!(links[0].name, "a7");
    // A dump as it comes, and the socket is as good as before.
    let mut count = 0;
    let whole = socket.visit(&mut route::dump_links(), |_| count += 1);
    assert_eq!(whole.unwrap(), Completeness::Whole);
    assert_eq!(count, 301);
}

#[test]
fn families_are_found_by_name() {
    let mut socket = Socket::open(Protocol::Generic).unwrap();
    let control = generic::family(&mut socket, "nlctrl").unwrap();
    assert_eq!(control.id, 16);
    assert!(control.group("notify").is_some());
    let error = generic::family(&mut socket, "no_such_family").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_ne!(port_id(&socket).unwrap(), 0);
}
