//! Golden triples of text, value and bytes; random round trips; hostile bytes.

use net_flow::compose::compose;
use net_flow::{FlowKey, FlowMask, MiniKey, slot};
use net_netlink::{AttrWriter, Attrs};
use net_packet::Packet;
use proptest::prelude::*;

use super::*;
use crate::Features;
use crate::action::{Action, Ct};
use crate::text::{FlowFormat, PortNames, format_actions, format_flow, parse_actions, parse_flow};

/// A kernel that has everything.
fn features() -> Features {
    Features {
        max_vlan_headers: 2,
        max_mpls_depth: 3,
        recirc: true,
        ct_state: true,
        ct_zone: true,
        ct_mark: true,
        ct_label: true,
        ct_orig_tuple: true,
        ct_orig_tuple6: true,
        ct_eventmask: true,
        explicit_drop: true,
        ..Features::default()
    }
}

fn key_bytes(key: &FlowKey) -> Vec<u8> {
    let mut writer = AttrWriter::new();
    encode_key(key, &features(), &mut writer);
    writer.into_bytes().unwrap()
}

fn mask_bytes(key: &FlowKey, mask: &FlowMask) -> Vec<u8> {
    let mut writer = AttrWriter::new();
    encode_mask(key, mask, &features(), &mut writer);
    writer.into_bytes().unwrap()
}

fn action_bytes(actions: &[Action]) -> Result<Vec<u8>, Error> {
    let context = ActionContext {
        features: &features(),
        pid: 0,
    };
    let mut writer = AttrWriter::new();
    encode_actions(actions, &context, &mut writer)?;
    Ok(writer.into_bytes().unwrap())
}

/// Bytes from hexadecimal text with spaces; letters other than digits separate groups.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.as_chunks::<2>().0.iter();
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Flows with the bytes of key and mask, on a machine with the lowest byte first.
#[cfg(target_endian = "little")]
const FLOWS: &[(&str, &str, &str)] = &[
    (
        "recirc_id(0),in_port(2),eth(src=00:01:02:03:04:05,dst=10:11:12:13:14:15),\
         eth_type(0x0806),arp(sip=10.0.0.1,tip=10.0.0.2/255.0.0.0,op=1)",
        // skb_priority, skb_mark, recirc_id, dp_hash, ct_state, ct_zone, ct_mark, ct_label
        "08000200 00000000  08000f00 00000000  08001400 00000000  08001300 00000000 \
         08001600 00000000  06001700 0000 0000  08001800 00000000 \
         14001900 00000000000000000000000000000000  08000300 02000000 \
         10000400 000102030405101112131415  06000600 0806 0000 \
         1c000d00 0a000001 0a000002 0001 000000000000 000000000000 0000",
        "08001400 ffffffff  08000300 ffffffff  10000400 ffffffffffffffffffffffff \
         06000600 ffff 0000  1c000d00 ffffffff ff000000 ffff 000000000000 000000000000 0000",
    ),
    (
        "skb_priority(0x1/0xf),skb_mark(0x2),recirc_id(0x3),dp_hash(0x4/0xf),\
         ct_state(+est+trk),ct_zone(0x5),ct_mark(0x6/0xff),ct_label(0x7/0xff),in_port(1),eth(),\
         eth_type(0x8100),vlan(vid=5,pcp=1),encap(eth_type(0x0800),\
         ipv4(proto=6,tos=0/0x3,frag=no),tcp(src=80/0xff00),tcp_flags(+syn))",
        "08000200 01000000  08000f00 02000000  08001400 03000000  08001300 04000000 \
         08001600 22000000  06001700 0500 0000  08001800 06000000 \
         14001900 07000000000000000000000000000000  08000300 01000000 \
         10000400 000000000000000000000000  06000600 8100 0000  06000500 3005 0000 \
         2c000100 \
         06000600 0800 0000  10000700 00000000 00000000 06 00 00 00 \
         08000900 0050 0000  06001200 0002 0000",
        "08000200 0f000000  08000f00 ffffffff  08001400 ffffffff  08001300 0f000000 \
         08001600 22000000  06001700 ffff 0000  08001800 ff000000 \
         14001900 ff000000000000000000000000000000  08000300 ffffffff \
         06000600 ffff 0000  06000500 ffff 0000 \
         2c000100 \
         06000600 ffff 0000  10000700 00000000 00000000 ff 03 00 ff \
         08000900 ff00 0000  06001200 0002 0000",
    ),
    (
        "recirc_id(0),tunnel(tun_id=0x5,src=1.2.3.4,dst=5.6.7.8,tos=0x4/0xfc,ttl=64,\
         geneve({class=0x102,type=0x80,len=4,0xa/0xff}),flags(-df+csum+key)),in_port(3),eth(),\
         eth_type(0x86dd),ipv6(src=::1/::ff,label=0x5,proto=58,frag=first),\
         icmpv6(type=135,code=0),nd(target=::2)",
        "08000200 00000000  08000f00 00000000  08001400 00000000  08001300 00000000 \
         08001600 00000000  06001700 0000 0000  08001800 00000000 \
         14001900 00000000000000000000000000000000 \
         40001000 0c000000 0000000000000005  08000100 01020304  08000200 05060708 \
         05000300 04 000000 \
         05000400 40 000000  04000600  0c000800 01028001 0000000a \
         08000300 03000000",
        "",
    ),
    (
        "recirc_id(0),in_port(1),packet_type(ns=1,id=0x800),eth_type(0x0800),ipv4(frag=no)",
        "08000200 00000000  08000f00 00000000  08001400 00000000  08001300 00000000 \
         08001600 00000000  06001700 0000 0000  08001800 00000000 \
         14001900 00000000000000000000000000000000  08000300 01000000 \
         06000600 0800 0000  10000700 00000000 00000000 00 00 00 00",
        "08001400 ffffffff  08000300 ffffffff  06000600 ffff 0000 \
         10000700 00000000 00000000 00 00 00 ff",
    ),
];

