//! What the kernel says of a switch's process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sys::netns::NetNs;
use testkit::Running;

/// How often the threads of a process have gone to sleep by themselves, by name without number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches(BTreeMap<String, u64>);

impl Switches {
    /// Those of the switch, now.
    pub(super) fn of(running: &Running) -> Result<Self, String> {
        let mut switches = Self::default();
        let tasks = process(running).join("task");
        let entries = fs::read_dir(&tasks).map_err(|e| format!("{}: {e}", tasks.display()))?;
        for entry in entries.flatten() {
            // A thread may end meanwhile.
            if let Ok(text) = fs::read_to_string(entry.path().join("status")) {
                switches.add(&text);
            }
        }
        Ok(switches)
    }

    fn add(&mut self, status: &str) {
        let value = |key| status.lines().find_map(|l| l.strip_prefix(key));
        let name = value("Name:").unwrap_or_default().trim();
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let count = value("voluntary_ctxt_switches:").and_then(|v| v.trim().parse::<u64>().ok());
        *self.0.entry(name.to_owned()).or_default() += count.unwrap_or(0);
    }

    /// Those of threads called `name`.
    pub(super) fn named(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Those of all threads.
    pub(super) fn all(&self) -> u64 {
        self.0.values().sum()
    }
}

fn process(running: &Running) -> PathBuf {
    Path::new("/proc").join(running.switch_id().to_string())
}

/// Netlink sockets that the switch has open.
pub(super) fn netlink_sockets(running: &Running) -> Result<usize, String> {
    let process = process(running);
    let table = process.join("net/netlink");
    let text = fs::read_to_string(&table).map_err(|e| format!("{}: {e}", table.display()))?;
    let inodes: BTreeSet<&str> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    let folder = process.join("fd");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let is_netlink = |path: PathBuf| {
        let target = fs::read_link(path).unwrap_or_default();
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[");
        inode.is_some_and(|i| inodes.contains(i.trim_end_matches(']')))
    };
    Ok(entries.flatten().filter(|e| is_netlink(e.path())).count())
}

/// Packets that a device of a namespace has received.
pub(super) fn received(netns: &NetNs, device: &str) -> Result<u64, String> {
    let read = || fs::read_to_string("/proc/thread-self/net/dev");
    let text = netns.run(read).and_then(|text| text);
    let text = text.map_err(|e| format!("/proc/net/dev: {e}"))?;
    packets(&text, device).ok_or_else(|| format!("no counters of {device}"))
}

fn packets(table: &str, device: &str) -> Option<u64> {
    let mut rows = table.lines().filter_map(|line| line.split_once(':'));
    let (_, row) = rows.find(|(name, _)| name.trim() == device)?;
    row.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_summed_by_name() {
        let mut switches = Switches::default();
        for (name, count) in [("handler1", 5), ("handler12", 6), ("main", 7)] {
            switches.add(&format!(
                "Name:\t{name}\nState:\tS\nvoluntary_ctxt_switches:\t{count}\n\
                 nonvoluntary_ctxt_switches:\t99\n"
            ));
        }
        assert_eq!((switches.named("handler"), switches.all()), (11, 18));
        assert_eq!(switches.named("revalidator"), 0);
    }

    #[test]
    fn packets_of_a_device() {
        let table = "Inter-| Receive\n face |bytes packets\n  br0: 640 10 0 0\nbr01:1 2 3\n";
        assert_eq!(packets(table, "br0"), Some(10));
        assert_eq!(packets(table, "br01"), Some(2));
        assert_eq!(packets(table, "br"), None);
    }
}
