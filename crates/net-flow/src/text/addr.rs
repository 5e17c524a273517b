//! Addresses in text.

use std::fmt::Write;
use std::net::Ipv6Addr;

use super::num::c_int;

/// Six bytes with colons at the beginning of `s`, and what follows.
pub fn eth_prefix(s: &str) -> Option<(u64, &str)> {
    let mut value = 0u64;
    let mut rest = s;
    for i in 0..6 {
        if i > 0 {
            rest = rest.strip_prefix(':')?;
        }
        let len = rest
            .bytes()
            .take_while(u8::is_ascii_hexdigit)
            .count()
            .min(2);
        let byte = u64::from_str_radix(&rest[..len], 16).ok()?;
        value = (value << 8) | byte;
        rest = &rest[len..];
    }
    Some((value, rest))
}

/// All of `s` as an Ethernet address, maybe with a mask.
pub fn eth_masked(s: &str) -> Option<(u64, u64)> {
    let (value, rest) = eth_prefix(s)?;
    if rest.is_empty() {
        return Some((value, 0xffff_ffff_ffff));
    }
    let (mask, rest) = eth_prefix(rest.strip_prefix('/')?)?;
    rest.is_empty().then_some((value, mask))
}

/// A dotted quad at the beginning of `s`, and what follows.
pub fn ipv4_prefix(s: &str) -> Option<(u32, &str)> {
    let mut value = 0u32;
    let mut rest = s;
    for i in 0..4 {
        if i > 0 {
            rest = rest.strip_prefix('.')?;
        }
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let byte: u8 = rest[..len].parse().ok()?;
        value = (value << 8) | u32::from(byte);
        rest = &rest[len..];
    }
    Some((value, rest))
}

/// An IPv4 address at the beginning of `s`, maybe with a prefix length or mask: address,
/// mask, and what follows.
pub fn ipv4_masked_prefix(s: &str) -> Result<(u32, u32, &str), String> {
    let invalid = || format!("{s}: invalid IP address");
    let (ip, rest) = ipv4_prefix(s).ok_or_else(invalid)?;
    let Some(tail) = rest.strip_prefix('/') else {
        return Ok((ip, u32::MAX, rest));
    };
    if let Some((mask, rest)) = ipv4_prefix(tail) {
        return Ok((ip, mask, rest));
    }
    let Some(n) = c_int(tail, 10) else {
        return Ok((ip, u32::MAX, rest));
    };
    if n.magnitude > 32 || (n.negative && n.magnitude > 0) {
        return Err(format!(
            "{s}: IPv4 network prefix bits not between 0 and 32, inclusive"
        ));
    }
    let mask = u32::MAX.checked_shl(32 - n.magnitude as u32).unwrap_or(0);
    Ok((ip, mask, n.rest))
}

/// All of `s` as an IPv4 address with an optional prefix length or mask.
pub fn ipv4_masked(s: &str) -> Result<(u32, u32), String> {
    match ipv4_masked_prefix(s)? {
        (ip, mask, "") => Ok((ip, mask)),
        _ => Err(format!("{s}: invalid IP address")),
    }
}

/// An IPv6 address at the beginning of `s`, and what follows.
pub fn ipv6_prefix(s: &str) -> Option<(u128, &str)> {
    let is_part = |b: &u8| b.is_ascii_hexdigit() || *b == b':' || *b == b'.';
    let len = s.bytes().take_while(is_part).count();
    let addr: Ipv6Addr = s[..len].parse().ok()?;
    Some((addr.into(), &s[len..]))
}

