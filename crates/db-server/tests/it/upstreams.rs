//! Relays and backups behind other servers: networks of servers in memory, whose links break.

use db_client::{Client, Interest, Layout};

use super::*;

/// The client that a server behind another is there.
const LINK: ClientId = ClientId(100);
/// Who asks for things.
const ASKER: ClientId = ClientId(1);

const SCHEMA: &str = r#"{"name":"d","version":"1.0.0","tables":{
    "t":{"columns":{"n":{"type":"integer"},"next":{"type":{"key":{"type":"uuid","refTable":"t","refType":"weak"},"min":0}}},"isRoot":true,"indexes":[["n"]]},
    "u":{"columns":{"s":{"type":{"key":"string","min":0,"max":"unlimited"}}},"isRoot":true}}}"#;

/// A server and its link to the one before it.
struct Hop {
    server: Server,
    up: bool,
    connected: bool,
    /// Whether it gave the connection up, and waits a little before it tries again.
    pauses: bool,
}

/// Servers in a row, each behind the one before it, and the one clock of all.
struct Row {
    clock: Clock,
    hops: Vec<Hop>,
    /// What askers were told, with the server's number.
    told: Vec<(usize, String)>,
}

impl Row {
    fn new(length: usize, mut place: impl FnMut(usize, &mut Server)) -> Self {
        let clock = Clock::stopped(Instant::from_millis(1_000_000));
        let hops = (0..length).map(|at| {
            let seed = [at as u8 + 1; 32];
            let mut server = Server::new(clock.clone(), seed, Arc::new(|| {}));
            place(at, &mut server);
            server.connect(ASKER, ClientInfo::default());
            Hop {
                server,
                up: at > 0,
                connected: false,
                pauses: false,
            }
        });
        let mut this = Self {
            hops: hops.collect(),
            clock,
            told: Vec::new(),
        };
        for at in 0..length {
            this.request(at, "set_db_change_aware", "[true]");
        }
        this.settle();
        this.told.clear();
        this
    }

    /// A row of relays behind a server that has the database.
    fn relays(length: usize) -> Self {
        Self::new(length, |at, server| {
            if at == 0 {
                add_database(server, SCHEMA);
                server.tell_transaction_ids();
            } else {
                server.add_relay("d", None).expect("added");
            }
        })
    }

    fn request(&mut self, at: usize, method: &str, params: &str) {
        self.request_as(at, method, params, method);
    }

    fn request_as(&mut self, at: usize, method: &str, params: &str, id: &str) {
        let message = Message::Request {
            method: method.into(),
            params: json::parse(params.as_bytes()).expect("valid"),
            id: id.into(),
        };
        let now = self.clock.now();
        self.hops[at].server.handle_message(now, ASKER, message);
    }

    fn cut(&mut self, at: usize) {
        if std::mem::take(&mut self.hops[at].connected) {
            self.hops[at - 1].server.disconnect(LINK);
            self.hops[at].server.upstream_disconnected("d");
        }
    }

    /// Carries messages until there are none.
    fn settle(&mut self) {
        self.hops.iter_mut().for_each(|hop| hop.pauses = false);
        for _ in 0..1000 {
            let mut moved = false;
            for at in 0..self.hops.len() {
                moved |= self.turn(at);
            }
            if !moved {
                return;
            }
        }
        panic!("messages without end");
    }

