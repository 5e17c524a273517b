//! Adding, changing and deleting flows.

use std::collections::HashMap;

use net_flow::{Formats, Names};
use of_wire::format_names::formats_names;
use of_wire::message::{Body, FlowMod, FlowModCommand};
use of_wire::print::put_hex_dump;
use of_wire::text::{FlowCommand, FlowError, ParsedFlow, parse_flow};

use super::conn::Conn;
use super::{Ctl, Fail, Outcome, fatal};

pub(super) fn add(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    one_or_stdin(ctl, args, FlowModCommand::Add)
}

pub(super) fn modify(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let command = if ctl.settings.strict {
        FlowModCommand::ModifyStrict
    } else {
        FlowModCommand::Modify
    };
    one_or_stdin(ctl, args, command)
}

pub(super) fn delete(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let command = if ctl.settings.strict {
        FlowModCommand::DeleteStrict
    } else {
        FlowModCommand::Delete
    };
    one_or_stdin(ctl, args, command)
}

pub(super) fn add_file(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    from_file(ctl, args, FlowCommand::FirstWord)
}

fn one_or_stdin(ctl: &mut Ctl<'_, '_>, args: &[String], command: FlowModCommand) -> Outcome {
    let text = args.get(1).map_or("", String::as_str);
    if text == "-" {
        let command = match command {
            FlowModCommand::Add => FlowCommand::FirstWord,
            command => FlowCommand::Fixed(command),
        };
        return from_file(ctl, args, command);
    }
    let names = ctl.names_to_accept(&args[0])?;
    let parsed = parse_flow(text, FlowCommand::Fixed(command), &names);
    let parsed = parsed.map_err(|error| ctl.explain("", &error, text))?;
    send(ctl, &args[0], vec![parsed.flow], parsed.formats)
}

fn from_file(ctl: &mut Ctl<'_, '_>, args: &[String], command: FlowCommand) -> Outcome {
    let names = ctl.names_to_accept(&args[0])?;
    let (flows, formats) = read_file(ctl, &args[1], command, &names)?;
    send(ctl, &args[0], flows, formats)
}

/// The flows in a file, and the formats in which all of them can be written.
pub(super) fn read_file(
    ctl: &mut Ctl<'_, '_>,
    file: &str,
    command: FlowCommand,
    names: &Names,
) -> Outcome<(Vec<FlowMod>, Formats)> {
    let mut flows = Vec::new();
    let formats = each_flow(ctl, file, command, names, |flow| flows.push(flow))?;
    Ok((flows, formats))
}

/// Hands each flow in a file to `take`.  Returns the formats in which all of them can be written.
pub(super) fn each_flow(
    ctl: &mut Ctl<'_, '_>,
    file: &str,
    command: FlowCommand,
    names: &Names,
    mut take: impl FnMut(FlowMod),
) -> Outcome<Formats> {
    let mut formats = Formats::ANY;
    let cannot_open = |text| Fail::Fatal(format!("{file}: open failed ({text})"));
    ctl.each_line(file, cannot_open, |ctl, line| {
        let parsed = parse_flow(&line.text, command, names);
        let ParsedFlow {
            flow,
            formats: usable,
        } = parsed.map_err(|error| {
            let place = format!("{file}:{}: ", line.number);
            ctl.explain(&place, &error, &line.text)
        })?;
        formats &= usable;
        take(flow);
        Ok(())
    })?;
    Ok(formats)
}

impl Ctl<'_, '_> {
    /// The failure that a flow's error is; on a terminal it shows where it lies.
    pub(super) fn explain(&mut self, place: &str, error: &FlowError, flow: &str) -> Fail {
        let mut text = format!("{place}{error}");
        if rustix::termios::isatty(std::io::stderr()) {
            let more = error.explain(flow);
            let more = more.trim_end_matches('\n');
            if !more.is_empty() {
                text = format!("{text}\n{more}");
            }
        }
        Fail::Fatal(text)
    }

    /// Connects to a switch with a format in which the flows can be written.
    pub(super) fn open_for_flows(&mut self, switch: &str, usable: Formats) -> Outcome<Conn> {
        let allowed = self.settings.formats;
        if !usable.intersects(allowed) {
            return fatal(format!(
                "none of the usable flow formats ({}) is among the allowed flow formats ({})",
                formats_names(usable),
                formats_names(allowed)
            ));
        }
        let mut conn = self.open(switch)?;
        // A format that is usable from the start is kept.
        if (usable & allowed).contains(conn.dialect.format) {
            return Ok(conn);
        }
        for format in Formats::ANY.iter() {
            let wanted = format != conn.dialect.format && (usable & allowed).contains(format);
            if wanted && self.try_format(&mut conn, format)? {
                return Ok(conn);
            }
        }
        fatal(format!(
            "switch does not support any of the usable flow formats ({})",
            formats_names(usable)
        ))
    }
}

