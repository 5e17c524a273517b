//! The little of X.509 names that is needed: the common name.

/// The object identifier 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Splits the first element off `data`: its tag, its content and what follows.
fn element(data: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = data.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let value = bytes.iter().fold(0usize, |n, b| n << 8 | usize::from(*b));
            (value, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The first common name in `name`, the content of an X.501 Name (RFC 5280, section 4.1.2.4).
pub(super) fn common_name(name: &[u8]) -> Option<String> {
    let mut sets = name;
    while let Some((_, set, rest)) = element(sets) {
        sets = rest;
        let mut pairs = set;
        while let Some((_, pair, rest)) = element(pairs) {
            pairs = rest;
            let (_, kind, value) = element(pair)?;
            if kind == COMMON_NAME {
                let (_, text, _) = element(value)?;
                return Some(String::from_utf8_lossy(text).into_owned());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_name_is_found() {
        // C=US, CN=ab
        let name = [
            0x31, 0x0b, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x06, 0x13, 0x02, b'U', b'S', 0x31,
            0x0b, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x02, b'a', b'b',
        ];
        assert_eq!(common_name(&name).as_deref(), Some("ab"));
        for end in 0..name.len() {
            assert_eq!(common_name(&name[..end]), None);
        }
    }
}
