//! `netdev-dummy/*`: packets and states of dummy devices.

use std::fmt::Write as _;
use std::net::IpAddr;

use base::Instant;
use dp_lang::text::{PortNames, parse_flow};
use net_dev::{Device, DummyProvider};
use net_flow::compose::{DEFAULT_PAYLOAD, compose, compose_of_length};
use net_flow::slot;
use net_packet::Packet;

use super::{Command, MANY, command};
use crate::switch::Switch;

pub(super) const COMMANDS: &[Command] = &[
    command(
        "netdev-dummy/receive",
        "name [--qid queue_id] packet|flow [--len packet_len]",
        2,
        MANY,
        receive,
    ),
    command(
        "netdev-dummy/set-admin-state",
        "[netdev] up|down",
        1,
        2,
        set_admin_state,
    ),
    command("netdev-dummy/conn-state", "[netdev]", 0, 1, conn_state),
    command(
        "netdev-dummy/ip4addr",
        "[netdev] ipaddr/mask-prefix-len",
        2,
        2,
        add_address,
    ),
    command(
        "netdev-dummy/ip6addr",
        "[netdev] ip6addr",
        2,
        2,
        add_address,
    ),
];

/// The shortest packet that `--len` may ask for.
const MIN_LEN: usize = 60;

fn dummies(switch: &Switch) -> Result<&DummyProvider, String> {
    let dummies = switch.env.dummies.as_deref();
    dummies.ok_or_else(|| "dummy devices are not enabled (--enable-dummy)".to_owned())
}

/// A packet written in hexadecimal, which has at least an Ethernet header.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |i| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(byte)
        .collect::<Option<_>>()?;
    (bytes.len() >= 14).then_some(bytes)
}

fn from_flow(text: &str, len: Option<usize>) -> Result<Vec<u8>, String> {
    let mut key = parse_flow(text, &PortNames::none())?.key;
    if key.get(slot::ETH_TYPE) == 0 {
        key.set(slot::ETH_TYPE, u128::from(net_flow::types::eth_type::NONE));
    }
    match len {
        None => Ok(compose(&key, DEFAULT_PAYLOAD)),
        Some(len) => compose_of_length(&key, len).ok_or_else(String::new),
    }
}

fn receive(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let device = dummies(switch)?.find(&args[0]);
    let device = device.ok_or("no such dummy netdev")?;
    let mut rest = &args[1..];
    if let [option, queue, more @ ..] = rest
        && option == "--qid"
        && !more.is_empty()
    {
        if queue.parse::<u32>().unwrap_or(0) != 0 {
            return Err("bad rx queue id.".to_owned());
        }
        rest = more;
    }
    while let Some((text, more)) = rest.split_first() {
        rest = more;
        let frame = match from_hex(text) {
            Some(frame) => frame,
            None => {
                let mut len = None;
                if let [option, value, more @ ..] = rest
                    && option == "--len"
                {
                    let value = value.parse().unwrap_or(0);
                    if value < MIN_LEN {
                        return Err("too small packet len".to_owned());
                    }
                    len = Some(value);
                    rest = more;
                }
                from_flow(text, len)?
            }
        };
        device.inject(Packet::from_frame(&frame));
        // The packet is forwarded before the answer, so that what comes next sees what it did.
        switch.drain_datapaths(now);
    }
    Ok(String::new())
}

fn set_admin_state(switch: &mut Switch, args: &[String], now: Instant) -> Result<String, String> {
    let up = match args.last().map(String::as_str) {
        Some(state) if state.eq_ignore_ascii_case("up") => true,
        Some(state) if state.eq_ignore_ascii_case("down") => false,
        _ => return Err("Invalid Admin State".to_owned()),
    };
    let dummies = dummies(switch)?;
    let devices = match args {
        [name, _] => vec![dummies.find(name).ok_or("Unknown Dummy Interface")?],
        _ => dummies.devices(),
    };
    for device in devices {
        // Dummies take every state.
        let _ = device.set_up(up);
        let name = device.name().to_owned();
        switch.device_event(&name, now);
    }
    switch.settle(now);
    Ok("OK".to_owned())
}

fn conn_state(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    let dummies = dummies(switch)?;
    let state = |connected| match connected {
        None => "unknown",
        Some(true) => "connected",
        Some(false) => "disconnected",
    };
    let mut text = String::new();
    match args.first() {
        Some(name) => {
            let device = dummies.find(name);
            let connected = device.and_then(|d| d.is_connected());
            let _ = writeln!(text, "{name}: {}", state(connected));
        }
        None => {
            for device in dummies.devices() {
                if device.is_connected().is_some() {
                    let _ = writeln!(text, "{}: {}", device.name(), state(device.is_connected()));
                }
            }
        }
    }
    Ok(text)
}

fn add_address(switch: &mut Switch, args: &[String], _now: Instant) -> Result<String, String> {
    let device = dummies(switch)?.find(&args[0]);
    let device = device.ok_or("Unknown Dummy Interface")?;
    let invalid = || "Invalid parameters".to_owned();
    let (address, prefix) = args[1].split_once('/').unwrap_or((&args[1], ""));
    let address: IpAddr = address.parse().map_err(|_| invalid())?;
    let prefix = match (prefix, address) {
        ("", IpAddr::V6(_)) => 64,
        ("", IpAddr::V4(_)) => 32,
        (prefix, _) => prefix.parse().map_err(|_| invalid())?,
    };
    device.add_address(address, prefix);
    Ok("OK".to_owned())
}
