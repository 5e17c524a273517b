//! `ovs-vswitchd`: the switch.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match base::getopt::utf8_args(std::env::args_os().collect()) {
        Ok(args) => vs_bridge::daemon::run(&args, sluice::providers::inject),
        Err(text) => {
            eprintln!("ovs-vswitchd: {text}");
            ExitCode::FAILURE
        }
    }
}
