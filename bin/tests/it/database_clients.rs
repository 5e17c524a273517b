//! `ovsdb-client` as scripts use it.

use std::process::Command;
use std::time::Duration;

use testkit::{Need, eventually, need};

use crate::ours;

/// A transaction that waits for something does so in the background, where it was told to.
#[test]
fn a_transaction_waits_in_the_background() {
    let test = "a_transaction_waits_in_the_background";
    if !need(test, &[Need::Root, Need::Netns]) {
        return;
    }
    let running = ours().start_server().unwrap();
    let pidfile = running.folder.join("waits.pid");
    let wait = r#"["Open_vSwitch",{"op":"wait","table":"Queue","where":[],"columns":["dscp"],
        "rows":[{"dscp":7}],"until":"=="}]"#;
    let mut command = Command::new(ours().tools.join("ovsdb-client"));
    command
        .args(["--detach", "--no-chdir"])
        .arg(format!("--pidfile={}", pidfile.display()))
        .args(["transact", &running.database(), wait]);
    let mut client = running.background(&mut command, "waits").unwrap();
    let ended = client.wait(Duration::from_secs(20));
    assert_eq!(ended, Some(true), "{}", running.written("waits"));
    assert!(pidfile.exists());
    assert_eq!(running.written("waits"), "");
    running
        .tool("ovs-vsctl", &["--no-wait", "create", "queue", "dscp=7"])
        .unwrap();
    eventually("the result is there", || {
        running.written("waits") == "[{}]\n"
    });
    eventually("the client has ended", || !pidfile.exists());

    // Where there is no server, the caller hears of it.
    command = Command::new(ours().tools.join("ovsdb-client"));
    command.args(["--detach", "transact", "unix:nowhere", wait]);
    let mut client = running.background(&mut command, "fails").unwrap();
    assert_eq!(client.wait(Duration::from_secs(20)), Some(false));
    let told = running.written("fails");
    assert!(
        told.contains("failed to connect to \"unix:nowhere\""),
        "{told}"
    );
}