/// All of `s` as an IPv6 address with an optional prefix length or mask.
pub fn ipv6_masked(s: &str) -> Result<(u128, u128), String> {
    let invalid = || format!("{s}: invalid IPv6 address");
    let (ip, rest) = ipv6_prefix(s.trim_start()).ok_or_else(invalid)?;
    if rest.is_empty() {
        return Ok((ip, u128::MAX));
    }
    let tail = rest.strip_prefix('/').ok_or_else(invalid)?;
    let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 && digits == tail.len() {
        let bits: u32 = tail.parse().unwrap_or(u32::MAX);
        if bits > 128 {
            return Err(format!(
                "{s}: IPv6 network prefix bits not between 0 and 128, inclusive"
            ));
        }
        return Ok((ip, u128::MAX.checked_shl(128 - bits).unwrap_or(0)));
    }
    match ipv6_prefix(tail) {
        Some((mask, "")) => Ok((ip, mask)),
        Some(_) => Err(invalid()),
        None => Err(format!("{s}: Invalid IPv6 mask")),
    }
}

/// Appends an Ethernet address.
pub fn put_eth(out: &mut String, mac: u64) {
    let b = mac.to_be_bytes();
    let _ = write!(
        out,
        "{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}",
        b[2], b[3], b[4], b[5], b[6], b[7]
    );
}

/// Appends an Ethernet address and its mask.
pub fn put_eth_masked(out: &mut String, mac: u64, mask: u64) {
    put_eth(out, mac);
    if mask != 0xffff_ffff_ffff {
        out.push('/');
        put_eth(out, mask);
    }
}

/// Appends an IPv4 address.
pub fn put_ipv4(out: &mut String, ip: u32) {
    let b = ip.to_be_bytes();
    let _ = write!(out, "{}.{}.{}.{}", b[0], b[1], b[2], b[3]);
}

/// Appends an IPv4 address and its prefix length or mask.
pub fn put_ipv4_masked(out: &mut String, ip: u32, mask: u32) {
    put_ipv4(out, ip);
    if mask == u32::MAX {
        return;
    }
    out.push('/');
    if mask.leading_ones() + mask.trailing_zeros() == 32 {
        let _ = write!(out, "{}", mask.leading_ones());
    } else {
        put_ipv4(out, mask);
    }
}

/// Appends an IPv6 address in the C library's form.
pub fn put_ipv6(out: &mut String, ip: u128) {
    let addr = Ipv6Addr::from(ip);
    let s = addr.segments();
    // The C library writes IPv4-compatible addresses (::1.2.3.4) as such; RFC 5952, and
    // so the standard library, does not.
    let compatible = ip >> 32 == 0 && (s[6] != 0) && ip != 0;
    if compatible {
        out.push_str("::");
        put_ipv4(out, ip as u32);
    } else {
        let _ = write!(out, "{addr}");
    }
}

/// Appends an IPv6 address and its prefix length or mask.
pub fn put_ipv6_masked(out: &mut String, ip: u128, mask: u128) {
    put_ipv6(out, ip);
    if mask == u128::MAX {
        return;
    }
    out.push('/');
    if mask.leading_ones() + mask.trailing_zeros() == 128 {
        let _ = write!(out, "{}", mask.leading_ones());
    } else {
        put_ipv6(out, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_and_print() {
        for text in ["10.0.0.0/8", "1.2.3.4", "192.168.0.1/255.0.255.0"] {
            let (ip, mask) = ipv4_masked(text).unwrap();
            let mut out = String::new();
            put_ipv4_masked(&mut out, ip, mask);
            assert_eq!(out, text);
        }
        for text in ["fe80::1/64", "::", "2001:db8::1", "::/0", "::1.2.3.4"] {
            let (ip, mask) = ipv6_masked(text).unwrap();
            let mut out = String::new();
            put_ipv6_masked(&mut out, ip, mask);
            assert_eq!(out, text);
        }
        assert!(ipv4_masked("1.2.3").is_err());
        assert!(ipv4_masked("1.2.3.4/33").is_err());
        assert!(ipv6_masked("fe80::1/129").is_err());
        assert_eq!(
            eth_masked("00:01:02:03:04:05"),
            Some((0x0001_0203_0405, 0xffff_ffff_ffff))
        );
        assert_eq!(eth_masked("00:01:02:03:04:05/"), None);
    }
}
