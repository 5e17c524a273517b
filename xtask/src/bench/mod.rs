//! `cargo xtask bench`: Sluice and Debian's Open vSwitch in alternation in one run, and the
//! ratio of the medians.  Absolute figures mean nothing on a shared machine; ratios of
//! alternating runs do.

mod db;
mod measure;
mod openflow;
mod upcall;

use testkit::Stack;

/// One figure.
pub(crate) struct Figure {
    /// What it is called on the command line and in the report.
    name: &'static str,
    /// Its unit.
    unit: &'static str,
    /// Whether more is better.
    more_is_better: bool,
    /// The ratio to the original that must hold: at least where more is better, at most
    /// where less is.
    mark: f64,
    measure: fn(&Stack) -> Result<f64, String>,
}

const FIGURES: &[Figure] = &[
    figure("tcp", "Gbit/s", true, 1.0, measure::tcp),
    figure("tcp-cpu", "CPU s per GB", false, 1.0, measure::tcp_cpu),
    figure(
        "tcp-no-offload",
        "Gbit/s",
        true,
        1.0,
        measure::tcp_no_offload,
    ),
    figure("ping-p99", "us", false, 1.0, measure::ping_p99),
    figure("udp-64", "packets/s", true, 0.8, measure::udp_rate),
    figure(
        "udp-cpu",
        "CPU s per million packets",
        false,
        1.25,
        measure::udp_cpu,
    ),
    figure("flow-mods", "per s", true, 1.0, measure::flow_mods),
    figure(
        "flow-mods-barrier",
        "per s",
        true,
        0.0,
        measure::flow_mods_barrier,
    ),
    figure(
        "flow-mods-barrier-10k",
        "per s",
        true,
        0.0,
        measure::flow_mods_barrier_megaflows,
    ),
    figure("port-500", "ms", false, 0.5, measure::port_500),
    figure("idle-cpu-500", "CPU %", false, 0.5, measure::idle_cpu),
    figure("rss-empty", "MiB", false, 1.25, measure::rss_empty),
    figure("rss-100k", "MiB", false, 1.25, measure::rss_rules),
];

const fn figure(
    name: &'static str,
    unit: &'static str,
    more_is_better: bool,
    mark: f64,
    measure: fn(&Stack) -> Result<f64, String>,
) -> Figure {
    Figure {
        name,
        unit,
        more_is_better,
        mark,
        measure,
    }
}

/// Runs the figures that `args` name, or all; `--rounds N` is how often each side runs,
/// `--noise` compares the original with itself.
///
/// `upcall` or `db` as the first is a benchmark of its own.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args.first().map(String::as_str) {
        Some("upcall") => return upcall::run(&args[1..]),
        Some("db") => return db::run(&args[1..]),
        _ => {}
    }
    let (mut rounds, mut noise, mut names) = (5, false, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => {
                let n = args.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                rounds = n.ok_or("--rounds needs a number")?;
            }
            "--noise" => noise = true,
            name if FIGURES.iter().any(|f| f.name == name) => names.push(name),
            other => {
                let all: Vec<&str> = FIGURES.iter().map(|f| f.name).collect();
                return Err(format!(
                    "bench: no figure {other} (there are: {})",
                    all.join(", ")
                ));
            }
        }
    }
    if !testkit::is_root() {
        return Err("bench: must run as root (it makes network namespaces)".into());
    }
    if !noise {
        crate::demo::build()?;
    }
    let ours = if noise {
        Stack::debian()?
    } else {
        Stack::ours(&crate::demo::release())
    };
    let debian = Stack::debian().map_err(|e| format!("bench: {e}"))?;
    println!(
        "{:24} {:>12} {:>12} {:>7} {:>6}",
        "figure", "Sluice", "original", "ratio", "mark"
    );
    let mut missed = Vec::new();
    for figure in FIGURES
        .iter()
        .filter(|f| names.is_empty() || names.contains(&f.name))
    {
        if !compare(figure, &ours, &debian, rounds) {
            missed.push(figure.name);
        }
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("bench: missed: {}", missed.join(", ")))
    }
}

/// Measures both sides in alternation and prints a line; whether the mark holds.
fn compare(figure: &Figure, ours: &Stack, debian: &Stack, rounds: usize) -> bool {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (stack, values) in [(ours, &mut own), (debian, &mut other)] {
            match (figure.measure)(stack) {
                Ok(value) => values.push(value),
                Err(error) => {
                    println!("{:24} {}: {error}", figure.name, stack.name);
                    return false;
                }
            }
        }
    }
    let (own, other) = (median(&mut own), median(&mut other));
    let ratio = if other == 0.0 {
        f64::INFINITY
    } else {
        own / other
    };
    let holds = if figure.more_is_better {
        ratio >= figure.mark
    } else {
        ratio <= figure.mark
    };
    let verdict = if holds { "" } else { "  MISSED" };
    println!(
        "{:24} {own:>12.3} {other:>12.3} {ratio:>7.3} {:>6} {}{verdict}",
        figure.name, figure.mark, figure.unit
    );
    holds
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
