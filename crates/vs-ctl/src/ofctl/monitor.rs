//! Watching what a switch says.

use io::control::{Call, Responder};
use io::daemon::{Core, CoreSettings};
use io::{Interest, Token};
use of_wire::codec::kind_of;
use of_wire::message::{Body, PacketInFormat};
use of_wire::version::formats_of;
use of_wire::{Kind, Version, VersionSet};

use super::conn::{Conn, Target};
use super::input::hex;
use super::{Ctl, Fail, Outcome, fatal, packet_out};

const TOKEN: Token = Token(1);

pub(super) fn snoop(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    // The socket shows one connection; names would need another.
    ctl.settings.names = Some(false);
    let conn = ctl.open_target(&args[0], Target::Snoop)?;
    watch(ctl, conn, false)
}

pub(super) fn monitor(ctl: &mut Ctl<'_, '_>, args: &[String]) -> Outcome {
    let (switch, rest) = (&args[0], &args[1..]);
    if rest.iter().any(|arg| arg == "invalid_ttl") {
        let usable = VersionSet::from_iter([Version::V10, Version::V11, Version::V12]);
        ctl.settings.versions = ctl.settings.versions.intersection(usable);
        if ctl.settings.versions.is_empty() {
            let names = super::options::version_names(usable);
            return fatal(format!(
                "invalid_ttl requires one of the OpenFlow versions {names} but none is enabled (use -O)"
            ));
        }
    }
    let mut conn = ctl.open(switch)?;
    for arg in rest {
        if arg.starts_with(|c: char| c.is_ascii_digit()) {
            let len = net_flow::text::num::c_int(arg, 10).map_or(0, |n| n.magnitude as u16);
            let mut config = ctl.fetch_config(&mut conn)?;
            config.miss_send_len = len;
            ctl.must_succeed(&mut conn, Body::SetConfig(config))?;
        } else if arg == "invalid_ttl" {
            invalid_ttl(ctl, &mut conn)?;
        } else if arg.starts_with("watch:") || arg == "resume" {
            return fatal(format!("{arg}: monitoring this is not supported yet"));
        } else {
            return fatal(format!("{arg}: unsupported \"monitor\" argument"));
        }
    }
    match ctl.settings.packet_in {
        Some(format) => set_format(ctl, &mut conn, format, true)?,
        None => {
            let newest = PacketInFormat::Nxt2;
            let done = set_format(ctl, &mut conn, newest, false)?;
            done || conn.version == Version::V10
                && set_format(ctl, &mut conn, PacketInFormat::Nxt, false)?
        }
    };
    watch(ctl, conn, true)
}

fn invalid_ttl(ctl: &mut Ctl<'_, '_>, conn: &mut Conn) -> Outcome {
    let mut config = ctl.fetch_config(conn)?;
    if config.invalid_ttl_to_controller == Some(true) {
        return Ok(());
    }
    config.invalid_ttl_to_controller = Some(true);
    ctl.must_succeed(conn, Body::SetConfig(config))?;
    // A switch may take the request and not do it.
    if ctl.fetch_config(conn)?.invalid_ttl_to_controller != Some(true) {
        return fatal(
            "setting invalid_ttl_to_controller failed (this switch probably doesn't support this flag)",
        );
    }
    Ok(())
}

fn set_format(
    ctl: &mut Ctl<'_, '_>,
    conn: &mut Conn,
    format: PacketInFormat,
    must: bool,
) -> Outcome<bool> {
    let refused = ctl.transact_noreply(conn, Body::SetPacketInFormat(format))?;
    if refused.is_none() {
        conn.set_packet_in(format);
        return Ok(true);
    }
    if must {
        let name = ["standard", "nxt_packet_in", "nxt_packet_in2"][format as usize];
        return fatal(format!(
            "{}: failed to set packet in format to {name}: switch does not support it",
            conn.stream.name()
        ));
    }
    log::debug!(target: "ofctl", "{}: switch refuses packet-in format {}",
        conn.stream.name(), format as u32);
    Ok(false)
}

