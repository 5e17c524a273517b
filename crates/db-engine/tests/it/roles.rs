//! What roles let clients do.

use db_engine::Identity;

use crate::*;

const SCHEMA: &str = r#"{"name":"d","version":"1.0.0","tables":{
    "Own":{"isRoot":true,"columns":{"who":{"type":"string"},"n":{"type":"integer"},"m":{"type":"integer"}}},
    "Keyed":{"isRoot":true,"columns":{"ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},"n":{"type":"integer"}}},
    "Free":{"isRoot":true,"columns":{"n":{"type":"integer"}}},
    "Shut":{"isRoot":true,"columns":{"n":{"type":"integer"}}},
    "RBAC_Role":{"isRoot":true,"columns":{"name":{"type":"string"},"permissions":{"type":
        {"key":"string","value":{"type":"uuid","refTable":"RBAC_Permission","refType":"weak"},"min":0,"max":"unlimited"}}}},
    "RBAC_Permission":{"isRoot":true,"columns":{"table":{"type":"string"},
        "authorization":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "insert_delete":{"type":"boolean"},
        "update":{"type":{"key":"string","min":0,"max":"unlimited"}}}}}}"#;

const INSERT: &str = "row insertion into table";
const DELETE: &str = "row deletion from table";
const UPDATE: &str = "modification of table";
const MUTATE: &str = "mutate operation on table";

