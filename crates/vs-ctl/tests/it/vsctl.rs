//! `ovs-vsctl`.  The texts are those that the original prints.

use vs_ctl::Exit;

use crate::server::TestServer;

#[test]
fn bridges_and_ports_come_and_go() {
    let s = TestServer::start();
    s.ok("add-br a -- add-br b");
    assert_eq!(s.ok("list-br"), "a\nb\n");
    s.ok("add-port a a1 tag=9 -- add-bond b bond0 b1 b2");
    assert_eq!(s.ok("list-ports a -- list-ifaces b"), "a1\nb1\nb2\n");
    assert_eq!(s.ok("get port a1 tag -- port-to-br bond0"), "9\nb\n");
    assert_eq!(
        s.fails("add-port b a1"),
        "cannot create a port named a1 because a port named a1 already exists on bridge a"
    );
    assert_eq!(
        s.fails("add-port b b2"),
        "cannot create a port named b2 because an interface named b2 already exists on bridge b"
    );
    assert_eq!(s.fails("add-port c x"), "no bridge named c");
    s.ok("--may-exist add-port a a1");
    s.ok("del-port a1 -- --if-exists del-port a1");
    assert_eq!(s.fails("del-port a1"), "no port named a1");
    assert_eq!(s.vsctl("br-exists c").exit, Exit::Code(2));
    s.ok("del-br b");
    assert_eq!(s.ok("list-br -- --if-exists list interface b1"), "a\n");
}

#[test]
fn fake_bridges_are_ports_of_their_parents() {
    let s = TestServer::start();
    s.ok("add-br real -- add-port real eth0 -- add-br fake real 9");
    s.ok("add-port fake eth0.9");
    assert_eq!(s.ok("list-ports fake -- list-ports real"), "eth0.9\neth0\n");
    assert_eq!(s.ok("get port eth0.9 tag"), "9\n");
    assert_eq!(
        s.ok("br-to-vlan fake -- br-to-parent fake -- --real list-br -- --fake list-br"),
        "9\nreal\nreal\nfake\n"
    );
    s.ok("br-set-external-id fake k v");
    assert_eq!(s.ok("br-get-external-id fake"), "k=v\n");
    assert_eq!(s.ok("get port fake external_ids"), "{fake-bridge-k=v}\n");
    assert_eq!(
        s.fails("del-port real eth0.9"),
        "bridge real does not have a port eth0.9 (although its child bridge fake does)"
    );
    assert_eq!(
        s.fails("--may-exist add-br dup real 9"),
        "bridge real already has a child VLAN bridge fake on VLAN 9"
    );
    s.ok("del-br real");
    assert_eq!(s.ok("list-br"), "");
}

#[test]
fn rows_are_created_changed_and_found() {
    let s = TestServer::start();
    s.ok("add-br br0 -- add-br br1");
    s.ok("set bridge br0 other_config:a=1 other-config:b=2 flood_vlans=1-3,7");
    assert_eq!(
        s.ok("get bridge br0 other_config flood_vlans other_config:b"),
        "{a=\"1\", b=\"2\"}\n[1, 2, 3, 7]\n\"2\"\n"
    );
    s.ok("add bridge br0 other_config a=9 c=3 -- remove bridge br0 flood_vlans 2 7");
    assert_eq!(
        s.ok("get bridge br0 other_config flood_vlans"),
        "{a=\"1\", b=\"2\", c=\"3\"}\n[1, 3]\n"
    );
    let found = "--bare --columns=name find bridge flood_vlans{>=}1,3 other_config:c=3";
    assert_eq!(s.ok(found), "br0\n");
    let qos = s.ok("--id=@q create queue dscp=3 -- create qos type=x queues:5=@q");
    let ids: Vec<&str> = qos.lines().collect();
    assert_eq!(
        s.ok(&format!("get qos {} queues", &ids[1][..8])),
        format!("{{5={}}}\n", ids[0])
    );
    s.ok("clear bridge br0 other_config -- --all destroy qos -- --all destroy queue");
    assert_eq!(
        s.ok("list queue -- --columns=other_config list bridge br0")
            .trim(),
        "other_config        : {}"
    );
    assert_eq!(
        s.ok("--format=csv --columns=name,fail_mode list bridge br1"),
        "name,fail_mode\nbr1,[]\n"
    );
    assert_eq!(
        s.fails("set bridge br0 netflow=@n"),
        "row id \"@n\" is referenced but never created (e.g. with \"-- --id=@n create ...\")"
    );
}

#[test]
fn several_commands_are_one_transaction_that_sees_itself() {
    let s = TestServer::start();
    let out = s.ok(
        "--oneline -- add-br a -- del-br a -- add-br a -- add-port a p -- \
                    set interface p type=internal -- get interface p type -- list-ports a",
    );
    assert_eq!(out, "\n\n\n\n\ninternal\np\n");
    // What fails in the end leaves nothing behind.
    s.fails("add-port a q -- del-port zz");
    assert_eq!(s.ok("list-ports a"), "p\n");
    s.ok("--dry-run add-port a q");
    assert_eq!(s.ok("list-ports a"), "p\n");
}

