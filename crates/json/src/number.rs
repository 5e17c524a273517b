//! Numbers: from text to integer or real, and reals to text.

use crate::Json;

/// Largest number of decimal digits that always fits an `u64`.
const SAFE_DIGITS: usize = 19;

/// Converts the text of a JSON number.  The error is the message alone.
pub(crate) fn parse_number(text: &[u8]) -> Result<Json, &'static str> {
    if text.len() < SAFE_DIGITS
        && let Some(integer) = plain_integer(text)
    {
        return Ok(Json::Integer(integer));
    }
    let number = Decimal::scan(text)?;
    if let Some(integer) = number.to_integer() {
        return Ok(Json::Integer(integer));
    }
    // The scan has checked the syntax, which is a subset of what the standard parser takes.
    let real: f64 = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or("syntax error in number")?;
    if real.is_infinite() {
        Err("number outside valid range")
    } else if real == 0.0 {
        Ok(Json::Integer(0))
    } else {
        Ok(Json::Real(real))
    }
}

/// The common case: nothing but a sign and a few digits.
fn plain_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut value = 0i64;
    for &c in digits {
        if !c.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(c - b'0');
    }
    Some(if negative { -value } else { value })
}

/// A checked decimal number: `digits` (no leading or trailing zeros) times 10 to `exponent`.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn scan(text: &[u8]) -> Result<Self, &'static str> {
        let mut rest = text;
        let negative = take_if(&mut rest, b"-");
        let whole = take_digits(&mut rest);
        match whole {
            [] if negative => return Err("'-' must be followed by digit"),
            [] => return Err("syntax error in number"),
            [b'0', _, ..] => return Err("leading zeros not allowed"),
            _ => {}
        }
        let mut fraction: &[u8] = &[];
        if take_if(&mut rest, b".") {
            fraction = take_digits(&mut rest);
            if fraction.is_empty() {
                return Err("decimal point must be followed by digit");
            }
        }
        let mut exponent = 0i64;
        if take_if(&mut rest, b"eE") {
            let minus = rest.first() == Some(&b'-');
            take_if(&mut rest, b"+-");
            let power = take_digits(&mut rest);
            if power.is_empty() {
                return Err("exponent must contain at least one digit");
            }
            for &c in power {
                exponent = exponent * 10 + i64::from(c - b'0');
                if exponent > i64::from(i32::MAX) + 1 {
                    return Err("exponent outside valid range");
                }
            }
            if minus {
                exponent = -exponent;
            }
        }
        if !rest.is_empty() {
            return Err("syntax error in number");
        }
        Self::normalise(negative, whole, fraction, exponent)
    }

    fn normalise(
        negative: bool,
        whole: &[u8],
        fraction: &[u8],
        exponent: i64,
    ) -> Result<Self, &'static str> {
        let mut digits: Vec<u8> = whole.iter().chain(fraction).copied().collect();
        let mut exponent = exponent - fraction.len() as i64;
        let zeros = digits.iter().take_while(|&&c| c == b'0').count();
        digits.drain(..zeros);
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent += 1;
        }
        // What is dropped beyond 64 bits of digits counts towards the exponent.
        let dropped = digits.len().saturating_sub(SAFE_DIGITS) as i64;
        let out_of_range = |e: i64| i32::try_from(e).is_err();
        if !digits.is_empty() && (out_of_range(exponent) || out_of_range(exponent + dropped)) {
            return Err("exponent outside valid range");
        }
        Ok(Self {
            negative,
            digits,
            exponent,
        })
    }

    /// The value, if it is a whole number of 64 bits.
    fn to_integer(&self) -> Option<i64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        if self.exponent < 0 || self.digits.len() as i64 + self.exponent > SAFE_DIGITS as i64 {
            return None;
        }
        let mut value = 0i128;
        for &c in &self.digits {
            value = value * 10 + i128::from(c - b'0');
        }
        value *= 10i128.pow(u32::try_from(self.exponent).ok()?);
        i64::try_from(if self.negative { -value } else { value }).ok()
    }
}

fn take_if(text: &mut &[u8], any_of: &[u8]) -> bool {
    match text {
        [first, rest @ ..] if any_of.contains(first) => {
            *text = rest;
            true
        }
        _ => false,
    }
}

fn take_digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let n = text.iter().take_while(|c| c.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(n);
    *text = rest;
    digits
}

/// Prints a real with 15 significant digits, as C's `%.15g` does.
pub fn real_to_string(real: f64) -> String {
    const DIGITS: usize = 15;
    if !real.is_finite() {
        return if real.is_nan() {
            "nan".to_owned()
        } else if real > 0.0 {
            "inf".to_owned()
        } else {
            "-inf".to_owned()
        };
    }
    let scientific = format!("{real:.*e}", DIGITS - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS as i32).contains(&exponent) {
        let decimals = (DIGITS as i32 - 1 - exponent) as usize;
        without_trailing_zeros(&format!("{real:.decimals$}")).to_owned()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let mantissa = without_trailing_zeros(mantissa);
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    }
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_become_integers() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("-0.0", 0),
            ("1.0000000000", 1),
            ("2.00000000000000000000000000000000000", 2),
            ("2e5", 200_000),
            ("2.1234e4", 21234),
            ("2.1230e3", 2123),
            ("0e-10000", 0),
            ("0e10000", 0),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("9223372036854775807.0", i64::MAX),
            ("92233720.36854775807e11", i64::MAX),
            ("-9.223372036854775808e18", i64::MIN),
            ("1e-9999", 0),
            ("1E+3", 1000),
        ] {
            let number = parse_number(text.as_bytes());
            assert_eq!(number, Ok(Json::Integer(value)), "{text}");
        }
    }

    #[test]
    fn other_numbers_become_reals() {
        for (text, printed) in [
            ("9223372036854775807000", "9.22337203685478e+21"),
            ("-92233720368547758080000", "-9.22337203685478e+22"),
            ("9223372036854775808", "9.22337203685478e+18"),
            ("81.250", "81.25"),
            ("125e-3", "0.125"),
            ("1.525878906e-5", "1.525878906e-05"),
            ("1.7976931348623157e+308", "1.79769313486232e+308"),
            ("0.0001", "0.0001"),
            ("0.1", "0.1"),
            ("123456789012345.6", "123456789012346"),
            ("1e100", "1e+100"),
        ] {
            match parse_number(text.as_bytes()) {
                Ok(Json::Real(real)) => assert_eq!(real_to_string(real), printed, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn bad_numbers_say_why() {
        for (text, message) in [
            ("0123", "leading zeros not allowed"),
            ("1e9999", "number outside valid range"),
            ("1e9999999999999999999", "exponent outside valid range"),
            ("1e-9999999999999999999", "exponent outside valid range"),
            (
                "340282366920938463461761716499e2147483647",
                "exponent outside valid range",
            ),
            (
                "0.340282366920938463461761716499e-2147483648",
                "exponent outside valid range",
            ),
            ("1.", "decimal point must be followed by digit"),
            ("1e", "exponent must contain at least one digit"),
            ("1e+", "exponent must contain at least one digit"),
            ("--1", "'-' must be followed by digit"),
            ("1-2", "syntax error in number"),
        ] {
            assert_eq!(parse_number(text.as_bytes()), Err(message), "{text}");
        }
    }
}
