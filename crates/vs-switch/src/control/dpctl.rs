//! `dpctl/*`: datapaths as they are, whatever bridges are on them.

use std::fmt::Write as _;

use base::Instant;
use dp_api::{DumpedFlow, Error, FlowPut, PortStats};
use dp_lang::text::{PortNames, parse_actions, parse_flow, parse_ufid};
use dp_lang::{PortNo as DpPort, Ufid};
use net_flow::text::{KeyValues, apply_key};
use net_flow::{FlowKey, FlowMask, Formats, Match, MiniKey, Names, slot};

use super::flow::DumpFormat;
use super::{Command, MANY, command};
use crate::backer::Backer;
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command("dpctl/dump-dps", "", 0, 0, dump_dps),
    command("dpctl/show", "[-s] [dp...]", 0, MANY, show),
    command(
        "dpctl/dump-flows",
        "[-m] [--names] [dp] [filter=..] [type=..] [pmd=..]",
        0,
        MANY,
        dump_flows,
    ),
    command("dpctl/add-flow", "[dp] flow actions", 2, 3, add_flow),
    command("dpctl/mod-flow", "[dp] flow actions", 2, 3, mod_flow),
    command("dpctl/get-flow", "[dp] ufid", 1, 3, get_flow),
    command("dpctl/del-flow", "[dp] flow", 1, 2, del_flow),
    command("dpctl/del-flows", "[dp]", 0, 1, del_flows),
    command("dpctl/parse-actions", "actions", 1, 1, parse),
];

fn fail(what: &str, why: &str) -> String {
    format!("ovs-vswitchd: {what} ({why})")
}

/// Options and operands apart.
#[derive(Default)]
struct Args<'a> {
    more: bool,
    names: Option<bool>,
    statistics: bool,
    operands: Vec<&'a str>,
}

fn split(args: &[String]) -> Result<Args<'_>, String> {
    let mut split = Args::default();
    for arg in args {
        match arg.as_str() {
            "-m" | "--more" => split.more = true,
            "--names" => split.names = Some(true),
            "--no-names" => split.names = Some(false),
            "-s" | "--statistics" => split.statistics = true,
            option if option.starts_with('-') => {
                return Err(format!("Unrecognized option {option}"));
            }
            operand => split.operands.push(operand),
        }
    }
    Ok(split)
}

impl Switch {
    /// The datapath called `TYPE@NAME` or, for the default type, `NAME`.
    fn datapath(&self, name: &str) -> Option<&Backer> {
        let mut backers = self.backers.values();
        backers.find(|b| b.display_name() == name)
    }

    /// The only datapath.
    fn only_datapath(&self) -> Result<&Backer, String> {
        let mut backers = self.backers.values();
        match (backers.next(), backers.next()) {
            (Some(backer), None) => Ok(backer),
            (None, _) => Err("ovs-vswitchd: no datapaths exist".to_owned()),
            _ => Err("ovs-vswitchd: multiple datapaths, specify one".to_owned()),
        }
    }

    /// Takes a datapath's name off the front, if there is one more operand than `own`.
    fn datapath_of<'a>(&self, operands: &mut &'a [&'a str], own: usize) -> Result<&Backer, String> {
        if operands.len() <= own {
            return self.only_datapath();
        }
        let name = operands[0];
        *operands = &operands[1..];
        let found = self.datapath(name);
        found.ok_or_else(|| fail("opening datapath", "No such device"))
    }
}

fn dump_dps(switch: &mut Switch, _args: &[String], _now: Instant) -> Result<String, String> {
    let mut text = String::new();
    for backer in switch.backers.values() {
        let _ = writeln!(text, "{}", backer.display_name());
    }
    Ok(text)
}

fn show(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    let args = split(args)?;
    let mut text = String::new();
    if args.operands.is_empty() {
        for backer in switch.backers.values() {
            show_one(&mut text, backer, args.statistics);
        }
    }
    for name in args.operands {
        let backer = switch.datapath(name);
        let what = format!("opening datapath {name} failed");
        let backer = backer.ok_or_else(|| fail(&what, "No such device"))?;
        show_one(&mut text, backer, args.statistics);
    }
    Ok(text)
}

fn show_one(text: &mut String, backer: &Backer, statistics: bool) {
    let stats = backer.datapath.stats();
    let _ = writeln!(text, "{}:", backer.display_name());
    let _ = writeln!(
        text,
        "  lookups: hit:{} missed:{} lost:{}",
        stats.hits, stats.misses, stats.lost
    );
    let _ = writeln!(text, "  flows: {}", stats.flows);
    for port in backer.datapath.ports() {
        let _ = writeln!(
            text,
            "  port {}: {} ({})",
            port.number, port.name, port.kind
        );
        if statistics && let Ok(stats) = backer.datapath.port_stats(port.number) {
            put_port_stats(text, backer, port.number, &stats);
        }
    }
}

