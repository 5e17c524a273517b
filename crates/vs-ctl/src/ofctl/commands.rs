//! The commands of `ovs-ofctl`.

use super::{
    Ctl, Outcome, capture, compose, conntrack, debug, diff, dump, fatal, flows, groups, monitor,
    packet_out, ports, probe, tables, vlan,
};

/// A command: what it is called, what it takes, and how it is carried out.
pub(super) struct Command {
    pub(super) name: &'static str,
    usage: Option<&'static str>,
    pub(super) min: usize,
    pub(super) max: usize,
    /// It changes something, and is refused under `--read-only`.
    pub(super) writes: bool,
    pub(super) run: fn(&mut Ctl<'_, '_>, &[String]) -> Outcome,
}

const ANY: usize = usize::MAX;

macro_rules! commands {
    ($($name:literal $usage:expr, $min:expr, $max:expr, $writes:literal, $run:expr;)*) => {
        static COMMANDS: &[Command] = &[$(Command {
            name: $name,
            usage: $usage,
            min: $min,
            max: $max,
            writes: $writes,
            run: $run,
        }),*];
    };
}

commands! {
    "show" Some("switch"), 1, 1, false, dump::show;
    "monitor" Some("switch [misslen] [invalid_ttl] [watch:[...]]"), 1, 3, false, monitor::monitor;
    "snoop" Some("switch"), 1, 1, false, monitor::snoop;
    "dump-desc" Some("switch"), 1, 1, false, dump::desc;
    "dump-tables" Some("switch"), 1, 1, false, dump::tables;
    "dump-table-features" Some("switch"), 1, 1, false, dump::table_features;
    "dump-table-desc" Some("switch"), 1, 1, false, tables::desc;
    "dump-flows" Some("switch"), 1, 2, false, dump::flows;
    "dump-aggregate" Some("switch"), 1, 2, false, dump::aggregate;
    "queue-stats" Some("switch [port [queue]]"), 1, 3, false, ports::queue_stats;
    "queue-get-config" Some("switch [port [queue]]"), 1, 3, false, ports::queue_get_config;
    "add-flow" Some("switch flow"), 2, 2, true, flows::add;
    "add-flows" Some("switch file"), 2, 2, true, flows::add_file;
    "mod-flows" Some("switch flow"), 2, 2, true, flows::modify;
    "del-flows" Some("switch [flow]"), 1, 2, true, flows::delete;
    "replace-flows" Some("switch file"), 2, 2, true, diff::replace;
    "diff-flows" Some("source1 source2"), 2, 2, true, diff::diff;
    "add-meter" Some("switch meter"), 2, 2, true, not_yet;
    "mod-meter" Some("switch meter"), 2, 2, true, not_yet;
    "del-meter" Some("switch meter"), 1, 2, true, not_yet;
    "del-meters" Some("switch"), 1, 2, true, not_yet;
    "dump-meter" Some("switch meter"), 1, 2, false, not_yet;
    "dump-meters" Some("switch"), 1, 2, false, not_yet;
    "meter-stats" Some("switch [meter]"), 1, 2, false, not_yet;
    "meter-features" Some("switch"), 1, 1, false, not_yet;
    "packet-out" Some("switch \"in_port=<port> packet=<hex data> actions=...\""), 2, ANY, true,
        packet_out::packet_out;
    "dump-ports" Some("switch [port]"), 1, 2, false, ports::stats;
    "dump-ports-desc" Some("switch [port]"), 1, 2, false, ports::desc;
    "mod-port" Some("switch iface act"), 3, 3, true, ports::modify;
    "mod-table" Some("switch mod"), 3, 3, true, tables::modify;
    "get-frags" Some("switch"), 1, 1, false, ports::get_frags;
    "set-frags" Some("switch frag_mode"), 2, 2, true, ports::set_frags;
    "probe" Some("target"), 1, 1, false, probe::probe;
    "ping" Some("target [n]"), 1, 2, false, probe::ping;
    "benchmark" Some("target n count"), 3, 3, false, probe::benchmark;
    "dump-ipfix-bridge" Some("switch"), 1, 1, false, not_yet;
    "dump-ipfix-flow" Some("switch"), 1, 1, false, not_yet;
    "ct-flush-zone" Some("switch zone"), 2, 2, true, conntrack::flush_zone;
    "ct-flush"
        Some("switch [zone=N] [mark=X[/M]] [labels=Y[/N]] [ct-orig-tuple [ct-reply-tuple]]"),
        1, 6, true, conntrack::flush;
    "ofp-parse" Some("file"), 1, 1, true, debug::ofp_parse;
    "ofp-parse-pcap" Some("pcap"), 1, ANY, true, capture::ofp_parse_pcap;
    "add-group" Some("switch group"), 1, 2, true, groups::add;
    "add-groups" Some("switch file"), 2, 2, true, groups::add_file;
    "mod-group" Some("switch group"), 1, 2, true, groups::modify;
    "del-groups" Some("switch [group]"), 1, 2, true, groups::delete;
    "insert-buckets" Some("switch [group]"), 1, 2, true, groups::insert_buckets;
    "remove-buckets" Some("switch [group]"), 1, 2, true, groups::remove_buckets;
    "dump-groups" Some("switch [group]"), 1, 2, false, groups::dump;
    "dump-group-stats" Some("switch [group]"), 1, 2, false, groups::stats;
    "dump-group-features" Some("switch"), 1, 1, false, groups::features;
    "bundle" Some("switch file"), 2, 2, true, groups::bundle;
    "add-tlv-map" Some("switch map"), 2, 2, false, not_yet;
    "del-tlv-map" Some("switch [map]"), 1, 2, false, not_yet;
    "dump-tlv-map" Some("switch"), 1, 1, false, not_yet;
    "help" None, 0, ANY, false, |_, _| fatal("use --help for help");
    "list-commands" None, 0, ANY, false, list;
    "parse-flow" None, 1, 1, true, debug::parse_flow;
    "parse-flows" None, 1, 1, true, debug::parse_flows;
    "parse-nx-match" None, 0, 0, true, debug::parse_nxm;
    "parse-nxm" None, 0, 0, true, debug::parse_nxm;
    "parse-oxm" None, 1, 1, true, debug::parse_oxm;
    "parse-actions" None, 1, 1, true, debug::parse_actions;
    "parse-instructions" None, 1, 1, true, debug::parse_instructions;
    "parse-ofp10-match" None, 0, 0, true, debug::parse_ofp10_match;
    "parse-ofp11-match" None, 0, 0, true, debug::parse_ofp11_match;
    "parse-group" None, 1, 1, true, groups::parse;
    "parse-pcap" None, 1, ANY, true, debug::parse_pcap;
    "check-vlan" None, 2, 2, true, vlan::check;
    "print-error" None, 1, 1, true, debug::print_error;
    "encode-error-reply" None, 2, 2, true, debug::encode_error_reply;
    "ofp-print" None, 1, 2, true, debug::ofp_print;
    "encode-hello" None, 1, 1, true, debug::encode_hello;
    "parse-key-value" None, 1, ANY, true, debug::parse_key_value;
    "compose-packet" None, 1, 2, false, compose::compose_packet;
    "parse-packet" None, 0, 0, false, debug::parse_packet;
}

/// The command called `name`.
pub(super) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

fn not_yet(_: &mut Ctl<'_, '_>, _: &[String]) -> Outcome {
    fatal("this command is not supported yet")
}

fn list(ctl: &mut Ctl<'_, '_>, _: &[String]) -> Outcome {
    ctl.env.print("The available commands are:\n");
    for command in COMMANDS {
        let usage = command.usage.unwrap_or_default();
        ctl.env
            .print(format_args!("  {:<23} {usage}\n", command.name));
    }
    Ok(())
}
