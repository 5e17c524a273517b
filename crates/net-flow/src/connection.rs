//! Tracked connections as a flush names them: `ct-flush` of `ovs-ofctl(8)`, `flush-conntrack` of
//! `ovs-dpctl(8)`, and the OpenFlow message behind them.

use std::fmt::Write as _;

use crate::text::addr::{ipv4_prefix, ipv6_prefix, put_ipv4, put_ipv6};
use crate::text::num::{str_to_u8, str_to_u16, wide_int};
use crate::text::{KeyValues, value::put_alt_hex};
use crate::types::ip_proto;

/// What IPv4 addresses begin with when they stand where IPv6 addresses do (RFC 4291, section
/// 2.5.5.2).
const MAPPED: u128 = 0xffff_0000_0000;

/// An IPv4 address as an IPv6 address.
pub fn mapped_ipv4(ip: u32) -> u128 {
    MAPPED | u128::from(ip)
}

/// The IPv4 address that an IPv6 address stands for, if it does.
pub fn unmapped_ipv4(ip: u128) -> Option<u32> {
    (ip >> 32 == MAPPED >> 32).then_some(ip as u32)
}

/// Whether tuples of this protocol have an ICMP identifier, type and code instead of ports.
pub const fn is_icmp(proto: u8) -> bool {
    matches!(proto, ip_proto::ICMP | ip_proto::ICMPV6)
}

/// Whose addresses a tuple has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// One direction of a connection.  In a match, what is zero is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CtTuple {
    /// Source address; one of IPv4 is mapped ([`mapped_ipv4`]).
    pub src: u128,
    /// Destination address, in the same form.
    pub dst: u128,
    /// Source port, where the protocol has ports.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// ICMP identifier.
    pub icmp_id: u16,
    /// ICMP type.
    pub icmp_type: u8,
    /// ICMP code.
    pub icmp_code: u8,
}

/// Which connections are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CtMatch {
    /// IP protocol; 0 is any.
    pub proto: u8,
    /// The addresses' family, if addresses or their kind were said.
    pub family: Option<Family>,
    /// In the direction of the first packet.
    pub orig: CtTuple,
    /// In the direction of the answers.
    pub reply: CtTuple,
    /// The mark and which of its bits matter.
    pub mark: (u32, u32),
    /// The label and which of its bits matter.
    pub labels: (u128, u128),
}

impl CtTuple {
    fn is_any(&self, proto: u8) -> bool {
        let addresses = self.src == 0 && self.dst == 0;
        addresses && (is_icmp(proto) || (self.src_port == 0 && self.dst_port == 0))
    }

    fn is_whole(&self, proto: u8) -> bool {
        let addresses = self.src != 0 && self.dst != 0;
        addresses && (is_icmp(proto) || (self.src_port != 0 && self.dst_port != 0))
    }

    /// Whether a connection's direction is what this one, in a match, asks for.  ICMP's numbers are
    /// compared even if they are zero, as 0 is a type and a code.
    pub fn takes(&self, other: &Self, proto: u8) -> bool {
        let same = |wanted: u128, there: u128| wanted == 0 || wanted == there;
        if !same(self.src, other.src) || !same(self.dst, other.dst) {
            return false;
        }
        if is_icmp(proto) {
            let numbers = |t: &Self| (t.icmp_id, t.icmp_type, t.icmp_code);
            return numbers(self) == numbers(other);
        }
        let same = |wanted: u16, there: u16| wanted == 0 || wanted == there;
        same(self.src_port, other.src_port) && same(self.dst_port, other.dst_port)
    }

    fn put(&self, out: &mut String, family: Option<Family>, proto: u8) {
        let names = match family {
            Some(Family::V4) => ["ct_nw_src=", ",ct_nw_dst="],
            _ => ["ct_ipv6_src=", ",ct_ipv6_dst="],
        };
        for (name, ip) in names.into_iter().zip([self.src, self.dst]) {
            out.push_str(name);
            put_address(out, ip);
        }
        let _ = if is_icmp(proto) {
            let (id, ty, code) = (self.icmp_id, self.icmp_type, self.icmp_code);
            write!(out, ",icmp_id={id},icmp_type={ty},icmp_code={code}")
        } else {
            let (src, dst) = (self.src_port, self.dst_port);
            write!(out, ",ct_tp_src={src},ct_tp_dst={dst}")
        };
    }
}

/// Prints an address; one that stands for one of IPv4 as that.
pub fn put_address(out: &mut String, ip: u128) {
    match unmapped_ipv4(ip) {
        Some(ip) => put_ipv4(out, ip),
        None => put_ipv6(out, ip),
    }
}

/// A number with a mask; what is wrong behind the number counts as "all bits".
fn masked(text: &str, bytes: u8) -> Option<(u128, u128)> {
    let all = u128::MAX >> (128 - u32::from(bytes) * 8);
    let (value, rest) = wide_int(text, bytes).ok()?;
    let mask = rest.strip_prefix('/').and_then(|m| wide_int(m, bytes).ok());
    Some((value & all, mask.map_or(all, |(mask, _)| mask & all)))
}