fn send(ctl: &mut Ctl<'_, '_>, switch: &str, flows: Vec<FlowMod>, usable: Formats) -> Outcome {
    if ctl.settings.bundle {
        let mut conn = ctl.open_for_flows(switch, usable & Formats::OF13_UP)?;
        let bodies = flows.into_iter().map(|f| Body::FlowMod(Box::new(f)));
        return ctl.bundle(&mut conn, bodies.collect());
    }
    let mut conn = ctl.open_for_flows(switch, usable)?;
    let mut dump = String::new();
    for flow in flows {
        let request = ctl.request(&conn, Body::FlowMod(Box::new(flow)));
        let bytes = request.encode(conn.dialect);
        match ctl.settings.verbosity {
            0..5 => {}
            5 => put_hex_dump(&mut dump, &bytes, true),
            _ => {
                dump.push_str("0x");
                let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                dump.push_str(digits.trim_start_matches('0'));
                dump.push('\n');
            }
        }
        let reply = ctl.transact_bytes(&mut conn, request.xid, bytes)?;
        ctl.end_on_reply(&conn, reply)?;
    }
    ctl.env.print(dump);
    Ok(())
}

impl Ctl<'_, '_> {
    /// Has all requests carried out at once, in order, or none.
    pub(super) fn bundle(&mut self, conn: &mut Conn, requests: Vec<Body>) -> Outcome {
        use of_wire::message::BundleControl;
        const ATOMIC_ORDERED: u16 = 3;
        let control = |kind| {
            Body::BundleControl(BundleControl {
                id: 0,
                kind,
                flags: ATOMIC_ORDERED,
            })
        };
        let mut bundle = Bundle::default();
        self.bundle_step(conn, control(0), &mut bundle)?;
        for body in requests {
            let xid = self.xid();
            let inner = of_wire::Message::new(conn.version, xid, body);
            let outer = Body::BundleAdd {
                id: 0,
                flags: ATOMIC_ORDERED,
                message: Box::new(inner.clone()),
            };
            let message = of_wire::Message::new(conn.version, xid, outer);
            self.send(conn, &message.encode(conn.dialect))?;
            bundle.requests.insert(xid, inner);
            // Replies are read as they come, so that the switch never waits to send them.
            while let Some(reply) = self.reply_now(conn)? {
                bundle.note(reply);
            }
        }
        self.bundle_step(conn, Body::BarrierRequest, &mut bundle)?;
        let kind = if bundle.errors.is_empty() { 4 } else { 6 };
        self.bundle_step(conn, control(kind), &mut bundle)?;
        self.end_on_bundle_errors(conn, bundle)
    }

    /// Sends a request and waits for its reply; other errors that come meanwhile are noted.
    fn bundle_step(&mut self, conn: &mut Conn, body: Body, bundle: &mut Bundle) -> Outcome {
        let request = self.request(conn, body);
        self.send(conn, &request.encode(conn.dialect))?;
        loop {
            let reply = self.recv(conn)?;
            let mine = super::conn::xid_of(&reply) == request.xid;
            bundle.note(reply);
            if mine {
                return Ok(());
            }
        }
    }

    fn end_on_bundle_errors(&mut self, conn: &Conn, bundle: Bundle) -> Outcome {
        if bundle.errors.is_empty() {
            return Ok(());
        }
        let _ = self.env.stdout.flush();
        for reply in bundle.errors {
            let decoded = of_wire::Message::decode(&reply, conn.dialect).map(|m| m.body);
            let Ok(Body::Error(error)) = decoded else {
                let _ = write!(self.env.stderr, "***decode error***");
                continue;
            };
            let code = match error.code {
                Ok(code) => code.to_string(),
                Err(number) => format!("type {} code {}", number.ty, number.code),
            };
            // An error has the beginning of the request only.
            let request = bundle.requests.get(&super::conn::xid_of(&reply));
            let request = request.map_or(error.payload, |m| m.encode(conn.dialect));
            let text = self.show(&conn.name, &request, 1)?;
            let _ = write!(self.env.stderr, "Error {code} for: {text}");
        }
        fatal(format!(
            "talking to {} (Protocol error)",
            conn.stream.name()
        ))
    }
}

/// What is known of a bundle under way.
#[derive(Default)]
struct Bundle {
    requests: HashMap<u32, of_wire::Message>,
    errors: Vec<Vec<u8>>,
}

impl Bundle {
    fn note(&mut self, reply: Vec<u8>) {
        let kind = of_wire::codec::kind_of(&reply);
        if kind == Ok(of_wire::Kind::OfptError) {
            self.errors.push(reply);
        }
    }
}
