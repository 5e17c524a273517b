//! Daemons that go into the background.

use std::path::Path;
use std::process::Command;

use testkit::{Scratch, output};

fn program(scratch: &Scratch, name: &str, args: &[&str]) -> String {
    let ours = Path::new(env!("CARGO_BIN_EXE_ovs-vswitchd"));
    let mut command = Command::new(ours.with_file_name(name));
    for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, scratch.path());
    }
    let output = output(command.current_dir(scratch.path()).args(args));
    assert!(output.status.success(), "{name} {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The switch is there when its command returns, even if nobody has put a row into the
/// database; and it takes up what comes later.
#[test]
fn a_switch_on_an_empty_database_detaches() {
    let scratch = Scratch::new();
    let schema = scratch.file("schema");
    std::fs::write(&schema, db_model::OPEN_VSWITCH_SCHEMA).unwrap();
    program(&scratch, "ovsdb-tool", &["create", "conf.db", "schema"]);
    let server = ["conf.db", "--remote=punix:db.sock", "--pidfile", "--detach"];
    program(&scratch, "ovsdb-server", &server);
    let socket = format!("unix:{}", scratch.file("db.sock").display());
    let switch = [&socket, "--pidfile", "--detach", "--enable-dummy=override"];
    program(&scratch, "ovs-vswitchd", &switch);
    let db = format!("--db={socket}");
    program(
        &scratch,
        "ovs-vsctl",
        &[&db, "--timeout=20", "add-br", "br0"],
    );
    let bridges = program(&scratch, "ovs-appctl", &["ofproto/list"]);
    assert_eq!(bridges, "br0\n");
    program(&scratch, "ovs-appctl", &["exit"]);
    program(&scratch, "ovs-appctl", &["-t", "ovsdb-server", "exit"]);
}
