//! Sending packets out of a switch.

use net_flow::text::value::parse_port;
use net_flow::text::{KeyValues, apply_field};
use net_flow::{Field, Formats, Match, Names, PortNo, slot};
use of_wire::action::Parser;
use of_wire::message::{Body, PacketOut};
use of_wire::oxm::is_pipeline_field;

use super::input::hex;
use super::{Ctl, Outcome, fatal};

pub(super) fn packet_out(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let switch = &args[0];
    match args.len() {
        2 => {
            let names = ctl.names_to_accept(switch)?;
            let (out, formats) = parse(&args[1], &names).or_else(fatal)?;
            let mut conn = ctl.open_for_flows(switch, formats)?;
            ctl.must_succeed(&mut conn, Body::PacketOut(Box::new(out)))
        }
        // The old syntax: input port, actions, packets.
        4.. => {
            let names = ctl.names_to_accept(switch)?;
            let mut parser = Parser::new(&names);
            let actions = parser.actions(&args[2]).or_else(|e| fatal(e.message))?;
            let formats = parser.formats;
            let port = ctl.port_no(switch, &args[1])?;
            let mut conn = ctl.open_for_flows(switch, formats)?;
            for text in &args[3..] {
                let mut metadata = Match::any();
                metadata.set(slot::IN_PORT, u128::from(port.0));
                let out = PacketOut {
                    packet: packet(text).or_else(fatal)?,
                    buffer_id: None,
                    metadata,
                    actions: actions.clone(),
                };
                ctl.must_succeed(&mut conn, Body::PacketOut(Box::new(out)))?;
            }
            Ok(())
        }
        n => fatal(format!("Too many arguments ({})", n + 1)),
    }
}

fn packet(text: &str) -> Result<Vec<u8>, String> {
    let bytes = hex(text).ok_or("Trailing garbage in packet data")?;
    if bytes.len() < 14 {
        return Err("Packet data too short for Ethernet".to_owned());
    }
    Ok(bytes)
}

/// Reads `in_port=PORT packet=HEX actions=...`.
pub(super) fn parse(text: &str, names: &Names) -> Result<(PacketOut, Formats), String> {
    let (head, actions_text) = match text.find("action") {
        Some(at) => {
            let equals = text[at..].find('=').map(|n| &text[at + n + 1..]);
            (&text[..at], equals)
        }
        None => (text, None),
    };
    let mut formats = Formats::ANY;
    let mut out = PacketOut {
        packet: Vec::new(),
        buffer_id: None,
        metadata: Match::any(),
        actions: Vec::new(),
    };
    let controller = u128::from(PortNo::CONTROLLER.0);
    out.metadata.set(slot::IN_PORT, controller);
    for kv in KeyValues::new(head) {
        if kv.value.is_empty() {
            return Err(format!("field {} missing value", kv.key));
        }
        match kv.key {
            "in_port" => {
                let port = parse_port(kv.value, names);
                let port =
                    port.ok_or_else(|| format!("{} is not a valid OpenFlow port", kv.value))?;
                let special = [PortNo::LOCAL, PortNo::NONE, PortNo::CONTROLLER];
                if !port.is_physical() && !special.contains(&port) {
                    return Err(format!(
                        "{} is not a valid OpenFlow port for PACKET_OUT",
                        kv.value
                    ));
                }
                out.metadata.set(slot::IN_PORT, u128::from(port.0));
            }
            "packet_type" => {
                let (ns, ty) = kv
                    .value
                    .split_once(',')
                    .ok_or_else(|| format!("{}({}) can't be interpreted", kv.key, kv.value))?;
                let number = |s| net_flow::text::num::c_int(s, 0).map_or(0, |n| n.magnitude);
                let value = u128::from(number(ns) << 16 | (number(ty) & 0xffff));
                out.metadata.set(slot::PACKET_TYPE, value);
            }
            "packet" => out.packet = packet(kv.value).map_err(|e| format!("packet: {e}"))?,
            key => {
                let field = Field::by_name(key);
                let field = field.ok_or_else(|| format!("unknown keyword {key}"))?;
                apply_field(&mut out.metadata, field, kv.value, names, &mut formats)?;
                if !is_pipeline_field(field) {
                    return Err(format!(
                        "{key} is not a valid pipeline field for PACKET_OUT"
                    ));
                }
            }
        }
    }
    if out.packet.is_empty() {
        return Err("must specify packet".to_owned());
    }
    if let Some(text) = actions_text {
        let mut parser = Parser::new(names);
        out.actions = parser.actions(text).map_err(|e| e.message)?;
        formats &= parser.formats;
    }
    Ok((out, formats))
}
