//! `vtep-ctl`.  The texts are those that the original prints.

use vs_ctl::Exit;

use crate::server::{Ran, TestServer};

/// The output of a run that must succeed.
fn ok(s: &TestServer, args: &str) -> String {
    let ran = s.vtep(args);
    assert_eq!((ran.exit, &*ran.err), (Exit::SUCCESS, ""), "{args}");
    ran.out
}

/// The message of a run that must fail with status 1.
fn fails(s: &TestServer, args: &str) -> String {
    let Ran { exit, out, err } = s.vtep(args);
    assert_eq!((exit, &*out), (Exit::FAILURE, ""), "{args}");
    let message = err.strip_prefix("vtep-ctl: ").expect("a message");
    message.trim_end().to_owned()
}

#[test]
fn physical_switches_and_ports_come_and_go() {
    let s = TestServer::start();
    ok(&s, "add-ps b -- add-ps a -- --may-exist add-ps a");
    assert_eq!(ok(&s, "list-ps"), "a\nb\n");
    assert_eq!(
        fails(&s, "add-ps a"),
        "cannot create physical switch a because it already exists"
    );
    assert_eq!(s.vtep("ps-exists c").exit, Exit::Code(2));
    assert_eq!(s.vtep("ps-exists a").exit, Exit::SUCCESS);
    ok(
        &s,
        "add-port a a2 -- add-port a a1 -- add-port b a1 -- --may-exist add-port a a1",
    );
    assert_eq!(ok(&s, "list-ports a -- list-ports b"), "a1\na2\na1\n");
    assert_eq!(
        fails(&s, "add-port a a1"),
        "cannot create a port named a1 on a because a port with that name already exists"
    );
    assert_eq!(fails(&s, "add-port c c1"), "no physical switch named c");
    assert_eq!(fails(&s, "del-port a b1"), "no port named b1");
    ok(&s, "del-port a a1 -- --if-exists del-port a a1");
    assert_eq!(ok(&s, "list-ports a -- list-ports b"), "a2\na1\n");
    ok(&s, "del-ps a -- --if-exists del-ps a");
    assert_eq!(fails(&s, "del-ps a"), "no physical switch named a");
    assert_eq!(
        ok(&s, "list-ps -- --columns=name list physical_port")
            .lines()
            .count(),
        2
    );
}

#[test]
fn logical_switches_are_bound_to_vlans() {
    let s = TestServer::start();
    ok(&s, "add-ps p -- add-port p p1 -- add-ls one -- add-ls two");
    ok(&s, "bind-ls p p1 300 one -- bind-ls p p1 4 two");
    assert_eq!(ok(&s, "list-bindings p p1"), "0004 two\n0300 one\n");
    assert_eq!(
        fails(&s, "bind-ls p p1 0x4 one"),
        "multiple bindings for vlan 0x4"
    );
    assert_eq!(
        fails(&s, "bind-ls p p1 5 three"),
        "no logical switch named three"
    );
    assert_eq!(
        fails(&s, "bind-ls p p1 five one"),
        "five: VLAN is not a number"
    );
    assert!(fails(&s, "bind-ls p p1 5000 one").starts_with("transaction error: "));
    assert_eq!(fails(&s, "unbind-ls p p1 5"), "no binding for vlan 5");
    ok(&s, "unbind-ls p p1 4");
    assert_eq!(ok(&s, "list-bindings p p1"), "0300 one\n");
    ok(
        &s,
        "set-manager tcp:1.2.3.4 -- set physical_switch p tunnel_ips=1.1.1.1",
    );
    let shown = ok(&s, "show");
    let (uuid, rest) = shown.split_once('\n').expect("lines");
    assert_eq!(uuid.len(), 36);
    assert_eq!(
        rest,
        "    Manager \"tcp:1.2.3.4\"\n    Physical_Switch p\n        tunnel_ips: [\"1.1.1.1\"]\n        \
         Physical_Port p1\n            vlan_bindings:\n                300=one\n"
    );
}

#[test]
fn logical_switches_and_routers_come_and_go() {
    let s = TestServer::start();
    for (short, what) in [("ls", "logical switch"), ("lr", "logical router")] {
        ok(
            &s,
            &format!("add-{short} b -- add-{short} a -- --may-exist add-{short} a"),
        );
        assert_eq!(ok(&s, &format!("list-{short}")), "a\nb\n");
        assert_eq!(
            fails(&s, &format!("add-{short} a")),
            format!("cannot create {what} a because it already exists")
        );
        ok(&s, &format!("del-{short} a -- --if-exists del-{short} a"));
        assert_eq!(
            fails(&s, &format!("del-{short} a")),
            format!("no {what} named a")
        );
        assert_eq!(s.vtep(&format!("{short}-exists a")).exit, Exit::Code(2));
        assert_eq!(s.vtep(&format!("{short}-exists b")).exit, Exit::SUCCESS);
    }
    assert_eq!(
        fails(&s, "set-replication-mode b x"),
        "Replication mode must be 'service_node' or 'source_node'"
    );
    assert_eq!(ok(&s, "get-replication-mode b"), "(null)\n");
    ok(&s, "set-replication-mode b source_node");
    assert_eq!(ok(&s, "get-replication-mode b"), "source_node\n");
}

