//! Searches by columns without a declared index: what the engine finds against what looking at
//! every row finds.

use super::*;
use db_engine::Transaction;
use db_model::{Condition, Row, Uuid};

const SCHEMA: &str = r#"{"name":"d","tables":{"t":{"columns":{
    "name":{"type":"string"},
    "host":{"type":"string"},
    "kind":{"type":"integer"},
    "tags":{"type":{"key":"integer","min":0,"max":"unlimited"}}},
    "indexes":[["name"]],"isRoot":true}}}"#;

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

fn condition(db: &Database, text: &str) -> Condition {
    let table = &db.schema().tables[0];
    Condition::from_json(&parse(text), table, None).expect("valid condition")
}

/// Checks one search within a transaction against its slow twin.
fn check(transaction: &mut Transaction<'_>, condition: &Condition) {
    let mut found = transaction.matching(0, condition);
    found.sort_unstable();
    let all = transaction.all(0);
    let mut expected: Vec<Uuid> = all
        .filter(|row| condition.matches_all(row))
        .map(|row| row.uuid())
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "{condition:?}");
}

fn random_condition(db: &Database, random: &mut Random) -> Condition {
    let (host, kind) = (random.below(400), random.below(4));
    let text = match random.below(5) {
        0 => format!(r#"[["host","==","h{host}"],["kind","==",{kind}]]"#),
        1 => format!(r#"[["kind","==",{kind}],["host","==","h{host}"]]"#),
        2 => format!(r#"[["tags","==",["set",[{kind},{}]]]]"#, host + 4),
        3 => format!(r#"[["kind","<",{kind}]]"#),
        _ => format!(r#"[["host","==","h{host}"]]"#),
    };
    condition(db, &text)
}

/// Inserts, changes or deletes a row or a few.
fn change(transaction: &mut Transaction<'_>, random: &mut Random, count: &mut u64) {
    let schema = transaction.schema(0);
    let column = |name| schema.column_index(name).expect("a column");
    let host = db_model::Atom::string(format!("h{}", random.below(400)));
    let kind = db_model::Atom::Integer(random.below(4) as i64);
    let rows: Vec<Uuid> = transaction.all(0).map(|row| row.uuid()).collect();
    let any = rows.get(random.below(rows.len().max(1) as u64) as usize);
    match (random.below(4), any) {
        (0, Some(uuid)) => transaction.delete(0, *uuid),
        (1, Some(uuid)) => {
            let row = transaction.modify(0, *uuid).expect("the row");
            row.set(column("host"), host.into());
        }
        _ => {
            *count += 1;
            let uuid = Uuid::from_u128(u128::from(*count));
            let mut row = Row::new(&schema, uuid);
            let name = db_model::Atom::string(format!("n{count}"));
            row.set(column("name"), name.into());
            row.set(column("host"), host.into());
            row.set(column("kind"), kind.clone().into());
            let tags = vec![kind, db_model::Atom::Integer(*count as i64 % 400)];
            row.set(column("tags"), db_model::Datum::from_set_lossy(tags));
            transaction.insert(0, row);
        }
    }
}

#[test]
fn indexes_that_searches_ask_for_agree_with_looking_at_all_rows() {
    for seed in 1..=4 {
        let mut db = database(SCHEMA);
        let mut random = Random(seed * 0x9e37_79b9);
        let mut count = 0;
        let mut fill = Transaction::new(&mut db);
        for _ in 0..1200 {
            change(&mut fill, &mut random, &mut count);
        }
        fill.commit().expect("committed");
        for _ in 0..300 {
            let conditions: Vec<Condition> =
                (0..3).map(|_| random_condition(&db, &mut random)).collect();
            let mut transaction = Transaction::new(&mut db);
            for condition in &conditions {
                for _ in 0..random.below(3) {
                    change(&mut transaction, &mut random, &mut count);
                }
                check(&mut transaction, condition);
            }
            // What is taken back leaves no trace in an index, though it was made meanwhile.
            if random.below(3) == 0 {
                transaction.abort();
            } else {
                transaction.commit().expect("committed");
            }
        }
    }
}

#[test]
fn an_index_is_made_kept_and_dropped() {
    let mut db = database(SCHEMA);
    let rows: Vec<String> = (0..1000)
        .map(|n| format!(r#"{{"op":"insert","table":"t","row":{{"name":"n{n}","host":"h{n}"}}}}"#))
        .collect();
    execute(&mut db, &format!("[\"d\",{}]", rows.join(",")));
    let search = |db: &mut Database, n: usize| {
        let text = format!(
            r#"["d",{{"op":"update","table":"t","where":[["host","==","h{n}"]],"row":{{"kind":{n}}}}}]"#
        );
        let (reply, _) = execute(db, &text);
        assert_eq!(reply.to_string(), r#"[{"count":1}]"#);
    };
    for n in 0..3 {
        search(&mut db, n);
    }
    assert_eq!(db.table(0).searched_columns(), [column(&db, "host")]);
    search(&mut db, 500);
    // A column that changes all the time and is no longer searched for is not worth it.
    for n in 0..6 {
        let text =
            format!(r#"["d",{{"op":"update","table":"t","where":[],"row":{{"host":"x{n}"}}}}]"#);
        execute(&mut db, &text);
    }
    assert!(db.table(0).searched_columns().is_empty());
}

fn column(db: &Database, name: &str) -> usize {
    db.schema().tables[0].column_index(name).expect("a column")
}
