//! The connection tracker through the tools: what is tracked, what is forgotten, limits of zones.

use testkit::Running;

use crate::{answered, host, skip, start, until};

/// Every packet is tracked in zone 5.
const RULES: [&str; 4] = [
    "table=0,priority=10,arp,actions=normal",
    "table=0,priority=1,ip,actions=ct(table=1,zone=5)",
    "table=1,priority=10,ip,ct_state=+trk+new,actions=ct(commit,zone=5,exec(set_field:7->ct_mark)),normal",
    "table=1,priority=10,ip,ct_state=+trk+est,actions=normal",
];

fn tracked(running: &Running, args: &[&str]) -> Vec<String> {
    let command = [&["dpctl/dump-conntrack"], args].concat();
    let text = running.appctl(&command).unwrap();
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines.sort();
    lines
}

/// A ping's line without its number.
const PING: &str = "icmp,orig=(src=10.1.1.1,dst=10.1.1.2,id=ID,type=8,code=0),\
     reply=(src=10.1.1.2,dst=10.1.1.1,id=ID,type=0,code=0),zone=5,mark=7";

fn without_ids(lines: &[String]) -> Vec<String> {
    let mask = |line: &String| {
        let mut parts = line.split("id=");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            all + "id=ID" + rest
        })
    };
    lines.iter().map(mask).collect()
}

#[test]
fn connections_are_listed_and_forgotten() {
    if skip("connections_are_listed_and_forgotten") {
        return;
    }
    let running = start(&[]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    let ofctl = |args: &[&str]| running.tool("ovs-ofctl", args).unwrap();
    ofctl(&["del-flows", "br0"]);
    for rule in RULES {
        ofctl(&["add-flow", "br0", rule]);
    }
    let fill = || {
        until("the ping is answered", || answered(&one, &two, 1) == 1);
        let lines = tracked(&running, &["zone=5"]);
        assert!(!lines.is_empty());
        assert!(without_ids(&lines).iter().all(|l| l == PING), "{lines:?}");
    };
    fill();
    assert!(tracked(&running, &["zone=6"]).is_empty());
    let verbose = tracked(&running, &["-m", "-s", "zone=5"]);
    assert!(verbose[0].contains(",status=SEEN_REPLY|"), "{verbose:?}");
    assert!(verbose[0].contains(",timeout="), "{verbose:?}");
    let stats = running.appctl(&["dpctl/ct-stats-show"]).unwrap();
    assert!(stats.contains("  ICMP: "), "{stats}");
    // What is not meant stays.
    for other in [
        &["dpctl/flush-conntrack", "zone=6"][..],
        &["dpctl/flush-conntrack", "zone=5", "mark=8"],
        &["dpctl/flush-conntrack", "ct_nw_src=10.1.1.9"],
    ] {
        running.appctl(other).unwrap();
    }
    ofctl(&["ct-flush-zone", "br0", "6"]);
    ofctl(&["ct-flush", "br0", "zone=5", "ct_nw_dst=10.1.1.1"]);
    assert!(!tracked(&running, &["zone=5"]).is_empty());
    for flush in [
        &["ct-flush-zone", "br0", "5"][..],
        &["ct-flush", "br0"],
        &["ct-flush", "br0", "zone=5", "mark=7/0xf"],
        &["ct-flush", "br0", "ct_nw_src=10.1.1.1"],
    ] {
        fill();
        ofctl(flush);
        assert!(tracked(&running, &["zone=5"]).is_empty(), "{flush:?}");
    }
    for flush in [&["zone=5"][..], &[], &["mark=7"], &["ct_nw_dst=10.1.1.2"]] {
        fill();
        let command = [&["dpctl/flush-conntrack"], flush].concat();
        running.appctl(&command).unwrap();
        assert!(tracked(&running, &["zone=5"]).is_empty(), "{flush:?}");
    }
    let refused = running.appctl(&["dpctl/flush-conntrack", "ct_nw_src=x"]);
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("failed to parse field ct_nw_src (Invalid argument)"),
        "{text}"
    );
}

#[test]
fn zones_have_limits() {
    if skip("zones_have_limits") {
        return;
    }
    let running = start(&[]);
    let appctl = |args: &[&str]| running.appctl(args).unwrap();
    appctl(&[
        "dpctl/ct-set-limits",
        "default=10",
        "zone=1,limit=5",
        "zone=0,limit=3",
    ]);
    assert_eq!(
        appctl(&["dpctl/ct-get-limits", "zone=0,1,2"]),
        "default limit=10\nzone=0,limit=3,count=0\nzone=1,limit=5,count=0\n\
         zone=2,limit=10,count=0\n"
    );
    appctl(&["dpctl/ct-del-limits", "zone=0"]);
    assert_eq!(
        appctl(&["dpctl/ct-get-limits"]),
        "default limit=10\nzone=1,limit=5,count=0\n"
    );
    appctl(&["dpctl/ct-del-limits", "default", "zone=1"]);
    assert_eq!(appctl(&["dpctl/ct-get-limits"]), "default limit=0\n");
}
