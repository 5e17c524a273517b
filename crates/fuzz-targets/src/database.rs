//! A database file that somebody else wrote, and what clients ask of a database.

use std::sync::Arc;

use base::WallTime;
use db_engine::log_file::{LogReader, frame};
use db_engine::monitor::{Monitors, Spec, Version};
use db_engine::{Context, Database, Loader, Outcome, Told, transaction_record};
use db_model::{DatabaseSchema, UuidSource};
use json::Json;

/// Opens a file and replays its records up to the first damaged one.  What is no file is a
/// schema in its first line and transactions and monitors in those that follow.
///
/// # Panics
/// When the reader claims more good bytes than there are, when a transaction's record does not
/// lead to what the transaction did, or when an update that is refused changes something.
pub fn database(input: &[u8]) {
    if input.starts_with(b"OVSDB ") {
        file(input);
    } else {
        clients(input);
    }
}

fn file(file: &[u8]) {
    let mut reader = LogReader::new("fuzz", file);
    let Ok(Some(schema)) = reader.next_record() else {
        return;
    };
    let Ok(schema) = DatabaseSchema::from_json(&schema) else {
        return;
    };
    let mut loader = Loader::new(Arc::new(schema), UuidSource::new([7; 32]));
    while let Ok(Some(record)) = reader.next_record() {
        // A record that does not fit is refused; those before it stay.
        let _ = loader.replay(&record);
    }
    assert!(reader.good_end() <= file.len() as u64);
    let _ = loader.finish();
}

/// Lines that are arrays are a transaction's parameters; objects are what a client wants
/// to watch, and what another server tells of its database.
fn clients(input: &[u8]) {
    let mut lines = input.split(|b| *b == b'\n');
    let Some(schema) = lines.next().and_then(|line| json::parse(line).ok()) else {
        return;
    };
    let Ok(schema) = DatabaseSchema::from_json(&schema) else {
        return;
    };
    let schema = Arc::new(schema);
    let mut db = Database::new(Arc::clone(&schema), UuidSource::new([7; 32]));
    let mut twin = Loader::new(Arc::clone(&schema), UuidSource::new([8; 32]));
    let mut copy = Database::new(Arc::clone(&schema), UuidSource::new([9; 32]));
    let mut monitors = Monitors::new();
    let mut ids = Vec::new();
    for line in lines {
        match json::parse(line) {
            Ok(params @ Json::Array(_)) => {
                transact(&mut db, &mut twin, &mut monitors, &params);
                for id in &ids {
                    let _ = monitors.flush(&db, *id);
                }
            }
            Ok(request) => {
                follow(&mut copy, &request);
                let all = [Version::V1, Version::V2, Version::V3];
                for version in all {
                    if let Ok(spec) = Spec::from_json(version, &request, &schema) {
                        ids.push(monitors.add(&db, spec, None).monitor);
                    }
                }
            }
            Err(_) => return,
        }
    }
    let twin = twin.finish().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(whole(&twin), whole(&db));
}

/// Takes an update in every way; one that does not fit changes nothing.
fn follow(copy: &mut Database, updates: &Json) {
    let every = |_: &str| true;
    for (differences, anew) in [(true, true), (true, false), (false, true), (false, false)] {
        let before = whole(copy);
        let told = Told {
            updates,
            differences,
            whole: if anew { Some(&every) } else { None },
        };
        if copy.follow(&told).is_err() {
            assert_eq!(
                before,
                whole(copy),
                "what does not fit left something behind"
            );
        }
    }
}

fn transact(db: &mut Database, twin: &mut Loader, monitors: &mut Monitors, params: &Json) {
    let before = whole(db);
    let context = Context::local(&|lock| lock == "mine");
    let Outcome::Done(_, Some(committed)) = db.execute(params, &context) else {
        assert_eq!(before, whole(db), "what failed left something behind");
        return;
    };
    let comment = &committed.comment;
    let record = transaction_record(db.schema(), &committed.changes, WallTime(1), comment, true);
    if let Some(record) = record {
        let framed = frame(&record);
        let mut reader = LogReader::new("fuzz", &framed[..]);
        let read = reader
            .next_record()
            .map(|record| record.map(|r| twin.replay(&r)));
        assert!(matches!(read, Ok(Some(Ok(_)))), "{read:?} of {record}");
    }
    monitors.committed(committed.id, &committed.changes);
}

/// All rows with what a file keeps of them, in an order that depends on nothing else.
fn whole(db: &Database) -> Vec<String> {
    let mut rows = Vec::new();
    for (at, table) in db.schema().tables.iter().enumerate() {
        for row in db.table(at).iter() {
            let mut text = format!("{} {}", table.name, row.uuid());
            for (column, schema) in table.own_columns().filter(|(_, c)| c.persistent) {
                text.push(' ');
                row.get(column).write_json(&schema.column_type, &mut text);
            }
            rows.push(text);
        }
    }
    rows.sort();
    rows
}