/// What the kernel's bytes say, as text.
fn text_of(key: &[u8], mask: &[u8]) -> String {
    let key = decode_key(Attrs::new(key)).unwrap();
    let mask = decode_mask(Attrs::new(mask), &key).unwrap();
    let format = FlowFormat::default();
    format_flow(&key, Some(&mask), &PortNames::none(), format)
}

/// The parts of a flow's text, sorted: a kernel's dump has them in another order.
fn parts(text: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = text.split("),").map(|p| p.trim_end_matches(')')).collect();
    parts.retain(|p| !p.starts_with("packet_type"));
    parts.sort_unstable();
    parts
}

#[test]
#[cfg(target_endian = "little")]
fn flows_as_bytes() {
    for (text, key, mask) in FLOWS {
        let flow = parse_flow(text, &PortNames::none()).unwrap();
        let bytes = key_bytes(&flow.key);
        assert!(
            bytes.starts_with(&hex(key)) || bytes == hex(key),
            "{text}\n{bytes:02x?}"
        );
        let masks = mask_bytes(&flow.key, &flow.mask);
        if !mask.is_empty() {
            assert_eq!(masks, hex(mask), "{text}");
        }
        let back = text_of(&bytes, &masks);
        assert_eq!(parts(&back), parts(text));
        assert_eq!(decode_key(Attrs::new(&bytes)).unwrap(), flow.key, "{text}");
    }
}

