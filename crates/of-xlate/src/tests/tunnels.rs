//! Tunnel ports.

use dp_lang::text::parse_flow;
use of_wire::message::FlowModCommand;
use of_wire::text::{FlowCommand, parse_flow as parse_of_flow};

use super::*;
use crate::{
    Local, PacketTypeMode, Tunnel, TunnelConfig, TunnelCsum, TunnelKey, TunnelMatch, TunnelTable,
};

fn ip(text: &str) -> std::net::IpAddr {
    text.parse().expect("an address")
}

/// GRE to one address (1, on datapath port 8), VXLAN to any (2, on 4789), Geneve with much
/// configured (3, on 6081), GRE over IPv6 for IP packets (4, on 8), and a plain port (5, on 7).
fn configs() -> [(u32, u32, TunnelConfig); 4] {
    [
        (
            1,
            8,
            TunnelConfig {
                remote: Some(ip("1.1.1.1")),
                csum: TunnelCsum::Without,
                ..TunnelConfig::new("gre")
            },
        ),
        (
            2,
            4789,
            TunnelConfig {
                in_key: TunnelKey::Flow,
                out_key: TunnelKey::Flow,
                gbp: true,
                dst_port: 4789,
                ..TunnelConfig::new("vxlan")
            },
        ),
        (
            3,
            6081,
            TunnelConfig {
                remote: Some(ip("2.2.2.2")),
                local: Local::Address(ip("3.3.3.3")),
                in_key: TunnelKey::Value(5),
                out_key: TunnelKey::Value(6),
                tos: None,
                ttl: None,
                egress_pkt_mark: Some(7),
                csum: TunnelCsum::Enabled,
                dst_port: 6081,
                ..TunnelConfig::new("geneve")
            },
        ),
        (
            4,
            8,
            TunnelConfig {
                remote: Some(ip("fc00::1")),
                in_key: TunnelKey::Value(9),
                out_key: TunnelKey::Value(9),
                dont_fragment: false,
                csum: TunnelCsum::Without,
                mode: PacketTypeMode::LegacyL3,
                ..TunnelConfig::new("gre")
            },
        ),
    ]
}

fn view(flows: &[&str]) -> SwitchView {
    let rules = flows.iter().map(|line| {
        let command = FlowCommand::Fixed(FlowModCommand::Add);
        let flow = parse_of_flow(line, command, &net_flow::Names::default());
        let flow = flow.expect("a flow").flow;
        (0, i32::from(flow.priority), flow.matching, flow.actions)
    });
    let mut br = bridge(1, 5, &rules.collect::<Vec<Spec>>());
    let mut table = TunnelTable::default();
    for (number, vport, config) in configs() {
        let vport = dp_lang::PortNo(vport);
        let matching = TunnelMatch::new(&config, vport);
        table
            .add(matching, BridgeId(1), PortNo(number))
            .expect("a port of its own");
        port(&mut br, number, |p| {
            p.datapath = Some(vport);
            p.tunnel = Some(Tunnel {
                config: Arc::new(config),
                counters: Arc::default(),
            });
        });
    }
    port(&mut br, 5, |p| p.datapath = Some(dp_lang::PortNo(7)));
    let mut view = switch(vec![br]);
    view.datapath_ports = Arc::new([(dp_lang::PortNo(7), (BridgeId(1), PortNo(5)))].into());
    view.tunnels = Arc::new(table);
    view
}

fn sent(view: &SwitchView, flow: &str) -> Translation {
    let key = parse_flow(flow, &PortNames::none()).expect("a flow").key;
    let (_, key) = view.locate(&key).expect("a port");
    run(view, &key)
}

const FLOWS: [&str; 6] = [
    "in_port=5,udp actions=set_field:1.2.3.4->tun_dst,set_field:0x77->tun_id,set_field:3->tun_gbp_id,\
     output:1,output:2,output:3",
    "in_port=5,tcp actions=output:4,output:3,IN_PORT",
    "in_port=1 actions=IN_PORT,output:5,set_field:9.9.9.9->tun_dst,output:2",
    "in_port=2 actions=output:2,output:3",
    "in_port=3 actions=output:5,output:1",
    "in_port=4 actions=output:5,IN_PORT",
];

const FRAME: &str = "eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07),eth_type(0x0800)";

fn ipv4(proto: u8) -> String {
    let name = if proto == 6 { "tcp" } else { "udp" };
    format!(
        "ipv4(src=192.168.0.1,dst=192.168.0.2,proto={proto},tos=0x15,ttl=33,frag=no),{name}(src=8,dst=9)"
    )
}

