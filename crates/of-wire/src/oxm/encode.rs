//! Writing matches as OXM or NXM, fields in the order of `ovs-ofctl`.

use super::{Field, Match, PortNo, Put, eth_type, icmpv6_type, ip_proto, neighbour_kind, slot};
use net_flow::text::subfield::preferred_oxm;
use net_flow::{OxmId, Prereq};

/// Appends the header of `field`; `mask` says whether a mask follows, `bytes` the width.
pub(crate) fn put_header(out: &mut Vec<u8>, id: &OxmId, mask: bool, bytes: u8) {
    let exp = if id.class == 0xffff { 4 } else { 0 };
    let len = u32::from(bytes) * if mask { 2 } else { 1 } + exp;
    let has_mask = if mask { 0x100 } else { 0 };
    out.u32((u32::from(id.class) << 16) | (u32::from(id.field) << 9) | has_mask | len);
    if exp != 0 {
        out.u32(id.experimenter);
    }
}

/// Appends the header of `field` as actions have it: no mask, Nicira's where there is a choice.
pub(crate) fn put_action_header(out: &mut Vec<u8>, field: Field) {
    if let Some(id) = preferred_oxm(field, 0) {
        put_header(out, id, false, field.info().bytes);
    }
}

/// Nicira's 32-bit header of `field`, 0 if it has none.
pub(crate) fn nxm_header(field: Field) -> u32 {
    match preferred_oxm(field, 0) {
        Some(id) if id.class != 0xffff => {
            (u32::from(id.class) << 16) | (u32::from(id.field) << 9) | u32::from(field.info().bytes)
        }
        _ => 0,
    }
}

/// Appends an entry; nothing if the field has no code point.
pub(crate) fn put_entry(out: &mut Vec<u8>, field: Field, version: u8, value: u128, mask: u128) {
    let Some(id) = preferred_oxm(field, version) else {
        return;
    };
    let bytes = field.info().bytes;
    let masked = mask != field.full_mask();
    put_header(out, id, masked, bytes);
    out.uint(value, usize::from(bytes));
    if masked {
        out.uint(mask, usize::from(bytes));
    }
}

struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    m: &'a Match,
    version: u8,
    implied_ethernet: bool,
}

/// Appends the entries of `m`: OXM of OpenFlow `version` on the wire, or NXM for 0, then
/// Nicira's cookie entry if `cookie_mask` is not 0.
pub fn put_match(out: &mut Vec<u8>, m: &Match, version: u8, cookie: u64, cookie_mask: u64) {
    let start = out.len();
    let mut e = Encoder {
        out,
        m,
        version,
        implied_ethernet: false,
    };
    e.all();
    let implied = e.implied_ethernet;
    if cookie_mask != 0 {
        let masked = cookie_mask != u64::MAX;
        let id = OxmId {
            class: 1,
            experimenter: 0,
            field: super::COOKIE.1,
            version: 0,
        };
        put_header(out, &id, masked, 8);
        out.u64(cookie & cookie_mask);
        if masked {
            out.u64(cookie_mask);
        }
    }
    if m.has_default_packet_type() && !implied {
        let mut head = Vec::new();
        put_entry(&mut head, Field::PacketType, version, 0, 0xffff_ffff);
        out.splice(start..start, head);
    }
}

