//! `ovsdb-tool`: works on database files.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    vs_ctl::main(vs_ctl::ovsdb_tool::run)
}
