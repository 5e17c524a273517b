//! Sets of named bits in text: `+trk-new`, `syn|ack`.

use std::fmt::Write;

use super::num::c_int;

/// The bits of a field by name, the lowest first; an empty name is a bit without name.
#[derive(Debug)]
pub struct Flags {
    /// What errors call them.
    pub what: &'static str,
    names: &'static [&'static str],
    allowed: u32,
}

/// Connection tracking states.
pub static CT_STATE: Flags = Flags {
    what: "ct_state",
    names: &["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"],
    allowed: 0xff,
};

/// TCP flags.
pub static TCP: Flags = Flags {
    what: "TCP",
    names: &[
        "fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]",
    ],
    allowed: 0xfff,
};

/// Tunnel flags.
pub static TUNNEL: Flags = Flags {
    what: "tunnel",
    names: &["oam", "df", "csum", "key"],
    allowed: 1,
};

impl Flags {
    fn bits(&self) -> impl Iterator<Item = (u32, &'static str)> + use<> {
        let names = self.names.iter().enumerate();
        names.map(|(i, name)| (1 << i, *name))
    }

    fn name(&self, bit: u32) -> Option<&'static str> {
        self.names.get(bit.trailing_zeros() as usize).copied()
    }

    /// All of `s` as flags: the bits, and the mask (all ones if `s` has no mask).
    pub fn parse(&self, s: &str) -> Result<(u32, u32), String> {
        let unknown = |at: &str| format!("{at}: unknown {} flag(s)", self.what);
        if let Some(first) = c_int(s, 0)
            && let Some(tail) = first.rest.strip_prefix('/')
            && let Some(second) = c_int(tail, 0)
        {
            let value = first.magnitude as u32;
            let mask = second.magnitude as u32;
            if (value | mask) & !self.allowed != 0 || first.negative || second.negative {
                return Err(unknown(s));
            }
            return Ok((value, mask));
        }
        if s.starts_with(['+', '-']) {
            self.parse_signed(s)
        } else {
            self.parse_plain(s)
        }
    }

    fn parse_signed(&self, s: &str) -> Result<(u32, u32), String> {
        let (mut value, mut mask) = (0, 0);
        let mut rest = s;
        while !rest.is_empty() {
            let set = rest.starts_with('+');
            if !set && !rest.starts_with('-') {
                return Err(format!(
                    "{rest}: {} must be preceded by '+' (for SET) or '-' (NOT SET)",
                    self.what
                ));
            }
            let tail = &rest[1..];
            let end = tail.find(['+', '-']).unwrap_or(tail.len());
            let name = &tail[..end];
            let mut allowed = self.bits().filter(|(bit, _)| bit & self.allowed != 0);
            let Some((bit, _)) = allowed.find(|(_, n)| *n == name) else {
                return Err(format!("{tail}: unknown {} flag(s)", self.what));
            };
            if mask & bit != 0 {
                return Err(format!(
                    "{tail}: Each {} flag can be specified only once",
                    self.what
                ));
            }
            mask |= bit;
            if set {
                value |= bit;
            }
            rest = &tail[end..];
        }
        Ok((value, mask))
    }

    fn parse_plain(&self, s: &str) -> Result<(u32, u32), String> {
        let unknown = || format!("{s}: unknown {} flag(s)", self.what);
        let mut value = 0;
        let mut rest = s;
        while !rest.is_empty() {
            if let Some(n) = c_int(rest, 0) {
                if n.magnitude & !u64::from(self.allowed) != 0 {
                    return Err(unknown());
                }
                value |= n.magnitude as u32;
                rest = n.rest.strip_prefix('|').unwrap_or(n.rest);
                continue;
            }
            let end = rest.find('|').unwrap_or(rest.len());
            let name = &rest[..end];
            let mut allowed = self.bits().filter(|(bit, _)| bit & self.allowed != 0);
            let (bit, _) = allowed.find(|(_, n)| *n == name).ok_or_else(unknown)?;
            value |= bit;
            rest = &rest[(end + 1).min(rest.len())..];
        }
        Ok((value, u32::MAX))
    }

    /// Appends the names of the bits in `value` with `separator` between, `0` if there is none.
    pub fn put_plain(&self, out: &mut String, value: u32, separator: char) {
        if value == 0 {
            out.push('0');
            return;
        }
        let mut unnamed = 0;
        let mut first = true;
        for i in 0..32 {
            let bit = 1u32 << i;
            if value & bit == 0 {
                continue;
            }
            let Some(name) = self.name(bit) else {
                unnamed |= bit;
                continue;
            };
            if !first {
                out.push(separator);
            }
            out.push_str(name);
            first = false;
        }
        if unnamed != 0 {
            if !first {
                out.push(separator);
            }
            let _ = write!(out, "{unnamed:#x}");
        }
    }

    /// Appends `value` under `mask`; `full` is the mask of an exact match.
    pub fn put_masked(&self, out: &mut String, value: u32, mask: u32, full: u32) {
        if mask == full {
            self.put_plain(out, value, '|');
            return;
        }
        if mask == 0 {
            out.push_str("0/0");
            return;
        }
        for i in 0..32 {
            let bit = 1u32 << i;
            if mask & bit != 0 {
                out.push(if value & bit != 0 { '+' } else { '-' });
                out.push_str(self.name(bit).unwrap_or("[Unknown]"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_read_and_print() {
        assert_eq!(CT_STATE.parse("+trk-new"), Ok((0x20, 0x21)));
        assert_eq!(TCP.parse("syn|ack"), Ok((0x12, u32::MAX)));
        assert_eq!(TCP.parse("0x2/0x12"), Ok((2, 0x12)));
        assert_eq!(TCP.parse("+x").unwrap_err(), "x: unknown TCP flag(s)");
        assert_eq!(
            CT_STATE.parse("+trk+trk").unwrap_err(),
            "trk: Each ct_state flag can be specified only once"
        );
        let mut out = String::new();
        CT_STATE.put_masked(&mut out, 0x20, 0x21, 0xff);
        assert_eq!(out, "-new+trk");
    }
}
