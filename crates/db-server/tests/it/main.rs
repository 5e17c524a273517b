//! The server's sessions, without sockets.

mod clustered;
mod conversions;
mod failing_disk;
mod upstreams;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Instant};
use db_engine::disk::SimDisk;
use db_engine::{Database, Disk};
use db_model::{DatabaseSchema, UuidSource};
use db_server::{ClientId, ClientInfo, Output, Server};
use io::jsonrpc::Message;
use json::Json;

const SCHEMA: &str = r#"{"name":"d","version":"1.0.0","tables":{"t":{"columns":{"n":{"type":"integer"}},"indexes":[["n"]]}}}"#;

const A: ClientId = ClientId(1);
const B: ClientId = ClientId(2);

struct Bench {
    clock: Clock,
    server: Server,
}

impl Bench {
    fn new(disk: Option<Box<dyn Disk>>) -> Self {
        Self::with_schema(SCHEMA, disk)
    }

    fn with_schema(schema: &str, disk: Option<Box<dyn Disk>>) -> Self {
        let clock = Clock::stopped(Instant::from_millis(1000));
        let mut server = Server::new(clock.clone(), [3; 32], Arc::new(|| {}));
        let schema = Arc::new(DatabaseSchema::from_text(schema).expect("valid"));
        let db = Database::new(schema, UuidSource::new([4; 32]));
        server.add_database(clock.now(), db, disk).expect("added");
        server.connect(A, ClientInfo::default());
        server.connect(B, ClientInfo::default());
        Self { clock, server }
    }

    /// A request, with the method as its id.
    fn request(&mut self, client: ClientId, method: &str, params: &str) {
        let params = json::parse(params.as_bytes()).expect("valid");
        let message = Message::Request {
            method: method.into(),
            params,
            id: method.into(),
        };
        self.server
            .handle_message(self.clock.now(), client, message);
    }

    /// What clients get, a line each: `1 {"..."}`.
    fn outputs(&mut self) -> Vec<String> {
        self.server.run(self.clock.now());
        let outputs = self.server.take_outputs().into_iter();
        let mut lines: Vec<String> = outputs
            .map(|(client, output)| match output {
                Output::Send(message) => format!("{} {}", client.0, message.to_json()),
                Output::Disconnect => format!("{} disconnect", client.0),
            })
            .collect();
        // Each client's order is kept; that between clients is not fixed.
        lines.sort_by_key(|line| line.as_bytes()[0]);
        lines
    }
}

