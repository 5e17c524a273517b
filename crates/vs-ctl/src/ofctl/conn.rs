//! Connections to switches: handshake, requests and replies.

use std::io::{ErrorKind, IoSlice};
use std::ops::Range;
use std::rc::Rc;

use io::stream::{OPENFLOW_PORT, is_active};
use io::{Interest, Poll, Stream, Token};
use net_flow::{Formats, Names, PortNo};
use of_wire::codec::{claimed_len, kind_of};
use of_wire::message::{Body, Message, PacketInFormat, Part, PortDesc};
use of_wire::print::{Style, message_text};
use of_wire::{Dialect, ErrorCode, Kind, Version, VersionSet};

use super::options::version_names;
use super::{Ctl, Fail, Outcome, fatal};

const TOKEN: Token = Token(1);

/// Which socket of a bridge to connect to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// Where it takes requests.
    Management,
    /// Where it shows what it says to its controllers.
    Snoop,
}

/// An OpenFlow connection after the handshake.
pub(super) struct Conn {
    /// The switch as the user named it.
    pub(super) name: String,
    pub(super) stream: Stream,
    pub(super) poll: Poll,
    pub(super) version: Version,
    pub(super) dialect: Dialect,
    pub(super) input: Vec<u8>,
    any_version: bool,
}

fn io_text(error: &std::io::Error) -> String {
    io::error_text(error)
}

impl Ctl<'_, '_> {
    pub(super) fn open(&mut self, name: &str) -> Outcome<Conn> {
        self.open_target(name, Target::Management)
    }

    pub(super) fn open_target(&mut self, name: &str, target: Target) -> Outcome<Conn> {
        let stream = self.dial(name, target)?;
        let failed = |error: std::io::Error| {
            let text = io_text(&error);
            Fail::Fatal(format!("{name}: failed to connect to socket ({text})"))
        };
        let poll = Poll::new(&self.clock).map_err(failed)?;
        let mut conn = Conn {
            name: name.to_owned(),
            stream,
            poll,
            version: Version::V10,
            dialect: Dialect::of(Version::V10),
            input: Vec::new(),
            any_version: target == Target::Snoop,
        };
        let hello = Message::new(
            self.settings.versions.highest().unwrap_or(Version::V10),
            self.xid(),
            Body::Hello(self.settings.versions),
        );
        let shaken = self.shake_hands(&mut conn, &hello);
        shaken.map_err(|error| match error {
            Problem::Late => Fail::Alarm,
            Problem::Io(error) => failed(error),
        })?;
        Ok(conn)
    }

