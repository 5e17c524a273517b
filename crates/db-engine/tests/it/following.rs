//! Taking over what another server tells: a copy is what its original is, however it is told.

use db_engine::Told;
use db_engine::monitor::{Monitors, Spec, Version};

use crate::*;

const SCHEMA: &str = r#"{"name":"d","version":"1.0.0","tables":{
    "a":{"isRoot":true,"columns":{"n":{"type":"integer"},"set":{"type":{"key":"integer","min":0,"max":"unlimited"}},
        "map":{"type":{"key":"string","value":"integer","min":0,"max":"unlimited"}},
        "kids":{"type":{"key":{"type":"uuid","refTable":"kid"},"min":0,"max":"unlimited"}}},"indexes":[["n"]]},
    "kid":{"columns":{"s":{"type":{"key":"string","min":0}},
        "friend":{"type":{"key":{"type":"uuid","refTable":"a","refType":"weak"},"min":0}}}}}}"#;

/// All rows with their versions.
fn whole(db: &Database) -> Vec<String> {
    let mut rows = Vec::new();
    for (at, table) in db.schema().tables.iter().enumerate() {
        for row in db.table(at).iter() {
            let fields = row.fields().iter().map(|datum| datum.to_json().to_string());
            rows.push(format!(
                "{} {}",
                table.name,
                fields.collect::<Vec<_>>().join(" ")
            ));
        }
    }
    rows.sort();
    rows
}

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
}