/// A zone's number at the beginning of `text`, if the rest of it begins with digits.
pub fn zone_prefix(text: &str) -> Option<u16> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..len].parse().ok()
}

impl CtMatch {
    /// Reads `[zone=N] [mark=X[/M]] [labels=Y[/N]] [ORIG [REPLY]]`; the zone, if one is named, and
    /// what is said of its connections.
    ///
    /// # Errors
    /// What is wrong, in Open vSwitch's words.
    pub fn parse(args: &[&str]) -> Result<(Option<u16>, Self), String> {
        let mut found = Self::default();
        let mut zone = None;
        let mut rest = args.iter().copied().peekable();
        if let Some(text) = rest.peek().and_then(|a| a.strip_prefix("zone=")) {
            zone = Some(zone_prefix(text).ok_or("failed to parse zone")?);
            rest.next();
        }
        if let Some(text) = rest.peek().and_then(|a| a.strip_prefix("mark=")) {
            let (mark, mask) = masked(text, 4).ok_or("failed to parse mark")?;
            found.mark = (mark as u32, mask as u32);
            rest.next();
        }
        if let Some(text) = rest.peek().and_then(|a| a.strip_prefix("labels=")) {
            found.labels = masked(text, 16).ok_or("failed to parse labels")?;
            rest.next();
        }
        for reply in [false, true] {
            let Some(text) = rest.next() else { break };
            let mut tuple = CtTuple::default();
            found.parse_tuple(&mut tuple, text)?;
            if reply {
                found.reply = tuple;
            } else {
                found.orig = tuple;
            }
        }
        match rest.next() {
            Some(_) => Err("invalid arguments".to_owned()),
            None => Ok((zone, found)),
        }
    }

    fn parse_tuple(&mut self, tuple: &mut CtTuple, text: &str) -> Result<(), String> {
        for item in KeyValues::new(text) {
            let (key, value) = (item.key, item.value);
            if value.is_empty() {
                return Err(format!("field {key} missing value"));
            }
            let failed = |_| format!("failed to parse field {key}");
            match key {
                "ct_nw_src" => self.address(&mut tuple.src, key, value, Family::V4)?,
                "ct_nw_dst" => self.address(&mut tuple.dst, key, value, Family::V4)?,
                "ct_ipv6_src" => self.address(&mut tuple.src, key, value, Family::V6)?,
                "ct_ipv6_dst" => self.address(&mut tuple.dst, key, value, Family::V6)?,
                "ct_nw_proto" => self.proto = str_to_u8(value, key).map_err(failed)?,
                "ct_tp_src" => tuple.src_port = str_to_u16(value, key).map_err(failed)?,
                "ct_tp_dst" => tuple.dst_port = str_to_u16(value, key).map_err(failed)?,
                "icmp_type" | "icmp_code" | "icmp_id" if !is_icmp(self.proto) => {
                    return Err("invalid L4 fields".to_owned());
                }
                "icmp_type" => tuple.icmp_type = str_to_u8(value, key).map_err(failed)?,
                "icmp_code" => tuple.icmp_code = str_to_u8(value, key).map_err(failed)?,
                "icmp_id" => tuple.icmp_id = str_to_u16(value, key).map_err(failed)?,
                _ => return Err(format!("invalid conntrack tuple field: {key}")),
            }
        }
        if self.proto == 0 && (tuple.src_port != 0 || tuple.dst_port != 0) {
            return Err("port is set without protocol".to_owned());
        }
        Ok(())
    }

    fn address(
        &mut self,
        place: &mut u128,
        key: &str,
        value: &str,
        family: Family,
    ) -> Result<(), String> {
        if self.family.is_some_and(|f| f != family) {
            return Err(format!("the L3 protocol does not match {value}"));
        }
        if *place != 0 {
            return Err(format!("{key} is set multiple times"));
        }
        let found = match family {
            Family::V4 => ipv4_prefix(value).map(|(ip, rest)| (mapped_ipv4(ip), rest)),
            Family::V6 => ipv6_prefix(value),
        };
        let whole = found.filter(|(_, rest)| rest.is_empty());
        let (ip, _) = whole.ok_or_else(|| format!("failed to parse field {key}"))?;
        *place = ip;
        self.family = Some(family);
        Ok(())
    }

    /// Whether it asks for nothing, and so means every connection.
    pub fn is_any(&self) -> bool {
        self.proto == 0 && self.family.is_none() && self.has_only_orig() && self.orig.is_any(0)
    }

    /// Whether it names one connection by its first direction alone.
    pub fn is_five_tuple(&self) -> bool {
        self.orig.is_whole(self.proto) && self.has_only_orig()
    }

