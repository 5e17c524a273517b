//! Records and messages that a cluster of three of Open vSwitch's servers wrote, read and
//! written again.

use db_model::{Uuid, UuidSource, parse_uuid};
use db_raft::message::Message;
use db_raft::record::{Header, Membership, Record, create_cluster, join_cluster};
use db_raft::{Data, Entry, Servers};
use json::Json;

const MESSAGES: &str = include_str!("golden/messages.txt");
const RECORDS: &str = include_str!("golden/records.txt");

fn parse(text: &str) -> Json {
    json::parse(text.as_bytes()).expect("valid JSON")
}

/// JSON as it comes out at the other end.
fn again(json: &Json) -> Json {
    parse(&json.to_string())
}

fn uuid(json: &Json, name: &str) -> Uuid {
    let text = json.get(name).and_then(Json::as_str);
    text.and_then(parse_uuid).unwrap_or_default()
}

/// The same with arrays that are sets in order.
fn sorted(mut json: Json) -> Json {
    if let Json::Object(object) = &mut json
        && let Some(Json::Array(elements)) = object.get_mut("remote_addresses")
    {
        elements.sort_by_key(Json::to_string);
    }
    json
}

#[test]
fn messages_are_read_written_and_told() {
    let mut count = 0;
    for case in MESSAGES.trim_end().split("\n\n") {
        let lines: Vec<&str> = case.lines().collect();
        let [method, params, rest @ ..] = &lines[..] else {
            panic!("{case}");
        };
        let json = parse(params);
        let (mut cid, to, from) = (
            uuid(&json, "cluster"),
            uuid(&json, "to"),
            uuid(&json, "from"),
        );
        let params = Json::Array(vec![json.clone()]);
        let message = Message::from_params(method, &params, &mut cid, to).expect(case);
        assert_eq!(message.body.method(), *method);
        assert_eq!(message.peer, from);
        if let [text] = rest {
            assert_eq!(message.to_string(), *text);
        }
        let back = Message {
            peer: to,
            ..message
        };
        let back = back.to_params(uuid(&json, "cluster"), from);
        let back = sorted(again(&back[0]));
        assert_eq!(back, sorted(json));
        count += 1;
    }
    assert!(count >= 27, "{count}");
}

#[test]
fn records_are_read_and_written() {
    for line in RECORDS.lines() {
        let json = parse(line);
        let back = if json.get("server_id").is_some() {
            Header::from_json(&json).expect(line).to_json()
        } else {
            Record::from_json(&json).expect(line).to_json()
        };
        assert_eq!(sorted(again(&back)), sorted(json));
    }
}

#[test]
fn a_message_for_another_is_refused() {
    let sid = Uuid::from_u128(0xaaaa << 112);
    let cluster = Uuid::from_u128(0xcccc << 112);
    let read = |method: &str, params: &str| {
        let params = parse(params);
        let mut cid = cluster;
        Message::from_params(method, &params, &mut cid, sid).map_err(|error| {
            let details = error.details().unwrap_or_default().to_owned();
            details.replace(&Uuid::nil().to_string(), "NIL")
        })
    };
    let id = |digit: &str| format!("{}-0000-0000-0000-000000000000", digit.repeat(8));
    let (from, to, cid) = (id("b"), sid.to_string(), cluster.to_string());
    for (method, params, said) in [
        ("dance", "[]".to_owned(), "unknown method dance".to_owned()),
        (
            "become_leader",
            "[]".to_owned(),
            "become_leader RPC has 0 parameters (expected 1)".to_owned(),
        ),
        (
            "become_leader",
            format!(
                r#"[{{"cluster":"{}","to":"{to}","from":"{from}","term":1}}]"#,
                id("d")
            ),
            "Parsing raft become_leader RPC failed: wrong cluster dddd (expected cccc)".to_owned(),
        ),
        (
            "become_leader",
            format!(r#"[{{"cluster":"{cid}","to":"{from}","from":"{from}","term":1}}]"#),
            "Parsing raft become_leader RPC failed: misrouted message (addressed to bbbb but \
             we're aaaa)"
                .to_owned(),
        ),
        (
            "become_leader",
            format!(r#"[{{"cluster":"{cid}","to":"{to}","from":"{from}","term":-1}}]"#),
            "Parsing raft become_leader RPC failed: term is out of range".to_owned(),
        ),
        (
            "append_reply",
            format!(
                r#"[{{"cluster":"{cid}","to":"{to}","from":"{from}","term":1,"log_end":1,
                "prev_log_index":1,"prev_log_term":1,"n_entries":0,"result":"maybe"}}]"#
            ),
            "Parsing raft append_reply RPC failed: unknown result \"maybe\"".to_owned(),
        ),
        (
            "execute_command_reply",
            format!(
                r#"[{{"cluster":"{cid}","to":"{to}","from":"{from}","result":"{to}","status":"x"}}]"#
            ),
            "Parsing raft execute_command_reply RPC failed: unknown status \"x\"".to_owned(),
        ),
    ] {
        assert_eq!(read(method, &params), Err(said), "{params}");
    }
}

