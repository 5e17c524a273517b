//! A database server that its monitor starts again.

use std::process::Command;

use testkit::{Scratch, eventually, output};

use crate::ours;

fn program(scratch: &Scratch, name: &str, args: &[&str]) -> String {
    let mut command = Command::new(ours().daemons.join(name));
    for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, scratch.path());
    }
    let output = output(command.current_dir(scratch.path()).args(args));
    assert!(output.status.success(), "{name} {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pid(scratch: &Scratch) -> i32 {
    let text = std::fs::read_to_string(scratch.file("ovsdb-server.pid")).unwrap();
    text.trim().parse().unwrap()
}

/// Databases and remotes that were added and removed while it ran are as they were after a
/// crash, which a command line does not know of.
#[test]
fn what_was_set_up_at_run_time_outlives_a_crash() {
    let scratch = Scratch::new();
    for name in ["one", "two", "three"] {
        let schema = format!(
            r#"{{"name":"{name}","version":"1.0.0","tables":{{"t":{{"columns":{{"n":{{"type":"integer"}}}}}}}}}}"#
        );
        std::fs::write(scratch.file("schema"), schema).unwrap();
        program(&scratch, "ovsdb-tool", &["create", name, "schema"]);
    }
    let start = [
        "one",
        "two",
        "--remote=punix:first",
        "--remote=punix:second",
        "--pidfile",
        "--detach",
        "--monitor",
    ];
    program(&scratch, "ovsdb-server", &start);
    let ask = |args: &[&str]| {
        program(
            &scratch,
            "ovs-appctl",
            &[&["-t", "ovsdb-server"], args].concat(),
        )
    };
    ask(&["ovsdb-server/add-db", "three"]);
    ask(&["ovsdb-server/remove-db", "one"]);
    ask(&["ovsdb-server/add-remote", "punix:third"]);
    ask(&["ovsdb-server/remove-remote", "punix:first"]);
    ask(&["ovsdb-server/add-db", "relay:far:unix:nowhere"]);
    ask(&["ovsdb-server/set-active-ovsdb-server", "unix:elsewhere"]);
    ask(&["ovsdb-server/set-sync-exclude-tables", "two:t"]);
    ask(&["ovsdb-server/connect-active-ovsdb-server"]);
    let setup = || {
        [
            "ovsdb-server/list-dbs",
            "ovsdb-server/list-remotes",
            "ovsdb-server/sync-status",
            "ovsdb-server/get-active-ovsdb-server",
            "ovsdb-server/get-sync-exclude-tables",
        ]
        .map(|command| ask(&[command]))
    };
    let wanted = [
        "_Server\nfar\nthree\ntwo\n",
        "punix:second\npunix:third\n",
        "database: three\nstate: backup\nconnecting: unix:elsewhere\n\
         database: two\nstate: backup\nconnecting: unix:elsewhere\n",
        "unix:elsewhere\n",
        "two:t\n",
    ];
    assert_eq!(setup(), wanted);

    let first = pid(&scratch);
    let process = rustix::process::Pid::from_raw(first).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::SEGV).unwrap();
    eventually("another child serves", || {
        let socket = scratch.file(&format!("ovsdb-server.{first}.ctl"));
        let second = pid(&scratch);
        !socket.exists()
            || second != first && scratch.file(&format!("ovsdb-server.{second}.ctl")).exists()
    });
    assert_eq!(setup(), wanted);
    assert!(!scratch.file("first").exists());
    assert!(scratch.file("third").exists());
    ask(&["exit"]);
}
