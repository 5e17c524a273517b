//! Commands that show how text and bytes are read, without a switch.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use net_flow::text::KeyValues;
use net_flow::{Formats, Match, Names};
use of_wire::format_names::{format_name, formats_names};
use of_wire::message::{Body, FlowMod, FlowModCommand, Message};
use of_wire::print::{Style, message_text, put_hex_dump, put_packet_text};
use of_wire::text::{FlowCommand, parse_flow as read_flow};
use of_wire::version::formats_of;
use of_wire::{Dialect, ErrorCode, Version, VersionSet, of10_match, of11_match};

use super::capture::packets;
use super::flows::read_file;
use super::input::hex;
use super::{Ctl, Fail, Outcome, fatal};

impl Ctl<'_, '_> {
    pub(super) fn message(&self, bytes: &[u8], verbosity: u8) -> String {
        let style = Style {
            names: &self.no_names,
            verbosity,
        };
        message_text(bytes, style)
    }

    pub(super) fn print_hex_dump(&mut self, bytes: &[u8]) {
        let mut text = String::new();
        put_hex_dump(&mut text, bytes, false);
        // A line of eight bytes ends without the dash that stands in the middle of others.
        self.env.print(text.replace("-\n", "\n"));
    }

    fn print_differences(&mut self, prefix: &str, a: &[u8], b: &[u8]) {
        for i in 0..a.len().max(b.len()) {
            match (a.get(i), b.get(i)) {
                (Some(a), Some(b)) if a != b => {
                    self.env
                        .print(format_args!("{prefix}{i:2}: {a:02x} -> {b:02x}\n"));
                }
                (None, Some(b)) => {
                    self.env
                        .print(format_args!("{prefix}{i:2}: (none) -> {b:02x}\n"));
                }
                (Some(a), None) => {
                    self.env
                        .print(format_args!("{prefix}{i:2}: {a:02x} -> (none)\n"));
                }
                _ => {}
            }
        }
    }

    fn stdin_bytes(&mut self) -> Outcome<Vec<u8>> {
        self.read_all("-")
            .or_else(|error| fatal(format!("standard input ({})", io::error_text(&error))))
    }
}

pub(super) fn parse_flow(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let names = ctl.no_names.clone();
    let command = FlowCommand::Fixed(FlowModCommand::Add);
    let parsed = read_flow(&args[0], command, &names);
    let parsed = parsed.map_err(|error| ctl.explain("", &error, &args[0]))?;
    show_flows(ctl, &[parsed.flow], parsed.formats)
}

pub(super) fn parse_flows(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let names = ctl.no_names.clone();
    let (flows, formats) = read_file(ctl, &args[0], FlowCommand::FirstWord, &names)?;
    show_flows(ctl, &flows, formats)
}

fn show_flows(ctl: &mut Ctl<'_, '_>, flows: &[FlowMod], usable: Formats) -> Outcome {
    ctl.env.print(format_args!(
        "usable protocols: {}\n",
        formats_names(usable)
    ));
    let chosen = (usable & ctl.settings.formats).iter().next();
    let Some(chosen) = chosen else {
        return fatal("no usable protocol");
    };
    ctl.env.print(format_args!(
        "chosen protocol: {}\n",
        format_name(chosen).unwrap_or_default()
    ));
    for flow in flows {
        let bytes = ctl.encode_flow(flow, chosen);
        let text = ctl.message(&bytes, ctl.settings.verbosity);
        ctl.env.print(text);
    }
    Ok(())
}

impl Ctl<'_, '_> {
    fn encode_flow(&mut self, flow: &FlowMod, format: Formats) -> Vec<u8> {
        let version = Version::ALL
            .into_iter()
            .find(|v| formats_of(*v).intersects(format))
            .unwrap_or(Version::V10);
        let mut dialect = Dialect::of(version);
        dialect.format = format;
        let body = Body::FlowMod(Box::new(flow.clone()));
        Message::new(version, self.xid(), body).encode(dialect)
    }
}

pub(super) fn parse_nxm(ctl: &mut Ctl<'_, '_>, _: &[String]) -> Outcome {
    parse_matches(ctl, None)
}

