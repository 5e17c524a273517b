//! Reading the columns of a row, with the defaults of `ovs-vswitchd.conf.db(5)`.

use db_model::{Atom, Datum};

/// A row of the database, or a stand-in for one.
pub trait Row {
    /// The value of a column, if the row has it.
    fn column(&self, name: &str) -> Option<&Datum>;
}

/// Reads of one row.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a>(pub(crate) &'a dyn Row);

impl<'a> Columns<'a> {
    /// A string column, empty when it is not set.
    pub(crate) fn text(self, name: &str) -> &'a str {
        self.0.column(name).and_then(Datum::as_str).unwrap_or("")
    }

    /// An integer column.
    pub(crate) fn integer(self, name: &str) -> Option<i64> {
        self.0.column(name).and_then(Datum::as_integer)
    }

    /// A boolean column.
    pub(crate) fn boolean(self, name: &str) -> Option<bool> {
        self.0.column(name).and_then(Datum::as_bool)
    }

    /// The strings of a set.
    pub(crate) fn texts(self, name: &str) -> impl Iterator<Item = &'a str> {
        let set = self.0.column(name).map_or(&[][..], Datum::as_set);
        set.iter().filter_map(Atom::as_str)
    }

    /// The integers of a set that fit a VLAN id or the like, in rising order.
    pub(crate) fn numbers<T: TryFrom<i64>>(self, name: &str) -> Vec<T> {
        let set = self.0.column(name).map_or(&[][..], Datum::as_set);
        set.iter()
            .filter_map(integer)
            .filter_map(|n| T::try_from(n).ok())
            .collect()
    }

    /// The pairs of a map of strings.
    pub(crate) fn pairs(self, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let map = self.0.column(name).map_or(&[][..], Datum::as_map);
        map.iter()
            .filter_map(|(k, v)| Some((k.as_str()?, v.as_str()?)))
    }

    /// The value of `key` in the map `other_config`.
    pub(crate) fn other(self, key: &str) -> Option<&'a str> {
        self.0.column("other_config").and_then(|d| d.get_str(key))
    }

    /// Whether `other_config` has `key` as `true`.
    pub(crate) fn other_true(self, key: &str) -> bool {
        self.other(key) == Some("true")
    }

    /// A number in `other_config`: decimal, or hexadecimal with `0x`.
    pub(crate) fn other_number<T: TryFrom<i64>>(self, key: &str) -> Option<T> {
        self.other(key)
            .and_then(number)
            .and_then(|n| T::try_from(n).ok())
    }
}

fn integer(atom: &Atom) -> Option<i64> {
    match atom {
        Atom::Integer(n) => Some(*n),
        _ => None,
    }
}

/// A number as `strtol` with base 0 would take it.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A MAC address: six bytes in hexadecimal with colons.
pub(crate) fn mac(text: &str) -> Option<u64> {
    let mut value = 0;
    let mut parts = 0;
    for part in text.split(':') {
        if part.is_empty() || part.len() > 2 {
            return None;
        }
        value = (value << 8) | u64::from(u8::from_str_radix(part, 16).ok()?);
        parts += 1;
    }
    (parts == 6).then_some(value)
}

/// Whether an address may be given to a device: unicast and not zero.
pub(crate) const fn is_usable_mac(mac: u64) -> bool {
    mac != 0 && (mac >> 40) & 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macs_are_six_hexadecimal_bytes() {
        assert_eq!(mac("00:0a:0:ff:10:01"), Some(0x000a_00ff_1001));
        for bad in [
            "",
            "00:0a:0:ff:10",
            "00:0a:0:ff:10:01:02",
            "g:0:0:0:0:0",
            "001:0:0:0:0:0",
        ] {
            assert_eq!(mac(bad), None, "{bad}");
        }
        assert!(!is_usable_mac(0x0100_0000_0000));
    }
}
