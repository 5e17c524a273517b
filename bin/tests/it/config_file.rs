//! A database server whose databases and remotes are named in a file.

use std::process::Command;

use testkit::{Daemon, Scratch, eventually, output};

use crate::ours;

fn tool(name: &str, args: &[&str], folder: &Scratch) -> (bool, String) {
    let mut command = Command::new(ours().tools.join(name));
    command.env("OVS_RUNDIR", folder.path());
    let output = output(command.args(args).current_dir(folder.path()));
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn a_server_follows_its_configuration_file() {
    let folder = Scratch::new();
    for name in ["one", "two"] {
        let schema = format!(
            r#"{{"name":"{name}","version":"1.0.0","tables":{{"t":{{"columns":{{"n":{{"type":"integer"}}}}}}}}}}"#
        );
        std::fs::write(folder.file("schema"), schema).unwrap();
        let made = tool("ovsdb-tool", &["create", name, "schema"], &folder);
        assert!(made.0, "{}", made.1);
    }
    let config = folder.file("config.json");
    let write = |text: &str| std::fs::write(&config, text).unwrap();
    write(r#"{"remotes":{"punix:sock1":{}},"databases":{"one":{}}}"#);
    let mut server = Command::new(ours().daemons.join("ovsdb-server"));
    server
        .arg(format!("--config-file={}", config.display()))
        .arg(format!("--unixctl={}", folder.file("ctl").display()))
        .arg("-vconsole:off")
        .env("OVS_RUNDIR", folder.path())
        .current_dir(folder.path());
    let _server = Daemon::start(&mut server);
    let socket = folder.file("ctl").display().to_string();
    let ask = |args: &[&str]| tool("ovs-appctl", &[&["-t", &socket], args].concat(), &folder);
    eventually("the server answers", || ask(&["version"]).0);
    let databases = || ask(&["ovsdb-server/list-dbs"]).1;
    assert_eq!(databases(), "_Server\none\n");

    write(r#"{"remotes":{"punix:sock2":null},"databases":{"two":{"service-model":"standalone"}}}"#);
    assert_eq!(ask(&["ovsdb-server/reload"]), (true, String::new()));
    assert_eq!(databases(), "_Server\ntwo\n");
    assert_eq!(ask(&["ovsdb-server/list-remotes"]).1, "punix:sock2\n");
    eventually("the remotes have changed", || {
        folder.file("sock2").exists() && !folder.file("sock1").exists()
    });

    // What is wrong with the file changes nothing, and other ways to change things are shut.
    write(r#"{"remotes":{},"databases":{"two":{"service-model":"odd"}}}"#);
    let (done, text) = ask(&["ovsdb-server/reload"]);
    assert!(
        !done && text.contains("See the log file for details"),
        "{text}"
    );
    assert_eq!(databases(), "_Server\ntwo\n");
    let (done, text) = ask(&["ovsdb-server/add-db", "one"]);
    let told = text.contains("config.json and use ovsdb-server/reload instead");
    assert!(!done && told, "{text}");
}

#[test]
fn a_bad_configuration_file_ends_the_server() {
    let folder = Scratch::new();
    let config = folder.file("config.json").display().to_string();
    std::fs::write(&config, "[]").unwrap();
    let config = format!("--config-file={config}");
    let control = format!("--unixctl={}", folder.file("ctl").display());
    let args = [config.as_str(), &control];
    let (served, text) = tool("ovsdb-server", &args, &folder);
    assert!(
        !served && text.contains("ovsdb-server: server configuration failed"),
        "{text}"
    );
    let (served, text) = tool("ovsdb-server", &[&config, "--remote=punix:s"], &folder);
    assert!(
        !served && text.contains("mutually exclusive with --remote"),
        "{text}"
    );
    let (served, text) = tool("ovsdb-server", &[&config, "db"], &folder);
    assert!(
        !served && text.contains("specified in a config file"),
        "{text}"
    );
}

#[test]
fn a_remote_whose_clients_have_a_role_is_not_open_to_all() {
    let folder = Scratch::new();
    let string = r#"{"type":{"key":"string","min":0,"max":1}}"#;
    let strings = r#"{"type":{"key":"string","min":0,"max":"unlimited"}}"#;
    let schema = format!(
        r#"{{"name":"d","version":"1.0.0","tables":{{
            "Global":{{"isRoot":true,"columns":{{"connections":{{"type":
                {{"key":{{"type":"uuid","refTable":"Connection"}},"min":0,"max":"unlimited"}}}}}}}},
            "Connection":{{"columns":{{"target":{{"type":"string"}},"role":{string}}}}},
            "RBAC_Role":{{"isRoot":true,"columns":{{"name":{{"type":"string"}},"permissions":{{"type":
                {{"key":"string","value":{{"type":"uuid","refTable":"RBAC_Permission"}},"min":0,"max":"unlimited"}}}}}}}},
            "RBAC_Permission":{{"columns":{{"table":{{"type":"string"}},"authorization":{strings},
                "insert_delete":{{"type":"boolean"}},"update":{strings}}}}}}}}}"#
    );
    std::fs::write(folder.file("schema"), schema).unwrap();
    let made = tool("ovsdb-tool", &["create", "d", "schema"], &folder);
    assert!(made.0, "{}", made.1);
    let mut server = Command::new(ours().daemons.join("ovsdb-server"));
    server
        .args([
            "--remote=punix:own",
            "--remote=db:d,Global,connections",
            "d",
        ])
        .arg(format!("--unixctl={}", folder.file("ctl").display()))
        .arg("-vconsole:off")
        .env("OVS_RUNDIR", folder.path())
        .current_dir(folder.path());
    let _server = Daemon::start(&mut server);
    let through = |socket: &str, operations: &str| {
        let transaction = format!(r#"["d",{operations}]"#);
        let socket = format!("unix:{socket}");
        tool(
            "ovsdb-client",
            &["transact", &socket, &transaction],
            &folder,
        )
    };
    eventually("the server answers", || {
        through("own", r#"{"op":"comment","comment":""}"#).0
    });
    let row = |name: &str, role: &str| {
        format!(
            r#"{{"op":"insert","table":"Connection","uuid-name":"{name}","row":{{"target":"punix:{name}","role":{role}}}}}"#
        )
    };
    let rows = [
        row("guarded", r#""controller""#),
        row("open", r#"["set",[]]"#),
        row("plain", r#""""#),
    ];
    let names = ["guarded", "open", "plain"].map(|name| format!(r#"["named-uuid","{name}"]"#));
    let (done, text) = through(
        "own",
        &format!(
            r#"{},{{"op":"insert","table":"Global","row":{{"connections":["set",[{}]]}}}}"#,
            rows.join(","),
            names.join(",")
        ),
    );
    assert!(done && !text.contains("error"), "{text}");
    eventually("the remotes are served", || {
        let mut all = ["guarded", "open", "plain"].into_iter();
        all.all(|name| folder.file(name).exists())
    });
    let change = r#"{"op":"update","table":"Global","where":[],"row":{"connections":["set",[]]}}"#;
    // Nobody knows who a client without a certificate is.
    let (_, text) = through("guarded", change);
    let denied = r#"RBAC rules for client \"(null)\" role \"controller\" prohibit modification of table \"Global\"."#;
    assert!(text.contains(denied), "{text}");
    let (_, text) = through(
        "guarded",
        r#"{"op":"select","table":"Global","where":[],"columns":[]}"#,
    );
    assert!(text.contains("rows"), "{text}");
    std::fs::write(folder.file("schema"), r#"{"name":"d","tables":{}}"#).unwrap();
    let (done, text) = tool(
        "ovsdb-client",
        &["convert", "unix:guarded", "schema"],
        &folder,
    );
    assert!(
        !done && text.contains("only the root role may convert databases"),
        "{text}"
    );
    for name in ["open", "plain"] {
        let (_, text) = through(
            name,
            r#"{"op":"mutate","table":"Global","where":[],"mutations":[]}"#,
        );
        assert!(text.contains(r#"{"count":1}"#), "{text}");
    }
    let insert = r#"{"op":"insert","table":"Global","row":{}}"#;
    for (name, answer) in [("guarded", "prohibit row insertion"), ("open", "uuid")] {
        let (_, text) = through(name, insert);
        assert!(text.contains(answer), "{text}");
    }
}