pub(super) fn parse_oxm(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let version = Version::from_name(&args[0]).filter(|v| *v >= Version::V12);
    match version {
        Some(version) => parse_matches(ctl, Some(version)),
        None => fatal(format!("{}: not a valid version for OXM", args[0])),
    }
}

fn parse_matches(ctl: &mut Ctl<'_, '_>, oxm: Option<Version>) -> Outcome {
    let input = ctl.stdin_bytes()?;
    let input = String::from_utf8_lossy(&input).into_owned();
    for line in input.lines() {
        if line.starts_with('#') {
            ctl.env.print(format_args!("{line}\n"));
            continue;
        }
        let line = line.split('#').next().unwrap_or(line);
        if line.trim_matches([' ', '\t']).is_empty() {
            ctl.env.print("\n");
            continue;
        }
        show_match(ctl, line, oxm)?;
    }
    Ok(())
}

fn show_match(ctl: &mut Ctl<'_, '_>, line: &str, oxm: Option<Version>) -> Outcome {
    use of_wire::oxm::{MatchRules, match_from_text, match_text, put_match, read_match};
    let bytes = match_from_text(line).or_else(fatal)?;
    let rules = MatchRules {
        strict: ctl.settings.strict,
        cookie: oxm.is_none(),
        pipeline_only: false,
    };
    let (m, cookie, cookie_mask) = match read_match(&bytes, rules) {
        Ok(read) => read,
        Err(code) => {
            ctl.env
                .print(format_args!("nx_pull_match() returned error {code}\n"));
            return Ok(());
        }
    };
    let mut bytes = Vec::new();
    let version = oxm.map_or(0, |v| v as u8);
    put_match(&mut bytes, &m, version, cookie, cookie_mask);
    ctl.env.print(format_args!("{}\n", match_text(&bytes)));
    if ctl.settings.verbosity > 0 {
        if oxm.is_some() {
            let len = bytes.len() as u16 + 4;
            let mut whole = vec![0, 1];
            whole.extend(len.to_be_bytes());
            whole.append(&mut bytes);
            bytes = whole;
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        ctl.print_hex_dump(&bytes);
    }
    Ok(())
}

pub(super) fn parse_actions(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    parse_lists(ctl, &args[0], false)
}

pub(super) fn parse_instructions(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    parse_lists(ctl, &args[0], true)
}

fn parse_lists(ctl: &mut Ctl<'_, '_>, name: &str, instructions: bool) -> Outcome {
    use of_wire::action::{encode_actions, encode_instructions, put_actions};
    let Some(version) = Version::from_name(name) else {
        return fatal(format!("{name}: not a valid OpenFlow version"));
    };
    for line in ctl.input_lines()? {
        let (table, digits) = line.split_once(',').unwrap_or(("0", &line));
        let Some(input) = hex(digits) else {
            return fatal("Trailing garbage in hex data");
        };
        let table = table.trim().parse().unwrap_or(0);
        let actions = match read_list(&input, version, instructions, table) {
            Ok(actions) => actions,
            Err(code) => {
                let what = if instructions {
                    "instructions"
                } else {
                    "actions"
                };
                ctl.env.print(format_args!("bad {name} {what}: {code}\n\n"));
                continue;
            }
        };
        let mut text = String::from("actions=");
        put_actions(&mut text, &actions, &Names::default());
        ctl.env.print(text + "\n");
        let mut output = Vec::new();
        if instructions {
            encode_instructions(&mut output, &actions, version);
        } else {
            encode_actions(&mut output, &actions, version);
        }
        ctl.print_differences("", &input, &output);
        ctl.env.print("\n");
    }
    Ok(())
}

fn read_list(
    input: &[u8],
    version: Version,
    instructions: bool,
    table: u8,
) -> Result<Vec<of_wire::Action>, ErrorCode> {
    use of_wire::action::{CheckParams, check, decode_actions, decode_instructions};
    if !instructions {
        return decode_actions(input, version);
    }
    let mut actions = decode_instructions(input, version)?;
    let params = CheckParams {
        matching: &Match::any(),
        max_ports: 0xff00,
        table,
        n_tables: 255,
    };
    let usable = check(&mut actions, &params)?;
    if !usable.contains(formats_of(version)) {
        return Err(ErrorCode::OfpbacMatchInconsistent);
    }
    Ok(actions)
}

pub(super) fn parse_ofp10_match(ctl: &mut Ctl<'_, '_>, _: &[String]) -> Outcome {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for line in ctl.input_lines()? {
        let expected = match_bytes(&line.replace('x', "0"), of10_match::LEN)?;
        let digit = |c: char| {
            // Any digit must do: an xorshift sequence has all of them.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let any = char::from_digit((random & 15) as u32, 16);
            if c == 'x' { any.unwrap_or('0') } else { c }
        };
        let input = match_bytes(
            &line.chars().map(digit).collect::<String>(),
            of10_match::LEN,
        )?;
        let read = of10_match::read(&input);
        let mut m = read.or_else(|code| fatal(format!("decode error: {code}")))?;
        let mut text = String::new();
        net_flow::text::put_match(&mut text, &m, 32768, &Names::default());
        ctl.env.print(text + "\n");
        let mut output = Vec::new();
        of10_match::put(&mut output, &m);
        ctl.print_differences("", &expected, &output);
        of10_match::normalize_and_log(&mut m);
        let mut normal = Vec::new();
        of10_match::put(&mut normal, &m);
        ctl.print_differences("normal: ", &output, &normal);
        ctl.env.print("\n");
    }
    Ok(())
}

pub(super) fn parse_ofp11_match(ctl: &mut Ctl<'_, '_>, _: &[String]) -> Outcome {
    for line in ctl.input_lines()? {
        let input = match_bytes(&line, of11_match::LEN)?;
        let m = match of11_match::read(&input) {
            Ok(m) => m,
            Err(code) => {
                ctl.env.print(format_args!("bad ofp11_match: {code}\n\n"));
                continue;
            }
        };
        let mut text = String::new();
        net_flow::text::put_match(&mut text, &m, 32768, &Names::default());
        ctl.env.print(text + "\n");
        let mut output = Vec::new();
        of11_match::put(&mut output, &m);
        ctl.print_differences("", &input, &output);
        ctl.env.print("\n");
    }
    Ok(())
}

fn match_bytes(text: &str, len: usize) -> Outcome<Vec<u8>> {
    let Some(bytes) = hex(text) else {
        return fatal("Trailing garbage in hex data");
    };
    match bytes.len() {
        n if n == len => Ok(bytes),
        n => fatal(format!("Input is {n} bytes, expected {len}")),
    }
}

pub(super) fn parse_pcap(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let mut status = 0;
    for file in args {
        let bytes = match ctl.read_all(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                let text = io::error_text(&error);
                let _ = ctl.env.fatal(format!("{file}: open failed ({text})"));
                status = error.raw_os_error().unwrap_or(1) as u8;
                continue;
            }
        };
        if let Err(text) = show_pcap(ctl, &bytes) {
            let _ = ctl.env.fatal(format!("{file}: read failed ({text})"));
            status = 71;
        }
    }
    Err(Fail::Code(status))
}

