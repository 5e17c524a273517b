//! Files that are written anew while transactions go on.

use super::*;
use db_engine::Loader;
use db_engine::disk::{SimDisk, SimFaults};
use db_engine::log_file::{LogReader, frame};
use db_engine::writer::{Report, Ticket, Writer};

const SCHEMA: &str = r#"{"name":"d","tables":{"t":{"columns":{"n":{"type":"integer"}},"indexes":[["n"]],"isRoot":true}}}"#;

/// Reads a log, which must be whole: the numbers in the table, and the number of records.
fn reload(contents: &[u8]) -> (Vec<i64>, usize) {
    let mut reader = LogReader::new("db", contents);
    let schema = reader.next_record().expect("schema").expect("schema");
    let schema = Arc::new(DatabaseSchema::from_json(&schema).expect("schema"));
    let mut loader = Loader::new(schema, UuidSource::new([1; 32]));
    let mut records = 0;
    while let Some(json) = reader.next_record().expect("a whole record") {
        loader.replay(&json).expect("a good record");
        records += 1;
    }
    let db = loader.finish().expect("consistent");
    let rows = db.table(0).iter();
    let mut numbers: Vec<i64> = rows.filter_map(|row| row.get(2).as_integer()).collect();
    numbers.sort_unstable();
    (numbers, records)
}

struct Bench {
    disk: SimDisk,
    db: Database,
    writer: Writer,
    numbers: Vec<i64>,
    /// Whether a compaction that is over worked.
    outcome: Option<bool>,
}

impl Bench {
    fn new() -> Self {
        let schema = DatabaseSchema::from_text(SCHEMA).expect("valid");
        let disk = SimDisk::new(&frame(&schema.to_json().to_string()));
        Self {
            writer: Writer::start(Box::new(disk.clone()), || {}).expect("thread"),
            disk,
            db: database(SCHEMA),
            numbers: Vec::new(),
            outcome: None,
        }
    }

    fn run(&mut self, operation: &str, durable: bool) -> Ticket {
        let params = format!(r#"["d",{operation}]"#);
        let committed = execute(&mut self.db, &params).1.expect("committed");
        let record = record(&self.db, &committed).expect("record");
        self.writer.append(&record, durable)
    }

    fn insert(&mut self, n: i64, durable: bool) -> Ticket {
        self.numbers.push(n);
        let row = format!(r#"{{"op":"insert","table":"t","row":{{"n":{n}}}}}"#);
        self.run(&row, durable)
    }

    fn delete(&mut self, n: i64, durable: bool) {
        self.numbers.retain(|known| *known != n);
        let row = format!(r#"{{"op":"delete","table":"t","where":[["n","==",{n}]]}}"#);
        self.run(&row, durable);
    }

    fn compact(&mut self) {
        let snapshot = self.db.snapshot();
        self.writer
            .compact(snapshot, WallTime(5), "compacting".to_owned());
    }

    /// Waits until the compaction is over; whether it worked.
    fn compacted(&mut self) -> bool {
        loop {
            if let Some(outcome) = self.outcome.take() {
                return outcome;
            }
            let report = self.writer.wait_for_any().expect("a report");
            self.note(report);
        }
    }

    fn note(&mut self, report: Report) {
        if report.replaced && report.ticket == Ticket(0) {
            self.outcome = Some(report.result.is_ok());
        } else {
            assert!(report.result.is_ok());
        }
    }

    fn drain(&mut self) {
        while let Some(report) = self.writer.wait() {
            self.note(report);
        }
    }
}

#[test]
fn what_comes_meanwhile_is_in_the_new_file_once() {
    for round in 0..20 {
        let mut bench = Bench::new();
        for n in 0..200 {
            bench.insert(n, n % 50 == 0);
        }
        bench.compact();
        for n in 200..400 {
            bench.insert(n, n % (round + 3) == 0);
            bench.delete(n - 150, n % 7 == 0);
            if round % 2 == 0 {
                bench.drain();
            }
        }
        assert!(bench.compacted());
        bench.drain();
        bench.insert(1000, false);
        let (numbers, records) = reload(&bench.disk.contents());
        assert_eq!(numbers, bench.numbers);
        assert!((1..=402).contains(&records), "{records}");
        // What was durable is in the file that took the old one's place.
        bench.insert(1001, true);
        bench.drain();
        assert_eq!(
            reload(&bench.disk.contents_after_power_loss(0)).0,
            bench.numbers
        );
    }
}

#[test]
fn one_that_fails_leaves_the_old_file_in_use() {
    let mut bench = Bench::new();
    for n in 0..50 {
        bench.insert(n, false);
    }
    for faults in [
        SimFaults {
            replace: true,
            ..SimFaults::default()
        },
        SimFaults {
            sync: true,
            ..SimFaults::default()
        },
    ] {
        bench.disk.set_faults(faults);
        bench.compact();
        assert!(!bench.compacted());
        bench.disk.set_faults(SimFaults::default());
        let n = bench.numbers.len() as i64;
        bench.insert(n, true);
        bench.drain();
        assert_eq!(reload(&bench.disk.contents()).0, bench.numbers);
    }
    bench.compact();
    assert!(bench.compacted());
    assert_eq!(reload(&bench.disk.contents()), (bench.numbers.clone(), 1));
}

#[test]
fn the_last_of_several_wins_and_a_replacement_overtakes_it() {
    for replace in [false, true] {
        let mut bench = Bench::new();
        for n in 0..100 {
            bench.insert(n, false);
            if n % 20 == 0 {
                bench.compact();
            }
        }
        if replace {
            let snapshot = bench.db.snapshot();
            bench
                .writer
                .replace(snapshot, WallTime(6), "replaced".to_owned());
            bench.drain();
        }
        for n in 100..120 {
            bench.insert(n, false);
        }
        bench.drain();
        drop(bench.writer);
        assert_eq!(reload(&bench.disk.contents()).0, bench.numbers);
    }
}

#[test]
fn a_writer_that_ends_gives_up_its_compaction() {
    for _ in 0..10 {
        let mut bench = Bench::new();
        for n in 0..100 {
            bench.insert(n, false);
        }
        bench.compact();
        bench.insert(100, true);
        drop(bench.writer);
        assert_eq!(reload(&bench.disk.contents()).0, bench.numbers);
    }
}
