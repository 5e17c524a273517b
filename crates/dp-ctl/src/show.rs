//! `dump-dps`, `show`, and what is known of caches and offloads.

use std::fmt::Write as _;
use std::sync::Arc;

use dp_api::{Datapath, PortInfo};
use net_dev::{Device, DeviceStats};

use crate::commands::{Call, Failed, INVALID, NO_DEVICE, Outcome, errno, full_name};

impl Call<'_> {
    /// Does `f` for each datapath.
    fn for_each(&mut self, f: impl Fn(&mut Self, &Arc<dyn Datapath>)) -> Outcome {
        let (all, failure) = self.all();
        let mut outcome = Ok(());
        for (kind, name) in &all {
            match self.try_open(&format!("{kind}@{name}")) {
                Ok(datapath) => f(self, &datapath),
                Err(why) => {
                    outcome = self.fail_with(&format!("opening datapath {name} failed"), &why);
                }
            }
        }
        // That one type could not be listed does not matter to who sees another's.
        if failure.is_some() && all.is_empty() {
            return Err(Failed);
        }
        outcome
    }
}

pub(crate) fn dump_dps(call: &mut Call<'_>) -> Outcome {
    call.for_each(|call, datapath| call.print(full_name(datapath) + "\n"))
}

pub(crate) fn show(call: &mut Call<'_>) -> Outcome {
    if call.operands.is_empty() {
        return call.for_each(show_one);
    }
    let mut outcome = Ok(());
    for name in call.operands {
        match call.try_open(name) {
            Ok(datapath) => show_one(call, &datapath),
            Err(why) => {
                outcome = call.fail_with(&format!("opening datapath {name} failed"), &why);
            }
        }
    }
    outcome
}

fn show_one(call: &mut Call<'_>, datapath: &Arc<dyn Datapath>) {
    let mut text = format!("{}:\n", full_name(datapath));
    put_lookups(&mut text, datapath);
    let mut ports = datapath.ports();
    ports.sort_by_key(|port| port.number);
    for port in ports {
        put_port(&mut text, datapath, &port);
        if call.options.statistics {
            put_port_stats(&mut text, datapath, &port);
        }
    }
    call.print(text);
}

fn put_lookups(text: &mut String, datapath: &Arc<dyn Datapath>) {
    let stats = datapath.stats();
    let _ = writeln!(
        text,
        "  lookups: hit:{} missed:{} lost:{}\n  flows: {}",
        stats.hits, stats.misses, stats.lost, stats.flows
    );
    if datapath.is_userspace() {
        // Of its threads' tables it tells elsewhere.
        return;
    }
    let packets = stats.hits + stats.misses;
    let per_packet = |count: u64| {
        if packets == 0 {
            0.0
        } else {
            count as f64 / packets as f64
        }
    };
    let _ = writeln!(
        text,
        "  masks: hit:{} total:{} hit/pkt:{:.2}",
        stats.mask_hits,
        stats.masks,
        per_packet(stats.mask_hits)
    );
    if let Some(hits) = stats.cache_hits {
        let rate = per_packet(hits) * 100.0;
        let _ = writeln!(text, "  cache: hit:{hits} hit-rate:{rate:.2}%");
    }
    *text += &cache_lines(stats.masks_cache_size);
}

/// Types of ports whose devices are tunnels.
const TUNNELS: [&str; 9] = [
    "bareudp",
    "erspan",
    "geneve",
    "gre",
    "gtpu",
    "ip6erspan",
    "ip6gre",
    "srv6",
    "vxlan",
];

/// The options of a port's device, sorted.
fn options(port: &PortInfo, device: &dyn Device) -> Vec<(String, String)> {
    let mut options = device.options();
    // The datapath has one port for all tunnels of a type, whose packets come with their types.
    if options.is_empty() && TUNNELS.contains(&&*port.kind) {
        options.push(("packet_type".to_owned(), "ptap".to_owned()));
    }
    options.sort();
    options
}

fn put_port(text: &mut String, datapath: &Arc<dyn Datapath>, port: &PortInfo) {
    let _ = write!(text, "  port {}: {}", port.number, port.name);
    if port.kind != "system" {
        let _ = write!(text, " ({}", port.kind);
        let device = datapath.port_device(port.number);
        match device.map(|device| options(port, &*device)) {
            Ok(options) => {
                let mut before = ":";
                for (key, value) in options {
                    let _ = write!(text, "{before} {key}={value}");
                    before = ",";
                }
            }
            Err(error) => {
                let _ = write!(text, ": open failed ({})", errno(&error, NO_DEVICE));
            }
        }
        text.push(')');
    }
    text.push('\n');
}