fn put_port_stats(text: &mut String, backer: &Backer, port: DpPort, stats: &PortStats) {
    let device = backer.datapath.port_device(port).ok();
    let counted = device.and_then(|d| d.stats().ok()).unwrap_or_default();
    let known = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), |v| v.to_string());
    let _ = writeln!(
        text,
        "    RX packets:{} errors:{} dropped:{} overruns:{} frame:{}",
        stats.rx_packets,
        known(counted.rx_errors),
        known(counted.rx_dropped),
        known(counted.rx_over_errors),
        known(counted.rx_frame_errors)
    );
    let _ = writeln!(
        text,
        "    TX packets:{} errors:{} dropped:{} aborted:{} carrier:{}",
        stats.tx_packets,
        known(counted.tx_errors),
        known(counted.tx_dropped),
        known(counted.tx_aborted_errors),
        known(counted.tx_carrier_errors)
    );
    let _ = writeln!(text, "    collisions:{}", known(counted.collisions));
    let _ = writeln!(
        text,
        "    RX bytes:{}{}  TX bytes:{}{}",
        stats.rx_bytes,
        human(stats.rx_bytes),
        stats.tx_bytes,
        human(stats.tx_bytes)
    );
    text.push_str("    UPCALL packets:? errors:?\n");
}

/// A count of bytes in a larger unit, if it is large.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(name);
    }
    unit.map_or_else(String::new, |unit| format!(" ({value:.1} {unit})"))
}

/// Which flows a dump shows.
struct Filter {
    ours: bool,
    fields: Option<Match>,
    /// Flows of the main thread's table only, which then goes without saying.
    pmd: Option<bool>,
}

const TYPES: &[(&str, bool)] = &[
    ("ovs", true),
    ("non-offloaded", true),
    ("tc", false),
    ("dpdk", false),
    ("offloaded", false),
    ("partially-offloaded", false),
    ("fully-offloaded", false),
];

impl Filter {
    fn parse<'a>(operands: &[&'a str]) -> Result<(Self, Option<&'a str>), String> {
        let mut filter = Self {
            ours: true,
            fields: None,
            pmd: None,
        };
        let mut name = None;
        for operand in operands {
            if let Some(text) = operand.strip_prefix("filter=") {
                let fields = parse_filter(text);
                let fields = fields.map_err(|e| fail("Failed to parse filter", &e))?;
                filter.fields = Some(fields);
            } else if let Some(text) = operand.strip_prefix("type=") {
                filter.ours = false;
                for word in text.split(',') {
                    let known = TYPES.iter().find(|(name, _)| *name == word);
                    let what = format!("Failed to parse type ({word})");
                    let known = known.ok_or_else(|| fail(&what, "Invalid argument"))?;
                    filter.ours |= known.1;
                }
            } else if let Some(text) = operand.strip_prefix("pmd=") {
                let number = text.parse::<i32>();
                let number = number.map_err(|_| fail("Invalid pmd", "Invalid argument"))?;
                filter.pmd = Some(number == -1);
            } else if name.replace(*operand).is_some() {
                return Err(fail("datapath not found", "Invalid argument"));
            }
        }
        Ok((filter, name))
    }

    fn wants(&self, key: &FlowKey, mask: &FlowMask) -> bool {
        self.ours
            && self.pmd != Some(false)
            && self.fields.as_ref().is_none_or(|fields| {
                // A flow is wanted if some packet of it could match the filter.
                let mut common = fields.mask().clone();
                for word in 0..net_flow::KEY_WORDS {
                    common.set_word(word, common.word(word) & mask.word(word));
                }
                key.equal_under(fields.key(), &common)
            })
    }
}

fn parse_filter(text: &str) -> Result<Match, String> {
    let mut fields = Match::any();
    let names = Names::default();
    for item in KeyValues::new(text) {
        let mut formats = Formats::all();
        match apply_key(&mut fields, item.key, item.value, &names, &mut formats) {
            None => return Err(format!("{text}: unknown field {}", item.key)),
            Some(result) => result.map_err(|e| format!("{text}: {e}"))?,
        }
    }
    Ok(fields)
}

fn dump_flows(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let args = split(args)?;
    let (filter, name) = Filter::parse(&args.operands)?;
    let backer = match name {
        Some(name) => {
            let found = switch.datapath(name);
            found.ok_or_else(|| fail("datapath not found", "Invalid argument"))?
        }
        None => switch.only_datapath()?,
    };
    let names = if args.names.unwrap_or(args.more) {
        backer.port_names()
    } else {
        PortNames::none()
    };
    let format = DumpFormat {
        more: args.more,
        after_ufid: ",",
        origin: true,
    };
    let view = backer.shared.view.load();
    let mut text = String::new();
    for flow in backer.flows() {
        let mask = flow.mask.expand_mask();
        let mut key = flow.key.expand();
        if let (Some(_), Ok((_, located))) = (&filter.fields, view.locate(&key)) {
            // Filters speak OpenFlow: their ports are the bridge's.
            key = located;
        }
        if filter.wants(&key, &mask) {
            text += &backer.flow_text(&flow, &names, format, now);
            text.push('\n');
        }
    }
    if !text.is_empty() && filter.pmd.is_none() {
        text.insert_str(0, "flow-dump from the main thread:\n");
    }
    Ok(text)
}

