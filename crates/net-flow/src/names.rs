//! Names of ports and tables, as a switch gives them.

use std::collections::HashMap;
use std::fmt::Write;

/// Names for numbers, both ways.  A name or number that occurs twice stands for nothing.
#[derive(Clone, Debug, Default)]
pub struct NameMap {
    by_name: HashMap<String, Option<u32>>,
    by_number: HashMap<u32, Option<String>>,
}

impl NameMap {
    /// Adds the name `name` for `number`.
    pub fn insert(&mut self, number: u32, name: &str) {
        let known = self.by_name.get(name).copied();
        if known == Some(Some(number)) {
            return;
        }
        let duplicate_name = known.is_some();
        let duplicate_number = self.by_number.contains_key(&number);
        let number_value = (!duplicate_name).then_some(number);
        self.by_name.insert(name.to_owned(), number_value);
        let name_value = (!duplicate_number).then(|| name.to_owned());
        self.by_number.insert(number, name_value);
    }

    /// The number of `name`.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied().flatten()
    }

    /// The name of `number`.
    pub fn name(&self, number: u32) -> Option<&str> {
        self.by_number.get(&number)?.as_deref()
    }

    /// The names, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// Names of the ports and tables of a switch, where texts may use them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names of ports, by their number in OpenFlow 1.1 and later.
    pub ports: NameMap,
    /// Names of tables.
    pub tables: NameMap,
}

/// Appends `name`, in quotes if it is not just a letter and then letters and digits.
pub fn put_name(out: &mut String, name: &str) {
    let mut bytes = name.bytes();
    let plain = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric());
    if plain {
        out.push_str(name);
        return;
    }
    out.push('"');
    for c in name.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurs_twice_stands_for_nothing() {
        let mut map = NameMap::default();
        map.insert(1, "a");
        map.insert(2, "b");
        map.insert(2, "c");
        map.insert(3, "a");
        assert_eq!((map.number("a"), map.name(1)), (None, Some("a")));
        assert_eq!((map.number("b"), map.name(2)), (Some(2), None));
    }

    #[test]
    fn odd_names_are_quoted() {
        let mut out = String::new();
        put_name(&mut out, "eth0");
        put_name(&mut out, "br-int");
        assert_eq!(out, "eth0\"br-int\"");
    }
}
