//! `ovs-ofctl`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    vs_ctl::main(vs_ctl::ofctl::run)
}
