//! The figures: each starts a switch, does one thing to it and reads one number.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use base::{Clock, Instant};
use net_netlink::route::{LinkRef, VethEnd};
use net_nlsock::route::Routes;
use testkit::net::Host;
use testkit::{Running, Stack};

use super::openflow::Controller;

const BULK: Duration = Duration::from_secs(2);

fn two_hosts(running: &Running) -> Result<(Host, Host), String> {
    let host = |n: u8| {
        let ip = Ipv4Addr::new(10, 1, 1, n);
        let host = Host::new(&running.netns, &format!("host{n}"), ip);
        let host = host.map_err(|e| format!("host: {e}"))?;
        running.tool(
            "ovs-vsctl",
            &["--timeout=20", "add-port", "br0", &host.cable],
        )?;
        Ok::<Host, String>(host)
    };
    let hosts = (host(1)?, host(2)?);
    let answered = hosts.0.ping(hosts.1.ip, 3, Duration::from_millis(10));
    if answered.map_err(|e| format!("ping: {e}"))?.is_empty() {
        return Err("no ping is answered".into());
    }
    Ok(hosts)
}

/// TCP between two veths as Linux makes them, with the setting that the original needs: Gbit/s,
/// and the switch's processor seconds per gigabyte.
fn bulk(stack: &Stack) -> Result<(f64, f64), String> {
    let settings: &[&str] = if stack.wants_tso_setting {
        &["userspace-tso-enable=true"]
    } else {
        &[]
    };
    let running = stack.start(settings)?;
    let (one, two) = two_hosts(&running)?;
    let before = running.switch_cpu()?;
    let rate = one.bulk_tcp(&two, BULK).map_err(|e| format!("TCP: {e}"))? / 1e9;
    let cpu = running.switch_cpu()? - before;
    Ok((rate, cpu / (rate / 8.0 * BULK.as_secs_f64())))
}

pub(super) fn tcp(stack: &Stack) -> Result<f64, String> {
    Ok(bulk(stack)?.0)
}

pub(super) fn tcp_cpu(stack: &Stack) -> Result<f64, String> {
    Ok(bulk(stack)?.1)
}

