//! `ovsdb-tool` on files of clustered databases.

use std::path::Path;

use db_engine::log_file::frame_clustered;
use testkit::Scratch;
use vs_ctl::{Env, Exit};

const SCHEMA: &str = r#"{"name":"Fleet","version":"1.2.3","cksum":"1 2","tables":{"Ship":{
    "columns":{"name":{"type":"string"},"crew":{"type":"integer","ephemeral":true}}}}}"#;

/// Runs the tool in a folder.  Returns its status and what it said.
fn tool(folder: &Scratch, args: &[&str]) -> (Exit, String) {
    let path = |arg: &&str| {
        let is_file = arg.ends_with(".db") || arg.ends_with(".json");
        let path = folder.file(arg);
        if is_file {
            path.display().to_string()
        } else {
            (*arg).to_owned()
        }
    };
    let args: Vec<String> = std::iter::once("ovsdb-tool".to_owned())
        .chain(args.iter().map(path))
        .collect();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut stdin: &[u8] = &[];
    let mut env = Env::new("ovsdb-tool", &mut stdin, &mut stdout, &mut stderr);
    let exit = vs_ctl::ovsdb_tool::run(&mut env, &args);
    let said = String::from_utf8([stdout, stderr].concat()).expect("text");
    (
        exit,
        said.replace(&format!("{}/", folder.path().display()), ""),
    )
}

fn good(folder: &Scratch, args: &[&str]) -> String {
    let (exit, said) = tool(folder, args);
    assert_eq!(exit, Exit::SUCCESS, "{args:?}: {said}");
    said
}

fn bad(folder: &Scratch, args: &[&str]) -> String {
    let (exit, said) = tool(folder, args);
    assert_ne!(exit, Exit::SUCCESS, "{args:?}: {said}");
    said
}

fn write(path: &Path, contents: &[u8]) {
    std::fs::write(path, contents).expect("a writable folder");
}

fn folder() -> Scratch {
    let folder = Scratch::new();
    write(&folder.file("schema.json"), SCHEMA.as_bytes());
    folder
}

#[test]
fn a_cluster_is_created_and_asked() {
    let folder = folder();
    good(
        &folder,
        &["create-cluster", "s1.db", "schema.json", "unix:s1.raft"],
    );
    assert_eq!(good(&folder, &["db-name", "s1.db"]), "Fleet\n");
    assert_eq!(
        good(&folder, &["db-local-address", "s1.db"]),
        "unix:s1.raft\n"
    );
    good(&folder, &["db-is-clustered", "s1.db"]);
    assert_eq!(bad(&folder, &["db-is-standalone", "s1.db"]), "");
    let (cid, sid) = (
        good(&folder, &["db-cid", "s1.db"]),
        good(&folder, &["db-sid", "s1.db"]),
    );
    assert_ne!(cid, sid);
    let log = good(&folder, &["show-log", "s1.db"]);
    let (cid, sid) = (&cid[..4], &sid[..4]);
    let expected = format!(
        "record 0:\n name: \"Fleet'\n local address: \"unix:s1.raft\"\n server_id: {sid}\n \
         cluster_id: {cid}\n prev_index: 1\n prev_term: 1\n prev_servers: \
         {sid}(\"unix:s1.raft\")\n"
    );
    assert!(log.starts_with(&expected), "{log}");
    let rest = " prev_schema: \"Fleet\", version=\"1.2.3\", cksum=\"1 2\"\n\n";
    assert!(log.ends_with(rest), "{log}");
    for command in ["db-version", "db-cksum", "compact"] {
        assert_eq!(
            bad(&folder, &[command, "s1.db"]),
            "ovsdb-tool: ovsdb error: s1.db: cannot apply this operation to clustered database \
             file\n"
        );
    }
    let again = bad(
        &folder,
        &["create-cluster", "s1.db", "schema.json", "unix:s1.raft"],
    );
    assert_eq!(
        again,
        "ovsdb-tool: I/O error: s1.db: create failed (File exists)\n"
    );
}

#[test]
fn a_server_is_prepared_to_join() {
    let folder = folder();
    good(
        &folder,
        &[
            "join-cluster",
            "j.db",
            "Fleet",
            "tcp:1.2.3.4:1",
            "tcp:2.3.4.5:2",
        ],
    );
    assert_eq!(
        bad(&folder, &["db-cid", "j.db"]),
        "j.db: cluster ID not yet known\n"
    );
    let cid = "2b4a7f3e-0d2c-4c3e-8e59-6f5d3a6c1b11";
    let option = format!("--cid={cid}");
    let join = [
        &option,
        "join-cluster",
        "k.db",
        "Fleet",
        "tcp:1.2.3.4:1",
        "ssl:[::1]:2",
    ];
    good(&folder, &join);
    assert_eq!(good(&folder, &["db-cid", "k.db"]), format!("{cid}\n"));
    let said = bad(
        &folder,
        &[
            "join-cluster",
            "l.db",
            "a-b",
            "tcp:1.2.3.4:1",
            "tcp:2.3.4.5:2",
        ],
    );
    assert_eq!(
        said,
        "ovsdb-tool: a-b: not a valid schema name (use \"schema-name\" command to find the \
         correct name)\n"
    );
    let said = bad(
        &folder,
        &[
            "--cid=x",
            "join-cluster",
            "l.db",
            "Fleet",
            "unix:a",
            "unix:b",
        ],
    );
    assert_eq!(said, "ovsdb-tool: x: not a valid UUID\n");
    assert_eq!(
        good(&folder, &["show-log", "j.db"]).lines().last(),
        Some(""),
    );
}

