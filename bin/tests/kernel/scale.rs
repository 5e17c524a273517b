//! Ports by the thousand.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use testkit::{Need, Running, need};

use crate::{answered, host, inside, start, until, vsctl};

/// Ports, half of them cables.
const PORTS: usize = 2000;

/// Ports that one call of the tool adds.
const CHUNK: usize = 250;

/// Netlink sockets that the switch has open.
fn sockets(running: &Running) -> usize {
    let process = PathBuf::from(format!("/proc/{}", running.switch_id()));
    let table = fs::read_to_string(process.join("net/netlink")).unwrap();
    let inode = |line: &str| line.split_whitespace().last().map(String::from);
    let inodes: BTreeSet<String> = table.lines().skip(1).filter_map(inode).collect();
    let open = fs::read_dir(process.join("fd")).unwrap();
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|target| {
            let target = target.to_string_lossy();
            let inode = target.strip_prefix("socket:[");
            inode.is_some_and(|i| inodes.contains(i.trim_end_matches(']')))
        })
        .count()
}

fn set_dispatch(running: &Running, mode: &str) {
    let setting = format!("other_config:upcall-dispatch={mode}");
    vsctl(running, &["set", "Open_vSwitch", ".", &setting]);
}

#[test]
fn sockets_do_not_grow_with_ports_but_where_each_has_one() {
    let test = "sockets_do_not_grow_with_ports_but_where_each_has_one";
    if !need(test, &[Need::KernelVm, Need::Full]) {
        return;
    }
    let running = start(&["upcall-dispatch=per-cpu"]);
    let (one, two) = (host(&running, 1, &[]), host(&running, 2, &[]));
    assert_eq!(answered(&one, &two, 5), 5, "{}", running.report());
    let few = sockets(&running);
    let mut links = String::new();
    let mut names = Vec::new();
    for n in 0..PORTS / 4 {
        links.push_str(&format!(
            "link add v{n} type veth peer name w{n}\n\
             link add d{n} type dummy\nlink add e{n} type dummy\n"
        ));
        names.extend(["v", "w", "d", "e"].map(|kind| format!("{kind}{n}")));
    }
    let file = running.folder.join("links");
    fs::write(&file, links).unwrap();
    inside(&running, "/sbin/ip", &["-batch", &file.to_string_lossy()]);
    for chunk in names.chunks(CHUNK) {
        let mut args = vec!["--timeout=600"];
        for name in chunk {
            args.extend(["--", "add-port", "br0", name]);
        }
        running
            .tool("ovs-vsctl", &args)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    assert_eq!(answered(&one, &two, 5), 5);
    assert!(sockets(&running) <= few + 2, "{few}, {}", sockets(&running));
    // Without a restart each port gets a socket, and gives it back.
    set_dispatch(&running, "per-port");
    assert_eq!(answered(&one, &two, 5), 5);
    let many = sockets(&running);
    assert!((PORTS..PORTS + few + 10).contains(&many), "{few}, {many}");
    set_dispatch(&running, "per-cpu");
    assert_eq!(answered(&two, &one, 5), 5);
    until("ports' sockets are closed", || sockets(&running) <= few + 2);
}
