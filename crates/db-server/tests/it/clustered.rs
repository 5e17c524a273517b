//! A database of a cluster of one server, without sockets: what clients hear, and when.

use db_engine::log_file::frame_clustered;
use db_model::UuidSource;
use db_raft::Data;
use db_raft::record::create_cluster;
use testkit::Scratch;

use super::*;

/// A server of a cluster, and its file.
struct Clustered {
    bench: Bench,
    folder: Scratch,
}

impl Clustered {
    fn new() -> Self {
        let folder = Scratch::new();
        let contents = Data::from_text(format!("[{SCHEMA},{{}}]"));
        let mut uuids = UuidSource::new([9; 32]);
        let records = create_cluster("d", "unix:s1.raft", contents, 0, &mut uuids).expect("good");
        let contents = records
            .iter()
            .flat_map(|record| frame_clustered(&record.to_string()));
        let contents: Vec<u8> = contents.collect();
        std::fs::write(folder.file("db"), contents).expect("a writable folder");
        Self {
            bench: Self::open(&folder),
            folder,
        }
    }

    fn open(folder: &Scratch) -> Bench {
        let clock = Clock::stopped(Instant::from_millis(1000));
        let mut server = Server::new(clock.clone(), [3; 32], Arc::new(|| {}));
        let path = folder.file("db");
        let added = server.add_file(clock.now(), &path, "db");
        assert_eq!(added.as_deref(), Ok("d"));
        server.drain_clusters(clock.now()).expect("nothing fails");
        server.connect(A, ClientInfo::default());
        server.connect(B, ClientInfo::default());
        let mut bench = Bench { clock, server };
        bench.outputs();
        bench
    }

    /// What clients get once all is in the file.
    fn written(&mut self) -> Vec<String> {
        let now = self.bench.clock.now();
        let server = &mut self.bench.server;
        // What waits for something else comes after that.
        for _ in 0..10 {
            server.run(now);
            server.drain_clusters(now).expect("nothing fails");
        }
        self.bench.outputs()
    }

    /// A transaction under an id of its own.
    fn transact(&mut self, client: ClientId, id: i64, params: &str) {
        let message = Message::Request {
            method: "transact".into(),
            params: json::parse(params.as_bytes()).expect("valid"),
            id: id.into(),
        };
        let now = self.bench.clock.now();
        self.bench.server.handle_message(now, client, message);
    }

    fn select(&mut self) -> String {
        let select = r#"["d",{"op":"select","table":"t","where":[],"columns":["n"]}]"#;
        self.bench.request(B, "transact", select);
        self.written().join(" ")
    }
}

