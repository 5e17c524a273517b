//! A client against a server that the test plays.

use std::sync::Arc;

use db_model::{Atom, DatabaseSchema, Datum, Uuid, parse_uuid};
use json::Json;

use crate::*;

const SCHEMA: &str = r#"{"name":"D","version":"1.0.0","tables":{
    "Root":{"columns":{
        "kids":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":"unlimited"}},
        "next":{"type":"integer"}},"isRoot":true,"maxRows":1},
    "Kid":{"columns":{
        "name":{"type":"string"},
        "tag":{"type":{"key":"integer","min":0}},
        "ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "extra":{"type":"integer"}}}}}"#;

const ROOT: &str = "00000000-0000-4000-8000-000000000001";
const A: &str = "00000000-0000-4000-8000-00000000000a";
const B: &str = "00000000-0000-4000-8000-00000000000b";

table! {
    struct RootTable = "Root" {
        kids: Set<Uuid>,
        next: One<i64>,
    }
}

table! {
    struct KidTable = "Kid" {
        name: One<str>,
        tag: Optional<i64>,
        ids: Map<str, str>,
    }
}

fn json(text: &str) -> Json {
    json::parse(text.as_bytes()).expect("valid JSON")
}

fn id(text: &str) -> Uuid {
    parse_uuid(text).expect("valid UUID")
}

struct Test {
    client: Client,
    root: RootTable,
    kid: KidTable,
}

impl Test {
    fn new() -> Self {
        let schema = DatabaseSchema::from_text(SCHEMA).expect("valid schema");
        let layout = Arc::new(Layout::new(&schema));
        let (root, kid) = (RootTable::find(&layout), KidTable::find(&layout));
        let mut interest = Interest::new();
        root.want(&mut interest);
        kid.want(&mut interest);
        Self {
            client: Client::new(layout, interest),
            root,
            kid,
        }
    }

    fn expect(&mut self, text: &str) -> i64 {
        let request = self.client.poll_request().expect("a request");
        assert_eq!(format!("{} {}", request.method, request.params), text);
        request.id
    }

    fn reply(&mut self, id: i64, text: &str) {
        self.client
            .handle_reply(id, Ok(&json(text)))
            .expect("taken");
    }

    fn update(&mut self, text: &str) {
        let params = json(text);
        self.client
            .handle_notification("update2", &params)
            .expect("taken");
    }

    fn connect(&mut self) -> i64 {
        self.client.connected();
        let id = self.expect(r#"get_schema ["D"]"#);
        self.reply(id, SCHEMA);
        let request = self.client.poll_request().expect("monitor");
        assert_eq!(request.method, "monitor_cond_since");
        request.id
    }

    /// A root with two kids.
    fn filled() -> Self {
        let mut test = Self::new();
        let id = test.connect();
        test.reply(
            id,
            &format!(
                r#"[false,"{A}",{{"Root":{{"{ROOT}":{{"initial":{{"kids":["set",[["uuid","{A}"],["uuid","{B}"]]],"next":7}}}}}},
                "Kid":{{"{A}":{{"initial":{{"name":"a","ids":["map",[["k","v"]]]}}}},"{B}":{{"initial":{{"name":"b","tag":5}}}}}}}}]"#
            ),
        );
        assert!(test.client.is_following());
        test
    }

    fn notify(&mut self, method: &str, text: &str) {
        let taken = self.client.handle_notification(method, &json(text));
        taken.expect("taken");
    }

    fn kid(&self, uuid: &str) -> RowRef<'_> {
        let row = self.client.replica().row(self.kid.table, id(uuid));
        row.expect("row")
    }
}

#[test]
fn the_replica_follows_differences() {
    let mut test = Test::filled();
    assert_eq!(test.kid(A).read(test.kid.name), "a");
    assert_eq!(test.kid(A).read(test.kid.tag), None);
    assert_eq!(test.kid(A).read(test.kid.ids).get("k"), Some("v"));
    assert_eq!(test.kid(B).read(test.kid.tag), Some(5));
    let changes = test.client.replica_mut().take_changes();
    assert_eq!(changes.table(test.kid.table).inserted.len(), 2);

    test.notify(
        "update3",
        &format!(
            r#"["monid","{B}",{{"Kid":{{"{A}":{{"modify":{{"tag":9,"ids":["map",[["k","w"],["x","y"]]]}}}},"{B}":{{"delete":null}}}}}}]"#
        ),
    );
    assert_eq!(test.kid(A).read(test.kid.tag), Some(9));
    assert_eq!(test.kid(A).read(test.kid.ids).get("k"), Some("w"));
    assert_eq!(test.kid(A).read(test.kid.ids).get("x"), Some("y"));
    let changes = test.client.replica_mut().take_changes();
    let kids = changes.table(test.kid.table);
    let columns = kids.modified[&id(A)];
    assert!(columns.contains(test.kid.tag.id()) && !columns.contains(test.kid.name.id()));
    let gone = test.client.replica().table(test.kid.table);
    let gone = gone.past_row(id(B), &kids.deleted[&id(B)]);
    assert_eq!(gone.read(test.kid.name), "b");
    assert!(test.client.replica_mut().take_changes().is_empty());
}

