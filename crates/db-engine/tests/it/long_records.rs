//! Records that are so long that their rows are taken while they are read, against the same
//! records read whole.

use super::*;
use db_engine::Loader;
use db_engine::log_file::{LogReader, frame};

const SCHEMA: &str = r#"{"name":"d","tables":{
    "s":{"columns":{"n":{"type":"integer"}},"isRoot":true},
    "t":{"columns":{"n":{"type":"integer"},"text":{"type":"string"},
        "set":{"type":{"key":"integer","min":0,"max":"unlimited"}}},"isRoot":true}}}"#;

fn uuid(n: usize) -> String {
    db_model::Uuid::from_u128(n as u128 + 1).to_string()
}

/// A record of rows by number; `members` are more of its members, which come last.
fn text(rows: &[(usize, String)], members: &str) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|(n, row)| format!("\"{}\":{row}", uuid(*n)))
        .collect();
    let small = format!("\"s\":{{\"{}\":{{\"n\":7}}}}", uuid(9));
    format!("{{{small},\"t\":{{{}}}{members}}}", rows.join(","))
}

fn row(n: usize, set: &str) -> String {
    let text = "x".repeat(100);
    format!("{{\"n\":{n},\"text\":\"{text}\",\"set\":[\"set\",[{set}]]}}")
}

/// All rows as text, sorted, without versions.
fn dump(db: &Database) -> Vec<String> {
    let tables = (0..2).map(|table| db.table(table));
    let mut rows: Vec<String> = tables
        .flat_map(|table| table.iter())
        .map(|row| format!("{} {:?}", row.uuid(), &row.fields()[2..]))
        .collect();
    rows.sort();
    rows
}

/// What an error says, without the JSON that it is about: of the record, what was taken early is
/// missing there.
fn tail(error: &str) -> &str {
    error.rsplit("}\": ").next().unwrap_or(error)
}

fn check(records: &[String]) -> (usize, usize) {
    let schema = DatabaseSchema::from_text(SCHEMA).expect("valid");
    let file: Vec<u8> = records.iter().flat_map(|text| frame(text)).collect();
    let loader = || Loader::new(Arc::new(schema.clone()), UuidSource::new([3; 32]));
    let (mut fast, mut slow) = (loader(), loader());
    let mut reader = LogReader::new("db", file.as_slice());
    let mut bad = 0;
    for text in records {
        let whole = slow.replay(&parse(text));
        let early = fast.replay_next(&mut reader);
        match (whole, early) {
            (Ok(whole), Ok(early)) => assert_eq!(Some(whole), early),
            (Err(whole), Err(early)) => {
                assert_eq!(tail(&whole.to_string()), tail(&early.to_string()));
                bad += 1;
                break;
            }
            (whole, early) => panic!("{} but {}", whole.is_ok(), early.is_ok()),
        }
    }
    let (fast, slow) = (fast.finish().expect("good"), slow.finish().expect("good"));
    assert!(dump(&fast) == dump(&slow), "the same rows");
    (dump(&fast).len(), bad)
}

#[test]
fn rows_that_are_taken_early_come_to_the_same() {
    let first: Vec<_> = (0..200).map(|n| (n, row(n, "1,2"))).collect();
    let many: Vec<_> = (200..6000).map(|n| (n, row(n, "1,2"))).collect();
    let mut mixed: Vec<_> = (100..6000).map(|n| (n, row(n, "2,3"))).collect();
    for n in (0..50).step_by(7) {
        mixed.push((n, "null".to_owned()));
    }
    mixed.sort();
    for difference in [
        "",
        ",\"z\":{}",
        ",\"_is_diff\":true",
        ",\"_date\":5,\"_comment\":\"c\"",
    ] {
        let records = [text(&first, ""), text(&mixed, difference)];
        assert!(records[1].len() > 900_000);
        let (rows, bad) = check(&records);
        if difference.contains("\"z\"") {
            assert_eq!((rows, bad), (201, 1));
        } else {
            assert_eq!((rows, bad), (5993, 0));
        }
    }
    // What is wrong is wrong wherever it stands, and nothing of the record is kept.
    for (at, wrong) in [
        (10, "{\"n\":\"x\"}"),
        (5700, "{\"m\":1}"),
        (3000, "7"),
        (4000, "null"),
    ] {
        let mut rows = many.clone();
        rows[at].1 = wrong.to_owned();
        let records = [text(&first, ""), text(&rows, "")];
        assert_eq!(check(&records), (201, 1), "{wrong}");
    }
}
