//! Clients that others wrote: controllers and conformance cases of os-ken, Python's IDL.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use testkit::{Daemon, Need, Running, eventually, need, net, python};

use crate::hosts::{answered, host};
use crate::{HOSTS, ours};

fn app(name: &str) -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/apps");
    tests.join(name)
}

/// os-ken's manager, listening where [`set_controller`] sends a bridge.
fn manager(running: &Running, args: &[String]) -> Daemon {
    let mut command = Command::new(python());
    command
        .args(["-u", "-c", "from os_ken.cmd.manager import main; main()"])
        .args(["--ofp-listen-host", "127.0.0.1"])
        .args(["--ofp-tcp-listen-port", "6653"])
        .args(args)
        // Compiled modules beside the sources are not wanted.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    running.background(&mut command, "manager").unwrap()
}

fn set_controller(running: &Running, bridge: &str) {
    let args = [
        "--timeout=20",
        "set-controller",
        bridge,
        "tcp:127.0.0.1:6653",
    ];
    running.tool("ovs-vsctl", &args).unwrap();
}

/// Switches that have a controller connected.
fn connected(running: &Running) -> usize {
    let args = ["--columns=is_connected", "--bare", "find", "controller"];
    let text = running
        .tool("ovs-vsctl", &[&args[..], &["is_connected=true"]].concat())
        .unwrap();
    text.matches("true").count()
}

#[test]
fn a_learning_controller_of_os_ken_carries_pings() {
    let needs = [HOSTS, &[Need::Full, Need::OsKen]].concat();
    if !need("a_learning_controller_of_os_ken_carries_pings", &needs) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    let settings = ["fail-mode=secure", "protocols=OpenFlow13"];
    let args = [&["--timeout=20", "set", "bridge", "br0"][..], &settings].concat();
    running.tool("ovs-vsctl", &args).unwrap();
    let _manager = manager(&running, &[app("learning.py").display().to_string()]);
    set_controller(&running, "br0");
    eventually("the controller has seen the switch", || {
        running.written("manager").contains("joined ")
    });
    eventually("the database says so", || connected(&running) == 1);
    eventually("the hosts know each other", || answered(&one, &two, 1) == 1);
    // What is learned stays in the switch: nothing more comes to the controller.
    eventually("the conversation has rules", || {
        let rules = ["-O", "OpenFlow13", "dump-flows", "br0"];
        let rules = running.tool("ovs-ofctl", &rules).unwrap();
        rules.matches("priority=10,").count() >= 2
    });
    let missed = |running: &Running| running.written("manager").matches("missed ").count();
    let before = missed(&running);
    assert!(before >= 2);
    assert_eq!(answered(&one, &two, 20), 20, "{}", running.report());
    assert_eq!(missed(&running), before, "{}", running.written("manager"));
}

/// Runs os-ken's switch tester: its cases of `folder`, with a target bridge that speaks
/// `version`, wired three times to a tester bridge.  Returns the lines of the cases that
/// passed and that failed.
fn conformance(version: &str, folder: &str) -> (Vec<String>, Vec<String>) {
    let running = ours().start(&[]).unwrap();
    for (bridge, versions, id) in [("s1", version, 1), ("s2", "OpenFlow13", 2)] {
        let protocols = format!("protocols={versions}");
        let id = format!("other-config:datapath-id={id:016x}");
        let set = ["set", "bridge", bridge, "datapath_type=netdev"];
        let set = [&set[..], &["fail-mode=secure", &protocols, &id]].concat();
        let args = [&["--timeout=20", "add-br", bridge, "--"][..], &set].concat();
        running.tool("ovs-vsctl", &args).unwrap();
    }
    for n in 1..=3 {
        let (near, far) = (format!("p{n}"), format!("q{n}"));
        net::cable(&running.netns, [&near, &far]).unwrap();
        let number = format!("ofport_request={n}");
        for (bridge, port) in [("s1", &near), ("s2", &far)] {
            let set = ["--", "set", "interface", port, &number];
            let args = [&["--timeout=20", "add-port", bridge, port][..], &set].concat();
            running.tool("ovs-vsctl", &args).unwrap();
        }
    }
    let cases = "import os, os_ken.tests.switch as m; print(os.path.dirname(m.__file__))";
    let found = testkit::output(Command::new(python()).args(["-c", cases]));
    let cases = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim()).join(folder);
    assert!(cases.is_dir(), "{}", cases.display());
    let options = [
        ("--test-switch-target", "0000000000000001".to_owned()),
        ("--test-switch-tester", "0000000000000002".to_owned()),
        ("--test-switch-target-version", version.to_lowercase()),
        ("--test-switch-tester-version", "openflow13".to_owned()),
        ("--test-switch-dir", cases.display().to_string()),
    ];
    let options = options
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value]);
    let tester = app("unhurried.py").display().to_string();
    let args: Vec<String> = options.chain([tester]).collect();
    let mut manager = manager(&running, &args);
    set_controller(&running, "s1");
    set_controller(&running, "s2");
    let ended = manager.wait(Duration::from_secs(1800));
    let text = running.written("manager");
    assert!(ended.is_some(), "{text}");
    let lines = |result: &str| {
        let lines = text.lines().filter(|l| l.starts_with("    "));
        let lines = lines.filter_map(|l| l.trim_end().strip_suffix(result));
        lines.map(|l| l.trim().to_owned()).collect::<Vec<_>>()
    };
    (lines(" OK"), lines(" ERROR"))
}

fn passes(test: &str, version: &str, folder: &str, count: usize) {
    let needs = [HOSTS, &[Need::Full, Need::OsKen]].concat();
    if !need(test, &needs) {
        return;
    }
    let (passed, failed) = conformance(version, folder);
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(passed.len(), count);
}

#[test]
fn openflow_10_actions_conform() {
    passes(
        "openflow_10_actions_conform",
        "OpenFlow10",
        "of10/action",
        40,
    );
}

#[test]
fn openflow_10_matches_conform() {
    passes(
        "openflow_10_matches_conform",
        "OpenFlow10",
        "of10/match",
        144,
    );
}

/// A client of Python's IDL makes a bridge and sees the columns that the switch fills.
#[test]
fn pythons_idl_makes_a_bridge_and_watches_it() {
    let needs = [HOSTS, &[Need::Full, Need::PythonOvs]].concat();
    if !need("pythons_idl_makes_a_bridge_and_watches_it", &needs) {
        return;
    }
    let running = ours().start(&[]).unwrap();
    let tcp = "ptcp:6640:127.0.0.1";
    running.tool("ovs-vsctl", &["set-manager", tcp]).unwrap();
    for remote in [running.database(), "tcp:127.0.0.1:6640".to_owned()] {
        let mut command = Command::new(python());
        command.args(["-W", "ignore"]).arg(app("watch.py"));
        command.arg(&remote).arg(&ours().schema);
        let mut client = running.background(&mut command, "client").unwrap();
        let ended = client.wait(Duration::from_secs(120));
        let text = running.written("client");
        assert_eq!(ended, Some(true), "{remote}: {text}\n{}", running.report());
    }
}