fn insert(n: i64) -> String {
    format!(r#"["d",{{"op":"insert","table":"t","row":{{"n":{n}}}}}]"#)
}

const WAIT: &str = r#"["d",{"op":"wait","timeout":500,"table":"t","where":[["n","==",7]],"columns":["n"],"until":"==","rows":[{"n":7}]},{"op":"comment","comment":"x"}]"#;

#[test]
fn an_update_comes_before_the_reply() {
    let mut bench = Bench::new(None);
    bench.request(A, "monitor_cond", r#"["d","m",{"t":[{"columns":["n"]}]}]"#);
    assert_eq!(
        bench.outputs(),
        [r#"1 {"error":null,"id":"monitor_cond","result":{}}"#]
    );
    bench.request(A, "transact", &insert(1));
    let lines = bench.outputs();
    assert!(
        lines[0].contains(r#""method":"update2""#) && lines[0].contains(r#"{"insert":{"n":1}}"#)
    );
    assert!(lines[1].contains(r#""id":"transact""#));
}

#[test]
fn transactions_wait_and_time_out() {
    let mut bench = Bench::new(None);
    bench.request(A, "transact", WAIT);
    assert_eq!(bench.outputs(), [""; 0]);
    assert_eq!(bench.server.next_deadline(), Instant::from_millis(1500));
    bench.request(B, "transact", &insert(7));
    let lines = bench.outputs();
    assert_eq!(
        lines[0],
        r#"1 {"error":null,"id":"transact","result":[{},{}]}"#
    );
    bench.request(
        B,
        "transact",
        r#"["d",{"op":"delete","table":"t","where":[]}]"#,
    );
    bench.request(A, "transact", WAIT);
    bench.outputs();
    bench.clock.step(Duration::from_millis(500));
    assert_eq!(
        bench.outputs(),
        [
            r#"1 {"error":null,"id":"transact","result":[{"details":"\"wait\" timed out after 500 ms","error":"timed out"},null]}"#
        ]
    );
}

#[test]
fn waiting_transactions_are_canceled() {
    let mut bench = Bench::new(None);
    bench.request(A, "transact", WAIT);
    let message = Message::notification("cancel", vec!["transact".into()]);
    bench.server.handle_message(bench.clock.now(), A, message);
    assert_eq!(
        bench.outputs(),
        [r#"1 {"error":"canceled","id":"transact","result":null}"#]
    );
    assert_eq!(bench.server.next_deadline(), Instant::MAX);
}

#[test]
fn locks_are_queued_and_stolen() {
    let mut bench = Bench::new(None);
    bench.request(A, "lock", r#"["x"]"#);
    bench.request(B, "lock", r#"["x"]"#);
    let lines = bench.outputs();
    assert!(lines[0].contains(r#""locked":true"#) && lines[1].contains(r#""locked":false"#));
    bench.request(A, "transact", r#"["d",{"op":"assert","lock":"x"}]"#);
    bench.request(B, "transact", r#"["d",{"op":"assert","lock":"x"}]"#);
    let lines = bench.outputs();
    assert!(lines[0].contains("[{}]") && lines[1].contains("not owner"));
    bench.server.disconnect(A);
    assert_eq!(
        bench.outputs(),
        [r#"2 {"id":null,"method":"locked","params":["x"]}"#]
    );
    bench.server.connect(A, ClientInfo::default());
    bench.request(A, "steal", r#"["x"]"#);
    let lines = bench.outputs();
    assert_eq!(
        lines[1],
        r#"2 {"id":null,"method":"stolen","params":["x"]}"#
    );
    let locks = bench.server.client_locks(B);
    assert_eq!((locks.lost, locks.waiting), (vec!["x".into()], vec![]));
    assert_eq!(bench.server.client_locks(A).held, ["x".into()]);
}

#[test]
fn replies_wait_for_the_disk_and_failures_are_taken_back() {
    let disk = SimDisk::new(b"");
    let mut bench = Bench::new(Some(Box::new(disk.clone())));
    bench.request(B, "monitor", r#"["d","m",{"t":[{}]}]"#);
    bench.request(A, "transact", &insert(1));
    bench.server.drain_writers();
    assert_eq!(bench.outputs().len(), 3);
    assert!(String::from_utf8_lossy(&disk.contents()).contains(r#"{"n":1}"#));

    disk.set_room(Some(5));
    bench.request(A, "transact", &insert(2));
    bench.server.drain_writers();
    let lines = bench.outputs();
    assert_eq!(lines.len(), 1, "who watches hears nothing: {lines:?}");
    assert!(lines[0].starts_with('1') && lines[0].contains(r#""error":"I/O error""#));
    disk.set_room(None);
    bench
        .server
        .compact(bench.clock.now(), None)
        .expect("compacts");
    bench.server.drain_writers();
    bench.request(
        A,
        "transact",
        r#"["d",{"op":"select","table":"t","where":[],"columns":["n"]}]"#,
    );
    let lines = bench.outputs();
    assert!(lines[0].contains(r#"[{"rows":[{"n":1}]}]"#), "{lines:?}");
    bench.request(A, "transact", &insert(3));
    bench.server.drain_writers();
    assert!(bench.outputs()[0].contains("uuid"));
}

#[test]
fn conversion_cancels_monitors_of_those_who_cope() {
    let mut bench = Bench::new(None);
    bench.request(A, "set_db_change_aware", "[true]");
    bench.request(A, "transact", &insert(1));
    for client in [A, B] {
        bench.request(client, "monitor", r#"["d",["m"],{"t":[{}]}]"#);
        bench.request(client, "transact", WAIT);
    }
    bench.outputs();
    let schema = SCHEMA.replace("1.0.0", "2.0.0").replace(
        r#""n":{"type":"integer"}"#,
        r#""n":{"type":{"key":"integer","max":2}},"s":{"type":"string"}"#,
    );
    bench.request(A, "convert", &format!("[\"d\",{schema}]"));
    let lines = bench.outputs();
    assert_eq!(lines[0], r#"1 {"error":null,"id":"convert","result":{}}"#);
    assert_eq!(
        lines[1],
        r#"1 {"id":null,"method":"monitor_canceled","params":[["m"]]}"#
    );
    assert_eq!(
        lines[2],
        r#"1 {"error":"canceled","id":"transact","result":null}"#
    );
    assert_eq!(lines[3..], ["2 disconnect"]);
    bench.request(
        A,
        "transact",
        r#"["d",{"op":"select","table":"t","where":[],"columns":["n","s"]}]"#,
    );
    assert!(bench.outputs()[0].contains(r#"{"n":1,"s":""}"#));
    bench.request(A, "convert", r#"["d",{"name":"b","tables":{}}]"#);
    assert!(bench.outputs()[0].contains("new schema name (b) does not match database name (d)"));
}

#[test]
fn a_slow_client_gets_one_update_for_many_changes() {
    let mut bench = Bench::new(None);
    bench.request(B, "monitor_cond", r#"["d",1,{"t":[{"columns":["n"]}]}]"#);
    bench.outputs();
    bench.server.set_backlogged(B, true);
    for n in 0..20 {
        bench.request(A, "transact", &insert(n));
    }
    assert_eq!(bench.outputs().len(), 20);
    bench.server.set_backlogged(B, false);
    let lines = bench.outputs();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].matches("insert").count(), 20);
}

#[test]
fn unknown_methods_and_odd_messages() {
    let mut bench = Bench::new(None);
    bench.request(A, "foo", "[]");
    assert_eq!(
        bench.outputs(),
        [r#"1 {"error":"unknown method","id":"foo","result":null}"#]
    );
    bench.request(A, "monitor", r#"["d"]"#);
    assert!(bench.outputs()[0].contains("invalid parameters"));
    for (since, why) in [
        ("null", "last-txn-id must be string"),
        ("\"x\"", "last-txn-id must be UUID format."),
    ] {
        bench.request(
            A,
            "monitor_cond_since",
            &format!(r#"["d","m",{{}},{since}]"#),
        );
        let lines = bench.outputs();
        assert!(lines[0].contains(why), "{lines:?}");
    }
    bench.request(A, "transact", WAIT);
    bench.request(A, "transact", WAIT);
    let lines = bench.outputs();
    assert!(
        lines[0].contains("transact: duplicate request ID"),
        "{lines:?}"
    );
    let message = Message::reply(Json::Null, "x".into());
    bench.server.handle_message(bench.clock.now(), A, message);
    assert_eq!(bench.outputs(), ["1 disconnect"]);
}

#[test]
fn who_may_only_read_gets_no_locks() {
    let mut bench = Bench::new(None);
    let reader = ClientInfo {
        read_only: true,
        ..ClientInfo::default()
    };
    bench.server.connect(B, reader);
    for method in ["lock", "steal", "unlock"] {
        bench.request(B, method, r#"["x"]"#);
        let text = format!(
            r#"2 {{"error":"lock and unlock methods not allowed, DB server is read only.","id":"{method}","result":null}}"#
        );
        assert_eq!(bench.outputs(), [text]);
    }
    bench.request(B, "transact", &insert(1));
    assert!(bench.outputs()[0].contains("read only mode"));
    bench.request(A, "lock", r#"["x"]"#);
    assert!(bench.outputs()[0].contains("true"));
}
