//! What clients were told is what the file holds, whatever the disk refuses.

use std::collections::{BTreeMap, BTreeSet};

use db_engine::disk::SimFaults;
use db_engine::log_file::LogReader;
use db_engine::{Loader, log_file};

use super::*;

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

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What a file with a good end says: whether column `m` is there, and the rows' `n`.
fn reload(contents: &[u8]) -> (bool, BTreeSet<i64>) {
    let mut reader = LogReader::new("d", contents);
    let schema = reader.next_record().expect("good").expect("a schema");
    let schema = Arc::new(DatabaseSchema::from_json(&schema).expect("valid"));
    let mut loader = Loader::new(schema, UuidSource::new([1; 32]));
    while let Some(record) = reader.next_record().expect("a sound file") {
        loader.replay(&record).expect("a record that fits");
    }
    let db = loader.finish().expect("consistent");
    let table = db.schema().table("t").expect("a table");
    let column = |name| table.column_index(name);
    let n = column("n").expect("a column");
    let rows = db.table(0).iter();
    let numbers = rows.filter_map(|row| row.get(n).as_integer()).collect();
    (column("m").is_some(), numbers)
}

/// A server with a disk, and what its clients were told.
struct Story {
    bench: Bench,
    disk: SimDisk,
    asked: i64,
    /// Whether each number that was inserted is there, as far as the server has said.
    told: BTreeMap<i64, bool>,
    /// Whether the database was converted.
    converted: bool,
}

impl Story {
    fn new() -> Self {
        let schema = json::parse(SCHEMA.as_bytes()).expect("valid");
        let disk = SimDisk::new(&log_file::frame(&schema.to_string()));
        let mut bench = Bench::new(Some(Box::new(disk.clone())));
        // A conversion would disconnect it otherwise.
        bench.request(A, "set_db_change_aware", "[true]");
        assert_eq!(bench.outputs().len(), 1);
        Self {
            bench,
            disk,
            asked: 0,
            told: BTreeMap::new(),
            converted: false,
        }
    }

    fn ask(&mut self, method: &str, params: &str, id: i64) {
        let params = json::parse(params.as_bytes()).expect("valid");
        let message = Message::Request {
            method: method.into(),
            params,
            id: id.into(),
        };
        let now = self.bench.clock.now();
        self.bench.server.handle_message(now, A, message);
    }

    fn insert(&mut self, durable: bool) -> i64 {
        self.asked += 1;
        let n = self.asked;
        let params = format!(
            r#"["d",{{"op":"insert","table":"t","row":{{"n":{n}}}}},{{"op":"commit","durable":{durable}}}]"#
        );
        self.ask("transact", &params, n);
        n
    }

    fn convert(&mut self) {
        let schema = SCHEMA.replace(
            r#"{"type":"integer"}}"#,
            r#"{"type":"integer"},"m":{"type":"string"}}"#,
        );
        self.ask("convert", &format!(r#"["d",{schema}]"#), -1);
    }

    /// Takes note of what the server says.
    fn listen(&mut self) {
        self.bench.server.run(self.bench.clock.now());
        for (client, output) in self.bench.server.take_outputs() {
            let Output::Send(Message::Reply { id, result }) = output else {
                // A refused conversion; or the end of one who watches.
                let refused = matches!(output, Output::Send(Message::Error { .. }));
                assert!(client == B || refused, "{output:?}");
                continue;
            };
            match id.as_integer() {
                Some(-1) => self.converted = true,
                Some(n) if n > 0 => {
                    let text = result.to_string();
                    let is_there = text.contains("uuid");
                    assert!(is_there || text.contains("I/O error"), "{text}");
                    assert_eq!(self.told.insert(n, is_there), None, "{n} was told twice");
                }
                _ => {}
            }
        }
    }

    fn settle(&mut self) {
        self.bench.server.drain_writers();
        self.listen();
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(12) {
            0 => self.disk.set_faults(SimFaults {
                sync: dice.one_in(2),
                cut: dice.one_in(2),
                replace: dice.one_in(2),
            }),
            1 => self.disk.set_faults(SimFaults::default()),
            2 => {
                let room = (!dice.one_in(3)).then(|| dice.below(600) as usize);
                self.disk.set_room(room);
            }
            3 => {
                let now = self.bench.clock.now();
                self.bench.server.compact(now, None).expect("begins");
            }
            4 => self.settle(),
            5 if !self.converted => self.convert(),
            6 => {
                self.bench.server.disconnect(B);
                self.bench.server.connect(B, false);
                self.bench.request(B, "monitor", r#"["d","m",{"t":[{}]}]"#);
            }
            7 | 8 => self.listen(),
            _ => {
                self.insert(dice.one_in(2));
            }
        }
    }

    /// All is well again.
    fn end(&mut self) {
        self.disk.set_faults(SimFaults::default());
        self.disk.set_room(None);
        self.settle();
        let last = self.insert(true);
        self.settle();
        assert_eq!(self.told.get(&last), Some(&true), "it works again at once");
        assert_eq!(self.told.len() as i64, self.asked, "all were answered");
        let there: BTreeSet<i64> = self.told.iter().filter(|t| *t.1).map(|t| *t.0).collect();
        assert_eq!(reload(&self.disk.contents()), (self.converted, there));
    }
}

#[test]
fn the_file_holds_what_clients_were_told() {
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut story = Story::new();
        for _ in 0..40 {
            story.step(&mut dice);
        }
        story.end();
    }
}

#[test]
fn a_conversion_that_cannot_be_written_is_refused() {
    let mut story = Story::new();
    story.insert(true);
    story.settle();
    story.disk.set_room(Some(3));
    story.convert();
    let refused = story.bench.outputs();
    assert!(
        refused[0].contains(r#""details":"d: write failed","error":"I/O error""#),
        "{refused:?}"
    );
    story.end();
    story.convert();
    story.settle();
    assert!(story.converted);
    story.end();
}

#[test]
fn a_full_disk_that_has_room_again_is_used_at_once() {
    let mut story = Story::new();
    story.disk.set_room(Some(3));
    for _ in 0..3 {
        let n = story.insert(true);
        story.settle();
        assert_eq!(story.told.get(&n), Some(&false));
    }
    // Not even a compaction is needed.
    story.disk.set_faults(SimFaults {
        replace: true,
        ..SimFaults::default()
    });
    story.disk.set_room(None);
    let n = story.insert(true);
    story.settle();
    assert_eq!(story.told.get(&n), Some(&true));
    story.end();
}