#[test]
fn a_new_connection_resumes_or_compares() {
    let mut test = Test::filled();
    test.client.replica_mut().take_changes();
    test.client.disconnected();
    assert!(test.client.is_filled() && !test.client.is_following());
    test.client.connected();
    let request = test.expect(r#"get_schema ["D"]"#);
    test.reply(request, SCHEMA);
    let request = test.expect(&format!(
        r#"monitor_cond_since ["D",["monid","D"],{{"Kid":[{{"columns":["ids","name","tag"]}}],"Root":[{{"columns":["kids","next"]}}]}},"{A}"]"#
    ));
    // The server does not know that transaction any more: only real differences count.
    test.reply(
        request,
        &format!(
            r#"[false,"{B}",{{"Root":{{"{ROOT}":{{"initial":{{"kids":["uuid","{A}"],"next":7}}}}}},
            "Kid":{{"{A}":{{"initial":{{"name":"a","ids":["map",[["k","v"]]]}}}}}}}}]"#
        ),
    );
    let changes = test.client.replica_mut().take_changes();
    let kids = changes.table(test.kid.table);
    assert_eq!((kids.inserted.len(), kids.modified.len()), (0, 0));
    assert_eq!(kids.deleted.len(), 1);
    let roots = &changes.table(test.root.table).modified;
    assert!(roots[&id(ROOT)].contains(test.root.kids.id()));
    assert!(!roots[&id(ROOT)].contains(test.root.next.id()));
}

