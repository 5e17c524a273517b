//! Reading text from left to right.

/// A number as C's `%i` reads it: `0x` hexadecimal, leading `0` octal, else decimal, after
/// white space.
pub(super) fn parse_number(text: &str) -> Option<u128> {
    let text = text.trim_ascii();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u128::from_str_radix(digits, 16).ok();
    }
    if text.len() > 1 && text.starts_with('0') {
        return u128::from_str_radix(&text[1..], 8).ok();
    }
    text.parse().ok()
}

/// What is left to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub &'a str);

impl<'a> Cursor<'a> {
    /// Takes `token` if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        match self.0.strip_prefix(token) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Takes `token`, which must come next.
    pub(super) fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    /// Skips what may stand between attributes or actions.
    pub(super) fn skip_delimiters(&mut self) {
        self.0 = self.0.trim_start_matches([',', ' ', '\t', '\r', '\n']);
    }

    /// Takes everything up to one of `ends`, which stays.
    pub(super) fn until(&mut self, ends: &[char]) -> &'a str {
        let end = self.0.find(ends).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        token
    }

    /// Takes a number up to one of the usual ends.
    pub(super) fn number(&mut self) -> Option<u128> {
        parse_number(self.until(&[',', ')', '/', ' ', '-', ':', '%']))
    }

    /// Takes characters as long as `wanted` holds.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !wanted(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        token
    }

    /// Takes a word of letters, digits and underscores.
    pub(super) fn word(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
