//! Commands on datapaths of dummies; the texts are those of Open vSwitch 3.7.1.

use std::sync::Arc;

use base::{Clock, Instant};
use dp_api::{Datapath, Error};
use dp_ctl::{Caller, Host, Options};
use dp_user::UserDatapath;
use net_dev::{DummyLevel, DummyProvider, Providers};

struct Dummies {
    clock: Clock,
    devices: Providers,
    datapaths: Vec<Arc<dyn Datapath>>,
}

impl Dummies {
    fn new() -> Self {
        let dummies = Arc::new(DummyProvider::new(DummyLevel::Own));
        Self {
            clock: Clock::stopped(Instant::from_millis(1000)),
            devices: Providers::new(vec![dummies]),
            datapaths: Vec::new(),
        }
    }

    /// Runs a command as a control socket would.
    fn ask(&mut self, words: &[&str]) -> Result<String, String> {
        self.ask_as(Caller::Control, words)
    }

    fn ask_as(&mut self, caller: Caller, words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let (options, operands) = Options::take(&words[1..])?;
        let command = dp_ctl::find(&words[0]).unwrap();
        dp_ctl::run(command, self, caller, options, &operands).into_result("ovs-vswitchd")
    }

    fn ok(&mut self, words: &[&str]) -> String {
        self.ask(words).unwrap()
    }

    fn refused(&mut self, words: &[&str]) -> String {
        self.ask(words).unwrap_err()
    }
}

impl Host for Dummies {
    fn kinds(&self) -> Vec<String> {
        vec!["dummy".to_owned()]
    }

    fn names(&self, kind: &str) -> Result<Vec<String>, Error> {
        let all = self.datapaths.iter().filter(|d| d.kind() == kind);
        Ok(all.map(|d| d.name().to_owned()).collect())
    }

    fn open(&self, kind: &str, name: &str) -> Result<Arc<dyn Datapath>, Error> {
        let mut all = self.datapaths.iter();
        let found = all.find(|d| d.kind() == kind && d.name() == name);
        found
            .cloned()
            .ok_or_else(|| Error::NotFound(name.to_owned()))
    }

    fn create(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        if self.open(kind, name).is_ok() {
            return Err(Error::Exists(name.to_owned()));
        }
        let datapath = UserDatapath::open(dp_user::Options {
            kind: kind.to_owned(),
            name: name.to_owned(),
            dummy: true,
            devices: self.devices.clone(),
            clock: self.clock.clone(),
            threads: Some(1),
        })?;
        self.datapaths.push(Arc::new(datapath));
        Ok(())
    }

    fn delete(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        self.datapaths
            .retain(|d| d.kind() != kind || d.name() != name);
        Ok(())
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }
}

#[test]
fn datapaths_come_and_go() {
    let mut host = Dummies::new();
    assert_eq!(
        host.refused(&["dump-flows"]),
        "ovs-vswitchd: no datapaths exist\n\
         ovs-vswitchd: datapath not found (Invalid argument)\n"
    );
    assert_eq!(host.ok(&["dump-dps"]), "");
    assert_eq!(host.ok(&["add-dp", "dummy@br0"]), "");
    assert_eq!(
        host.refused(&["add-dp", "dummy@br0"]),
        "ovs-vswitchd: add_dp (File exists)\n"
    );
    host.ok(&["add-dp", "dummy@br1", "p1,type=dummy"]);
    assert_eq!(host.ok(&["dump-dps"]), "dummy@br0\ndummy@br1\n");
    assert_eq!(
        host.refused(&["dump-flows"]),
        "ovs-vswitchd: multiple datapaths, specify one\n\
         ovs-vswitchd: datapath not found (Invalid argument)\n"
    );
    host.ok(&["del-dp", "dummy@br1"]);
    assert_eq!(
        host.refused(&["del-dp", "dummy@br1"]),
        "ovs-vswitchd: opening datapath (No such device)\n"
    );
    assert_eq!(
        host.refused(&["add-dp", "foo@br1"]),
        "ovs-vswitchd: add_dp (Address family not supported by protocol)\n"
    );
}

