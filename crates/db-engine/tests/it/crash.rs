//! The log survives kills and losses of power.

use super::*;
use db_engine::disk::SimDisk;
use db_engine::log_file::{LogReader, frame};
use db_engine::writer::Writer;
use db_engine::{Disk, Loader};

const SCHEMA: &str =
    r#"{"name":"d","tables":{"t":{"columns":{"n":{"type":"integer"}},"indexes":[["n"]]}}}"#;

/// Reads a log.  Returns the numbers in the table, and whether a torn tail was found.
fn reload(contents: &[u8]) -> (Vec<i64>, bool) {
    let mut reader = LogReader::new("db", contents);
    let schema = reader.next_record().expect("schema").expect("schema");
    let schema = Arc::new(DatabaseSchema::from_json(&schema).expect("schema"));
    let mut loader = Loader::new(schema, UuidSource::new([1; 32]));
    let mut torn = false;
    loop {
        match reader.next_record() {
            Ok(Some(json)) => {
                loader.replay(&json).expect("good record");
            }
            Ok(None) => break,
            Err(_) => torn = true,
        }
    }
    let db = loader.finish().expect("consistent");
    let mut numbers: Vec<i64> = db
        .table(0)
        .iter()
        .filter_map(|row| row.get(2).as_integer())
        .collect();
    numbers.sort_unstable();
    (numbers, torn)
}

fn header() -> Vec<u8> {
    frame(
        &DatabaseSchema::from_text(SCHEMA)
            .expect("valid")
            .to_json()
            .to_string(),
    )
}

fn insert(db: &mut Database, writer: &mut Writer, n: i64, durable: bool) {
    let params = format!(r#"["d",{{"op":"insert","table":"t","row":{{"n":{n}}}}}]"#);
    let committed = execute(db, &params).1.expect("committed");
    writer.append(&record(db, &committed).expect("record"), durable);
}

/// Waits until all is reported; says how many jobs succeeded.
fn drain(writer: &mut Writer) -> bool {
    let mut ok = true;
    while let Some(report) = writer.wait() {
        ok &= report.result.is_ok();
    }
    ok
}

#[test]
fn what_was_confirmed_survives_a_kill() {
    let disk = SimDisk::new(&header());
    let mut db = database(SCHEMA);
    let mut writer = Writer::start(Box::new(disk.clone()), || {}).expect("thread");
    for n in 0..50 {
        insert(&mut db, &mut writer, n, false);
        // Confirm every few, and look at the disk as a kill at that moment would leave it.
        if n % 7 == 0 {
            assert!(drain(&mut writer));
            let (numbers, torn) = reload(&disk.contents());
            assert_eq!((numbers, torn), ((0..=n).collect(), false));
        }
    }
}

#[test]
fn what_was_durable_survives_a_loss_of_power_wherever_the_tail_is_torn() {
    let disk = SimDisk::new(&header());
    let mut db = database(SCHEMA);
    let mut writer = Writer::start(Box::new(disk.clone()), || {}).expect("thread");
    for n in 0..5 {
        insert(&mut db, &mut writer, n, true);
    }
    assert!(drain(&mut writer));
    for n in 5..8 {
        insert(&mut db, &mut writer, n, false);
    }
    assert!(drain(&mut writer));
    let whole = disk.contents().len();
    let durable = disk.contents_after_power_loss(0).len();
    for kept in 0..=whole - durable {
        let (numbers, _) = reload(&disk.contents_after_power_loss(kept));
        assert!(numbers.len() >= 5, "{kept}");
        assert_eq!(numbers, (0..numbers.len() as i64).collect::<Vec<_>>());
    }
    assert_eq!(reload(&disk.contents()).0.len(), 8);
}

#[test]
fn a_full_disk_is_reported_and_leaves_the_log_readable() {
    let disk = SimDisk::new(&header());
    let mut db = database(SCHEMA);
    let mut writer = Writer::start(Box::new(disk.clone()), || {}).expect("thread");
    insert(&mut db, &mut writer, 0, false);
    assert!(drain(&mut writer));
    disk.set_room(Some(10));
    insert(&mut db, &mut writer, 1, false);
    assert!(!drain(&mut writer));
    assert_eq!(reload(&disk.contents()), (vec![0], false));
}

#[test]
fn compaction_keeps_the_rows() {
    let disk = SimDisk::new(&header());
    let mut db = database(SCHEMA);
    let mut writer = Writer::start(Box::new(disk.clone()), || {}).expect("thread");
    for n in 0..100 {
        insert(&mut db, &mut writer, n, false);
    }
    let (_, committed) = execute(
        &mut db,
        r#"["d",{"op":"delete","table":"t","where":[["n",">",2]]}]"#,
    );
    let text = record(&db, &committed.expect("committed")).expect("record");
    writer.append(&text, false);
    writer.replace(db.snapshot(), WallTime(5), "compacting".to_owned());
    insert(&mut db, &mut writer, 200, false);
    assert!(drain(&mut writer));
    assert_eq!(reload(&disk.contents()), (vec![0, 1, 2, 200], false));
    assert!(disk.len() < 1000);
}
