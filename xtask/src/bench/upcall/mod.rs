//! `cargo xtask bench upcall`: packets that the kernel does not know what to do with, on their way
//! to the switch and back.  Sluice and another Open vSwitch take turns in one virtual machine.
//!
//! Without processor support the machine is emulated: counts, losses and ratios mean something
//! then, and times do not.

mod figures;
mod meter;
mod scale;
mod tests;
mod traffic;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::{Scratch, Stack};

use crate::{demo, layers, vm};
use figures::{Values, digits, table};
use tests::{Bench, Found, Size, TESTS};

/// How long the machine may take in all.
const LIMIT: Duration = Duration::from_secs(6 * 3600);

/// Programs that a make needs.
const PROGRAMS: &[&str] = &[
    "ovs-vswitchd",
    "ovsdb-server",
    "ovsdb-tool",
    "ovs-vsctl",
    "ovs-ofctl",
    "ovs-appctl",
];

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
struct Options {
    rounds: usize,
    short: bool,
    ports: Option<usize>,
    /// Folders with the programs of the other make; Debian's if there are none.
    peer: Vec<PathBuf>,
    schema: Option<PathBuf>,
    /// Our programs' folder: this is the inside of the machine.
    inside: Option<PathBuf>,
    tests: Vec<String>,
}

fn names() -> impl Iterator<Item = &'static str> {
    TESTS.iter().map(|t| t.name).chain([scale::NAME])
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 5,
        short: false,
        ports: None,
        peer: Vec::new(),
        schema: None,
        inside: None,
        tests: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            let value = args.next();
            value.ok_or_else(|| format!("bench upcall: {arg} needs a value"))
        };
        let number = |text: &String| {
            let parsed = text.parse::<usize>().ok().filter(|n| *n > 0);
            parsed.ok_or_else(|| format!("bench upcall: {arg}: '{text}' is not a positive number"))
        };
        match arg.as_str() {
            "--rounds" => options.rounds = number(value()?)?,
            "--ports" => options.ports = Some(number(value()?)?),
            "--short" => options.short = true,
            "--peer-bin" => options.peer.push(value()?.into()),
            "--peer-schema" => options.schema = Some(value()?.into()),
            "--inside" => options.inside = Some(value()?.into()),
            name if names().any(|n| n == name) => options.tests.push(name.to_owned()),
            other => {
                let all: Vec<&str> = names().collect();
                return Err(format!(
                    "bench upcall: no test {other} (there are: {})",
                    all.join(", ")
                ));
            }
        }
    }
    Ok(options)
}

/// Runs the tests that `args` name, or all.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    match &options.inside {
        Some(ours) => inside(&options, ours),
        None => outside(&options, args),
    }
}

/// Builds everything and boots the machine, in which this program runs again.
fn outside(options: &Options, args: &[String]) -> Result<(), String> {
    // What is missing is told before anything is built.
    if let Some(missing) = vm::obstacle() {
        return Err(missing);
    }
    peer(options, &Scratch::new())?;
    println!("[upcall] building the release programs");
    demo::build()?;
    let built = layers::cargo()
        .args(["build", "--release", "--quiet", "-p", "xtask"])
        .status();
    if !built.map_err(|e| format!("cargo: {e}"))?.success() {
        return Err("the benchmark does not build".into());
    }
    let release = demo::release();
    let script = vm::folder().join("bench-upcall");
    let text = "program=$1; shift; exec \"$program\" bench upcall \"$@\"\n";
    let written = fs::create_dir_all(vm::folder()).and_then(|()| fs::write(&script, text));
    written.map_err(|e| format!("{}: {e}", script.display()))?;
    let mut job = vm::Job::new(script);
    job.memory = "4G".to_owned();
    job.limit = LIMIT;
    job.out = vm::folder().join("bench-out");
    let own = [
        release.join("xtask").display().to_string(),
        "--inside".to_owned(),
        release.display().to_string(),
    ];
    job.args = own.into_iter().chain(args.iter().cloned()).collect();
    println!("[upcall] booting the machine");
    vm::run_job(&job)
}

/// The other make.
fn peer(options: &Options, scratch: &Scratch) -> Result<Stack, String> {
    let mut stack = Stack::debian()
        .map_err(|e| format!("bench upcall: {e}; --peer-bin names another"))
        .or_else(|e| match options.peer.is_empty() {
            true => Err(e),
            false => Ok(Stack::ours(Path::new("/"))),
        })?;
    stack.name = "original";
    if !options.peer.is_empty() {
        // The programs of a build may be in several folders.
        let folder = scratch.path().join("programs");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for program in PROGRAMS {
            let places = options.peer.iter().map(|folder| folder.join(program));
            let place = places.clone().find(|path| path.is_file()).ok_or_else(|| {
                format!("bench upcall: --peer-bin: no {program} in any folder given")
            })?;
            let place =
                fs::canonicalize(&place).map_err(|e| format!("{}: {e}", place.display()))?;
            let link = folder.join(program);
            std::os::unix::fs::symlink(place, link).map_err(|e| format!("{program}: {e}"))?;
        }
        stack.daemons.clone_from(&folder);
        stack.tools = folder;
    }
    if let Some(schema) = &options.schema {
        stack.schema.clone_from(schema);
    }
    if !stack.schema.is_file() {
        return Err(format!(
            "bench upcall: no schema {} (--peer-schema names another)",
            stack.schema.display()
        ));
    }
    Ok(stack.with_kernel())
}

