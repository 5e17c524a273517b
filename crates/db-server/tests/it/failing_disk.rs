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
    /// The rows that the other client knows by its monitor, while it has one.
    replica: Option<BTreeMap<String, i64>>,
    /// All numbers that it ever knew of.
    seen: BTreeSet<i64>,
    /// How often it was disconnected.
    disconnected: u32,
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
            replica: None,
            seen: BTreeSet::new(),
            disconnected: 0,
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
            if client == B {
                self.watch(output);
                continue;
            }
            let Output::Send(Message::Reply { id, result }) = output else {
                // A refused conversion.
                let refused = matches!(output, Output::Send(Message::Error { .. }));
                assert!(refused, "{output:?}");
                continue;
            };
            match id.as_integer() {
                Some(-1) => self.converted = true,
                Some(n) if n > 0 => {
                    let text = result.to_string();
                    assert!(text.contains("uuid"), "{text}");
                    let is_there = !text.contains("I/O error");
                    assert_eq!(self.told.insert(n, is_there), None, "{n} was told twice");
                }
                _ => {}
            }
        }
    }

    /// Takes note of what the client that watches is told.
    fn watch(&mut self, output: Output) {
        let updates = match output {
            Output::Send(Message::Reply { result, .. }) => {
                self.replica = Some(BTreeMap::new());
                result
            }
            Output::Send(Message::Notification { params, .. }) => {
                params.as_array().expect("params")[1].clone()
            }
            Output::Disconnect => {
                self.replica = None;
                self.disconnected += 1;
                return;
            }
            output => panic!("{output:?}"),
        };
        let updates = json::parse(updates.to_string().as_bytes()).expect("valid");
        let replica = self.replica.as_mut().expect("a monitor");
        let rows = updates.get("t").and_then(Json::as_object);
        for (uuid, change) in rows.into_iter().flat_map(|rows| rows.iter()) {
            let n = |which| change.get(which)?.get("n")?.as_integer();
            if let Some(n) = n("new") {
                self.seen.insert(n);
                replica.insert(uuid.to_string(), n);
            } else {
                replica.remove(&uuid.to_string()).expect("a row to delete");
            }
        }
    }

    /// Lets the other client begin to watch, with a new connection.
    fn begin_to_watch(&mut self) {
        self.replica = None;
        self.bench.server.disconnect(B);
        self.bench.server.connect(B, ClientInfo::default());
        self.bench.request(B, "monitor", r#"["d","m",{"t":[{}]}]"#);
    }

    fn settle(&mut self) {
        self.bench.server.drain_writers();
        self.listen();
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(13) {
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
                self.begin_to_watch();
            }
            7 | 8 => self.listen(),
            9 => {
                let backlogged = dice.one_in(2);
                self.bench.server.set_backlogged(B, backlogged);
            }
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
        self.bench.server.set_backlogged(B, false);
        self.listen();
        let there: BTreeSet<i64> = self.told.iter().filter(|t| *t.1).map(|t| *t.0).collect();
        if let Some(replica) = &self.replica {
            let known: BTreeSet<i64> = replica.values().copied().collect();
            assert_eq!(known, there, "what the other client knows");
        }
        assert!(self.seen.is_subset(&there), "nobody saw what is not there");
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

#[test]
fn who_watches_stays_connected_while_the_disk_is_full() {
    let mut story = Story::new();
    story.begin_to_watch();
    story.insert(true);
    story.settle();
    // What is cut off is all that is done to the file.
    story.disk.set_faults(SimFaults {
        replace: true,
        ..SimFaults::default()
    });
    story.disk.set_room(Some(70));
    let before = story.disk.contents();
    for together in 1..20 {
        let numbers: Vec<i64> = (0..together).map(|_| story.insert(true)).collect();
        story.settle();
        for n in numbers {
            assert_eq!(story.told.get(&n), Some(&false));
        }
        assert_eq!(story.disk.contents(), before);
    }
    story.disk.set_room(None);
    story.end();
    assert_eq!(story.disconnected, 0);
    assert_eq!(story.replica.map(|rows| rows.len()), Some(2));
}
