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

/// Both daemons in the background, on a database in which nobody has put a row; where the
/// switch finds it.
fn start(scratch: &Scratch) -> String {
    let schema = scratch.file("schema");
    std::fs::write(&schema, db_model::OPEN_VSWITCH_SCHEMA).unwrap();
    program(scratch, "ovsdb-tool", &["create", "conf.db", "schema"]);
    let server = ["conf.db", "--remote=punix:db.sock", "--pidfile", "--detach"];
    program(scratch, "ovsdb-server", &server);
    let socket = format!("unix:{}", scratch.file("db.sock").display());
    let switch = [&socket, "--pidfile", "--detach", "--enable-dummy=override"];
    program(scratch, "ovs-vswitchd", &switch);
    socket
}

/// Processor time of the switch so far, in hundredths of a second.
fn switch_cpu(scratch: &Scratch) -> u64 {
    let pid = std::fs::read_to_string(scratch.file("ovs-vswitchd.pid")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap();
    let fields: Vec<&str> = stat.split(' ').collect();
    fields[13].parse::<u64>().unwrap() + fields[14].parse::<u64>().unwrap()
}

/// The switch is there when its command returns, and takes up what comes later.
#[test]
fn a_switch_on_an_empty_database_detaches() {
    let scratch = Scratch::new();
    let socket = start(&scratch);
    let db = format!("--db={socket}");
    let add = [&db, "--timeout=20", "add-br", "br0"];
    program(&scratch, "ovs-vsctl", &add);
    let bridges = program(&scratch, "ovs-appctl", &["ofproto/list"]);
    assert_eq!(bridges, "br0\n");
    program(&scratch, "ovs-appctl", &["exit"]);
    program(&scratch, "ovs-appctl", &["-t", "ovsdb-server", "exit"]);
}

/// A switch whose database is empty, or gone, waits for it without turning in circles.
#[test]
fn a_switch_without_a_database_rests() {
    let scratch = Scratch::new();
    let socket = start(&scratch);
    let wait = || std::thread::sleep(std::time::Duration::from_secs(1));
    let rests = |when: &str| {
        let before = switch_cpu(&scratch);
        wait();
        let spent = switch_cpu(&scratch) - before;
        assert!(spent < 30, "{when}: {spent} % of a processor");
    };
    rests("on an empty database");
    let db = format!("--db={socket}");
    let add = [&db, "--timeout=20", "add-br", "br0"];
    program(&scratch, "ovs-vsctl", &add);
    rests("with a bridge");
    program(&scratch, "ovs-appctl", &["-t", "ovsdb-server", "exit"]);
    rests("after the server went");
    program(&scratch, "ovs-appctl", &["exit"]);
}
