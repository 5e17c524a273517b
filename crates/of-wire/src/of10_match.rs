//! The match of OpenFlow 1.0 (`ofp_match`, section 5.2.3), and normalisation.

use net_flow::types::{VLAN_CFI, eth_type, icmpv6_type, ip_proto};
use net_flow::{Match, Names, PortNo, Slot, slot};

use crate::error::ErrorCode;
use crate::wire::{Put, Reader};

/// Bytes of an `ofp_match`.
pub const LEN: usize = 40;

const FW_IN_PORT: u32 = 1;
const FW_DL_VLAN: u32 = 1 << 1;
const FW_DL_SRC: u32 = 1 << 2;
const FW_DL_DST: u32 = 1 << 3;
const FW_DL_TYPE: u32 = 1 << 4;
const FW_NW_PROTO: u32 = 1 << 5;
const FW_TP_SRC: u32 = 1 << 6;
const FW_TP_DST: u32 = 1 << 7;
const FW_NW_SRC_SHIFT: u32 = 8;
const FW_NW_DST_SHIFT: u32 = 14;
const FW_DL_VLAN_PCP: u32 = 1 << 20;
const FW_NW_TOS: u32 = 1 << 21;
const FW_ALL: u32 = (1 << 22) - 1;

/// What OpenFlow 1.0 has as VLAN id of packets without tag.
const VLAN_NONE: u16 = 0xffff;

fn netmask(wildcards: u32, shift: u32) -> u32 {
    let bits = (wildcards >> shift) & 0x3f;
    u32::MAX.checked_shl(bits).unwrap_or(0)
}

/// Reads the bytes of an `ofp_match`, not normalised.
pub fn read(bytes: &[u8]) -> Result<Match, ErrorCode> {
    pull(&mut Reader::new(bytes))
}

pub(crate) fn pull(r: &mut Reader<'_>) -> Result<Match, ErrorCode> {
    let fw = r.u32()? & FW_ALL;
    let in_port = r.u16()?;
    let dl_src = r.uint(6)?;
    let dl_dst = r.uint(6)?;
    let dl_vlan = r.u16()?;
    let dl_vlan_pcp = r.u8()?;
    r.skip(1)?;
    let dl_type = r.u16()?;
    let nw_tos = r.u8()?;
    let nw_proto = r.u8()?;
    r.skip(2)?;
    let nw_src = r.u32()?;
    let nw_dst = r.u32()?;
    let tp_src = r.u16()?;
    let tp_dst = r.u16()?;

    let mut m = Match::any();
    let mut set = |bit: u32, slot: Slot, value: u128| {
        if fw & bit == 0 {
            m.set(slot, value);
        }
    };
    let port = PortNo::from_of10(in_port);
    set(FW_IN_PORT, slot::IN_PORT, u128::from(port.0));
    set(FW_DL_SRC, slot::ETH_SRC, dl_src);
    set(FW_DL_DST, slot::ETH_DST, dl_dst);
    set(FW_DL_TYPE, slot::ETH_TYPE, u128::from(dl_type));
    let dscp = slot::NW_TOS.part(2, 6);
    set(FW_NW_TOS, dscp, u128::from(nw_tos >> 2));
    set(FW_NW_PROTO, slot::NW_PROTO, u128::from(nw_proto));
    set(FW_TP_SRC, slot::TP_SRC, u128::from(tp_src));
    set(FW_TP_DST, slot::TP_DST, u128::from(tp_dst));
    let src_mask = netmask(fw, FW_NW_SRC_SHIFT);
    let dst_mask = netmask(fw, FW_NW_DST_SHIFT);
    m.set_masked(slot::NW_SRC, nw_src.into(), src_mask.into());
    m.set_masked(slot::NW_DST, nw_dst.into(), dst_mask.into());

    if fw & FW_DL_VLAN == 0 && dl_vlan == VLAN_NONE {
        m.set(slot::VLAN_TCI, 0);
    } else {
        let mut mask = 0u16;
        if fw & FW_DL_VLAN_PCP == 0 {
            mask |= 0xe000 | VLAN_CFI;
        }
        if fw & FW_DL_VLAN == 0 {
            mask |= 0x0fff | VLAN_CFI;
        }
        let tci = (dl_vlan & 0xfff) | (u16::from(dl_vlan_pcp) << 13) | VLAN_CFI;
        m.set_masked(slot::VLAN_TCI, tci.into(), mask.into());
    }
    let of_packet = FW_ALL & !FW_IN_PORT & !(0xfff << FW_NW_SRC_SHIFT);
    if fw & of_packet != of_packet || src_mask != 0 || dst_mask != 0 {
        m.set_default_packet_type();
    }
    Ok(m)
}

