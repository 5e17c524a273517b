//! Conversions of large databases, beside transactions.

use std::collections::BTreeMap;

use db_engine::Loader;
use db_engine::disk::SimFaults;
use db_engine::log_file::{LogReader, frame};

use super::*;

const OLD: &str = r#"{"name":"d","version":"1.0.0","tables":{"t":{"columns":{
    "n":{"type":"integer"},"gone":{"type":"string"},
    "set":{"type":{"key":"integer","min":0,"max":"unlimited"}}},"indexes":[["n"]],"isRoot":true}}}"#;
const NEW: &str = r#"{"name":"d","version":"2.0.0","tables":{"t":{"columns":{
    "n":{"type":{"key":{"type":"integer","maxInteger":1000000}}},"more":{"type":"string"},
    "set":{"type":{"key":"integer","min":0,"max":"unlimited"}}},"indexes":[["n"]],"isRoot":true}}}"#;

/// Rows and elements in each, enough for a conversion that takes its time.
const ROWS: i64 = 60;
const ELEMENTS: i64 = 1000;

struct Story {
    bench: Bench,
    disk: SimDisk,
    /// The numbers that are there, with how many elements.
    rows: BTreeMap<i64, usize>,
}

impl Story {
    fn new() -> Self {
        let schema = json::parse(OLD.as_bytes()).expect("valid");
        let disk = SimDisk::new(&frame(&schema.to_string()));
        let mut bench = Bench::with_schema(OLD, Some(Box::new(disk.clone())));
        let elements: Vec<String> = (0..ELEMENTS).map(|n| n.to_string()).collect();
        let elements = elements.join(",");
        for n in 0..ROWS {
            let row = format!(r#"{{"n":{n},"set":["set",[{elements}]]}}"#);
            bench.request(
                A,
                "transact",
                &format!(r#"["d",{{"op":"insert","table":"t","row":{row}}}]"#),
            );
        }
        bench.server.drain_writers();
        bench.outputs();
        Self {
            bench,
            disk,
            rows: (0..ROWS).map(|n| (n, ELEMENTS as usize)).collect(),
        }
    }

    fn transact(&mut self, operation: &str) {
        self.bench
            .request(A, "transact", &format!(r#"["d",{operation}]"#));
    }

    fn change(&mut self, dice: u64) {
        let n = (dice / 5 % 90) as i64;
        match dice % 5 {
            0 | 1 => {
                self.transact(&format!(r#"{{"op":"insert","table":"t","row":{{"n":{n},"gone":"x"}}}}"#));
                self.rows.entry(n).or_insert(0);
            }
            2 => {
                self.transact(&format!(r#"{{"op":"delete","table":"t","where":[["n","==",{n}]]}}"#));
                self.rows.remove(&n);
            }
            3 => {
                self.transact(&format!(
                    r#"{{"op":"update","table":"t","where":[["n","==",{n}]],"row":{{"set":["set",[1001,1002,{n}]]}}}}"#
                ));
                if let Some(elements) = self.rows.get_mut(&n) {
                    *elements = 3;
                }
            }
            _ => self.transact(&format!(
                r#"{{"op":"mutate","table":"t","where":[["n","==",{n}]],"mutations":[["gone","delete","x"]]}}"#
            )),
        }
    }

    /// Until the conversion is answered, what the asker hears; `meanwhile` is done in between.
    fn answer(&mut self, mut meanwhile: impl FnMut(&mut Self)) -> String {
        for _ in 0..100_000 {
            let lines = self.bench.outputs();
            if let Some(line) = lines.iter().find(|l| l.contains(r#""id":"convert""#)) {
                return line.clone();
            }
            meanwhile(self);
            std::thread::yield_now();
        }
        panic!("no answer");
    }

    /// What clients see: by number, how many elements.
    fn seen(&mut self) -> BTreeMap<i64, usize> {
        self.bench.server.drain_writers();
        self.bench.outputs();
        self.transact(r#"{"op":"select","table":"t","where":[],"columns":["n","set"]}"#);
        let lines = self.bench.outputs();
        let reply = json::parse(&lines[0].as_bytes()[2..]).expect("valid");
        let results = reply
            .get("result")
            .and_then(Json::as_array)
            .expect("results");
        let rows = results[0]
            .get("rows")
            .and_then(Json::as_array)
            .expect("rows");
        rows.iter()
            .map(|row| {
                let n = row.get("n").and_then(Json::as_integer).expect("a number");
                let elements = match row.get("set").and_then(Json::as_array) {
                    Some([_, Json::Array(elements)]) => elements.len(),
                    _ => 1,
                };
                (n, elements)
            })
            .collect()
    }

    /// What the file says: the schema's version, and the same.
    fn stored(&mut self) -> (String, BTreeMap<i64, usize>) {
        self.bench.server.drain_writers();
        let contents = self.disk.contents();
        let mut reader = LogReader::new("d", &contents[..]);
        let schema = reader.next_record().expect("good").expect("a schema");
        let schema = Arc::new(DatabaseSchema::from_json(&schema).expect("valid"));
        let mut loader = Loader::new(Arc::clone(&schema), UuidSource::new([1; 32]));
        while let Some(record) = reader.next_record().expect("a sound file") {
            loader.replay(&record).expect("a record that fits");
        }
        let db = loader.finish().expect("consistent");
        let column = |name: &str| schema.tables[0].column_index(name).expect("a column");
        let (n, set) = (column("n"), column("set"));
        let rows = db.table(0).iter();
        let rows = rows.map(|row| (row.get(n).as_integer().unwrap_or(-1), row.get(set).len()));
        (schema.version.clone(), rows.collect())
    }
}

#[test]
fn transactions_go_on_while_a_database_is_converted() {
    for seed in 0..testkit::cases(3) {
        let mut story = Story::new();
        story.bench.request(B, "set_db_change_aware", "[true]");
        story
            .bench
            .request(B, "monitor", r#"["d","m",{"t":[{"columns":["n"]}]}]"#);
        story.bench.outputs();
        story.bench.request(A, "convert", &format!("[\"d\",{NEW}]"));
        story.bench.request(B, "convert", &format!("[\"d\",{NEW}]"));
        let lines = story.bench.outputs();
        assert_eq!(lines.len(), 1, "it takes its time: {lines:?}");
        assert!(lines[0].contains("is being converted already"));
        let mut dice = u64::from(seed) + 1;
        let reply = story.answer(|story| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            story.change(dice >> 33);
        });
        assert_eq!(reply, r#"1 {"error":null,"id":"convert","result":{}}"#);
        // Who asked did not cope with it, and connects again.
        story.bench.server.disconnect(A);
        story.bench.server.connect(A, ClientInfo::default());
        let rows = story.rows.clone();
        assert_eq!(story.seen(), rows, "seed {seed}");
        assert_eq!(story.stored(), ("2.0.0".to_owned(), rows.clone()));
        story.transact(r#"{"op":"insert","table":"t","row":{"n":95,"more":"y"}}"#);
        story.rows.insert(95, 0);
        let rows = story.rows.clone();
        assert_eq!(story.seen(), rows);
        assert_eq!(story.stored().1, rows);
    }
}

#[test]
fn what_a_disk_refuses_leaves_the_old_database() {
    let faults = SimFaults {
        replace: true,
        ..SimFaults::default()
    };
    let mut story = Story::new();
    story.disk.set_faults(faults);
    story.bench.request(A, "convert", &format!("[\"d\",{NEW}]"));
    let mut n = 1000;
    let reply = story.answer(|story| {
        n += 1;
        story.transact(&format!(
            r#"{{"op":"insert","table":"t","row":{{"n":{n}}}}}"#
        ));
        story.rows.insert(n, 0);
    });
    assert!(reply.contains(r#""error":"I/O error""#), "{reply}");
    story.disk.set_faults(SimFaults::default());
    let rows = story.rows.clone();
    assert_eq!(story.seen(), rows);
    assert_eq!(story.stored(), ("1.0.0".to_owned(), rows));
    // The next time it works.
    story.bench.request(A, "convert", &format!("[\"d\",{NEW}]"));
    assert!(story.answer(|_| {}).contains(r#""result":{}"#));
}

#[test]
fn what_does_not_fit_the_new_schema_ends_the_conversion() {
    // Some is there before, some comes meanwhile.
    for before in [true, false] {
        let mut story = Story::new();
        let misfit = r#"{"op":"insert","table":"t","row":{"n":2000000}}"#;
        story.rows.insert(2_000_000, 0);
        if before {
            story.transact(misfit);
        }
        story.bench.request(A, "convert", &format!("[\"d\",{NEW}]"));
        if !before {
            story.transact(misfit);
        }
        let reply = story.answer(|_| {});
        assert!(reply.contains("constraint violation"), "{reply}");
        let rows = story.rows.clone();
        assert_eq!(story.seen(), rows);
        assert_eq!(story.stored(), ("1.0.0".to_owned(), rows));
    }
}

#[test]
fn a_database_may_go_while_it_is_converted() {
    let mut story = Story::new();
    story.bench.request(A, "set_db_change_aware", "[true]");
    story.bench.request(A, "convert", &format!("[\"d\",{NEW}]"));
    story.bench.server.remove_database("d").expect("removed");
    let reply = story.answer(|_| {});
    assert!(
        reply.contains("database conversion canceled because removing d"),
        "{reply}"
    );
}