fn put_port_stats(text: &mut String, datapath: &Arc<dyn Datapath>, port: &PortInfo) {
    let device = match datapath.port_device(port.number) {
        Ok(device) => device,
        Err(error) => {
            let _ = writeln!(text, ", open failed ({})", errno(&error, NO_DEVICE));
            return;
        }
    };
    match device.stats() {
        Ok(mut stats) => {
            if let Some(upcalls) = datapath.upcalls(port.number) {
                stats.upcall_packets = Some(upcalls.taken);
                stats.upcall_errors = Some(upcalls.lost);
            }
            *text += &stats_lines(&stats);
        }
        Err(error) => {
            let why = base::errno_text(&error);
            let _ = writeln!(text, ", could not retrieve stats ({why})");
        }
    }
}

fn stats_lines(s: &DeviceStats) -> String {
    let known = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), |v| v.to_string());
    let lines: [&[(&str, Option<u64>)]; 3] = [
        &[
            ("    RX packets:", s.rx_packets),
            (" errors:", s.rx_errors),
            (" dropped:", s.rx_dropped),
            (" overruns:", s.rx_over_errors),
            (" frame:", s.rx_frame_errors),
        ],
        &[
            ("    TX packets:", s.tx_packets),
            (" errors:", s.tx_errors),
            (" dropped:", s.tx_dropped),
            (" aborted:", s.tx_aborted_errors),
            (" carrier:", s.tx_carrier_errors),
        ],
        &[("    collisions:", s.collisions)],
    ];
    let mut text = String::new();
    for line in lines {
        for (name, value) in line {
            text += &format!("{name}{}", known(*value));
        }
        text.push('\n');
    }
    let bytes = |value: Option<u64>| known(value) + &human(value);
    let _ = writeln!(
        text,
        "    RX bytes:{}  TX bytes:{}",
        bytes(s.rx_bytes),
        bytes(s.tx_bytes)
    );
    let _ = writeln!(
        text,
        "    UPCALL packets:{} errors:{}",
        known(s.upcall_packets),
        known(s.upcall_errors)
    );
    text
}

/// A count of bytes in a larger unit, if it is large.
fn human(bytes: Option<u64>) -> String {
    let mut value = bytes.unwrap_or(0) as f64;
    let mut unit = None;
    for name in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(name);
    }
    unit.map_or_else(String::new, |unit| format!(" ({value:.1} {unit})"))
}

/// No datapath has devices that take flows over.
pub(crate) fn offload_stats(call: &mut Call<'_>) -> Outcome {
    call.optional_datapath(call.operands, 0)?;
    call.print("HW Offload stats:\n");
    Ok(())
}

fn cache_lines(masks: Option<u32>) -> String {
    masks.map_or_else(String::new, |size| {
        format!("  caches:\n    masks-cache: size:{size}\n")
    })
}

/// The sizes of a datapath's caches.
fn show_caches(call: &mut Call<'_>, datapath: &Arc<dyn Datapath>) {
    let size = datapath.stats().masks_cache_size;
    call.print(full_name(datapath) + ":\n" + &cache_lines(size));
}

pub(crate) fn cache_get_size(call: &mut Call<'_>) -> Outcome {
    let Some(name) = call.operands.first() else {
        return call.for_each(show_caches);
    };
    match call.try_open(name) {
        Ok(datapath) => {
            show_caches(call, &datapath);
            Ok(())
        }
        Err(why) => call.fail_with(&format!("Opening datapath {name} failed"), &why),
    }
}

pub(crate) fn cache_set_size(call: &mut Call<'_>) -> Outcome {
    let (name, size) = (call.operands[0], call.operands[2]);
    let Ok(size) = size.parse::<u32>() else {
        return call.fail_with("size is malformed", INVALID);
    };
    let datapath = match call.try_open(name) {
        Ok(datapath) => datapath,
        Err(why) => return call.fail_with(&format!("Opening datapath {name} failed"), &why),
    };
    if datapath.stats().masks_cache_size.is_none() {
        return call.fail_with("Setting caches not supported", "Operation not supported");
    }
    let cache = call.operands[1];
    if cache != "masks-cache" {
        let what = format!("Cache name \"{cache}\" not found on dpif");
        return call.fail_with(&what, INVALID);
    }
    if let Err(error) = datapath.set_masks_cache_size(size) {
        return call.fail_with("Setting cache size failed", &errno(&error, NO_DEVICE));
    }
    let now = datapath.stats().masks_cache_size.unwrap_or(size);
    call.print(format!("Setting cache size successful, new size {now}\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_a_port() {
        let stats = DeviceStats {
            rx_packets: Some(3),
            rx_bytes: Some(1536),
            tx_bytes: Some(5 << 40),
            collisions: Some(0),
            ..DeviceStats::default()
        };
        let want = "    RX packets:3 errors:? dropped:? overruns:? frame:?\n    \
                    TX packets:? errors:? dropped:? aborted:? carrier:?\n    \
                    collisions:0\n    \
                    RX bytes:1536 (1.5 KiB)  TX bytes:5497558138880 (5.0 TiB)\n    \
                    UPCALL packets:? errors:?\n";
        assert_eq!(stats_lines(&stats), want);
    }
}
