//! What the switch reports, written into the status columns.  A column that holds the
//! value already is not sent.

use db_client::{Replica, TableId, Transaction};
use db_model::{Atom, Datum, Uuid};
use vs_switch::status::{BridgeStatus, ControllerStatus, InterfaceStatistics, InterfaceStatus};

use crate::tables::Tables;

/// Writes of status columns into one transaction.
pub(crate) struct StatusWriter<'a> {
    pub(crate) replica: &'a Replica,
    pub(crate) tables: Tables,
    pub(crate) transaction: &'a mut Transaction,
}

impl StatusWriter<'_> {
    fn set(&mut self, table: TableId, row: Uuid, column: &str, datum: Datum) {
        if let Some(column) = self.replica.layout()[table].column(column) {
            self.transaction
                .set(self.replica, table, row, column, datum);
        }
    }

    /// The columns of an interface apart from its statistics.
    pub(crate) fn interface(&mut self, row: Uuid, status: &InterfaceStatus) {
        let ofport = match (status.ofport, &status.error) {
            (Some(port), _) => Some(i64::from(port)),
            (None, Some(_)) => Some(-1),
            (None, None) => None,
        };
        let error = status.error.as_deref().filter(|error| !error.is_empty());
        let up = |up: bool| Atom::string(if up { "up" } else { "down" });
        let duplex = |full: bool| Atom::string(if full { "full" } else { "half" });
        let number = |n: Option<u64>| n.and_then(|n| i64::try_from(n).ok());
        let columns = [
            ("ofport", integers(ofport)),
            ("error", set(error.map(Atom::string))),
            (
                "mac_in_use",
                set(status.mac_in_use.map(|m| Atom::string(mac_text(m)))),
            ),
            ("mtu", integers(status.mtu.map(i64::from))),
            ("ifindex", integers(status.ifindex.map(i64::from))),
            ("admin_state", set(status.admin_up.map(up))),
            ("link_state", set(status.link_up.map(up))),
            ("link_resets", integers(number(status.link_resets))),
            ("link_speed", integers(number(status.link_speed))),
            ("duplex", set(status.full_duplex.map(duplex))),
            ("status", texts(&status.status)),
        ];
        for (column, datum) in columns {
            self.set(self.tables.interface.id, row, column, datum);
        }
    }

    /// The statistics of an interface.
    pub(crate) fn statistics(&mut self, row: Uuid, statistics: &InterfaceStatistics) {
        let counts = statistics.iter().map(|(name, value)| (&name[..], *value));
        self.set(
            self.tables.interface.id,
            row,
            "statistics",
            counters(counts),
        );
    }

    /// The statistics of a mirror.
    pub(crate) fn mirror(&mut self, row: Uuid, packets: u64, bytes: u64) {
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let counts = [("tx_packets", whole(packets)), ("tx_bytes", whole(bytes))];
        let table = self.tables.mirror.id;
        self.set(table, row, "statistics", counters(counts.into_iter()));
    }

    /// The columns of a bridge.
    pub(crate) fn bridge(&mut self, row: Uuid, status: &BridgeStatus) {
        let table = self.tables.bridge.id;
        let id = Atom::string(format!("{:016x}", status.datapath_id));
        self.set(table, row, "datapath_id", set(Some(id)));
        self.set(
            table,
            row,
            "datapath_version",
            set(Some(Atom::string("<built-in>"))),
        );
    }

    /// The columns of a controller.
    pub(crate) fn controller(&mut self, row: Uuid, status: &ControllerStatus) {
        let table = self.tables.controller.id;
        self.set(
            table,
            row,
            "is_connected",
            set(Some(Atom::Boolean(status.is_connected))),
        );
        self.set(
            table,
            row,
            "role",
            set(status.role.as_deref().map(Atom::string)),
        );
        self.set(table, row, "status", texts(&status.status));
    }

    /// A set of strings in the one row of `Open_vSwitch`.
    pub(crate) fn root_set(&mut self, row: Uuid, column: &str, values: &[String]) {
        let atoms = values.iter().map(|v| Atom::string(v.as_str())).collect();
        self.set(
            self.tables.root.id,
            row,
            column,
            Datum::from_set_lossy(atoms),
        );
    }

    /// An integer in the one row of `Open_vSwitch`.
    pub(crate) fn root_integer(&mut self, row: Uuid, column: &str, value: i64) {
        self.set(self.tables.root.id, row, column, integers(Some(value)));
    }
}

fn set(atom: Option<Atom>) -> Datum {
    Datum::from_set_lossy(atom.into_iter().collect())
}

fn integers(value: Option<i64>) -> Datum {
    set(value.map(Atom::Integer))
}

fn counters<'a>(counts: impl Iterator<Item = (&'a str, i64)>) -> Datum {
    let pair = |(name, value)| (Atom::string(name), Atom::Integer(value));
    Datum::from_map(counts.map(pair).collect()).unwrap_or(Datum::EMPTY)
}

fn texts(pairs: &[(String, String)]) -> Datum {
    let pair = |(k, v): &(String, String)| (Atom::string(k.as_str()), Atom::string(v.as_str()));
    Datum::from_map(pairs.iter().map(pair).collect()).unwrap_or(Datum::EMPTY)
}

fn mac_text(mac: u64) -> String {
    let bytes = mac.to_be_bytes();
    let parts: Vec<String> = bytes[2..].iter().map(|b| format!("{b:02x}")).collect();
    parts.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macs_are_printed_with_colons() {
        assert_eq!(mac_text(0x000a_00ff_1001), "00:0a:00:ff:10:01");
    }
}
