//! The texts of `fdb/show` and `fdb/stats-show`.

use std::fmt::{self, Display};

use crate::mac_learning::{Shown, Stats};

/// The table as `fdb/show` prints it; `port_name` says how a port is called.
pub fn show(entries: &[Shown], port_name: impl Fn(u32) -> String) -> String {
    let mut text = String::from(" port  VLAN  MAC                Age\n");
    for entry in entries {
        let mac = entry.station.mac;
        let bytes: Vec<String> = (0..6)
            .rev()
            .map(|i| format!("{:02x}", mac >> (8 * i) & 0xff))
            .collect();
        let age = match entry.age {
            Some(age) => format!("{age:3}"),
            None => "static".to_string(),
        };
        let line = format!(
            "{:>5}  {:4}  {}  {age}\n",
            port_name(entry.port),
            entry.station.vlan,
            bytes.join(":")
        );
        text.push_str(&line);
    }
    text
}

/// As `fdb/stats-show` prints them below its heading.
impl Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  Current/maximum MAC entries in the table: {}/{}",
            self.entries, self.max
        )?;
        for (what, count) in [
            (
                "Current static MAC entries in the table",
                self.static_entries as u64,
            ),
            ("Total number of learned MAC entries", self.learned),
            ("Total number of expired MAC entries", self.expired),
            ("Total number of evicted MAC entries", self.evicted),
            ("Total number of port moved MAC entries", self.moved),
        ] {
            writeln!(f, "  {what:<40}: {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac_learning::Station;

    #[test]
    fn texts_are_as_scripts_expect_them() {
        let station = Station {
            vlan: 12,
            mac: 0x5054_0000_0005,
        };
        let entry = |age| Shown {
            station,
            port: 3,
            age,
        };
        let text = show(&[entry(Some(7)), entry(None)], |p| p.to_string());
        assert_eq!(
            text,
            " port  VLAN  MAC                Age\n\
             \x20   3    12  50:54:00:00:00:05    7\n\
             \x20   3    12  50:54:00:00:00:05  static\n"
        );
        let stats = Stats::default().to_string();
        assert!(stats.contains("  Total number of expired MAC entries     : 0\n"));
        assert!(stats.contains("  Current static MAC entries in the table : 0\n"));
    }
}
