//! The extensible match: OXM, and Nicira's NXM, which is the same but for code points.

use net_flow::types::{eth_type, icmpv6_type, ip_proto};
use net_flow::{Field, Match, PortNo, Prereq, slot};

use crate::error::ErrorCode;
use crate::of11_match;
use crate::wire::{OrCode, Put, Reader};

/// The pseudo-field of Nicira's flow-mods that holds a cookie.
const COOKIE: (u16, u8) = (1, 30);

mod encode;
mod text;

pub use encode::put_match;
pub(crate) use encode::{nxm_header, put_action_header, put_entry, put_field_header};
pub use text::{match_from_text, match_text};

/// The header of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The class.
    pub class: u16,
    /// The experimenter, 0 unless the class is 0xffff.
    pub experimenter: u32,
    /// The field number.
    pub field: u8,
    /// Whether a mask follows the value.
    pub has_mask: bool,
    /// Bytes of value and mask.
    pub len: usize,
}

impl Header {
    /// The field, if one has this code point and as many bytes.
    pub fn known_field(self) -> Option<Field> {
        self.field_of_any_len()
            .filter(|f| usize::from(f.info().bytes) == self.width())
    }

    fn field_of_any_len(self) -> Option<Field> {
        Field::by_oxm(self.class, self.experimenter, self.field)
    }

    const fn width(self) -> usize {
        if self.has_mask {
            self.len / 2
        } else {
            self.len
        }
    }
}

/// Reads an entry's header.
pub(crate) fn pull_header(r: &mut Reader<'_>) -> Result<Header, ErrorCode> {
    let bad = ErrorCode::OfpbmcBadLen;
    let word = r.u32().or_code(bad)?;
    let class = (word >> 16) as u16;
    let mut len = (word & 0xff) as usize;
    let mut experimenter = 0;
    if class == 0xffff {
        experimenter = r.u32().or_code(bad)?;
        len = len.checked_sub(4).ok_or(bad)?;
    }
    Ok(Header {
        class,
        experimenter,
        field: ((word >> 9) & 0x7f) as u8,
        has_mask: word & 0x100 != 0,
        len,
    })
}

/// Reads a header in an action: the field must be known.
pub(crate) fn pull_action_field(r: &mut Reader<'_>) -> Result<Field, ErrorCode> {
    let header = pull_header(r)?;
    action_field(header)
}

/// The field of a header in an action.
pub(crate) fn action_field(header: Header) -> Result<Field, ErrorCode> {
    match (header.known_field(), header.field_of_any_len()) {
        (Some(field), _) => Ok(field),
        (None, Some(_)) => Err(ErrorCode::OfpbacBadSetLen),
        (None, None) => Err(ErrorCode::OfpbacBadSetType),
    }
}

/// The field of Nicira's 32-bit header in an action.
pub(crate) fn field_of_nxm(word: u32) -> Result<Field, ErrorCode> {
    let bytes = word.to_be_bytes();
    if word >> 16 == 0xffff {
        return Err(ErrorCode::OfpbacBadSetType);
    }
    let header = pull_header(&mut Reader::new(&bytes))?;
    action_field(header)
}

/// An entry: its field if known, value and mask (ones if it has none).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) header: Header,
    pub(crate) field: Option<Field>,
    pub(crate) value: u128,
    pub(crate) mask: u128,
}

/// Reads an entry.
pub(crate) fn pull_entry(r: &mut Reader<'_>) -> Result<Entry, ErrorCode> {
    let header = pull_header(r)?;
    let mut payload = r.sub(header.len).or_code(ErrorCode::OfpbmcBadLen)?;
    let width = header.width();
    let bytes = payload.rest();
    if header.has_mask {
        let pairs = bytes[..width].iter().zip(&bytes[width..]);
        if pairs.into_iter().any(|(v, m)| v & !m != 0) {
            let h = header;
            base::log_limited!(
                Warn,
                "nx_match",
                (60, 5),
                "Rejecting NXM/OXM entry {}:{}:{}:1:{} with 1-bits in value for bits \
                 wildcarded by the mask.",
                h.experimenter,
                h.class,
                h.field,
                h.len
            );
            return Err(ErrorCode::OfpbmcBadWildcards);
        }
    }
    let field = header.known_field();
    let n = width.min(16);
    let value = payload.uint(n).or_code(ErrorCode::OfpbmcBadLen)?;
    let full = field.map_or(u128::MAX, Field::full_mask);
    let mask = if header.has_mask && width <= 16 {
        payload.uint(n).or_code(ErrorCode::OfpbmcBadLen)?
    } else {
        full
    };
    Ok(Entry {
        header,
        field,
        value,
        mask,
    })
}