fn errno(error: &Error) -> String {
    match error {
        Error::NotFound(_) => "No such file or directory".to_owned(),
        other => Backer::error_text(other),
    }
}

/// A flow as it is given: bits that nobody named do not matter, apart from those that always do.
fn given_flow(backer: &Backer, text: &str) -> Result<(MiniKey, MiniKey, Option<Ufid>), String> {
    let flow = parse_flow(text, &backer.port_names());
    let flow = flow.map_err(|e| fail("parsing flow key", &format!("{e} (Invalid argument)")))?;
    let mut mask = flow.mask;
    mask.set_exact(slot::RECIRC_ID);
    mask.set_exact(slot::ETH_TYPE);
    if flow.key.get(slot::VLAN_TCI) == 0 {
        mask.set_exact(slot::VLAN_TCI);
    }
    let key = MiniKey::under(&flow.key, &mask);
    Ok((key, MiniKey::new(mask.as_key()), flow.ufid))
}

fn put_flow(switch: &Switch, args: &[String], replace: bool, now: Instant) -> Result<(), String> {
    let _ = now;
    let args = split(args)?;
    let mut operands = args.operands.as_slice();
    let backer = switch.datapath_of(&mut operands, 2)?;
    let [flow, actions] = operands else {
        return Err("a flow and actions are needed".to_owned());
    };
    let (key, mask, ufid) = given_flow(backer, flow)?;
    let actions = parse_actions(actions, &backer.port_names());
    let actions = actions.map_err(|_| fail("parsing actions", "Invalid argument"))?;
    let ufid = ufid.unwrap_or_else(|| Ufid::of(&key, &mask));
    let update = |error: &Error| fail("updating flow table", &errno(error));
    if replace {
        backer.datapath.flow_get(ufid).map_err(|e| update(&e))?;
    }
    let put = FlowPut {
        ufid: Some(ufid),
        key,
        mask,
        actions: actions.into(),
        replace,
    };
    backer.datapath.flow_put(put).map_err(|e| update(&e))?;
    Ok(())
}

fn add_flow(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    put_flow(switch, args, false, now)?;
    for backer in switch.backers.values_mut() {
        backer.revalidator.wake(now);
    }
    Ok(String::new())
}

fn mod_flow(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    put_flow(switch, args, true, now)?;
    Ok(String::new())
}

fn get_flow(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let args = split(args)?;
    let mut operands = args.operands.as_slice();
    let backer = switch.datapath_of(&mut operands, 1)?;
    let ufid = operands.first().and_then(|text| parse_ufid(text));
    let ufid = ufid.ok_or_else(|| fail("parsing flow ufid", "Invalid argument"))?;
    let flow: DumpedFlow = backer
        .datapath
        .flow_get(ufid)
        .map_err(|e| fail("getting flow", &errno(&e)))?;
    let names = if args.names.unwrap_or(args.more) {
        backer.port_names()
    } else {
        PortNames::none()
    };
    let format = DumpFormat {
        more: args.more,
        after_ufid: ",",
        origin: true,
    };
    Ok(backer.flow_text(&flow, &names, format, now) + "\n")
}

fn del_flow(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let args = split(args)?;
    let mut operands = args.operands.as_slice();
    let backer = switch.datapath_of(&mut operands, 1)?;
    let text = operands.first().copied().unwrap_or_default();
    let by_id = parse_ufid(text);
    let ufid = match by_id {
        Some(ufid) => ufid,
        None => {
            let (key, mask, ufid) = given_flow(backer, text)?;
            ufid.unwrap_or_else(|| Ufid::of(&key, &mask))
        }
    };
    if let Err(error) = backer.datapath.flow_get(ufid) {
        let mut text = fail("deleting flow", &errno(&error));
        if by_id.is_none() {
            text += "\nPerhaps you need to specify a UFID?";
        }
        return Err(text);
    }
    backer.delete(ufid, now);
    Ok(String::new())
}

fn del_flows(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let args = split(args)?;
    let mut operands = args.operands.as_slice();
    let kind = switch.datapath_of(&mut operands, 0)?.kind.clone();
    if let Some(backer) = switch.backers.get_mut(&kind) {
        backer.purge(now);
    }
    Ok(String::new())
}

fn parse(_switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    let names = PortNames::none();
    let actions = parse_actions(&args[0], &names);
    let actions = actions.map_err(|_| fail("parsing actions", "Invalid argument"))?;
    Ok(dp_lang::text::format_actions(&actions, &names) + "\n")
}
