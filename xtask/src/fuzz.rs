//! `cargo xtask fuzz`: builds the fuzzers of `fuzz/` with the stable compiler's coverage
//! flags, runs them one after another, and says how far each came.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::layers;

/// The targets, as `fuzz-targets` names them.
const TARGETS: [&str; 5] = ["packet", "json", "database", "openflow", "flow-text"];

/// What makes the compiler count which code an input reaches, and trace comparisons.
/// These are stable flags; the one code generation unit keeps the counters together.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// With a target of its own, build scripts and macros are built without the flags.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

struct Options {
    seconds: u32,
    targets: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        seconds: 60,
        targets: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            let number = args.next().and_then(|n| n.parse().ok());
            options.seconds = number.ok_or("fuzz: --seconds needs a number")?;
        } else if TARGETS.contains(&arg.as_str()) {
            options.targets.push(arg.clone());
        } else {
            let known = TARGETS.join(", ");
            return Err(format!("fuzz: unknown target {arg}; there are {known}"));
        }
    }
    if options.targets.is_empty() {
        options.targets = TARGETS.map(str::to_owned).to_vec();
    }
    Ok(options)
}

/// Runs what the command line asks for.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let folder = layers::root().join("fuzz");
    let programs = build(&folder)?;
    let mut failed = Vec::new();
    for target in &options.targets {
        let progress = run_target(&folder, &programs, target, options.seconds)?;
        println!("xtask: fuzz {target}: {progress}");
        if !progress.passed {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        let failed = failed.join(", ");
        Err(format!(
            "failed: {failed}; the inputs are in fuzz/artifacts: once mended, put them into \
             crates/fuzz-targets/seeds"
        ))
    }
}

/// Builds the fuzzers and returns their folder.
fn build(folder: &Path) -> Result<PathBuf, String> {
    let mut cargo = layers::cargo();
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let output = target.map_or_else(|| folder.join("target"), |t| Path::new(&t).join("fuzz"));
    cargo
        .current_dir(folder)
        .args(["build", "--release", "--quiet", "--target", PLATFORM])
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", &output);
    match cargo.status() {
        Ok(status) if status.success() => Ok(output.join(PLATFORM).join("release")),
        Ok(status) => Err(format!("fuzz: cargo build: {status}")),
        Err(error) => Err(format!("fuzz: cargo: {error}")),
    }
}

/// How far a fuzzer came.
#[derive(Default)]
struct Progress {
    executions: u64,
    /// Places in the code that were reached, and that there are.
    reached: u64,
    places: u64,
    inputs: String,
    /// Resident memory in MiB: after the first inputs, and last.
    memory: (u64, u64),
    passed: bool,
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let result = if self.passed { "ok" } else { "FAILED" };
        let Self {
            executions,
            reached,
            places,
            inputs,
            memory: (first, last),
            ..
        } = self;
        write!(
            f,
            "{result}, {executions} executions, {reached} of {places} places reached, \
             {inputs} inputs kept, memory from {first} to {last} MiB"
        )
    }
}

impl Progress {
    /// Takes note of a line that the fuzzer wrote, such as
    /// `#4096 pulse  cov: 812 ft: 2011 corp: 91/2Kb lim: 80 exec/s: 2048 rss: 44Mb`.
    fn read(&mut self, line: &str) {
        if let Some(rest) = line.split("PC tables (").nth(1) {
            self.places = leading_number(rest);
        }
        if let Some(rest) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = leading_number(rest.trim());
        }
        let Some(rest) = line.strip_prefix('#') else {
            return;
        };
        let value = |name: &str| Some(rest.split(name).nth(1)?.trim_start());
        self.executions = leading_number(rest);
        if let Some(reached) = value("cov:") {
            self.reached = leading_number(reached);
        }
        if let Some(inputs) = value("corp:") {
            self.inputs = inputs.split('/').next().unwrap_or_default().to_owned();
        }
        if let Some(memory) = value("rss:").map(leading_number) {
            self.memory.1 = memory;
            if rest.contains("INITED") {
                self.memory.0 = memory;
            }
        }
    }
}

fn leading_number(text: &str) -> u64 {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().unwrap_or(0)
}

/// Resident memory in MiB that a fuzzer may have, and above which it has failed.
const MEMORY: u32 = 2048;
/// Seconds that one input may take.
const TIMEOUT: u32 = 10;

fn run_target(
    folder: &Path,
    programs: &Path,
    target: &str,
    seconds: u32,
) -> Result<Progress, String> {
    let fail = |error: std::io::Error| format!("fuzz {target}: {error}");
    let corpus = folder.join("corpus").join(target);
    let artifacts = folder.join("artifacts").join(target);
    std::fs::create_dir_all(&artifacts).map_err(fail)?;
    let mut seeds = layers::cargo();
    seeds.args([
        "run",
        "--quiet",
        "-p",
        "fuzz-targets",
        "--bin",
        "corpus",
        "--",
    ]);
    let seeded = seeds.arg(target).arg(&corpus).status().map_err(fail)?;
    if !seeded.success() {
        return Err(format!("fuzz {target}: no inputs to begin with"));
    }
    let mut fuzzer = Command::new(programs.join(target));
    fuzzer
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = fuzzer.spawn().map_err(fail)?;
    let mut progress = Progress::default();
    let mut last = Vec::new();
    let log = std::fs::File::create(folder.join(format!("{target}.log"))).map_err(fail)?;
    let mut log = std::io::BufWriter::new(log);
    for line in BufReader::new(child.stderr.take().ok_or("no output")?).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(fail)?).into_owned();
        progress.read(&line);
        std::io::Write::write_all(&mut log, format!("{line}\n").as_bytes()).map_err(fail)?;
        if !line.starts_with('#') {
            last.push(line);
        }
    }
    progress.passed = child.wait().map_err(fail)?.success();
    if !progress.passed {
        let shown = last.len().saturating_sub(30);
        println!("{}", last[shown..].join("\n"));
    }
    Ok(progress)
}