    /// The first of the sockets that may be meant.
    fn dial(&mut self, name: &str, target: Target) -> Outcome<Stream> {
        let connect = |target: &str| self.net.connect(target, OPENFLOW_PORT, 0);
        if name.contains(':') {
            return connect(name).or_else(|error| {
                let text = io_text(&error);
                fatal(format!("connecting to {name} ({text})"))
            });
        }
        let suffix = if target == Target::Management {
            "mgmt"
        } else {
            "snoop"
        };
        // A datapath type may stand before the name.
        let plain = name.split_once('@').map_or(name, |(_, plain)| plain);
        let run = self.env.dirs.run.display().to_string();
        let candidates = [
            name.to_owned(),
            format!("{run}/{name}.{suffix}"),
            format!("{run}/{plain}.{suffix}"),
        ];
        for path in candidates {
            match connect(&format!("unix:{path}")) {
                Ok(stream) => return Ok(stream),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let text = io_text(&error);
                    return fatal(format!("{path}: failed to open socket ({text})"));
                }
            }
        }
        fatal(format!("{name} is not a bridge or a socket"))
    }

    fn shake_hands(&mut self, conn: &mut Conn, hello: &Message) -> Result<(), Problem> {
        self.send_bytes(conn, &hello.encode(conn.dialect))?;
        let bytes = self.receive(conn)?;
        let decoded = Message::decode(&bytes, conn.dialect).map(|m| m.body);
        let Ok(Body::Hello(theirs)) = decoded else {
            let style = Style {
                names: &self.no_names,
                verbosity: 1,
            };
            log::warn!(target: "vconn",
                "{}: received message while expecting hello: {}",
                conn.stream.name(), message_text(&bytes, style));
            return Err(protocol_error());
        };
        let ours = self.settings.versions;
        let Some(version) = ours.intersection(theirs).highest() else {
            let text = format!(
                "{}: version negotiation failed (we support {}, peer supports {})",
                conn.stream.name(),
                versions_text(ours),
                versions_text(theirs)
            );
            log::warn!(target: "vconn", "{text}");
            self.refuse_versions(conn, theirs)?;
            return Err(protocol_error());
        };
        log::debug!(target: "vconn",
            "{}: negotiated OpenFlow version 0x{:02x} (we support {}, peer supports {})",
            conn.stream.name(), version as u8, versions_text(ours), versions_text(theirs));
        conn.version = version;
        conn.dialect = Dialect::of(version);
        Ok(())
    }

    /// Tells the switch why, and the user what to do.
    fn refuse_versions(&mut self, conn: &mut Conn, theirs: VersionSet) -> Result<(), Problem> {
        let highest = theirs.highest().unwrap_or(Version::V10);
        let payload = format!(
            "We support {}, you support {}, no common versions.",
            versions_text(self.settings.versions),
            versions_text(theirs)
        );
        let mut error = Message::error(highest, self.xid(), ErrorCode::OfphfcIncompatible, &[]);
        if let Body::Error(body) = &mut error.body {
            body.payload = payload.into_bytes();
        }
        self.send_bytes(conn, &error.encode(Dialect::of(highest)))?;
        if rustix::termios::isatty(std::io::stderr()) && !version_names(theirs).is_empty() {
            // Whoever reads the output in a program gets the original's lines alone.
            let _ = writeln!(
                self.env.stderr,
                "{}: the switch offers {}: add -O {highest}",
                self.env.program,
                version_names(theirs)
            );
        }
        Ok(())
    }

    /// Waits until the stream is ready for `interest`.
    fn wait(&self, conn: &mut Conn, interest: Interest) -> Result<(), Problem> {
        conn.stream.watch(&conn.poll, TOKEN, interest)?;
        let mut events = Vec::new();
        conn.poll.wait(self.deadline, &mut events)?;
        if self.clock.now() >= self.deadline {
            return Err(Problem::Late);
        }
        Ok(())
    }

    /// Logs messages, for those who want to see what goes over the connection.
    fn log_messages(&self, conn: &Conn, what: &str, bytes: &[u8]) {
        if !log::log_enabled!(target: "vconn", log::Level::Debug) {
            return;
        }
        let style = Style {
            names: &self.no_names,
            verbosity: 1,
        };
        for message in of_wire::codec::split(bytes).map_or(vec![bytes], |(all, _)| all) {
            let text = message_text(message, style);
            log::debug!(target: "vconn", "{}: {what}: {}", conn.stream.name(), text.trim_end());
        }
    }

    /// Sends, and waits until all is sent.
    pub(super) fn send_bytes(&self, conn: &mut Conn, bytes: &[u8]) -> Result<(), Problem> {
        let mut rest = bytes;
        self.log_messages(conn, "sent (Success)", bytes);
        while !rest.is_empty() {
            match conn.stream.send(&[IoSlice::new(rest)]) {
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(conn, Interest::BOTH)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A whole message, if one is there.
    pub(super) fn receive_now(&self, conn: &mut Conn) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            if let Some(message) = conn.take_message()? {
                self.log_messages(conn, "received", &message);
                return Ok(Some(message));
            }
            let mut buffer = [0; 65536];
            match conn.stream.recv(&mut buffer) {
                Ok(0) if conn.input.is_empty() => {
                    return Err(Problem::Io(ErrorKind::UnexpectedEof.into()));
                }
                Ok(0) => return Err(protocol_error()),
                Ok(n) => conn.input.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next whole message.
    fn receive(&self, conn: &mut Conn) -> Result<Vec<u8>, Problem> {
        loop {
            if let Some(message) = self.receive_now(conn)? {
                return Ok(message);
            }
            self.wait(conn, Interest::READ)?;
        }
    }

    pub(super) fn send(&mut self, conn: &mut Conn, bytes: &[u8]) -> Outcome {
        self.send_bytes(conn, bytes)
            .map_err(|p| p.fail("failed to send packet to switch"))
    }

    pub(super) fn recv(&mut self, conn: &mut Conn) -> Outcome<Vec<u8>> {
        self.receive(conn)
            .map_err(|p| p.fail("OpenFlow packet receive failed"))
    }

    /// The next message, if one is there.
    pub(super) fn reply_now(&mut self, conn: &mut Conn) -> Outcome<Option<Vec<u8>>> {
        self.receive_now(conn)
            .map_err(|p| p.fail("OpenFlow packet receive failed"))
    }

    /// A message with the connection's version and a new transaction id.
    pub(super) fn request(&mut self, conn: &Conn, body: Body) -> Message {
        Message::new(conn.version, self.xid(), body)
    }

    /// Sends a request and waits for its reply.
    pub(super) fn transact(&mut self, conn: &mut Conn, body: Body) -> Outcome<Vec<u8>> {
        let request = self.request(conn, body);
        let talking = format!("talking to {}", conn.stream.name());
        let bytes = request.encode(conn.dialect);
        self.send_bytes(conn, &bytes)
            .map_err(|p| p.fail(&talking))?;
        loop {
            let reply = self.receive(conn).map_err(|p| p.fail(&talking))?;
            if xid_of(&reply) == request.xid {
                return Ok(reply);
            }
        }
    }

    /// Sends a request that has no reply unless it fails: that reply, if it does.
    pub(super) fn transact_noreply(
        &mut self,
        conn: &mut Conn,
        body: Body,
    ) -> Outcome<Option<Vec<u8>>> {
        let request = self.request(conn, body);
        let bytes = request.encode(conn.dialect);
        self.transact_bytes(conn, request.xid, bytes)
    }

    /// As [`Ctl::transact_noreply`], for a request that is encoded already.
    pub(super) fn transact_bytes(
        &mut self,
        conn: &mut Conn,
        xid: u32,
        bytes: Vec<u8>,
    ) -> Outcome<Option<Vec<u8>>> {
        self.transact_all(conn, xid..xid.wrapping_add(1), bytes)
    }

    /// As [`Ctl::transact_bytes`], for any number of requests.
    pub(super) fn transact_all(
        &mut self,
        conn: &mut Conn,
        xids: Range<u32>,
        mut bytes: Vec<u8>,
    ) -> Outcome<Option<Vec<u8>>> {
        let talking = format!("talking to {}", conn.stream.name());
        let barrier = self.request(conn, Body::BarrierRequest);
        bytes.extend(barrier.encode(conn.dialect));
        self.send_bytes(conn, &bytes)
            .map_err(|p| p.fail(&talking))?;
        let mut error = None;
        loop {
            let reply = self.receive(conn).map_err(|p| p.fail(&talking))?;
            let got = xid_of(&reply);
            if xids.contains(&got) {
                error.get_or_insert(reply);
            } else if got == barrier.xid {
                return Ok(error);
            }
        }
    }

    /// As [`Ctl::transact_noreply`]; a reply ends the program.
    pub(super) fn must_succeed(&mut self, conn: &mut Conn, body: Body) -> Outcome {
        let reply = self.transact_noreply(conn, body)?;
        self.end_on_reply(conn, reply)
    }

    /// Prints the error that a request met, and ends.
    pub(super) fn end_on_reply(&mut self, conn: &Conn, reply: Option<Vec<u8>>) -> Outcome {
        let Some(reply) = reply else {
            return Ok(());
        };
        let text = self.show(&conn.name, &reply, 2)?;
        let _ = self.env.stdout.flush();
        let _ = write!(self.env.stderr, "{text}");
        Err(Fail::Code(1))
    }

    /// Sends a request and prints the replies to it.
    pub(super) fn dump(&mut self, conn: &mut Conn, body: Body) -> Outcome {
        let request = self.request(conn, body);
        let bytes = request.encode(conn.dialect);
        if bytes.is_empty() {
            return fatal(format!("this request cannot be made in {}", conn.version));
        }
        let Some(want) = kind_of(&bytes)
            .ok()
            .filter(|k| k.name().ends_with(" request"))
        else {
            let talking = format!("talking to {}", conn.stream.name());
            self.send_bytes(conn, &bytes)
                .map_err(|p| p.fail(&talking))?;
            loop {
                let reply = self.receive(conn).map_err(|p| p.fail(&talking))?;
                if xid_of(&reply) == request.xid {
                    let text = self.show(&conn.name.clone(), &reply, 1)?;
                    self.env.print(text);
                    return Ok(());
                }
            }
        };
        let want = want.name().trim_end_matches("request").to_owned() + "reply";
        self.send(conn, &bytes)?;
        loop {
            let reply = self.recv(conn)?;
            if xid_of(&reply) != request.xid {
                continue;
            }
            let text = self.show(&conn.name.clone(), &reply, 1)?;
            self.env.print(&text);
            match kind_of(&reply) {
                Ok(Kind::OfptError) => return Ok(()),
                Ok(kind) if kind.name() == want => {
                    if !has_more(&reply) {
                        return Ok(());
                    }
                }
                _ => return fatal(format!("received bad reply: {text}")),
            }
        }
    }

    /// Opens the switch `name`, makes the request, prints the replies.
    pub(super) fn dump_once(&mut self, name: &str, body: Body) -> Outcome {
        let mut conn = self.open(name)?;
        self.dump(&mut conn, body)
    }

    /// Replies to a multipart request, decoded, in order.
    pub(super) fn collect(&mut self, conn: &mut Conn, body: Body) -> Outcome<Vec<Message>> {
        let mut replies = Vec::new();
        self.each_reply(conn, body, |reply| replies.push(reply))?;
        Ok(replies)
    }

    /// Sends a multipart request and hands each part of the answer to `take`.
    pub(super) fn each_reply(
        &mut self,
        conn: &mut Conn,
        body: Body,
        mut take: impl FnMut(Message),
    ) -> Outcome {
        let request = self.request(conn, body);
        let bytes = request.encode(conn.dialect);
        self.send(conn, &bytes)?;
        loop {
            let reply = self.recv(conn)?;
            if xid_of(&reply) != request.xid {
                continue;
            }
            let decoded = Message::decode(&reply, conn.dialect);
            let message = decoded.or_else(|code| fatal(format!("decode error: {code}")))?;
            if matches!(message.body, Body::Error(_)) {
                let text = self.show(&conn.name.clone(), &reply, 1)?;
                self.env.print(text);
                return Err(Fail::Code(1));
            }
            take(message);
            if !has_more(&reply) {
                return Ok(());
            }
        }
    }

    /// Has the connection use flow format `want`; false if the switch does not know it.
    pub(super) fn try_format(&mut self, conn: &mut Conn, want: Formats) -> Outcome<bool> {
        let mine = of_wire::version::formats_of(conn.version);
        if !mine.contains(want) {
            return Ok(false);
        }
        let nxm = Formats::OF10_NXM_ANY.contains(want);
        let tid = Formats::OF10_STD_TID | Formats::OF10_NXM_TID;
        if conn.dialect.is_nxm() != nxm {
            let format = if nxm { 2 } else { 0 };
            if self
                .transact_noreply(conn, Body::SetFlowFormat(format))?
                .is_some()
            {
                return Ok(false);
            }
            conn.dialect.format = match (nxm, conn.dialect.has_table_id()) {
                (false, false) => Formats::OF10_STD,
                (false, true) => Formats::OF10_STD_TID,
                (true, false) => Formats::OF10_NXM,
                (true, true) => Formats::OF10_NXM_TID,
            };
        }
        let want_tid = tid.contains(want);
        if conn.version == Version::V10 && conn.dialect.has_table_id() != want_tid {
            if self
                .transact_noreply(conn, Body::FlowModTableId(want_tid))?
                .is_some()
            {
                return Ok(false);
            }
            conn.dialect.format = want;
        }
        Ok(true)
    }

    /// The ports of the switch.
    pub(super) fn ports(&mut self, conn: &mut Conn) -> Outcome<Vec<PortDesc>> {
        if conn.version < Version::V13 {
            let reply = self.transact(conn, Body::FeaturesRequest)?;
            return match Message::decode(&reply, conn.dialect).map(|m| m.body) {
                Ok(Body::FeaturesReply(features)) => Ok(features.ports),
                _ => fatal(format!(
                    "{}: received bad features reply",
                    conn.stream.name()
                )),
            };
        }
        let replies = self.collect(conn, Body::PortDescRequest(PortNo::NONE))?;
        let mut ports = Vec::new();
        for reply in replies {
            if let Body::PortDescReply(Part { entries, .. }) = reply.body {
                ports.extend(entries);
            }
        }
        Ok(ports)
    }

    /// The names of the switch's ports and tables.
    pub(super) fn fetch_names(&mut self, switch: &str) -> Outcome<Rc<Names>> {
        if let Some(names) = self.names.get(switch) {
            return Ok(names.clone());
        }
        let mut names = Names::default();
        if !switch.contains(':') || is_active(switch) {
            let mut conn = self.open(switch)?;
            for port in self.ports(&mut conn)? {
                names.ports.insert(port.port.0, &port.name);
            }
            self.fetch_tables(&mut conn, &mut names)?;
        }
        let names = Rc::new(names);
        self.names.insert(switch.to_owned(), names.clone());
        Ok(names)
    }

    /// Table names come with table features, or before those with table statistics.
    fn fetch_tables(&mut self, conn: &mut Conn, names: &mut Names) -> Outcome {
        let features = conn.version >= Version::V13;
        let body = if features {
            Body::TableFeaturesRequest(Part::last(Vec::new()))
        } else {
            Body::TableStatsRequest
        };
        let request = self.request(conn, body);
        let bytes = request.encode(conn.dialect);
        self.send(conn, &bytes)?;
        loop {
            let reply = self.recv(conn)?;
            if xid_of(&reply) != request.xid {
                continue;
            }
            let tables = match Message::decode(&reply, conn.dialect).map(|m| m.body) {
                Ok(Body::TableFeaturesReply(part)) => part.entries,
                Ok(Body::TableStatsReply(part)) => part
                    .entries
                    .into_iter()
                    .map(|(features, _)| features)
                    .collect(),
                // A switch may refuse; then tables have numbers only.
                _ => return Ok(()),
            };
            for table in tables.iter().filter(|table| !table.name.is_empty()) {
                names.tables.insert(u32::from(table.table), &table.name);
            }
            if !has_more(&reply) {
                return Ok(());
            }
        }
    }
}

impl Conn {
    /// A whole message from what has been received, if there is one.
    pub(super) fn take_message(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let Some(len) = claimed_len(&self.input) else {
            return Ok(None);
        };
        if len < 8 {
            log::warn!(target: "stream", "received too-short ofp_header ({len} bytes)");
            return Err(protocol_error());
        }
        if self.input.len() < len {
            return Ok(None);
        }
        let rest = self.input.split_off(len);
        let message = std::mem::replace(&mut self.input, rest);
        let handshake = matches!(message[1], 0..=3);
        if !self.any_version && !handshake && message[0] != self.version as u8 {
            log::warn!(target: "vconn",
                "{}: received OpenFlow version 0x{:02x} != expected {:02x}",
                self.stream.name(), message[0], self.version as u8);
            return Err(protocol_error());
        }
        Ok(Some(message))
    }

    /// The form of packet-ins that the switch was asked for.
    pub(super) const fn set_packet_in(&mut self, format: PacketInFormat) {
        self.dialect.packet_in = format;
    }
}

/// The transaction id of a message.
pub(super) fn xid_of(bytes: &[u8]) -> u32 {
    bytes
        .get(4..8)
        .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// Whether further parts of a multipart message follow.
pub(super) fn has_more(bytes: &[u8]) -> bool {
    bytes.get(11).is_some_and(|flags| flags & 1 != 0)
}

/// What goes wrong on a connection.
#[derive(Debug)]
pub(super) enum Problem {
    /// The time that the user gave is up.
    Late,
    Io(std::io::Error),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl Problem {
    /// The failure to end with, `doing` something.
    pub(super) fn fail(self, doing: &str) -> Fail {
        match self {
            Self::Late => Fail::Alarm,
            Self::Io(error) => Fail::Fatal(format!("{doing} ({})", io_text(&error))),
        }
    }

    /// What is wrong, for whoever asks over the control socket.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Late => "Connection timed out".to_owned(),
            Self::Io(error) => io_text(error),
        }
    }
}

fn protocol_error() -> Problem {
    Problem::Io(rustix::io::Errno::PROTO.into())
}

/// Versions as log lines have them: `version 0x01`, or `versions 0x01, 0x04`.
fn versions_text(versions: VersionSet) -> String {
    let set = (1..32).filter(|n| versions.0 >> n & 1 != 0);
    let names: Vec<String> = set.map(|n| format!("0x{n:02x}")).collect();
    match names.len() {
        0 => "no versions".to_owned(),
        1 => format!("version {}", names[0]),
        n if versions == VersionSet::up_to(n as u8) => {
            format!("version {} and earlier", names[n - 1])
        }
        _ => format!("versions {}", names.join(", ")),
    }
}