    fn has_only_orig(&self) -> bool {
        self.reply.is_any(self.proto) && self.mark.1 == 0 && self.labels.1 == 0
    }

    /// As the message that carries it is printed.
    pub fn put(&self, out: &mut String) {
        let (mark, mask) = self.mark;
        if mask != 0 {
            out.push_str("mark=");
            put_alt_hex(out, mark.into());
            if mask != u32::MAX {
                let _ = write!(out, "/{mask:#x}");
            }
            out.push(' ');
        }
        let (labels, mask) = self.labels;
        if mask != 0 {
            out.push_str("labels=");
            put_alt_hex(out, labels);
            if mask != u128::MAX {
                let _ = write!(out, "/{mask:#x}");
            }
            out.push(' ');
        }
        out.push('\'');
        self.orig.put(out, self.family, self.proto);
        let _ = write!(out, ",ct_nw_proto={}' '", self.proto);
        self.reply.put(out, self.family, self.proto);
        out.push('\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Option<u16>, CtMatch), String> {
        let args: Vec<&str> = text.split(' ').filter(|a| !a.is_empty()).collect();
        CtMatch::parse(&args)
    }

    fn shown(text: &str) -> String {
        let mut out = String::new();
        parse(text).unwrap().1.put(&mut out);
        out
    }

    #[test]
    fn matches_are_shown_whole() {
        assert_eq!(
            shown("zone=5 ct_nw_src=10.1.1.1,ct_nw_dst=10.1.1.2,ct_nw_proto=17,ct_tp_src=1"),
            "'ct_nw_src=10.1.1.1,ct_nw_dst=10.1.1.2,ct_tp_src=1,ct_tp_dst=0,ct_nw_proto=17' \
             'ct_nw_src=::,ct_nw_dst=::,ct_tp_src=0,ct_tp_dst=0'"
        );
        assert_eq!(
            shown("mark=0xff/15 labels=7/0xf0 ct_ipv6_src=fe80::1,ct_nw_proto=58,icmp_id=3"),
            "mark=0xff/0xf labels=0x7/0xf0 'ct_ipv6_src=fe80::1,ct_ipv6_dst=::,icmp_id=3,\
             icmp_type=0,icmp_code=0,ct_nw_proto=58' 'ct_ipv6_src=::,ct_ipv6_dst=::,icmp_id=0,\
             icmp_type=0,icmp_code=0'"
        );
        assert_eq!(parse("zone=7").unwrap().0, Some(7));
        assert!(parse("zone=7").unwrap().1.is_any());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, want) in [
            ("zone=x", "failed to parse zone"),
            ("mark=x", "failed to parse mark"),
            ("labels=", "failed to parse labels"),
            ("ct_nw_src=", "field ct_nw_src missing value"),
            ("ct_nw_src=1.2.3", "failed to parse field ct_nw_src"),
            (
                "ct_nw_src=1.2.3.4,ct_nw_src=1.2.3.5",
                "ct_nw_src is set multiple times",
            ),
            (
                "ct_nw_src=1.2.3.4,ct_ipv6_dst=::1",
                "the L3 protocol does not match ::1",
            ),
            ("ct_tp_src=1", "port is set without protocol"),
            ("ct_nw_proto=300", "failed to parse field ct_nw_proto"),
            ("icmp_type=3", "invalid L4 fields"),
            ("foo=1", "invalid conntrack tuple field: foo"),
            ("ct_nw_proto=6 ct_nw_proto=6 x", "invalid arguments"),
        ] {
            assert_eq!(parse(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn one_connection_or_many() {
        let of = |text: &str| parse(text).unwrap().1;
        let whole = "ct_nw_src=1.1.1.1,ct_nw_dst=1.1.1.2,ct_nw_proto=6,ct_tp_src=1,ct_tp_dst=2";
        assert!(of(whole).is_five_tuple());
        assert!(!of(&format!("{whole} ct_nw_src=1.1.1.2")).is_five_tuple());
        assert!(!of(&format!("mark=1 {whole}")).is_five_tuple());
        assert!(!of("ct_nw_src=1.1.1.1,ct_nw_proto=6").is_five_tuple());
        assert!(!of("ct_nw_proto=6").is_any());
        let there = of(whole).orig;
        assert!(of("ct_nw_dst=1.1.1.2").orig.takes(&there, 6));
        assert!(!of("ct_nw_dst=1.1.1.3").orig.takes(&there, 6));
        assert!(of("ct_nw_proto=6,ct_tp_dst=2").orig.takes(&there, 6));
        assert!(!of("ct_nw_proto=6,ct_tp_dst=3").orig.takes(&there, 6));
        let ping = of("ct_nw_src=1.1.1.1,ct_nw_proto=1,icmp_type=8").orig;
        assert!(ping.takes(&ping, 1));
        assert!(!of("ct_nw_src=1.1.1.1,ct_nw_proto=1").orig.takes(&ping, 1));
    }
}
