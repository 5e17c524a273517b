//! `ovs-vswitchd`: the switch.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match base::getopt::utf8_args(std::env::args_os().collect()) {
        Ok(args) => sluice::switch(&args),
        Err(text) => {
            eprintln!("ovs-vswitchd: {text}");
            ExitCode::FAILURE
        }
    }
}