#[test]
fn a_cluster_is_learned_from_the_first_message() {
    let json = parse(MESSAGES.lines().nth(1).expect("a line"));
    let (cluster, to) = (uuid(&json, "cluster"), uuid(&json, "to"));
    let mut cid = Uuid::nil();
    let method = MESSAGES.lines().next().expect("a line");
    Message::from_params(method, &Json::Array(vec![json]), &mut cid, to).expect("good");
    assert_eq!(cid, cluster);
    assert!(!cid.is_nil());
}

#[test]
fn new_files_are_those_of_a_cluster() {
    let mut uuids = UuidSource::new([7; 32]);
    let contents = Data::from_text(r#"[{"name":"x","tables":{}},{}]"#);
    let records = create_cluster("x", "unix:s1.raft", contents.clone(), 2000, &mut uuids);
    let records = records.expect("good");
    let header = Header::from_json(&again(&records[0])).expect("header");
    assert_eq!(&*header.name, "x");
    let servers = Servers::from_iter([(header.sid, "unix:s1.raft".into())]);
    let Membership::Member { index: 1, snapshot } = header.membership else {
        panic!("not a member");
    };
    let eid = snapshot.eid;
    let expected = Entry {
        term: 1,
        data: Some(contents.clone()),
        eid,
        servers: Some(servers),
        election_timer: 0,
    };
    assert_eq!(snapshot, expected);
    assert_eq!(
        records[1].to_string(),
        r#"{"election_timer":2000,"index":2,"term":1}"#
    );
    let bad = create_cluster("x", "unix:s1.raft", contents.clone(), 99, &mut uuids);
    let bad = bad.expect_err("too short").to_string();
    assert_eq!(
        bad,
        "ovsdb error: election timer must be between 100 and 600000, in msec."
    );

    let remotes = ["unix:a".to_owned(), "unix:b".to_owned()];
    let record = join_cluster("x", "tcp:1.2.3.4:5", &remotes, None, &mut uuids).expect("good");
    let header = Header::from_json(&again(&record)).expect("header");
    assert!(header.cid.is_nil());
    let wanted = remotes
        .iter()
        .map(|remote| remote.as_str().into())
        .collect();
    assert_eq!(header.membership, Membership::Joining(wanted));
    let same = join_cluster("x", "unix:a", &remotes, None, &mut uuids).expect_err("same");
    let said = "ovsdb error: remote addresses cannot be the same as the local address";
    assert_eq!(same.to_string(), said);
    let nil = join_cluster("x", "unix:c", &remotes, Some(Uuid::nil()), &mut uuids);
    let said = "ovsdb error: all-zero UUID is not valid cluster ID";
    assert_eq!(nil.expect_err("all zeros").to_string(), said);
}
