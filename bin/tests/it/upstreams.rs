//! Database servers behind other database servers: relays and backups.

use std::path::Path;
use std::process::Command;

use testkit::{Daemon, Need, Scratch, Stack, eventually, need, output};

use crate::ours;

const SCHEMA: &str = r#"{"name":"d","version":"1.0.0","tables":{
    "t":{"columns":{"n":{"type":"integer"}},"isRoot":true},
    "u":{"columns":{"n":{"type":"integer"}},"isRoot":true}}}"#;

struct Servers {
    folder: Scratch,
}

impl Servers {
    fn new() -> Self {
        let this = Self {
            folder: Scratch::new(),
        };
        std::fs::write(this.folder.file("schema"), SCHEMA).unwrap();
        this
    }

    fn create(&self, file: &str) {
        let (made, text) = self.tool("ovsdb-tool", &["create", file, "schema"]);
        assert!(made, "{text}");
    }

    fn tool(&self, name: &str, args: &[&str]) -> (bool, String) {
        let mut command = Command::new(ours().tools.join(name));
        command.env("OVS_RUNDIR", self.folder.path());
        let output = output(command.args(args).current_dir(self.folder.path()));
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    /// A server of one make with `args`, which listens on socket `name`.
    fn start_of(&self, program: &Path, name: &str, args: &[&str]) -> Daemon {
        let mut server = Command::new(program);
        server
            .arg(format!(
                "--unixctl={}",
                self.folder.file(&format!("{name}.ctl")).display()
            ))
            .arg(format!(
                "--remote=punix:{}",
                self.folder.file(name).display()
            ))
            .arg(format!(
                "--log-file={}",
                self.folder.file(&format!("{name}.log")).display()
            ))
            .args(["-vconsole:off", "--no-chdir"])
            .args(args)
            .env("OVS_RUNDIR", self.folder.path())
            .current_dir(self.folder.path());
        let daemon = Daemon::start(&mut server);
        eventually("the server answers", || {
            self.tool("ovsdb-client", &["list-dbs", &format!("unix:{name}")])
                .0
        });
        daemon
    }

    fn start(&self, name: &str, args: &[&str]) -> Daemon {
        self.start_of(&ours().daemons.join("ovsdb-server"), name, args)
    }

    fn transact(&self, name: &str, operation: &str) -> String {
        let transaction = format!(r#"["d",{operation}]"#);
        let server = format!("unix:{name}");
        self.tool("ovsdb-client", &["transact", &server, &transaction])
            .1
    }

    fn insert(&self, name: &str, table: &str, n: u32) -> String {
        self.transact(
            name,
            &format!(r#"{{"op":"insert","table":"{table}","row":{{"n":{n}}}}}"#),
        )
    }

    fn dump(&self, name: &str) -> String {
        self.tool("ovsdb-client", &["dump", &format!("unix:{name}"), "d"])
            .1
    }

    fn control(&self, name: &str, args: &[&str]) -> (bool, String) {
        let socket = self
            .folder
            .file(&format!("{name}.ctl"))
            .display()
            .to_string();
        self.tool("ovs-appctl", &[&["-t", &socket], args].concat())
    }
}

#[test]
fn relays_serve_a_database_of_another_server() {
    let servers = Servers::new();
    servers.create("db");
    let root = servers.start("root", &["db"]);
    let _first = servers.start("first", &["relay:d:unix:root"]);
    let second = format!(
        "relay:d:unix:{},unix:first",
        servers.folder.file("nobody").display()
    );
    let _second = servers.start("second", &[&second]);
    eventually("the relay knows the database", || {
        servers.insert("second", "t", 1).contains("uuid")
    });
    assert_eq!(servers.dump("root"), servers.dump("second"));
    drop(root);
    // What is here can still be read.
    assert!(servers.dump("second").contains('1'));
    let _root = servers.start("root", &["db"]);
    eventually("the relays found the source again", || {
        let told = servers.tool(
            "ovsdb-client",
            &["-t", "5", "wait", "unix:second", "d", "connected"],
        );
        told.0 && servers.insert("second", "t", 2).contains("uuid")
    });
    eventually("all agree", || {
        servers.dump("root") == servers.dump("second")
    });
    let (done, text) = servers.control(
        "first",
        &["ovsdb-server/set-relay-source-probe-interval", "x"],
    );
    assert!(
        !done && text.contains("Invalid probe interval, integer value expected"),
        "{text}"
    );
    let probe = ["ovsdb-server/set-relay-source-probe-interval", "9000"];
    assert_eq!(servers.control("first", &probe), (true, String::new()));
    let remove = ["ovsdb-server/remove-db", "d"];
    assert_eq!(servers.control("second", &remove), (true, String::new()));
    let add = ["ovsdb-server/add-db", "relay:d:unix:first"];
    assert_eq!(servers.control("second", &add), (true, String::new()));
    eventually("it is there again", || {
        servers.dump("root") == servers.dump("second")
    });
    let again = servers.control("second", &["ovsdb-server/add-db", "relay:d:unix:root"]);
    assert!(
        again.1.contains("d: duplicate database name"),
        "{}",
        again.1
    );
}

#[test]
fn relays_of_both_makes_form_a_chain() {
    if !need("relays_of_both_makes_form_a_chain", &[Need::DebianOvs]) {
        return;
    }
    let original = Stack::debian().unwrap().daemon("ovsdb-server");
    let servers = Servers::new();
    servers.create("db");
    let _root = servers.start_of(&original, "root", &["db"]);
    let _first = servers.start("first", &["relay:d:unix:root"]);
    let _second = servers.start_of(&original, "second", &["relay:d:unix:first"]);
    let _third = servers.start("third", &["relay:d:unix:second"]);
    eventually("changes go all the way", || {
        servers.insert("third", "t", 1).contains("uuid")
    });
    eventually("all agree", || {
        servers.dump("root") == servers.dump("third")
    });
}

#[test]
fn a_backup_follows_until_it_is_told_to_take_over() {
    let servers = Servers::new();
    servers.create("one");
    servers.create("two");
    let active = servers.start("active", &["one"]);
    let args = [
        "--sync-from=unix:active",
        "--sync-exclude-tables=d:u",
        "two",
    ];
    let _backup = servers.start("backup", &args);
    assert!(servers.insert("active", "t", 7).contains("uuid"));
    assert!(servers.insert("active", "u", 8).contains("uuid"));
    let status = || servers.control("backup", &["ovsdb-server/sync-status"]).1;
    let following = "database: d\nstate: backup\nreplicating: unix:active\nexclude: d:u\n";
    eventually("the backup follows", || status() == following);
    eventually("the row is there", || servers.dump("backup").contains("7"));
    let refused = servers.insert("backup", "t", 9);
    assert!(
        refused.contains("when database server is in read only mode"),
        "{refused}"
    );
    drop(active);
    let (done, text) = servers.control("backup", &["ovsdb-server/disconnect-active-ovsdb-server"]);
    assert!(done, "{text}");
    assert_eq!(status(), "database: d\nstate: active\n");
    assert!(servers.insert("backup", "t", 9).contains("uuid"));
    // What was followed is in the file.
    let (_, text) = servers.tool(
        "ovsdb-tool",
        &[
            "query",
            "two",
            r#"["d",{"op":"select","table":"t","where":[],"columns":["n"]}]"#,
        ],
    );
    assert!(text.contains("7") && text.contains("9"), "{text}");
    // The roles are changed: the new one follows the old backup, and forgets what is only here.
    let active = servers.start("active", &["one"]);
    let set = ["ovsdb-server/set-active-ovsdb-server", "unix:backup"];
    assert!(servers.control("active", &set).0);
    assert!(
        servers
            .control("active", &["ovsdb-server/connect-active-ovsdb-server"])
            .0
    );
    eventually("it has what the new active server has", || {
        let dump = servers.dump("active");
        dump.contains('9') && dump.contains('8')
    });
    let exclude = ["ovsdb-server/set-sync-exclude-tables", "t,d:u"];
    assert!(servers.control("active", &exclude).0);
    eventually("it follows nothing but what is left", || {
        let status = servers.control("active", &["ovsdb-server/sync-status"]).1;
        status.ends_with("exclude: d:t,d:u\n")
    });
    drop(active);
}