/// One make and what was measured of it.
struct Side {
    stack: Stack,
    is_ours: bool,
    values: Values,
    /// Tests that went wrong, with the first reason.
    failed: BTreeSet<String>,
}

impl Side {
    fn new(stack: Stack, is_ours: bool) -> Self {
        Self {
            stack,
            is_ours,
            values: Values::new(),
            failed: BTreeSet::new(),
        }
    }

    fn record(&mut self, test: &str, round: &str, result: Result<Found, String>) {
        let name = self.stack.name;
        match result {
            Ok(found) => {
                let texts: Vec<String> = found
                    .iter()
                    .map(|(name, value)| format!("{name} {}", digits(*value)))
                    .collect();
                println!("[{round} {name}] {}", texts.join(", "));
                for (name, value) in found {
                    self.values.entry(name).or_default().push(value);
                }
            }
            Err(error) => {
                println!("[{round} {name}] {test}: {error}");
                self.failed.insert(test.to_owned());
            }
        }
    }

    /// Runs each wanted test once.
    fn round(&mut self, wanted: &dyn Fn(&str) -> bool, round: &str, size: Size) {
        let small: Vec<_> = TESTS.iter().filter(|t| wanted(t.name)).collect();
        if !small.is_empty() {
            match Bench::start(&self.stack, size, self.is_ours) {
                Ok(bench) => {
                    for test in small {
                        let result = (test.run)(&bench);
                        let is_error = result.is_err();
                        self.record(test.name, round, result);
                        if is_error && self.is_ours {
                            println!("{}", bench.running.report());
                        }
                    }
                }
                Err(error) => self.record("start", round, Err(error)),
            }
        }
        if wanted(scale::NAME) {
            let result = scale::run(&self.stack, size, self.is_ours);
            self.record(scale::NAME, round, result);
        }
        // Its namespace goes in the background.
        std::thread::sleep(Duration::from_secs(2));
    }
}

/// Measures, in the machine.
fn inside(options: &Options, ours: &Path) -> Result<(), String> {
    let mut size = if options.short {
        Size::SHORT
    } else {
        Size::FULL
    };
    size.ports = options.ports.unwrap_or(size.ports);
    let wanted =
        |name: &str| options.tests.is_empty() || options.tests.iter().any(|test| test == name);
    let scratch = Scratch::new();
    let mut sides = [
        Side::new(Stack::ours(ours).with_kernel(), true),
        Side::new(peer(options, &scratch)?, false),
    ];
    for number in 1..=options.rounds {
        for side in &mut sides {
            side.round(&wanted, &format!("{number}/{}", options.rounds), size);
        }
    }
    let [own, other] = &sides;
    let (text, missed) = table(&own.values, &other.values);
    print!("\nmedians of {} rounds\n{text}", options.rounds);
    for side in &sides {
        for test in &side.failed {
            println!("{}: {test} went wrong, see above", side.stack.name);
        }
    }
    if !own.failed.is_empty() {
        return Err("bench upcall: not everything could be measured".into());
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("bench upcall: missed: {}", missed.join(", ")))
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn options(text: &str) -> Result<Options, String> {
        let args: Vec<String> = text.split_whitespace().map(String::from).collect();
        parse(&args)
    }

    #[test]
    fn the_command_line() {
        let parsed = options("--rounds 3 --short --peer-bin /a --peer-bin /b flood ports").unwrap();
        assert_eq!((parsed.rounds, parsed.short), (3, true));
        assert_eq!(parsed.peer, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(parsed.tests, ["flood", "ports"]);
        assert_eq!(options("").unwrap().rounds, 5);
    }

    #[test]
    fn what_is_wrong_with_it_is_named() {
        for (text, word) in [
            ("--rounds 0", "'0'"),
            ("--rounds", "--rounds"),
            ("what", "what"),
            ("--peer-bin", "--peer-bin"),
        ] {
            let error = options(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        let missing = options("--peer-bin /nowhere").unwrap();
        let error = peer(&missing, &Scratch::new()).unwrap_err();
        assert!(error.contains("ovs-vswitchd"), "{error}");
    }
}
