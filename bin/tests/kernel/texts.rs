//! Texts as Debian's Open vSwitch has them, about the same datapath.

use crate::{answered, host, inside, skip, start, until};

/// Flows without what changes from one look to the next, sorted.
fn flows(text: &str) -> Vec<String> {
    let fixed = |line: &str| {
        let (flow, rest) = line.split_once(", packets:").unwrap_or((line, ""));
        let actions = rest
            .split_once("actions:")
            .map_or("", |(_, actions)| actions);
        format!("{flow} actions:{actions}")
    };
    let mut flows: Vec<String> = text.lines().map(fixed).collect();
    flows.sort();
    flows
}

#[test]
fn flows_look_as_in_the_original() {
    if skip("flows_look_as_in_the_original") {
        return;
    }
    let running = start(&[]);
    let one = host(&running, 1, &["tag=5"]);
    let (two, three) = (host(&running, 2, &["tag=5"]), host(&running, 3, &[]));
    for rule in [
        "priority=5,tcp,tcp_flags=+syn-ack,actions=mod_nw_ttl:5,normal",
        "priority=5,udp,udp_dst=0x3500/0xff00,actions=mod_dl_src:00:00:00:00:00:01,normal",
        "priority=5,icmp,icmp_type=8,actions=controller,normal",
    ] {
        running
            .tool("ovs-ofctl", &["add-flow", "br0", rule])
            .unwrap();
    }
    assert_eq!(answered(&one, &two, 3), 3, "{}", running.report());
    let _ = answered(&three, &one, 1);
    let _ = one.bulk_tcp(&two, std::time::Duration::from_millis(100));
    for args in [&["dump-flows"][..], &["dump-flows", "-m"]] {
        // Flows end by themselves, so both look until they see the same.
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..20 {
            let command = [&["dpctl/dump-flows"], &args[1..]].concat();
            ours = flows(&running.appctl(&command).unwrap());
            theirs = flows(&inside(&running, "/usr/bin/ovs-dpctl", args));
            if ours == theirs && !ours.is_empty() {
                break;
            }
        }
        assert_eq!(ours, theirs);
    }
}

#[test]
fn the_cache_of_masks_has_a_size() {
    if skip("the_cache_of_masks_has_a_size") {
        return;
    }
    let running = start(&[]);
    let set = |cache: &str, size: &str| {
        running.appctl(&["dpctl/cache-set-size", "ovs-system", cache, size])
    };
    for (size, now) in [("0", "0"), ("300", "512"), ("256", "256")] {
        let wanted = format!("Setting cache size successful, new size {now}\n");
        assert_eq!(set("masks-cache", size).unwrap(), wanted);
        let shown = running.appctl(&["dpctl/cache-get-size"]).unwrap();
        assert!(
            shown.contains(&format!("masks-cache: size:{now}\n")),
            "{shown}"
        );
    }
    let why = |cache: &str, size: &str| set(cache, size).unwrap_err().to_string();
    assert!(why("masks-cache", "80000").contains("Numerical result out of range"));
    assert!(why("dummy", "0").contains("Cache name \"dummy\" not found on dpif"));
    // What the datapath could do before it still can.
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    until("pings are answered", || answered(&one, &two, 3) == 3);
}