/// Prints the packets in a capture file.
fn show_pcap(ctl: &mut Ctl<'_, '_>, bytes: &[u8]) -> Result<(), &'static str> {
    let (packets, outcome) = packets(bytes);
    for (_, packet) in packets {
        let mut text = String::new();
        of_wire::print::put_packet_flow(&mut text, packet, net_flow::PortNo::NONE);
        ctl.env.print(text + "\n");
    }
    outcome
}

pub(super) fn print_error(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let code = error_named(&args[0])?;
    for version in Version::ALL {
        if let Some(number) = code.number(version) {
            let vendor = match number.experimenter {
                0 => "0".to_owned(),
                n => format!("{n:#x}"),
            };
            ctl.env.print(format_args!(
                "OpenFlow 1.{}: vendor {vendor}, type {}, code {}\n",
                version as u8 - 1,
                number.ty,
                number.code
            ));
        }
    }
    Ok(())
}

fn error_named(name: &str) -> Outcome<ErrorCode> {
    ErrorCode::by_name(name).map_or_else(|| fatal(format!("unknown error \"{name}\"")), Ok)
}

pub(super) fn encode_error_reply(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let code = error_named(&args[0])?;
    let Some(request) = hex(&args[1]) else {
        return fatal("Trailing garbage in hex data");
    };
    if request.len() < 8 {
        return fatal("Request too short");
    }
    if of_wire::codec::claimed_len(&request) != Some(request.len()) {
        return fatal("Request size inconsistent");
    }
    let version = Version::from_wire(request[0]).unwrap_or(Version::V10);
    let xid = super::conn::xid_of(&request);
    let reply = Message::error(version, xid, code, &request);
    ctl.print_hex_dump(&reply.encode(Dialect::of(version)));
    Ok(())
}