#[test]
fn addresses_are_bound_to_locators() {
    let s = TestServer::start();
    ok(&s, "add-ls l -- add-ls other");
    ok(
        &s,
        "add-ucast-local l 00:00:00:00:00:02 1.0.0.1 -- add-ucast-local l 00:00:00:00:00:01 1.0.0.1",
    );
    ok(
        &s,
        "add-ucast-local l 00:00:00:00:00:02 vxlan_over_ipv4 1.0.0.2",
    );
    for ip in ["1.0.0.2", "1.0.0.1", "1.0.0.2"] {
        ok(&s, &format!("add-mcast-local l 01:00:00:00:00:01 {ip}"));
    }
    let unicast = "ucast-mac-local\n  00:00:00:00:00:01 -> vxlan_over_ipv4/1.0.0.1\n  \
                   00:00:00:00:00:02 -> vxlan_over_ipv4/1.0.0.2\n\n";
    assert_eq!(
        ok(&s, "list-local-macs l"),
        format!(
            "{unicast}mcast-mac-local\n  01:00:00:00:00:01 -> vxlan_over_ipv4/1.0.0.1\n  \
             01:00:00:00:00:01 -> vxlan_over_ipv4/1.0.0.2\n\n"
        )
    );
    assert_eq!(
        ok(&s, "--columns=dst_ip list physical_locator")
            .matches("dst_ip")
            .count(),
        2
    );
    assert_eq!(
        ok(&s, "list-remote-macs l -- list-local-macs other"),
        "ucast-mac-remote\n\nmcast-mac-remote\n\nucast-mac-local\n\nmcast-mac-local\n\n"
    );
    ok(
        &s,
        "del-mcast-local l 01:00:00:00:00:01 1.0.0.2 -- del-mcast-local l 01:00:00:00:00:01 9.9.9.9",
    );
    ok(
        &s,
        "add-mcast-remote l 01:00:00:00:00:01 1.0.0.3 -- add-ucast-remote l 00:00:00:00:00:03 1.0.0.3",
    );
    ok(
        &s,
        "del-mcast-local l 01:00:00:00:00:01 1.0.0.1 -- del-ucast-local l 00:00:00:00:00:01",
    );
    assert_eq!(
        ok(&s, "list-local-macs l"),
        "ucast-mac-local\n  00:00:00:00:00:02 -> vxlan_over_ipv4/1.0.0.2\n\nmcast-mac-local\n\n"
    );
    ok(&s, "clear-remote-macs l");
    assert_eq!(
        ok(&s, "list-remote-macs l"),
        "ucast-mac-remote\n\nmcast-mac-remote\n\n"
    );
    assert_eq!(fails(&s, "list-local-macs x"), "no logical switch named x");
    assert!(fails(&s, "add-ucast-local l 00:00:00:00:00:01 gre 1.0.0.1").contains("gre"));
}

#[test]
fn managers_are_set_and_deleted() {
    let s = TestServer::start();
    assert_eq!(
        ok(&s, "set-manager tcp:8.9.10.11 tcp:5.4.3.2 -- get-manager"),
        "tcp:5.4.3.2\ntcp:8.9.10.11\n"
    );
    ok(&s, "--inactivity-probe=30000 set-manager tcp:1.2.3.4");
    assert_eq!(
        ok(&s, "get manager tcp:1.2.3.4 inactivity_probe"),
        "30000\n"
    );
    assert_eq!(ok(&s, "del-manager -- get-manager"), "");
}

#[test]
fn options_that_only_the_switchs_tool_has_are_refused() {
    let s = TestServer::start();
    for option in ["--no-wait", "--retry", "--no-leader-only"] {
        let ran = s.vtep(&format!("{option} list-ps"));
        assert_eq!(ran.exit, Exit::FAILURE);
        assert!(
            ran.err.contains(&format!("unrecognized option '{option}'")),
            "{}",
            ran.err
        );
    }
    for tool in [TestServer::vtep, TestServer::run] {
        assert_eq!(
            tool(&s, "--timeout=0 list x")
                .err
                .split_once(": ")
                .map(|(_, text)| text),
            Some("value 0 on -t or --timeout is invalid\n")
        );
    }
    assert!(ok(&s, "--version").ends_with("DB Schema 1.7.0\n"));
    let help = ok(&s, "--help");
    assert!(
        help.starts_with("vtep-ctl: VTEP configuration utility\nusage: vtep-ctl [OPTIONS] COMMAND")
    );
    assert!(help.contains("\n  Global:\n    by UUID\n    as \".\"\n"));
    assert!(!help.contains("--bootstrap-ca-cert"));
    let help = s.vsctl("--help").out;
    assert!(help.contains("\n  --bootstrap-ca-cert=FILE "));
}
