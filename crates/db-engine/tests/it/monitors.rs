//! What monitors are told.

use super::*;
use db_engine::monitor::{Monitors, Spec, Version, parse_conditions};

const SCHEMA: &str = r#"{"name":"d","tables":{"t":{"columns":{"n":{"type":"integer"},
    "s":{"type":{"key":"integer","min":0,"max":"unlimited"}}}}}}"#;

struct Bench {
    db: Database,
    monitors: Monitors,
    filter: UuidFilter,
}

impl Bench {
    fn new() -> Self {
        Self {
            db: database(SCHEMA),
            monitors: Monitors::new(),
            filter: UuidFilter::default(),
        }
    }

    fn transact(&mut self, operations: &str) -> db_model::Uuid {
        let (reply, committed) = execute(&mut self.db, &format!("[\"d\",{operations}]"));
        self.filter.apply(&reply.to_string());
        let committed = committed.expect("committed");
        self.monitors.committed(committed.id, &committed.changes);
        committed.id
    }

    fn add(&mut self, version: Version, requests: &str) -> (db_engine::monitor::MonitorId, String) {
        let spec = Spec::from_json(version, &parse(requests), self.db.schema()).expect("valid");
        let initial = self.monitors.add(&self.db, spec, None);
        (initial.monitor, self.filter.apply(&initial.updates))
    }

    fn flush(&mut self, monitor: db_engine::monitor::MonitorId) -> String {
        let told = self.monitors.flush(&self.db, monitor);
        told.map_or_else(String::new, |(text, _)| self.filter.apply(&text))
    }
}

const INSERT: &str = r#"{"op":"insert","table":"t","row":{"n":1,"s":["set",[1,2]]}}"#;
const UPDATE: &str = r#"{"op":"update","table":"t","where":[],"row":{"s":["set",[2,3]]}}"#;
const DELETE: &str = r#"{"op":"delete","table":"t","where":[]}"#;

