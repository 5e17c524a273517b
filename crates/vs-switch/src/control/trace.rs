//! `ofproto/trace`.

use base::Instant;
use dp_lang::text::{PortNames, parse_flow};
use net_flow::compose::{DEFAULT_PAYLOAD, compose};
use net_flow::text::exact_flow;
use net_flow::text::flags::CT_STATE;
use net_flow::{FlowKey, Names, PortNo, slot};
use of_wire::Action;
use of_wire::action::Parser;
use of_xlate::{BridgeId, Effect, Input, Purpose, TraceNames, trace};

use super::{Command, MANY, command};
use crate::backer::Backer;
use crate::bridge::Bridge;
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command(
        "ofproto/trace",
        "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet]",
        1,
        MANY,
        run,
    ),
    command(
        "ofproto/trace-packet-out",
        "[-consistent] {[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet] actions",
        2,
        MANY,
        run_packet_out,
    ),
];

/// What is to be traced.
struct Subject<'a> {
    backer: &'a Backer,
    bridge: BridgeId,
    key: FlowKey,
}

/// What the packet is.
enum PacketGiven {
    No,
    Generate,
    Bytes(Vec<u8>),
}

fn run(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    trace_one(switch, args, None, now)
}

fn run_packet_out(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let mut args = args.to_vec();
    args.retain(|arg| arg != "-consistent" && arg != "--consistent");
    let text = args.pop().ok_or("Syntax error")?;
    let names = Names::default();
    let actions = Parser::new(&names).actions(&text);
    let actions = actions.map_err(|e| format!("Bad actions: {}", e.message))?;
    trace_one(switch, &args, Some(actions), now)
}

fn trace_one(
    switch: &mut Switch,
    args: &[String],
    actions: Option<Vec<Action>>,
    now: Instant,
) -> Result<String, String> {
    let mut with_names = false;
    let mut next = Vec::new();
    let mut operands: Vec<&str> = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--names" => with_names = true,
            "--no-names" => with_names = false,
            "--ct-next" => {
                let state = args.next();
                let state = state.ok_or_else(|| format!("Missing argument for option {arg}"))?;
                next.push(connection_state(state)?);
            }
            "-generate" | "--generate" => operands.push("-generate"),
            option if option.starts_with('-') => return Err(format!("{option}: unknown option")),
            operand => operands.push(operand),
        }
    }
    let packet = packet_operand(&mut operands)?;
    let mut subject = subject(switch, &operands)?;
    let bytes = match packet {
        PacketGiven::No => None,
        PacketGiven::Generate => {
            let mut key = subject.key.clone();
            key.set(slot::IN_PORT, 0);
            Some(compose(&key, DEFAULT_PAYLOAD))
        }
        PacketGiven::Bytes(bytes) => {
            let mut key = net_flow::metadata(&subject.key);
            subject.backer.extract(&bytes, &mut key);
            subject.key = key;
            Some(bytes)
        }
    };
    let (names, of_names) = if with_names {
        let owner = switch.names.get(&subject.bridge);
        let bridge = owner.and_then(|name| switch.bridges.get(name));
        let of_names = bridge.map(openflow_names).unwrap_or_default();
        (subject.backer.port_names(), of_names)
    } else {
        (PortNames::none(), Names::default())
    };
    let view = subject.backer.shared.view.load();
    let input = Input {
        bridge: subject.bridge,
        key: &subject.key,
        packet: bytes.as_deref(),
        actions: actions.map(Into::into),
        resume: None,
        purpose: Purpose::Trace,
        now,
    };
    let names = TraceNames {
        ports: &names,
        openflow: &of_names,
    };
    let report = trace(&view, &input, names, &next);
    if let Some(bytes) = &bytes {
        // With a packet, the switch learns as if it had come in.
        for effect in report.translations.iter().flat_map(|t| &t.effects) {
            if let Effect::Learn(..) = effect {
                effect.apply(1, bytes.len() as u64, now);
            }
        }
    }
    Ok(report.text)
}

/// A state of a connection, such as `trk,new` (`ovs-fields(7)`).
fn connection_state(text: &str) -> Result<u32, String> {
    const NEW: u32 = 1;
    const ESTABLISHED: u32 = 2;
    const REPLY: u32 = 8;
    const INVALID: u32 = 0x10;
    const TRACKED: u32 = 0x20;
    let mut state = 0;
    for name in text.split([',', ' ']).filter(|name| !name.is_empty()) {
        let flag = CT_STATE.parse(&format!("+{name}"));
        let (bit, _) =
            flag.map_err(|_| format!("{name}: unknown connection tracking state flag"))?;
        state |= bit;
    }
    let mut shown = String::new();
    CT_STATE.put_plain(&mut shown, state, '|');
    let rules = [
        (
            state != 0 && state & TRACKED == 0,
            "If \"trk\" is unset, no other flags are set",
        ),
        (
            state & INVALID != 0 && state & !(TRACKED | INVALID) != 0,
            "when \"inv\" is set, only \"trk\" may also be set",
        ),
        (
            state & NEW != 0 && state & ESTABLISHED != 0,
            "\"new\" and \"est\" are mutually exclusive",
        ),
        (
            state & NEW != 0 && state & REPLY != 0,
            "\"new\" and \"rpy\" are mutually exclusive",
        ),
    ];
    let broken = rules.iter().filter(|(is_broken, _)| *is_broken);
    let errors: String = broken
        .map(|(_, why)| format!("{shown}: invalid connection state: {why}\n"))
        .collect();
    if errors.is_empty() {
        Ok(state)
    } else {
        Err(errors)
    }
}