/// What the control socket asks for, to be done between messages.
#[derive(Default)]
struct State {
    calls: Vec<Call>,
}

/// What a monitor knows of its own.
struct Watch {
    core: Core,
    conn: Conn,
    blocked: bool,
    barrier: Option<Responder>,
    answers_echo: bool,
}

const COMMANDS: [(&str, &str, usize, usize); 6] = [
    ("ofctl/send", "OFMSG...", 1, usize::MAX),
    (
        "ofctl/packet-out",
        "\"in_port=<port> packet=<hex data> actions=...\"",
        1,
        1,
    ),
    ("ofctl/barrier", "", 0, 0),
    ("ofctl/set-output-file", "FILE", 1, 1),
    ("ofctl/block", "", 0, 0),
    ("ofctl/unblock", "", 0, 0),
];

fn watch(ctl: &mut Ctl<'_, '_>, mut conn: Conn, answers_echo: bool) -> Outcome {
    // From here on the daemon's loop waits for the connection, not the connection's own.
    conn.stream.unwatch(&conn.poll);
    let _ = ctl.env.stdout.flush();
    let mut options = ctl.settings.daemon.clone();
    options.keep_stderr = true;
    let settings = CoreSettings {
        clock: ctl.clock.clone(),
        logger: ctl.logger.clone(),
        dirs: ctl.env.dirs.clone(),
        net: ctl.net.clone(),
        options,
        reopen_on_hangup: false,
        takes_signals: true,
    };
    let core = match Core::start(settings) {
        Ok(Ok(core)) => core,
        Ok(Err(status)) => return Err(Fail::Code(status)),
        // It is printed and logged.
        Err(_) => return Err(Fail::Code(1)),
    };
    let mut commands = core.commands::<State>(false);
    for (name, usage, min, max) in COMMANDS {
        commands.register(name, usage, min, max, |state: &mut State, call| {
            state.calls.push(call);
        });
    }
    let mut watch = Watch {
        core,
        conn,
        blocked: false,
        barrier: None,
        answers_echo,
    };
    watch.core.complete();
    let mut state = State::default();
    let mut events = Vec::new();
    while watch.core.end().is_none() {
        if !watch.blocked {
            ctl.take_messages(&mut watch)?;
        }
        let interest = if watch.blocked {
            Interest::NONE
        } else {
            Interest::READ
        };
        let failed = |e: std::io::Error| Fail::Fatal(io::error_text(&e));
        watch
            .conn
            .stream
            .watch(&watch.core.poll, TOKEN, interest)
            .map_err(failed)?;
        let deadline = ctl.deadline.min(watch.core.next_deadline());
        let turn = watch
            .core
            .turn(deadline, &mut commands, &mut state, &mut events);
        turn.map_err(failed)?;
        if ctl.clock.now() >= ctl.deadline {
            return Err(Fail::Alarm);
        }
        for call in std::mem::take(&mut state.calls) {
            ctl.carry_out(&mut watch, call);
        }
    }
    // A signal ends the process here; after `exit` there is nothing else to do.
    let _ = watch.core.finish();
    Ok(())
}

