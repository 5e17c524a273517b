//! Flows and actions as text: what `dpctl/dump-flows` prints and `dpctl/add-flow` reads.

mod action;
mod connection;
mod cursor;
mod field;
mod key;
mod parse_action;
mod parse_key;
mod tunnel;

use std::collections::BTreeMap;

pub use action::format_actions;
pub use connection::{ConnectionFormat, format_connection, format_limits};
pub use key::{FlowFormat, format_flow};
pub use parse_action::parse_actions;
pub use parse_key::{FlowText, parse_flow, parse_ufid};

use crate::PortNo;

/// Names of ports, both ways.
#[derive(Clone, Debug, Default)]
pub struct PortNames {
    by_number: BTreeMap<PortNo, String>,
    by_name: BTreeMap<String, PortNo>,
}

impl PortNames {
    /// No names: ports are printed and read as numbers.
    pub const fn none() -> Self {
        Self {
            by_number: BTreeMap::new(),
            by_name: BTreeMap::new(),
        }
    }

    /// Gives port `number` a name.
    pub fn insert(&mut self, number: PortNo, name: &str) {
        self.by_number.insert(number, name.to_owned());
        self.by_name.insert(name.to_owned(), number);
    }

    /// All ports that have names, by number.
    pub fn iter(&self) -> impl Iterator<Item = (PortNo, &str)> {
        self.by_number.iter().map(|(port, name)| (*port, &name[..]))
    }

    /// The name of a port, or its number where it has none.
    pub fn text(&self, port: PortNo) -> String {
        match self.by_number.get(&port) {
            Some(name) => name.clone(),
            None => port.to_string(),
        }
    }

    /// The port with this name or number.
    pub fn lookup(&self, text: &str) -> Option<PortNo> {
        let named = self.by_name.get(text).copied();
        named.or_else(|| {
            let number = cursor::parse_number(text)?;
            Some(PortNo(u32::try_from(number).ok()?))
        })
    }
}

impl FromIterator<(PortNo, String)> for PortNames {
    fn from_iter<I: IntoIterator<Item = (PortNo, String)>>(ports: I) -> Self {
        let mut names = Self::none();
        for (number, name) in ports {
            names.insert(number, &name);
        }
        names
    }
}
