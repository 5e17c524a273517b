//! `ovsdb-tool --rbac-role`.

use testkit::Scratch;
use vs_ctl::{Env, Exit};

const SCHEMA: &str = r#"{"name":"d","version":"1.0.0","tables":{
    "RBAC_Role":{"columns":{"name":{"type":"string"},
        "permissions":{"type":{"key":"string","value":{"type":"uuid","refTable":"RBAC_Permission"},
            "min":0,"max":"unlimited"}}},"isRoot":true},
    "RBAC_Permission":{"columns":{"table":{"type":"string"},
        "authorization":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "insert_delete":{"type":"boolean"},
        "update":{"type":{"key":"string","min":0,"max":"unlimited"}}},"isRoot":true},
    "t":{"columns":{"n":{"type":"integer"}},"isRoot":true}}}"#;

fn tool(folder: &Scratch, args: &[&str]) -> (Exit, String) {
    let args = ["ovsdb-tool"].iter().chain(args).map(|arg| match *arg {
        "db" | "schema" => folder.file(arg).display().to_string(),
        other => other.to_owned(),
    });
    let (mut out, mut err, mut stdin) = (Vec::new(), Vec::new(), std::io::empty());
    let mut env = Env::new("ovsdb-tool", &mut stdin, &mut out, &mut err);
    let exit = vs_ctl::ovsdb_tool::run(&mut env, &args.collect::<Vec<_>>());
    let said = String::from_utf8([out, err].concat()).expect("text");
    (exit, said)
}

#[test]
fn a_role_restricts_transactions() {
    let folder = Scratch::new();
    std::fs::write(folder.file("schema"), SCHEMA).expect("written");
    assert_eq!(tool(&folder, &["create", "db", "schema"]).0, Exit::SUCCESS);
    let rules = r#"["d",{"op":"insert","table":"RBAC_Permission","uuid-name":"p",
        "row":{"table":"t","authorization":"","insert_delete":true,"update":"n"}},
        {"op":"insert","table":"RBAC_Role","row":{"name":"clerk",
        "permissions":["map",[["t",["named-uuid","p"]]]]}}]"#;
    let (exit, said) = tool(&folder, &["transact", "db", rules]);
    assert!(exit == Exit::SUCCESS && !said.contains("error"), "{said}");
    let insert = r#"["d",{"op":"insert","table":"t","row":{"n":1}}]"#;
    let role = r#"["d",{"op":"insert","table":"RBAC_Role","row":{"name":"king"}}]"#;
    for (who, what, allowed) in [
        // Rules speak of clients by their certificates, which nobody shows here.
        ("--rbac-role=clerk", insert, false),
        ("--rbac-role=clerk", role, false),
        ("--rbac-role=nobody", insert, false),
        ("--rbac-role=", insert, true),
        ("--more", role, true),
    ] {
        for command in ["query", "transact"] {
            let (exit, said) = tool(&folder, &[who, command, "db", what]);
            assert_eq!(exit, Exit::SUCCESS, "{said}");
            assert_eq!(!said.contains("permission error"), allowed, "{who} {said}");
        }
    }
}