#[test]
fn ports_come_change_and_go() {
    let mut host = Dummies::new();
    host.ok(&["add-dp", "dummy@br0"]);
    host.ok(&["add-if", "dummy@br0", "vif1.0,type=dummy,port_no=5"]);
    let shown = "dummy@br0:\n  lookups: hit:0 missed:0 lost:0\n  flows: 0\n  \
                 port 0: br0 (dummy-internal)\n  port 5: vif1.0 (dummy)\n";
    assert_eq!(host.ok(&["show", "dummy@br0"]), shown);
    assert_eq!(host.ok(&["show"]), shown);
    let statistics = host.ok(&["show", "-s", "dummy@br0"]);
    assert!(
        statistics.ends_with(
            "  port 5: vif1.0 (dummy)\n    \
             RX packets:0 errors:? dropped:? overruns:? frame:?\n    \
             TX packets:0 errors:? dropped:? aborted:? carrier:?\n    collisions:?\n    \
             RX bytes:0  TX bytes:0\n    UPCALL packets:? errors:?\n"
        ),
        "{statistics}"
    );
    let refusals: &[(&[&str], &str)] = &[
        (
            &["add-if", "dummy@br0", "vif1.0,type=dummy"],
            "adding vif1.0 to dummy@br0 failed (File exists)",
        ),
        (
            &["set-if", "dummy@br0", "vif1.0,type=system"],
            "vif1.0: can't change type from dummy to system",
        ),
        (
            &["set-if", "dummy@br0", "vif1.0,port_no=6"],
            "vif1.0: can't change port number from 5 to 6",
        ),
        (
            &["set-if", "dummy@br0", "nope,port_no=6"],
            "nope: failed to query port in dummy@br0 (No such device)",
        ),
        (
            &["set-if", "dummy@br0", "vif1.0,ifindex=x"],
            "ifindex=x: not a number (Invalid argument)",
        ),
        (
            &["add-if", "dummy@br0", "vif2.0,port_no=x"],
            "port_no=x: not a number (Invalid argument)",
        ),
        (
            &["del-if", "dummy@br0", "nonexistent"],
            "no port named nonexistent",
        ),
        (
            &["del-if", "dummy@br0", "br0"],
            "deleting port br0 from dummy@br0 failed (Invalid argument)",
        ),
        (
            &["del-if", "dummy@br0", "17"],
            "deleting port 17 from dummy@br0 failed (No such device)",
        ),
    ];
    for (words, text) in refusals {
        assert_eq!(host.refused(words), format!("ovs-vswitchd: {text}\n"));
    }
    assert_eq!(host.ok(&["show"]), shown);
    host.ok(&["set-if", "dummy@br0", "vif1.0,port_no=5,ifindex=7"]);
    let with_option = shown.replace("vif1.0 (dummy)", "vif1.0 (dummy: ifindex=7)");
    assert_eq!(host.ok(&["show"]), with_option);
    host.ok(&["set-if", "dummy@br0", "vif1.0,ifindex="]);
    assert_eq!(host.ok(&["show"]), shown);
    host.ok(&["del-if", "dummy@br0", "vif1.0"]);
    assert!(!host.ok(&["show"]).contains("vif1.0"));
}

const UFID: &str = "ufid:00000000-0000-0000-0000-000000000001";

fn with_ports() -> Dummies {
    let mut host = Dummies::new();
    host.ok(&["add-dp", "dummy@d0", "p1,type=dummy", "p2,type=dummy"]);
    host
}

#[test]
fn flows_come_change_and_go() {
    let mut host = with_ports();
    let flow = "in_port(1),eth(),eth_type(0x1234)";
    assert_eq!(host.ok(&["add-flow", flow, "2"]), "");
    assert_eq!(
        host.refused(&["add-flow", flow, "2"]),
        "ovs-vswitchd: updating flow table (File exists)\n"
    );
    let other = "in_port(p2),eth(),eth_type(0x1236)";
    host.ok(&["add-flow", "dummy@d0", &format!("{UFID},{other}"), "p1"]);
    assert_eq!(
        host.ok(&["mod-flow", "-s", flow, "3"]),
        "packets:0, bytes:0, used:never\n"
    );
    assert_eq!(
        host.ok(&["dump-flows"]),
        "flow-dump from the main thread:\n\
         recirc_id(0),in_port(1),eth(),eth_type(0x1234), packets:0, bytes:0, used:never, actions:3\n\
         recirc_id(0),in_port(2),eth(),eth_type(0x1236), packets:0, bytes:0, used:never, actions:1\n"
    );
    let shown = "recirc_id(0),in_port(2),eth(),eth_type(0x1236), packets:0, bytes:0, \
                 used:never, actions:1\n";
    assert_eq!(host.ok(&["get-flow", UFID]), shown);
    let everything = host.ok(&["get-flow", "-m", "dummy@d0", UFID]);
    assert_eq!(
        everything,
        format!(
            "{UFID}, recirc_id(0),dp_hash(0/0),skb_priority(0/0),in_port(p2),skb_mark(0/0),\
             ct_state(0/0),ct_zone(0/0),ct_mark(0/0),ct_label(0/0),packet_type(ns=0/0,id=0/0),\
             eth(src=00:00:00:00:00:00/00:00:00:00:00:00,dst=00:00:00:00:00:00/00:00:00:00:00:00),\
             eth_type(0x1236), packets:0, bytes:0, used:never, dp:ovs, actions:p1\n"
        )
    );
    assert!(
        host.ok(&["get-flow", "-m", "--no-names", UFID])
            .contains("in_port(2)")
    );
    let by_number = "in_port(2),eth(),eth_type(0x1236)";
    assert_eq!(
        host.refused(&["del-flow", by_number]),
        "ovs-vswitchd: deleting flow (No such file or directory)\n\
         Perhaps you need to specify a UFID?\n"
    );
    assert_eq!(
        host.ok(&["del-flow", "-s", &format!("{UFID},")]),
        "packets:0, bytes:0, used:never\n"
    );
    assert_eq!(
        host.refused(&["del-flow", UFID]),
        "ovs-vswitchd: deleting flow (No such file or directory)\n"
    );
    host.ok(&["del-flow", "dummy@d0", flow]);
    assert_eq!(host.ok(&["dump-flows", "dummy@d0"]), "");
}