/// Appends `m` as an `ofp_match`; what that cannot say is left out.
pub fn put(out: &mut Vec<u8>, m: &Match) {
    let (key, mask) = (m.key(), m.mask());
    let wild = |slot: Slot, bit: u32| if mask.get(slot) == 0 { bit } else { 0 };
    let mut fw = wild(slot::IN_PORT, FW_IN_PORT)
        | wild(slot::ETH_TYPE, FW_DL_TYPE)
        | wild(slot::NW_PROTO, FW_NW_PROTO)
        | wild(slot::NW_TOS.part(2, 6), FW_NW_TOS)
        | wild(slot::TP_SRC, FW_TP_SRC)
        | wild(slot::TP_DST, FW_TP_DST)
        | wild(slot::ETH_SRC, FW_DL_SRC)
        | wild(slot::ETH_DST, FW_DL_DST);
    let wildcard_bits = |slot: Slot| (mask.get(slot) as u32).trailing_zeros();
    fw |= wildcard_bits(slot::NW_SRC) << FW_NW_SRC_SHIFT;
    fw |= wildcard_bits(slot::NW_DST) << FW_NW_DST_SHIFT;

    let (tci, tci_mask) = (
        key.get(slot::VLAN_TCI) as u16,
        mask.get(slot::VLAN_TCI) as u16,
    );
    let (mut dl_vlan, mut pcp) = (0, 0);
    if tci_mask == 0 {
        fw |= FW_DL_VLAN | FW_DL_VLAN_PCP;
    } else if tci_mask & VLAN_CFI != 0 && tci & VLAN_CFI == 0 {
        dl_vlan = VLAN_NONE;
    } else {
        if tci_mask & 0xfff == 0 {
            fw |= FW_DL_VLAN;
        } else {
            dl_vlan = tci & 0xfff;
        }
        if tci_mask & 0xe000 == 0 {
            fw |= FW_DL_VLAN_PCP;
        } else {
            pcp = (tci >> 13) as u8;
        }
    }
    out.u32(fw);
    out.u16(PortNo(key.get(slot::IN_PORT) as u32).to_of10());
    out.uint(key.get(slot::ETH_SRC), 6);
    out.uint(key.get(slot::ETH_DST), 6);
    out.u16(dl_vlan);
    out.u8(pcp);
    out.zeros(1);
    out.u16(key.get(slot::ETH_TYPE) as u16);
    out.u8(key.get(slot::NW_TOS) as u8 & 0xfc);
    out.u8(key.get(slot::NW_PROTO) as u8);
    out.zeros(2);
    out.u32(key.get(slot::NW_SRC) as u32);
    out.u32(key.get(slot::NW_DST) as u32);
    out.u16(key.get(slot::TP_SRC) as u16);
    out.u16(key.get(slot::TP_DST) as u16);
}