/// Actions with their bytes.
#[cfg(target_endian = "little")]
const ACTIONS: &[(&str, &str)] = &[
    ("2", "08000100 02000000"),
    (
        "userspace(pid=5,userdata(010203),actions,tunnel_out_port=4)",
        "20000200 08000100 05000000 07000200 010203 00 08000300 04000000 04000400",
    ),
    (
        "set(eth(src=00:01:02:03:04:05,dst=10:11:12:13:14:15))",
        "14000300 10000400 000102030405101112131415",
    ),
    (
        "set(eth(src=00:01:02:03:04:05))",
        "20000b00 1c000400 000102030405000000000000 ffffffffffff000000000000",
    ),
    (
        "set(ipv4(src=1.2.3.4,ttl=63))",
        "20000b00 1c000700 01020304 00000000 00 00 3f 00 ffffffff 00000000 00 00 ff 00",
    ),
    ("set(tcp(src=80,dst=81))", "0c000300 08000900 0050 0051"),
    ("set(skb_mark(0x5))", "0c000300 08000f00 05000000"),
    (
        "set(skb_priority(0x5/0xf))",
        "10000b00 0c000200 05000000 0f000000",
    ),
    (
        "set(mpls(label=1/0xfffff,tc=0/0,ttl=0/0x0,bos=0/0))",
        "10000b00 0c001500 00001000 fffff000",
    ),
    (
        "set(tunnel(tun_id=0x1,dst=2.2.2.2,ttl=64,flags(df|key)))",
        "28000300 24001000 0c000000 0000000000000001 08000200 02020202 05000400 40 000000 04000500",
    ),
    (
        "set(tunnel(dst=2.2.2.2,ttl=64,vxlan(gbp(id=10,flags=0xb)),flags(0)))",
        "24000300 20001000 08000200 02020202 05000400 40 000000 0c000b00 08000100 0a000b00",
    ),
    (
        "set(tunnel(dst=2.2.2.2,ttl=64,erspan(ver=2,dir=1,hwid=0x17),flags(0)))",
        "28000300 24001000 08000200 02020202 05000400 40 000000 \
         10000f00 02000000 00000000 0000 01 78",
    ),
    (
        "set(tunnel(dst=2.2.2.2,ttl=64,erspan(ver=1,idx=0x3),flags(0)))",
        "28000300 24001000 08000200 02020202 05000400 40 000000 \
         10000f00 01000000 00000003 00000000",
    ),
    (
        "push_vlan(vid=12,pcp=0),pop_vlan",
        "08000400 8100 100c 04000500",
    ),
    (
        "push_mpls(label=5,tc=1,ttl=64,bos=1,eth_type=0x8847),pop_mpls(eth_type=0x800)",
        "0c000900 00005340 8847 0000 06000a00 0800 0000",
    ),
    (
        "pop_eth,push_eth(src=00:01:02:03:04:05,dst=10:11:12:13:14:15)",
        "04000f00 10000e00 000102030405 101112131415",
    ),
    (
        "sample(sample=50.0%,actions(1))",
        "18000600 08000100 00000080 0c000200 08000100 01000000",
    ),
    (
        "recirc(0x1),hash(l4(7)),trunc(100),meter(3),ct_clear",
        "08000700 01000000 0c000800 00000000 07000000 08000d00 64000000 08001300 03000000 04001000",
    ),
    ("clone(1,2)", "14001400 08000100 01000000 08000100 02000000"),
    (
        "check_pkt_len(size=200,gt(1),le(drop))",
        "1c001500 06000100 c800 0000 0c000200 08000100 01000000 04000300",
    ),
    (
        "dec_ttl(le_1(1)),2",
        "10001700 0c000100 08000100 01000000 08000100 02000000",
    ),
    ("ct", "04000c00"),
    (
        "ct(commit,zone=5,mark=0x1/0xff,label=0x2/0xf,helper=ftp,timeout=tp,nat)",
        "54000c00 04000100 06000200 0500 0000 0c000300 01000000 ff000000 \
         24000400 02000000000000000000000000000000 0f000000000000000000000000000000 \
         08000500 66747000 07000900 747000 00 04000600",
    ),
    (
        "ct(force_commit,nat(src=10.0.0.1-10.0.0.9:1-2,random))",
        "34000c00 04000700 2c000600 04000100 08000300 0a000001 08000400 0a000009 \
         06000500 0100 0000 06000600 0200 0000 04000900",
    ),
    ("action25(01 02)", "06001900 0102 0000"),
];

#[test]
#[cfg(target_endian = "little")]
fn actions_as_bytes() {
    let names = PortNames::none();
    for (text, bytes) in ACTIONS {
        let read = decode_actions(Attrs::new(&hex(bytes))).expect(text);
        assert_eq!(format_actions(&read, &names), *text);
        assert_eq!(action_bytes(&read).unwrap(), hex(bytes), "{text}");
        if let Ok(parsed) = parse_actions(text, &names) {
            assert_eq!(action_bytes(&parsed).unwrap(), hex(bytes), "{text}");
            // Text rounds shares, and cannot tell the tunnel's unused options.
            if !text.contains("sample") {
                assert_eq!(parsed, read, "{text}");
            }
        }
    }
}

