//! `ovs-dpctl` and `ovs-appctl dpctl/...` of either make on daemons of either make.

use testkit::{Need, Running, Scratch, Stack, need};

use crate::ours;

const PACKET: &str = "in_port(1),eth(src=00:00:00:00:00:01,dst=00:00:00:00:00:02),\
    eth_type(0x0800),ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17,tos=0,ttl=64,frag=no),udp(src=1,dst=2)";

/// A bridge of dummies that one packet has gone through.
fn with_traffic(stack: &Stack) -> Running {
    let running = stack.with_dummies().start(&[]).unwrap();
    let ports = [
        "--timeout=20",
        "add-port",
        "br0",
        "p1",
        "--",
        "set",
        "interface",
        "p1",
        "type=dummy",
        "ofport_request=1",
        "--",
        "add-port",
        "br0",
        "p2",
        "--",
        "set",
        "interface",
        "p2",
        "type=dummy",
        "ofport_request=2",
    ];
    running.tool("ovs-vsctl", &ports).unwrap();
    // Flows that are put in by hand are wrong to the switch, which would take them out.
    running.appctl(&["revalidator/pause"]).unwrap();
    running.tool("ovs-ofctl", &["del-flows", "br0"]).unwrap();
    running
        .tool("ovs-ofctl", &["add-flow", "br0", "actions=output:2"])
        .unwrap();
    running
        .appctl(&["netdev-dummy/receive", "p1", PACKET])
        .unwrap();
    running
}

/// What a test with both makes needs.
const BOTH: [Need; 3] = [Need::Root, Need::Netns, Need::DebianOvs];

const FLOW: &str = "recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth_type(0x0800),\
    ipv4(frag=no), packets:0, bytes:0, used:never, actions:2\n";

/// What anybody may ask, and what is answered: by `ask`, a tool with its arguments but for the
/// command.
fn look(ask: &dyn Fn(&[&str]) -> Result<String, String>) {
    assert_eq!(ask(&["dump-dps"]).unwrap(), "dummy@ovs-dummy\n");
    let shown = "dummy@ovs-dummy:\n  lookups: hit:0 missed:1 lost:0\n  flows: 1\n  \
                 port 0: ovs-dummy (dummy-internal)\n  port 1: p1 (dummy)\n  port 2: p2 (dummy)\n  \
                 port 100: br0 (dummy-internal)\n";
    assert_eq!(ask(&["show"]).unwrap(), shown);
    assert_eq!(ask(&["show", "dummy@ovs-dummy"]).unwrap(), shown);
    let title = "flow-dump from the main thread:\n";
    assert_eq!(ask(&["dump-flows"]).unwrap(), format!("{title}{FLOW}"));
    let filtered = ask(&["dump-flows", "filter=in_port=p1"]).unwrap();
    assert_eq!(filtered, format!("{title}{FLOW}"));
    assert_eq!(ask(&["dump-flows", "filter=in_port=p2"]).unwrap(), "");
    let dropped = "ufid:00000000-0000-0000-0000-000000000001,in_port(2),eth(),eth_type(0x1234)";
    assert_eq!(ask(&["add-flow", dropped, "1"]).unwrap(), "");
    let ufid = &dropped[..41];
    let got = ask(&["get-flow", ufid]).unwrap();
    assert!(got.ends_with("actions:1\n"), "{got}");
    let error = ask(&["add-flow", dropped, "1"]).unwrap_err();
    assert!(
        error.contains("updating flow table (File exists)"),
        "{error}"
    );
    assert_eq!(ask(&["del-flow", dropped]).unwrap(), "");
    assert_eq!(ask(&["parse-actions", "1"]).unwrap(), "1\n");
}

fn through_the_control_socket(running: &Running) {
    look(&|args| {
        let command = format!("dpctl/{}", args[0]);
        running.appctl(&[&[&command[..]], &args[1..]].concat())
    });
}

#[test]
fn our_dpctl_works_on_our_switch() {
    if !need("our_dpctl_works_on_our_switch", &[Need::Root, Need::Netns]) {
        return;
    }
    let running = with_traffic(&ours());
    look(&|args| running.tool("ovs-dpctl", args));
    through_the_control_socket(&running);
    let flows = running.folder.join("flows");
    let path = flows.display().to_string();
    let text = "add in_port(2),eth(),eth_type(0x1234) 1\nin_port(2),eth(),eth_type(0x1235) 1\n";
    std::fs::write(&flows, text).unwrap();
    assert_eq!(
        running.tool("ovs-dpctl", &["add-flows", &path]).unwrap(),
        ""
    );
    let shown = running.tool("ovs-dpctl", &["show"]).unwrap();
    assert!(shown.contains("flows: 3"), "{shown}");
    std::fs::write(&flows, "in_port(2),eth(),eth_type(0x1235)\n").unwrap();
    running.tool("ovs-dpctl", &["del-flows", &path]).unwrap();
    let shown = running.tool("ovs-dpctl", &["show"]).unwrap();
    assert!(shown.contains("flows: 2"), "{shown}");
    running
        .tool("ovs-dpctl", &["del-flows", "dummy@ovs-dummy"])
        .unwrap();
    assert_eq!(running.tool("ovs-dpctl", &["dump-flows"]).unwrap(), "");
    let error = running.tool("ovs-dpctl", &["del-if", "dummy@ovs-dummy", "p1"]);
    let text = "ovs-dpctl: deleting port p1 from dummy@ovs-dummy failed (Device or resource busy)";
    assert!(
        error.as_ref().is_err_and(|e| e.ends_with(text)),
        "{error:?}"
    );
}

#[test]
fn without_a_switch_there_are_no_datapaths() {
    let elsewhere = Scratch::new();
    let program = ours().tools.join("ovs-dpctl");
    let output = std::process::Command::new(program)
        .arg("show")
        .env("OVS_RUNDIR", elsewhere.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        error.contains("ovs-dpctl: no datapaths can be reached"),
        "{error}"
    );
}

#[test]
fn debians_appctl_works_on_our_datapaths() {
    if need("debians_appctl_works_on_our_datapaths", &BOTH) {
        let stack = ours().with_tools_of(&Stack::debian().unwrap());
        through_the_control_socket(&with_traffic(&stack));
    }
}

#[test]
fn our_dpctl_works_on_debians_switch() {
    if need("our_dpctl_works_on_debians_switch", &BOTH) {
        let stack = Stack::debian().unwrap().with_tools_of(&ours());
        let running = with_traffic(&stack);
        look(&|args| running.tool("ovs-dpctl", args));
        through_the_control_socket(&running);
    }
}
