//! The project's own chores: `cargo xtask test` and what it is made of.
#![forbid(unsafe_code)]

mod bench;
mod demo;
mod fuzz;
mod kernel;
mod layers;
mod prepare;
mod test;
mod vm;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND [OPTION...]

  bench [--rounds N] [--noise] [FIGURE...]
                                       Sluice against Debian's Open vSwitch (as root)
  bench upcall [--rounds N] [--short] [--ports N] [--peer-bin DIR]... [--peer-schema FILE] [TEST...]
                                       the kernel's way to the switch, against Debian's or
                                       another Open vSwitch, in a virtual machine
  bench db [--rounds N] [--large] [--rows N] [--peer FILE] [--no-build]
                                       the database server against Debian's or another
                                       ovsdb-server
  demo                                 two hosts talk through a bridge (as root)
  fuzz [--seconds N] [TARGET...]       every fuzzer for N (60) seconds, or those named
  test [--full] [--install] [--require NAME,...]
                                       format, lints, layers and all tests; --install
                                       (or CI=true) first installs what some of them need
  kernel [--full] [NAME]               the tests that need the Open vSwitch module, in a
                                       virtual machine
  soak [MINUTES]                       floods and changes by turns in a virtual machine, for
                                       an hour: nothing may grow, leak or get lost
  layers                               check the crate edges against layers.txt
  vm [-c CPUS] [-m MEM] [-t SECONDS] [-o DIR] SCRIPT [ARG...]
                                       a bash script in a virtual machine whose kernel has
                                       the Open vSwitch module; its /out is kept in DIR";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("test") => test::run(&args[1..]),
        Some("bench") => bench::run(&args[1..]),
        Some("fuzz") => fuzz::run(&args[1..]),
        Some("demo") => demo::run(),
        Some("layers") => layers::check(),
        Some("kernel") => kernel::command(&args[1..]),
        Some("soak") => kernel::soak(args.get(1).map(String::as_str)),
        Some("vm") => vm::run(&args[1..]),
        _ => Err(USAGE.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