#[test]
fn drops_where_the_kernel_has_none() {
    let names = PortNames::none();
    let mut actions = parse_actions("1", &names).unwrap();
    actions.extend([Action::Drop(3), Action::Output(crate::PortNo(9))]);
    let old = Features {
        explicit_drop: false,
        ..features()
    };
    let context = ActionContext {
        features: &old,
        pid: 0,
    };
    let mut writer = AttrWriter::new();
    encode_actions(&actions, &context, &mut writer).unwrap();
    let back = decode_actions(Attrs::new(&writer.into_bytes().unwrap())).unwrap();
    assert_eq!(format_actions(&back, &names), "1");
}

#[test]
fn actions_that_no_kernel_has_are_named() {
    let error = action_bytes(&[Action::TunnelPop(crate::PortNo(1))]).unwrap_err();
    assert_eq!(error.to_string(), "the kernel has no tnl_pop action");
}

#[test]
fn sockets_and_event_masks_are_filled_in() {
    let names = PortNames::none();
    let actions = parse_actions("userspace(pid=0,slow_path(bfd)),ct(commit)", &names).unwrap();
    let mut actions = actions;
    if let Action::Ct(ct) = &mut actions[1] {
        **ct = Ct {
            commit: true,
            eventmask: Some(0x706),
            ..Ct::default()
        };
    }
    let context = ActionContext {
        features: &features(),
        pid: 77,
    };
    let mut writer = AttrWriter::new();
    encode_actions(&actions, &context, &mut writer).unwrap();
    let back = decode_actions(Attrs::new(&writer.into_bytes().unwrap())).unwrap();
    assert_eq!(
        format_actions(&back, &names),
        "userspace(pid=77,slow_path(bfd)),ct(commit)"
    );
    assert_eq!(back[1], actions[1]);
}

#[test]
fn what_says_that_a_header_is_there_matters_with_it() {
    let names = PortNames::none();
    let text = "in_port(1),eth_type(0x86dd/0),ipv6(proto=58/0),icmpv6(type=135/0,code=0/0),\
                nd(target=::1)";
    let flow = parse_flow(text, &names).unwrap();
    let tight = tighten(&flow.key, &flow.mask);
    for slot in [slot::ETH_TYPE, slot::NW_PROTO, slot::TP_SRC, slot::TP_DST] {
        assert_eq!(tight.get(slot), slot.max());
    }
    assert!(tight.contains(&flow.mask));
    assert!(!unmatchable(&flow.key, &flow.mask, &features()));
}

#[test]
fn what_the_kernel_cannot_match_is_told() {
    let names = PortNames::none();
    let yes = |text: &str, features: &Features| {
        let flow = parse_flow(text, &names).unwrap();
        unmatchable(&flow.key, &flow.mask, features)
    };
    let old = Features {
        max_mpls_depth: 1,
        ..features()
    };
    let igmp = |mask: u128| {
        let mut flow = parse_flow("eth_type(0x0800),ipv4(proto=2)", &names).unwrap();
        flow.key.set(slot::TP_SRC, 0x16);
        flow.mask.set(slot::TP_SRC, mask);
        unmatchable(&flow.key, &flow.mask, &old)
    };
    assert!(igmp(0xffff) && !igmp(0));
    let two = "eth_type(0x8847),mpls(label=1,tc=0,ttl=1,bos=0,label=2,tc=0,ttl=1,bos=1)";
    let one = "eth_type(0x8847),mpls(label=1,tc=0,ttl=1,bos=1)";
    assert!(yes(two, &old) && !yes(two, &features()) && !yes(one, &old));
}

#[test]
fn a_tag_that_was_cut_short() {
    // One tag was read of two: what follows it is the type of the next.
    let names = PortNames::none();
    let text = "in_port(1),eth_type(0x88a8),vlan(vid=1,pcp=0),encap(eth_type(0x8100))";
    let flow = parse_flow(text, &names).unwrap();
    let bytes = key_bytes(&flow.key);
    assert_eq!(decode_key(Attrs::new(&bytes)).unwrap(), flow.key);
}

