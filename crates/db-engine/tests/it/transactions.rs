//! Transactions and what they are answered.

use super::*;

const ORDINALS: &str = r#"{"name":"ordinals","version":"5.1.3","tables":{"ordinals":{
    "columns":{"number":{"type":"integer"},"name":{"type":"string"}},"indexes":[["number"]]}}}"#;

const CONSTRAINTS: &str = r#"{"name":"constraints","tables":{
    "a":{"columns":{"a":{"type":"integer"},
        "a2a":{"type":{"key":{"type":"uuid","refTable":"a"},"min":0,"max":"unlimited"}},
        "a2b":{"type":{"key":{"type":"uuid","refTable":"b"},"min":0,"max":"unlimited"}}}},
    "b":{"columns":{"b":{"type":"integer"},
        "b2a":{"type":{"key":{"type":"uuid","refTable":"a"},"min":0,"max":"unlimited"}},
        "b2b":{"type":{"key":{"type":"uuid","refTable":"b"},"min":0,"max":"unlimited"}}}},
    "constrained":{"columns":{"positive":{"type":{"key":{"type":"integer","minInteger":1}}}},"maxRows":1}}}"#;

const WEAK: &str = r#"{"name":"weak","tables":{
    "a":{"columns":{"a":{"type":"integer"},
        "a2a":{"type":{"key":{"type":"uuid","refTable":"a","refType":"weak"},"min":0,"max":"unlimited"}},
        "a2a1":{"type":{"key":{"type":"uuid","refTable":"a","refType":"weak"}}},
        "a2b":{"type":{"key":{"type":"uuid","refTable":"b","refType":"weak"}}}}},
    "b":{"columns":{"b":{"type":"integer"},
        "b2a":{"type":{"key":{"type":"uuid","refTable":"a","refType":"weak"},"min":0,"max":1}}}}}}"#;

const GC: &str = r#"{"name":"gc","tables":{
    "root":{"columns":{"a":{"type":{"key":{"type":"uuid","refTable":"a"},"min":0,"max":"unlimited"}}},"isRoot":true},
    "a":{"columns":{"a":{"type":"integer"},
        "a2a":{"type":{"key":{"type":"uuid","refTable":"a"},"min":0,"max":"unlimited"}},
        "wa2a":{"type":{"key":{"type":"uuid","refTable":"a","refType":"weak"},"min":0,"max":"unlimited"}}}}}}"#;

/// Executes transactions (of the database that the schema names) and compares the answers.
fn check(schema: &str, steps: &[(&str, &str)]) {
    let mut db = database(schema);
    let name = db.schema().name.clone();
    let mut filter = UuidFilter::default();
    for (operations, expected) in steps {
        let (reply, _) = execute(&mut db, &format!("[\"{name}\",{operations}]"));
        assert_eq!(&filter.apply(&reply.to_string()), expected, "{operations}");
    }
}

#[test]
fn rows_are_inserted_selected_and_sorted() {
    check(
        ORDINALS,
        &[
            (
                r#"{"op":"insert","table":"ordinals","row":{"number":0,"name":"zero"}}"#,
                r#"[{"uuid":["uuid","<0>"]}]"#,
            ),
            (
                r#"{"op":"insert","table":"ordinals","row":{"number":1,"name":"one"}}"#,
                r#"[{"uuid":["uuid","<1>"]}]"#,
            ),
            (
                r#"{"op":"select","table":"ordinals","where":[["name","==","zero"]]}"#,
                r#"[{"rows":[{"_uuid":["uuid","<0>"],"_version":["uuid","<2>"],"name":"zero","number":0}]}]"#,
            ),
            (
                r#"{"op":"mutate","table":"ordinals","where":[["number","==",0]],"mutations":[["number","+=",2]]},
                   {"op":"select","table":"ordinals","where":[["number","==",0]]},
                   {"op":"select","table":"ordinals","where":[],"sort":["number"],"columns":["name"]}"#,
                r#"[{"count":1},{"rows":[]},{"rows":[{"name":"one"},{"name":"zero"}]}]"#,
            ),
            (
                r#"{"op":"delete","table":"ordinals","where":[["number",">",1]]},
                   {"op":"select","table":"ordinals","where":[],"columns":["number"]}"#,
                r#"[{"count":1},{"rows":[{"number":1}]}]"#,
            ),
        ],
    );
}