#[test]
fn the_datapath_is_told_the_outer_header_as_the_original_tells_it() {
    let view = view(&FLOWS);
    let (udp, tcp) = (ipv4(17), ipv4(6));
    for (flow, wanted) in [
        (
            format!("in_port(7),{FRAME},{udp}"),
            "set(tunnel(dst=1.1.1.1,tos=0x1,ttl=64,flags(df))),8,\
             set(tunnel(tun_id=0x77,dst=1.2.3.4,tos=0x1,ttl=64,tp_dst=4789,\
             vxlan(gbp(id=3,flags=0)),flags(df|key))),4789,\
             set(tunnel(tun_id=0x6,src=3.3.3.3,dst=2.2.2.2,tos=0x15,ttl=33,tp_dst=6081,\
             flags(df|csum|key))),set(skb_mark(0x7)),6081",
        ),
        (
            format!("in_port(7),{FRAME},{tcp}"),
            "set(tunnel(tun_id=0x9,ipv6_dst=fc00::1,tos=0x1,ttl=64,flags(key))),pop_eth,8,\
             set(tunnel(tun_id=0x6,src=3.3.3.3,dst=2.2.2.2,tos=0x15,ttl=33,tp_dst=6081,\
             flags(df|csum|key))),push_eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07),\
             set(skb_mark(0x7)),6081,7",
        ),
        (
            format!(
                "tunnel(src=1.1.1.1,dst=4.4.4.4,tos=0x3,ttl=3,flags()),in_port(8),{FRAME},{udp}"
            ),
            "set(tunnel(dst=1.1.1.1,tos=0x2,ttl=64,flags(df))),set(ipv4(tos=0x3/0x3)),8,7,\
             set(tunnel(tun_id=0,dst=9.9.9.9,tos=0x2,ttl=64,tp_dst=4789,flags(df|key))),4789",
        ),
        (
            format!(
                "tunnel(tun_id=0x88,src=1.1.1.9,dst=4.4.4.4,ttl=3,vxlan(gbp(id=5,flags=0x1)),\
                 flags(key)),in_port(4789),{FRAME},{udp}"
            ),
            "set(tunnel(tun_id=0x6,src=3.3.3.3,dst=2.2.2.2,tos=0x15,ttl=33,tp_dst=6081,\
             flags(df|csum|key))),set(skb_mark(0x7)),6081",
        ),
        (
            format!(
                "tunnel(tun_id=0x5,src=2.2.2.2,dst=3.3.3.3,ttl=3,flags(csum|key)),\
                 in_port(6081),{FRAME},{udp}"
            ),
            "7,set(tunnel(dst=1.1.1.1,tos=0x1,ttl=64,flags(df))),8",
        ),
        (
            format!(
                "tunnel(tun_id=0x9,ipv6_src=fc00::1,ipv6_dst=fc00::5,ttl=3,flags(key)),in_port(8),\
                 packet_type(ns=1,id=0x800),eth_type(0x0800),{udp}"
            ),
            "push_eth(src=00:00:00:00:00:00,dst=00:00:00:00:00:00),7,\
             set(tunnel(tun_id=0x9,ipv6_dst=fc00::1,tos=0x1,ttl=64,flags(key))),pop_eth,8",
        ),
    ] {
        assert_eq!(actions(&sent(&view, &flow)), wanted, "{flow}");
    }
}

#[test]
fn what_told_the_port_matters_and_congestion_does() {
    let view = view(&["in_port=1 actions=output:5"]);
    let udp = ipv4(17);
    let flow = |tos: u8| {
        format!("tunnel(src=1.1.1.1,dst=4.4.4.4,tos={tos},ttl=3,flags()),in_port(8),{FRAME},{udp}")
    };
    let calm = sent(&view, &flow(0));
    assert_eq!(actions(&calm), "7");
    for slot in [slot::TUN_ID, slot::TUN_SRC, slot::TUN_DST, slot::TUN_TOS] {
        assert_eq!(calm.mask.get(slot), slot.max());
    }
    assert_eq!(calm.mask.get(slot::NW_TOS), 0);
    let congested = sent(&view, &flow(3));
    assert_eq!(actions(&congested), "set(ipv4(tos=0x3/0x3)),7");
    assert_eq!(congested.mask.get(slot::NW_TOS), 3);
    let incapable = sent(&view, &flow(3).replace("tos=0x15", "tos=0x14"));
    assert_eq!(actions(&incapable), "drop");
    assert_eq!(incapable.error, None);
    assert!(
        incapable.remarks[0]
            .text
            .starts_with("dropping tunnel packet marked ECN CE")
    );
}

#[test]
fn tunnel_ports_count_for_themselves() {
    let view = view(&["in_port=1 actions=output:5", "in_port=5 actions=output:1"]);
    let udp = ipv4(17);
    let packets = [
        format!("tunnel(src=1.1.1.1,dst=4.4.4.4,ttl=3,flags()),in_port(8),{FRAME},{udp}"),
        format!("in_port(7),{FRAME},{udp}"),
    ];
    for (packet, times) in packets.iter().zip([1, 2]) {
        for effect in sent(&view, packet).effects {
            effect.apply(times, 60 * times, Instant::ZERO);
        }
    }
    let port = view.port(BridgeId(1), PortNo(1)).expect("a port");
    let counters = &port.tunnel.as_ref().expect("a tunnel").counters;
    assert_eq!(counters.read(), [1, 60, 2, 120]);
}