    fn turn(&mut self, at: usize) -> bool {
        let now = self.clock.now();
        let mut moved = false;
        if at > 0 && self.hops[at].up && !self.hops[at].connected && !self.hops[at].pauses {
            self.hops[at].connected = true;
            let before = &mut self.hops[at - 1].server;
            before.connect(LINK, ClientInfo::default());
            self.hops[at].server.upstream_connected("d");
            moved = true;
        }
        if at > 0 && !self.hops[at].up {
            self.cut(at);
        }
        if at > 0 && self.hops[at].connected {
            for request in self.hops[at].server.upstream_requests("d") {
                let before = &mut self.hops[at - 1].server;
                before.handle_message(now, LINK, request);
                moved = true;
            }
        }
        self.hops[at].server.drain_writers();
        self.hops[at].server.run(now);
        for (client, output) in self.hops[at].server.take_outputs() {
            moved = true;
            match (client, output) {
                (ASKER, Output::Send(message)) => {
                    self.told.push((at, message.to_json().to_string()));
                }
                (ASKER, Output::Disconnect) => panic!("the asker copes"),
                (LINK, Output::Send(message)) => {
                    let link = &mut self.hops[at + 1];
                    let refused = link.connected
                        && link
                            .server
                            .upstream_message(now, "d", wire(&message))
                            .is_err();
                    link.pauses |= refused;
                    if refused || link.server.take_upstream_reconnect("d") {
                        self.cut(at + 1);
                    }
                }
                (_, _) => self.cut(at + 1),
            }
        }
        moved
    }