/// How to read a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchRules {
    /// Unknown fields and missing prerequisites are errors; else unknown fields are skipped.
    pub strict: bool,
    /// Nicira's cookie pseudo-field may occur.
    pub cookie: bool,
    /// Only fields of the pipeline may occur: registers, metadata, tunnel, input port.
    pub pipeline_only: bool,
}

impl MatchRules {
    /// For flows.
    pub const STRICT: Self = Self {
        strict: true,
        cookie: false,
        pipeline_only: false,
    };
    /// For flows in Nicira's messages.
    pub const STRICT_COOKIE: Self = Self {
        strict: true,
        cookie: true,
        pipeline_only: false,
    };
    /// For what accompanies a packet.
    pub const LOOSE: Self = Self {
        strict: false,
        cookie: false,
        pipeline_only: false,
    };
}

/// Reads a match that fills `bytes`: the match, and cookie and cookie mask (0 if there is none).
pub fn read_match(bytes: &[u8], rules: MatchRules) -> Result<(Match, u64, u64), ErrorCode> {
    let mut r = Reader::new(bytes);
    let mut m = Match::any();
    let (mut cookie, mut cookie_mask) = (0, 0);
    while !r.is_empty() {
        let entry = pull_entry(&mut r)?;
        let Some(field) = entry.field else {
            let id = (entry.header.class, entry.header.field);
            if rules.cookie && id == COOKIE && entry.header.width() == 8 {
                if cookie_mask != 0 {
                    return Err(ErrorCode::OfpbmcDupField);
                }
                (cookie, cookie_mask) = (entry.value as u64, entry.mask as u64);
            } else if rules.strict {
                return Err(ErrorCode::OfpbmcBadField);
            }
            continue;
        };
        add_entry(&mut m, field, entry, rules)?;
    }
    Ok((m, cookie, cookie_mask))
}

fn add_entry(m: &mut Match, field: Field, e: Entry, rules: MatchRules) -> Result<(), ErrorCode> {
    if !field.allows_mask(e.mask) {
        return Err(ErrorCode::OfpbmcBadMask);
    }
    if !field.allows_value(e.value) {
        return Err(ErrorCode::OfpbmcBadValue);
    }
    if rules.strict && !m.meets_prerequisites(field) {
        return Err(ErrorCode::OfpbmcBadPrereq);
    }
    if !field.is_wild_in(m.mask()) {
        return Err(ErrorCode::OfpbmcDupField);
    }
    if rules.pipeline_only && !is_pipeline_field(field) {
        return Err(ErrorCode::OfpbrcPipelineFieldsOnly);
    }
    m.set_field(field, e.value, e.mask)
        .ok_or(ErrorCode::OfpbmcBadField)?;
    if field.info().prereq != Prereq::None {
        m.set_default_packet_type();
    }
    Ok(())
}

/// Whether a field belongs to the pipeline and not to the packet's bytes.
pub fn is_pipeline_field(field: Field) -> bool {
    let name = field.info().name;
    matches!(
        field,
        Field::Metadata
            | Field::InPort
            | Field::InPortOxm
            | Field::ActsetOutput
            | Field::PacketType
    ) || name.starts_with("tun_")
        || name.starts_with("reg")
        || name.starts_with("xreg")
        || name.starts_with("xxreg")
}