/// Drops what `m` matches in headers that the packets it demands do not have, and gives
/// the match as it was if that changed it.
pub fn normalize(m: &mut Match) -> Option<Match> {
    let packet_type = m.mask().get(slot::PACKET_TYPE);
    let ethernet = packet_type == 0 || m.has_default_packet_type();
    let exact_type = packet_type == slot::PACKET_TYPE.max();
    let by_type = m.key().get(slot::PACKET_TYPE) >> 16 == 1;
    let ty = if ethernet || (exact_type && by_type) {
        m.eth_type()
    } else {
        0
    };
    let proto = m.key().get(slot::NW_PROTO) as u8;
    let v4 = ty == eth_type::IPV4;
    let v6 = ty == eth_type::IPV6;
    let arp = ty == eth_type::ARP || ty == eth_type::RARP;
    let icmpv6 = v6 && proto == ip_proto::ICMPV6;
    let nd = |kind: u8| icmpv6 && m.key().get(slot::TP_SRC) == u128::from(kind);
    let (solicit, advert) = (nd(icmpv6_type::ND_SOLICIT), nd(icmpv6_type::ND_ADVERT));
    let ports = matches!(proto, ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP);
    let mpls = ty == eth_type::MPLS || ty == eth_type::MPLS_MULTICAST;
    let l4 = ((v4 || v6) && ports) || icmpv6 || (v4 && proto == ip_proto::ICMP);
    let allowed: [(bool, &[Slot]); 9] = [
        (ethernet, &[slot::ETH_SRC, slot::ETH_DST]),
        (v4 || arp, &[slot::NW_SRC, slot::NW_DST]),
        (l4, &[slot::TP_SRC, slot::TP_DST]),
        (v4 || v6 || arp, &[slot::NW_PROTO]),
        (v4 || v6, &[slot::NW_TOS, slot::NW_TTL]),
        (arp || solicit, &[slot::ARP_SHA]),
        (arp || advert, &[slot::ARP_THA]),
        (v6, &[slot::IPV6_SRC, slot::IPV6_DST, slot::IPV6_LABEL]),
        (solicit || advert, &[slot::ND_TARGET]),
    ];
    let before = m.clone();
    for (_, slots) in allowed.iter().filter(|(may, _)| !may) {
        for slot in *slots {
            m.clear(*slot);
        }
    }
    if !mpls {
        for slot in [slot::MPLS_LSE, slot::MPLS_LSE1, slot::MPLS_LSE2] {
            m.clear(slot);
        }
    }
    (before != *m).then_some(before)
}

/// As [`normalize`], with a line in the log about what changed.
pub fn normalize_and_log(m: &mut Match) {
    let Some(before) = normalize(m) else {
        return;
    };
    let limit = base::log::Limit {
        file: file!(),
        line: line!(),
        rate: 1,
        burst: 5,
    };
    if !base::log::admit("ofp_match", log::Level::Info, &limit) {
        return;
    }
    let print = |m: &Match| {
        let mut out = String::new();
        net_flow::text::put_match(&mut out, m, 32768, &Names::default());
        out
    };
    log::info!(target: "ofp_match", "normalization changed ofp_match, details:");
    log::info!(target: "ofp_match", " pre: {}", print(&before));
    log::info!(target: "ofp_match", "post: {}", print(m));
}

/// The text of an `ofp_match`'s bytes as they are, open fields too if `verbosity` is 2 or more.
pub fn text(bytes: &[u8], names: &Names, verbosity: u8) -> String {
    let mut out = String::new();
    // Short bytes print as nothing.
    let _ = put_text(&mut out, bytes, names, verbosity);
    if out.ends_with(',') {
        out.pop();
    }
    out
}