#[test]
fn flows_that_are_changed_must_be_there_or_may_be_made() {
    let mut host = with_ports();
    let flow = "in_port(1),eth(),eth_type(0x4321)";
    assert_eq!(
        host.refused(&["mod-flow", flow, "3"]),
        "ovs-vswitchd: updating flow table (No such file or directory)\n"
    );
    host.ok(&["mod-flow", "--may-create", flow, "3"]);
    host.ok(&["mod-flow", "--may-create", flow, "4"]);
    assert_eq!(
        host.refused(&["mod-flow", "--clear", flow, "5"]),
        "ovs-vswitchd: updating flow table (Operation not supported)\n"
    );
    assert!(host.ok(&["dump-flows"]).ends_with("actions:4\n"));
}

#[test]
fn faults_in_flows_are_named() {
    let mut host = with_ports();
    let cases: &[(&[&str], &str)] = &[
        (
            &["add-flow", "in_port(p9),eth(),eth_type(0x1234)", "1"],
            "parsing flow key (syntax error at in_port(p9),eth(),eth_type(0x1234)) (Invalid argument)",
        ),
        (
            &["add-flow", "in_port(1),eth(src=", "1"],
            "parsing flow key (syntax error at eth(src=) (Invalid argument)",
        ),
        (
            &["add-flow", "in_port(1),eth(),eth_type(0x1234)", "bad("],
            "parsing actions (Invalid argument)",
        ),
        (
            &["add-flow", "ufid:xx,in_port(2),eth()", "1"],
            "parsing flow ufid (Invalid argument)",
        ),
        (
            &["add-flow", "nope", "in_port(2),eth(),eth_type(0x1235)", "1"],
            "datapath not found (Invalid argument)",
        ),
        (&["get-flow", "foo"], "parsing flow ufid"),
        (
            &["get-flow", "ufid:foo"],
            "parsing flow ufid (Invalid argument)",
        ),
        (
            &["get-flow", UFID],
            "getting flow (No such file or directory)",
        ),
        (
            &["del-flow", "in_port(1),eth(),eth_type(0x43"],
            "syntax error at eth_type(0x43 (Invalid argument)",
        ),
        (
            &["add-flows", "/nonexistent"],
            "Opening file \"/nonexistent\" failed (No such file or directory)",
        ),
        (
            &["cache-set-size", "dummy@d0", "a", "x"],
            "size is malformed (Invalid argument)",
        ),
        (
            &["cache-set-size", "dummy@d0", "a", "3"],
            "Setting caches not supported (Operation not supported)",
        ),
    ];
    for (words, text) in cases {
        assert_eq!(host.refused(words), format!("ovs-vswitchd: {text}\n"));
    }
    assert_eq!(host.ok(&["dump-flows"]), "");
}

