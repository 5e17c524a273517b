//! Tools of one make on daemons of the other, both ways round.

use testkit::{Need, Running, Stack, need};

use crate::hosts::{answered, host};
use crate::{HOSTS, ours};

/// What an operator does with a new bridge, with whatever tools `stack` has.
fn operate(stack: &Stack) {
    let running = stack.start(&[]).unwrap();
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());

    let shown = running.tool("ovs-vsctl", &["show"]).unwrap();
    assert!(
        shown.contains("Bridge br0") && shown.contains("Interface host2"),
        "{shown}"
    );
    let ports = running.tool("ovs-vsctl", &["list-ports", "br0"]).unwrap();
    assert_eq!(ports, "host1\nhost2\n");

    let rule = "table=0,priority=7,tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=mod_nw_tos:4,NORMAL";
    running
        .tool("ovs-ofctl", &["add-flow", "br0", rule])
        .unwrap();
    let rules = running
        .tool("ovs-ofctl", &["dump-flows", "br0", "tcp"])
        .unwrap();
    let text = "priority=7,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=mod_nw_tos:4,NORMAL";
    assert!(rules.contains(text), "{rules}");
    let features = running.tool("ovs-ofctl", &["show", "br0"]).unwrap();
    assert!(features.contains("(host1): addr:"), "{features}");
    let counted = running.tool("ovs-ofctl", &["-O", "OpenFlow13", "dump-ports", "br0"]);
    let refused = counted
        .as_ref()
        .err()
        .is_some_and(|e| e.contains("version negotiation"));
    assert!(counted.is_ok() || refused, "{counted:?}");

    ask_the_database(&running);
    assert!(running.appctl(&["ofproto/list"]).unwrap().contains("br0"));
    let trace = running.appctl(&[
        "ofproto/trace",
        "br0",
        "in_port=1,tcp,nw_dst=10.1.1.1,tp_dst=80",
    ]);
    assert!(trace.unwrap().contains("priority 7"));

    running
        .tool("ovs-vsctl", &["--timeout=20", "del-br", "br0"])
        .unwrap();
    assert_eq!(running.tool("ovs-vsctl", &["list-br"]).unwrap(), "");
}

/// The database, asked past all tools of the switch.
fn ask_the_database(running: &Running) {
    let query =
        r#"["Open_vSwitch",{"op":"select","table":"Bridge","where":[],"columns":["name"]}]"#;
    let socket = format!("unix:{}", running.folder.join("db.sock").display());
    let rows = running
        .tool("ovsdb-client", &["transact", &socket, query])
        .unwrap();
    assert_eq!(rows.trim(), r#"[{"rows":[{"name":"br0"}]}]"#);
}

fn needs() -> Vec<Need> {
    [HOSTS, &[Need::DebianOvs]].concat()
}

#[test]
fn our_tools_work_on_our_daemons() {
    if need("our_tools_work_on_our_daemons", HOSTS) {
        operate(&ours());
    }
}

#[test]
fn debians_tools_work_on_our_daemons() {
    if need("debians_tools_work_on_our_daemons", &needs()) {
        operate(&ours().with_tools_of(&Stack::debian().unwrap()));
    }
}

#[test]
fn our_tools_work_on_debians_daemons() {
    if need("our_tools_work_on_debians_daemons", &needs()) {
        operate(&Stack::debian().unwrap().with_tools_of(&ours()));
    }
}