impl Ctl<'_, '_> {
    /// Prints all messages that are there.
    fn take_messages(&mut self, watch: &mut Watch) -> Outcome {
        while let Some(bytes) = self
            .receive_now(&mut watch.conn)
            .map_err(|p| p.fail("vconn_recv"))?
        {
            if self.settings.timestamp {
                let now = self.clock.wall();
                let date = base::log::date::format("%Y-%m-%d %H:%M:%S.###", now, 0);
                let _ = write!(self.env.stderr, "{date}: ");
            }
            let name = watch.conn.name.clone();
            let text = self.show(&name, &bytes, 2)?;
            let _ = self.env.stderr.write_all(text.as_bytes());
            match kind_of(&bytes) {
                Ok(Kind::OfptBarrierReply) => {
                    if let Some(responder) = watch.barrier.take() {
                        responder.reply("");
                    }
                }
                Ok(Kind::OfptEchoRequest) if watch.answers_echo => {
                    let mut reply = bytes;
                    reply[1] = 3;
                    self.send_from(watch, &reply)
                        .map_err(|p| p.fail("failed to send echo reply"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends, and waits until all is sent, outside of the loop.
    fn send_from(&self, watch: &mut Watch, bytes: &[u8]) -> Result<(), super::conn::Problem> {
        watch.conn.stream.unwatch(&watch.core.poll);
        let sent = self.send_bytes(&mut watch.conn, bytes);
        watch.conn.stream.unwatch(&watch.conn.poll);
        sent
    }

    fn carry_out(&mut self, watch: &mut Watch, call: Call) {
        let Call {
            name,
            args,
            responder,
            ..
        } = call;
        match name.as_str() {
            "ofctl/send" => responder.finish(self.send_all(watch, &args)),
            "ofctl/packet-out" => responder.finish(self.send_packet(watch, &args[0])),
            "ofctl/barrier" => {
                if watch.barrier.is_some() {
                    return responder.error("already waiting for barrier reply");
                }
                let barrier = self.request(&watch.conn, Body::BarrierRequest);
                let bytes = barrier.encode(watch.conn.dialect);
                match self.send_from(watch, &bytes) {
                    Ok(()) => watch.barrier = Some(responder),
                    Err(problem) => responder.error(problem.text()),
                }
            }
            "ofctl/set-output-file" => responder.finish(set_output_file(&args[0])),
            "ofctl/block" if watch.blocked => responder.error("already blocking"),
            "ofctl/unblock" if !watch.blocked => responder.error("already unblocked"),
            _ => {
                watch.blocked = name == "ofctl/block";
                responder.reply("");
            }
        }
    }

    fn text(&mut self, watch: &Watch, bytes: &[u8]) -> String {
        // Without names a message can always be shown.
        self.show(&watch.conn.name, bytes, 0).unwrap_or_default()
    }

    fn send_all(&mut self, watch: &mut Watch, args: &[String]) -> Result<String, String> {
        let mut reply = String::new();
        let mut good = true;
        for arg in args {
            let sent = message_from_hex(arg)
                .map_err(str::to_owned)
                .and_then(|bytes| {
                    let text = self.text(watch, &bytes);
                    let _ = write!(self.env.stderr, "send: {text}");
                    self.send_from(watch, &bytes).map_err(|p| p.text())
                });
            good &= sent.is_ok();
            reply += &sent.err().unwrap_or_else(|| "sent".to_owned());
            reply.push('\n');
        }
        if good { Ok(reply) } else { Err(reply) }
    }

    fn send_packet(&mut self, watch: &mut Watch, text: &str) -> Result<String, String> {
        let names = self.names_to_accept(&watch.conn.name);
        let names = names.unwrap_or_else(|_| self.no_names.clone());
        let (out, formats) = packet_out::parse(text, &names).map_err(|e| e + "\n")?;
        if !formats.intersects(formats_of(watch.conn.version)) {
            return Err(
                "PACKET_OUT actions are incompatible with the OpenFlow connection.\n".to_owned(),
            );
        }
        let message = self.request(&watch.conn, Body::PacketOut(Box::new(out)));
        let bytes = message.encode(watch.conn.dialect);
        let text = self.text(watch, &bytes);
        let _ = write!(self.env.stderr, "{text}");
        let sent = self.send_from(watch, &bytes);
        sent.map(|()| String::new()).map_err(|p| p.text() + "\n")
    }
}

fn message_from_hex(text: &str) -> Result<Vec<u8>, &'static str> {
    let bytes = hex(text).ok_or("Trailing garbage in hex data")?;
    if bytes.len() < 8 {
        return Err("Message too short for OpenFlow");
    }
    if of_wire::codec::claimed_len(&bytes) != Some(bytes.len()) {
        return Err("Message size does not match length in OpenFlow header");
    }
    Ok(bytes)
}

fn set_output_file(path: &str) -> Result<String, String> {
    let file = std::fs::File::create(path).map_err(|e| io::error_text(&e))?;
    let replaced = rustix::stdio::dup2_stderr(&file);
    replaced.map_err(|e| io::error_text(&e.into()))?;
    Ok(String::new())
}
