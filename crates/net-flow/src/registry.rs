//! The table of fields.  Each row: the field's name here, its name and alias in text, its
//! width in bits and bytes, its slot, which masks are allowed, its prerequisite, whether
//! it may be written, its format, and its code points as (class, experimenter, number,
//! first version).

use crate::field::Access::{ReadOnly, ReadWrite};
use crate::field::Maskable::{Bitwise, No};
use crate::field::{FieldInfo, Format, OxmId, Prereq};
use crate::slot;

macro_rules! fields {
    ($($id:ident $name:literal $alias:literal $bits:literal $bytes:literal [$slot:expr] $mask:ident
       $prereq:ident $access:ident $format:ident { $(($class:literal, $exp:literal, $num:literal, $version:literal)),* };)*) => {
        /// A field that matches and actions can name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Field {
            $(#[doc = concat!("The field `", $name, "`.")] $id,)*
        }

        pub(crate) const ALL: &[Field] = &[$(Field::$id),*];

        pub(crate) static FIELDS: &[FieldInfo] = &[$(FieldInfo {
            name: $name,
            alias: $alias,
            bits: $bits,
            bytes: $bytes,
            slot: $slot,
            maskable: $mask,
            prereq: Prereq::$prereq,
            access: $access,
            format: Format::$format,
            oxm: &[$(OxmId { class: $class, experimenter: $exp, field: $num, version: $version }),*],
        }),*];
    };
}