#[test]
fn the_switch_is_waited_for_and_its_complaints_are_told() {
    let s = TestServer::start();
    s.ok("add-br br0");
    let ran = std::thread::scope(|scope| {
        let run = scope.spawn(|| s.run("add-port br0 p1 -- set interface p1 type=gre"));
        // A switch that cannot make the port.
        s.ok(
            "wait-until open_vswitch . next_cfg=1 -- wait-until interface p1 -- \
              set interface p1 ofport=-1 error=\"no_luck\" -- set open_vswitch . cur_cfg=1",
        );
        run.join().expect("ran")
    });
    assert_eq!(ran.exit, Exit::Code(65));
    let (first, second) = ran.err.split_once('\n').expect("two lines");
    assert_eq!(
        first,
        "ovs-vsctl: Error detected while setting up 'p1': no_luck.  See ovs-vswitchd log for \
         details."
    );
    assert!(second.starts_with("ovs-vsctl: The default log directory is \""));
}

#[test]
fn adding_a_port_sends_little_however_many_there_are() {
    let s = TestServer::start();
    let ports: String = (0..300).map(|i| format!(" -- add-port br0 p{i}")).collect();
    s.ok(&format!("add-br br0 -- add-br br1{ports}"));
    s.ok("add-port br0 new -- set interface new type=internal");
    assert_eq!(
        s.ok("port-to-br new -- get interface new type"),
        "br0\ninternal\n"
    );
    assert_eq!(s.ok("list-ports br0").lines().count(), 301);
    assert_eq!(
        s.fails("add-port br1 p7"),
        "cannot create a port named p7 because a port named p7 already exists on bridge br0"
    );
    assert_eq!(
        s.fails("add-port br1 br0"),
        "cannot create a port named br0 because a bridge named br0 already exists"
    );
    s.ok("add-br fake br0 4 -- set interface p9 other_config:x=y");
    s.ok("add-port fake under");
    assert_eq!(s.ok("get port under tag"), "4\n");
    s.ok("del-br br0");
    assert_eq!(
        s.ok("list-br -- list port"),
        s.ok("list-br -- list port br1")
    );
}

#[test]
fn controllers_managers_and_tls() {
    let s = TestServer::start();
    s.ok("add-br br0 -- set-controller br0 tcp:8.9.10.11 ptcp: -- set-fail-mode br0 secure");
    assert_eq!(
        s.ok("get-controller br0 -- get-fail-mode br0"),
        "ptcp:\ntcp:8.9.10.11\nsecure\n"
    );
    s.ok("--inactivity-probe=30000 set-manager ptcp:6640");
    assert_eq!(
        s.ok("get-manager -- get manager ptcp:6640 inactivity_probe"),
        "ptcp:6640\n30000\n"
    );
    s.ok("--bootstrap set-ssl k c ca");
    assert_eq!(
        s.ok("get-ssl"),
        "Private key: k\nCertificate: c\nCA Certificate: ca\nBootstrap: true\n"
    );
    s.ok("emer-reset");
    assert_eq!(
        s.ok("get-controller br0 -- get-fail-mode br0 -- get-manager -- get-ssl"),
        ""
    );
    let shown = s.ok("show");
    let (_, shown) = shown.split_once('\n').expect("a tree");
    assert_eq!(
        shown,
        "    Bridge br0\n        Port br0\n            Interface br0\n                type: internal\n"
    );
}

#[test]
fn zones_have_policies_and_limits() {
    let s = TestServer::start();
    s.ok("-- --id=@m create Datapath datapath_version=0 -- set o . datapaths:netdev=@m");
    s.ok("add-zone-tp netdev zone=1 icmp_first=1 icmp_reply=2 -- set-zone-limit netdev 1 5");
    s.ok("set-zone-limit netdev default 9");
    assert_eq!(
        s.ok("list-zone-tp netdev -- list-zone-limits netdev"),
        "Zone:1, Timeout Policies: icmp_first=1 icmp_reply=2\nDefault, Limit: 9\nZone: 1, Limit: 5\n"
    );
    assert_eq!(
        s.fails("add-zone-tp netdev zone=1 a=1"),
        "zone id 1 already has a policy"
    );
    s.ok("del-zone-tp netdev zone=1");
    assert_eq!(
        s.ok("list-zone-tp netdev"),
        "Zone:1, Timeout Policies: system default\n"
    );
    s.ok("del-zone-limit netdev 1");
    assert_eq!(s.ok("list-zone-tp netdev"), "");
    assert_eq!(
        s.fails("set-zone-limit netdev 5 -1"),
        "limit (-1) out of range"
    );
}

#[test]
fn a_row_gets_its_name_before_that_is_used() {
    let s = TestServer::start();
    s.ok("add-br a -- add-port a a1");
    let mirror = "--id=@m create mirror name=m output_port=@p";
    let name = "--id=@p get port a1";
    let set = "set bridge a mirrors=@m";
    assert_eq!(
        s.fails(&format!("{mirror} -- {name} -- {set}")),
        "row id \"@p\" specified on \"get\" command was used before it was defined"
    );
    s.ok(&format!("{name} -- {mirror} -- {set}"));
    let port = s.ok("get port a1 _uuid");
    assert_eq!(s.ok("get mirror m output_port"), port);
}