#[test]
fn nobody_hears_of_what_is_not_in_the_log() {
    let mut cluster = Clustered::new();
    let never = "00000000-0000-0000-0000-000000000000";
    let monitor = format!(r#"["d","m",{{"t":[{{"columns":["n"]}}]}},"{never}"]"#);
    cluster.bench.request(A, "monitor_cond_since", &monitor);
    cluster.bench.outputs();
    cluster.bench.request(A, "transact", &insert(1));
    // The select must see what comes before it.
    let select = r#"["d",{"op":"select","table":"t","where":[],"columns":["n"]}]"#;
    cluster.bench.request(B, "transact", select);
    let lines = cluster.written();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains(r#""method":"update3""#), "{lines:?}");
    assert!(lines[1].contains(r#""id":"transact""#), "{lines:?}");
    assert!(lines[2].contains(r#"{"rows":[{"n":1}]}"#), "{lines:?}");
    // It is there after a restart, and whoever was told of it is told only of what came later.
    let told = json::parse(&lines[0].as_bytes()[2..]).expect("JSON");
    let told = told
        .get("params")
        .and_then(|p| p.as_array().map(|p| p[1].to_string()));
    let told = told.expect("the id of the transaction");
    cluster.bench.request(B, "transact", &insert(2));
    cluster.written();
    drop(std::mem::replace(&mut cluster.bench, Bench::new(None)));
    cluster.bench = Clustered::open(&cluster.folder);
    let monitor = format!(r#"["d","m",{{"t":[{{"columns":["n"]}}]}},{told}]"#);
    cluster.bench.request(A, "monitor_cond_since", &monitor);
    let lines = cluster.bench.outputs();
    assert!(lines[0].contains(r#""result":[true,"#), "{lines:?}");
    assert!(lines[0].contains(r#"{"insert":{"n":2}}"#), "{lines:?}");
    assert!(!lines[0].contains(r#"{"insert":{"n":1}}"#), "{lines:?}");
}

#[test]
fn constraints_hold_between_transactions_in_a_row() {
    let mut cluster = Clustered::new();
    for client in [A, B] {
        cluster.bench.request(client, "transact", &insert(5));
    }
    let lines = cluster.written();
    assert!(lines[0].contains(r#""result":[{"uuid":"#), "{lines:?}");
    assert!(lines[1].contains("constraint violation"), "{lines:?}");
    let nothing = r#"["d",{"op":"update","table":"t","where":[],"row":{"n":5}}]"#;
    cluster.bench.request(A, "transact", nothing);
    assert_eq!(
        cluster.bench.outputs(),
        [r#"1 {"error":null,"id":"transact","result":[{"count":1}]}"#]
    );
}

#[test]
fn transactions_in_a_row_are_answered_in_order_and_truly() {
    let mut cluster = Clustered::new();
    // The first goes ahead; the others come behind it, one upon the other.
    for (id, (client, n)) in (0..).zip([(A, 1), (B, 2), (A, 3), (B, 3), (A, 4)]) {
        cluster.transact(client, id, &insert(n));
    }
    let select = r#"["d",{"op":"select","table":"t","where":[],"columns":["n"]}]"#;
    cluster.transact(B, 9, select);
    cluster.transact(B, 9, select);
    let mut lines = cluster.written();
    let twice = lines.extract_if(.., |line| line.contains("duplicate request ID"));
    assert_eq!(twice.count(), 1);
    let good = |line: &String| line.contains(r#""result":[{"uuid":"#);
    let of = |client: &str| {
        lines
            .iter()
            .filter(|line| line.starts_with(client))
            .collect()
    };
    let (a, b): (Vec<&String>, Vec<&String>) = (of("1 "), of("2 "));
    assert!(a.len() == 3 && a.iter().all(|line| good(line)), "{a:?}");
    assert!(b.len() == 3 && good(b[0]), "{b:?}");
    assert!(b[1].contains("constraint violation"), "{b:?}");
    assert_eq!(b[2].matches(r#"{"n":"#).count(), 4, "{b:?}");
}

#[test]
fn many_transactions_at_once_leave_what_they_leave_one_by_one() {
    let mut cluster = Clustered::new();
    let mut model = BTreeSet::new();
    let mut random = 0x9e37_79b9_u64;
    for round in 0..40 {
        let mut expected = Vec::new();
        for id in 0..8 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let n = i64::from((random >> 33) as u8 % 16);
            if random >> 63 == 0 {
                cluster.transact(A, id, &insert(n));
                expected.push(if model.insert(n) {
                    "uuid"
                } else {
                    "constraint violation"
                });
            } else {
                let delete = r#"["d",{"op":"delete","table":"t","where":[["n","==",N]]}]"#;
                let delete = delete.replace('N', &n.to_string());
                cluster.transact(A, id, &delete);
                let count = usize::from(model.remove(&n));
                expected.push(["\"count\":0", "\"count\":1"][count]);
            }
        }
        let lines: Vec<String> = (0..8).flat_map(|_| cluster.written()).collect();
        assert_eq!(lines.len(), expected.len(), "{lines:?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.contains(expected), "{round}: {expected}: {lines:?}");
        }
    }
    let rows = cluster.select();
    assert_eq!(rows.matches(r#"{"n":"#).count(), model.len(), "{rows}");
}

#[test]
fn waiting_transactions_see_what_is_committed() {
    let mut cluster = Clustered::new();
    cluster.bench.request(A, "transact", WAIT);
    assert_eq!(cluster.bench.outputs(), [""; 0]);
    cluster.bench.request(B, "transact", &insert(7));
    let lines = cluster.written();
    assert_eq!(
        lines[0],
        r#"1 {"error":null,"id":"transact","result":[{},{}]}"#
    );
    // A client that has gone, or does not want to wait, changes nothing of what others see.
    cluster.bench.request(A, "transact", &insert(8));
    let message = Message::notification("cancel", vec!["transact".into()]);
    cluster
        .bench
        .server
        .handle_message(cluster.bench.clock.now(), A, message);
    cluster.bench.request(B, "transact", &insert(9));
    cluster.bench.server.disconnect(B);
    let lines = cluster.written();
    assert_eq!(
        lines,
        [r#"1 {"error":"canceled","id":"transact","result":null}"#]
    );
    cluster.bench.server.connect(B, ClientInfo::default());
    assert!(cluster.select().contains(r#"{"n":8}"#));
}

#[test]
fn a_conversion_is_in_the_log_and_ends_monitors() {
    let mut cluster = Clustered::new();
    cluster.bench.request(A, "set_db_change_aware", "[true]");
    let monitor = r#"["d","m",{"t":[{"columns":["n"]}]}]"#;
    cluster.bench.request(A, "monitor_cond", monitor);
    cluster.bench.request(B, "transact", &insert(3));
    cluster.written();
    let schema = SCHEMA.replace("1.0.0", "1.1.0").replace(
        r#""n":{"type":"integer"}"#,
        r#""n":{"type":"integer"},"s":{"type":"string"}"#,
    );
    let ephemeral = schema.replace(r#""s":{"#, r#""s":{"ephemeral":true,"#);
    cluster
        .bench
        .request(A, "convert", &format!(r#"["d",{ephemeral}]"#));
    let lines = cluster.written();
    assert!(
        lines[0].contains("do not support ephemeral columns"),
        "{lines:?}"
    );
    cluster
        .bench
        .request(A, "convert", &format!(r#"["d",{schema}]"#));
    let lines = cluster.written();
    let canceled = r#"1 {"id":null,"method":"monitor_canceled","params":["m"]}"#;
    assert!(lines.contains(&canceled.to_owned()), "{lines:?}");
    let reply = r#"1 {"error":null,"id":"convert","result":{}}"#;
    assert!(lines.contains(&reply.to_owned()), "{lines:?}");
    assert!(lines.contains(&"2 disconnect".to_owned()), "{lines:?}");
    drop(std::mem::replace(&mut cluster.bench, Bench::new(None)));
    cluster.bench = Clustered::open(&cluster.folder);
    let select = r#"["d",{"op":"select","table":"t","where":[],"columns":["n","s"]}]"#;
    cluster.bench.request(B, "transact", select);
    let lines = cluster.bench.outputs();
    assert!(lines[0].contains(r#"{"n":3,"s":""}"#), "{lines:?}");
}

#[test]
fn a_log_is_compacted_and_the_rest_is_kept() {
    let mut cluster = Clustered::new();
    for n in 0..50 {
        cluster.bench.request(A, "transact", &insert(n));
        cluster.written();
    }
    let length = |cluster: &Clustered| {
        std::fs::metadata(cluster.folder.file("db")).map_or(0, |file| file.len())
    };
    let before = length(&cluster);
    let now = cluster.bench.clock.now();
    // While the snapshot is made something else is committed.
    assert_eq!(cluster.bench.server.compact(now, Some("d")), Ok(()));
    cluster.bench.request(A, "transact", &insert(50));
    cluster.written();
    assert!(length(&cluster) < before);
    let twice = cluster.bench.server.compact(now, Some("d"));
    assert_eq!(twice, Ok(()));
    drop(std::mem::replace(&mut cluster.bench, Bench::new(None)));
    cluster.bench = Clustered::open(&cluster.folder);
    assert_eq!(cluster.select().matches(r#"{"n":"#).count(), 51);
}