pub(super) fn ofp_print(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let verbosity = args.get(1).map_or(2, |text| {
        let number = net_flow::text::num::c_int(text, 10);
        number.map_or(0, |n| n.magnitude.min(255) as u8)
    });
    let bytes = if args[0] == "-" {
        let input = ctl.stdin_bytes()?;
        if ctl.settings.raw {
            Some(input)
        } else {
            let line = input.split(|b| *b == b'\n').next().unwrap_or_default();
            hex(&String::from_utf8_lossy(line))
        }
    } else {
        hex(&args[0])
    };
    let Some(bytes) = bytes else {
        return fatal("trailing garbage following hex bytes");
    };
    let text = ctl.message(&bytes, verbosity);
    ctl.env.print(text);
    Ok(())
}

pub(super) fn ofp_parse(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let name = &args[0];
    let mut reader: Box<dyn BufRead> = if name == "-" {
        Box::new(std::io::Cursor::new(ctl.stdin_bytes()?))
    } else {
        match File::open(name) {
            Ok(file) => Box::new(BufReader::new(file)),
            Err(error) => {
                return fatal(format!("{name}: open ({})", io::error_text(&error)));
            }
        }
    };
    let mut read = |bytes: &mut Vec<u8>, want: usize| {
        let taken = reader.by_ref().take(want as u64).read_to_end(bytes);
        taken.or_else(|error| fatal(format!("{name}: {}", io::error_text(&error))))
    };
    loop {
        let mut bytes = Vec::new();
        match read(&mut bytes, 8)? {
            0 => return Ok(()),
            8 => {}
            _ => return fatal(format!("{name}: unexpected end of file mid-message")),
        }
        let len = of_wire::codec::claimed_len(&bytes).unwrap_or(0);
        if len < 8 {
            return fatal(format!(
                "{name}: {len}-byte message is too short for OpenFlow"
            ));
        }
        if read(&mut bytes, len - 8)? < len - 8 {
            return fatal(format!("{name}: unexpected end of file mid-message"));
        }
        let text = ctl.message(&bytes, ctl.settings.verbosity + 2);
        ctl.env.print(text);
    }
}

pub(super) fn encode_hello(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let bitmap = net_flow::text::num::c_int(&args[0], 0).map_or(0, |n| n.magnitude as u32);
    let versions = VersionSet(bitmap);
    let highest = versions.highest_wire().unwrap_or(1);
    let xid = ctl.xid();
    let version = Version::from_wire(highest).unwrap_or(Version::V10);
    let hello = Message::new(version, xid, Body::Hello(versions));
    let mut bytes = hello.encode(Dialect::of(version));
    // The header says a version that need not be one that we know.
    bytes[0] = highest;
    ctl.print_hex_dump(&bytes);
    let text = ctl.message(&bytes, ctl.settings.verbosity);
    ctl.env.print(text);
    Ok(())
}

pub(super) fn parse_key_value(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    for arg in args {
        let pairs: Vec<String> = KeyValues::new(arg)
            .map(|kv| match kv.value {
                "" => kv.key.to_owned(),
                value => format!("{}={value}", kv.key),
            })
            .collect();
        ctl.env.print(pairs.join(", ") + "\n");
    }
    Ok(())
}

pub(super) fn parse_packet(ctl: &mut Ctl<'_, '_>, _: &[String]) -> Outcome {
    let packet = ctl.stdin_bytes()?;
    let mut text = String::new();
    put_packet_text(&mut text, &packet, 0);
    ctl.env.print(text);
    Ok(())
}