    fn rows(&mut self, at: usize) -> BTreeSet<String> {
        self.told.clear();
        let select = |table: &str, columns: &str| {
            format!(r#"{{"op":"select","table":"{table}","where":[],"columns":{columns}}}"#)
        };
        let (t, u) = (
            select("t", r#"["_uuid","_version","n","next"]"#),
            select("u", r#"["_uuid","s"]"#),
        );
        self.request(at, "transact", &format!(r#"["d",{t},{u}]"#));
        self.settle();
        let (_, reply) = self.told.pop().expect("a reply");
        let reply = json::parse(reply.as_bytes()).expect("valid");
        let results = reply.get("result").and_then(Json::as_array).expect("done");
        let rows = results.iter().flat_map(|result| {
            let rows = result.get("rows").and_then(Json::as_array);
            rows.expect("rows").iter().map(Json::to_string)
        });
        rows.collect()
    }

    /// What `_Server` says of the database: model, connected, leader, whether it has a schema.
    fn status(&mut self, at: usize) -> String {
        self.told.clear();
        let select = r#"["_Server",{"op":"select","table":"Database","where":[["name","==","d"]],"columns":["model","connected","leader","schema"]}]"#;
        self.request(at, "transact", select);
        self.settle();
        let (_, reply) = self.told.pop().expect("a reply");
        let reply = json::parse(reply.as_bytes()).expect("valid");
        let results = reply.get("result").and_then(Json::as_array).expect("done");
        let rows = results[0].get("rows").and_then(Json::as_array);
        let row = &rows.expect("rows")[0];
        let field = |name: &str| row.get(name).expect("a column").to_string();
        let schema = row.get("schema").and_then(Json::as_str).is_some();
        let (model, connected, leader) = (field("model"), field("connected"), field("leader"));
        format!("{model} {connected} {leader} {schema}")
    }
}

/// A message as it arrives elsewhere.
fn wire(message: &Message) -> Message {
    let text = message.to_json().to_string();
    Message::from_json(json::parse(text.as_bytes()).expect("valid")).expect("a message")
}

fn add_database(server: &mut Server, schema: &str) {
    let schema = Arc::new(DatabaseSchema::from_text(schema).expect("valid"));
    let db = Database::new(schema, UuidSource::new([4; 32]));
    server.add_database(Instant::ZERO, db, None).expect("added");
}

fn insert(n: i64) -> String {
    format!(r#"["d",{{"op":"insert","table":"t","row":{{"n":{n}}}}}]"#)
}

#[test]
fn changes_go_through_a_chain_of_relays_and_come_back() {
    let mut row = Row::relays(4);
    assert_eq!(row.status(0), r#""standalone" true true true"#);
    for at in 1..4 {
        assert_eq!(row.status(at), r#""relay" true false true"#);
    }
    row.told.clear();
    row.request(
        3,
        "monitor_cond_since",
        r#"["d","m",{"t":[{"columns":["n"]}]},"00000000-0000-0000-0000-000000000000"]"#,
    );
    row.request(3, "transact", &insert(5));
    row.settle();
    let lines: Vec<&str> = row.told.iter().map(|(_, line)| &**line).collect();
    assert!(
        lines[0].contains(r#""id":"monitor_cond_since""#),
        "{lines:?}"
    );
    assert!(lines[1].contains(r#""method":"update3""#), "{lines:?}");
    assert!(
        lines[2].contains(r#""id":"transact","result":[{"uuid""#),
        "{lines:?}"
    );
    // The root names transactions, and all know them by the same names.
    assert!(!lines[1].contains("00000000-0000-0000-0000-000000000000"));
    let root = row.rows(0);
    assert_eq!(root.len(), 1);
    for at in 1..4 {
        assert_eq!(row.rows(at), root);
    }
    // What is wrong by itself needs no source; what its rows forbid is for that to say.
    row.hops[1].up = false;
    row.told.clear();
    row.request(
        3,
        "transact",
        r#"["d",{"op":"insert","table":"x","row":{}}]"#,
    );
    row.settle();
    assert!(row.told[0].1.contains("No table named x"), "{:?}", row.told);
    row.hops[1].up = true;
    row.told.clear();
    row.request(3, "transact", &insert(5));
    row.settle();
    assert!(
        row.told[0].1.contains("constraint violation"),
        "{:?}",
        row.told
    );
}

#[test]
fn transactions_wait_for_the_source_and_are_canceled_with_it() {
    let mut row = Row::relays(3);
    row.hops[1].up = false;
    row.settle();
    row.request_as(2, "transact", &insert(1), "first");
    row.settle();
    assert_eq!(row.told, []);
    let cancel = Message::notification("cancel", vec!["first".into()]);
    row.hops[1].server.run(row.clock.now());
    let now = row.clock.now();
    row.hops[2].server.handle_message(now, ASKER, cancel);
    row.settle();
    let canceled = r#"{"error":"canceled","id":"first","result":null}"#;
    assert_eq!(row.told, [(2, canceled.to_owned())]);
    row.told.clear();
    row.request_as(2, "transact", &insert(2), "second");
    row.settle();
    assert_eq!(row.told, []);
    // It stands in the queue of the middle one, which cannot say what becomes of it if the
    // link to the last one breaks.
    row.hops[2].up = false;
    row.settle();
    let canceled = r#"{"error":"canceled","id":"second","result":null}"#;
    assert_eq!(row.told, [(2, canceled.to_owned())]);
    row.hops[1].up = true;
    row.hops[2].up = true;
    row.settle();
    assert_eq!(row.rows(0), row.rows(2));
    // For a while a relay that lost its source may be hoped to find it again.
    row.hops[1].up = false;
    row.settle();
    assert_eq!(row.status(1), r#""relay" true false true"#);
    assert!(row.hops[1].server.next_deadline() > row.clock.now());
    row.clock.step(Duration::from_secs(31));
    row.settle();
    assert_eq!(row.status(1), r#""relay" false false true"#);
    // Who leans on it knows, may look for another server, or hears when this one will do again.
    let why = row.hops[2].server.upstream_unsuitable("d");
    assert!(why.is_some_and(|why| why.contains("disconnected from the relay source")));
    row.hops[1].up = true;
    row.settle();
    assert_eq!(row.hops[2].server.upstream_unsuitable("d"), None);
    assert_eq!(row.status(2), r#""relay" true false true"#);
}

#[test]
fn a_relay_without_its_source_serves_nothing_yet() {
    let mut row = Row::new(2, |at, server| match at {
        0 => {}
        _ => server.add_relay("d", None).expect("added"),
    });
    assert_eq!(row.status(1), r#""relay" false false false"#);
    for (method, params) in [
        ("get_schema", r#"["d"]"#),
        ("monitor", r#"["d","m",{}]"#),
        ("transact", r#"["d"]"#),
    ] {
        row.told.clear();
        row.request(1, method, params);
        row.settle();
        assert!(
            row.told[0].1.contains("database not available"),
            "{:?}",
            row.told
        );
    }
    assert!(row.hops[1].server.add_relay("d", None).is_err());
    assert!(row.hops[1].server.add_relay("_x", None).is_err());
    row.told.clear();
    row.request(1, "list_dbs", "[]");
    row.settle();
    assert!(
        row.told[0].1.contains(r#"["_Server","d"]"#),
        "{:?}",
        row.told
    );
    add_database(&mut row.hops[0].server, SCHEMA);
    // The source tells those who cope with it.
    row.settle();
    assert_eq!(row.status(1), r#""relay" true false true"#);
}

#[test]
fn a_new_schema_goes_through_a_chain() {
    let mut row = Row::relays(3);
    row.request(0, "transact", &insert(1));
    row.settle();
    row.told.clear();
    row.request(2, "monitor", r#"["d","m",{"t":[{"columns":["n"]}]}]"#);
    row.settle();
    let schema = SCHEMA.replace("1.0.0", "1.1.0").replace(
        r#""n":{"type":"integer"}"#,
        r#""n":{"type":"integer"},"more":{"type":"string"}"#,
    );
    row.request(0, "convert", &format!("[\"d\",{schema}]"));
    row.settle();
    let told = |what: &str| {
        row.told
            .iter()
            .any(|(at, line)| *at == 2 && line.contains(what))
    };
    assert!(told("monitor_canceled"), "{:?}", row.told);
    row.told.clear();
    row.request(
        2,
        "transact",
        r#"["d",{"op":"select","table":"t","where":[],"columns":["n","more"]}]"#,
    );
    row.settle();
    assert!(
        row.told[0].1.contains(r#"{"more":"","n":1}"#),
        "{:?}",
        row.told
    );
    row.told.clear();
    row.request(2, "convert", &format!("[\"d\",{SCHEMA}]"));
    row.settle();
    assert!(
        row.told[0].1.contains("convert it at its source"),
        "{:?}",
        row.told
    );
}

#[test]
fn a_backup_follows_and_takes_over() {
    let disk = SimDisk::new(b"");
    let mut row = Row::new(2, |at, server| {
        let schema = Arc::new(DatabaseSchema::from_text(SCHEMA).expect("valid"));
        let db = Database::new(schema, UuidSource::new([at as u8; 32]));
        let disk: Option<Box<dyn Disk>> = match at {
            1 => Some(Box::new(disk.clone())),
            _ => None,
        };
        server.add_database(Instant::ZERO, db, disk).expect("added");
        if at == 1 {
            server.start_backup("d", BTreeSet::from(["u".to_owned()]));
        }
    });
    row.request(0, "transact", &insert(1));
    row.request(
        0,
        "transact",
        r#"["d",{"op":"insert","table":"u","row":{}}]"#,
    );
    row.settle();
    row.hops[1].server.drain_writers();
    assert!(String::from_utf8_lossy(&disk.contents()).contains(r#"{"n":1}"#));
    assert_eq!(row.rows(0).len(), 2);
    assert_eq!(row.rows(1).len(), 1);
    row.told.clear();
    row.request(1, "transact", &insert(2));
    row.settle();
    let refused = "insert operation not allowed when database server is in read only mode";
    assert!(row.told[0].1.contains(refused), "{:?}", row.told);
    // Rows of tables that are left alone stay; others become what the active server has.
    row.hops[1].up = false;
    row.settle();
    row.hops[1].server.stop_backup("d");
    row.request(1, "transact", &insert(3));
    row.request(
        1,
        "transact",
        r#"["d",{"op":"insert","table":"u","row":{}}]"#,
    );
    row.settle();
    assert_eq!(row.rows(1).len(), 3);
    let excluded = BTreeSet::from(["u".to_owned()]);
    row.hops[1].server.start_backup("d", excluded);
    row.hops[1].up = true;
    row.settle();
    assert_eq!(row.rows(1).len(), 2);
    assert_eq!(row.hops[1].server.failed_backups(), [""; 0]);
}

#[test]
fn a_backup_that_cannot_hold_what_is_told_follows_no_more() {
    let other = SCHEMA.replace(r#""s":{"type""#, r#""other":{"type""#);
    for (active, why) in [
        (Some(&*other), "a column that the backup lacks"),
        (None, "no such database"),
    ] {
        let mut row = Row::new(2, |at, server| match (at, active) {
            (0, Some(schema)) => add_database(server, schema),
            (0, None) => {}
            _ => {
                add_database(server, SCHEMA);
                server.start_backup("d", BTreeSet::new());
            }
        });
        assert_eq!(row.hops[1].server.failed_backups(), ["d"], "{why}");
        row.request(1, "transact", &insert(2));
        row.settle();
        assert!(row.told[0].1.contains("read only"), "{:?}", row.told);
    }
}

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A transaction at random.
fn transaction(dice: &mut Dice) -> String {
    let n = dice.below(30);
    match dice.below(8) {
        0..4 => insert(n as i64),
        4 => format!(r#"["d",{{"op":"delete","table":"t","where":[["n","<",{n}]]}}]"#),
        5 => format!(
            r#"["d",{{"op":"insert","uuid-name":"a","table":"t","row":{{"n":{n}}}}},{{"op":"update","table":"t","where":[["n",">",{n}]],"row":{{"next":["named-uuid","a"]}}}}]"#
        ),
        6 => format!(
            r#"["d",{{"op":"mutate","table":"t","where":[],"mutations":[["n","+=",{n}]]}}]"#
        ),
        _ => format!(
            r#"["d",{{"op":"mutate","table":"u","where":[],"mutations":[["s","insert",["set",["{n}","x"]]],["s","delete","{}"]]}},{{"op":"insert","table":"u","row":{{"s":"{n}"}}}}]"#,
            n + 1
        ),
    }
}

#[test]
fn relays_and_their_clients_agree_with_the_root_whatever_breaks() {
    for seed in 0..testkit::cases(20) {
        let mut dice = Dice(seed.into());
        let mut row = Row::relays(4);
        let schema = DatabaseSchema::from_text(SCHEMA).expect("valid");
        let layout = Arc::new(Layout::new(&schema));
        let interest = Interest::everything(&layout);
        let mut client = Client::new(layout, interest);
        let mut asked = 0;
        for _ in 0..60 {
            match dice.below(10) {
                0 => {
                    let at = 1 + dice.below(3) as usize;
                    row.hops[at].up = false;
                }
                1 | 2 => row.hops.iter_mut().skip(1).for_each(|hop| hop.up = true),
                _ => {
                    let at = dice.below(4) as usize;
                    asked += 1;
                    let text = transaction(&mut dice);
                    row.request_as(at, "transact", &text, &format!("{asked}"));
                }
            }
            if dice.below(3) == 0 {
                row.settle();
            }
        }
        row.hops.iter_mut().skip(1).for_each(|hop| hop.up = true);
        row.settle();
        let answers = row
            .told
            .iter()
            .filter(|(_, line)| line.contains(r#""id":""#));
        assert_eq!(
            answers.count(),
            asked,
            "each was answered once, seed {seed}"
        );
        let root = row.rows(0);
        for at in 1..4 {
            assert_eq!(row.rows(at), root, "seed {seed}, server {at}");
        }
        follow(&mut row, &mut client, 3);
        let rows: usize = ["t", "u"]
            .iter()
            .filter_map(|name| {
                let table = client.layout().table(name)?;
                Some(client.replica().table(table).len())
            })
            .sum();
        assert_eq!(rows, root.len(), "seed {seed}");
    }
}

/// Has `client` follow the database at the server numbered `at`.
fn follow(row: &mut Row, client: &mut Client, at: usize) {
    const CLIENT: ClientId = ClientId(7);
    let now = row.clock.now();
    let server = &mut row.hops[at].server;
    server.connect(CLIENT, ClientInfo::default());
    client.connected();
    for _ in 0..10 {
        while let Some(request) = client.poll_request() {
            let message = Message::Request {
                method: request.method.into(),
                params: request.params,
                id: request.id.into(),
            };
            server.handle_message(now, CLIENT, message);
        }
        for (_, output) in server.take_outputs() {
            let Output::Send(message) = output else {
                continue;
            };
            if let Message::Reply { result, id } = wire(&message) {
                let id = id.as_integer().expect("a number");
                client.handle_reply(id, Ok(&result)).expect("taken");
            }
        }
    }
    assert!(client.is_following());
    server.disconnect(CLIENT);
}