/// TCP between two veths with their offloads turned off.
pub(super) fn tcp_no_offload(stack: &Stack) -> Result<f64, String> {
    let running = stack.start(&[])?;
    let (one, two) = two_hosts(&running)?;
    for host in [&one, &two] {
        let mut ethtool = Command::new("ethtool");
        ethtool.args([
            "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off",
        ]);
        let output = host
            .netns
            .run(|| ethtool.output())
            .map_err(|e| e.to_string())?;
        let output = output.map_err(|e| format!("ethtool: {e}"))?;
        if !output.status.success() {
            return Err(format!(
                "ethtool: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    Ok(one.bulk_tcp(&two, BULK).map_err(|e| format!("TCP: {e}"))? / 1e9)
}

/// The 99th percentile of 500 round trips, in microseconds.
pub(super) fn ping_p99(stack: &Stack) -> Result<f64, String> {
    let running = stack.start(&[])?;
    let (one, two) = two_hosts(&running)?;
    let mut times = one
        .ping(two.ip, 500, Duration::from_millis(2))
        .map_err(|e| format!("ping: {e}"))?;
    if times.len() < 490 {
        return Err(format!("{} of 500 pings were lost", 500 - times.len()));
    }
    times.sort();
    Ok(times[times.len() * 99 / 100].as_secs_f64() * 1e6)
}

/// 64-byte UDP packets that arrive in a second, and the processor seconds per million.
fn udp(stack: &Stack) -> Result<(f64, f64), String> {
    let running = stack.start(&[])?;
    let (one, two) = two_hosts(&running)?;
    let to = (two.ip, 9);
    let (before, cpu_before) = (received(&two)?, running.switch_cpu()?);
    let clock = Clock::new();
    one.netns
        .run(|| {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            socket.connect(to)?;
            while clock.real() < Instant::ZERO + BULK {
                for _ in 0..64 {
                    // Refused by the far host's closed port: still sent.
                    let _ = socket.send(&[0; 22]);
                }
            }
            Ok::<(), std::io::Error>(())
        })
        .map_err(|e| e.to_string())?
        .map_err(|e| format!("UDP: {e}"))?;
    let seconds = clock.real().since(Instant::ZERO).as_secs_f64();
    std::thread::sleep(Duration::from_millis(200));
    let packets = received(&two)? - before;
    let cpu = running.switch_cpu()? - cpu_before;
    Ok((packets / seconds, cpu / packets * 1e6))
}

fn received(host: &Host) -> Result<f64, String> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
    let text = host
        .netns
        .run(read)
        .map_err(|e| e.to_string())?
        .map_err(|e| e.to_string())?;
    let line = text.lines().find_map(|l| l.trim().strip_prefix("eth0:"));
    let packets = line
        .and_then(|l| l.split_whitespace().nth(1))
        .and_then(|n| n.parse().ok());
    packets.ok_or_else(|| "no counters of eth0".to_string())
}

pub(super) fn udp_rate(stack: &Stack) -> Result<f64, String> {
    Ok(udp(stack)?.0)
}

pub(super) fn udp_cpu(stack: &Stack) -> Result<f64, String> {
    Ok(udp(stack)?.1)
}

/// Rules a second in batches of 1,000, each with a barrier.
pub(super) fn flow_mods(stack: &Stack) -> Result<f64, String> {
    rate_of_rules(&stack.start(&[])?, 50_000, 1000)
}

/// Rules a second with a barrier after each.
pub(super) fn flow_mods_barrier(stack: &Stack) -> Result<f64, String> {
    rate_of_rules(&stack.start(&[])?, 2000, 1)
}

/// The same while the datapath holds 10,000 megaflows.
pub(super) fn flow_mods_barrier_megaflows(stack: &Stack) -> Result<f64, String> {
    let running = stack.start(&["max-idle=60000"])?;
    let (one, two) = two_hosts(&running)?;
    running.appctl(&["upcall/disable-megaflows"])?;
    one.netns
        .run(|| {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            for port in 1..=10_000u16 {
                let _ = socket.send_to(&[0; 22], (two.ip, port));
                if port % 50 == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            Ok::<(), std::io::Error>(())
        })
        .map_err(|e| e.to_string())?
        .map_err(|e| format!("UDP: {e}"))?;
    let flows = running.appctl(&["dpctl/dump-flows"])?.lines().count();
    if flows < 9000 {
        return Err(format!("only {flows} megaflows are there"));
    }
    rate_of_rules(&running, 2000, 1)
}

fn rate_of_rules(running: &Running, count: u32, batch: u32) -> Result<f64, String> {
    let mut controller = Controller::connect(&running.folder)?;
    let clock = Clock::new();
    controller.add(1, count, batch)?;
    Ok(f64::from(count) / clock.real().since(Instant::ZERO).as_secs_f64())
}

/// A switch with 500 ports less one, and the name of the last.
fn ports(stack: &Stack) -> Result<(Running, String), String> {
    let running = stack.start(&[])?;
    let mut routes = Routes::open_in(&running.netns).map_err(|e| e.to_string())?;
    let mut names = Vec::new();
    for pair in 0..250 {
        let ends = [format!("v{pair}a"), format!("v{pair}b")];
        let [one, other] = [0, 1].map(|i: usize| VethEnd {
            name: &ends[i],
            mac: None,
            netns: None,
        });
        routes
            .create_veth(&one, &other)
            .map_err(|e| format!("veth: {e}"))?;
        for end in &ends {
            routes
                .set_up(LinkRef::Name(end), true)
                .map_err(|e| format!("veth: {e}"))?;
        }
        names.extend(ends);
    }
    let last = names.pop().unwrap_or_default();
    for chunk in names.chunks(100) {
        let mut args = vec!["--timeout=120".to_string()];
        for name in chunk {
            args.extend(["--", "add-port", "br0", name].map(String::from));
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        running.tool("ovs-vsctl", &args)?;
    }
    Ok((running, last))
}

/// How long `ovs-vsctl add-port` takes for the 500th port, in milliseconds.
pub(super) fn port_500(stack: &Stack) -> Result<f64, String> {
    let (running, last) = ports(stack)?;
    let clock = Clock::new();
    running.tool("ovs-vsctl", &["--timeout=60", "add-port", "br0", &last])?;
    Ok(clock.real().since(Instant::ZERO).as_secs_f64() * 1e3)
}

/// The share of a processor that the switch uses with 500 ports and no traffic.
pub(super) fn idle_cpu(stack: &Stack) -> Result<f64, String> {
    const WINDOW: Duration = Duration::from_secs(20);
    let (running, last) = ports(stack)?;
    running.tool("ovs-vsctl", &["--timeout=60", "add-port", "br0", &last])?;
    std::thread::sleep(Duration::from_secs(5));
    let before = running.switch_cpu()?;
    std::thread::sleep(WINDOW);
    Ok((running.switch_cpu()? - before) / WINDOW.as_secs_f64() * 100.0)
}

/// Resident memory of a switch with one bridge, in MiB.
pub(super) fn rss_empty(stack: &Stack) -> Result<f64, String> {
    stack.start(&[])?.switch_memory()
}

/// Resident memory with 100,000 rules, in MiB.
pub(super) fn rss_rules(stack: &Stack) -> Result<f64, String> {
    let running = stack.start(&[])?;
    rate_of_rules(&running, 100_000, 1000)?;
    let aggregate = running.tool("ovs-ofctl", &["dump-aggregate", "br0"])?;
    if !aggregate.contains("flow_count=10000") {
        return Err(format!("the rules are not there: {}", aggregate.trim()));
    }
    running.appctl(&["version"])?;
    running.switch_memory()
}
