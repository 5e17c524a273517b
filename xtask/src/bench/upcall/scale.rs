//! A switch with many ports, half of them cables and half of them dummies.

use base::{Clock, Instant};
use testkit::Stack;

use super::tests::{Bench, Found, Size, make_links, sockets_in_both_modes};

/// Ports that one call of `ovs-vsctl` adds at most.
const CHUNK: usize = 250;

/// Name of the test.
pub(super) const NAME: &str = "ports";

/// Milliseconds that ports take which are added one by one.
fn one_by_one(bench: &Bench, ports: &[String]) -> Result<f64, String> {
    let clock = Clock::new();
    for port in ports {
        let args = ["--timeout=300", "add-port", "br0", port];
        bench.running.tool("ovs-vsctl", &args)?;
    }
    Ok(clock.real().since(Instant::ZERO).as_secs_f64() * 1e3)
}

fn together(bench: &Bench, ports: &[String]) -> Result<(), String> {
    for chunk in ports.chunks(CHUNK) {
        let mut args = vec!["--timeout=3600"];
        for port in chunk {
            args.extend(["--", "add-port", "br0", port]);
        }
        bench.running.tool("ovs-vsctl", &args)?;
    }
    Ok(())
}

/// Adds ports, and watches the switch do nothing.
pub(super) fn run(stack: &Stack, size: Size, has_dispatch: bool) -> Result<Found, String> {
    let running = stack.start(&[])?;
    let bench = Bench {
        running,
        far: Vec::new(),
        size,
        has_dispatch,
    };
    // The last eleven are added one by one: ten, and one more.
    let (mut links, mut names) = (String::new(), Vec::new());
    for n in 0..size.ports.div_ceil(4) + 6 {
        links.push_str(&format!(
            "link add v{n} type veth peer name w{n}\nlink set v{n} up\nlink set w{n} up\n\
             link add d{n} type dummy\nlink set d{n} up\n\
             link add e{n} type dummy\nlink set e{n} up\n"
        ));
        names.extend(["v", "d", "w", "e"].map(|kind| format!("{kind}{n}")));
    }
    make_links(&bench.running, &links)?;
    let (begin, rest) = names.split_at(10);
    let (middle, rest) = rest.split_at(size.ports.saturating_sub(10));
    let first = one_by_one(&bench, begin)?;
    together(&bench, middle)?;
    let one = one_by_one(&bench, &rest[..1])?;
    let ten = one_by_one(&bench, &rest[1..11])?;
    std::thread::sleep(std::time::Duration::from_secs(6));
    let before = bench.running.switch_cpu()?;
    std::thread::sleep(size.idle);
    let idle = (bench.running.switch_cpu()? - before) / size.idle.as_secs_f64() * 100.0;
    let (usual, per_port) = sockets_in_both_modes(&bench)?;
    let mut found = vec![
        ("ports-first-ten", first),
        ("ports-ten-more", ten),
        ("ports-ten-ratio", ten / first),
        ("ports-one-more", one),
        ("ports-idle-cpu", idle),
        ("ports-sockets", usual),
    ];
    found.extend(per_port.map(|n| ("ports-sockets-per-port", n)));
    Ok(found)
}