#[test]
fn old_servers_are_monitored_in_old_ways() {
    let mut test = Test::new();
    let request = test.connect();
    let error = json(r#"{"error":"unknown method"}"#);
    test.client
        .handle_reply(request, Err(&error))
        .expect("taken");
    let request = test.client.poll_request().expect("request");
    assert_eq!(request.method, "monitor_cond");
    test.client
        .handle_reply(request.id, Err(&error))
        .expect("taken");
    let request = test.client.poll_request().expect("request");
    assert_eq!(request.method, "monitor");
    test.reply(
        request.id,
        &format!(
            r#"{{"Kid":{{"{A}":{{"new":{{"name":"a","tag":["set",[]],"ids":["map",[]]}}}}}}}}"#
        ),
    );
    test.notify(
        "update",
        &format!(r#"["monid",{{"Kid":{{"{A}":{{"old":{{"tag":["set",[]]}},"new":{{"name":"a","tag":4}}}}}}}}]"#),
    );
    assert_eq!(test.kid(A).read(test.kid.tag), Some(4));
}

#[test]
fn columns_that_the_server_lacks_have_defaults() {
    let mut test = Test::new();
    test.client.connected();
    let request = test.expect(r#"get_schema ["D"]"#);
    test.reply(
        request,
        r#"{"name":"D","tables":{"Kid":{"columns":{"name":{"type":"string"}}}}}"#,
    );
    test.expect(
        r#"monitor_cond_since ["D",["monid","D"],{"Kid":[{"columns":["name"]}]},"00000000-0000-0000-0000-000000000000"]"#,
    );
    assert!(test.client.server_has_column("Kid", "name"));
    assert!(!test.client.server_has_table("Root"));
}

#[test]
fn transactions_send_what_changed_only() {
    let mut test = Test::filled();
    let (kid, root) = (test.kid, test.root);
    let replica = test.client.replica().clone();
    let mut txn = Transaction::new();
    kid.name.set(&mut txn, &replica, id(A), Atom::string("a"));
    assert_eq!(test.client.commit(&txn), Err(Outcome::Unchanged));

    let new = id("00000000-0000-4000-8000-0000000000ff");
    root.next.verify(&mut txn, &replica, id(ROOT));
    txn.insert(kid.table, new);
    kid.name.set(&mut txn, &replica, new, Atom::string("c"));
    let kids = root.kids;
    txn.put(
        &replica,
        root.table,
        id(ROOT),
        kids.id(),
        &Datum::from(Atom::Uuid(new)),
    );
    let gone = Datum::from(Atom::Uuid(id(B)));
    txn.drop_keys(&replica, root.table, id(ROOT), kids.id(), &gone);
    let pair = Datum::from_map(vec![(Atom::string("k"), Atom::string("new"))]).expect("map");
    txn.put(&replica, kid.table, id(A), kid.ids.id(), &pair);
    assert_eq!(kid.ids.get(&txn, &replica, id(A)).get("k"), Some("new"));
    assert_eq!(root.kids.get(&txn, &replica, id(ROOT)).len(), 2);
    txn.increment(root.table, id(ROOT), root.next.id(), false);
    txn.comment("why");
    let ticket = test.client.commit(&txn).expect("sent");
    let named = "row00000000_0000_4000_8000_0000000000ff";
    let request = test.expect(&format!(
        concat!(
            r#"transact ["D",{{"columns":["next"],"op":"wait","rows":[{{"next":7}}],"table":"Root","timeout":0,"until":"==","where":[["_uuid","==",["uuid","{root}"]]]}},"#,
            r#"{{"mutations":[["kids","delete",["set",[["uuid","{b}"]]]],["kids","insert",["named-uuid","{named}"]]],"op":"mutate","table":"Root","where":[["_uuid","==",["uuid","{root}"]]]}},"#,
            r#"{{"op":"insert","row":{{"name":"c"}},"table":"Kid","uuid-name":"{named}"}},"#,
            r#"{{"mutations":[["ids","delete",["set",["k"]]],["ids","insert",["map",[["k","new"]]]]],"op":"mutate","table":"Kid","where":[["_uuid","==",["uuid","{a}"]]]}},"#,
            r#"{{"mutations":[["next","+=",1]],"op":"mutate","table":"Root","where":[["_uuid","==",["uuid","{root}"]]]}},"#,
            r#"{{"columns":["next"],"op":"select","table":"Root","where":[["_uuid","==",["uuid","{root}"]]]}},"#,
            r#"{{"comment":"why","op":"comment"}}]"#
        ),
        root = ROOT,
        named = named,
        a = A,
        b = B
    ));
    test.reply(
        request,
        &format!(r#"[{{}},{{"count":1}},{{"uuid":["uuid","{B}"]}},{{"count":1}},{{"count":1}},{{"rows":[{{"next":8}}]}},{{}}]"#),
    );
    let success = Success {
        inserted: [(new, id(B))].into(),
        increment: Some(8),
    };
    assert_eq!(
        test.client.poll_outcome(),
        Some((ticket, Outcome::Success(success)))
    );
}

/// A row that a transaction inserts is incremented in it, too, and its new value is told.
#[test]
fn a_row_that_is_new_is_incremented() {
    let mut test = Test::filled();
    let new = id("00000000-0000-4000-8000-0000000000fe");
    let mut txn = Transaction::new();
    txn.insert(test.root.table, new);
    txn.increment(test.root.table, new, test.root.next.id(), false);
    test.client.commit(&txn).expect("sent");
    let named = "row00000000_0000_4000_8000_0000000000fe";
    let request = test.expect(&format!(
        concat!(
            r#"transact ["D",{{"op":"insert","row":{{}},"table":"Root","uuid-name":"{named}"}},"#,
            r#"{{"mutations":[["next","+=",1]],"op":"mutate","table":"Root","where":[["_uuid","==",["named-uuid","{named}"]]]}},"#,
            r#"{{"columns":["next"],"op":"select","table":"Root","where":[["_uuid","==",["named-uuid","{named}"]]]}}]"#
        ),
        named = named
    ));
    let results = format!(r#"[{{"uuid":["uuid","{B}"]}},{{"count":1}},{{"rows":[{{"next":1}}]}}]"#);
    test.reply(request, &results);
    let outcome = test.client.poll_outcome().map(|(_, outcome)| outcome);
    let success = Success {
        inserted: [(new, id(B))].into(),
        increment: Some(1),
    };
    assert_eq!(outcome, Some(Outcome::Success(success)));
}

#[test]
fn outcomes_tell_what_to_do() {
    for (results, outcome) in [
        (r#"[{"error":"timed out"},null]"#, Outcome::TryAgain),
        (r#"[{"error":"not owner"}]"#, Outcome::NotLocked),
        (
            r#"[{},{"details":"no","error":"constraint violation"}]"#,
            Outcome::Error(r#"{"details":"no","error":"constraint violation"}"#.to_owned()),
        ),
    ] {
        let mut test = Test::filled();
        let replica = test.client.replica().clone();
        let mut txn = Transaction::new();
        test.kid
            .name
            .set(&mut txn, &replica, id(A), Atom::string("z"));
        let ticket = test.client.commit(&txn).expect("sent");
        let request = test.client.poll_request().expect("request");
        test.reply(request.id, results);
        assert_eq!(test.client.poll_outcome(), Some((ticket, outcome)));
    }
    let mut test = Test::filled();
    let mut txn = Transaction::new();
    txn.increment(test.root.table, id(ROOT), test.root.next.id(), true);
    let ticket = test.client.commit(&txn).expect("sent");
    test.client.disconnected();
    assert_eq!(
        test.client.poll_outcome(),
        Some((ticket, Outcome::TryAgain))
    );
}

#[test]
fn locks_guard_transactions() {
    let mut test = Test::filled();
    test.client.set_lock(Some("l"));
    let request = test.expect(r#"lock ["l"]"#);
    test.reply(request, r#"{"locked":false}"#);
    assert!(test.client.is_lock_contended() && !test.client.has_lock());
    assert_eq!(
        test.client.commit(&Transaction::new()),
        Err(Outcome::NotLocked)
    );
    test.notify("locked", r#"["l"]"#);
    assert!(test.client.has_lock());
    let mut txn = Transaction::new();
    txn.increment(test.root.table, id(ROOT), test.root.next.id(), true);
    test.client.commit(&txn).expect("sent");
    let request = test.client.poll_request().expect("request");
    let assert = request.params.as_array().expect("operations")[1].to_string();
    assert_eq!(assert, r#"{"lock":"l","op":"assert"}"#);
    test.notify("stolen", r#"["l"]"#);
    assert!(!test.client.has_lock());
}

#[test]
fn what_is_inserted_and_deleted_again_leaves_no_trace() {
    let mut test = Test::filled();
    let replica = test.client.replica().clone();
    let mut txn = Transaction::new();
    let new = id("00000000-0000-4000-8000-0000000000ff");
    txn.insert(test.kid.table, new);
    assert!(txn.has_row(&replica, test.kid.table, new));
    assert_eq!(txn.rows(&replica, test.kid.table).len(), 3);
    txn.delete(test.kid.table, new);
    assert_eq!(txn.rows(&replica, test.kid.table).len(), 2);
    // Kids are not roots: the server deletes them with their last reference.
    txn.delete(test.kid.table, id(A));
    assert!(!txn.has_row(&replica, test.kid.table, id(A)));
    assert_eq!(test.client.commit(&txn), Err(Outcome::Unchanged));
}

#[test]
fn only_the_leader_of_a_cluster_will_do() {
    let mut test = Test::new();
    test.client.set_leader_only(true);
    for (row, suits) in [
        (r#"{"model":"clustered","connected":true}"#, false),
        (
            r#"{"model":"clustered","connected":true,"leader":true}"#,
            true,
        ),
    ] {
        test.client.connected();
        let schema = test.expect(r#"get_schema ["D"]"#);
        let check = test.expect(
            r#"monitor_cond ["_Server",["monid","_Server"],{"Database":[{"columns":["model","connected","leader","cid","index"],"where":[["name","==","D"]]}]}]"#,
        );
        test.reply(schema, SCHEMA);
        let monitor = test.client.poll_request().expect("a request").id;
        test.reply(
            monitor,
            r#"[false,"00000000-0000-0000-0000-000000000000",{}]"#,
        );
        assert!(!test.client.is_following(), "the server was not heard yet");
        test.reply(
            check,
            &format!(r#"{{"Database":{{"5b1a":{{"initial":{row}}}}}}}"#),
        );
        assert_eq!(test.client.is_following(), suits);
        assert_eq!(test.client.unsuitable().is_none(), suits);
    }
    test.update(r#"[["monid","_Server"],{"Database":{"5b1a":{"modify":{"leader":false}}}}]"#);
    let why = "clustered database server is not cluster leader; trying another server";
    assert_eq!(test.client.unsuitable().as_deref(), Some(why));
}
