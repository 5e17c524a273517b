//! The standard match of OpenFlow 1.1 (`ofp_match`, section A.2.3).

use net_flow::types::{VLAN_CFI, eth_type, ip_proto};
use net_flow::{Match, PortNo, Slot, slot};

use crate::error::ErrorCode;
use crate::wire::{Put, Reader};

/// Bytes of the match, its type and length among them.
pub const LEN: usize = 88;

const FW_IN_PORT: u32 = 1;
const FW_DL_VLAN: u32 = 1 << 1;
const FW_DL_VLAN_PCP: u32 = 1 << 2;
const FW_DL_TYPE: u32 = 1 << 3;
const FW_NW_TOS: u32 = 1 << 4;
const FW_NW_PROTO: u32 = 1 << 5;
const FW_TP_SRC: u32 = 1 << 6;
const FW_TP_DST: u32 = 1 << 7;
const FW_MPLS_LABEL: u32 = 1 << 8;
const FW_MPLS_TC: u32 = 1 << 9;

/// The VLAN id that stands for any tag.
const VLAN_ANY: u16 = 0xfffe;
/// The VLAN id that stands for no tag.
const VLAN_NONE: u16 = 0xffff;

const ETH_MASK: u128 = 0xffff_ffff_ffff;

const DSCP: Slot = slot::NW_TOS.part(2, 6);

/// Reads the match, its type and length included.
pub fn read(bytes: &[u8]) -> Result<Match, ErrorCode> {
    let mut r = Reader::new(bytes);
    r.skip(4)?;
    let in_port = r.u32()?;
    let fw = r.u32()?;
    let (dl_src, src_mask) = (r.uint(6)?, !r.uint(6)? & ETH_MASK);
    let (dl_dst, dst_mask) = (r.uint(6)?, !r.uint(6)? & ETH_MASK);
    let (dl_vlan, pcp) = (r.u16()?, r.u8()?);
    r.skip(1)?;

    let mut m = Match::any();
    if fw & FW_IN_PORT == 0 {
        let port = PortNo::from_of11(in_port).ok_or(ErrorCode::OfpbmcBadValue)?;
        m.set(slot::IN_PORT, port.0.into());
    }
    if src_mask | dst_mask != 0 {
        m.set_masked(slot::ETH_SRC, dl_src, src_mask);
        m.set_masked(slot::ETH_DST, dl_dst, dst_mask);
        m.set_default_packet_type();
    }
    if fw & FW_DL_VLAN == 0 {
        let pcp = (fw & FW_DL_VLAN_PCP == 0).then_some(pcp);
        read_vlan(&mut m, dl_vlan, pcp)?;
    }
    let dl_type = r.u16()?;
    if fw & FW_DL_TYPE == 0 {
        m.set(slot::ETH_TYPE, dl_type.into());
        m.set_default_packet_type();
    }
    read_network(&mut m, &mut r, fw)?;
    let (label, tc) = (r.u32()?, r.u8()?);
    r.skip(3)?;
    if matches!(m.eth_type(), eth_type::MPLS | eth_type::MPLS_MULTICAST) {
        if fw & FW_MPLS_LABEL == 0 {
            m.set(MPLS_LABEL, (label & 0xf_ffff).into());
        }
        if fw & FW_MPLS_TC == 0 {
            m.set(MPLS_TC, (tc & 7).into());
        }
    }
    let (metadata, mask) = (r.u64()?, !r.u64()?);
    m.set_masked(slot::METADATA, metadata.into(), mask.into());
    Ok(m)
}

fn read_vlan(m: &mut Match, vid: u16, pcp: Option<u8>) -> Result<(), ErrorCode> {
    m.set_default_packet_type();
    let (mut tci, mut mask) = match vid {
        VLAN_NONE => {
            m.set(slot::VLAN_TCI, 0);
            return Ok(());
        }
        VLAN_ANY => (VLAN_CFI, VLAN_CFI),
        0..0x1000 => (VLAN_CFI | vid, VLAN_CFI | 0xfff),
        _ => return Err(ErrorCode::OfpbmcBadValue),
    };
    match pcp {
        Some(8..) => return Err(ErrorCode::OfpbmcBadValue),
        Some(pcp) => {
            tci |= u16::from(pcp) << 13;
            mask |= 0xe000;
        }
        None => {}
    }
    m.set_masked(slot::VLAN_TCI, tci.into(), mask.into());
    Ok(())
}