/// Takes the packet off the end of the operands.
fn packet_operand(operands: &mut Vec<&str>) -> Result<PacketGiven, String> {
    let given = match operands.as_slice() {
        [_, .., "-generate"] => PacketGiven::Generate,
        [_, _, text] => PacketGiven::Bytes(hex(text)?),
        [_, text] => match hex(text) {
            Ok(bytes) if bytes.len() >= ETH_LEN => PacketGiven::Bytes(bytes),
            _ => PacketGiven::No,
        },
        _ => PacketGiven::No,
    };
    if !matches!(given, PacketGiven::No) {
        operands.pop();
    }
    Ok(given)
}

/// The length of an Ethernet header: no packet is shorter.
const ETH_LEN: usize = 14;

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let garbage = || "Trailing garbage in packet data".to_owned();
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |i| {
        let digits = digits.get(i..i + 2).ok_or_else(garbage)?;
        u8::from_str_radix(digits, 16).map_err(|_| garbage())
    };
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn subject<'a>(switch: &'a Switch, operands: &[&str]) -> Result<Subject<'a>, String> {
    match operands {
        [flow] => datapath_flow(only_backer(switch)?, flow),
        [name, flow] if flow.contains('(') => {
            let mut backers = switch.backers.values();
            let named = |b: &&Backer| b.datapath.name() == *name;
            let backer = backers.find(named).ok_or("Cannot find the datapath")?;
            datapath_flow(backer, flow)
        }
        [name, flow] => {
            let bridge = switch.bridges.get(*name);
            let bridge = bridge.ok_or_else(|| format!("{name}: unknown bridge"))?;
            bridge_flow(switch, bridge, flow)
        }
        _ => Err("Syntax error".to_owned()),
    }
}

fn only_backer(switch: &Switch) -> Result<&Backer, String> {
    let mut backers = switch.backers.values();
    match (backers.next(), backers.next()) {
        (Some(backer), None) => Ok(backer),
        _ => Err("Specify a datapath name or bridge name, or both".to_owned()),
    }
}

fn datapath_flow<'a>(backer: &'a Backer, text: &str) -> Result<Subject<'a>, String> {
    let flow = parse_flow(text, &backer.port_names());
    let flow = flow.map_err(|e| format!("{e} (or the bridge name was omitted)"))?;
    let mut key = flow.key;
    if key.get(slot::ETH_TYPE) == 0 && key.get(slot::PACKET_TYPE) == 0 {
        key.set(slot::ETH_TYPE, u128::from(net_flow::types::eth_type::NONE));
    }
    backer.limit_vlans(&mut key);
    let view = backer.shared.view.load();
    let (bridge, key) = view.locate(&key).map_err(|e| e.to_string())?;
    Ok(Subject {
        backer,
        bridge,
        key,
    })
}

fn bridge_flow<'a>(switch: &'a Switch, bridge: &Bridge, text: &str) -> Result<Subject<'a>, String> {
    let flow = exact_flow(text, &openflow_names(bridge));
    let flow = flow.map_err(|e| format!("Bad openflow flow syntax: {text}: {e}"))?;
    let mut key = flow.key().clone();
    if flow.mask().get(slot::IN_PORT) == 0 {
        key.set(slot::IN_PORT, u128::from(PortNo::NONE.0));
    }
    Ok(Subject {
        backer: switch.backer_of(bridge)?,
        bridge: bridge.id,
        key,
    })
}

/// The names of a bridge's ports.
fn openflow_names(bridge: &Bridge) -> Names {
    let mut names = Names::default();
    for (number, name) in &bridge.by_number {
        names.ports.insert(number.0, name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_connections_are_read_and_checked() {
        assert_eq!(connection_state("trk,new"), Ok(0x21));
        assert_eq!(connection_state("trk est rpl"), Ok(0x2a));
        assert_eq!(
            connection_state("trk,good").expect_err("no flag"),
            "good: unknown connection tracking state flag"
        );
        assert_eq!(
            connection_state("new,est").expect_err("no state"),
            "new|est: invalid connection state: If \"trk\" is unset, no other flags are set\n\
             new|est: invalid connection state: \"new\" and \"est\" are mutually exclusive\n"
        );
    }
}
