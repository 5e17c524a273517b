//! The tests that need the kernel's Open vSwitch module: built here, run in one virtual machine.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::{layers, vm};

/// Time for all of them, with an emulated processor.
const LIMIT: Duration = Duration::from_secs(1800);

/// What the machine runs: the programs that are given, and whether one failed.
const SCRIPT: &str = "\
export SLUICE_KERNEL_VM=1 RUST_BACKTRACE=1
failed=0
for program in \"$@\"; do
    echo \"--- ${program##*/}\"
    \"$program\" --test-threads=1 || failed=1
done
exit $failed
";

/// Runs the tests, of which those whose names hold `filter` alone if it is given; the long ones,
/// too, if `full`.
///
/// # Errors
/// Some failed, or the machine does not run.
pub(crate) fn run(full: bool, filter: Option<&str>) -> Result<(), String> {
    let (settings, times) = if full {
        ("export SLUICE_FULL=1\n", 2)
    } else {
        ("", 1)
    };
    run_with(settings, filter, LIMIT * times)
}

/// `cargo xtask kernel [--full] [NAME]`.
///
/// # Errors
/// As those of [`run`], or the arguments are not these.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    let (full, names) = match args.split_first() {
        Some((first, rest)) if first == "--full" => (true, rest),
        _ => (false, args),
    };
    match names {
        [] => run(full, None),
        [name] if !name.starts_with('-') => run(full, Some(name)),
        _ => Err(format!("kernel: not understood: {}", names.join(" "))),
    }
}

/// `cargo xtask soak [MINUTES]`: one test for that long.
///
/// # Errors
/// It failed, or the machine does not run.
pub(crate) fn soak(minutes: Option<&str>) -> Result<(), String> {
    let minutes = minutes.unwrap_or("60");
    let count: u64 = minutes
        .parse()
        .map_err(|_| format!("soak: not a number of minutes: {minutes}"))?;
    let limit = LIMIT + Duration::from_secs(60 * count);
    let settings = format!("export SLUICE_SOAK_MINUTES={count}\n");
    run_with(&settings, Some("soak::"), limit)
}

/// Runs the tests after the lines `settings`.
fn run_with(settings: &str, filter: Option<&str>, limit: Duration) -> Result<(), String> {
    let programs = build()?;
    let script = vm::folder().join("kernel-tests");
    fs::create_dir_all(vm::folder()).map_err(|e| e.to_string())?;
    let script_text = match filter {
        None => SCRIPT.to_owned(),
        Some(filter) => SCRIPT.replace(
            "--test-threads=1",
            &format!("--test-threads=1 --nocapture '{filter}'"),
        ),
    };
    let text = settings.to_owned() + &script_text;
    fs::write(&script, text).map_err(|e| format!("{}: {e}", script.display()))?;
    let args = programs.iter().map(|p| p.display().to_string()).collect();
    let mut job = vm::Job::new(script);
    job.args = args;
    job.limit = limit;
    vm::run_job(&job)
}

/// Builds all test programs called `kernel`.
fn build() -> Result<Vec<PathBuf>, String> {
    let output = layers::cargo()
        .args(["test", "--workspace", "--no-run", "--test", "kernel"])
        .args(["--quiet", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    if !output.status.success() {
        return Err("the kernel's tests do not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(executable).collect())
}

/// The test program that a line of cargo's messages tells of.
fn executable(line: &str) -> Option<PathBuf> {
    let is_test = line.contains("\"kind\":[\"test\"]");
    let (_, rest) = line.split_once("\"executable\":\"").filter(|_| is_test)?;
    let (path, _) = rest.split_once('"')?;
    Some(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_cargos_messages() {
        let line = r#"{"reason":"compiler-artifact","target":{"kind":["test"],"name":"kernel"},"executable":"/t/kernel-1","fresh":true}"#;
        assert_eq!(executable(line), Some(PathBuf::from("/t/kernel-1")));
        let library = line.replace("test\"]", "lib\"]");
        assert_eq!(executable(&library), None);
        assert_eq!(executable("{\"executable\":null}"), None);
    }
}