fn transaction(dice: &mut Dice) -> String {
    let n = dice.below(12);
    match dice.below(9) {
        0..3 => format!(
            r#"["d",{{"op":"insert","uuid-name":"k","table":"kid","row":{{"s":"{n}"}}}},{{"op":"insert","table":"a","row":{{"n":{n},"set":["set",[{n},100]],"kids":["named-uuid","k"]}}}}]"#
        ),
        3 => format!(r#"["d",{{"op":"delete","table":"a","where":[["n","==",{n}]]}}]"#),
        4 => format!(
            r#"["d",{{"op":"mutate","table":"a","where":[["n","<",{n}]],"mutations":[["set","insert",{}],["set","delete",100],["map","insert",["map",[["k{n}",{n}]]]]]}}]"#,
            n + 1
        ),
        5 => format!(
            r#"["d",{{"op":"update","table":"a","where":[["n","==",{n}]],"row":{{"map":["map",[["k1",7]]],"kids":["set",[]]}}}}]"#
        ),
        6 => format!(
            r#"["d",{{"op":"insert","uuid-name":"x","table":"a","row":{{"n":{}}}}},{{"op":"update","table":"kid","where":[],"row":{{"friend":["named-uuid","x"]}}}}]"#,
            n + 20
        ),
        7 => format!(
            r#"["d",{{"op":"delete","table":"a","where":[["n",">",{}]]}}]"#,
            n + 18
        ),
        _ => format!(
            r#"["d",{{"op":"update","table":"kid","where":[],"row":{{"s":["set",[]]}}}},{{"op":"mutate","table":"a","where":[["n",">",{n}]],"mutations":[["n","+=",1]]}}]"#
        ),
    }
}

#[test]
fn a_copy_is_what_its_original_is() {
    for seed in 0..testkit::cases(20) {
        let version = [Version::V1, Version::V2, Version::V3][seed as usize % 3];
        let mut dice = Dice(seed.into());
        let mut original = database(SCHEMA);
        let mut copy = database(SCHEMA);
        let mut monitors = Monitors::new();
        let all = parse(r#"{"a":[{}],"kid":[{}]}"#);
        let mut monitor = None;
        for _ in 0..60 {
            let (_, committed) = execute(&mut original, &transaction(&mut dice));
            if let Some(committed) = committed {
                monitors.committed(committed.id, &committed.changes);
            }
            // Now and then the connection is lost, and all is told again.
            let (updates, anew) = match monitor {
                Some(monitor) if dice.below(10) > 0 => {
                    let told = monitors.flush(&original, monitor);
                    (told.map(|(updates, _)| updates), false)
                }
                _ => {
                    let spec = Spec::from_json(version, &all, original.schema());
                    let initial = monitors.add(&original, spec.expect("valid"), None);
                    monitor = Some(initial.monitor);
                    (Some(initial.updates), true)
                }
            };
            let Some(updates) = updates else {
                continue;
            };
            let every = |_: &str| true;
            let told = Told {
                updates: &parse(&updates),
                differences: version != Version::V1,
                whole: if anew { Some(&every) } else { None },
            };
            copy.follow(&told).expect("fits");
            assert_eq!(whole(&copy), whole(&original), "seed {seed}");
            assert_eq!(copy.atoms(), original.atoms());
            assert_eq!(copy.weak_references(), original.weak_references());
        }
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    const A: &str = "00000000-0000-4000-8000-00000000000a";
    const B: &str = "00000000-0000-4000-8000-00000000000b";
    let mut copy = database(SCHEMA);
    let tell = |copy: &mut Database, text: &str| {
        let told = Told {
            updates: &parse(text),
            differences: true,
            whole: None,
        };
        copy.follow(&told).map_err(|error| error.to_string())
    };
    let insert = format!(r#"{{"a":{{"{A}":{{"insert":{{"n":1}}}}}}}}"#);
    tell(&mut copy, &insert).expect("fits");
    let before = whole(&copy);
    let row = |uuid: &str, update: &str| format!(r#"{{"a":{{"{uuid}":{update}}}}}"#);
    for (text, why) in [
        (
            insert.clone(),
            "consistency violation: cannot insert existing row",
        ),
        (
            row(B, r#"{"delete":null}"#),
            "consistency violation: cannot delete missing row",
        ),
        (
            row(B, r#"{"modify":{"n":3}}"#),
            "consistency violation: cannot modify missing row",
        ),
        (row(B, r#"{"insert":{"n":1}}"#), "constraint violation"),
        (row(B, r#"{"insert":{"x":1}}"#), "No column x in table a"),
        (row(B, r#"{"insert":{"n":"1"}}"#), "integer"),
        (row(B, r#"{"insert":3}"#), "<row> is not object"),
        (row(B, r#"{"odd":{}}"#), "is unknown"),
        (row(B, "{}"), "instead of expected 1"),
        (row(B, "3"), "<row-update> is not object"),
        (row("b", r#"{"delete":null}"#), "names must be UUIDs"),
        (r#"{"b":{}}"#.to_owned(), "unknown table b"),
        (r#"{"a":3}"#.to_owned(), "is not object"),
        ("[]".to_owned(), "<table-updates> is not object"),
        (
            format!(r#"{{"a":{{"{B}":{{"insert":{{"kids":["uuid","{A}"],"n":4}}}}}}}}"#),
            "referential integrity violation",
        ),
        // The first row would fit.
        (
            format!(r#"{{"a":{{"{A}":{{"modify":{{"n":7}}}},"{B}":{{"delete":null}}}}}}"#),
            "cannot delete missing row",
        ),
    ] {
        let error = tell(&mut copy, &text).expect_err(&text);
        assert!(error.contains(why), "{text}: {error}");
        assert_eq!(whole(&copy), before, "{text}");
    }
}

#[test]
fn tables_that_are_left_alone_keep_their_rows() {
    let mut copy = database(SCHEMA);
    let both = r#"["d",{"op":"insert","table":"a","row":{"n":1}},{"op":"insert","uuid-name":"k","table":"kid","row":{}},{"op":"insert","table":"a","row":{"n":2,"kids":["named-uuid","k"]}}]"#;
    execute(&mut copy, both);
    let before = whole(&copy);
    let nothing = |_: &str| false;
    let told = Told {
        updates: &parse("{}"),
        differences: true,
        whole: Some(&nothing),
    };
    assert!(copy.follow(&told).expect("fits").is_empty());
    assert_eq!(whole(&copy), before);
}
