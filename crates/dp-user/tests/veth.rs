//! The datapath between hosts in network namespaces of the test's own, with flows as they stand.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use base::Clock;
use dp_api::{Datapath, FlowPut, PortSpec};
use dp_lang::PortNo;
use dp_lang::text::{PortNames, parse_actions, parse_flow};
use dp_user::{Options, UserDatapath};
use net_dev::{Provider, Providers};
use net_dev_linux::LinuxProvider;
use net_flow::MiniKey;
use net_netlink::route::LinkRef;
use net_nlsock::route::Routes;
use testkit::net::{Host, quiet_netns};
use testkit::{Need, need};

fn put(datapath: &UserDatapath, flow: &str, actions: &str) {
    let names = PortNames::none();
    let flow = parse_flow(flow, &names).unwrap();
    let put = FlowPut {
        ufid: None,
        key: MiniKey::new(&flow.key),
        mask: MiniKey::new(flow.mask.as_key()),
        actions: parse_actions(actions, &names).unwrap().into(),
        replace: false,
        zero_stats: false,
    };
    datapath.flow_put(put).unwrap();
}

#[test]
fn hosts_ping_and_send_bulk_data_through_it() {
    let name = "hosts_ping_and_send_bulk_data_through_it";
    if !need(name, &[Need::Netns, Need::Tun]) {
        return;
    }
    let switch = quiet_netns().unwrap();
    let one = Host::new(&switch, "one", Ipv4Addr::new(10, 0, 0, 1)).unwrap();
    let two = Host::new(&switch, "two", Ipv4Addr::new(10, 0, 0, 2)).unwrap();
    let mut routes = Routes::open_in(&switch).unwrap();
    let provider = Arc::new(LinuxProvider::new_in(switch).unwrap());
    let datapath = UserDatapath::open(Options {
        kind: "netdev".into(),
        name: "ovs-netdev".into(),
        devices: Providers::new(vec![provider.clone()]),
        clock: Clock::new(),
        dummy: false,
        threads: None,
    })
    .unwrap();
    assert_eq!(datapath.ports()[0].kind, "tap");
    let add = |name: &str| {
        let spec = PortSpec {
            name: name.into(),
            kind: "system".into(),
            ..PortSpec::default()
        };
        datapath.port_add(&spec)
    };
    assert_eq!(add("one"), Ok(PortNo(1)));
    assert_eq!(add("two"), Ok(PortNo(2)));
    let missing = add("three").unwrap_err();
    assert_eq!(missing.to_string(), "No such device");
    put(&datapath, "recirc_id(0),in_port(1)", "2");
    put(&datapath, "recirc_id(0),in_port(2)", "1");
    let short = Duration::from_millis(1);
    // New cables take the kernel up to a second to bring up.
    assert!(!one.ping(two.ip, 4, short).unwrap().is_empty());
    assert_eq!(one.ping(two.ip, 3, short).unwrap().len(), 3);
    let speed = one.bulk_tcp(&two, Duration::from_millis(200)).unwrap();
    assert!(speed > 0.0);
    let mut longest = 0;
    datapath.flow_dump(&mut |flow| {
        longest = longest.max(flow.stats.bytes / flow.stats.packets.max(1));
        true
    });
    assert!(
        longest > 3000,
        "packets were cut: {longest} bytes on average"
    );
    // A port that is removed lets its device go, and one that vanishes comes back.
    datapath.port_del(PortNo(2)).unwrap();
    assert!(datapath.port_device(PortNo(2)).is_err());
    assert_eq!(one.ping(two.ip, 1, short).unwrap().len(), 0);
    let add = |name: &str, number| {
        let spec = PortSpec {
            name: name.into(),
            kind: "system".into(),
            number: Some(number),
            ..PortSpec::default()
        };
        datapath.port_add(&spec)
    };
    assert_eq!(add("two", PortNo(2)), Ok(PortNo(2)));
    assert_eq!(one.ping(two.ip, 1, short).unwrap().len(), 1);
    assert!(routes.link(LinkRef::Name("ovs-netdev")).is_ok());
    provider.take_events();
    drop(datapath);
    assert!(routes.link(LinkRef::Name("ovs-netdev")).is_err());
}
