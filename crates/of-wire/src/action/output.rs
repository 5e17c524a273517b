//! Actions that send the packet out.

use std::fmt::Write;

use net_flow::text::num::{str_to_u16, str_to_u32};
use net_flow::text::value::{parse_port, put_port};
use net_flow::text::{KeyValues, subfield};
use net_flow::{Names, PortNo};

use net_flow::Subfield;

use super::{Action, Parser};

/// `output:PORT` and the bare names of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// Where to.
    pub port: PortNo,
    /// For the controller port: at most so many bytes of the packet.
    pub max_len: u16,
}

/// `controller(...)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    /// At most so many bytes of the packet.
    pub max_len: u16,
    /// To controllers with this id.
    pub controller_id: u16,
    /// `OFPR_*` reason in the message.
    pub reason: u8,
    /// Passed along in the message.
    pub userdata: Box<[u8]>,
    /// Stop here until the controller resumes.
    pub pause: bool,
    /// Meter for these messages; `None` for the default.
    pub meter_id: Option<u32>,
    /// Said in the second of Nicira's two forms, which matters to bytes only.
    pub v2: bool,
}

impl Default for Controller {
    /// The whole packet, to controller 0, as an action's.
    fn default() -> Self {
        Self {
            max_len: u16::MAX,
            controller_id: 0,
            reason: 1,
            userdata: Box::default(),
            pause: false,
            meter_id: None,
            v2: false,
        }
    }
}

/// `enqueue(PORT,QUEUE)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Enqueue {
    /// Where to.
    pub port: PortNo,
    /// Through this queue.
    pub queue: u32,
}

/// `output:FIELD[START..END]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputReg {
    /// Holds the port number.
    pub src: Subfield,
    /// For the controller port: at most so many bytes of the packet.
    pub max_len: u16,
}

/// `output(port=PORT,max_len=N)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputTrunc {
    /// Where to.
    pub port: PortNo,
    /// Cut to so many bytes.
    pub max_len: u32,
}

/// `check_pkt_larger(LENGTH)->BIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckPktLarger {
    /// One bit that takes the answer.
    pub dst: Subfield,
    /// Compared with the packet's length in bytes, Ethernet header included.
    pub pkt_len: u16,
}

/// Names of packet-in reasons, by number.
const REASONS: [&str; 6] = [
    "no_match",
    "action",
    "invalid_ttl",
    "action_set",
    "group",
    "packet_out",
];

/// Reason of a packet that matched nothing where no rule says what to do: it has no name.
const IMPLICIT_MISS: u8 = 7;

/// The name of a packet-in reason, or its number.
pub fn reason_name(reason: u8) -> String {
    let name = REASONS.get(usize::from(reason));
    match name {
        Some(name) => (*name).to_owned(),
        None if reason == IMPLICIT_MISS => String::new(),
        None => reason.to_string(),
    }
}

fn reason_by_name(name: &str) -> Option<u8> {
    let at = REASONS.iter().position(|n| n.eq_ignore_ascii_case(name))?;
    Some(at as u8)
}

pub(super) fn parse_output(arg: &str, p: &Parser<'_>) -> Result<Action, String> {
    if arg.contains("port") && arg.contains("max_len") {
        return parse_truncated(arg, p);
    }
    if let Some(port) = parse_port(arg, p.names) {
        let to_controller = port == PortNo::CONTROLLER;
        let max_len = if to_controller { u16::MAX } else { 0 };
        return Ok(Action::Output(Output { port, max_len }));
    }
    match subfield::parse(arg) {
        Ok(src) => Ok(Action::OutputReg(OutputReg {
            src,
            max_len: u16::MAX,
        })),
        Err(_) => Err(format!("{arg}: output to unknown port")),
    }
}

fn parse_truncated(arg: &str, p: &Parser<'_>) -> Result<Action, String> {
    let mut action = OutputTrunc {
        port: PortNo(0),
        max_len: 0,
    };
    for kv in KeyValues::new(arg) {
        match kv.key {
            "port" => {
                action.port = parse_port(kv.value, p.names)
                    .ok_or_else(|| format!("output to unknown truncate port: {}", kv.value))?;
                let special = action.port == PortNo::LOCAL || action.port == PortNo::IN_PORT;
                if !action.port.is_physical() && !special {
                    return Err(format!("output to unsupported truncate port: {}", kv.value));
                }
            }
            "max_len" => {
                action.max_len = str_to_u32(kv.value)?;
                if action.max_len < ETH_HEADER {
                    return Err(format!(
                        "max_len {} is less than the minimum value {ETH_HEADER}",
                        action.max_len
                    ));
                }
            }
            key => return Err(format!("invalid key '{key}' in output_trunc argument")),
        }
    }
    Ok(Action::OutputTrunc(action))
}

/// Bytes of an Ethernet header.
const ETH_HEADER: u32 = 14;

