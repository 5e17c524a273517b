//! `ovsdb-client` against a server in this process.  The texts are those that the original prints.

use vs_ctl::Exit;

use crate::server::TestServer;

fn message(s: &TestServer, command: &str, args: &[&str]) -> String {
    let ran = s.client(command, args);
    assert_eq!(
        (ran.exit, &*ran.out),
        (Exit::FAILURE, ""),
        "{command} {args:?}"
    );
    let message = ran.err.strip_prefix("ovsdb-client: ").expect("a message");
    message.trim_end().to_owned()
}

#[test]
fn what_is_no_transaction_is_not_sent() {
    let s = TestServer::start();
    for transaction in ["[]", "{}", "[1]", "[[]]", "3e"] {
        for command in ["transact", "query"] {
            let expected = match transaction {
                "3e" => {
                    "\"3e\": line 0, column 2, byte 2: exponent must contain at least one digit"
                }
                _ => "not a valid OVSDB query",
            };
            assert_eq!(message(&s, command, &[transaction]), expected, "{command}");
        }
    }
}

#[test]
fn a_query_changes_nothing_and_shows_errors() {
    let s = TestServer::start();
    let insert = r#"["hardware_vtep",{"op":"insert","table":"Logical_Switch","row":{"name":"a"}}]"#;
    let ran = s.client("query", &[insert]);
    assert!(ran.out.starts_with("[{\"uuid\":"), "{ran:?}");
    let count = r#"["hardware_vtep",{"op":"select","table":"Logical_Switch","where":[]}]"#;
    assert_eq!(s.client("query", &[count]).out, "[{\"rows\":[]}]\n");
    // What fails by itself is shown as it is.
    let wrong = r#"["hardware_vtep",{"op":"select","table":"X","where":[]}]"#;
    let ran = s.client("query", &[wrong]);
    assert!(ran.out.contains("No table named X."), "{ran:?}");
}

#[test]
fn dumps_are_sorted_by_what_is_no_uuid() {
    let s = TestServer::start();
    for name in ["c", "a", "b"] {
        s.vtep(&format!(
            "add-ls {name} -- add-ucast-local {name} 0{name}:00:00:00:00:00 1.1.1.1"
        ));
    }
    let ran = s.client(
        "dump",
        &[
            "hardware_vtep",
            "Ucast_Macs_Local",
            "logical_switch",
            "MAC",
            "_version",
        ],
    );
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[1].starts_with("MAC"), "{lines:?}");
    assert!(lines[1].trim_end().ends_with("logical_switch"), "{lines:?}");
    let macs: Vec<&str> = lines[3..]
        .iter()
        .filter_map(|line| line.get(1..3))
        .collect();
    assert_eq!(macs, ["0a", "0b", "0c"]);
}

#[test]
fn what_cannot_be_is_told() {
    let s = TestServer::start();
    assert_eq!(
        message(&s, "monitor-cond", &["hardware_vtep", "[true]", "ALL"]),
        "ALL tables are not allowed with condition"
    );
    let ran = s.client("wait", &["x", "there"]);
    assert_eq!(ran.err, "ovsdb-client: there: unknown state\n");
    let help = s.client("--help", &[]).out;
    assert!(help.contains("\n  -t, --timeout=SECS          limits ovsdb-client runtime to\n"));
    assert!(help.contains("\n\n  get-schema-cksum [SERVER] [DATABASE]\n    retrieve schema"));
}
