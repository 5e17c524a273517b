//! `sluice`: every program of Sluice in one, chosen by its own name or first argument.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    eprintln!("sluice: no program is built in yet");
    ExitCode::FAILURE
}