impl Encoder<'_> {
    /// The field under whatever mask it has.
    fn field(&mut self, field: Field) {
        if let Some((value, mask)) = self.m.field(field)
            && mask != 0
        {
            self.put(field, value, mask);
        }
    }

    /// The field exactly, if anything of it is matched.
    fn exact(&mut self, field: Field) {
        if let Some((value, mask)) = self.m.field(field)
            && mask != 0
        {
            self.put(field, value, field.full_mask());
        }
    }

    fn put(&mut self, field: Field, value: u128, mask: u128) {
        put_entry(self.out, field, self.version, value, mask);
        self.implied_ethernet |= field.info().prereq != Prereq::None;
    }

    fn fields(&mut self, fields: &[Field]) {
        for field in fields {
            self.field(*field);
        }
    }

    fn all(&mut self) {
        let packet_type = self.m.mask().get(slot::PACKET_TYPE);
        if packet_type != 0 && !self.m.has_default_packet_type() {
            self.field(Field::PacketType);
        }
        self.field(Field::DpHash);
        self.exact(Field::RecircId);
        self.exact(Field::ConjId);
        if let Some(port) = super::in_port(self.m) {
            self.in_port(port);
        }
        self.exact(Field::ActsetOutput);
        self.fields(&[Field::EthSrc, Field::EthDst, Field::EthType]);
        self.vlan();
        match self.m.eth_type() {
            eth_type::MPLS | eth_type::MPLS_MULTICAST => {
                self.exact(Field::MplsTc);
                self.exact(Field::MplsBos);
                self.exact(Field::MplsTtl);
                self.exact(Field::MplsLabel);
            }
            eth_type::IPV4 | eth_type::IPV6 => self.ip(),
            eth_type::ARP | eth_type::RARP => {
                self.exact(Field::ArpOp);
                self.fields(&[Field::ArpSpa, Field::ArpTpa, Field::ArpSha, Field::ArpTha]);
            }
            _ => {}
        }
        self.tunnel();
        self.fields(&[
            Field::NshFlags,
            Field::NshTtl,
            Field::NshMdtype,
            Field::NshNp,
            Field::NshSpi,
            Field::NshSi,
            Field::NshC1,
            Field::NshC2,
            Field::NshC3,
            Field::NshC4,
        ]);
        self.registers();
        self.field(Field::PktMark);
        self.conntrack();
        self.field(Field::Metadata);
    }

    fn in_port(&mut self, port: PortNo) {
        let (field, value) = if self.version != 0 {
            (Field::InPortOxm, u128::from(port.0))
        } else {
            (Field::InPort, u128::from(port.to_of10()))
        };
        self.put(field, value, field.full_mask());
    }

    fn vlan(&mut self) {
        if self.version == 0 {
            self.field(Field::VlanTci);
            return;
        }
        let tci = self.m.key().get(slot::VLAN_TCI);
        let mask = self.m.mask().get(slot::VLAN_TCI);
        let vid = tci & 0x1fff;
        match mask & 0x1fff {
            0 => {}
            0x1fff => self.put(Field::VlanVid, vid, 0xffff),
            part => self.put(Field::VlanVid, vid, part),
        }
        if vid != 0 && mask & 0xe000 != 0 {
            self.put(Field::VlanPcp, tci >> 13, 0xff);
        }
    }

    fn ip(&mut self) {
        let v4 = self.m.eth_type() == eth_type::IPV4;
        if v4 {
            self.fields(&[Field::Ipv4Src, Field::Ipv4Dst]);
        } else {
            self.fields(&[Field::Ipv6Src, Field::Ipv6Dst]);
        }
        let frag = self.m.mask().get(slot::NW_FRAG) & 3;
        if frag != 0 {
            let value = self.m.key().get(slot::NW_FRAG) & 3;
            let mask = if frag == 3 { 0xff } else { frag };
            self.put(Field::IpFrag, value, mask);
        }
        let (tos, tos_mask) = (
            self.m.key().get(slot::NW_TOS),
            self.m.mask().get(slot::NW_TOS),
        );
        if tos_mask & 0xfc != 0 {
            if self.version != 0 {
                self.put(Field::IpDscp, tos >> 2, 0xff);
            } else {
                self.put(Field::IpTos, tos & 0xfc, 0xff);
            }
        }
        if tos_mask & 3 != 0 {
            self.put(Field::IpEcn, tos & 3, 0xff);
        }
        self.exact(Field::IpTtl);
        self.field(Field::Ipv6Label);
        if self.m.mask().get(slot::NW_PROTO) == 0 {
            return;
        }
        self.exact(Field::IpProto);
        match (v4, self.m.key().get(slot::NW_PROTO) as u8) {
            (_, ip_proto::TCP) => {
                self.fields(&[Field::TcpSrc, Field::TcpDst, Field::TcpFlags]);
            }
            (_, ip_proto::UDP) => self.fields(&[Field::UdpSrc, Field::UdpDst]),
            (_, ip_proto::SCTP) => self.fields(&[Field::SctpSrc, Field::SctpDst]),
            (true, ip_proto::ICMP) => {
                self.exact(Field::IcmpType);
                self.exact(Field::IcmpCode);
            }
            (false, ip_proto::ICMPV6) => self.icmpv6(),
            _ => {}
        }
    }

    fn icmpv6(&mut self) {
        self.exact(Field::Icmpv6Type);
        self.exact(Field::Icmpv6Code);
        let Some(kind) = neighbour_kind(self.m) else {
            return;
        };
        self.exact(Field::NdReserved);
        self.field(Field::NdTarget);
        self.exact(Field::NdOptionsType);
        if kind == icmpv6_type::ND_SOLICIT {
            self.field(Field::NdSll);
        } else {
            self.field(Field::NdTll);
        }
    }

    fn tunnel(&mut self) {
        self.field(Field::TunId);
        let flags = self.m.mask().get(slot::TUN_FLAGS);
        if flags != 0 {
            // The original's mask has only the public flags, so it is never exact.
            let value = self.m.key().get(slot::TUN_FLAGS);
            self.put(Field::TunFlags, value, flags);
        }
        self.fields(&[
            Field::TunSrc,
            Field::TunDst,
            Field::TunIpv6Src,
            Field::TunIpv6Dst,
            Field::TunGbpId,
            Field::TunGbpFlags,
            Field::TunErspanIdx,
            Field::TunErspanVer,
            Field::TunErspanDir,
            Field::TunErspanHwid,
            Field::TunGtpuFlags,
            Field::TunGtpuMsgtype,
        ]);
    }

    fn registers(&mut self) {
        let xregs = self.version >= 6;
        let (first, count) = if xregs {
            (Field::Xreg0, 16)
        } else {
            (Field::Reg0, 32)
        };
        let map = self.m.mask().map();
        if map >> slot::reg(0).word & 0xffff == 0 {
            return;
        }
        for field in &Field::all()[first as usize..first as usize + count] {
            self.field(*field);
        }
    }

    fn conntrack(&mut self) {
        let map = self.m.mask().map();
        let words = [slot::CT_STATE.word, slot::CT_MARK.word, slot::CT_LABEL.word];
        let early = words.iter().any(|w| map >> w & 3 != 0);
        if !early && map >> slot::CT_NW_SRC.word & 0x3f == 0 {
            return;
        }
        self.fields(&[
            Field::CtState,
            Field::CtZone,
            Field::CtMark,
            Field::CtLabel,
            Field::CtNwSrc,
            Field::CtIpv6Src,
            Field::CtNwDst,
            Field::CtIpv6Dst,
        ]);
        if self.m.key().get(slot::CT_NW_PROTO) != 0 {
            self.fields(&[Field::CtNwProto, Field::CtTpSrc, Field::CtTpDst]);
        }
    }
}

/// Appends the header of `field` in OpenFlow `version` on the wire; nothing if it has none.
pub(crate) fn put_field_header(out: &mut Vec<u8>, field: Field, version: u8, masked: bool) {
    if let Some(id) = preferred_oxm(field, version) {
        put_header(out, id, masked, field.info().bytes);
    }
}
