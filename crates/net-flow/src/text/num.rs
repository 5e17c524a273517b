//! Numbers as the C library reads them: signs, `0x`, leading 0 for octal.

/// What `strtoull` makes of the beginning of `s`.
pub struct CInt<'a> {
    /// The magnitude, cut off at the largest 64-bit number.
    pub magnitude: u64,
    /// Whether there was a minus sign.
    pub negative: bool,
    /// Whether the magnitude did not fit.
    pub overflow: bool,
    /// What follows.
    pub rest: &'a str,
}

/// Reads a number at the beginning of `s` in base 10 or, if `base` is 0, in the base that
/// its prefix says.  `None` if there is no digit.
pub fn c_int(s: &str, base: u32) -> Option<CInt<'_>> {
    let mut rest = s.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let negative = rest.starts_with('-');
    if let Some(tail) = rest.strip_prefix(['-', '+']) {
        rest = tail;
    }
    let mut base = base;
    let bytes = rest.as_bytes();
    let hex = bytes.len() > 2
        && bytes[0] == b'0'
        && bytes[1] | 0x20 == b'x'
        && bytes[2].is_ascii_hexdigit();
    if base == 0 {
        base = if hex {
            16
        } else if bytes.first() == Some(&b'0') {
            8
        } else {
            10
        };
    }
    if base == 16 && hex {
        rest = &rest[2..];
    }
    let digits = rest.bytes().take_while(|b| char::from(*b).is_digit(base));
    let len = digits.count();
    if len == 0 {
        return None;
    }
    let mut overflow = false;
    let mut magnitude = 0u64;
    for b in rest[..len].bytes() {
        let digit = char::from(b).to_digit(base).unwrap_or(0);
        let next = magnitude.checked_mul(u64::from(base));
        match next.and_then(|n| n.checked_add(u64::from(digit))) {
            Some(n) => magnitude = n,
            None => overflow = true,
        }
    }
    if overflow {
        magnitude = u64::MAX;
    }
    Some(CInt {
        magnitude,
        negative,
        overflow,
        rest: &rest[len..],
    })
}

/// All of `s` as a signed 64-bit number.
pub fn whole_i64(s: &str, base: u32) -> Option<i64> {
    let n = c_int(s, base).filter(|n| n.rest.is_empty() && !n.overflow)?;
    let value = i128::from(n.magnitude) * if n.negative { -1 } else { 1 };
    i64::try_from(value).ok()
}

/// All of `s` as an unsigned 64-bit number; a minus sign wraps around, as in C.
pub fn whole_u64(s: &str, base: u32) -> Option<u64> {
    let n = c_int(s, base).filter(|n| n.rest.is_empty() && !n.overflow)?;
    Some(if n.negative {
        n.magnitude.wrapping_neg()
    } else {
        n.magnitude
    })
}

/// `s` as an 8-bit number; the error names it `name`.
pub fn str_to_u8(s: &str, name: &str) -> Result<u8, String> {
    let value = whole_i64(s, 0).and_then(|v| u8::try_from(v).ok());
    value.ok_or_else(|| format!("invalid {name} \"{s}\""))
}

/// `s` as a 16-bit number; the error names it `name`.
pub fn str_to_u16(s: &str, name: &str) -> Result<u16, String> {
    let value = whole_i64(s, 0).and_then(|v| u16::try_from(v).ok());
    value.ok_or_else(|| format!("invalid {name} \"{s}\""))
}

/// `s` as a 32-bit number.
pub fn str_to_u32(s: &str) -> Result<u32, String> {
    if s.is_empty() {
        return Err("missing required numeric argument".to_owned());
    }
    let value = whole_u64(s, 0).and_then(|v| u32::try_from(v).ok());
    value.ok_or_else(|| format!("invalid numeric format {s}"))
}

/// `s` as a 64-bit number.
pub fn str_to_u64(s: &str) -> Result<u64, String> {
    if s.is_empty() {
        return Err("missing required numeric argument".to_owned());
    }
    whole_u64(s, 0).ok_or_else(|| format!("invalid numeric format {s}"))
}

/// Why a number for a field cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntError {
    /// It needs more bytes than the field has.
    TooLarge,
    /// It is no number.
    Syntax,
}

/// A number of up to `bytes` bytes at the beginning of `s`, and what follows it.
pub fn wide_int(s: &str, bytes: u8) -> Result<(u128, &str), IntError> {
    if let Some(hex) = s.strip_prefix("0x").or_else(|| s.strip_prefix("0X")) {
        let len = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        if len == 0 {
            return Err(IntError::Syntax);
        }
        let digits = hex[..len].trim_start_matches('0');
        if digits.len() > usize::from(bytes) * 2 || digits.len() > 32 {
            return Err(IntError::TooLarge);
        }
        let value = if digits.is_empty() {
            0
        } else {
            u128::from_str_radix(digits, 16).map_err(|_| IntError::TooLarge)?
        };
        return Ok((value, &hex[len..]));
    }
    let n = c_int(s, 0).ok_or(IntError::Syntax)?;
    if n.overflow {
        return Err(IntError::TooLarge);
    }
    let value = if n.negative {
        n.magnitude.wrapping_neg()
    } else {
        n.magnitude
    };
    if bytes < 8 && value >> (bytes * 8) != 0 {
        return Err(IntError::TooLarge);
    }
    Ok((u128::from(value), n.rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (text, want) in [
            ("10", Some(10)),
            ("0x1f", Some(31)),
            ("010", Some(8)),
            ("-1", Some(-1)),
            ("", None),
            ("0x", None),
            ("1a", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(whole_i64(text, 0), want, "{text}");
        }
        assert_eq!(whole_u64("-1", 0), Some(u64::MAX));
        assert_eq!(
            str_to_u16("65536", "priority").unwrap_err(),
            "invalid priority \"65536\""
        );
    }

    #[test]
    fn wide_numbers_must_fit_their_field() {
        assert_eq!(wide_int("0x1ff", 1), Err(IntError::TooLarge));
        assert_eq!(wide_int("256", 1), Err(IntError::TooLarge));
        assert_eq!(wide_int("0x00ff/1", 1), Ok((255, "/1")));
        assert_eq!(wide_int("-1", 8), Ok((u128::from(u64::MAX), "")));
        assert_eq!(wide_int("x", 8), Err(IntError::Syntax));
    }
}
