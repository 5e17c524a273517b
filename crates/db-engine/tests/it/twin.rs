//! Random transactions: the engine's incremental bookkeeping against a database that is
//! rebuilt from scratch, and taking back against never having done.

use super::*;
use db_engine::Loader;

const SCHEMA: &str = r#"{"name":"d","tables":{
    "root":{"columns":{"n":{"type":"integer"},
        "kids":{"type":{"key":{"type":"uuid","refTable":"kid"},"min":0,"max":"unlimited"}},
        "friend":{"type":{"key":{"type":"uuid","refTable":"kid","refType":"weak"},"min":0,"max":"unlimited"}}},
        "indexes":[["n"]],"isRoot":true},
    "kid":{"columns":{"n":{"type":"integer"},
        "next":{"type":{"key":{"type":"uuid","refTable":"kid"},"min":0}},
        "mark":{"type":{"key":"string","value":{"type":"uuid","refTable":"root","refType":"weak"},"min":0,"max":"unlimited"}}}}}}"#;

/// A small generator, so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// All rows as text, sorted, without versions.
fn dump(db: &Database) -> Vec<String> {
    let mut rows = Vec::new();
    for table in 0..db.schema().tables.len() {
        for row in db.table(table).iter() {
            let own = row.fields()[2..].iter().map(|d| d.to_json().to_string());
            rows.push(format!(
                "{table} {} {}",
                row.uuid(),
                own.collect::<Vec<_>>().join(" ")
            ));
        }
    }
    rows.sort();
    rows
}

fn any_uuid(db: &Database, table: usize, random: &mut Random) -> Option<String> {
    let mut uuids: Vec<_> = db.table(table).iter().map(|row| row.uuid()).collect();
    uuids.sort();
    let at = random.below(uuids.len().max(1) as u64) as usize;
    uuids.get(at).map(|u| format!("[\"uuid\",\"{u}\"]"))
}

fn operation(db: &Database, random: &mut Random) -> String {
    let n = random.below(12);
    let kid = any_uuid(db, 1, random).unwrap_or_else(|| "[\"named-uuid\",\"k\"]".to_owned());
    let root = any_uuid(db, 0, random).unwrap_or_else(|| "[\"named-uuid\",\"r\"]".to_owned());
    match random.below(9) {
        0 | 1 => format!(
            r#"{{"op":"insert","table":"kid","uuid-name":"k{n}","row":{{"n":{n},"mark":["map",[["a",{root}]]]}}}},
               {{"op":"insert","table":"root","row":{{"n":{n},"kids":["named-uuid","k{n}"],"friend":{kid}}}}}"#
        ),
        2 => format!(r#"{{"op":"delete","table":"root","where":[["n","==",{n}]]}}"#),
        3 => format!(r#"{{"op":"delete","table":"kid","where":[["n","==",{n}]]}}"#),
        4 => format!(
            r#"{{"op":"mutate","table":"root","where":[["n","<",{n}]],"mutations":[["kids","insert",{kid}],["friend","insert",{kid}]]}}"#
        ),
        5 => format!(
            r#"{{"op":"mutate","table":"root","where":[["n",">",{n}]],"mutations":[["kids","delete",{kid}]]}}"#
        ),
        6 => format!(
            r#"{{"op":"update","table":"kid","where":[["_uuid","==",{kid}]],"row":{{"next":{kid},"n":{n}}}}}"#
        ),
        7 => format!(r#"{{"op":"mutate","table":"root","where":[],"mutations":[["n","+=",{n}]]}}"#),
        _ => format!(
            r#"{{"op":"update","table":"kid","where":[["n","==",{n}]],"row":{{"next":{kid}}}}}"#
        ),
    }
}

#[test]
fn bookkeeping_agrees_with_a_rebuilt_database() {
    for life in 1..=testkit::cases(1) {
        live(Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(life.into())));
    }
}

/// The life of one database.
fn live(mut random: Random) {
    let mut db = database(SCHEMA);
    let mut loader = Loader::new(Arc::clone(db.schema()), UuidSource::new([2; 32]));
    // What follows by records, and what is made anew from all rows now and then.
    let (mut follower, mut late) = (database(SCHEMA), database(SCHEMA));
    let mut commits = 0;
    for step in 0..600 {
        let operations: Vec<String> = (0..=random.below(3))
            .map(|_| operation(&db, &mut random))
            .collect();
        let before = dump(&db);
        let params = format!("[\"d\",{}]", operations.join(","));
        let (reply, committed) = execute(&mut db, &params);
        match committed {
            None => assert_eq!(before, dump(&db), "step {step}: {reply}"),
            Some(committed) => {
                commits += 1;
                let after = dump(&db);
                // Taking back and redoing must lead to the same rows and bookkeeping.
                db.apply(&committed.changes.reversed());
                assert_eq!(before, dump(&db), "step {step}");
                db.apply(&committed.changes);
                assert_eq!(after, dump(&db), "step {step}");
                if let Some(text) = record(&db, &committed) {
                    loader.replay(&parse(&text)).expect("replays");
                    follower.replay(&parse(&text)).expect("replays");
                    assert_eq!(after, dump(&follower), "step {step}");
                }
                if random.below(20) == 0 {
                    let text = db_engine::snapshot_record(&db.snapshot(), WallTime(1), "");
                    let old = dump(&late);
                    let changes = late.replay_whole(&parse(&text)).expect("replays");
                    assert_eq!(after, dump(&late), "step {step}");
                    late.apply(&changes.reversed());
                    assert_eq!(old, dump(&late), "step {step}");
                    late.apply(&changes);
                    let again = late.replay_whole(&parse(&text)).expect("replays");
                    assert!(again.is_empty(), "step {step}");
                }
            }
        }
    }
    assert!(commits > 100, "{commits}");
    let mut rebuilt = loader.finish().expect("consistent");
    assert_eq!(dump(&db), dump(&rebuilt));
    let before = dump(&follower);
    let broken = r#"{"kid":{"00000000-0000-0000-0000-000000000001":{"n":1}},"no":{}}"#;
    assert!(follower.replay(&parse(broken)).is_err());
    assert_eq!(
        before,
        dump(&follower),
        "nothing is left of a record that fails"
    );
    // The rebuilt database has counted all references afresh: both must now accept and
    // refuse the same.
    for _ in 0..40 {
        let params = format!("[\"d\",{}]", operation(&db, &mut random));
        let accepted = execute(&mut db, &params).1.is_some();
        assert_eq!(
            accepted,
            execute(&mut rebuilt, &params).1.is_some(),
            "{params}"
        );
        if accepted {
            // New rows have UUIDs of their own in each database: start from equal ones.
            let mut loader = Loader::new(Arc::clone(db.schema()), UuidSource::new([3; 32]));
            let text = db_engine::snapshot_record(&db.snapshot(), WallTime(1), "");
            loader.replay(&parse(&text)).expect("replays");
            rebuilt = loader.finish().expect("consistent");
            assert_eq!(dump(&db), dump(&rebuilt));
        }
    }
}