#[test]
fn dumps_show_what_is_asked_for() {
    let mut host = with_ports();
    let ip = "in_port(1),eth(),eth_type(0x0800),ipv4(src=10.0.0.0/255.0.0.0,proto=6,frag=no)";
    host.ok(&["add-flow", ip, "2"]);
    host.ok(&["add-flow", "in_port(2),eth(),eth_type(0x1234)", "drop"]);
    let mut ports = |operands: &[&str]| {
        let words: Vec<&str> = ["dump-flows"].iter().chain(operands).copied().collect();
        let text = host.ok(&words);
        let has = |port: u32| text.contains(&format!("in_port({port})"));
        (has(1), has(2), text.starts_with("flow-dump from the main"))
    };
    let (both, none) = ((true, true, true), (false, false, false));
    let (first, second) = ((true, false, true), (false, true, true));
    for (operands, want) in [
        (&["filter=tcp"][..], first),
        (&["filter=udp"], none),
        (&["filter=ip,nw_src=10.9.9.9"], first),
        (&["filter=ip,nw_src=11.0.0.1"], none),
        // What a flow leaves open, some packet of it matches.
        (&["filter=dl_src=00:00:00:00:00:03"], both),
        (&["filter=in_port=2"], second),
        (&["filter=in_port=p2"], second),
        (&["filter="], both),
        (&["type=ovs"], both),
        (&["type=all"], both),
        (&["type=tc,non-offloaded"], both),
        (&["type=tc"], none),
        (&["type=dpdk"], none),
        (&["type=offloaded"], none),
        (&["type=partially-offloaded"], none),
        (&["type="], none),
        (&["pmd=-1"], (true, true, false)),
        (&["pmd=0"], none),
        (&["type=ovs", "dummy@d0", "filter=tcp"], first),
    ] {
        assert_eq!(ports(operands), want, "{operands:?}");
    }
    let refusals = [
        (
            "filter=in_port=p9",
            "Failed to parse filter (in_port=p9: bad value for in_port \
             (p9: invalid or unknown port for in_port))",
        ),
        (
            "filter=foo=3",
            "Failed to parse filter (foo=3: unknown field foo)",
        ),
        (
            "filter=nw_src=1.2",
            "Failed to parse filter (nw_src=1.2: prerequisites not met for setting nw_src)",
        ),
        ("type=x", "Failed to parse type (x) (Invalid argument)"),
        ("dummy@nope", "datapath not found (Invalid argument)"),
    ];
    for (operand, text) in refusals {
        let error = host.refused(&["dump-flows", operand]);
        assert_eq!(error, format!("ovs-vswitchd: {text}\n"));
    }
    let error = host.ask_as(Caller::Tool, &["dump-flows", "type=ovs"]);
    assert_eq!(
        error.unwrap_err(),
        "ovs-vswitchd: Invalid argument 'type'. Use 'ovs-appctl dpctl/dump-flows' instead.\n"
    );
}

#[test]
fn files_of_flows() {
    let mut host = with_ports();
    let path = std::env::temp_dir().join(format!("dp-ctl-{}.txt", std::process::id()));
    let file = path.to_str().unwrap().to_owned();
    let flow = |n: u8| format!("in_port(1),eth(dst=00:00:00:00:00:0{n}),eth_type(0x1234)");
    let text = format!(
        "# three flows\nadd {0} 2\n{1} 2,3\n  add\t{2} 2\nmodify {0} 1\ndelete {1}\nnonsense\n",
        flow(2),
        flow(3),
        flow(4)
    );
    std::fs::write(&path, text).unwrap();
    assert_eq!(
        host.refused(&["add-flows", "dummy@d0", &file]),
        "ovs-vswitchd: Failed parsing line number 7, skipped!\n"
    );
    let line = |n: u8, actions: &str| {
        format!(
            "recirc_id(0),in_port(1),eth(dst=00:00:00:00:00:0{n}),eth_type(0x1234), \
             packets:0, bytes:0, used:never, actions:{actions}\n"
        )
    };
    let title = "flow-dump from the main thread:\n";
    let dumped = host.ok(&["dump-flows"]);
    assert_eq!(dumped, format!("{title}{}{}", line(2, "1"), line(4, "2")));
    std::fs::write(&path, format!("{}\n", flow(2))).unwrap();
    host.ok(&["del-flows", &file]);
    assert_eq!(host.ok(&["dump-flows"]), format!("{title}{}", line(4, "2")));
    host.ok(&["del-flows", "dummy@d0"]);
    assert_eq!(host.ok(&["dump-flows"]), "");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn the_rest_answers() {
    let mut host = with_ports();
    assert_eq!(host.ok(&["offload-stats-show"]), "HW Offload stats:\n");
    assert_eq!(host.ok(&["cache-get-size"]), "dummy@d0:\n");
    assert_eq!(
        host.ok(&["parse-actions", "1", "2,push_vlan(vid=3,pcp=0)", "drop"]),
        "1\n2,push_vlan(vid=3,pcp=0)\ndrop\n"
    );
    assert_eq!(
        host.refused(&["parse-actions", "1", "foo", "2"]),
        "1\novs-vswitchd: odp_actions_from_string (Invalid argument)\n"
    );
    assert_eq!(
        host.refused(&["show", "dummy@nope", "foo@bar", "dummy@d0"]),
        "ovs-vswitchd: opening datapath dummy@nope failed (No such device)\n\
         ovs-vswitchd: opening datapath foo@bar failed (Address family not supported by protocol)\n\
         dummy@d0:\n  lookups: hit:0 missed:0 lost:0\n  flows: 0\n  port 0: d0 (dummy-internal)\n  \
         port 1: p1 (dummy)\n  port 2: p2 (dummy)\n"
    );
    let commands = host.ok(&["list-commands"]);
    assert!(commands.contains("\n  dpctl/get-flow                [dp] ufid\n"));
    assert!(!commands.contains("dpctl/help"));
    assert!(
        host.refused(&["ct-get-limits"])
            .contains("failed to get conntrack limit Operation not supported")
    );
}