#[test]
fn both_forms_of_updates() {
    let mut bench = Bench::new();
    bench.transact(INSERT);
    let (v1, initial) = bench.add(Version::V1, r#"{"t":[{"columns":["n","s"]}]}"#);
    assert_eq!(
        initial,
        r#"{"t":{"<0>":{"new":{"n":1,"s":["set",[1,2]]}}}}"#
    );
    let (v2, initial) = bench.add(Version::V2, r#"{"t":[{"columns":["n","s"]}]}"#);
    assert_eq!(
        initial,
        r#"{"t":{"<0>":{"initial":{"n":1,"s":["set",[1,2]]}}}}"#
    );

    bench.transact(UPDATE);
    assert_eq!(
        bench.flush(v1),
        r#"{"t":{"<0>":{"new":{"n":1,"s":["set",[2,3]]},"old":{"s":["set",[1,2]]}}}}"#
    );
    assert_eq!(
        bench.flush(v2),
        r#"{"t":{"<0>":{"modify":{"s":["set",[1,3]]}}}}"#
    );
    assert_eq!(bench.flush(v2), "");

    bench.transact(DELETE);
    assert_eq!(
        bench.flush(v1),
        r#"{"t":{"<0>":{"old":{"n":1,"s":["set",[2,3]]}}}}"#
    );
    assert_eq!(bench.flush(v2), r#"{"t":{"<0>":{"delete":null}}}"#);

    // An insertion and its update are told as one, and nothing of a row that came and went.
    bench.transact(INSERT);
    bench.transact(UPDATE);
    assert_eq!(
        bench.flush(v2),
        r#"{"t":{"<1>":{"insert":{"n":1,"s":["set",[2,3]]}}}}"#
    );
    bench.transact(DELETE);
    bench.transact(INSERT);
    bench.transact(DELETE);
    assert_eq!(bench.flush(v1), "");
    assert_eq!(bench.flush(v2), r#"{"t":{"<1>":{"delete":null}}}"#);
}

#[test]
fn selections_hide_kinds_of_changes() {
    let mut bench = Bench::new();
    let requests = r#"{"t":[{"columns":["n"],"select":{"modify":false}},
        {"columns":["s"],"select":{"initial":false,"insert":false,"delete":false}}]}"#;
    let (v1, initial) = bench.add(Version::V1, requests);
    assert_eq!(initial, "{}");
    bench.transact(INSERT);
    assert_eq!(bench.flush(v1), r#"{"t":{"<0>":{"new":{"n":1}}}}"#);
    bench.transact(UPDATE);
    assert_eq!(
        bench.flush(v1),
        r#"{"t":{"<0>":{"new":{"s":["set",[2,3]]},"old":{"s":["set",[1,2]]}}}}"#
    );
    bench.transact(r#"{"op":"update","table":"t","where":[],"row":{"n":9}}"#);
    assert_eq!(bench.flush(v1), "");
}

#[test]
fn conditions_choose_rows_and_change() {
    let mut bench = Bench::new();
    let requests = r#"{"t":[{"columns":["n"],"where":[["n","<",2],["n",">",8]]}]}"#;
    let (v2, _) = bench.add(Version::V2, requests);
    for n in [1, 5, 9] {
        bench.transact(&format!(
            r#"{{"op":"insert","table":"t","row":{{"n":{n}}}}}"#
        ));
    }
    let told = bench.flush(v2);
    assert!(
        told.contains("<0>") && told.contains("<2>") && !told.contains("<1>"),
        "{told}"
    );
    bench.transact(
        r#"{"op":"mutate","table":"t","where":[["n","==",9]],"mutations":[["n","-=",2]]}"#,
    );
    assert_eq!(bench.flush(v2), r#"{"t":{"<2>":{"delete":null}}}"#);

    let spec = Arc::clone(bench.monitors.spec(v2).expect("monitor"));
    let conditions = parse(r#"{"t":[{"where":[["n","==",5]]}]}"#);
    let conditions = parse_conditions(&conditions, &spec, bench.db.schema()).expect("valid");
    let told = bench.monitors.change_conditions(&bench.db, v2, conditions);
    let told = bench.filter.apply(&told.expect("rows come and go").0);
    assert!(
        told.contains(r#""<0>":{"delete":null}"#) && told.contains(r#""<1>":{"insert":{"n":5}}"#),
        "{told}"
    );
}

#[test]
fn clients_come_back_to_where_they_were() {
    let mut bench = Bench::new();
    let requests = r#"{"t":[{"columns":["n"]}]}"#;
    bench.monitors.tell_ids(true);
    bench.transact(INSERT);
    let known = bench.transact(r#"{"op":"update","table":"t","where":[],"row":{"n":2}}"#);
    let last = bench.transact(r#"{"op":"update","table":"t","where":[],"row":{"n":3}}"#);
    let add = |bench: &mut Bench, since| {
        let spec =
            Spec::from_json(Version::V3, &parse(requests), bench.db.schema()).expect("valid");
        let initial = bench.monitors.add(&bench.db, spec, Some(since));
        (
            initial.found,
            initial.last_id,
            bench.filter.apply(&initial.updates),
        )
    };
    let told = add(&mut bench, known);
    assert_eq!(
        told,
        (true, last, r#"{"t":{"<0>":{"modify":{"n":3}}}}"#.to_owned())
    );
    let told = add(&mut bench, last);
    assert_eq!(told, (true, last, "{}".to_owned()));
    let told = add(&mut bench, db_model::Uuid::nil());
    assert_eq!(
        told,
        (
            false,
            last,
            r#"{"t":{"<0>":{"initial":{"n":3}}}}"#.to_owned()
        )
    );
}

#[test]
fn a_monitor_that_lags_is_told_the_sum() {
    let mut bench = Bench::new();
    let (slow, _) = bench.add(Version::V2, r#"{"t":[{"columns":["n"]}]}"#);
    bench.transact(INSERT);
    for _ in 0..3000 {
        bench.transact(r#"{"op":"mutate","table":"t","where":[],"mutations":[["n","+=",1]]}"#);
    }
    assert_eq!(bench.flush(slow), r#"{"t":{"<0>":{"insert":{"n":3001}}}}"#);
    assert_eq!(bench.flush(slow), "");
}

#[test]
fn identical_monitors_share_one_text() {
    let mut bench = Bench::new();
    let requests = r#"{"t":[{"columns":["n"]}]}"#;
    let (a, _) = bench.add(Version::V2, requests);
    let (b, _) = bench.add(Version::V2, requests);
    bench.transact(INSERT);
    let a = bench.monitors.flush(&bench.db, a).expect("told").0;
    let b = bench.monitors.flush(&bench.db, b).expect("told").0;
    assert!(Arc::ptr_eq(&a, &b));
}

#[test]
fn bad_requests_say_why() {
    let db = database(SCHEMA);
    for (requests, said) in [
        (
            "[]",
            "syntax \"[]\": syntax error: monitor-requests must be object",
        ),
        (r#"{"x":{}}"#, "syntax error: no table named x"),
        (
            r#"{"t":{"columns":["q"]}}"#,
            r#"syntax "["q"]": syntax error: q is not a valid column name"#,
        ),
        (
            r#"{"t":[{"columns":["n"]},{"columns":["n"]}]}"#,
            r#"syntax "["n"]": syntax error: column n mentioned more than once"#,
        ),
    ] {
        let error =
            Spec::from_json(Version::V1, &parse(requests), db.schema()).expect_err("refused");
        assert_eq!(error.to_string(), said);
    }
}
