//! `ovs-dpctl` on the kernel's datapaths, with and without a switch.

use std::process::Command;

use testkit::net::cable;
use testkit::{Running, output};

use crate::{answered, host, inside, skip, start, until, vsctl};

/// What our tool prints in the namespace of the daemons, and whether it succeeded.
fn ours(running: &Running, args: &[&str]) -> (String, bool) {
    let tool = env!("CARGO_BIN_EXE_ovs-dpctl");
    let mut command = Command::new(tool);
    command.args(args).env("OVS_RUNDIR", &running.folder);
    let output = running.netns.run(|| output(&mut command)).unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        String::from_utf8_lossy(&text).into_owned(),
        output.status.success(),
    )
}

fn theirs(running: &Running, args: &[&str]) -> String {
    inside(running, "/usr/bin/ovs-dpctl", args)
}

/// Lines without the counts of packets that come by themselves.
fn fixed(text: &str) -> Vec<String> {
    let counts = [
        "lookups:",
        "masks:",
        "cache:",
        "flows:",
        "caches:",
        "masks-cache:",
    ];
    let stays = |line: &&str| !counts.iter().any(|c| line.trim_start().starts_with(c));
    text.lines().filter(stays).map(String::from).collect()
}

#[test]
fn datapaths_of_a_switch_are_shown_without_it() {
    if skip("datapaths_of_a_switch_are_shown_without_it") {
        return;
    }
    let mut running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    vsctl(
        &running,
        &[
            "add-port",
            "br0",
            "vx",
            "--",
            "set",
            "interface",
            "vx",
            "type=vxlan",
            "options:remote_ip=10.9.9.9",
        ],
    );
    until("the hosts know each other", || answered(&one, &two, 1) == 1);
    for args in [&["dump-dps"][..], &["show"], &["show", "system@ovs-system"]] {
        let (text, succeeded) = ours(&running, args);
        assert!(succeeded, "{text}");
        assert_eq!(fixed(&text), fixed(&theirs(&running, args)));
    }
    // It goes on to forward with the switch gone, and can still be looked at and changed.
    vsctl(
        &running,
        &["set", "Open_vSwitch", ".", "other_config:max-idle=600000"],
    );
    until("there are flows", || answered(&one, &two, 2) == 2);
    running.kill_switch();
    until("the kernel forwards", || answered(&one, &two, 1) == 1);
    let flows = ours(&running, &["dump-flows"]).0;
    assert!(
        flows.contains("in_port(2)") && flows.contains("actions:3"),
        "{flows}"
    );
    let flow = "in_port(2),eth(),eth_type(0x88cc)";
    assert_eq!(
        ours(&running, &["add-flow", flow, "3"]),
        (String::new(), true)
    );
    let shown = theirs(&running, &["dump-flows"]);
    assert!(shown.contains("eth_type(0x88cc)"), "{shown}");
    assert_eq!(ours(&running, &["del-flow", flow]), (String::new(), true));
    let shown = theirs(&running, &["dump-flows"]);
    assert!(!shown.contains("eth_type(0x88cc)"), "{shown}");
    running.start_switch().unwrap();
    until("the switch is back", || {
        running.appctl(&["version"]).is_ok()
    });
    until("the hosts reach each other again", || {
        answered(&one, &two, 1) == 1
    });
}

#[test]
fn datapaths_are_made_and_removed() {
    if skip("datapaths_are_made_and_removed") {
        return;
    }
    let running = start(&[]);
    cable(&running.netns, ["p1", "p2"]).unwrap();
    let done = |args: &[&str]| assert_eq!(ours(&running, args), (String::new(), true), "{args:?}");
    done(&["add-dp", "dp1"]);
    done(&["add-if", "dp1", "p1", "p2,port_no=7"]);
    done(&[
        "add-flow",
        "dp1",
        "in_port(1),eth(),eth_type(0x0806),arp()",
        "7",
    ]);
    for args in [&["show", "dp1"][..], &["dump-flows", "dp1"]] {
        assert_eq!(
            fixed(&ours(&running, args).0),
            fixed(&theirs(&running, args))
        );
    }
    done(&["del-if", "dp1", "p1"]);
    let shown = theirs(&running, &["show", "dp1"]);
    assert!(
        !shown.contains(": p1") && shown.contains("port 7: p2"),
        "{shown}"
    );
    let (text, succeeded) = ours(&running, &["add-dp", "dp1"]);
    assert!(
        !succeeded && text.contains("add_dp (File exists)"),
        "{text}"
    );
    done(&["del-dp", "dp1"]);
    assert_eq!(theirs(&running, &["dump-dps"]), "system@ovs-system\n");
    let (text, succeeded) = ours(&running, &["show", "dp1"]);
    assert!(!succeeded && text.contains("dp1"), "{text}");
}