/// Client, operation, and what is forbidden by it if it is.
const CASES: &[(&str, &str, &str)] = &[
    (
        "a",
        r#"{"op":"insert","table":"Own","row":{"who":"a"}}"#,
        "",
    ),
    (
        "a",
        r#"{"op":"insert","table":"Own","row":{"who":"b"}}"#,
        INSERT,
    ),
    ("a", r#"{"op":"insert","table":"Own","row":{}}"#, INSERT),
    (
        "a",
        r#"{"op":"insert","table":"Keyed","row":{"ids":["map",[["host","a"]]]}}"#,
        INSERT,
    ),
    ("c", r#"{"op":"insert","table":"Free","row":{}}"#, ""),
    ("a", r#"{"op":"insert","table":"Shut","row":{}}"#, INSERT),
    (
        "a",
        r#"{"op":"update","table":"Own","where":[["who","==","a"]],"row":{"n":3}}"#,
        "",
    ),
    (
        "a",
        r#"{"op":"update","table":"Own","where":[["who","==","a"]],"row":{"m":3}}"#,
        UPDATE,
    ),
    (
        "a",
        r#"{"op":"update","table":"Own","where":[["who","==","b"]],"row":{"n":3}}"#,
        UPDATE,
    ),
    (
        "a",
        r#"{"op":"update","table":"Own","where":[],"row":{"n":3}}"#,
        UPDATE,
    ),
    (
        "a",
        r#"{"op":"update","table":"Own","where":[["n","==",77]],"row":{"m":3}}"#,
        "",
    ),
    (
        "a",
        r#"{"op":"update","table":"Shut","where":[["n","==",77]],"row":{"n":3}}"#,
        UPDATE,
    ),
    (
        "a",
        r#"{"op":"update","table":"Keyed","where":[],"row":{"n":3}}"#,
        "",
    ),
    (
        "b",
        r#"{"op":"update","table":"Keyed","where":[],"row":{"n":3}}"#,
        UPDATE,
    ),
    (
        "a",
        r#"{"op":"mutate","table":"Own","where":[["who","==","a"]],"mutations":[["n","+=",1]]}"#,
        "",
    ),
    (
        "a",
        r#"{"op":"mutate","table":"Own","where":[["who","==","a"]],"mutations":[["n","+=",1],["m","+=",1]]}"#,
        MUTATE,
    ),
    (
        "b",
        r#"{"op":"mutate","table":"Own","where":[["who","==","a"]],"mutations":[["n","+=",1]]}"#,
        MUTATE,
    ),
    (
        "b",
        r#"{"op":"mutate","table":"Own","where":[["who","==","a"]],"mutations":[]}"#,
        "",
    ),
    (
        "b",
        r#"{"op":"delete","table":"Own","where":[["who","==","b"]]}"#,
        "",
    ),
    ("b", r#"{"op":"delete","table":"Own","where":[]}"#, DELETE),
    ("a", r#"{"op":"delete","table":"Keyed","where":[]}"#, DELETE),
    (
        "a",
        r#"{"op":"delete","table":"RBAC_Role","where":[]}"#,
        DELETE,
    ),
    (
        "a",
        r#"{"op":"select","table":"Shut","where":[],"columns":["n"]}"#,
        "",
    ),
];

fn as_client(db: &mut Database, identity: Identity<'_>, operation: &str) -> String {
    let context = Context {
        identity: Some(&identity),
        ..Context::local(&|_| false)
    };
    match db.execute(&parse(&format!(r#"["d",{operation}]"#)), &context) {
        Outcome::Done(reply, _) => reply.to_string(),
        other => panic!("{other:?}"),
    }
}

fn guarded() -> Database {
    let mut db = database(SCHEMA);
    let permission = |name: &str, authorization: &str, inserts: bool, update: &str| {
        format!(
            r#"{{"op":"insert","table":"RBAC_Permission","uuid-name":"{name}","row":{{"authorization":{authorization},"insert_delete":{inserts},"update":{update}}}}}"#
        )
    };
    let operations = [
        permission("own", r#""who""#, true, r#"["set",["n"]]"#),
        permission("keyed", r#"["set",["nothing","ids:host"]]"#, false, r#"["set",["ids","n"]]"#),
        permission("free", r#""""#, true, r#"["set",[]]"#),
        r#"{"op":"insert","table":"RBAC_Role","row":{"name":"r","permissions":["map",[["Own",["named-uuid","own"]],["Keyed",["named-uuid","keyed"]],["Free",["named-uuid","free"]]]]}}"#.to_owned(),
        r#"{"op":"insert","table":"Own","row":{"who":"a","n":1}}"#.to_owned(),
        r#"{"op":"insert","table":"Own","row":{"who":"b","n":2}}"#.to_owned(),
        r#"{"op":"insert","table":"Keyed","row":{"ids":["map",[["host","a"],["x","b"]]]}}"#.to_owned(),
        r#"{"op":"insert","table":"Shut","row":{"n":5}}"#.to_owned(),
    ];
    let (reply, committed) = execute(&mut db, &format!(r#"["d",{}]"#, operations.join(",")));
    assert!(committed.is_some(), "{reply}");
    db
}

#[test]
fn a_role_says_who_may_do_what() {
    for &(client, operation, forbidden) in CASES {
        let mut db = guarded();
        let identity = Identity {
            role: "r",
            id: Some(client),
        };
        let reply = as_client(&mut db, identity, operation);
        let table = parse(operation).get("table").cloned().expect("a table");
        let table = table.as_str().expect("a name").to_owned();
        let expected = format!(
            r#"RBAC rules for client \"{client}\" role \"r\" prohibit {forbidden} \"{table}\"."#
        );
        let denied = reply.contains("permission error") && reply.contains(&expected);
        assert_eq!(
            denied,
            !forbidden.is_empty(),
            "{client} {operation}: {reply}"
        );
        assert_eq!(
            reply.contains("error"),
            denied,
            "{client} {operation}: {reply}"
        );
        // Without a role, or with one that nobody has described, all or nothing goes.
        for (role, id, may) in [
            ("", None, true),
            ("s", Some(client), false),
            ("r", None, false),
        ] {
            let mut db = guarded();
            let reply = as_client(&mut db, Identity { role, id }, operation);
            let harmless = ["select", "\"mutations\":[]"];
            let may = may || harmless.iter().any(|text| operation.contains(text));
            assert_eq!(
                !reply.contains("permission error"),
                may,
                "{role:?} {operation}: {reply}"
            );
        }
    }
}

#[test]
fn rows_that_a_transaction_made_are_judged_as_they_are() {
    let mut db = guarded();
    let identity = Identity {
        role: "r",
        id: Some("a"),
    };
    let handed_over = r#"{"op":"insert","table":"Own","row":{"who":"a","n":9}},
        {"op":"update","table":"Own","where":[["n","==",9]],"row":{"n":10}},
        {"op":"delete","table":"Own","where":[["n","==",10]]}"#;
    let reply = as_client(&mut db, identity, handed_over);
    assert!(!reply.contains("error"), "{reply}");
}

#[test]
fn a_database_without_roles_restricts_nobody() {
    let mut db = database(r#"{"name":"d","tables":{"t":{"columns":{"n":{"type":"integer"}}}}}"#);
    let identity = Identity {
        role: "r",
        id: None,
    };
    let reply = as_client(&mut db, identity, r#"{"op":"insert","table":"t","row":{}}"#);
    assert!(reply.contains("uuid"), "{reply}");
}