fn put_text(out: &mut String, bytes: &[u8], names: &Names, verbosity: u8) -> Result<(), ErrorCode> {
    let mut r = Reader::new(bytes);
    let fw = r.u32()?;
    let in_port = PortNo::from_of10(r.u16()?);
    let (dl_src, dl_dst) = (r.uint(6)? as u64, r.uint(6)? as u64);
    let (dl_vlan, dl_vlan_pcp) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let (dl_type, nw_tos, nw_proto) = (r.u16()?, r.u8()?, r.u8()?);
    r.skip(2)?;
    let (nw_src, nw_dst) = (r.u32()?, r.u32()?);
    let (tp_src, tp_dst) = (r.u16()?, r.u16()?);
    let mut put = |name: &str, wild: bool, value: &dyn Fn(&mut String)| {
        if wild && verbosity < 2 {
            return;
        }
        out.push_str(name);
        if wild {
            out.push('*');
        } else {
            value(out);
        }
        out.push(',');
    };
    let number = |n: u32| move |out: &mut String| out.push_str(&n.to_string());
    let has_proto = fw & FW_NW_PROTO == 0;
    let protocol = match (fw & FW_DL_TYPE == 0, dl_type, has_proto.then_some(nw_proto)) {
        (false, ..) => "",
        (_, eth_type::IPV4, Some(ip_proto::ICMP)) => "icmp",
        (_, eth_type::IPV4, Some(ip_proto::TCP)) => "tcp",
        (_, eth_type::IPV4, Some(ip_proto::UDP)) => "udp",
        (_, eth_type::IPV4, Some(ip_proto::SCTP)) => "sctp",
        (_, eth_type::IPV4, _) => "ip",
        (_, eth_type::ARP, _) => "arp",
        (_, eth_type::RARP, _) => "rarp",
        (_, eth_type::MPLS, _) => "mpls",
        (_, eth_type::MPLS_MULTICAST, _) => "mplsm",
        _ => "",
    };
    if !protocol.is_empty() {
        put(protocol, false, &|_| ());
    }
    let skip_proto = matches!(protocol, "icmp" | "tcp" | "udp" | "sctp");
    put("in_port=", fw & FW_IN_PORT != 0, &|out| {
        net_flow::text::value::put_port(out, in_port, names);
    });
    let vlan = fw & FW_DL_VLAN != 0;
    put("dl_vlan=", vlan, &number(u32::from(dl_vlan)));
    let pcp = fw & FW_DL_VLAN_PCP != 0;
    put("dl_vlan_pcp=", pcp, &number(u32::from(dl_vlan_pcp)));
    let mac = |mac: u64| move |out: &mut String| net_flow::text::addr::put_eth(out, mac);
    put("dl_src=", fw & FW_DL_SRC != 0, &mac(dl_src));
    put("dl_dst=", fw & FW_DL_DST != 0, &mac(dl_dst));
    if protocol.is_empty() {
        put("dl_type=", fw & FW_DL_TYPE != 0, &|out| {
            out.push_str(&format!("0x{dl_type:04x}"));
        });
    }
    for (name, ip, shift) in [
        ("nw_src=", nw_src, FW_NW_SRC_SHIFT),
        ("nw_dst=", nw_dst, FW_NW_DST_SHIFT),
    ] {
        let mask = netmask(fw, shift);
        put(name, mask == 0, &|out| {
            net_flow::text::addr::put_ipv4_masked(out, ip, mask);
        });
    }
    if !skip_proto {
        let arp = dl_type == eth_type::ARP || dl_type == eth_type::RARP;
        let name = if arp { "arp_op=" } else { "nw_proto=" };
        put(name, !has_proto, &number(u32::from(nw_proto)));
    }
    put("nw_tos=", fw & FW_NW_TOS != 0, &number(u32::from(nw_tos)));
    let icmp = nw_proto == ip_proto::ICMP;
    let (src, dst) = if icmp {
        ("icmp_type=", "icmp_code=")
    } else {
        ("tp_src=", "tp_dst=")
    };
    put(src, fw & FW_TP_SRC != 0, &number(u32::from(tp_src)));
    put(dst, fw & FW_TP_DST != 0, &number(u32::from(tp_dst)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_match;

    #[test]
    fn matches_survive_the_wire() {
        for text in [
            "in_port=1,dl_vlan=9,dl_vlan_pcp=3",
            "dl_vlan=0xffff",
            "tcp,nw_src=10.0.0.0/8,nw_tos=4,tp_dst=80",
            "dl_src=00:11:22:33:44:55,dl_type=0x1234",
            "arp,arp_spa=1.2.3.4,arp_op=1",
            "in_port=LOCAL",
        ] {
            let m = parse_match(text).unwrap();
            let mut bytes = Vec::new();
            put(&mut bytes, &m);
            assert_eq!(bytes.len(), LEN);
            assert_eq!(pull(&mut Reader::new(&bytes)).unwrap(), m, "{text}");
        }
    }

    #[test]
    fn normalisation_drops_what_cannot_be() {
        let mut m = parse_match("nw_src=1.2.3.4,tp_dst=80,in_port=1").unwrap();
        assert!(normalize(&mut m).is_some());
        let mut want = parse_match("in_port=1").unwrap();
        want.set_default_packet_type();
        assert_eq!(m, want);
        assert!(normalize(&mut m).is_none());
    }
}
