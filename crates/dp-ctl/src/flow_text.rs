//! Datapath flows as dumps show them.

use std::fmt::Write as _;

use base::Instant;
use dp_api::{DumpedFlow, FlowStats};
use dp_lang::text::{FlowFormat, PortNames, format_actions, format_flow};

/// How flows are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpFormat {
    /// Everything (`-m`).
    pub more: bool,
    /// What stands after the id.
    pub after_ufid: &'static str,
    /// Which datapath has the flow is told with `-m`.
    pub origin: bool,
    /// The flow is one of the kernel's datapath.
    pub kernel: bool,
}

/// `packets:..., bytes:..., used:...`.
pub fn stats_text(stats: &FlowStats, now: Instant) -> String {
    let mut text = format!("packets:{}, bytes:{}, used:", stats.packets, stats.bytes);
    match stats.used {
        Some(used) => {
            let millis = now.since(used).as_millis();
            let _ = write!(text, "{}.{:03}s", millis / 1000, millis % 1000);
        }
        None => text += "never",
    }
    if stats.tcp_flags != 0 {
        let _ = write!(text, ", flags:{}", tcp_flags(stats.tcp_flags));
    }
    text
}

fn tcp_flags(flags: u16) -> String {
    let letters = [
        (0x002, "S"),
        (0x001, "F"),
        (0x008, "P"),
        (0x004, "R"),
        (0x020, "U"),
        (0x010, "."),
        (0x040, "E"),
        (0x080, "C"),
        (0x100, "N"),
    ];
    let set = letters.iter().filter(|(bit, _)| flags & bit != 0);
    let mut text: String = set.map(|(_, letter)| *letter).collect();
    for bit in [0x200, 0x400, 0x800] {
        if flags & bit != 0 {
            let _ = write!(text, "[{bit:x}]");
        }
    }
    text
}

/// A flow in one line, as dumps show it: `-m` shows what does not matter as `flow` has it.
pub fn flow_text(flow: &DumpedFlow, names: &PortNames, format: DumpFormat, now: Instant) -> String {
    let mut text = String::new();
    if format.more {
        let _ = write!(text, "ufid:{}{} ", flow.ufid, format.after_ufid);
    }
    let verbose = FlowFormat {
        verbose: format.more,
        kernel: format.kernel,
    };
    let (key, mask) = (flow.key.expand(), flow.mask.expand_mask());
    text += &format_flow(&key, Some(&mask), names, verbose);
    let _ = write!(text, ", {}", stats_text(&flow.stats, now));
    if format.more && format.origin {
        text += ", dp:ovs";
    }
    let _ = write!(text, ", actions:{}", format_actions(&flow.actions, names));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics() {
        let mut stats = FlowStats::default();
        let now = Instant::from_millis(5000);
        assert_eq!(stats_text(&stats, now), "packets:0, bytes:0, used:never");
        stats.packets = 1;
        stats.bytes = 54;
        stats.used = Some(Instant::from_millis(3811));
        stats.tcp_flags = 0x12;
        let text = "packets:1, bytes:54, used:1.189s, flags:S.";
        assert_eq!(stats_text(&stats, now), text);
    }
}