/// Reads the match of OpenFlow 1.1 and later, its type and padding included, and consumes it.
pub(crate) fn pull_ofp11_match(r: &mut Reader<'_>, rules: MatchRules) -> Result<Match, ErrorCode> {
    let bytes = r.rest();
    let mut head = Reader::new(bytes);
    let bad = ErrorCode::OfpbmcBadLen;
    let ty = head.u16().or_code(bad)?;
    let len = usize::from(head.u16().or_code(bad)?);
    match ty {
        0 if len == of11_match::LEN => of11_match::read(r.take(len).or_code(bad)?),
        0 => Err(bad),
        1 => {
            if len < 4 {
                return Err(bad);
            }
            let whole = r.take(len.next_multiple_of(8)).or_code(bad)?;
            let (m, ..) = read_match(&whole[4..len], rules)?;
            Ok(m)
        }
        _ => Err(ErrorCode::OfpbmcBadType),
    }
}

/// Appends the match of OpenFlow 1.1 and later, with its type and padding.
pub(crate) fn put_ofp12_match(out: &mut Vec<u8>, m: &Match, version: u8) {
    if version == 2 {
        return of11_match::put(out, m);
    }
    let start = out.len();
    out.u16(1);
    out.u16(0);
    put_match(out, m, version, 0, 0);
    let len = out.len() - start;
    out.set_u16(start + 2, len as u16);
    out.pad8(start);
}

/// The ICMPv6 neighbour message that a match demands.
fn neighbour_kind(m: &Match) -> Option<u8> {
    let key = m.key();
    let kind = key.get(slot::TP_SRC) as u16;
    let code_zero = key.get(slot::TP_DST) == 0;
    let nd = [icmpv6_type::ND_SOLICIT, icmpv6_type::ND_ADVERT];
    let nd = nd.into_iter().find(|t| u16::from(*t) == kind)?;
    code_zero.then_some(nd)
}

/// The input port that a match demands.
pub fn in_port(m: &Match) -> Option<PortNo> {
    let mask = m.mask().get(slot::IN_PORT);
    (mask != 0).then(|| PortNo(m.key().get(slot::IN_PORT) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str, version: u8) -> String {
        let m = crate::text::parse_match(text).unwrap();
        let mut bytes = Vec::new();
        put_match(&mut bytes, &m, version, 0, 0);
        let (back, ..) = read_match(&bytes, MatchRules::STRICT).unwrap();
        assert_eq!(back, m, "{text}");
        let mut out = String::new();
        net_flow::text::put_match(&mut out, &back, 32768, &net_flow::Names::default());
        out
    }

    #[test]
    fn matches_survive_the_wire() {
        for text in [
            "in_port=1,dl_vlan=9,dl_vlan_pcp=3",
            "tcp,nw_src=10.0.0.0/8,nw_tos=4,tp_dst=80",
            "icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,nd_sll=00:11:22:33:44:55",
            "arp,arp_spa=1.2.3.4,arp_op=1,arp_sha=00:11:22:33:44:55",
            "mpls,mpls_label=5,mpls_tc=1,mpls_ttl=3,mpls_bos=1",
            "ct_state=-new+trk,ct_mark=0x5/0xff,ip",
            "reg0=0x5,reg31=0x1/0x3,tun_id=0x5,metadata=0x1",
            "udp6,ipv6_src=2001:db8::/32,tp_src=1/0xf",
        ] {
            for version in [0, 3, 4] {
                assert!(!round(text, version).is_empty());
            }
        }
    }

    #[test]
    fn bad_entries_have_their_errors() {
        let read = |bytes: &[u8]| read_match(bytes, MatchRules::STRICT).unwrap_err();
        let mut port = vec![0x80, 0, 0, 4, 0, 0, 0, 1];
        assert_eq!(read(&port[..7]), ErrorCode::OfpbmcBadLen);
        port.extend_from_within(..);
        assert_eq!(read(&port), ErrorCode::OfpbmcDupField);
        let tcp = [0x80, 0, 13 << 1, 2, 0, 80];
        assert_eq!(read(&tcp), ErrorCode::OfpbmcBadPrereq);
        let unknown = [0x12, 0x34, 2, 2, 0, 80];
        assert_eq!(read(&unknown), ErrorCode::OfpbmcBadField);
        let outside_mask = [0x80, 0, 5, 8, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(read(&outside_mask), ErrorCode::OfpbmcBadWildcards);
    }
}
