//! `ovs-vsctl`: edits the configuration of a switch in its database.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    vs_ctl::main(vs_ctl::vsctl::run)
}
