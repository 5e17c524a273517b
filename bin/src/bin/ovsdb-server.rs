//! `ovsdb-server`: serves databases to their clients.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use sluice as _;

fn main() -> ExitCode {
    match base::getopt::utf8_args(std::env::args_os().collect()) {
        Ok(args) => db_server::run(&args),
        Err(error) => {
            eprintln!("ovsdb-server: {error}");
            ExitCode::FAILURE
        }
    }
}
