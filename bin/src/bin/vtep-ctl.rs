//! `vtep-ctl`: edits the database of a hardware VTEP.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    vs_ctl::main(vs_ctl::vtep_ctl::run)
}
