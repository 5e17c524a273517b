//! `cargo xtask test`: everything that must hold before a change lands.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::{kernel, layers, prepare, vm};

/// What the command line asks for.
#[derive(Default)]
struct Options {
    full: bool,
    install: bool,
    require: String,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--install" => options.install = true,
            "--full" => options.full = true,
            "--require" => options.require = args.next().ok_or("--require needs names")?.clone(),
            other => return Err(format!("test: unknown option {other}")),
        }
    }
    Ok(options)
}

/// How many times the usual random inputs `--full` tries.
const MORE_CASES: u32 = 20;
/// What a property tries that does not say it, as its library has it.
const USUAL_CASES: u32 = 256;

/// Runs the steps in order and stops at the first that fails.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    if options.install || std::env::var_os("CI").is_some() {
        prepare::install();
    }
    let skips: PathBuf = layers::root().join("target/skipped-tests.txt");
    let _ = std::fs::remove_file(&skips);
    step("format", cargo(&["fmt", "--all", "--check"]))?;
    step(
        "lints",
        cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]),
    )?;
    step("layers", layers::check())?;
    let mut tests = layers::cargo();
    tests
        .args(["test", "--workspace", "--quiet"])
        .env("SLUICE_SKIP_LOG", &skips);
    tests.env("SLUICE_REQUIRE", &options.require);
    tests.env("SLUICE_PYTHON", prepare::python());
    if options.full {
        tests
            .env("SLUICE_FULL", "1")
            .env("SLUICE_CASES", MORE_CASES.to_string())
            .env("PROPTEST_CASES", (USUAL_CASES * MORE_CASES).to_string());
    }
    step("tests", status(tests))?;
    step("kernel tests", kernel_tests(&options, &skips))?;
    report_skips(&skips);
    Ok(())
}

/// Boots a machine for the tests that need the kernel's module, if there can be one.
fn kernel_tests(options: &Options, skips: &PathBuf) -> Result<(), String> {
    let Some(why) = vm::obstacle() else {
        return kernel::run(options.full, None);
    };
    if options.require.split(',').any(|name| name == "kernel-vm") {
        return Err(format!("needs kernel-vm: {why}"));
    }
    let line = format!("kernel tests: needs kernel-vm: {why}\n");
    let log = OpenOptions::new().create(true).append(true).open(skips);
    log.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|e| format!("{}: {e}", skips.display()))
}

fn step(name: &str, result: Result<(), String>) -> Result<(), String> {
    println!(
        "xtask: {name}: {}",
        if result.is_ok() { "ok" } else { "FAILED" }
    );
    result.map_err(|e| format!("{name}: {e}"))
}

fn cargo(args: &[&str]) -> Result<(), String> {
    let mut command = layers::cargo();
    command.args(args);
    status(command)
}

fn status(mut command: Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{status}"))
    }
}

/// Each skipped test wrote one line, with its reason, into the file.
fn report_skips(path: &PathBuf) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    for line in text.lines() {
        println!("skipped: {line}");
    }
    println!("xtask: {} tests skipped", text.lines().count());
}