/// A key that some packet has.
fn key_of(seed: &[u8]) -> FlowKey {
    let mut packet = Packet::from_frame(seed);
    let mut key = FlowKey::new();
    key.set(slot::IN_PORT, 1);
    net_flow::extract(&mut packet, &mut key, 2);
    key
}

/// Fields that no attribute carries.
fn known(mut key: FlowKey) -> FlowKey {
    let ethertype = key.get(slot::ETH_TYPE) as u16;
    let is_ip = [0x0800, 0x86dd].contains(&ethertype);
    if is_ip && header::transport(&key).is_empty() {
        for slot in [slot::TP_SRC, slot::TP_DST, slot::TCP_FLAGS] {
            key.set(slot, 0);
        }
    }
    key.set(slot::IGMP_GROUP, 0);
    if key.get(slot::NW_PROTO) == 58 {
        key.set(slot::TCP_FLAGS, 0);
    }
    if !header::transport(&key).iter().any(|l| l.kind == attr::ND) && ethertype == 0x86dd {
        for slot in [slot::ARP_SHA, slot::ARP_THA] {
            key.set(slot, 0);
        }
        key.set(slot::ND_TARGET, 0);
    }
    // Entries below the bottom of a label stack are not told.
    for entry in &header::LABELS[header::labels(&key)..] {
        key.set(*entry, 0);
    }
    // The second protocol header of a stack of labels is not looked at.
    key
}

proptest! {
    #[test]
    fn keys_of_packets_go_there_and_back(
        flow in proptest::sample::select(FLOWS.iter().map(|f| f.0).collect::<Vec<_>>()),
        noise in proptest::collection::vec((0usize..200, any::<u8>()), 0..12),
        port in 1u32..100,
    ) {
        let flow = parse_flow(flow, &PortNames::none()).unwrap();
        let mut frame = compose(&flow.key, 100);
        for (at, byte) in noise {
            let len = frame.len();
            frame[at % len] = byte;
        }
        let mut key = known(key_of(&frame));
        key.set(slot::IN_PORT, u128::from(port));
        let back = decode_key(Attrs::new(&key_bytes(&key))).unwrap();
        prop_assert_eq!(&back, &key);
        // A mask of whole words that the key has comes back no wider.
        let mut mask = FlowMask::new();
        for (word, _) in key.iter() {
            mask.set_word(word, u64::MAX);
        }
        let wanted = tighten(&key, &mask);
        let back = decode_mask(Attrs::new(&mask_bytes(&key, &mask)), &key).unwrap();
        let under = MiniKey::under(&key, &wanted);
        prop_assert_eq!(MiniKey::under(&key, &back).expand(), under.expand());
    }

    #[test]
    fn hostile_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let attrs = Attrs::new(&bytes);
        if let Ok(key) = decode_key(attrs) {
            let _ = decode_mask(attrs, &key);
            let _ = key_bytes(&key);
        }
        if let Ok(actions) = decode_actions(attrs) {
            let _ = format_actions(&actions, &PortNames::none());
            let _ = action_bytes(&actions);
        }
        let _ = decode_cookie(&bytes);
    }

    #[test]
    fn damaged_bytes_are_survived(
        flow in proptest::sample::select(FLOWS.iter().map(|f| f.1).collect::<Vec<_>>()),
        action in proptest::sample::select(ACTIONS.iter().map(|a| a.1).collect::<Vec<_>>()),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        for text in [flow, action] {
            let mut bytes = hex(text);
            for (at, byte) in &damage {
                let len = bytes.len();
                bytes[at % len] = *byte;
            }
            let attrs = Attrs::new(&bytes);
            if let Ok(key) = decode_key(attrs) {
                let _ = decode_mask(attrs, &key);
                let _ = format_flow(&key, None, &PortNames::none(), FlowFormat::default());
                let _ = key_bytes(&key);
            }
            if let Ok(actions) = decode_actions(attrs) {
                let _ = format_actions(&actions, &PortNames::none());
                let _ = action_bytes(&actions);
            }
        }
    }
}