fn read_network(m: &mut Match, r: &mut Reader<'_>, fw: u32) -> Result<(), ErrorCode> {
    let (tos, proto) = (r.u8()?, r.u8()?);
    let (src, src_mask) = (r.u32()?, !r.u32()?);
    let (dst, dst_mask) = (r.u32()?, !r.u32()?);
    let (tp_src, tp_dst) = (r.u16()?, r.u16()?);
    let ty = m.eth_type();
    let ipv4 = ty == eth_type::IPV4;
    if ipv4 && fw & FW_NW_TOS == 0 {
        if tos & 3 != 0 {
            return Err(ErrorCode::OfpbmcBadValue);
        }
        m.set(DSCP, (tos >> 2).into());
    }
    if ipv4 || ty == eth_type::ARP || ty == eth_type::RARP {
        if fw & FW_NW_PROTO == 0 {
            m.set(slot::NW_PROTO, proto.into());
        }
        m.set_masked(slot::NW_SRC, src.into(), src_mask.into());
        m.set_masked(slot::NW_DST, dst.into(), dst_mask.into());
    }
    if !ipv4 {
        return Ok(());
    }
    let proto = m.key().get(slot::NW_PROTO) as u8;
    let ports = [
        (FW_TP_SRC, slot::TP_SRC, tp_src),
        (FW_TP_DST, slot::TP_DST, tp_dst),
    ];
    for (bit, slot, value) in ports {
        let largest = match proto {
            ip_proto::ICMP => 0xff,
            ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP => 0xffff,
            // Section A.2.3 says that they are ignored then.
            _ => continue,
        };
        if fw & bit == 0 {
            if value > largest {
                return Err(ErrorCode::OfpbmcBadField);
            }
            m.set(slot, value.into());
        }
    }
    Ok(())
}

const MPLS_LABEL: Slot = slot::MPLS_LSE.part(12, 20);
const MPLS_TC: Slot = slot::MPLS_LSE.part(9, 3);

/// Appends `m`, its type and length included; what that cannot say is left out.
pub fn put(out: &mut Vec<u8>, m: &Match) {
    let (key, mask) = (m.key(), m.mask());
    let wild = |slot: Slot, bit: u32| if mask.get(slot) == 0 { bit } else { 0 };
    let mut fw = wild(slot::IN_PORT, FW_IN_PORT)
        | wild(slot::ETH_TYPE, FW_DL_TYPE)
        | wild(DSCP, FW_NW_TOS)
        | wild(slot::NW_PROTO, FW_NW_PROTO)
        | wild(slot::TP_SRC, FW_TP_SRC)
        | wild(slot::TP_DST, FW_TP_DST)
        | wild(MPLS_LABEL, FW_MPLS_LABEL)
        | wild(MPLS_TC, FW_MPLS_TC);
    let tci = key.get(slot::VLAN_TCI) as u16;
    let tci_mask = mask.get(slot::VLAN_TCI) as u16;
    let (mut vid, mut pcp) = (0, 0);
    if tci_mask == 0 {
        fw |= FW_DL_VLAN | FW_DL_VLAN_PCP;
    } else if tci_mask & VLAN_CFI != 0 && tci & VLAN_CFI == 0 {
        vid = VLAN_NONE;
        fw |= FW_DL_VLAN_PCP;
    } else {
        vid = if tci_mask & 0xfff == 0 {
            VLAN_ANY
        } else {
            tci & 0xfff
        };
        if tci_mask & 0xe000 == 0 {
            fw |= FW_DL_VLAN_PCP;
        } else {
            pcp = (tci >> 13) as u8;
        }
    }
    out.u16(0);
    out.u16(LEN as u16);
    out.u32(match mask.get(slot::IN_PORT) {
        0 => 0,
        _ => key.get(slot::IN_PORT) as u32,
    });
    out.u32(fw);
    for slot in [slot::ETH_SRC, slot::ETH_DST] {
        out.uint(key.get(slot), 6);
        out.uint(!mask.get(slot) & ETH_MASK, 6);
    }
    out.u16(vid);
    out.u8(pcp);
    out.zeros(1);
    out.u16(key.get(slot::ETH_TYPE) as u16);
    out.u8((key.get(DSCP) as u8) << 2);
    out.u8(key.get(slot::NW_PROTO) as u8);
    for slot in [slot::NW_SRC, slot::NW_DST] {
        out.u32(key.get(slot) as u32);
        out.u32(!mask.get(slot) as u32);
    }
    out.u16(key.get(slot::TP_SRC) as u16);
    out.u16(key.get(slot::TP_DST) as u16);
    out.u32(key.get(MPLS_LABEL) as u32);
    out.u8(key.get(MPLS_TC) as u8);
    out.zeros(3);
    out.u64(key.get(slot::METADATA) as u64);
    out.u64(!mask.get(slot::METADATA) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_survive_the_wire() {
        let mut m = Match::any();
        m.set(slot::ETH_TYPE, eth_type::IPV4.into());
        m.set_default_packet_type();
        m.set(slot::NW_PROTO, ip_proto::TCP.into());
        m.set(slot::TP_DST, 80);
        m.set_masked(slot::NW_SRC, 0x0a00_0000, 0xff00_0000);
        m.set_masked(slot::METADATA, 5, 0xff);
        let mut bytes = Vec::new();
        put(&mut bytes, &m);
        assert_eq!(bytes.len(), LEN);
        assert_eq!(read(&bytes), Ok(m));
        for end in 0..LEN {
            assert!(read(&bytes[..end]).is_err());
        }
    }
}
