//! `cargo xtask bench db`: the database server under a load, against the original's in the same
//! run.  The servers take turns; each turn goes through a database's whole life: bulk inserts with
//! clients that watch everything, small transactions, updates that must search, the first dump to
//! many clients, compaction, conversion, restart.

mod client;
mod data;
mod server;
mod turn;

use std::path::PathBuf;

use data::Size;
use server::Program;
use turn::Values;

/// One figure of a turn.
struct Figure {
    name: &'static str,
    unit: &'static str,
    /// The ratio to the original to be reached: at least where more is better, at most where
    /// less is.
    goal: Goal,
    value: fn(&Values) -> f64,
}

#[derive(Clone, Copy)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Less than this, whatever the original has.
    Below(f64),
}

const FIGURES: &[Figure] = &[
    Figure {
        name: "bulk-insert",
        unit: "rows per CPU s",
        goal: Goal::AtLeast(3.0),
        value: |v| v.bulk_rows_per_cpu,
    },
    Figure {
        name: "memory",
        unit: "bytes per atom",
        goal: Goal::AtMost(0.5),
        value: |v| v.bytes_per_atom,
    },
    Figure {
        name: "small-transactions",
        unit: "per s",
        goal: Goal::AtLeast(2.0),
        value: |v| v.small_per_second,
    },
    Figure {
        name: "small-transactions-cpu",
        unit: "CPU us each",
        goal: Goal::AtMost(0.5),
        value: |v| v.small_cpu,
    },
    Figure {
        name: "unindexed-updates",
        unit: "per s",
        goal: Goal::AtLeast(10.0),
        value: |v| v.searches_per_second,
    },
    Figure {
        name: "first-dump",
        unit: "s",
        goal: Goal::AtMost(0.33),
        value: |v| v.dump_seconds,
    },
    Figure {
        name: "first-dump-cpu",
        unit: "CPU s",
        goal: Goal::AtMost(0.33),
        value: |v| v.dump_cpu,
    },
    Figure {
        name: "compaction-pause",
        unit: "ms",
        goal: Goal::Below(50.0),
        value: |v| v.compaction_pause,
    },
    Figure {
        name: "conversion-pause",
        unit: "ms",
        goal: Goal::Below(100.0),
        value: |v| v.conversion_pause,
    },
    Figure {
        name: "start",
        unit: "s",
        goal: Goal::AtMost(0.33),
        value: |v| v.start_seconds,
    },
];

#[derive(Debug, PartialEq)]
struct Options {
    rounds: usize,
    rows: usize,
    /// The original's `ovsdb-server`, where it is not Debian's.
    peer: Option<PathBuf>,
    build: bool,
}

/// Rows of the usual database, whose file has 19 MB.
const ROWS: usize = 100_000;

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 3,
        rows: ROWS,
        peer: None,
        build: true,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            let value = args.next();
            value.ok_or_else(|| format!("bench db: {arg} needs a value"))
        };
        let number = |text: &String| {
            let parsed = text.parse::<usize>().ok().filter(|n| *n > 0);
            parsed.ok_or_else(|| format!("bench db: {arg}: '{text}' is not a positive number"))
        };
        match arg.as_str() {
            "--rounds" => options.rounds = number(value()?)?,
            "--rows" => options.rows = number(value()?)?,
            "--large" => options.rows = 10 * ROWS,
            "--peer" => options.peer = Some(value()?.into()),
            "--no-build" => options.build = false,
            other => return Err(format!("bench db: unknown option {other}")),
        }
    }
    Ok(options)
}

/// Runs the benchmark.
pub(super) fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    if options.build {
        crate::demo::build()?;
    }
    let ours = Program::new("Sluice", crate::demo::release().join("ovsdb-server"))?;
    let peer = options.peer.clone();
    let peer = peer.unwrap_or_else(|| "/usr/sbin/ovsdb-server".into());
    let peer = Program::new("original", peer)?;
    let size = Size { rows: options.rows };
    let mut turns: [Vec<Values>; 2] = [Vec::new(), Vec::new()];
    for round in 0..options.rounds {
        for (program, values) in [&ours, &peer].into_iter().zip(&mut turns) {
            let turn = turn::run(program, size)?;
            println!("[db] round {}: {} {turn:?}", round + 1, program.name);
            values.push(turn);
        }
    }
    report(&turns, size);
    Ok(())
}

fn report([ours, peer]: &[Vec<Values>; 2], size: Size) {
    println!(
        "{} rows of {} columns, {} clients that watch everything, medians of {} rounds",
        size.rows,
        data::COLUMNS,
        turn::WATCHERS,
        ours.len()
    );
    println!(
        "{:24} {:>12} {:>12} {:>7}  goal",
        "figure", "Sluice", "original", "ratio"
    );
    for figure in FIGURES {
        let median = |values: &[Values]| {
            let mut values: Vec<f64> = values.iter().map(figure.value).collect();
            super::median(&mut values)
        };
        let (own, other) = (median(ours), median(peer));
        let ratio = own / other;
        let (goal, holds) = match figure.goal {
            Goal::AtLeast(goal) => (format!("at least {goal}"), ratio >= goal),
            Goal::AtMost(goal) => (format!("at most {goal}"), ratio <= goal),
            Goal::Below(goal) => (format!("below {goal} {}", figure.unit), own < goal),
        };
        let verdict = if holds { "" } else { "  MISSED" };
        println!(
            "{:24} {own:>12.3} {other:>12.3} {ratio:>7.3}  {goal} ({}){verdict}",
            figure.name, figure.unit
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_command_line() {
        let options = parse(&words(
            "--large --rounds 2 --peer /x/ovsdb-server --no-build",
        ));
        let expected = Options {
            rounds: 2,
            rows: 1_000_000,
            peer: Some("/x/ovsdb-server".into()),
            build: false,
        };
        assert_eq!(options, Ok(expected));
        assert!(parse(&words("--rounds 0")).is_err());
        assert!(parse(&words("--rows")).is_err());
        assert!(parse(&words("pause")).is_err());
    }
}