pub(super) fn parse_controller(arg: &str) -> Result<Action, String> {
    let mut c = Controller::default();
    let plain_number = arg.bytes().all(|b| b.is_ascii_digit());
    if arg.is_empty() {
        // All defaults.
    } else if plain_number {
        c.max_len = str_to_u16(arg, "max_len")?;
    } else {
        for kv in KeyValues::new(arg) {
            match kv.key {
                "reason" => {
                    c.reason = reason_by_name(kv.value)
                        .ok_or_else(|| format!("unknown reason \"{}\"", kv.value))?;
                }
                "max_len" => c.max_len = str_to_u16(kv.value, "max_len")?,
                "id" => c.controller_id = str_to_u16(kv.value, "id")?,
                "userdata" => {
                    let bad = "bad hex digit in `controller' action `userdata'";
                    c.userdata = parse_hex(kv.value).ok_or(bad)?.into();
                    // Even no bytes at all make it more than an output.
                    c.v2 |= c.userdata.is_empty();
                }
                "pause" => c.pause = true,
                "meter_id" => c.meter_id = Some(str_to_u32(kv.value)?).filter(|m| *m != u32::MAX),
                key => return Err(format!("unknown key \"{key}\" parsing controller action")),
            }
        }
    }
    let plain = c.reason == 1 && c.controller_id == 0 && !c.pause;
    if plain && c.userdata.is_empty() && !c.v2 && c.meter_id.is_none() {
        return Ok(Action::Output(Output {
            port: PortNo::CONTROLLER,
            max_len: c.max_len,
        }));
    }
    c.v2 = false;
    Ok(Action::Controller(Box::new(c)))
}

/// Bytes in hexadecimal, with spaces or dots between them where wanted.
pub(crate) fn parse_hex(s: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut digits = s.bytes().filter(|b| !b" .\t\r\n".contains(b));
    while let Some(high) = digits.next() {
        let low = digits.next()?;
        let digit = |b: u8| char::from(b).to_digit(16);
        out.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    Some(out)
}

/// Appends bytes in hexadecimal with dots between.
pub(super) fn put_dotted_hex(out: &mut String, bytes: &[u8]) {
    for (i, byte) in bytes.iter().enumerate() {
        let dot = if i > 0 { "." } else { "" };
        let _ = write!(out, "{dot}{byte:02x}");
    }
}

pub(super) fn parse_enqueue(arg: &str, p: &Parser<'_>) -> Result<Action, String> {
    let syntax = "\"enqueue\" syntax is \"enqueue:PORT:QUEUE\" or \"enqueue(PORT,QUEUE)\"";
    let delimiters = [':', 'q', ','];
    let arg = arg.trim_start_matches(delimiters);
    let (port, queue) = arg.split_once(delimiters).ok_or(syntax)?;
    if port.is_empty() || queue.is_empty() {
        return Err(syntax.to_owned());
    }
    let unknown = || format!("{port}: enqueue to unknown port");
    Ok(Action::Enqueue(Enqueue {
        port: parse_port(port, p.names).ok_or_else(unknown)?,
        queue: str_to_u32(queue)?,
    }))
}

pub(super) fn parse_check_pkt_larger(arg: &str) -> Result<Action, String> {
    let (value, dst) = super::field::split_arrow(arg)?;
    let dst = subfield::parse(dst)?;
    if dst.bits != 1 {
        return Err("Only 1-bit destination field is allowed".to_owned());
    }
    let value = value.strip_suffix(')').unwrap_or(value);
    let pkt_len = str_to_u16(value, "(null)")?;
    Ok(Action::CheckPktLarger(CheckPktLarger { dst, pkt_len }))
}

pub(super) fn put_output(out: &mut String, a: Output, names: &Names) {
    if a.port.is_physical() {
        out.push_str("output:");
    }
    put_port(out, a.port, names);
    if a.port == PortNo::CONTROLLER {
        let _ = write!(out, ":{}", a.max_len);
    }
}

pub(super) fn put_controller(out: &mut String, a: &Controller) {
    let plain = a.reason == 1 && a.controller_id == 0 && !a.pause;
    if plain && a.userdata.is_empty() && a.meter_id.is_none() {
        let _ = write!(out, "CONTROLLER:{}", a.max_len);
        return;
    }
    out.push_str("controller(");
    if a.reason != 1 {
        let _ = write!(out, "reason={},", reason_name(a.reason));
    }
    if a.max_len != u16::MAX {
        let _ = write!(out, "max_len={},", a.max_len);
    }
    if a.controller_id != 0 {
        let _ = write!(out, "id={},", a.controller_id);
    }
    if !a.userdata.is_empty() {
        out.push_str("userdata=");
        put_dotted_hex(out, &a.userdata);
        out.push(',');
    }
    if a.pause {
        out.push_str("pause,");
    }
    if let Some(id) = a.meter_id {
        let _ = write!(out, "meter_id={id},");
    }
    if out.ends_with(',') {
        out.pop();
    }
    out.push(')');
}
