//! `ovsdb-client`: talks to a database server.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    vs_ctl::main(vs_ctl::ovsdb_client::run)
}