#[test]
fn what_was_standalone_is_again_after_a_cluster() {
    let folder = folder();
    good(&folder, &["create", "a.db", "schema.json"]);
    let insert = r#"["Fleet",{"op":"insert","table":"Ship","row":{"name":"Ann"}}]"#;
    good(&folder, &["transact", "a.db", insert]);
    good(
        &folder,
        &["create-cluster", "s1.db", "a.db", "unix:s1.raft"],
    );
    let log = good(&folder, &["-mm", "show-log", "s1.db"]);
    assert!(log.contains("\"created from "), "{log}");
    assert!(log.contains("    name=Ann\n"), "{log}");
    good(&folder, &["cluster-to-standalone", "b.db", "s1.db"]);
    good(&folder, &["db-is-standalone", "b.db"]);
    let select = r#"["Fleet",{"op":"select","table":"Ship","where":[],"columns":["name"]}]"#;
    assert_eq!(
        good(&folder, &["query", "b.db", select]),
        "[{\"rows\":[{\"name\":\"Ann\"}]}]\n"
    );
    assert_eq!(
        bad(&folder, &["cluster-to-standalone", "c.db", "b.db"]),
        "ovsdb-tool: Database is not clustered db.\n\n"
    );
    assert_eq!(
        bad(&folder, &["db-sid", "b.db"]),
        "ovsdb-tool: b.db: not a clustered database\n"
    );
}

/// Writes a file of server `digit` with these records after the header.
fn server(folder: &Scratch, digit: &str, records: &[&str]) -> String {
    let id = |digit: &str| format!("{}-0000-4000-8000-000000000000", digit.repeat(8));
    let header = format!(
        r#"{{"server_id":"{}","cluster_id":"{}","name":"Fleet","local_address":"unix:{digit}",
        "prev_servers":{{"{}":"unix:a","{}":"unix:b"}},"prev_index":1,"prev_term":1,
        "prev_eid":"{}","prev_data":[null,{{}}]}}"#,
        id(digit),
        id("c"),
        id("a"),
        id("b"),
        id("d")
    );
    let records = records.iter().map(|record| record.replace("@a", &id("a")));
    let records = records.map(|record| record.replace("@b", &id("b")));
    let contents: Vec<u8> = std::iter::once(header)
        .chain(records)
        .flat_map(|record| frame_clustered(&record))
        .collect();
    let name = format!("{digit}.db");
    write(&folder.file(&name), &contents);
    name
}

#[test]
fn what_servers_may_not_do_is_found() {
    let two = r#"{"term":2,"index":2}"#;
    for (a, b, said) in [
        (vec![two, r#"{"commit_index":2}"#], vec![two], ""),
        (vec![], vec![], "ovsdb-tool: all logs are empty\n"),
        (
            vec![r#"{"term":2,"leader":"@a"}"#],
            vec![r#"{"term":2,"leader":"@b"}"#],
            "ovsdb-tool: term 2 has two different leaders: a.db says that the leader is a.db and \
             b.db says that the leader is b.db\n",
        ),
        (
            vec![r#"{"term":3,"leader":"@a"}"#, r#"{"term":3,"leader":"@b"}"#],
            vec![],
            "ovsdb-tool: a.db: record 2 reports leader b.db for term 3 but record 1 previously \
             reported the leader as a.db in that term\n",
        ),
        (
            vec![r#"{"term":2,"vote":"@a"}"#, r#"{"term":2,"vote":"@b"}"#],
            vec![],
            "ovsdb-tool: a.db: record 2 votes for a.db in term 2 but a previous record for the \
             same term voted for b.db\n",
        ),
        (
            vec![
                r#"{"term":2,"leader":"@a"}"#,
                two,
                r#"{"term":2,"index":2}"#,
            ],
            vec![],
            "ovsdb-tool: a.db: record 3 truncates log from 3 to 2 entries while server is \
             leader\n",
        ),
        (
            vec![two, r#"{"term":3,"index":2}"#],
            vec![],
            "a.db: record 2 truncates log from 3 to 2 entries\n",
        ),
        (
            vec![r#"{"term":2,"index":3}"#],
            vec![],
            "ovsdb-tool: a.db: record 1 with index 3 skips past expected index 2\n",
        ),
        (
            vec![r#"{"commit_index":7}"#],
            vec![],
            "ovsdb-tool: a.db: record 1 advances commit index to 7 but last log index is 1\n",
        ),
        (
            vec![two, r#"{"commit_index":2}"#],
            vec![r#"{"term":3,"leader":"@b"}"#],
            "ovsdb-tool: leader b.db for term 3 has log entries only up to index 1, but index 2 \
             was committed in a previous term (e.g. by a.db)\n",
        ),
        (
            vec![two],
            vec![r#"{"term":2,"index":2,"election_timer":2000}"#],
            "ovsdb-tool: log entries with index 2 differ:\na.db has {\"term\":2}\nb.db has \
             {\"election_timer\":2000,\"term\":2}\n",
        ),
    ] {
        let folder = Scratch::new();
        let (a, b) = (server(&folder, "a", &a), server(&folder, "b", &b));
        assert_eq!(tool(&folder, &["check-cluster", &a, &b]).1, said);
    }
    let folder = Scratch::new();
    let e = server(&folder, "e", &[two]);
    assert_eq!(
        bad(&folder, &["check-cluster", &e]),
        "ovsdb-tool: e.db: server eeee not found in server list\n"
    );
    assert_eq!(
        bad(&folder, &["check-cluster", &e, &e]),
        "ovsdb-tool: Duplicate server ID eeee in e.db and e.db.\n"
    );
}