#[test]
fn errors_stop_and_undo() {
    check(
        ORDINALS,
        &[
            (
                r#"{"op":"insert","table":"ordinals","row":{"number":1}},{"op":"foo"},{"op":"abort"}"#,
                r#"[{"uuid":["uuid","<0>"]},{"details":"Parsing ovsdb operation 2 of 3 failed: No operation \"foo\"","error":"syntax error","syntax":"{\"op\":\"foo\"}"},null]"#,
            ),
            (
                r#"{"op":"select","table":"ordinals","where":[]}"#,
                r#"[{"rows":[]}]"#,
            ),
            (
                r#"{"op":"abort"}"#,
                r#"[{"details":"aborted by request","error":"aborted"}]"#,
            ),
            (r#"{"op":"assert","lock":"mine"}"#, "[{}]"),
            (
                r#"{"op":"assert","lock":"x"}"#,
                r#"[{"details":"Asserted lock x not held.","error":"not owner"}]"#,
            ),
            (
                r#"{"op":"commit"}"#,
                r#"[{"details":"Parsing ovsdb operation 1 of 1 failed: Required 'durable' member is missing.","error":"syntax error","syntax":"{\"op\":\"commit\"}"}]"#,
            ),
            (
                r#"{"op":"insert","table":"ordinals","row":{"zz":1}}"#,
                r#"[{"details":"No column zz in table ordinals.","error":"unknown column","syntax":"{\"zz\":1}"}]"#,
            ),
            (
                r#"{"op":"wait","timeout":0,"table":"ordinals","where":[],"columns":["name"],"until":"==","rows":[{"name":"x"}]}"#,
                r#"[{"details":"\"where\" clause test failed","error":"timed out"}]"#,
            ),
        ],
    );
    let mut db = database(ORDINALS);
    let (reply, _) = execute(&mut db, r#"["other",{"op":"abort"}]"#);
    assert_eq!(
        reply.to_string(),
        r#"{"details":"database name expected as first parameter","error":"syntax error","syntax":"[\"other\",{\"op\":\"abort\"}]"}"#
    );
}

#[test]
fn indexes_are_unique() {
    check(
        ORDINALS,
        &[
            (
                r#"{"op":"insert","table":"ordinals","row":{"number":1}}"#,
                r#"[{"uuid":["uuid","<0>"]}]"#,
            ),
            (
                r#"{"op":"insert","table":"ordinals","row":{"number":1}}"#,
                r#"[{"uuid":["uuid","<1>"]},{"details":"Transaction causes multiple rows in \"ordinals\" table to have identical values (1) for index on column \"number\".  First row, with UUID <0>, existed in the database before this transaction and was not modified by the transaction.  Second row, with UUID <1>, was inserted by this transaction.","error":"constraint violation"}]"#,
            ),
            (
                r#"{"op":"insert","table":"ordinals","row":{"number":2}},{"op":"insert","table":"ordinals","row":{"number":2}}"#,
                r#"[{"uuid":["uuid","<2>"]},{"uuid":["uuid","<3>"]},{"details":"Transaction causes multiple rows in \"ordinals\" table to have identical values (2) for index on column \"number\".  First row, with UUID <3>, was inserted by this transaction.  Second row, with UUID <2>, was inserted by this transaction.","error":"constraint violation"}]"#,
            ),
            (
                r#"{"op":"delete","table":"ordinals","where":[["number","==",1]]},{"op":"insert","table":"ordinals","row":{"number":1}}"#,
                r#"[{"count":1},{"uuid":["uuid","<4>"]}]"#,
            ),
        ],
    );
}

#[test]
fn strong_references_are_kept_whole() {
    check(
        CONSTRAINTS,
        &[
            (
                r#"{"op":"insert","table":"b","row":{"b":1},"uuid-name":"brow"},
                   {"op":"insert","table":"a","row":{"a":0,"a2b":["set",[["named-uuid","brow"]]]}}"#,
                r#"[{"uuid":["uuid","<0>"]},{"uuid":["uuid","<1>"]}]"#,
            ),
            (
                r#"{"op":"delete","table":"b","where":[]}"#,
                r#"[{"count":1},{"details":"cannot delete b row <0> because of 1 remaining reference(s)","error":"referential integrity violation"}]"#,
            ),
            (
                r#"{"op":"insert","table":"a","row":{"a2b":["set",[["uuid","b516b960-5b19-4fc2-bb82-fe1cbd6d0241"]]]}}"#,
                r#"[{"uuid":["uuid","<2>"]},{"details":"Table a column a2b row <2> references nonexistent row <3> in table b.","error":"referential integrity violation"}]"#,
            ),
            (
                r#"{"op":"delete","table":"a","where":[]},{"op":"delete","table":"b","where":[]}"#,
                r#"[{"count":1},{"count":1}]"#,
            ),
            (
                r#"{"op":"insert","table":"constrained","row":{}}"#,
                r#"[{"details":"0 is less than minimum allowed value 1","error":"constraint violation"}]"#,
            ),
            (
                r#"{"op":"insert","table":"constrained","row":{"positive":1}},{"op":"insert","table":"constrained","row":{"positive":2}}"#,
                r#"[{"uuid":["uuid","<4>"]},{"uuid":["uuid","<5>"]},{"details":"transaction causes \"constrained\" table to contain 2 rows, greater than the schema-defined limit of 1 row(s)","error":"constraint violation"}]"#,
            ),
        ],
    );
}

#[test]
fn weak_references_go_with_their_rows() {
    check(
        WEAK,
        &[
            (
                r#"{"op":"insert","table":"a","row":{"a":0,"a2a":["set",[["named-uuid","row1"],["named-uuid","row2"],["uuid","0e767b36-6822-4044-8307-d58467e04669"]]],"a2a1":["named-uuid","row1"],"a2b":["named-uuid","row3"]},"uuid-name":"row1"},
                   {"op":"insert","table":"a","row":{"a":1,"a2a":["set",[["named-uuid","row1"],["named-uuid","row2"]]],"a2a1":["named-uuid","row2"],"a2b":["named-uuid","row3"]},"uuid-name":"row2"},
                   {"op":"insert","table":"a","row":{"a":2,"a2a1":["named-uuid","row2"],"a2b":["named-uuid","row4"]}},
                   {"op":"insert","table":"b","row":{"b":2,"b2a":["named-uuid","row1"]},"uuid-name":"row3"},
                   {"op":"insert","table":"b","row":{"b":3,"b2a":["named-uuid","row2"]},"uuid-name":"row4"}"#,
                r#"[{"uuid":["uuid","<0>"]},{"uuid":["uuid","<1>"]},{"uuid":["uuid","<2>"]},{"uuid":["uuid","<3>"]},{"uuid":["uuid","<4>"]}]"#,
            ),
            (
                r#"{"op":"insert","table":"a","row":{"a2a1":["named-uuid","me"]},"uuid-name":"me"}"#,
                r#"[{"uuid":["uuid","<5>"]},{"details":"Weak reference column \"a2b\" in \"a\" row <5> (inserted within this transaction) contained all-zeros UUID (probably as the default value for this column) but deleting this value caused a constraint volation because this column is not allowed to be empty.","error":"constraint violation"}]"#,
            ),
            (
                r#"{"op":"delete","table":"b","where":[["b","==",3]]}"#,
                r#"[{"count":1},{"details":"Deletion of 1 weak reference(s) to deleted (or never-existing) rows from column \"a2b\" in \"a\" row <2> caused this column to become empty, but constraints on this column disallow an empty column.","error":"constraint violation"}]"#,
            ),
            (
                r#"{"op":"delete","table":"a","where":[["a","==",2]]}"#,
                r#"[{"count":1}]"#,
            ),
            (
                r#"{"op":"delete","table":"a","where":[["a","==",0]]}"#,
                r#"[{"count":1}]"#,
            ),
            (
                r#"{"op":"select","table":"a","where":[],"columns":["_uuid","a2a"]},
                   {"op":"select","table":"b","where":[],"columns":["b","b2a"],"sort":["b"]}"#,
                r#"[{"rows":[{"_uuid":["uuid","<1>"],"a2a":["uuid","<1>"]}]},{"rows":[{"b":2,"b2a":["set",[]]},{"b":3,"b2a":["uuid","<1>"]}]}]"#,
            ),
        ],
    );
}

#[test]
fn garbage_is_collected() {
    let select = r#"{"op":"select","table":"a","where":[],"columns":["a"],"sort":["a"]}"#;
    check(
        GC,
        &[
            (
                r#"{"op":"insert","table":"a","row":{"a":0}}"#,
                r#"[{"uuid":["uuid","<0>"]}]"#,
            ),
            (select, r#"[{"rows":[]}]"#),
            (
                r#"{"op":"insert","table":"a","row":{"a":4,"a2a":["named-uuid","row5"]},"uuid-name":"row4"},
                   {"op":"insert","table":"a","row":{"a":5,"a2a":["named-uuid","row4"]},"uuid-name":"row5"}"#,
                r#"[{"uuid":["uuid","<1>"]},{"uuid":["uuid","<2>"]}]"#,
            ),
            (select, r#"[{"rows":[{"a":4},{"a":5}]}]"#),
            (
                r#"{"op":"update","table":"a","where":[["a","==",4]],"row":{"a2a":["set",[]]}}"#,
                r#"[{"count":1}]"#,
            ),
            (select, r#"[{"rows":[]}]"#),
            (
                r#"{"op":"insert","table":"a","row":{"a":6,"wa2a":["named-uuid","row7"]},"uuid-name":"row6"},
                   {"op":"insert","table":"a","row":{"a":7,"wa2a":["named-uuid","row6"]},"uuid-name":"row7"}"#,
                r#"[{"uuid":["uuid","<3>"]},{"uuid":["uuid","<4>"]}]"#,
            ),
            (select, r#"[{"rows":[]}]"#),
            (
                r#"{"op":"insert","table":"a","row":{"a":12,"a2a":["named-uuid","self"]},"uuid-name":"self"}"#,
                r#"[{"uuid":["uuid","<5>"]}]"#,
            ),
            (select, r#"[{"rows":[]}]"#),
        ],
    );
}

#[test]
fn records_hold_what_changed() {
    let schema = r#"{"name":"d","tables":{"t":{"columns":{"n":{"type":"string"},
        "s":{"type":{"key":"integer","min":0,"max":"unlimited"}},
        "m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "e":{"type":"integer","ephemeral":true}}}}}"#;
    let mut db = database(schema);
    let mut filter = UuidFilter::default();
    for (operations, expected) in [
        (
            r#"{"op":"insert","table":"t","row":{"n":"a","s":["set",[1,2]],"m":["map",[["a","b"],["c","d"]]],"e":5}},
               {"op":"comment","comment":"hi"},{"op":"comment","comment":"ho"}"#,
            Some(
                r#"{"_date":1,"_comment":"hi\nho","_is_diff":true,"t":{"<0>":{"m":["map",[["a","b"],["c","d"]]],"n":"a","s":["set",[1,2]]}}}"#,
            ),
        ),
        (
            r#"{"op":"update","where":[],"table":"t","row":{"n":"b","s":["set",[2,3]],"m":["map",[["a","e"]]]}}"#,
            Some(
                r#"{"_date":1,"_is_diff":true,"t":{"<0>":{"m":["map",[["a","e"],["c","d"]]],"n":"b","s":["set",[1,3]]}}}"#,
            ),
        ),
        (
            r#"{"op":"update","where":[],"table":"t","row":{"e":9}}"#,
            None,
        ),
        (r#"{"op":"comment","comment":"nothing"}"#, None),
        (
            r#"{"op":"delete","where":[],"table":"t"}"#,
            Some(r#"{"_date":1,"_is_diff":true,"t":{"<0>":null}}"#),
        ),
    ] {
        let (_, committed) = execute(&mut db, &format!("[\"d\",{operations}]"));
        let record = record(&db, &committed.expect("committed"));
        assert_eq!(record.map(|r| filter.apply(&r)).as_deref(), expected);
    }
}