fields! {
    DpHash "dp_hash" "" 32 4 [Some(slot::DP_HASH)] Bitwise None ReadOnly Hexadecimal { (0x0001, 0x0, 35, 1), (0xffff, 0x2320, 0, 1) };
    RecircId "recirc_id" "" 32 4 [Some(slot::RECIRC_ID)] No None ReadOnly Decimal { (0x0001, 0x0, 36, 1) };
    PacketType "packet_type" "" 32 4 [Some(slot::PACKET_TYPE)] No None ReadOnly PacketType { (0x8000, 0x0, 44, 6) };
    ConjId "conj_id" "" 32 4 [Some(slot::CONJ_ID)] No None ReadOnly Decimal { (0x0001, 0x0, 37, 1) };
    TunId "tun_id" "tunnel_id" 64 8 [Some(slot::TUN_ID)] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 16, 1), (0x8000, 0x0, 38, 4) };
    TunSrc "tun_src" "" 32 4 [Some(slot::TUN_SRC)] Bitwise None ReadWrite Ipv4 { (0x0001, 0x0, 31, 1) };
    TunDst "tun_dst" "" 32 4 [Some(slot::TUN_DST)] Bitwise None ReadWrite Ipv4 { (0x0001, 0x0, 32, 1) };
    TunIpv6Src "tun_ipv6_src" "" 128 16 [Some(slot::TUN_IPV6_SRC)] Bitwise None ReadWrite Ipv6 { (0x0001, 0x0, 109, 1) };
    TunIpv6Dst "tun_ipv6_dst" "" 128 16 [Some(slot::TUN_IPV6_DST)] Bitwise None ReadWrite Ipv6 { (0x0001, 0x0, 110, 1) };
    TunFlags "tun_flags" "" 1 2 [Some(slot::TUN_FLAGS.part(0, 1))] Bitwise None ReadWrite TunnelFlags { (0x0001, 0x0, 104, 1) };
    TunTtl "tun_ttl" "" 8 1 [Some(slot::TUN_TTL)] No None ReadOnly Decimal {  };
    TunTos "tun_tos" "" 8 1 [Some(slot::TUN_TOS)] No None ReadOnly Decimal {  };
    TunGbpId "tun_gbp_id" "" 16 2 [Some(slot::TUN_GBP_ID)] Bitwise None ReadWrite Decimal { (0x0001, 0x0, 38, 1) };
    TunGbpFlags "tun_gbp_flags" "" 8 1 [Some(slot::TUN_GBP_FLAGS)] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 39, 1) };
    TunErspanIdx "tun_erspan_idx" "" 20 4 [Some(slot::TUN_ERSPAN_IDX)] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 11, 1) };
    TunErspanVer "tun_erspan_ver" "" 4 1 [Some(slot::TUN_ERSPAN_VER)] Bitwise None ReadWrite Decimal { (0xffff, 0x2320, 12, 1) };
    TunErspanDir "tun_erspan_dir" "" 1 1 [Some(slot::TUN_ERSPAN_DIR)] Bitwise None ReadWrite Decimal { (0xffff, 0x2320, 13, 1) };
    TunErspanHwid "tun_erspan_hwid" "" 6 1 [Some(slot::TUN_ERSPAN_HWID)] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 14, 1) };
    TunGtpuFlags "tun_gtpu_flags" "" 8 1 [Some(slot::TUN_GTPU_FLAGS)] Bitwise None ReadOnly Hexadecimal { (0xffff, 0x2320, 15, 1) };
    TunGtpuMsgtype "tun_gtpu_msgtype" "" 8 1 [Some(slot::TUN_GTPU_MSGTYPE)] Bitwise None ReadOnly Decimal { (0xffff, 0x2320, 16, 1) };
    TunMetadata0 "tun_metadata0" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 40, 1) };
    TunMetadata1 "tun_metadata1" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 41, 1) };
    TunMetadata2 "tun_metadata2" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 42, 1) };
    TunMetadata3 "tun_metadata3" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 43, 1) };
    TunMetadata4 "tun_metadata4" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 44, 1) };
    TunMetadata5 "tun_metadata5" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 45, 1) };
    TunMetadata6 "tun_metadata6" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 46, 1) };
    TunMetadata7 "tun_metadata7" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 47, 1) };
    TunMetadata8 "tun_metadata8" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 48, 1) };
    TunMetadata9 "tun_metadata9" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 49, 1) };
    TunMetadata10 "tun_metadata10" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 50, 1) };
    TunMetadata11 "tun_metadata11" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 51, 1) };
    TunMetadata12 "tun_metadata12" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 52, 1) };
    TunMetadata13 "tun_metadata13" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 53, 1) };
    TunMetadata14 "tun_metadata14" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 54, 1) };
    TunMetadata15 "tun_metadata15" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 55, 1) };
    TunMetadata16 "tun_metadata16" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 56, 1) };
    TunMetadata17 "tun_metadata17" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 57, 1) };
    TunMetadata18 "tun_metadata18" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 58, 1) };
    TunMetadata19 "tun_metadata19" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 59, 1) };
    TunMetadata20 "tun_metadata20" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 60, 1) };
    TunMetadata21 "tun_metadata21" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 61, 1) };
    TunMetadata22 "tun_metadata22" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 62, 1) };
    TunMetadata23 "tun_metadata23" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 63, 1) };
    TunMetadata24 "tun_metadata24" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 64, 1) };
    TunMetadata25 "tun_metadata25" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 65, 1) };
    TunMetadata26 "tun_metadata26" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 66, 1) };
    TunMetadata27 "tun_metadata27" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 67, 1) };
    TunMetadata28 "tun_metadata28" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 68, 1) };
    TunMetadata29 "tun_metadata29" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 69, 1) };
    TunMetadata30 "tun_metadata30" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 70, 1) };
    TunMetadata31 "tun_metadata31" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 71, 1) };
    TunMetadata32 "tun_metadata32" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 72, 1) };
    TunMetadata33 "tun_metadata33" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 73, 1) };
    TunMetadata34 "tun_metadata34" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 74, 1) };
    TunMetadata35 "tun_metadata35" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 75, 1) };
    TunMetadata36 "tun_metadata36" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 76, 1) };
    TunMetadata37 "tun_metadata37" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 77, 1) };
    TunMetadata38 "tun_metadata38" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 78, 1) };
    TunMetadata39 "tun_metadata39" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 79, 1) };
    TunMetadata40 "tun_metadata40" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 80, 1) };
    TunMetadata41 "tun_metadata41" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 81, 1) };
    TunMetadata42 "tun_metadata42" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 82, 1) };
    TunMetadata43 "tun_metadata43" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 83, 1) };
    TunMetadata44 "tun_metadata44" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 84, 1) };
    TunMetadata45 "tun_metadata45" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 85, 1) };
    TunMetadata46 "tun_metadata46" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 86, 1) };
    TunMetadata47 "tun_metadata47" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 87, 1) };
    TunMetadata48 "tun_metadata48" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 88, 1) };
    TunMetadata49 "tun_metadata49" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 89, 1) };
    TunMetadata50 "tun_metadata50" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 90, 1) };
    TunMetadata51 "tun_metadata51" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 91, 1) };
    TunMetadata52 "tun_metadata52" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 92, 1) };
    TunMetadata53 "tun_metadata53" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 93, 1) };
    TunMetadata54 "tun_metadata54" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 94, 1) };
    TunMetadata55 "tun_metadata55" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 95, 1) };
    TunMetadata56 "tun_metadata56" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 96, 1) };
    TunMetadata57 "tun_metadata57" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 97, 1) };
    TunMetadata58 "tun_metadata58" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 98, 1) };
    TunMetadata59 "tun_metadata59" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 99, 1) };
    TunMetadata60 "tun_metadata60" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 100, 1) };
    TunMetadata61 "tun_metadata61" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 101, 1) };
    TunMetadata62 "tun_metadata62" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 102, 1) };
    TunMetadata63 "tun_metadata63" "" 992 124 [None] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 103, 1) };
    Metadata "metadata" "" 64 8 [Some(slot::METADATA)] Bitwise None ReadWrite Hexadecimal { (0x8000, 0x0, 2, 3) };
    InPort "in_port" "" 16 2 [Some(slot::IN_PORT)] No None ReadWrite Port10 { (0x0000, 0x0, 0, 1) };
    InPortOxm "in_port_oxm" "" 32 4 [Some(slot::IN_PORT)] No None ReadWrite Port { (0x8000, 0x0, 0, 3) };
    ActsetOutput "actset_output" "" 32 4 [Some(slot::ACTSET_OUTPUT)] No None ReadOnly Port { (0xffff, 0x4f4e4600, 43, 4), (0x8000, 0x0, 43, 6) };
    SkbPriority "skb_priority" "" 32 4 [Some(slot::SKB_PRIORITY)] No None ReadOnly Hexadecimal {  };
    PktMark "pkt_mark" "" 32 4 [Some(slot::PKT_MARK)] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 33, 1) };
    CtState "ct_state" "" 32 4 [Some(slot::CT_STATE)] Bitwise None ReadOnly CtState { (0x0001, 0x0, 105, 1) };
    CtZone "ct_zone" "" 16 2 [Some(slot::CT_ZONE)] No None ReadOnly Hexadecimal { (0x0001, 0x0, 106, 1) };
    CtMark "ct_mark" "" 32 4 [Some(slot::CT_MARK)] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 107, 1) };
    CtLabel "ct_label" "" 128 16 [Some(slot::CT_LABEL)] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 108, 1) };
    CtNwProto "ct_nw_proto" "" 8 1 [Some(slot::CT_NW_PROTO)] No Ct ReadOnly Decimal { (0x0001, 0x0, 119, 1) };
    CtNwSrc "ct_nw_src" "" 32 4 [Some(slot::CT_NW_SRC)] Bitwise Ct ReadOnly Ipv4 { (0x0001, 0x0, 120, 1) };
    CtNwDst "ct_nw_dst" "" 32 4 [Some(slot::CT_NW_DST)] Bitwise Ct ReadOnly Ipv4 { (0x0001, 0x0, 121, 1) };
    CtIpv6Src "ct_ipv6_src" "" 128 16 [Some(slot::CT_IPV6_SRC)] Bitwise Ct ReadOnly Ipv6 { (0x0001, 0x0, 122, 1) };
    CtIpv6Dst "ct_ipv6_dst" "" 128 16 [Some(slot::CT_IPV6_DST)] Bitwise Ct ReadOnly Ipv6 { (0x0001, 0x0, 123, 1) };
    CtTpSrc "ct_tp_src" "" 16 2 [Some(slot::CT_TP_SRC)] Bitwise Ct ReadOnly Decimal { (0x0001, 0x0, 124, 1) };
    CtTpDst "ct_tp_dst" "" 16 2 [Some(slot::CT_TP_DST)] Bitwise Ct ReadOnly Decimal { (0x0001, 0x0, 125, 1) };
    Reg0 "reg0" "" 32 4 [Some(slot::reg(0))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 0, 1) };
    Reg1 "reg1" "" 32 4 [Some(slot::reg(1))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 1, 1) };
    Reg2 "reg2" "" 32 4 [Some(slot::reg(2))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 2, 1) };
    Reg3 "reg3" "" 32 4 [Some(slot::reg(3))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 3, 1) };
    Reg4 "reg4" "" 32 4 [Some(slot::reg(4))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 4, 1) };
    Reg5 "reg5" "" 32 4 [Some(slot::reg(5))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 5, 1) };
    Reg6 "reg6" "" 32 4 [Some(slot::reg(6))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 6, 1) };
    Reg7 "reg7" "" 32 4 [Some(slot::reg(7))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 7, 1) };
    Reg8 "reg8" "" 32 4 [Some(slot::reg(8))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 8, 1) };
    Reg9 "reg9" "" 32 4 [Some(slot::reg(9))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 9, 1) };
    Reg10 "reg10" "" 32 4 [Some(slot::reg(10))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 10, 1) };
    Reg11 "reg11" "" 32 4 [Some(slot::reg(11))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 11, 1) };
    Reg12 "reg12" "" 32 4 [Some(slot::reg(12))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 12, 1) };
    Reg13 "reg13" "" 32 4 [Some(slot::reg(13))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 13, 1) };
    Reg14 "reg14" "" 32 4 [Some(slot::reg(14))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 14, 1) };
    Reg15 "reg15" "" 32 4 [Some(slot::reg(15))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 15, 1) };
    Reg16 "reg16" "" 32 4 [Some(slot::reg(16))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 17, 1) };
    Reg17 "reg17" "" 32 4 [Some(slot::reg(17))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 18, 1) };
    Reg18 "reg18" "" 32 4 [Some(slot::reg(18))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 19, 1) };
    Reg19 "reg19" "" 32 4 [Some(slot::reg(19))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 20, 1) };
    Reg20 "reg20" "" 32 4 [Some(slot::reg(20))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 21, 1) };
    Reg21 "reg21" "" 32 4 [Some(slot::reg(21))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 22, 1) };
    Reg22 "reg22" "" 32 4 [Some(slot::reg(22))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 23, 1) };
    Reg23 "reg23" "" 32 4 [Some(slot::reg(23))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 24, 1) };
    Reg24 "reg24" "" 32 4 [Some(slot::reg(24))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 25, 1) };
    Reg25 "reg25" "" 32 4 [Some(slot::reg(25))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 26, 1) };
    Reg26 "reg26" "" 32 4 [Some(slot::reg(26))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 27, 1) };
    Reg27 "reg27" "" 32 4 [Some(slot::reg(27))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 28, 1) };
    Reg28 "reg28" "" 32 4 [Some(slot::reg(28))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 29, 1) };
    Reg29 "reg29" "" 32 4 [Some(slot::reg(29))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 30, 1) };
    Reg30 "reg30" "" 32 4 [Some(slot::reg(30))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 31, 1) };
    Reg31 "reg31" "" 32 4 [Some(slot::reg(31))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 32, 1) };
    Xreg0 "xreg0" "" 64 8 [Some(slot::xreg(0))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 0, 4) };
    Xreg1 "xreg1" "" 64 8 [Some(slot::xreg(1))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 1, 4) };
    Xreg2 "xreg2" "" 64 8 [Some(slot::xreg(2))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 2, 4) };
    Xreg3 "xreg3" "" 64 8 [Some(slot::xreg(3))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 3, 4) };
    Xreg4 "xreg4" "" 64 8 [Some(slot::xreg(4))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 4, 4) };
    Xreg5 "xreg5" "" 64 8 [Some(slot::xreg(5))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 5, 4) };
    Xreg6 "xreg6" "" 64 8 [Some(slot::xreg(6))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 6, 4) };
    Xreg7 "xreg7" "" 64 8 [Some(slot::xreg(7))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 7, 4) };
    Xreg8 "xreg8" "" 64 8 [Some(slot::xreg(8))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 8, 4) };
    Xreg9 "xreg9" "" 64 8 [Some(slot::xreg(9))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 9, 4) };
    Xreg10 "xreg10" "" 64 8 [Some(slot::xreg(10))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 10, 4) };
    Xreg11 "xreg11" "" 64 8 [Some(slot::xreg(11))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 11, 4) };
    Xreg12 "xreg12" "" 64 8 [Some(slot::xreg(12))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 12, 4) };
    Xreg13 "xreg13" "" 64 8 [Some(slot::xreg(13))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 13, 4) };
    Xreg14 "xreg14" "" 64 8 [Some(slot::xreg(14))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 14, 4) };
    Xreg15 "xreg15" "" 64 8 [Some(slot::xreg(15))] Bitwise None ReadWrite Hexadecimal { (0x8001, 0x0, 15, 4) };
    Xxreg0 "xxreg0" "" 128 16 [Some(slot::xxreg(0))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 111, 1) };
    Xxreg1 "xxreg1" "" 128 16 [Some(slot::xxreg(1))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 112, 1) };
    Xxreg2 "xxreg2" "" 128 16 [Some(slot::xxreg(2))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 113, 1) };
    Xxreg3 "xxreg3" "" 128 16 [Some(slot::xxreg(3))] Bitwise None ReadWrite Hexadecimal { (0x0001, 0x0, 114, 1) };
    Xxreg4 "xxreg4" "" 128 16 [Some(slot::xxreg(4))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 33, 1) };
    Xxreg5 "xxreg5" "" 128 16 [Some(slot::xxreg(5))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 34, 1) };
    Xxreg6 "xxreg6" "" 128 16 [Some(slot::xxreg(6))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 35, 1) };
    Xxreg7 "xxreg7" "" 128 16 [Some(slot::xxreg(7))] Bitwise None ReadWrite Hexadecimal { (0xffff, 0x2320, 36, 1) };
    EthSrc "eth_src" "dl_src" 48 6 [Some(slot::ETH_SRC)] Bitwise Ethernet ReadWrite Ethernet { (0x0000, 0x0, 2, 1), (0x8000, 0x0, 4, 3) };
    EthDst "eth_dst" "dl_dst" 48 6 [Some(slot::ETH_DST)] Bitwise Ethernet ReadWrite Ethernet { (0x0000, 0x0, 1, 1), (0x8000, 0x0, 3, 3) };
    EthType "eth_type" "dl_type" 16 2 [Some(slot::ETH_TYPE)] No Ethernet ReadOnly Hexadecimal { (0x0000, 0x0, 3, 1), (0x8000, 0x0, 5, 3) };
    VlanTci "vlan_tci" "" 16 2 [Some(slot::VLAN_TCI)] Bitwise Ethernet ReadWrite Hexadecimal { (0x0000, 0x0, 4, 1) };
    DlVlan "dl_vlan" "" 12 2 [Some(slot::VLAN_TCI.part(0, 12))] No Ethernet ReadWrite Decimal {  };
    VlanVid "vlan_vid" "" 12 2 [Some(slot::VLAN_TCI.part(0, 13))] Bitwise Ethernet ReadWrite Decimal { (0x8000, 0x0, 6, 3) };
    DlVlanPcp "dl_vlan_pcp" "" 3 1 [Some(slot::VLAN_TCI.part(13, 3))] No Ethernet ReadWrite Decimal {  };
    VlanPcp "vlan_pcp" "" 3 1 [Some(slot::VLAN_TCI.part(13, 3))] No VlanVid ReadWrite Decimal { (0x8000, 0x0, 7, 3) };
    MplsLabel "mpls_label" "" 20 4 [Some(slot::MPLS_LSE.part(12, 20))] No Mpls ReadWrite Decimal { (0x8000, 0x0, 34, 3) };
    MplsTc "mpls_tc" "" 3 1 [Some(slot::MPLS_LSE.part(9, 3))] No Mpls ReadWrite Decimal { (0x8000, 0x0, 35, 3) };
    MplsBos "mpls_bos" "" 1 1 [Some(slot::MPLS_LSE.part(8, 1))] No Mpls ReadOnly Decimal { (0x8000, 0x0, 36, 4) };
    MplsTtl "mpls_ttl" "" 8 1 [Some(slot::MPLS_LSE.part(0, 8))] No Mpls ReadWrite Decimal { (0x0001, 0x0, 30, 1) };
    Ipv4Src "ip_src" "nw_src" 32 4 [Some(slot::NW_SRC)] Bitwise Ipv4 ReadWrite Ipv4 { (0x0000, 0x0, 7, 1), (0x8000, 0x0, 11, 3) };
    Ipv4Dst "ip_dst" "nw_dst" 32 4 [Some(slot::NW_DST)] Bitwise Ipv4 ReadWrite Ipv4 { (0x0000, 0x0, 8, 1), (0x8000, 0x0, 12, 3) };
    Ipv6Src "ipv6_src" "" 128 16 [Some(slot::IPV6_SRC)] Bitwise Ipv6 ReadWrite Ipv6 { (0x0001, 0x0, 19, 1), (0x8000, 0x0, 26, 3) };
    Ipv6Dst "ipv6_dst" "" 128 16 [Some(slot::IPV6_DST)] Bitwise Ipv6 ReadWrite Ipv6 { (0x0001, 0x0, 20, 1), (0x8000, 0x0, 27, 3) };
    Ipv6Label "ipv6_label" "" 20 4 [Some(slot::IPV6_LABEL.part(0, 20))] Bitwise Ipv6 ReadWrite Hexadecimal { (0x0001, 0x0, 27, 1), (0x8000, 0x0, 28, 3) };
    IpProto "nw_proto" "ip_proto" 8 1 [Some(slot::NW_PROTO)] No Ip ReadOnly Decimal { (0x0000, 0x0, 6, 1), (0x8000, 0x0, 10, 3) };
    IpTos "nw_tos" "" 8 1 [Some(slot::NW_TOS)] No Ip ReadWrite Decimal { (0x0000, 0x0, 5, 1) };
    IpDscp "ip_dscp" "" 6 1 [Some(slot::NW_TOS.part(2, 6))] No Ip ReadWrite Decimal { (0x8000, 0x0, 8, 3) };
    IpEcn "nw_ecn" "ip_ecn" 2 1 [Some(slot::NW_TOS.part(0, 2))] No Ip ReadWrite Decimal { (0x0001, 0x0, 28, 1), (0x8000, 0x0, 9, 3) };
    IpTtl "nw_ttl" "" 8 1 [Some(slot::NW_TTL)] No Ip ReadWrite Decimal { (0x0001, 0x0, 29, 1) };
    IpFrag "ip_frag" "nw_frag" 2 1 [Some(slot::NW_FRAG.part(0, 2))] Bitwise Ip ReadOnly Frag { (0x0001, 0x0, 26, 1) };
    ArpOp "arp_op" "" 16 2 [Some(slot::NW_PROTO)] No Arp ReadWrite Decimal { (0x0000, 0x0, 15, 1), (0x8000, 0x0, 21, 3) };
    ArpSpa "arp_spa" "" 32 4 [Some(slot::NW_SRC)] Bitwise Arp ReadWrite Ipv4 { (0x0000, 0x0, 16, 1), (0x8000, 0x0, 22, 3) };
    ArpTpa "arp_tpa" "" 32 4 [Some(slot::NW_DST)] Bitwise Arp ReadWrite Ipv4 { (0x0000, 0x0, 17, 1), (0x8000, 0x0, 23, 3) };
    ArpSha "arp_sha" "" 48 6 [Some(slot::ARP_SHA)] Bitwise Arp ReadWrite Ethernet { (0x0001, 0x0, 17, 1), (0x8000, 0x0, 24, 3) };
    ArpTha "arp_tha" "" 48 6 [Some(slot::ARP_THA)] Bitwise Arp ReadWrite Ethernet { (0x0001, 0x0, 18, 1), (0x8000, 0x0, 25, 3) };
    TcpSrc "tcp_src" "tp_src" 16 2 [Some(slot::TP_SRC)] Bitwise Tcp ReadWrite Decimal { (0x0000, 0x0, 9, 1), (0x8000, 0x0, 13, 3) };
    TcpDst "tcp_dst" "tp_dst" 16 2 [Some(slot::TP_DST)] Bitwise Tcp ReadWrite Decimal { (0x0000, 0x0, 10, 1), (0x8000, 0x0, 14, 3) };
    TcpFlags "tcp_flags" "" 12 2 [Some(slot::TCP_FLAGS.part(0, 12))] Bitwise Tcp ReadOnly TcpFlags { (0x0001, 0x0, 34, 1), (0xffff, 0x4f4e4600, 42, 4), (0x8000, 0x0, 42, 6) };
    UdpSrc "udp_src" "" 16 2 [Some(slot::TP_SRC)] Bitwise Udp ReadWrite Decimal { (0x0000, 0x0, 11, 1), (0x8000, 0x0, 15, 3) };
    UdpDst "udp_dst" "" 16 2 [Some(slot::TP_DST)] Bitwise Udp ReadWrite Decimal { (0x0000, 0x0, 12, 1), (0x8000, 0x0, 16, 3) };
    SctpSrc "sctp_src" "" 16 2 [Some(slot::TP_SRC)] Bitwise Sctp ReadWrite Decimal { (0x8000, 0x0, 17, 3) };
    SctpDst "sctp_dst" "" 16 2 [Some(slot::TP_DST)] Bitwise Sctp ReadWrite Decimal { (0x8000, 0x0, 18, 3) };
    IcmpType "icmp_type" "" 8 1 [Some(slot::TP_SRC.part(0, 8))] No Icmpv4 ReadWrite Decimal { (0x0000, 0x0, 13, 1), (0x8000, 0x0, 19, 3) };
    IcmpCode "icmp_code" "" 8 1 [Some(slot::TP_DST.part(0, 8))] No Icmpv4 ReadWrite Decimal { (0x0000, 0x0, 14, 1), (0x8000, 0x0, 20, 3) };
    Icmpv6Type "icmpv6_type" "" 8 1 [Some(slot::TP_SRC.part(0, 8))] No Icmpv6 ReadWrite Decimal { (0x0001, 0x0, 21, 1), (0x8000, 0x0, 29, 3) };
    Icmpv6Code "icmpv6_code" "" 8 1 [Some(slot::TP_DST.part(0, 8))] No Icmpv6 ReadWrite Decimal { (0x0001, 0x0, 22, 1), (0x8000, 0x0, 30, 3) };
    NdTarget "nd_target" "" 128 16 [Some(slot::ND_TARGET)] Bitwise Nd ReadWrite Ipv6 { (0x0001, 0x0, 23, 1), (0x8000, 0x0, 31, 3) };
    NdSll "nd_sll" "" 48 6 [Some(slot::ARP_SHA)] Bitwise NdSolicit ReadWrite Ethernet { (0x0001, 0x0, 24, 1), (0x8000, 0x0, 32, 3) };
    NdTll "nd_tll" "" 48 6 [Some(slot::ARP_THA)] Bitwise NdAdvert ReadWrite Ethernet { (0x0001, 0x0, 25, 1), (0x8000, 0x0, 33, 3) };
    NdReserved "nd_reserved" "" 32 4 [Some(slot::IGMP_GROUP)] No Nd ReadWrite Decimal { (0x1000, 0x0, 1, 1) };
    NdOptionsType "nd_options_type" "" 8 1 [Some(slot::TCP_FLAGS.part(0, 8))] No Nd ReadWrite Decimal { (0x1000, 0x0, 2, 1) };
    NshFlags "nsh_flags" "" 8 1 [Some(slot::NSH_FLAGS)] Bitwise Nsh ReadWrite Decimal { (0xffff, 0x5ad650, 1, 1) };
    NshMdtype "nsh_mdtype" "" 8 1 [Some(slot::NSH_MDTYPE)] No Nsh ReadOnly Decimal { (0xffff, 0x5ad650, 2, 1) };
    NshNp "nsh_np" "" 8 1 [Some(slot::NSH_NP)] No Nsh ReadOnly Decimal { (0xffff, 0x5ad650, 3, 1) };
    NshSpi "nsh_spi" "nsp" 24 4 [Some(slot::NSH_SPI)] No Nsh ReadWrite Hexadecimal { (0xffff, 0x5ad650, 4, 1) };
    NshSi "nsh_si" "nsi" 8 1 [Some(slot::NSH_SI)] No Nsh ReadWrite Decimal { (0xffff, 0x5ad650, 5, 1) };
    NshC1 "nsh_c1" "nshc1" 32 4 [Some(slot::NSH_C1)] Bitwise Nsh ReadWrite Hexadecimal { (0xffff, 0x5ad650, 6, 1) };
    NshC2 "nsh_c2" "nshc2" 32 4 [Some(slot::NSH_C2)] Bitwise Nsh ReadWrite Hexadecimal { (0xffff, 0x5ad650, 7, 1) };
    NshC3 "nsh_c3" "nshc3" 32 4 [Some(slot::NSH_C3)] Bitwise Nsh ReadWrite Hexadecimal { (0xffff, 0x5ad650, 8, 1) };
    NshC4 "nsh_c4" "nshc4" 32 4 [Some(slot::NSH_C4)] Bitwise Nsh ReadWrite Hexadecimal { (0xffff, 0x5ad650, 9, 1) };
    NshTtl "nsh_ttl" "" 8 1 [Some(slot::NSH_TTL)] No Nsh ReadWrite Decimal { (0xffff, 0x5ad650, 10, 1) };
}
